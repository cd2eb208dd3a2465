"""What a live experiment, a log or a selection has seen, as an analysis wants it: from decisions and sums alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.errors import LogError
from banditto.engine.choosing import chosen_by
from banditto.engine.observations import Flow, Observations, SeenBatch, SeenMetric
from banditto.live.event_log import Event, FoldedLog, Row, folded
from banditto.live.fold import Standing, Ticket, exact_sum
from banditto.live.metrics import MetricSum
from banditto.live.promises import contradictions
from banditto.live.registration import Registration
from banditto.problems.catalogue import rewards_of

if TYPE_CHECKING:  # what is in memory needs no database
    from banditto.live.sql import Reading


class ArmSums(NamedTuple):
    """Of one arm's rewards in one batch: the sum of squares, and how many are at neither end of their range.

    Squares are of shares of the range, which cannot overflow; 0 for a policy that sees none, which has no use for them.
    """

    squares: float
    others: int

    def plus(self, reward: float, registration: Registration, sign: int = 1) -> ArmSums:
        """Add a reward, or with the sign -1 take one away."""
        ends = registration.rewards
        others = self.others + sign * (reward not in (ends.low, ends.high))
        span = _span(registration)
        return ArmSums(self.squares + (0.0 if span is None else sign * ((reward - ends.low) / span) ** 2), others)


def _span(registration: Registration) -> float | None:
    """How wide the range is that the policy sees shares of; None if it sees none, or no float is as large."""
    span = registration.rewards.high - registration.rewards.low
    return span if registration.scales and math.isfinite(span) else None


NO_SUMS = ArmSums(0.0, 0)
Squares = Mapping[tuple[int, int], ArmSums]  # by batch and arm; a batch that was told as totals has none


def observations_of(
    registration: Registration,
    decisions: Sequence[Mapping[str, Any]],
    standing: Standing,
    squares: Squares,
    flow: Flow | None,
    metrics: Iterable[MetricSum] = (),
) -> Observations:
    """Put together what was seen: decisions as a log has them, where the experiment stands, and sums of squares."""
    policy, names = registration.policy(), registration.arm_names
    ends = registration.rewards
    batches: list[SeenBatch] = []
    binary = ends.bounded
    for content in decisions:
        counts, totals = tuple(content["counts"]), tuple(float.fromhex(total) for total in content["totals"])
        rows = [squares.get((content["batch"], arm)) for arm in range(len(names))]
        known = all(row is not None or not count for row, count in zip(rows, counts, strict=True))
        if known:
            binary = binary and not any(row.others for row in rows if row is not None)
        else:  # added up elsewhere
            pairs = zip(content["sums"], counts, strict=True)
            binary = binary and all(_whole(ends.low, ends.high, *both) for both in pairs)
        summed = tuple(0.0 if row is None else row.squares for row in rows)
        batches.append(SeenBatch(counts, totals, summed if known else None))
    winner = standing.chosen(batches[-1].counts if batches else ())
    pulls = [sum(batch.counts[arm] for batch in batches) for arm in range(len(names))]
    for arm, count in enumerate(standing.counts):
        pulls[arm] += count
    seen = [(batch.counts, batch.totals) for batch in batches]
    return Observations(
        names=names,
        policy=policy,
        horizon=registration.protocol.horizon,
        rewards=rewards_of(policy),
        batches=tuple(batches),
        pulls=tuple(pulls),
        ends=(ends.low, ends.high) if registration.scales else None,
        binary=binary,
        winner=winner,
        decided_by=None if winner is None else chosen_by(policy, seen, Coins(registration.protocol.seed)),
        state=standing.status,
        flow=flow,
        metrics=_metrics(list(metrics), [content["batch"] for content in decisions], len(names)),
        warnings=tuple(contradictions(registration, seen)),
    )


def _metrics(sums: Sequence[MetricSum], complete: Sequence[int], arms: int) -> tuple[SeenMetric, ...]:
    """Arrange the sums of metrics by complete batches; a metric without any there is left out."""
    found = []
    for name in sorted({line.name for line in sums}):
        mine = {(line.batch, line.arm): line for line in sums if line.name == name and line.batch in complete}
        if not mine:
            continue
        batches = []
        for batch in complete:
            row = [mine.get((batch, arm)) for arm in range(arms)]
            counts = tuple(0 if one is None else one.count for one in row)
            totals = tuple(0.0 if one is None else one.total for one in row)
            batches.append(SeenBatch(counts, totals, tuple(0.0 if one is None else one.squares for one in row)))
        smallest = min(line.smallest for line in mine.values())
        found.append(SeenMetric(name, tuple(batches), smallest, max(line.largest for line in mine.values())))
    return tuple(found)


def _whole(low: float, high: float, text: str, count: int) -> bool:
    """Whether a sum can be one of rewards at the two ends."""
    return (exact_sum(text) - count * Fraction(low)) % (Fraction(high) - Fraction(low)) == 0


class LogSums:
    """Adds up what an analysis needs, event by event, while a log is folded."""

    def __init__(self) -> None:
        self._fold: FoldedLog | None = None
        self._decisions: list[dict[str, Any]] = []
        self._squares: dict[tuple[int, int], ArmSums] = {}
        self._first: dict[int, list[int]] = {}  # slots handed out by batch and arm, each once
        self._handed: list[int] = []
        self._lost: list[int] = []
        self._metrics: dict[tuple[str, int, int], MetricSum] = {}

    def add(self, event: Event, fold: FoldedLog) -> None:
        """Add an event that follows, with the fold after it."""
        content, arms = event.content, len(fold.registration.arm_names)
        if self._fold is None:
            self._fold, self._handed, self._lost = fold, [0] * arms, [0] * arms
        if event.kind == "ask":
            first = self._first.setdefault(content["batch"], [0] * arms)
            for _, attempt, arm in content["slots"]:
                first[arm] += attempt == 0
        elif event.kind == "tell":
            for batch, position, attempt, reward in content["rewards"]:
                arm = fold.arm_of(Ticket(batch, position, attempt))
                self._reward(batch, arm, reward, 1)
                self._handed[arm] += 1
            for name, lines in content.get("metrics", {}).items():
                for batch, position, attempt, value in lines:
                    self._metric(name, batch, fold.arm_of(Ticket(batch, position, attempt)), value)
        elif event.kind == "missing":
            arm = fold.arm_of(Ticket(*content["ticket"]))
            self._lost[arm] += 1
            self._handed[arm] += 1
        elif event.kind == "correct":
            ticket = Ticket(*content["ticket"])
            self._reward(ticket.batch, fold.arm_of(ticket), content["before"], -1)
            self._reward(ticket.batch, fold.arm_of(ticket), content["after"], 1)
        elif event.kind == "decide":
            self._decisions.append(content)

    def _metric(self, name: str, batch: int, arm: int, value: float) -> None:
        before = self._metrics.get((name, batch, arm))
        one = MetricSum(
            name=name, batch=batch, arm=arm, count=1, total=value, squares=value**2, smallest=value, largest=value
        )
        self._metrics[name, batch, arm] = one if before is None else before.plus(one)

    def _reward(self, batch: int, arm: int, reward: float, sign: int) -> None:
        assert self._fold is not None
        before = self._squares.get((batch, arm), NO_SUMS)
        self._squares[batch, arm] = before.plus(reward, self._fold.registration, sign)

    def observations(self) -> Observations | None:
        """Return what was seen up to the last event; None if there was none."""
        if self._fold is None:
            return None
        flow = None
        if self._first:
            told = [content for content in self._decisions if content["batch"] in self._first]
            planned = [content["counts"] for content in told]
            assigned = [self._first[content["batch"]] for content in told]
            flow = Flow(
                planned=_added(planned, self._handed),
                assigned=_added(assigned, self._handed),
                handed=tuple(self._handed),
                lost=tuple(self._lost),
            )
        known = self._fold.registration, self._decisions, self._fold.standing
        return observations_of(*known, self._squares, flow, self._metrics.values())


def _added(rows: Sequence[Sequence[int]], arms: Sequence[object]) -> tuple[int, ...]:
    """Add up rows, arm by arm."""
    return tuple(sum(row[arm] for row in rows) for arm in range(len(arms)))


def observed_before(events: Iterable[Event], row: Row) -> Observations | None:
    """Return what was seen in the events before a bad one; None if there are none."""
    sums = LogSums()
    with suppress(LogError):  # they end before the row says
        for event, fold in folded(events, row):
            sums.add(event, fold)
    return sums.observations()


def observe(view: Reading, registration: Registration, row: Row, standing: Standing) -> Observations:
    """Look up what an experiment has seen, inside a transaction; the store adds up, so that no log is read."""
    decisions = [event.content for event in view.decisions(row["id"])]
    squares = looked_up_squares(view, registration, row)
    flow = _looked_up_flow(view, row, decisions, squares, len(registration.arm_names))
    return observations_of(registration, decisions, standing, squares, flow, view.metric_sums(row["id"]))


def looked_up_squares(view: Reading, registration: Registration, row: Row) -> Squares:
    """Let the store add up the squares of an experiment's rewards."""
    ends = registration.rewards
    low, high = (ends.low, ends.high) if ends.bounded else (0.0, 0.0)
    sums = view.told_sums(row["id"], low, high, _span(registration))
    return {(line.batch, line.arm): ArmSums(line.squares, line.others) for line in sums}


def _looked_up_flow(
    view: Reading, row: Row, decisions: Sequence[Mapping[str, Any]], squares: Squares, arms: int
) -> Flow | None:
    """Let the store count how tickets went."""
    complete = {content["batch"] for content in decisions}
    counts = np.zeros((3, arms), dtype=np.int64)  # assigned in complete batches, settled, lost
    told_by_tickets = {batch for batch, _ in squares}
    tickets = list(view.arm_tickets(row["id"]))
    for batch, arm, status, first, count in tickets:
        if batch in complete and first:
            counts[0, arm] += count
        if status != "open":  # of those nobody knows yet
            counts[1, arm] += count
        if status in ("missing", "late"):
            counts[2, arm] += count
    if not tickets:
        return None
    planned = [content["counts"] for content in decisions if content["batch"] in told_by_tickets]
    assigned, handed, lost = (tuple(line) for line in counts.tolist())
    return Flow(_added(planned, range(arms)), assigned, handed, lost)
