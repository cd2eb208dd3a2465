"""What a certificate says: agreement, interval, bound, verdict, regret; as a table, as data, as HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.core.json_types import Digest, Horizon, InsideUnit, Interval, Keywords, Natural, Positive, Share
from banditto.core.protocol import Protocol
from banditto.core.results import Result
from banditto.core.text import amount, at_least, html_table, hundredths, text_table
from banditto.measure.named_by_lead import NamedByLead, NamedByLeadContent
from banditto.measure.random_play import coin_warning, decides_late, in_words, is_a_coins, late_warning
from banditto.policies.early_cut.early_cut import EarlyCut
from banditto.policies.one_cut.one_cut import OneCut
from banditto.policies.policy import Guarantee, Level, LevelContent, ProvedContent
from banditto.problems.catalogue import policy_of
from banditto.problems.environment import LoggedContent
from banditto.problems.environment_words import environment_in_words

SCHEMA_VERSION: Final = 3
LEVELS: Final = {
    "sequence": "sequence: pairs are compared by every pull",
    "winner": "winner: pairs are compared by the winner that they name",
}
_FOR_A_CONCLUSION = (OneCut.name, EarlyCut.name)
Verdict = Literal["PASS", "FAIL", "CONSISTENT", "INCONCLUSIVE"]
IntervalKind = Literal["fixed", "sequence"]
ShareOfRandomPlay = Annotated[
    float | None,
    Keywords(
        minimum=0,
        description="regret, divided by that of pulling all arms equally often; null for equal or infinitely many arms",
    ),
]
Judgement = Annotated[
    Verdict,
    Keywords(description="CONSISTENT: rho is inside the interval, and a bound is proved that is not below it"),
]
CoinDecides = Annotated[bool, Keywords(description="whether share_of_random_play is 0.9 or more")]


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

    schema_version: Literal[3]
    policy: str
    constants: str | None
    level: LevelContent
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
    guarantee: ProvedContent | None
    regret: RegretContent
    share_of_random_play: ShareOfRandomPlay
    coin_decides: CoinDecides
    named_by_lead: Annotated[
        NamedByLeadContent | None,
        Keywords(
            description="in which share of executions a lead decided, and no coin, though all means are equal; null "
            "where they are not, and for policies that cannot tell"
        ),
    ]
    verdict: Judgement
    pairs_to_settle: Annotated[
        int | None, Keywords(description="about how many pairs would show PASS or FAIL at the observed rate")
    ]
    first_divergence: Annotated[dict[str, Positive], Keywords(propertyNames={"pattern": "^[1-9][0-9]*$"})]
    divergence_unit: Literal["batch", "round"]
    interrupted: bool
    digest: Digest


class CertificateContent(MeasuredContent):
    """A `Certificate` as plain data."""

    environment: LoggedContent


@dataclass(frozen=True, kw_only=True, repr=False)
class Certificate(Result):
    """How often two executions with shared coins and fresh rewards were the same: Definition 1, measured.

    They are compared arm for arm; at the level of winners, by the arm that each names.

    Made by `certify`. docs/certify.md says what the figures mean, and what a certificate does not say.

    Attributes:
        policy: the policy's name.
        constants: which constants it has, such as "certified" or "paper"; None for a baseline.
        level: what pairs were compared by: "sequence", every pull, or "winner", the arm that is named.
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
        share_of_random_play: that mean, divided by the regret of pulling every arm equally often; None for equal arms,
            and for infinitely many.
        named_by_lead: where all means are equal, the share of executions in which a lead decided and no coin, its
            interval, and the number of executions; None where means differ, and for policies that cannot tell.
        verdict: "PASS" or "FAIL" where the interval shows it; else "CONSISTENT" with a proved bound, or "INCONCLUSIVE".
        pairs_to_settle: about how many pairs would show PASS or FAIL; None if they did, or it would be too many.
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
    level: Level
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
    share_of_random_play: float | None
    named_by_lead: NamedByLead | None
    verdict: Verdict
    pairs_to_settle: int | None
    first_divergence: dict[int, int]
    divergence_unit: Literal["batch", "round"]
    divergence_pulls: dict[int, int]
    interrupted: bool
    protocol: Protocol

    _picture = "certificate_picture:certificate_figure"
    _named = ("policy", "horizon", "pairs", "agreement", "interval", "rho", "verdict")

    @property
    def digest(self) -> str:
        """The sha256 of the protocol, in hexadecimal."""
        return self.protocol.digest

    @property
    def coin_decides(self) -> bool:
        """Whether a coin would do as well: regret is 0.9 of random play or more, and not because it decides late."""
        return is_a_coins(self.share_of_random_play) and not self._decides_late

    @property
    def _decides_late(self) -> bool:
        return self.policy in _FOR_A_CONCLUSION and decides_late(policy_of(self.protocol))

    @property
    def warning(self) -> str:
        """A warning where a coin would do as well, with what would help; empty otherwise."""
        if self.share_of_random_play is None or not is_a_coins(self.share_of_random_play):
            return ""
        if self._decides_late:
            return late_warning(self.share_of_random_play)
        replicable = self.guarantee is not None
        return coin_warning(self.share_of_random_play, self.protocol.settings, replicable=replicable)

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
            "level": self.level,
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
            "share_of_random_play": self.share_of_random_play,
            "coin_decides": self.coin_decides,
            "named_by_lead": None
            if self.named_by_lead is None
            else {
                "share": self.named_by_lead.share,
                "interval": list(self.named_by_lead.interval),
                "executions": self.named_by_lead.executions,
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
        first = list(self.first_divergence.items())[:8]
        where = ", ".join(f"{self.divergence_unit} {at}: {pairs:,} pairs" for at, pairs in first)
        more = ", ..." if len(self.first_divergence) > 8 else ""
        kind = "interval" if self.interval_kind == "fixed" else "confidence sequence"
        name = self.policy if self.constants is None else f"{self.policy}, {self.constants} constants"
        return [
            ("policy", name),
            ("measured on", environment_in_words(self.environment)),
            ("level", LEVELS[self.level]),
            ("horizon", f"{self.horizon:,}"),
            ("pairs", f"{self.pairs:,}" + (" (interrupted)" if self.interrupted else "")),
            (
                "agree",
                f"{hundredths(self.agreement, 2)} of pairs, {100 * self.confidence:g}% {kind} {100 * low:.2f} to "
                f"{100 * high:.2f}%; wanted: {100 * (1 - self.rho):g}%",
            ),
            ("proved", self._proved()),
            ("differ", f"{self.mismatches:,} pairs"),
            ("regret", f"{amount(self.regret.mean)} (interval {_span(self.regret.interval)})"),
            ("of random play", self._share()),
            *([] if self.named_by_lead is None else [("A/A", self._led(self.named_by_lead))]),
            *([("part first in", f"{where}{more}")] if where else []),
            ("verdict", self._judged()),
            ("seed", f"{self.seed}; of rewards {self.noise_seed}"),
            ("digest", self.digest),
        ]

    def _share(self) -> str:
        return in_words(self.share_of_random_play, self.environment.get("means", ()), coin=self.coin_decides)

    def _led(self, found: NamedByLead) -> str:
        winner = self.policy in _FOR_A_CONCLUSION
        what = "a winner was named by its lead" if winner else "an arm was dropped or chosen by a lead"
        low, high = found.interval
        return (
            f"all means are equal; {what} in {_points(found.share)}% of {found.executions:,} executions "
            f"({100 * self.confidence:g}%: {_points(low)} to {_points(high)}%)"
        )

    def _judged(self) -> str:
        more = None if self.pairs_to_settle is None else f"about {self.pairs_to_settle:,} pairs would settle it"
        if self.verdict == "CONSISTENT":
            return "CONSISTENT with the proof" + ("" if more is None else f" (by measurement alone {more})")
        return self.verdict if more is None else f"{self.verdict} ({more})"

    def _proved(self) -> str:
        if self.bound is not None:
            promised = self.guarantee is not None and self.guarantee.promised_gap is not None
            where = "as these arms keep the promise" if promised else "whatever the arms"
            return f"{at_least(self.bound)} of pairs agree, {where}"
        if self.guarantee is None:
            return "none"
        if self.guarantee.terms[0].name == "promise broken":
            return f"none: {self.guarantee.terms[0].name}, {self.guarantee.terms[0].statement}"
        total = "all" if self.guarantee.total >= 1.0 else hundredths(self.guarantee.total)
        return f"none: by the proof up to {total} of pairs may differ, {100 * self.rho:g}% are allowed"

    def records(self) -> list[dict[str, Any]]:
        """Return one flat record, for data frames and CSV files; of the intervals both ends."""
        known = not math.isinf(self.regret.interval[1])
        return [
            {
                "policy": self.policy,
                "constants": self.constants,
                "level": self.level,
                "horizon": self.horizon,
                "rho": self.rho,
                "pairs": self.pairs,
                "executions": 2 * self.pairs,
                "mismatches": self.mismatches,
                "agreement": self.agreement,
                "agreement_low": self.interval[0],
                "agreement_high": self.interval[1],
                "interval_kind": self.interval_kind,
                "bound": self.bound,
                "regret": self.regret.mean,
                "regret_low": self.regret.interval[0] if known else None,
                "regret_high": self.regret.interval[1] if known else None,
                "regret_largest": self.regret.largest,
                "share_of_random_play": self.share_of_random_play,
                "coin_decides": self.coin_decides,
                "verdict": self.verdict,
                "seed": self.seed,
                "noise_seed": self.noise_seed,
                "digest": self.digest,
            }
        ]

    def table(self) -> str:
        """Return the rows as a table in plain text."""
        return text_table(("certificate", ""), self.rows())

    def _repr_html_(self) -> str:
        return html_table(("certificate", ""), self.rows())


def _points(share: float) -> str:
    """Return a share in percent, as text: one decimal, or two significant digits below one percent."""
    return f"{100 * share:.1f}" if share >= 0.01 else f"{100 * share:.2g}"


def _span(interval: tuple[float, float]) -> str:
    return "unknown from one pair" if math.isinf(interval[1]) else f"{amount(interval[0])} to {amount(interval[1])}"
