"""Instances with arms of given means: gaps in a policy's windows, ties, variances and orders of the arms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from banditto.chance.coins import Coins
from banditto.core.rewards import Rewards
from banditto.measure.attack.search import Guarded, UndecidedWindow, guarded_of, windows_of
from banditto.policies.policy import BatchedPolicy, own_guarantee
from banditto.problems.environment import Environment
from banditto.problems.environments.bernoulli import Bernoulli
from banditto.problems.environments.gaussian import Gaussian

Point = tuple[float, ...]

_PLACES = (0.5, 0.25, 0.75, 0.0, 1.0, -0.15, 1.15)
_PROFILES = (
    *("equal", "one rival", "tie", "two windows", "ladder", "half", "several tied", "pairs"),
    "one in another window",
)
# places of the two best arms' lead, in a cut that a window guards, and of the nearest and the furthest other arm in the
# window: most pairs differ where the cut is in doubt and arms are at the window's beginning
_LEADS = (0.4, 0.25, 0.55, 0.7, 0.0, 0.9)
_BEHIND = ((0.05, 0.05), (0.0, 0.2), (0.0, 0.0), (0.1, 0.1), (0.2, 0.2), (0.0, 0.95), (0.5, 0.5), (0.95, 0.95))
_MARGIN = 0.001  # Bernoulli means are this far from 0 and 1, as a share of the largest that they may be


class ArmSpace(NamedTuple):
    """The instances that an attack on a policy for arms searches; a point is the arms' means, in order."""

    arms: int
    rewards: Rewards
    windows: tuple[UndecidedWindow, ...]
    smallest_lead: float  # 0, or what the policy was promised
    guarded: tuple[Guarded, ...] = ()

    @classmethod
    def of(cls, policy: BatchedPolicy[Any], rewards: Rewards) -> ArmSpace:
        """Make the space of a policy that was built for these rewards."""
        widest = rewards.widest_gap if rewards.kind == "bounded" else math.inf
        proved = own_guarantee(policy)
        promised = 0.0 if proved is None else proved.promised_gap or 0.0
        found = tuple(windows_of(policy, widest))
        return cls(policy.arms, rewards, found, promised, tuple(guarded_of(policy)) if policy.arms > 2 else ())

    @property
    def _margin(self) -> float:
        """How far Bernoulli means stay from 0 and 1, where the promises allow it."""
        return min(_MARGIN * self.rewards.widest_gap, (self.rewards.widest_gap - self.smallest_lead) / 2.0)

    @property
    def _highest(self) -> float:
        """The largest mean that is tried: the promised largest rate, or nearly 1."""
        rate = self.rewards.rate_at_most
        return 1.0 - self._margin if rate is None else min(rate, 1.0 - self._margin)

    @property
    def widest(self) -> float:
        """The widest gap that is tried."""
        if self.rewards.kind == "bounded":
            rate = self.rewards.rate_at_most
            return 1.0 - 2.0 * self._margin if rate is None else max(self._highest - self._margin, self.smallest_lead)
        return max(20.0 * self.rewards.sigma, self.smallest_lead)

    def environment(self, point: Point) -> Environment:
        """Make an environment with these means, and the largest variance that they allow."""
        return Bernoulli(point) if self.rewards.kind == "bounded" else Gaussian(point, self.rewards.sigma)

    def starts(self, seed: int) -> Iterator[Point]:
        """Yield instances to begin with, the most promising first; the arms of each are in an order of its own."""
        yield self._point([0.0] * (self.arms - 1), 0.5)
        for number, point in enumerate(self._ordered_starts()):
            yield self._shuffled(point, seed, number)

    def _ordered_starts(self) -> Iterator[Point]:
        """Yield the starting instances with the best arm last, the most promising first."""
        for lead in _LEADS:
            for first, last in _BEHIND:
                for cut, window in self.guarded:
                    yield self._point([cut.at(lead), *self._spread(window.at(first), window.at(last))], 0.5)
        near, far = self._scales()
        profiles = _PROFILES if self.arms > 2 else ("equal",)
        for scales, levels in ((near, (0.5,)), (far, (0.5,)), (near, (1.0, 0.0)), (far, (1.0, 0.0))):
            for level in levels:
                for gap, other in scales:
                    for profile in profiles:
                        yield self._point(self._profile(profile, gap, other), level)

    def _scales(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Return pairs of gaps to try: pairs inside the policy's windows, and pairs of all sizes."""
        middles = [window.at(0.5) for window in self.windows]
        near = [(w.at(place), w.at(0.4)) for place in _PLACES for w in self.windows]
        near += [(gap, other) for k, gap in enumerate(middles) for other in middles[k + 1 : k + 5]]
        return near, [(gap, gap / 3.0) for gap in self._round_gaps()]

    def _spread(self, first: float, last: float) -> list[float]:
        """Return gaps of all arms but the two best, evenly from `first` to `last`."""
        many = self.arms - 2
        return [first + (last - first) * (k / max(1, many - 1)) for k in range(many)]

    def _shuffled(self, point: Point, seed: int, number: int) -> Point:
        """Return the means in another order; every eighth instance keeps the best arm last."""
        if number % 8 == 0:
            return point
        keys = [float(Coins(seed, number, 1).uniform("order", 0, arm)[0, 0]) for arm in range(self.arms)]
        return tuple(mean for _, mean in sorted(zip(keys, point, strict=True)))

    def typical(self, gap: float | None) -> Environment:
        """Make arms that are not chosen to be hard: equal gaps (default: a tenth of the range), the best arm last."""
        usual = 0.1 * self.rewards.widest_gap if self.rewards.kind == "bounded" else 0.2 * self.rewards.sigma
        return self.environment(self._point([gap or usual] * (self.arms - 1), 0.5))

    def _round_gaps(self) -> list[float]:
        """Return gaps of all sizes, for policies that do not say where their windows are."""
        return [self.widest * 2.0 ** (-k / 2.0) for k in range(24)]

    def _profile(self, name: str, gap: float, other: float) -> list[float]:
        """Return the gaps of all arms but the best in the pattern of this name, made from two gaps."""
        many = self.arms - 1
        match name:
            case "equal":
                return [gap] * many
            case "one rival":
                return [gap] + [self.widest] * (many - 1)
            case "tie":
                return [0.0] + [gap] * (many - 1)
            case "several tied":
                return [0.0 if k < max(2, many // 2) else gap for k in range(many)]
            case "two windows":
                return [gap if k % 2 else other for k in range(many)]
            case "pairs":  # nearly equal ones, in two windows
                return [(gap if k < (many + 1) // 2 else other) * (1.0 + 0.03 * (k % 2)) for k in range(many)]
            case "one in another window":
                return [other] + [gap] * (many - 1)
            case "ladder":
                return [gap * (k + 1) / many for k in range(many)]
            case _:
                return [gap if k < many // 2 else min(3.0 * gap, self.widest) for k in range(many)]

    def _point(self, gaps: list[float], level: float) -> Point:
        """Return means with these gaps, the best arm last; `level` from 0 to 1 places them low or high."""
        gaps = [min(max(gap, self.smallest_lead, 0.0), self.widest) for gap in gaps]
        top = 0.0
        if self.rewards.kind == "bounded":
            lowest = max(gaps) + self._margin
            centred = (1.0 + max(gaps)) / 2.0 if level == 0.5 else lowest + level * (self._highest - lowest)
            top = min(max(centred, lowest), self._highest)
        return (*(top - gap for gap in gaps), top)

    def neighbours(self, point: Point, scale: float, coins: Coins, round_number: int) -> list[Point]:
        """Return an instance near this one for each coin: gaps or level changed by about `scale`, or arms swapped."""
        kinds, which, sizes = (coins.uniform("attack", round_number, part)[:, 0] for part in range(3))
        best = int(np.argmax(point))
        found = []
        for kind, arm, size in zip(kinds.tolist(), which.tolist(), sizes.tolist(), strict=True):
            gaps = [point[best] - mean for mean in point]
            factor = math.exp(scale * (2.0 * size - 1.0))
            if kind < 0.5:
                gaps = [gap * factor for gap in gaps]
            elif kind < 0.85:
                others = [k for k in range(self.arms) if k != best]
                chosen = others[int(arm * len(others))]
                nearest = min(gap for k, gap in enumerate(gaps) if k != best)
                gaps[chosen] = max(gaps[chosen], nearest, 1e-6 * self.widest) * factor
            elif kind < 0.95:  # two arms change places
                one, two = int(arm * self.arms), int(size * self.arms)
                gaps[one], gaps[two] = gaps[two], gaps[one]
            found.append(self._rearranged(gaps, point[best], size if kind >= 0.95 else None))
        return found

    def _rearranged(self, gaps: list[float], top: float, level: float | None) -> Point:
        """Return means with these gaps, in the arms' order, moved to where means are allowed."""
        best = gaps.index(min(gaps))
        gaps = [0.0 if k == best else min(max(gap, self.smallest_lead), self.widest) for k, gap in enumerate(gaps)]
        if self.rewards.kind == "bounded":
            lowest = max(gaps) + self._margin
            if level is not None:
                top = lowest + level * (self._highest - lowest)
            top = min(max(top, lowest), self._highest)
        return tuple(top - gap for gap in gaps)
