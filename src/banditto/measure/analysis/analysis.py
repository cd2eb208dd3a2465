"""Analysis: what an experiment taught, as a table, as plain data, as a frame and as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from typing_extensions import TypedDict

from banditto.core.json_types import InsideUnit, Keywords
from banditto.core.results import Part, Result, TablePart
from banditto.core.text import outwards
from banditto.engine.observations import DecidedBy, Observations
from banditto.measure.analysis.checks import FlowCheck, FlowCheckContent
from banditto.measure.analysis.estimates import (
    ArmContent,
    ArmEstimate,
    Difference,
    DifferenceContent,
    MetricAnalysis,
    MetricContent,
)
from banditto.policies.policy import Level, LevelContent

SCHEMA_VERSION: Final = 1
Design = Literal["one batch", "looks", "fresh", "any time"]
ARM_HEADER = ("arm", "estimate", "interval", "pulls", "used", "")
METRIC_HEADER = ("metric", "arm", "estimate", "interval", "values")
DIFFERENCE_HEADER = ("arm", "against", "difference", "interval", "ratio", "its interval")


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
    metrics: list[MetricContent]
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Why all intervals hold at once: the method of their limits, its assumptions, and the pulls they use."""

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
    "any time": "How often arms were pulled was fixed by nobody in advance. So the intervals hold after every pull at "
    "once, and are wider.",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class Analysis(Result):
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
        metrics: what was told with rewards, which decided nothing.
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
    metrics: tuple[MetricAnalysis, ...] = ()
    warnings: tuple[str, ...] = ()
    observations: Observations = field(repr=False)

    _picture = "forest:forest_plot"

    def __repr__(self) -> str:
        return f"Analysis({self.headline})"

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
        """By how much the winner is better than the best of the others that were pulled; it holds with the rest."""
        if not self.differences:
            return None
        return min(one.low for one in self.differences), min(one.high for one in self.differences)

    @property
    def headline(self) -> str:
        """Say in one line who won, what it pays, and by how much it is better than the next."""
        best = self.arms[self.compared]
        _, _, places = outwards(self._scale * best.low, self._scale * best.high)
        mean = self._mean(best.estimate, min(places, 4))
        pays = f"{mean} of {best.used:,}" if self.percent else f"{mean} on average of {best.used:,}"
        if self.winner is None:
            said = f"{best.name} leads: {pays}"
        elif self.winner != best.name:  # chosen without ever having been pulled, by what features say
            said = f"{self.winner} was chosen, and has no rewards yet; of the others {best.name} leads: {pays}"
        elif self.decided_by == "coin":
            said = f"{best.name} was chosen by the shared rule, because no arm led by enough: {pays}"
        else:
            said = f"{best.name} won: {pays}"
        return f"{said}; {self._better()}"

    def _better(self) -> str:
        """Say in words by how much the compared arm is better or worse than the next one."""
        found = self.better_by
        if found is None:
            return "there is nothing to compare it with"
        low, high = self._scale * found[0], self._scale * found[1]
        unit = " points" if self.percent else ""
        next_one = "the next" if all(arm.used for arm in self.arms) else "the next that was pulled"
        if low > 0.0:
            least, most, _ = outwards(low, high, 2)
            return f"{least} to {most}{unit} better than {next_one}"
        if high < 0.0:
            least, most, _ = outwards(-high, -low, 2)
            return f"{least} to {most}{unit} worse than the best"
        least, most, _ = outwards(low, high, 2)
        return f"between {least.lstrip('-')}{unit} worse and {most}{unit} better than {next_one}"

    @property
    def percent(self) -> bool:
        """Whether rewards are 0 or 1, so that means are shares."""
        return self.observations.binary and self.observations.ends == (0.0, 1.0)

    @property
    def _scale(self) -> float:
        return 100.0 if self.percent else 1.0

    def _mean(self, value: float | None, places: int) -> str:
        if value is None:
            return ""
        return f"{self._scale * value:.{places}f}" + ("%" if self.percent else "")

    @property
    def statement(self) -> str:
        """Say what is proved of the intervals, and what that needs."""
        sure = f"{100.0 * self.confidence:g}%"
        first = f"All intervals hold at once with a probability of {sure} or more, counted before the first pull."
        needs = "That is proved if the rewards of each arm are independent and do not change over time, and {}."
        rho = "It does not depend on rho: it holds in every lab, whether labs agree or not."
        return " ".join([first, _DESIGNS[self.coverage.design], needs.format(self.coverage.assumes), rho])

    def arm_rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """Return a line for each arm: name, estimate, interval, pulls, those used, and a word.

        Ends of intervals are rounded outwards.
        """
        words = {"first": "", "after": "pulls after the choice", "all": "", "none": "never pulled"}
        sign = "%" if self.percent else ""
        rows = []
        for number, arm in enumerate(self.arms):
            word = words[arm.data]
            if number == self.observations.winner:
                by = {"lead": "winner, by its lead", "coin": "chosen by the shared rule", None: "winner"}
                word = "; ".join(part for part in (by[self.decided_by], word) if part)
            low, high, places = outwards(self._scale * arm.low, self._scale * arm.high)
            interval = "" if arm.estimate is None else f"{low}{sign} to {high}{sign}"
            mean = self._mean(arm.estimate, places)
            rows.append((arm.name, mean, interval, f"{arm.pulls:,}", f"{arm.used:,}", word))
        return rows

    def difference_rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """Return a line for each comparison: the two arms, difference, ratio, and their intervals."""
        unit = " points" if self.percent else ""
        rows = []
        for one in self.differences:
            low, high, places = outwards(self._scale * one.low, self._scale * one.high)
            ratio, around = "", ""
            if one.ratio is not None:
                least, most, decimals = outwards(one.ratio_low, one.ratio_high)
                ratio = f"{one.ratio:.{min(decimals, 6)}f}"
                around = f"{least} to {most}" if math.isfinite(one.ratio_high) else f"{one.ratio_low:.3g} or more"
            middle = f"{self._scale * one.estimate:+.{places}f}{unit}"
            rows.append((one.arm, one.against, middle, f"{_signed(low)} to {_signed(high)}", ratio, around))
        return rows

    def metric_rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return the lines of all metrics, one after the other."""
        return [row for metric in self.metrics for row in metric.rows()]

    def guardrail_lines(self) -> list[str]:
        """Return a line for each guardrail: which arms cross it, keep it, or may do either."""
        return [line for metric in self.metrics for line in metric.guardrail_lines()]

    @property
    def metric_statement(self) -> str:
        """Say what is proved of the metrics' intervals."""
        sure = f"{100.0 * self.confidence:g}%"
        known = [metric.name for metric in self.metrics if metric.proved]
        rough = [metric.name for metric in self.metrics if not metric.proved]
        said = [f"The intervals of all {len(self.metrics)} metrics together aim at {sure}, apart from those above."]
        said += [f"That is proved for {', '.join(known)}, whose range was given."] if known else []
        said += [f"For {', '.join(rough)} nothing is proved: a normal approximation, without a range."] if rough else []
        said += ["A value that was not told must be missing by chance alone."]
        return " ".join(said)

    def _parts(self) -> list[Part]:
        """Return who won, each arm, the winner against all others, what is proved, and the checks."""
        parts: list[Part] = [self.headline, TablePart(ARM_HEADER, self.arm_rows(), "lrlrrl")]
        if self.differences:
            parts.append(TablePart(DIFFERENCE_HEADER, self.difference_rows(), "llrlrl"))
        parts.append(self.statement)
        parts += ["\n".join(check.line for check in self.checks)] if self.checks else []
        if self.metrics:
            parts.append(TablePart(METRIC_HEADER, self.metric_rows(), "llrlr"))
            parts.append("\n".join([self.metric_statement, *self.guardrail_lines()]))
        parts += ["\n".join(f"warning: {line}" for line in self.warnings)] if self.warnings else []
        return parts

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
            "metrics": [metric.to_dict() for metric in self.metrics],
            "warnings": list(self.warnings),
        }

    def records(self) -> Sequence[Mapping[str, object]]:
        """Return a row for each arm, and one for each comparison, by the names of the columns."""
        columns = ("arm", "against", "estimate", "low", "high", "pulls", "used")
        rows: list[tuple[object, ...]] = [
            (arm.name, None, arm.estimate, arm.low, arm.high, arm.pulls, arm.used) for arm in self.arms
        ]
        rows += [(one.arm, one.against, one.estimate, one.low, one.high, None, None) for one in self.differences]
        return [dict(zip(columns, row, strict=True)) for row in rows]


def _signed(number: str) -> str:
    """Return a number as text with its sign."""
    return number if number.startswith("-") else f"+{number}"
