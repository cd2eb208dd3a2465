"""Measuring replicability: pairs of executions, an interval, a verdict.

The interval is exact if the number of pairs was planned. A result that grew, or that was looked at on the way, has a
confidence sequence instead: wider, and valid at every look. Either way a verdict is about one environment and errs with
probability at most (1 - confidence) / 2. It is no proof: that is `guarantee()`, whose total is reported beside it as
`bound`.
"""

from __future__ import annotations

import logging
import math
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from scipy.special import ndtri
from typing_extensions import TypedDict

from banditto.chance.noise import SCHEME
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, open_unit
from banditto.core.json_types import Digest, Horizon, InsideUnit, Interval, Keywords, Natural, Positive, Share
from banditto.core.protocol import Protocol
from banditto.core.text import html_table, short, text_table
from banditto.engine.backend import Backend
from banditto.engine.blocks import Progress, run_pairs
from banditto.engine.ledger import Ledger
from banditto.engine.pairs import Moments, PairCounts
from banditto.engine.player import player_of
from banditto.engine.run import Run, run_of
from banditto.numbers.confidence_sequence import ConfidenceSequence
from banditto.numbers.intervals import MOST_PAIRS, clopper_pearson, pairs_to_settle
from banditto.policies.policy import AnyPolicy, Guarantee, GuaranteeContent, own_guarantee, own_rho
from banditto.problems.catalogue import protocol_on
from banditto.problems.environment import Environment, LoggedContent

SCHEMA_VERSION: Final = 1
MOST_JOBS = 1024
DEFAULT_PAIRS = 1000
DEFAULT_LIMIT = 10**7  # of a run that goes on until it is settled

Verdict = Literal["PASS", "FAIL", "INCONCLUSIVE"]
IntervalKind = Literal["fixed", "sequence"]

logger = logging.getLogger(__name__)


class Regret(NamedTuple):
    """Pseudo-regret: mean over pairs with a normal interval, and the largest of all pairs' averages."""

    mean: float
    interval: tuple[float, float]
    largest: float


class RegretContent(TypedDict):
    """A `Regret` as plain data; one pair has no interval."""

    mean: float
    interval: Interval | None
    largest: float


class MeasuredContent(TypedDict):
    """What was measured of one policy, beside the environment."""

    schema_version: Literal[1]
    policy: str
    constants: str | None
    horizon: Horizon
    rho: InsideUnit
    seed: Natural
    noise_seed: Natural
    pairs: Positive
    mismatches: Natural
    agreement: Share
    interval: Interval
    interval_kind: Annotated[
        IntervalKind,
        Keywords(description="fixed: exact for the number of pairs that was planned; sequence: valid at every look"),
    ]
    confidence: InsideUnit
    bound: float | None
    guarantee: GuaranteeContent | None
    regret: RegretContent
    verdict: Verdict
    pairs_to_settle: int | None
    first_divergence: Annotated[dict[str, Positive], Keywords(propertyNames={"pattern": "^[1-9][0-9]*$"})]
    divergence_unit: Literal["batch", "round"]
    interrupted: bool
    digest: Digest


