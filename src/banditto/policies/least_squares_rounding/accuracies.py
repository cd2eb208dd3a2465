"""The batches of Algorithm 4: how accurate each estimate is to be, and which share of rho it may use up.

Certified: accuracies fall by a constant ratio, and the share of batch i is proportional to eps_i^(-1/3), which
minimises the sum of N_i eps_i when N_i grows like 1 / (eps_i rho_i)^2. First accuracy, ratio and number of batches are
those for which the proof's bound on the regret is least. Paper: as printed, with equal shares.

Symbols  d: dimension, T: horizon, N_b: batches, eps: accuracy, N_i: pulls, t = log(N_b T), B = floor(log T),
         q = T^(1/B)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.exact import precise, written
from banditto.core.horizons import batch_count, batch_growth
from banditto.core.protocol import Plain, fraction, from_fraction
from banditto.core.rewards import Rewards
from banditto.core.schedule import MOST_BATCHES
from banditto.numbers import lattice

_RATIOS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
_STEPS = 40  # first accuracies: a quarter of the widest gap, less by sqrt(2) each
_MOST_TESTS = 16
_SLACK = 1.004  # covers what is kept for finite precision


class RoundingBatch(NamedTuple):
    """An estimate of this accuracy, which differs between two executions with probability at most `rho`."""

    epsilon: float
    rho: float


class RoundingSchedule(NamedTuple):
    """The constants that decide; `tail` is t: an estimate is less accurate with probability exp(-t) at most."""

    batches: tuple[RoundingBatch, ...]
    tail: float

    def batch(self, number: int) -> RoundingBatch | None:
        """Return batch `number`, counted from 1; None past the last one."""
        return self.batches[number - 1] if number <= len(self.batches) else None

    def to_plain(self) -> Mapping[str, Plain]:
        """Return the schedule as a protocol holds it: exact binary fractions."""
        rows: list[Mapping[str, Plain]] = [
            {"epsilon": fraction(batch.epsilon), "rho": fraction(batch.rho)} for batch in self.batches
        ]
        return {"batches": tuple(rows), "tail": fraction(self.tail)}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> RoundingSchedule:
        """Return the schedule that `to_plain` wrote, or refuse content that it could not have written."""
        rows = content.get("batches")
        if set(content) != {"batches", "tail"} or not isinstance(rows, tuple) or len(rows) > MOST_BATCHES:
            raise InvalidArgument("resolved", list(content), f"a tail and at most {MOST_BATCHES} batches")
        batches = []
        for row in rows:
            if not isinstance(row, Mapping) or set(row) != {"epsilon", "rho"}:
                raise InvalidArgument("batches", row, "tables with epsilon and rho")
            epsilon, rho = from_fraction(row["epsilon"], "epsilon"), from_fraction(row["rho"], "rho")
            if not (epsilon > 0.0 and 0.0 < rho < 1.0):
                raise InvalidArgument("batches", (epsilon, rho), "an epsilon above 0 and a rho between 0 and 1")
            batches.append(RoundingBatch(epsilon, rho))
        tail = from_fraction(content["tail"], "tail")
        if tail < 0.0:
            raise InvalidArgument("tail", tail, "a number of at least 0")
        return cls(tuple(batches), tail)


class RoundingProblem(NamedTuple):
    """A problem that a schedule is chosen for; `actions` is None for infinite sets, `widest` the widest possible gap.

    `g` and `support` are those of the first design. The search assumes that later designs are like it; when a batch
    comes, its pulls are worked out with its own design.
    """

    dimension: int
    g: float
    support: int
    actions: int | None
    horizon: int
    rho: float
    rewards: Rewards
    widest: float
    grid: bool

    def pulls(self, epsilon: float, rho: float, tail: float) -> float:
        """Return about N_i, the pulls of a batch with this accuracy and share of rho."""
        d, sigma = self.dimension, self.rewards.sigma
        nu = math.sqrt(d + 2.0 * math.sqrt(d * tail) + 2.0 * tail)
        if self.actions is not None:
            nu = min(nu, math.sqrt(2.0 * math.log(2 * self.actions) + 2.0 * tail))
        normal = sigma * (math.sqrt(2.0) if self.rewards.kind == "subgaussian" else 2.0 / math.sqrt(math.pi))
        if self.grid:
            reach, more = normal * self.support**1.5 / (2.0 * rho), 0.0
        else:
            size = _cell_constant(d) / (2.0 * rho)
            reach, more = size * normal, size if self.rewards.kind == "bounded" else 0.0
        whole = sigma * nu + reach
        leverage = 2.0 * epsilon / (whole + math.sqrt(whole * whole + 4.0 * more * epsilon))
        return float(_SLACK * self.g / leverage**2) + self.support

    def regret(self, schedule: RoundingSchedule) -> float:
        """Return the proof's bound on the regret, inf if the batches do not fit.

        Pulls of batch i lose 4 eps_(i-1) at most, those after the last one 2 eps.
        """
        spent, lost, before = 0.0, 0.0, self.widest
        for epsilon, rho in schedule.batches:
            pulls = self.pulls(epsilon, rho, schedule.tail)
            spent, lost = spent + pulls, lost + before * pulls
            before = min(self.widest, 4.0 * epsilon)
        after = min(self.widest, 2.0 * schedule.batches[-1].epsilon) if schedule.batches else self.widest
        return math.inf if spent >= self.horizon else lost + after * (self.horizon - spent)

    def resolve(self) -> RoundingSchedule:
        """Return the schedule with the least regret that the proof bounds."""
        best, least = self.coarsest(), math.inf  # which may not fit either: then it does not take place
        for schedule in self.candidates(_MOST_TESTS, _RATIOS):
            regret = self.regret(schedule)
            if regret < least * (1.0 - 1e-6):
                best, least = schedule, regret
        return best

    def candidates(self, most: int, ratios: tuple[float, ...]) -> Iterator[RoundingSchedule]:
        """Yield schedules of up to `most` batches, whose accuracies fall by one of these ratios from batch to batch."""
        for number in range(1, most + 1):
            tail = math.log(number * self.horizon)
            for step in range(_STEPS):
                first = self.widest / 4.0 * 2.0 ** (-step / 2.0)
                for ratio in ratios if number > 1 else ratios[:1]:
                    yield RoundingSchedule(self._shares([first * ratio**-k for k in range(number)]), tail)

    def _shares(self, epsilons: list[float]) -> tuple[RoundingBatch, ...]:
        """Return batches whose shares of rho are in proportion to eps_i^(-1/3), and add up to a bit less than rho."""
        weights = [epsilon ** (-1.0 / 3.0) for epsilon in epsilons]
        whole = self.rho * (1.0 - 2.0**-40) / math.fsum(weights)
        return tuple(RoundingBatch(e, whole * w) for e, w in zip(epsilons, weights, strict=True))

    def coarsest(self) -> RoundingSchedule:
        """Return a schedule of a single batch, of the lowest accuracy that is considered."""
        return RoundingSchedule(self._shares([self.widest / 4.0]), math.log(self.horizon))

    def paper(self) -> RoundingSchedule:
        """Return the paper's schedule: eps_i = sigma d sqrt(log T / q^i), each with rho/B.

        Its delta is 1/(2 |A'| T^2), for A' a 1/T-net of (3T)^d actions.

        Batches in which no gap is so wide that it could be dropped are left out.
        """
        number = batch_count(self.horizon)
        with precise():
            log = Decimal(self.horizon).ln()
            scale = Decimal(self.rewards.sigma) * self.dimension
            epsilons = [scale * (log / growth).sqrt() for growth in batch_growth(self.horizon)]
            share = float(written(self.rho) / number)
            net = self.dimension * (Decimal(3).ln() + log) if self.actions is None else Decimal(self.actions).ln()
            tail = float(Decimal(2).ln() + 2 * log + net)
            kept = [float(e) for e in epsilons if 2 * e < Decimal(self.widest)]
        return RoundingSchedule(tuple(RoundingBatch(epsilon, share) for epsilon in kept), tail)


@lru_cache(maxsize=64)
def _cell_constant(dimension: int) -> float:
    """Return the surface area times the radius of a lattice cell of volume 1."""
    return float(lattice.surface(dimension) * lattice.radius(dimension))
