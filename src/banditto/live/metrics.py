"""Metrics: named numbers that are told with a reward. They are kept beside it, and never decide.

In an event they are `{name: [[batch, position, attempt, value], ...]}`, for tickets whose rewards it has. An event
without any has no such key, so that logs are what they were before there were metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from banditto.core.errors import BandittoError, InvalidArgument, LogError
from banditto.live.checked_words import checked_name
from banditto.live.registration import plain
from banditto.live.tickets import Ticket

MOST_METRICS = 50  # names in an experiment: each is a column of its exports
LARGEST_METRIC = 1e100  # so that no sum of squares can overflow, which PostgreSQL refuses to work out
METRIC_PREFIX = "metric:"  # of columns in files, which have names of their own beside it
_ALLOWED_VALUE = f"a finite number from {-LARGEST_METRIC:g} to {LARGEST_METRIC:g}"
Metrics = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class MetricSum:
    """The count, sum, sum of squares and extremes of one metric's values, for one batch and arm."""

    name: str
    batch: int
    arm: int
    count: int
    total: float
    squares: float  # the sum of the values' squares
    smallest: float
    largest: float

    def plus(self, other: MetricSum) -> MetricSum:
        """Add the values of another sum of the same metric, batch and arm."""
        return replace(
            self,
            count=self.count + other.count,
            total=self.total + other.total,
            squares=self.squares + other.squares,
            smallest=min(self.smallest, other.smallest),
            largest=max(self.largest, other.largest),
        )


def checked_metrics(metrics: object) -> dict[str, float]:
    """Check the metrics of one reward; return them as floats by name, an empty dict for None."""
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        raise InvalidArgument("metrics", metrics, "numbers by their names, such as {'revenue': 12.5}")
    return {metric_name(name): metric_value(value, f"metric {name}") for name, value in metrics.items()}


def metric_name(name: object) -> str:
    """Check the name of a metric, which comes back."""
    return str(checked_name(name, "name of a metric"))  # NumPy's text becomes Python's


def metric_value(value: object, argument: str) -> float:
    """Check a metric's value, Python's number or NumPy's; the float that it is comes back, or an error is raised."""
    given = plain(value)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidArgument(argument, given, _ALLOWED_VALUE)
    if not -LARGEST_METRIC <= given <= LARGEST_METRIC:  # nor is NaN, of which no comparison is true
        raise InvalidArgument(argument, given, _ALLOWED_VALUE)
    return float(given) + 0.0  # -0.0 is 0.0: databases do not agree on whether there are two


def conflict_of(before: Metrics, told: Metrics) -> str | None:
    """Say in words how metrics that are told again differ from what a ticket has; None comes back if they do not.

    Who tells a reward again without metrics says nothing about them.
    """
    if not told or told == before:
        return None
    if set(told) != set(before):
        return f"has {_listed(before)} and was told {_listed(told)}"
    name = next(name for name in told if told[name] != before[name])
    return f"has the metric {name} {before[name]!r} and was told {told[name]!r}"


def _listed(metrics: Metrics) -> str:
    names = sorted(metrics)
    return f"the metric{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else "no metrics"


def by_name(told: Iterable[tuple[Ticket, Metrics]]) -> dict[str, list[list[float]]]:
    """Arrange tickets' metrics as an event stores them: by name, a row for each ticket."""
    found: dict[str, list[list[float]]] = {}
    for ticket, metrics in told:
        for name, value in metrics.items():
            found.setdefault(name, []).append([*ticket, value])
    return found


def metrics_of(content: Mapping[str, Any]) -> dict[tuple[Ticket, str], float]:
    """Return an event's metrics by ticket and name; raise `LogError` for any that a live run would have refused."""
    told = {Ticket(*place) for *place, _ in content["rewards"]}
    found: dict[tuple[Ticket, str], float] = {}
    for name, lines in content["metrics"].items():
        if not lines:
            raise LogError(f"the metric {name} without a value")
        for *place, value in lines:
            ticket = Ticket(*place)
            if ticket not in told:
                raise LogError(f"a metric of ticket {ticket.id}, whose reward is not in this event")
            if (ticket, name) in found:
                raise LogError(f"the metric {name} of ticket {ticket.id} twice")
            try:
                found[ticket, metric_name(name)] = metric_value(value, f"metric {name}")
            except BandittoError as error:
                raise LogError(str(error)) from None
    if not found:
        raise LogError("metrics without a name")
    return found