class CertificateContent(MeasuredContent):
    """A `Certificate` as plain data."""

    environment: LoggedContent


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """How often two executions with shared coins and fresh rewards were the same, arm for arm: Definition 1, measured.

    Made by `certify`. docs/certify.md says what the figures mean, and what a certificate does not say.

    Attributes:
        policy: the policy's name.
        constants: which constants it has, such as "certified" or "paper"; None for a baseline.
        environment: what it was measured on, as plain data.
        horizon: pulls in one execution.
        rho: the largest probability of a difference that is allowed.
        seed: the seed of the coins.
        noise_seed: the seed of the rewards.
        pairs: pairs that were played.
        mismatches: pairs whose two executions differ.
        agreement: the share of pairs whose two executions are the same.
        interval: for the probability of agreement.
        interval_kind: "fixed" is exact for the number of pairs that was planned, "sequence" is valid at every look.
        confidence: of the interval.
        bound: on the probability of a difference, proved; None without a proof that gives rho.
        guarantee: what is proved, term by term; None for a baseline.
        regret: mean pseudo-regret of a pair's executions, its interval, and the largest of all pairs.
        verdict: "PASS", "FAIL" or "INCONCLUSIVE".
        pairs_to_settle: about how many pairs would settle an inconclusive verdict; None if it is settled.
        first_divergence: how many pairs first differ in which batch or round, counted from 1.
        divergence_unit: "batch" or "round".
        divergence_pulls: how many pairs first differ at which pull, counted from 1.
        interrupted: whether Ctrl-C ended it early.
        protocol: what a second lab needs to play the same policy.

    Examples:
        >>> from banditto import Bernoulli, ExploreThenCommit, certify
        >>> policy = ExploreThenCommit(arms=2, horizon=10**4, rho=0.2, gap=0.4)
        >>> certificate = certify(policy, Bernoulli([0.9, 0.5]), pairs=500)
        >>> certificate.verdict, certificate.pairs, certificate.mismatches <= 0.2 * certificate.pairs
        ('PASS', 500, True)
    """

    policy: str
    constants: str | None
    environment: dict[str, Any]
    horizon: int
    rho: float
    seed: int
    noise_seed: int
    pairs: int
    mismatches: int
    agreement: float
    interval: tuple[float, float]
    interval_kind: IntervalKind
    confidence: float
    bound: float | None
    guarantee: Guarantee | None
    regret: Regret
    verdict: Verdict
    pairs_to_settle: int | None
    first_divergence: dict[int, int]
    divergence_unit: Literal["batch", "round"]
    divergence_pulls: dict[int, int]
    interrupted: bool
    protocol: Protocol

    @property
    def digest(self) -> str:
        """The sha256 of the protocol, in hexadecimal."""
        return self.protocol.digest

    def to_dict(self) -> CertificateContent:
        """Return plain data with the names of the attributes; batch numbers become text, as JSON wants them.

        Two attributes are left out. `protocol` is a file of its own: its `digest` is here, and `certify --out` writes
        it beside the certificate. `divergence_pulls` says of the same pairs as `first_divergence` at which pull they
        parted instead of in which batch or round; it has up to an entry for each pair, and is for pictures.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "policy": self.policy,
            "constants": self.constants,
            "environment": self.environment,
            "horizon": self.horizon,
            "rho": self.rho,
            "seed": self.seed,
            "noise_seed": self.noise_seed,
            "pairs": self.pairs,
            "mismatches": self.mismatches,
            "agreement": self.agreement,
            "interval": list(self.interval),
            "interval_kind": self.interval_kind,
            "confidence": self.confidence,
            "bound": self.bound,
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "regret": {
                "mean": self.regret.mean,
                "interval": None if math.isinf(self.regret.interval[1]) else list(self.regret.interval),
                "largest": self.regret.largest,
            },
            "verdict": self.verdict,
            "pairs_to_settle": self.pairs_to_settle,
            "first_divergence": {str(batch): pairs for batch, pairs in self.first_divergence.items()},
            "divergence_unit": self.divergence_unit,
            "interrupted": self.interrupted,
            "digest": self.digest,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return what a reader wants to know, as pairs of a label and its text."""
        low, high = self.interval
        where = ", ".join(f"{batch}: {pairs}" for batch, pairs in list(self.first_divergence.items())[:8])
        more = ", ..." if len(self.first_divergence) > 8 else ""
        verdict: str = self.verdict
        if self.verdict == "INCONCLUSIVE" and self.pairs_to_settle is not None:
            verdict += f" (about {self.pairs_to_settle:,} pairs would settle it)"
        kind = "interval" if self.interval_kind == "fixed" else "confidence sequence"
        name = self.policy if self.constants is None else f"{self.policy}, {self.constants} constants"
        return [
            ("policy", name),
            ("horizon", f"{self.horizon:,}"),
            ("pairs", f"{self.pairs:,}" + (" (interrupted)" if self.interrupted else "")),
            ("agreement", f"{self.agreement:.4f}, {100 * self.confidence:g}% {kind} {low:.4f} to {high:.4f}"),
            (
                "differ",
                f"{self.mismatches:,} pairs, {self.mismatches / self.pairs:.2%} of all; allowed: {100 * self.rho:g}%",
            ),
            ("proved bound", self._proved()),
            ("regret", f"{short(self.regret.mean)} (interval {_span(self.regret.interval)})"),
            ("first divergence", f"{self.divergence_unit}: pairs {where}{more}" if where else "none"),
            ("verdict", verdict),
            ("digest", self.digest),
        ]

    def _proved(self) -> str:
        if self.bound is not None:
            return f"{self.bound:.4g}"
        if self.guarantee is None:
            return "none"
        if self.guarantee.terms[0].name == "promise broken":
            return f"none: {self.guarantee.terms[0].name}, {self.guarantee.terms[0].statement}"
        return f"none: the proof gives {short(self.guarantee.total)}"

    def table(self) -> str:
        """Return the rows as a table in plain text."""
        return text_table(("certificate", ""), self.rows())

    def _repr_html_(self) -> str:
        return html_table(("certificate", ""), self.rows())


