"""Looking at single executions: which arm each side of a pair pulled in chosen rounds, and how regret grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np
from typing_extensions import TypedDict

from banditto.core.arrays import FloatArray, IntArray
from banditto.core.exact import integer
from banditto.core.json_types import Digest, Horizon, Keywords, Natural, Positive
from banditto.core.results import Part, Result, TablePart
from banditto.engine.block_sizes import is_infinite
from banditto.engine.player import Run, player_of, run_of
from banditto.engine.watched_executions import WatchedExecution
from banditto.policies.policy import AnyPolicy, Level, LevelContent, own_level
from banditto.problems.environment import Environment

_MOST_ROWS = 12  # of a table: stretches in which both sides keep to their arms


class PairContent(TypedDict):
    """A `PairView` as plain data."""

    policy: str
    horizon: Horizon
    arms: Positive
    level: LevelContent
    same: bool
    rounds: list[Natural]
    first: list[Natural]
    second: list[Natural]
    digests: Annotated[list[Digest], Keywords(minItems=2, maxItems=2)]


@dataclass(frozen=True, kw_only=True, repr=False)
class PairView(Result):
    """The arms of both sides of a pair at some rounds, and the digests of the whole sequences.

    Attributes:
        policy: the policy's name.
        horizon: pulls in one execution.
        arms: how many arms there are, or how many actions were pulled from an infinite set.
        rounds: the rounds that were looked at, counted from 0.
        first: the first side's arm in each of them.
        second: the second side's arm in each of them.
        digests: sha256 of the whole sequence of each side.
        level: what the sides are compared by: "sequence", every pull, or "winner", the arm that each names.
        executions: both sides, which `analyse` takes one by one.
    """

    policy: str
    horizon: int
    arms: int
    rounds: IntArray  # (N,), counted from 0
    first: IntArray  # (N,)
    second: IntArray  # (N,)
    digests: tuple[str, str]
    level: Level = "sequence"
    executions: tuple[WatchedExecution, ...] = field(default=(), repr=False, compare=False)

    _picture = "log_pictures:pair_figure"
    _named = ("policy", "horizon", "arms", "level", "same")

    @property
    def same(self) -> bool:
        """Whether the two whole sequences are equal; if the policy promises only a winner, whether the winners are."""
        if self.level == "winner":
            return bool(self.first[-1] == self.second[-1])  # all that is left is the winner's
        return self.digests[0] == self.digests[1]

    def _stretches(self) -> list[tuple[str, str, str, str]]:
        """Return stretches of pulls in which neither side was seen to change its arm."""
        moved = (np.diff(self.first) != 0) | (np.diff(self.second) != 0)
        begins = [0, *(np.flatnonzero(moved) + 1).tolist()]
        ends = [*(int(self.rounds[begin]) for begin in begins[1:]), self.horizon]
        rows = [
            (f"{int(self.rounds[begin]) + 1:,} to {end:,}", int(self.first[begin]), int(self.second[begin]))
            for begin, end in zip(begins, ends, strict=True)
        ]
        return [(pulls, str(one), str(two), "" if one == two else "different") for pulls, one, two in rows]

    def _parts(self) -> list[Part]:
        words = {
            "sequence": ("every pull is the same", "they part"),
            "winner": ("the same winner", "different winners"),
        }
        rows = self._stretches()
        note = f"{len(rows) - _MOST_ROWS:,} more stretches follow" if len(rows) > _MOST_ROWS else ""
        head = f"{self.policy}, {self.horizon:,} pulls: {words[self.level][0 if self.same else 1]}"
        table = TablePart(("pulls, about", "first lab", "second lab", ""), rows[:_MOST_ROWS], "lrrl")
        return [head, table, *([note] if note else [])]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each round that was looked at: its number from 0, and the arm of each side."""
        return [
            {"round": number, "first": one, "second": two}
            for number, one, two in zip(self.rounds.tolist(), self.first.tolist(), self.second.tolist(), strict=True)
        ]

    def to_dict(self) -> PairContent:
        """Return plain data with the names of the attributes and `same`; `executions` are objects to be analysed."""
        return {
            "policy": self.policy,
            "horizon": self.horizon,
            "arms": self.arms,
            "level": self.level,
            "same": self.same,
            "rounds": self.rounds.tolist(),
            "first": self.first.tolist(),
            "second": self.second.tolist(),
            "digests": list(self.digests),
        }


def watch_pair(
    policy: AnyPolicy,
    environment: Environment,
    *,
    pair: int = 0,
    seed: int = 0,
    noise_seed: int | None = None,
    horizon: int | None = None,
    points: int = 1200,
) -> PairView:
    """Play one pair of the run that `certify` would make, and return both sides' arms at log-spaced rounds.

    Args:
        policy: what is played: a replicable policy, a baseline, or one of your own.
        environment: the arms and their rewards.
        pair: the number of the pair, from 0.
        seed: the seed of the coins, which both sides share.
        noise_seed: the seed of the rewards, which they do not share; it follows from `seed` by default.
        horizon: pulls in one execution, for a policy that has no horizon of its own.
        points: at how many rounds to look, at most; they are closer together at the beginning.

    Returns:
        A view with `rounds`, the arms of `first` and `second` side there, and `same` for the whole sequences.

    Examples:
        >>> from banditto import Bernoulli, CertifiedElimination
        >>> view = watch_pair(CertifiedElimination(arms=2, horizon=10**5, rho=0.1), Bernoulli([0.9, 0.5]))
        >>> view.same, view.horizon
        (True, 100000)
    """
    run = run_of(policy, environment, seed=seed, noise_seed=noise_seed, horizon=horizon)
    pair = integer(pair, "pair", 0, 10**9)
    points = integer(points, "points", 2, 10**6)
    rounds = np.unique(np.geomspace(1, run.horizon, points).astype(np.int64).clip(1, run.horizon) - 1)
    rounds[-1] = run.horizon - 1
    first, second = player_of(run).watch(pair, rounds)
    return PairView(
        policy=policy.name,
        horizon=run.horizon,
        arms=first.arms,
        rounds=rounds,
        first=first.pulled,
        second=second.pulled,
        digests=(first.digest, second.digest),
        level=own_level(policy),
        executions=() if is_infinite(environment) else tuple(WatchedExecution(run, pair, side) for side in (0, 1)),
    )


CURVE_POINTS = 160


class Curve(NamedTuple):
    """Mean regret after so many pulls, with the band between the 5% and 95% quantiles of all executions."""

    pulls: IntArray  # (N,)
    mean: FloatArray  # (N,)
    low: FloatArray  # (N,)
    high: FloatArray  # (N,)
    executions: int


def regret_curve(run: Run, pairs: int) -> Curve:
    """Return how the pseudo-regret of the first `pairs` pairs grows, or of as many as a picture needs."""
    grid = np.unique(np.geomspace(1, run.horizon, CURVE_POINTS).astype(np.int64).clip(1, run.horizon))
    grid[-1] = run.horizon
    regrets = player_of(run).regrets_at(pairs, grid)
    low, high = np.quantile(regrets, [0.05, 0.95], axis=0)
    return Curve(grid, regrets.mean(axis=0), low, high, regrets.shape[0])
