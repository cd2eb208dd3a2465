"""The search for the instance on which a policy replicates worst, by successive narrowing.

Many instances are looked at with few pairs each, the most promising of them with more, then their neighbourhoods, ever
closer. Everything hangs on the seed alone. What the search saw of an instance selects it and is then forgotten: whoever
reports a figure measures it again on fresh pairs. Gaps that a policy's own tests may call either way are read from its
`describe()`, and looked at first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, NamedTuple, Protocol, TypeGuard

from banditto.chance.coins import Coins, address_key
from banditto.core.errors import WorkerError
from banditto.engine.player import Run, player_of, run_of
from banditto.engine.pool import WORKER_DIED, submitted
from banditto.policies.policy import BatchedPolicy, Policy
from banditto.problems.environment import Environment

Point = tuple[float, ...]

_FIRST_LOOK = 128  # pairs; fewer would mostly show noise
_FEWEST_STARTS = 12  # but one instance looked at closely shows less than a dozen in passing
_MOST_PAIRS_AT_ONCE = 4096
_FIRST_SHARE, _SECOND_SHARE = 0.4, 0.2  # of the budget; the rest goes into narrowing
_ROUNDS = (0.4, 0.2, 0.1, 0.05)  # how far neighbours are, relatively
_PARENTS, _CHILDREN = 6, 4


class Space(Protocol):
    """The instances that a search may try; a point stands for one of them."""

    def starts(self, seed: int) -> Iterator[Point]:
        """Yield instances to begin with, the most promising first."""

    def neighbours(self, point: Point, scale: float, coins: Coins, round_number: int) -> list[Point]:
        """Return instances near one, as many as there are coins."""

    def environment(self, point: Point) -> Environment:
        """Make the environment of a point."""

    def typical(self, gap: float | None) -> Environment:
        """Make an instance that nobody chose for being hard."""


class Seen(NamedTuple):
    """An instance that was tried: how many pairs were played, and how many differ."""

    point: Point
    pairs: int
    differing: int
    used: int  # coins: the next look begins after them

    @property
    def rank(self) -> float:
        """The share of pairs that differ, less one standard error: luck with few pairs counts for little."""
        if not self.differing:
            return -1.0 - self.pairs  # below all that ever differed; the longer it was looked at, the less is hoped for
        share = self.differing / self.pairs
        return share - math.sqrt((share + 1.0 / self.pairs) / self.pairs)


class WorstInstance(NamedTuple):
    """The worst instance that was found, and how many instances and pairs the search took."""

    point: Point
    environment: Environment
    instances: int
    pairs: int
    looked: tuple[Seen, ...]  # all instances that were looked at


Report = Callable[[int], None]  # pairs played so far


def search(
    policy: BatchedPolicy[Any],
    space: Space,
    budget: int,
    seed: int,
    executor: Executor | None,
    report: Report,
    known: Sequence[Point] = (),
) -> WorstInstance:
    """Spend about `budget` pairs, never more; the worst instance comes back. `known` were bad for similar policies."""
    hunt = _Hunt(policy, space, seed, executor, report)
    wanted = max(_FEWEST_STARTS, int(_FIRST_SHARE * budget) // _FIRST_LOOK)
    starts = _distinct(iter([*known, *_spread_over(_distinct(space.starts(seed)), max(1, wanted - len(known)))]))
    each = int(_FIRST_SHARE * budget) // len(starts)
    looked = hunt.look(starts, each)
    several = max(1, len(looked) // 8)
    looked = hunt.look_again(looked, several, int(_SECOND_SHARE * budget) // several)
    left = budget - hunt.pairs
    for number, scale in enumerate(_ROUNDS, 1):
        parents = sorted(looked, key=_by_rank)[:_PARENTS]
        children = _distinct(
            child
            for k, parent in enumerate(parents)
            for child in space.neighbours(parent.point, scale, Coins(hunt.seed, k * _CHILDREN, _CHILDREN), number)
        )
        # a third of each round's pairs goes to the parents, so that luck does not last
        share = left // len(_ROUNDS)
        looked = hunt.look_again(looked, len(parents), share // 3 // len(parents))
        met = {seen.point for seen in looked}
        looked += hunt.look([child for child in children if child not in met], 2 * share // 3 // len(children))
    best = min(looked, key=_by_rank)
    return WorstInstance(best.point, space.environment(best.point), hunt.instances, hunt.pairs, tuple(looked))


class _Hunt:
    """Plays pairs on instances and counts both; pairs of one instance never share coins or noise."""

    def __init__(
        self, policy: BatchedPolicy[Any], space: Space, seed: int, executor: Executor | None, report: Report
    ) -> None:
        self.policy, self.space, self.executor, self.report = policy, space, executor, report
        self.seed = address_key("banditto/attack/1", seed)
        self.pairs = self.instances = 0

    def look(self, points: Sequence[Point], pairs: int) -> list[Seen]:
        """Play `pairs` pairs on each of these new instances, and return what was seen."""
        self.instances += len(points)
        return self._measured([Seen(point, 0, 0, 0) for point in points], pairs)

    def look_again(self, looked: list[Seen], several: int, pairs: int) -> list[Seen]:
        """Play more pairs on the `several` most promising instances; return all instances, updated."""
        ranked = sorted(looked, key=_by_rank)
        return self._measured(ranked[:several], pairs) + ranked[several:]

    def _measured(self, looked: Sequence[Seen], pairs: int) -> list[Seen]:
        """Play `pairs` more pairs on each instance, perhaps in workers, and return the updated counts."""
        if pairs < 1:
            return [seen for seen in looked if seen.pairs]
        groups = -(-pairs // _MOST_PAIRS_AT_ONCE)
        size = pairs // groups
        firsts = [-(-seen.used // size) for seen in looked]  # the first group whose coins nobody has seen
        calls = [(self._run(seen.point), first, size, groups) for seen, first in zip(looked, firsts, strict=True)]
        counts = []
        for count in _in_order(self.executor, calls):
            counts.append(count)
            self.pairs += size * groups
            self.report(self.pairs)
        return [
            Seen(seen.point, seen.pairs + size * groups, seen.differing + count, (first + groups) * size)
            for seen, first, count in zip(looked, firsts, counts, strict=True)
        ]

    def _run(self, point: Point) -> Run:
        environment = self.space.environment(point)
        return run_of(self.policy, environment, seed=self.seed, noise_seed=None, horizon=None)


def _count(run: Run, first: int, size: int, groups: int) -> int:
    """Count how many pairs differ in some groups of one size; this is what a worker is sent."""
    # noise is addressed by a group's number, which says where it begins only together with its size
    shifted = Run(
        policy=run.policy,
        environment=run.environment,
        horizon=run.horizon,
        seed=run.seed,
        noise_seed=address_key("banditto/attack/noise/1", run.noise_seed, size),
    )
    player = player_of(shifted)
    return sum(player.count_differing(first + k, size) for k in range(groups))


def _in_order(executor: Executor | None, calls: Sequence[tuple[Run, int, int, int]]) -> Iterator[int]:
    """Yield the number of differing pairs of each call, in order, from this process or from workers."""
    if executor is None:
        yield from (_count(*call) for call in calls)
        return
    futures: list[Future[int]] = []
    try:
        futures += [submitted(executor, _count, *call) for call in calls]
        yield from (future.result() for future in futures)
    except BrokenExecutor:
        raise WorkerError(WORKER_DIED) from None
    finally:
        for future in futures:
            future.cancel()


def _by_rank(seen: Seen) -> float:
    return -seen.rank  # equals stay as they came: a space names the likely ones first


def _distinct(points: Iterator[Point]) -> list[Point]:
    return list(dict.fromkeys(points))


def _spread_over(points: list[Point], wanted: int) -> list[Point]:
    """Return `wanted` points of a long list: some from its beginning, the rest from all over it."""
    if len(points) <= wanted:
        return points
    front = -(-wanted // 3)
    rest, more = points[front:], wanted - front
    return points[:front] + [rest[k * len(rest) // more] for k in range(more)]


class UndecidedWindow(NamedTuple):
    """Gaps from `low` to `high` are undecided in a batch."""

    batch: int
    low: float
    high: float

    def at(self, place: float) -> float:
        """Return the gap at `place`: 0 is the lower end, 1 the upper end."""
        return self.low + place * (self.high - self.low)


class Guarded(NamedTuple):
    """A window for the best arm's lead, and the window that decides who is played if the lead is below the cut."""

    cut: UndecidedWindow
    window: UndecidedWindow


