"""Analysis: what an experiment taught, as a table, as plain data, as a frame and as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Annotated, Any, Final, Literal

from typing_extensions import TypedDict

from banditto.core.errors import MissingExtra
from banditto.core.json_types import InsideUnit, Interval, Keywords, Natural
from banditto.core.text import html_table, short, text_table
from banditto.engine.observations import DecidedBy, Observations
from banditto.measure.analysis.checks import FlowCheck, FlowCheckContent
from banditto.policies.policy import Level, LevelContent

SCHEMA_VERSION: Final = 1
Design = Literal["one batch", "looks", "fresh", "any time"]
Data = Literal["first", "after", "all", "none"]
ARM_HEADER = ("arm", "estimate", "interval", "pulls", "used", "")
DIFFERENCE_HEADER = ("arm", "against", "difference", "interval", "ratio", "its interval")


class ArmContent(TypedDict):
    """An `ArmEstimate` as plain data."""

    name: str
    estimate: float | None
    interval: Interval | None
    pulls: Natural
    used: Annotated[Natural, Keywords(description="pulls that estimate and interval are from")]
    data: Annotated[
        Data, Keywords(description="first: the first pulls; after: those after the commit; all; none: never pulled")
    ]


class DifferenceContent(TypedDict):
    """A `Difference` as plain data."""

    arm: str
    against: str
    estimate: float
    interval: Interval
    ratio: Annotated[float | None, Keywords(description="of the two means; null unless rewards begin at 0")]
    ratio_interval: Annotated[list[float | None], Keywords(minItems=2, maxItems=2)] | None


class CoverageContent(TypedDict):
    """A `Coverage` as plain data."""

    proved: bool
    at_least: InsideUnit
    needs_rho: Annotated[bool, Keywords(description="whether it is lost where two labs differ; it never is")]
    method: str
    assumes: str
    design: Design


class AnalysisContent(TypedDict):
    """An `Analysis` as plain data."""

    schema_version: Literal[1]
    headline: str
    winner: str | None
    decided_by: DecidedBy | None
    state: Literal["running", "finished", "stopped"]
    policy: str
    level: LevelContent
    confidence: InsideUnit
    arms: Annotated[list[ArmContent], Keywords(minItems=2)]
    differences: list[DifferenceContent]
    coverage: CoverageContent
    statement: str
    checks: list[FlowCheckContent]
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class ArmEstimate:
    """An arm's mean, with an interval that holds together with all others of its table."""

    name: str
    estimate: float | None
    low: float
    high: float
    pulls: int
    used: int
    data: Data

    @classmethod
    def unknown(cls, name: str) -> ArmEstimate:
        """Return the line of an arm that was never pulled."""
        return cls(name=name, estimate=None, low=-math.inf, high=math.inf, pulls=0, used=0, data="none")

    def to_dict(self) -> ArmContent:
        """Return plain data; `low` and `high` are its interval, which is null for an arm that was never pulled."""
        known = self.estimate is not None
        return {
            "name": self.name,
            "estimate": self.estimate,
            "interval": [self.low, self.high] if known else None,
            "pulls": self.pulls,
            "used": self.used,
            "data": self.data,
        }


