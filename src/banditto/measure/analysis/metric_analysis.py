"""Metrics beside the rewards: estimates with intervals, corrected for their number, and guardrails. They never decide.

A metric may go with the rewards, so that the batches that a policy stops at are no fair sample of it either: its values
are used as rewards are, at numbers of pulls that were known in advance, or after the choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.exact import real
from banditto.core.text import short
from banditto.engine.observations import SeenBatch, SeenMetric
from banditto.measure.analysis import stages
from banditto.measure.analysis.analysing import with_ratios
from banditto.measure.analysis.analysis import Analysis
from banditto.measure.analysis.estimates import ArmEstimate, GuardrailVerdict, MetricAnalysis
from banditto.measure.analysis.limits import ApproximateLimits, BernsteinLimits
from banditto.measure.analysis.planned import LimitKind, Planned

_GUARDRAIL = re.compile(r"\s*([A-Za-z0-9_][A-Za-z0-9_.-]*)\s*(<=|>=)\s*(\S+)\s*")
_ALLOWED = "NAME<=NUMBER or NAME>=NUMBER, such as 'latency<=300'"
_MOST_ROUNDING = 1e-6  # of a variance, which is next to nothing; beyond that nothing is proved
Ranges = Mapping[str, tuple[float, float]]


class Guardrail(NamedTuple):
    """A bound that a metric's mean should keep in every arm."""

    metric: str
    sign: Literal["<=", ">="]
    bound: float

    @classmethod
    def parse(cls, text: str) -> Guardrail:
        """Parse text such as latency<=300."""
        found = _GUARDRAIL.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise InvalidArgument("guardrails", text, _ALLOWED)
        name, sign, bound = found.groups()
        return cls(name, "<=" if sign == "<=" else ">=", real(bound, "guardrails", _ALLOWED))

    def verdict(self, arm: ArmEstimate) -> GuardrailVerdict:
        """Return "crossed" or "kept" if an arm's whole interval is on that side of the bound, else "open"."""
        if arm.estimate is None:
            return "open"
        inside, outside = arm.high <= self.bound, arm.low > self.bound
        if self.sign == ">=":
            inside, outside = arm.low >= self.bound, arm.high < self.bound
        return "kept" if inside else "crossed" if outside else "open"


@dataclass(frozen=True, kw_only=True)
class MetricOptions:
    """What a caller says of metrics: ranges of their values, and guardrails for their means."""

    ranges: Ranges
    guardrails: tuple[Guardrail, ...]

    @classmethod
    def of(cls, ranges: Ranges | None, guardrails: Iterable[str] | None) -> MetricOptions:
        """Check ranges and guardrails, and return them as options."""
        known: dict[str, tuple[float, float]] = {}
        for name, ends in (ranges or {}).items():
            known[name] = _checked_range(name, ends)
        if isinstance(guardrails, str):
            raise InvalidArgument("guardrails", guardrails, f"a list of {_ALLOWED}")
        return cls(ranges=known, guardrails=tuple(Guardrail.parse(text) for text in guardrails or ()))

    def check_names(self, told: Sequence[str]) -> None:
        """Refuse a range or a guardrail for a metric that nobody told."""
        asked = [("metric_ranges", name) for name in self.ranges] + [
            ("guardrails", one.metric) for one in self.guardrails
        ]
        for argument, name in asked:
            if name not in told:
                raise InvalidArgument(argument, name, f"a metric that was told: {', '.join(told) or 'none was'}")


def _checked_range(name: str, ends: Any) -> tuple[float, float]:
    allowed = "two numbers, the smallest and the largest value that there can be"
    if isinstance(ends, str) or len(ends) != 2:
        raise InvalidArgument("metric_ranges", f"{name}: {ends}", allowed)
    low, high = (real(end, f"metric_ranges of {name}", allowed) for end in ends)
    if not low < high:
        raise InvalidArgument("metric_ranges", f"{name}: {low:g} to {high:g}", "a low end below the high one")
    return low, high


def with_metrics(found: Analysis, options: MetricOptions) -> Analysis:
    """Add what metrics show. All their intervals hold at once with the confidence, apart from those of the rewards."""
    seen = found.observations
    options.check_names([metric.name for metric in seen.metrics])
    if not seen.metrics or not stages.has_stages(seen.policy):
        return found
    each = 1.0 - (1.0 - found.confidence) / len(seen.metrics)
    return replace(found, metrics=tuple(_analysed(found, metric, each, options) for metric in seen.metrics))


def _analysed(found: Analysis, metric: SeenMetric, confidence: float, options: MetricOptions) -> MetricAnalysis:
    """Analyse one metric: each arm's mean, the winner against the others, and the guardrails."""
    seen = found.observations
    ends = options.ranges.get(metric.name)
    values = metric.batches
    if ends is not None and (metric.smallest < ends[0] or metric.largest > ends[1]):
        outside = metric.smallest if metric.smallest < ends[0] else metric.largest
        given = f"{metric.name} from {ends[0]:g} to {ends[1]:g}"
        raise InvalidArgument("metric_ranges", given, f"a range with {outside:g} in it, which was told")
    if ends is None or _rounding(values, *ends) > _MOST_ROUNDING:
        ends = None
        kind = LimitKind(
            "normal approximation",
            "",
            True,
            lambda sums: ApproximateLimits(sums.total, sums.squares or 0.0, sums.pulls),
        )
    else:
        values = tuple(_scaled(batch, *ends) for batch in values)
        kind = LimitKind(
            "empirical Bernstein", "", False, lambda sums: BernsteinLimits(sums.total, sums.squares or 0.0, sums.pulls)
        )
    told = replace(
        seen, ends=ends, pulls=tuple(sum(batch.counts[arm] for batch in values) for arm in range(len(seen.names)))
    )
    assert stages.has_stages(seen.policy)
    made = Planned(told, seen.policy, confidence, kind, values)
    arms = made.arms()
    bounds = [one for one in options.guardrails if one.metric == metric.name]
    return MetricAnalysis(
        name=metric.name,
        arms=arms,
        differences=with_ratios(arms, made.against_all(found.compared), ends),
        proved=ends is not None,
        guardrails=tuple(
            (f"{one.metric} {one.sign} {short(one.bound)}", {arm.name: one.verdict(arm) for arm in arms})
            for one in bounds
        ),
    )


def _rounding(batches: Sequence[SeenBatch], low: float, high: float) -> float:
    """Return how far rounding may have moved sums of squares, in units of the range squared."""
    values = sum(sum(batch.counts) for batch in batches)
    return values * 2.0**-52 * (max(abs(low), abs(high)) / (high - low)) ** 2


def _scaled(batch: SeenBatch, low: float, high: float) -> SeenBatch:
    """Return a batch's sums for values scaled to [0, 1]; squares are raised by what rounding may have lost."""
    width = high - low
    more = sum(batch.counts) * 2.0**-50 * max(abs(low), abs(high)) ** 2
    totals = [total - count * low for total, count in zip(batch.totals, batch.counts, strict=True)]
    squares = [
        max(0.0, square - 2.0 * low * total + count * low * low) + count * more
        for square, total, count in zip(batch.squares or batch.totals, batch.totals, batch.counts, strict=True)
    ]
    return SeenBatch(batch.counts, tuple(total / width for total in totals), tuple(one / width**2 for one in squares))