def certify(
    policy: AnyPolicy,
    environment: Environment,
    *,
    pairs: int | None = None,
    seed: int = 0,
    noise_seed: int | None = None,
    horizon: int | None = None,
    rho: float | None = None,
    confidence: float = 0.95,
    until_settled: bool = False,
    out: str | Path | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
    backend: Backend = "numpy",
) -> Certificate:
    """Play pairs of executions and count how many are the same; a certificate with interval and verdict comes back.

    This measures Definition 1 of *Replicable Bandits* on one environment; docs/certify.md says what it means. Results
    depend neither on `jobs` and `executor` nor on how often a run was stopped.

    Args:
        policy: what is measured: a replicable policy, a baseline, or one of your own.
        environment: the arms and their rewards.
        pairs: how many pairs to play, 1000 by default; with `until_settled` the most, 10^7 by default.
        seed: the seed of the coins, which the two executions of a pair share.
        noise_seed: the seed of the rewards, which they do not share; it follows from `seed` by default.
        horizon: pulls in one execution, for a policy that has no horizon of its own.
        rho: the largest probability of a difference that is allowed, for a baseline; a replicable policy has its own.
        confidence: of the interval.
        until_settled: whether to go on until the verdict is PASS or FAIL.
        out: a folder that keeps finished pairs; the same call goes on there, and one with more pairs adds to them.
        jobs: how many processes to start.
        executor: an executor of yours to use instead of processes, such as that of `cluster`.
        progress: called with the number of pairs that are done, and how many there are in all.
        backend: "numpy", or "cupy" for a GPU: the same coins and decisions, with rewards of the same distribution.

    Raises:
        InvalidArgument: an argument is not allowed, or `horizon` or `rho` is needed and not given.
        ConflictError: what is in `out` is of another run, damaged, or in use.
        WorkerError: a process could not be started, or died.

    Examples:
        >>> from banditto import Bernoulli, CertifiedElimination
        >>> policy = CertifiedElimination(arms=3, horizon=10**6, rho=0.1)
        >>> certificate = certify(policy, Bernoulli([0.9, 0.8, 0.7]), pairs=1000, seed=1)
        >>> certificate.verdict, certificate.pairs
        ('PASS', 1000)
    """
    run = run_of(policy, environment, seed=seed, noise_seed=noise_seed, horizon=horizon, backend=backend)
    rho = checked_rho(policy, rho)
    pairs = integer(default_pairs(until_settled) if pairs is None else pairs, "pairs", 1, MOST_PAIRS)
    jobs = integer(jobs, "jobs", 1, MOST_JOBS)
    if jobs > 1 and backend != "numpy":
        raise InvalidArgument("jobs", jobs, "1, because all processes would share the GPU")
    confidence = open_unit(confidence, "confidence")
    protocol = protocol_on(policy, arms=len(environment.means), seed=run.seed, horizon=run.horizon, rho=rho)
    sequence = ConfidenceSequence(rho, confidence)
    with nullcontext() if out is None else _ledger(out, run, protocol) as ledger:
        if ledger is not None:
            ledger.plan(None if until_settled else max(pairs, ledger.pairs))
            if ledger.pairs > pairs:
                logger.warning("%s pairs are there already; the result is that of all of them", f"{ledger.pairs:,}")
        counts, interrupted = run_pairs(
            *(run, pairs, jobs, executor, progress, ledger),
            settled=(lambda counts: sequence.settles(counts.mismatches, counts.pairs)) if until_settled else None,
        )
        if counts.pairs == 0:
            raise KeyboardInterrupt  # before the first block was finished: there is nothing to keep
        if ledger is not None:
            ledger.look()
        grown = until_settled or (ledger is not None and not ledger.as_planned())
    proved = own_guarantee(policy)
    guarantee = None if proved is None else proved.on(environment.means)
    constants = policy.settings().get("constants")
    if grown:
        low, high = sequence.interval(counts.mismatches, counts.pairs)
    else:
        low, high = clopper_pearson(counts.mismatches, counts.pairs, confidence)
    verdict: Verdict = "PASS" if high <= rho else "FAIL" if low > rho else "INCONCLUSIVE"
    return Certificate(
        policy=policy.name,
        constants=None if constants is None else str(constants),
        environment=environment.to_dict(),
        horizon=run.horizon,
        rho=rho,
        seed=run.seed,
        noise_seed=run.noise_seed,
        pairs=counts.pairs,
        mismatches=counts.mismatches,
        agreement=1.0 - counts.mismatches / counts.pairs,
        interval=(1.0 - high, 1.0 - low),
        interval_kind="sequence" if grown else "fixed",
        confidence=confidence,
        bound=guarantee.total if guarantee is not None and guarantee.holds else None,
        guarantee=guarantee,
        regret=_regret(counts.regret, confidence),
        verdict=verdict,
        pairs_to_settle=_settling(verdict, counts, sequence, grown),
        first_divergence=dict(sorted(counts.first_divergence.items())),
        divergence_unit=player_of(run).unit,
        divergence_pulls=dict(sorted(counts.first_pull.items())),
        interrupted=interrupted,
        protocol=protocol,
    )


