"""What a live experiment, a log or a selection has seen, as an analysis wants it: from decisions and sums alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.errors import LogError
from banditto.engine.choosing import chosen_by
from banditto.engine.observations import Flow, Observations, SeenBatch, SeenMetric
from banditto.live.event_log import Event, Row
from banditto.live.exact_sums import exact_sum
from banditto.live.fold import Standing, shares_of
from banditto.live.folded_log import FoldedLog, folded
from banditto.live.metrics import MetricSum
from banditto.live.promises import contradictions
from banditto.live.registration import Registration
from banditto.live.ticket_book import LATE, MISSING, OPEN, STATES
from banditto.problems.catalogue import rewards_of

if TYPE_CHECKING:  # what is in memory needs no database
    from banditto.live.reading import Reading


class ArmSums(NamedTuple):
    """The sum of squares of one arm's rewards in one batch, and how many of them are at neither end of the range.

    Squares are of shares of the range, which cannot overflow; 0 for a policy that sees none, which has no use for them.
    """

    squares: float
    others: int


Squares = Mapping[tuple[int, int], ArmSums]  # by batch and arm; a batch that was told as totals has none


def observations_of(
    registration: Registration,
    decisions: Sequence[Mapping[str, Any]],
    standing: Standing,
    squares: Squares,
    flow: Flow | None,
    metrics: Iterable[MetricSum] = (),
) -> Observations:
    """Build observations from a log's decisions, the standing, and the sums of squares."""
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
    """Arrange sums of metrics by complete batch and arm; a metric without values there is left out."""
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
    """Return whether `count` rewards at the two ends of the range can add up to this sum."""
    return (exact_sum(text) - count * Fraction(low)) % (Fraction(high) - Fraction(low)) == 0


def told_squares(decisions: Iterable[Mapping[str, Any]]) -> dict[tuple[int, int], ArmSums]:
    """Return the sums of squares that decisions hold, by batch and arm; old logs and totals hold none."""
    return {
        (content["batch"], arm): ArmSums(*both)
        for content in decisions
        for arm, both in enumerate(zip(content.get("squares", ()), content.get("others", ()), strict=True))
    }


def observed(fold: FoldedLog) -> Observations:
    """Build observations from a log that was replayed."""
    arms, book = len(fold.registration.arm_names), fold.book
    squares = told_squares(fold.decided)
    if fold.registration.first_version:
        squares = {place: sums for batch in book.batches for place, sums in _added_up(fold, batch)}
    metrics = [
        line for name in sorted(book.metric_names) for batch in book.batches for line in _sums(fold, batch, name)
    ]
    return observations_of(fold.registration, fold.decided, fold.standing, squares, _flow(fold, arms), metrics)


def _added_up(fold: FoldedLog, batch: int) -> Iterable[tuple[tuple[int, int], ArmSums]]:
    """Return the sums of squares of a batch's rewards, for each arm, with the batch and arm as keys."""
    shares = shares_of(fold.registration)
    squares: dict[int, float] = {}
    others: dict[int, int] = {}
    for arm, reward in fold.book.told(batch):
        squares[arm] = squares.get(arm, 0.0) + shares.square(reward)
        others[arm] = others.get(arm, 0) + shares.inside(reward)
    return [((batch, arm), ArmSums(squares[arm], others[arm])) for arm in squares]


def _sums(fold: FoldedLog, batch: int, name: str) -> Iterable[MetricSum]:
    """Return the sums of one metric's values in a batch, one for each arm that has values."""
    values: dict[int, list[float]] = {}
    for arm, value in fold.book.values(batch, name):
        values.setdefault(arm, []).append(value)
    return [
        MetricSum(
            name=name,
            batch=batch,
            arm=arm,
            count=len(mine),
            total=sum(mine),
            squares=sum(value * value for value in mine),
            smallest=min(mine),
            largest=max(mine),
        )
        for arm, mine in sorted(values.items())
    ]


def _flow(fold: FoldedLog, arms: int) -> Flow | None:
    """Count each arm's tickets: planned, handed out, settled and lost; None if there were no tickets."""
    book = fold.book
    if not len(book):
        return None
    by_tickets = [content for content in fold.decided if content["batch"] in book.batches]
    all_of = sum((book.counts(batch, arms) for batch in book.batches), np.zeros((len(STATES), arms), dtype=np.int64))
    assigned = [book.counts(content["batch"], arms, first=True).sum(axis=0).tolist() for content in by_tickets]
    return Flow(
        planned=_added([content["counts"] for content in by_tickets], range(arms)),
        assigned=_added(assigned, range(arms)),
        handed=tuple((all_of.sum(axis=0) - all_of[OPEN]).tolist()),  # of those that are open nobody knows yet
        lost=tuple((all_of[MISSING] + all_of[LATE]).tolist()),
    )


def _added(rows: Sequence[Sequence[int]], arms: Sequence[object]) -> tuple[int, ...]:
    """Return each arm's total over these rows of counts."""
    return tuple(sum(row[arm] for row in rows) for arm in range(len(arms)))


def observed_before(events: Iterable[Event], row: Row) -> FoldedLog | None:
    """Fold the events before a bad one; None comes back if there are none."""
    found: FoldedLog | None = None
    with suppress(LogError):  # they end before the row says
        for _, fold in folded(events, row):
            found = fold
    return found


def observe(view: Reading, registration: Registration, row: Row, standing: Standing) -> Observations:
    """Return what an experiment has seen, inside a transaction; the database adds up, and no log is read."""
    decisions = [event.content for event in view.decisions(row["id"])]
    squares = squares_of(view, registration, row, decisions)
    flow = _looked_up_flow(view, row, decisions, squares, len(registration.arm_names))
    return observations_of(registration, decisions, standing, squares, flow, view.metric_sums(row["id"]))


def squares_of(view: Reading, registration: Registration, row: Row, decisions: Iterable[Mapping[str, Any]]) -> Squares:
    """Return the sums of squares by batch and arm: from the decisions, or for version 1 from the stored rewards."""
    if not registration.first_version:
        return told_squares(decisions)
    shares, bounded = shares_of(registration), registration.rewards.bounded
    low, high = (shares.low, shares.high) if bounded else (0.0, 0.0)
    sums = view.told_sums(row["id"], low, high, shares.span)
    return {(line.batch, line.arm): ArmSums(line.squares, line.others) for line in sums}


def _looked_up_flow(
    view: Reading, row: Row, decisions: Sequence[Mapping[str, Any]], squares: Squares, arms: int
) -> Flow | None:
    """Count each arm's tickets by queries, as `_flow` does from a log; None if there were no tickets."""
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
