"""What a live experiment, a log or a selection has seen, as an analysis wants it: from decisions and sums alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.engine.choosing import chosen_by
from banditto.engine.observations import Flow, Observations, SeenBatch, SeenMetric
from banditto.live.fold import Standing, exact_sum
from banditto.live.metrics import MetricSum
from banditto.live.promises import contradictions
from banditto.live.registration import Registration, RewardRange
from banditto.problems.catalogue import rewards_of

if TYPE_CHECKING:  # what is in memory needs no database
    from banditto.live.sql import Reading


class ArmSums(NamedTuple):
    """Of one arm's rewards in one batch: the sum of squares above the low end, and how many are at neither end."""

    squares: float
    others: int

    def plus(self, reward: float, ends: RewardRange, sign: int = 1) -> ArmSums:
        """Add a reward, or with the sign -1 take one away."""
        low, high = (ends.low, ends.high) if ends.bounded else (0.0, 0.0)
        return ArmSums(self.squares + sign * (reward - low) ** 2, self.others + sign * (reward not in (low, high)))


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
    scale = ends.high - ends.low if registration.scales else 1.0
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
        summed = tuple(0.0 if row is None else row.squares / scale**2 for row in rows)
        batches.append(SeenBatch(counts, totals, summed if known else None))
    winner = _winner(standing, batches)
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


def _winner(standing: Standing, batches: Sequence[SeenBatch]) -> int | None:
    """The arm that was named, or that is pulled alone since a decision."""
    if standing.stage.winner is not None:
        return standing.stage.winner
    pulls = standing.stage.pulls or (batches[-1].counts if batches else ())
    played = [arm for arm, count in enumerate(pulls) if count]
    return played[0] if len(played) == 1 else None


def observe(view: Reading, registration: Registration, row: Mapping[Any, Any], standing: Standing) -> Observations:
    """Look up what an experiment has seen, inside a transaction; the store adds up, so that no log is read."""
    ends, arms = registration.rewards, len(registration.arm_names)
    low, high = (ends.low, ends.high) if ends.bounded else (0.0, 0.0)
    squares = {
        (line.batch, line.arm): ArmSums(line.squares, line.others) for line in view.told_sums(row["id"], low, high)
    }
    decisions = [event.content for event in view.decisions(row["id"])]
    complete = {content["batch"] for content in decisions}
    counts = np.zeros((3, arms), dtype=np.int64)  # assigned in complete batches, handed out, lost
    told_by_tickets = {batch for batch, _ in squares}
    for batch, arm, status, first, count in view.arm_tickets(row["id"]):
        if batch in complete and first:
            counts[0, arm] += count
        counts[1, arm] += count
        if status in ("missing", "late"):
            counts[2, arm] += count
    flow = None
    if counts[1].any():
        planned = [content["counts"] for content in decisions if content["batch"] in told_by_tickets]
        due = [sum(pulls[arm] for pulls in planned) for arm in range(arms)]
        assigned, handed, lost = (tuple(line) for line in counts.tolist())
        flow = Flow(tuple(due), assigned, handed, lost)
    return observations_of(registration, decisions, standing, squares, flow, view.metric_sums(row["id"]))