def checked_rho(policy: AnyPolicy, rho: float | None) -> float:
    """Return a replicable policy's own rho; a baseline has none and is measured against the caller's."""
    own = own_rho(policy)
    if own is None:
        if rho is None:
            raise InvalidArgument("rho", None, f"a number between 0 and 1, which {policy.name} does not have itself")
        return open_unit(rho, "rho")
    if rho is not None and open_unit(rho, "rho") != own:
        raise InvalidArgument("rho", rho, f"{own}, the policy's own, or none")
    return float(own)


def default_pairs(until_settled: bool) -> int:
    """Return how many pairs are played, at most, if nobody says."""
    return DEFAULT_LIMIT if until_settled else DEFAULT_PAIRS


def identity_of(run: Run, protocol: Protocol) -> dict[str, Any]:
    """List what must be the same if pairs of two runs are to be counted together, in the order in which it is told."""
    return {
        "policy": run.policy.name,
        "horizon": run.horizon,
        "rho": protocol.rho,
        "seed": run.seed,
        "noise_seed": run.noise_seed,
        "environment": run.environment.to_dict(),
        "digest": protocol.digest,
        "noise_scheme": SCHEME,
    }


def _ledger(out: str | Path, run: Run, protocol: Protocol) -> Ledger:
    """Open the blocks that are kept in a folder, which is made if need be."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument("out", str(out), f"a folder that can be written ({error.strerror})") from None
    return Ledger(folder, identity_of(run, protocol), player_of(run).block_size)


def _regret(moments: Moments, confidence: float) -> Regret:
    reach = float(ndtri((1.0 + confidence) / 2.0)) * moments.standard_error
    return Regret(moments.mean, (moments.mean - reach, moments.mean + reach), moments.largest)


def _settling(verdict: Verdict, counts: PairCounts, sequence: ConfidenceSequence, grown: bool) -> int | None:
    if verdict != "INCONCLUSIVE":
        return None
    settles = sequence.settles if grown else None
    return pairs_to_settle(counts.mismatches, counts.pairs, sequence.rho, sequence.confidence, settles)


def _span(interval: tuple[float, float]) -> str:
    return "unknown from one pair" if math.isinf(interval[1]) else f"{short(interval[0])} to {short(interval[1])}"
