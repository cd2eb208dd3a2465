"""A claim of the paper as one number: what is predicted, how it is measured, and which verdict follows.

A rule is fixed before a run; docs/reproduce.md lists those that were changed after a pilot. It says what the theory
predicts and the smallest error that the experiment would notice; the verdict is a function of the rule and the measured
interval alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.core.errors import ContractError, InvalidArgument
from banditto.core.json_types import Interval

Verdict = Literal["agrees", "disagrees", "not testable"]
Relation = Literal["near", "at most", "at least"]


# -- rules ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Near:
    """Rule for a figure that theory predicts, such as an exponent.

    It agrees when the whole interval is within half the detectable effect. A figure that is off by the whole effect
    then cannot agree as well, in whichever direction.
    """

    predicted: float
    detectable: float

    def agrees(self, low: float, high: float) -> bool:
        """Say whether a measured interval agrees with the prediction."""
        return self.predicted - self.detectable / 2.0 <= low <= high <= self.predicted + self.detectable / 2.0

    def text(self) -> str:
        """Say in words what is predicted."""
        return f"{self.predicted:g}"


@dataclass(frozen=True, kw_only=True)
class AtMost:
    """Rule for a bound from above: the whole interval must lie below it; a figure `detectable` above it fails."""

    predicted: float
    detectable: float

    def agrees(self, low: float, high: float) -> bool:
        """Say whether a measured interval agrees with the prediction."""
        return high <= self.predicted

    def text(self) -> str:
        """Say in words what is predicted."""
        return f"at most {self.predicted:g}"


@dataclass(frozen=True, kw_only=True)
class AtLeast:
    """Rule for a bound from below: the whole interval must lie above it; a figure `detectable` below it fails."""

    predicted: float
    detectable: float

    def agrees(self, low: float, high: float) -> bool:
        """Say whether a measured interval agrees with the prediction."""
        return low >= self.predicted

    def text(self) -> str:
        """Say in words what is predicted."""
        return f"at least {self.predicted:g}"


Rule = Near | AtMost | AtLeast


@dataclass(frozen=True, kw_only=True)
class Untestable:
    """A claim that no experiment of ours can decide, and why."""

    why: str


# -- what is measured -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ClaimCurve:
    """Points of a chart, with bars where they have an interval, or a line of the theory."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    theory: bool = False  # a line without points


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What a claim's figure shows; axes are named with their units."""

    x_label: str
    y_label: str
    curves: tuple[ClaimCurve, ...]
    x_log: bool = True
    y_log: bool = True


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One figure, with an interval at the 95% level unless the claim says otherwise, and what can be drawn of it."""

    value: float
    interval: tuple[float, float]
    detail: str = ""  # what was seen on the way, in a sentence
    chart: Chart | None = None

    @classmethod
    def exactly(cls, value: float, detail: str = "", chart: Chart | None = None) -> Measured:
        """Return a figure without noise, such as a count; its interval is the figure itself."""
        return cls(value=value, interval=(value, value), detail=detail, chart=chart)


class Effort(NamedTuple):
    """How much to measure: the quick version, or the full one with far more executions."""

    quick: bool

    def choose(self, quick: int, full: int) -> int:
        """Return one of two sizes, for the quick or the full version."""
        return quick if self.quick else full


# -- claims -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of the paper: what it says, how it is measured, and the rule that judges it."""

    name: str  # such as theorem-4-horizon; what is before the last part names a group that `only` takes as well
    place: str  # where the paper says it; "beyond" if it does not
    statement: str  # in our words
    quantity: str  # what the numbers are, with their unit
    experiment: str  # what is run
    rule: Rule | Untestable
    measure: Callable[[Effort], Measured] | None
    reason: str = ""  # for those who wonder why a row disagrees
    seconds: tuple[float, float] = (1.0, 10.0)  # of one core, quick and full: for the estimate

    def __post_init__(self) -> None:
        if isinstance(self.rule, Untestable) != (self.measure is None):
            raise ContractError(f"claim {self.name}: what is measured has a rule, what is not testable has none")
        if not isinstance(self.rule, Untestable) and not self.rule.detectable > 0.0:
            raise ContractError(f"claim {self.name}: the detectable effect must be positive")