_CUT, _WINDOW = ("cut low", "cut high"), ("window low", "window high")
_EDGES = (("commit low", "commit high"), ("low", "high"), _CUT, _WINDOW)


def windows_of(policy: Any, widest: float) -> list[UndecidedWindow]:
    """List the windows that some gap up to `widest` reaches, narrow ones too; none if the policy does not say."""
    if not isinstance(policy, Policy):
        return []
    found = []
    for number, row in enumerate(policy.describe().to_dict()["batches"], 1):
        found += [window for edges in _EDGES if (window := _between(number, row, edges)) is not None]
        if _number(row.get("eps")):  # an estimate within eps: 2 eps decide, give or take one
            found.append(UndecidedWindow(number, float(row["eps"]), 3.0 * float(row["eps"])))
    last = {(window.low, window.high): window for window in found}  # looks may share one cut
    return [window for window in last.values() if window.low < widest]


def guarded_of(policy: Any) -> list[Guarded]:
    """List the cuts that come with a window: what a policy does depends on both, so they are tried together."""
    if not isinstance(policy, Policy):
        return []
    rows = enumerate(policy.describe().to_dict()["batches"], 1)
    found = [(_between(number, row, _CUT), _between(number, row, _WINDOW)) for number, row in rows]
    both = [Guarded(cut, window) for cut, window in found if cut is not None and window is not None]
    return list({(cut.low, cut.high, window.low, window.high): Guarded(cut, window) for cut, window in both}.values())


def _between(batch: int, row: dict[str, Any], edges: tuple[str, str]) -> UndecidedWindow | None:
    low, high = (row.get(edge) for edge in edges)
    return UndecidedWindow(batch, float(low), float(high)) if _number(low) and _number(high) else None


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float)