@dataclass(frozen=True, kw_only=True)
class Difference:
    """By how much one arm's mean exceeds another's, and how many times as large it is."""

    arm: str
    against: str
    estimate: float
    low: float
    high: float
    ratio: float | None = None
    ratio_low: float = 0.0
    ratio_high: float = math.inf

    def with_ratio(self, one: ArmEstimate, other: ArmEstimate) -> Difference:
        """Add the ratio of two means, whose own intervals hold at once: lowest by highest, highest by lowest."""
        if one.estimate is None or other.estimate is None or not other.estimate > 0.0:
            return self
        high = one.high / other.low if other.low > 0.0 else math.inf
        return replace(self, ratio=one.estimate / other.estimate, ratio_low=one.low / other.high, ratio_high=high)

    def to_dict(self) -> DifferenceContent:
        """Return plain data; `low` and `high` are its interval, `ratio_low` and `ratio_high` that of the ratio.

        An end that is infinite is null.
        """
        high = self.ratio_high if math.isfinite(self.ratio_high) else None
        return {
            "arm": self.arm,
            "against": self.against,
            "estimate": self.estimate,
            "interval": [self.low, self.high],
            "ratio": self.ratio,
            "ratio_interval": None if self.ratio is None else [self.ratio_low, high],
        }


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Why all intervals hold at once: by which limits, what they assume, and from which pulls they are."""

    proved: bool
    method: str
    assumes: str
    design: Design


_DESIGNS: dict[Design, str] = {
    "one batch": "All intervals are from one batch, whose size was fixed in advance.",
    "looks": "The experiment could end after several numbers of pulls, all of them fixed in advance; intervals hold at "
    "all of these at once, so they hold where it did end.",
    "fresh": "The winner's estimate is from pulls after it was chosen, which had no part in the choice; those of other "
    "arms are from numbers of pulls that were fixed in advance, and hold at all of these at once.",
    "any time": "Pulls followed the rewards one by one. So the intervals hold after every pull at once, and are wider.",
}


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What an experiment taught: who won and by what, each arm's mean, and by how much the winner is better.

    All intervals hold at once, with the probability `confidence` or more.

    Attributes:
        arms: each arm's `estimate`, `low` and `high`, its `pulls`, and how many of them were `used`.
        differences: of the winner against every other arm; of the arm that leads, while there is no winner.
        compared: the number of that arm, from 0.
        confidence: how likely all intervals hold at once, at the least.
        level: what two labs have in common: "sequence", every pull, or "winner".
        coverage: why the intervals hold, and what that assumes.
        checks: whether arms were handed out as planned, and rewards lost alike.
        warnings: what a reader should know before anything else.
        observations: what all of this is from.

    Examples:
        >>> from banditto import analyse, select
        >>> arms = {"old": lambda rng: rng.random() < 0.4, "new": lambda rng: rng.random() < 0.8}
        >>> found = analyse(select(arms, gap=0.05, seed=2))
        >>> found.winner, found.decided_by, found.differences[0].low > 0
        ('new', 'lead', True)
    """

    arms: tuple[ArmEstimate, ...]
    differences: tuple[Difference, ...]
    compared: int = field(repr=False)
    confidence: float
    level: Level
    coverage: Coverage
    checks: tuple[FlowCheck, ...] = ()
    warnings: tuple[str, ...] = ()
    observations: Observations = field(repr=False)

    @property
    def winner(self) -> str | None:
        """The arm that was named, or committed to; None if there is none yet."""
        arm = self.observations.winner
        return None if arm is None else self.observations.names[arm]

    @property
    def decided_by(self) -> DecidedBy | None:
        """What named the winner: its "lead", or the shared "coin" (the control, where there is one)."""
        return self.observations.decided_by

    @property
    def better_by(self) -> tuple[float, float] | None:
        """By how much the winner is better than the best of all others: an interval that holds with the rest."""
        if not self.differences:
            return None
        return min(one.low for one in self.differences), min(one.high for one in self.differences)

    @property
    def headline(self) -> str:
        """Say in one line who won, what it pays, and by how much it is better than the next."""
        best = self.arms[self.compared]
        pays = f"{self._mean(best.estimate)} of {best.used:,}"
        if self.winner is None:
            said = f"{best.name} leads: {pays}"
        elif self.decided_by == "coin":
            said = f"{best.name} was chosen by the shared rule, because no arm led by enough: {pays}"
        else:
            said = f"{best.name} won: {pays}"
        return f"{said}; {self._better()}"

    def _better(self) -> str:
        found = self.better_by
        if found is None:
            return "there is nothing to compare it with"
        low, high = found
        unit = " points" if self._percent else ""
        scale = 100.0 if self._percent else 1.0
        if low > 0.0:
            return f"{scale * low:.3g} to {scale * high:.3g}{unit} better than the next"
        if high < 0.0:
            return f"{-scale * high:.3g} to {-scale * low:.3g}{unit} worse than the best"
        return f"between {-scale * low:.3g}{unit} worse and {scale * high:.3g}{unit} better than the next"

    @property
    def _percent(self) -> bool:
        """Whether rewards are 0 or 1, so that means are shares."""
        return self.observations.binary and self.observations.ends == (0.0, 1.0)

    def _mean(self, value: float | None) -> str:
        if value is None:
            return ""
        return f"{100.0 * value:.4g}%" if self._percent else short(value)

    def _apart(self, value: float) -> str:
        return f"{100.0 * value:+.3g}" if self._percent else f"{value:+.4g}"

    @property
    def statement(self) -> str:
        """Say what is proved of the intervals, and what that needs."""
        sure = f"{100.0 * self.confidence:g}%"
        first = f"All intervals hold at once with a probability of {sure} or more, counted before the first pull."
        needs = "That is proved if the rewards of each arm are independent and do not change over time, and {}."
        rho = "It does not depend on rho: it holds in every lab, whether labs agree or not."
        return " ".join([first, _DESIGNS[self.coverage.design], needs.format(self.coverage.assumes), rho])

    def arm_rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """Return a line for each arm: name, estimate, interval, pulls, those used, and a word."""
        words = {"first": "", "after": "pulls after the choice", "all": "", "none": "never pulled"}
        rows = []
        for number, arm in enumerate(self.arms):
            word = words[arm.data]
            if number == self.observations.winner:
                by = {"lead": "winner, by its lead", "coin": "winner, by the shared rule", None: "winner"}
                word = "; ".join(part for part in (by[self.decided_by], word) if part)
            interval = "" if arm.estimate is None else f"{self._mean(arm.low)} to {self._mean(arm.high)}"
            rows.append((arm.name, self._mean(arm.estimate), interval, f"{arm.pulls:,}", f"{arm.used:,}", word))
        return rows

    def difference_rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """Return a line for each comparison: the two arms, difference, ratio, and their intervals."""
        unit = " points" if self._percent else ""
        rows = []
        for one in self.differences:
            between = f"{self._apart(one.low)} to {self._apart(one.high)}"
            ratio, around = "", ""
            if one.ratio is not None:
                top = short(one.ratio_high) if math.isfinite(one.ratio_high) else "any"
                ratio, around = short(one.ratio), f"{short(one.ratio_low)} to {top}"
            rows.append((one.arm, one.against, self._apart(one.estimate) + unit, between, ratio, around))
        return rows

    def table(self) -> str:
        """Return who won, each arm, the winner against all others, what is proved, and the checks, as plain text."""
        parts = [self.headline, text_table(ARM_HEADER, self.arm_rows(), align="lrlrrl")]
        if self.differences:
            parts.append(text_table(DIFFERENCE_HEADER, self.difference_rows(), align="llrlrl"))
        parts.append(self.statement)
        parts += ["\n".join(check.line for check in self.checks)] if self.checks else []
        parts += ["\n".join(f"warning: {line}" for line in self.warnings)] if self.warnings else []
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        tables = [html_table((self.headline,), []), html_table(ARM_HEADER, self.arm_rows())]
        tables += [html_table(DIFFERENCE_HEADER, self.difference_rows())] if self.differences else []
        tables.append(html_table((self.statement,), [(check.line,) for check in self.checks]))
        tables += [html_table(("warning",), [(line,) for line in self.warnings])] if self.warnings else []
        return "".join(tables)

    def to_dict(self) -> AnalysisContent:
        """Return plain data with `winner`, `headline` and `statement`; `compared` and `observations` are left out."""
        return {
            "schema_version": SCHEMA_VERSION,
            "headline": self.headline,
            "winner": self.winner,
            "decided_by": self.decided_by,
            "state": self.observations.state,
            "policy": self.observations.policy.name,
            "level": self.level,
            "confidence": self.confidence,
            "arms": [arm.to_dict() for arm in self.arms],
            "differences": [one.to_dict() for one in self.differences],
            "coverage": {
                "proved": self.coverage.proved,
                "at_least": self.confidence,
                "needs_rho": False,
                "method": self.coverage.method,
                "assumes": self.coverage.assumes,
                "design": self.coverage.design,
            },
            "statement": self.statement,
            "checks": [check.to_dict() for check in self.checks],
            "warnings": list(self.warnings),
        }

    def to_frame(self) -> Any:
        """Return a pandas frame: a row for each arm, and one for each comparison, with `against`."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise MissingExtra("to_frame", "pandas", "data") from None
        return pandas.DataFrame(self._records())

    def _records(self) -> Sequence[Mapping[str, object]]:
        columns = ("arm", "against", "estimate", "low", "high", "pulls", "used")
        rows: list[tuple[object, ...]] = [
            (arm.name, None, arm.estimate, arm.low, arm.high, arm.pulls, arm.used) for arm in self.arms
        ]
        rows += [(one.arm, one.against, one.estimate, one.low, one.high, None, None) for one in self.differences]
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def plot(self) -> Any:
        """Draw a forest plot, arms above and differences below; a Matplotlib figure comes back."""
        # by its name: figures are made in a room above this one, and only who draws loads Matplotlib
        return import_module("banditto.report.forest").forest_figure(self)