class RowContent(TypedDict):
    """A `Row` as plain data: what is not testable has no figures."""

    name: str
    place: str
    statement: str
    quantity: str
    experiment: str
    relation: Relation | None
    predicted: float | None
    measured: float | None
    interval: Interval | None
    detectable: float | None
    verdict: Verdict
    explanation: str
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """A claim, what was found, and the verdict: one row of the report."""

    claim: Claim
    measured: Measured | None
    seconds: float = field(default=0.0, compare=False)

    @property
    def verdict(self) -> Verdict:
        """The verdict, which follows from the claim's rule and the measured interval alone."""
        rule = self.claim.rule
        if isinstance(rule, Untestable) or self.measured is None:
            return "not testable"
        low, high = self.measured.interval
        if math.isnan(low) or math.isnan(high):
            raise ContractError(f"claim {self.claim.name}: the interval is not a number")
        return "agrees" if rule.agrees(low, high) else "disagrees"

    @property
    def explanation(self) -> str:
        """What a reader should know beside the figures: details, why a claim disagrees, or why it cannot be tested."""
        rule = self.claim.rule
        if isinstance(rule, Untestable):
            return rule.why
        parts = [] if self.measured is None else [self.measured.detail]
        if self.verdict == "disagrees":
            parts.append(self.claim.reason or "No reason is known: treat it as a bug until one is found.")
        return " ".join(part for part in parts if part)

    def to_dict(self) -> RowContent:
        """Return plain data: what the `claim` says, and what was found; charts are left out: they are for pictures."""
        claim, rule = self.claim, self.claim.rule
        testable = not isinstance(rule, Untestable)
        relations: dict[type, Relation] = {Near: "near", AtMost: "at most", AtLeast: "at least"}
        return {
            "name": claim.name,
            "place": claim.place,
            "statement": claim.statement,
            "quantity": claim.quantity,
            "experiment": claim.experiment,
            "relation": relations.get(type(rule)),
            "predicted": None if isinstance(rule, Untestable) else rule.predicted,
            "measured": None if self.measured is None else self.measured.value,
            "interval": None if self.measured is None else list(self.measured.interval),
            "detectable": None if isinstance(rule, Untestable) else rule.detectable,
            "verdict": self.verdict,
            "explanation": self.explanation,
            "seconds": round(self.seconds, 3) if testable else None,
        }


MODULES: tuple[str, ...] = (
    "definition",
    "warm_up",
    "mean_estimation",
    "finite_arms",
    "undecided",
    "least_squares",
    "linear_finite",
    "core_set_lemmas",
    "rounded_regression",
    "linear_infinite",
    "naive_net",
    "computation",
    "printed",
    "beyond_prices",
    "beyond_lattice",
)


@cache
def claims() -> tuple[Claim, ...]:
    """Return every claim, in the order of the paper."""
    found = tuple(claim for name in MODULES for claim in import_module(f"banditto.paper.{name}").CLAIMS)
    names = [claim.name for claim in found]
    if len(set(names)) != len(names):
        raise ContractError(f"two claims share a name: {sorted(name for name in names if names.count(name) > 1)}")
    return found


def chosen(only: str | None) -> tuple[Claim, ...]:
    """Return the claim of this name, or the group whose names begin with it and a hyphen; all without a name."""
    if only is None:
        return claims()
    if not isinstance(only, str):
        raise InvalidArgument("only", only, "the name of a claim, or its beginning")
    found = tuple(claim for claim in claims() if claim.name == only or claim.name.startswith(f"{only}-"))
    if not found:
        raise InvalidArgument("only", only, f"a claim or the beginning of its name: {', '.join(groups())}")
    return found


def groups() -> list[str]:
    """Return the names that `only` takes: common beginnings of several claims, and names of single claims."""
    return list(dict.fromkeys("-".join(claim.name.split("-")[:2]) for claim in claims()))


def claim_of(name: str) -> Claim:
    """Return the claim that has this name."""
    return next(claim for claim in claims() if claim.name == name)
