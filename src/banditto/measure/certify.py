"""Measuring replicability: pairs of executions, an interval, a verdict.

The interval is exact if the number of pairs was planned. A result that grew, or that was looked at on the way, has a
confidence sequence instead: wider, and valid at every look. Either way a verdict is about one environment and errs with
probability at most (1 - confidence) / 2. It is no proof: that is `guarantee()`, whose total is reported beside it as
`bound`.
"""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from scipy.special import ndtri

from banditto.chance.noise import SCHEME
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, open_unit
from banditto.core.protocol import Protocol
from banditto.engine.backend import Backend
from banditto.engine.blocks import run_pairs
from banditto.engine.ledger import Ledger
from banditto.engine.pair_counts import Moments, PairCounts
from banditto.engine.player import Run, player_of, run_of
from banditto.engine.progress import Progress
from banditto.engine.travelling import check_can_travel
from banditto.measure.certificate import Certificate, Regret, Verdict
from banditto.measure.named_by_lead import named_by_lead
from banditto.measure.random_play import share_of_random_play
from banditto.numbers.confidence_sequence import ConfidenceSequence
from banditto.numbers.intervals import MOST_PAIRS, clopper_pearson, pairs_to_settle
from banditto.policies.policy import AnyPolicy, own_guarantee, own_level, own_rho
from banditto.problems.catalogue import protocol_on
from banditto.problems.environment import Environment

MOST_JOBS = 1024
DEFAULT_PAIRS = 1000
DEFAULT_LIMIT = 10**7  # of a run that goes on until it is settled


logger = logging.getLogger(__name__)


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

    This measures Definition 1 of *Replicable Bandits* on one environment; docs/certify.md says what it means. A policy
    at the level of winners, such as `EarlyCut`, is measured by the winners that the two executions name. Where all
    means are equal, the certificate says how often a lead decides instead of a coin. Results depend neither on `jobs`
    and `executor` nor on how often a run was stopped.

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
    check_can_travel(policy, jobs, executor)
    if jobs > 1 and backend != "numpy":
        raise InvalidArgument("jobs", jobs, "1, because all processes would share the GPU")
    confidence = open_unit(confidence, "confidence")
    protocol = protocol_on(policy, arms=len(environment.means), seed=run.seed, horizon=run.horizon, rho=rho)
    sequence = ConfidenceSequence(rho, confidence)
    with nullcontext() if out is None else _ledger(out, run, protocol) as ledger:
        if ledger is not None:
            _announce(ledger, pairs, until_settled)
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
    bound = guarantee.total if guarantee is not None and guarantee.holds else None
    regret = _regret(counts.regret, confidence)
    verdict = _verdict(low, high, rho, bound)
    return Certificate(
        policy=policy.name,
        constants=None if constants is None else str(constants),
        level=own_level(policy),
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
        bound=bound,
        guarantee=guarantee,
        regret=regret,
        share_of_random_play=share_of_random_play(regret.mean, environment.means, run.horizon),
        named_by_lead=named_by_lead(run, counts.pairs, confidence),
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
    """Return the default number of pairs; with `until_settled`, the most that are played."""
    return DEFAULT_LIMIT if until_settled else DEFAULT_PAIRS


def identity_of(run: Run, protocol: Protocol) -> dict[str, Any]:
    """Return what two runs must have in common if their pairs are to be counted together."""
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
    """Open the folder that keeps played pairs; it is made if need be."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument("out", str(out), f"a folder that can be written ({error.strerror})") from None
    return Ledger(folder, identity_of(run, protocol), player_of(run).block_size)


def _regret(moments: Moments, confidence: float) -> Regret:
    reach = float(ndtri((1.0 + confidence) / 2.0)) * moments.standard_error
    return Regret(moments.mean, (moments.mean - reach, moments.mean + reach), moments.largest)


def _announce(ledger: Ledger, pairs: int, until_settled: bool) -> None:
    """Record how many pairs are planned, and warn if the folder holds more already."""
    ledger.plan(None if until_settled else max(pairs, ledger.pairs))
    if ledger.pairs > pairs:
        logger.warning("%s pairs are there already; the result is that of all of them", f"{ledger.pairs:,}")


def _verdict(low: float, high: float, rho: float, bound: float | None) -> Verdict:
    """Return the verdict on the limits of P(differ); if they leave rho open, a proved bound gives CONSISTENT."""
    if high <= rho or low > rho:
        return "PASS" if high <= rho else "FAIL"
    # a policy that uses all of rho stays here for ever, whatever the number of pairs
    return "CONSISTENT" if bound is not None and low <= bound else "INCONCLUSIVE"


def _settling(verdict: Verdict, counts: PairCounts, sequence: ConfidenceSequence, grown: bool) -> int | None:
    if verdict in ("PASS", "FAIL"):
        return None
    settles = sequence.settles if grown else None
    return pairs_to_settle(counts.mismatches, counts.pairs, sequence.rho, sequence.confidence, settles)
