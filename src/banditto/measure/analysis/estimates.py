"""Estimates: an arm's mean and the difference of two, each with its interval; and those of a metric."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from banditto.core.json_types import Interval, Keywords, Natural
from banditto.core.text import outwards

Data = Literal["first", "after", "all", "none"]
GuardrailVerdict = Literal["kept", "crossed", "open"]


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


class GuardrailContent(TypedDict):
    """A bound that a metric's mean should keep, and whether it does, arm by arm."""

    bound: str
    arms: dict[str, GuardrailVerdict]


class MetricContent(TypedDict):
    """A `MetricAnalysis` as plain data."""

    name: str
    proved: Annotated[bool, Keywords(description="whether its range was given; else intervals are approximate")]
    arms: list[ArmContent]
    differences: list[DifferenceContent]
    guardrails: list[GuardrailContent]


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
        """Return the estimate of an arm that was never pulled: no mean, and an infinite interval."""
        return cls(name=name, estimate=None, low=-math.inf, high=math.inf, pulls=0, used=0, data="none")

    @classmethod
    def from_dict(cls, content: ArmContent) -> ArmEstimate:
        """Read what `to_dict` gave; the same estimate comes back."""
        low, high = content["interval"] or (-math.inf, math.inf)
        known: Any = {key: content[key] for key in ("name", "estimate", "pulls", "used", "data")}
        return cls(low=low, high=high, **known)

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
        """Return this with the ratio of the two means and its interval.

        The means' intervals and the difference's hold at once. So the ratio is at least the lowest mean by the highest,
        and, as it is 1 + difference / other, at least 1 + low / other; likewise from above. The narrower ends count: a
        ratio then leaves 1 out whenever the difference leaves 0 out.
        """
        if one.estimate is None or other.estimate is None or not other.estimate > 0.0:
            return self
        low, high = one.low / other.high, one.high / other.low if other.low > 0.0 else math.inf
        at_low, at_high = (other.high if self.low > 0.0 else other.low), (other.high if self.high < 0.0 else other.low)
        low = max(low, 1.0 + self.low / at_low) if at_low > 0.0 else low
        high = min(high, 1.0 + self.high / at_high) if at_high > 0.0 else high
        return replace(self, ratio=one.estimate / other.estimate, ratio_low=low, ratio_high=high)

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
class MetricAnalysis:
    """What a metric shows: each arm's mean, the winner against all others, and whether guardrails were kept.

    Attributes:
        name: the metric.
        arms: each arm's `estimate`, `low` and `high`, and how many values there are.
        differences: of the winner against every other arm.
        proved: whether the range of its values was given; else its intervals are approximate, and nothing is proved.
        guardrails: each bound, and by arm whether it is "kept", "crossed", or "open": the interval is on both sides.
    """

    name: str
    arms: tuple[ArmEstimate, ...]
    differences: tuple[Difference, ...]
    proved: bool
    guardrails: tuple[tuple[str, dict[str, GuardrailVerdict]], ...] = ()

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return a line for each arm: metric, arm, estimate, interval, values; and one for each comparison."""
        rows = []
        for arm in self.arms:
            low, high, places = outwards(arm.low, arm.high)
            interval = "" if arm.estimate is None else f"{low} to {high}"
            estimate = "" if arm.estimate is None else f"{arm.estimate:.{places}f}"
            rows.append((self.name, arm.name, estimate, interval, f"{arm.used:,}"))
        for one in self.differences:
            low, high, places = outwards(one.low, one.high)
            pair, middle = f"{one.arm} - {one.against}", f"{one.estimate:+.{places}f}"
            rows.append((self.name, pair, middle, f"{low} to {high}", ""))
        return rows

    def guardrail_lines(self) -> list[str]:
        """Say for each guardrail which arms cross it, keep it, or may do either."""
        lines = []
        for bound, arms in self.guardrails:
            said = [
                f"{verdict} by {', '.join(name for name, found in arms.items() if found == verdict)}"
                for verdict in ("crossed", "kept", "open")
                if verdict in arms.values()
            ]
            lines.append(f"guardrail {bound}: {'; '.join(said)}".replace("open by", "not settled for"))
        return lines

    def to_dict(self) -> MetricContent:
        """Return plain data with the names of the attributes."""
        return {
            "name": self.name,
            "proved": self.proved,
            "arms": [arm.to_dict() for arm in self.arms],
            "differences": [one.to_dict() for one in self.differences],
            "guardrails": [{"bound": bound, "arms": dict(arms)} for bound, arms in self.guardrails],
        }
