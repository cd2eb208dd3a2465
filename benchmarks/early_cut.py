"""(t) EarlyCut's pulls beside others; (u) hard instances and attacks; (v) planted faults. About 20 minutes.

(t) counts the pulls of each arm until a winner is named where the best arm leads by the named gap, beside OneCut, a
ladder that is told the gap, and an ordinary fixed test, which promises nothing to a second lab.

(u) places arms where it is hard to name the same winner: ties, leads within the cut, arms in the window, rates of 1%,
rewards of all kinds. Each instance is played with 100,000 pairs at three values of rho, and `attack` looks for worse
ones. A cell is broken if the exact lower limit of P(winners differ) exceeds rho, at an error of 1e-6 over all cells.

(v) plants faults and asks the same question of them: executions that share 99% of their coins, and margins that are too
narrow for the cut that they come with.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import banditto as bd
from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import BoolArray, FloatArray, IntArray
from banditto.engine.batched import Execution, pulls_to_winner
from banditto.measure.plan.yardsticks import ordinary_test
from banditto.numbers.intervals import lower_limit
from banditto.policies.early_cut.early_constants import EarlyLook
from banditto.policies.policy import Policy
from banditto.policies.shared.elimination import Race
from banditto.problems.environment import Environment
from benchmarks.measure import line, quick_asked

RHOS = (0.01, 0.1, 0.3)
PAIRS, ATTACK, EXECUTIONS = 100_000, 200_000, 20_000
ERROR = 1e-6
HORIZON = 10**12  # no cap below is cut short by it

World = Callable[[bd.EarlyCut], Environment]

# -- pulls until a winner ----------------------------------------------------------------------------------------------


class Question(NamedTuple):
    """What a row of the table is about, and how many pulls of each arm are wanted on average, at the most."""

    arms: int
    rho: float
    gap: float
    base: float  # the mean of all arms but the best
    rate_at_most: float | None
    wanted: float | None

    @property
    def name(self) -> str:
        """The row's name."""
        rates = "" if self.rate_at_most is None else f", rates at most {self.rate_at_most:g}"
        return f"K = {self.arms}, gap {self.gap:g}, rho {self.rho:g}{rates}"

    def world(self, times: float = 1.0) -> bd.Bernoulli:
        """Return arms of which the last leads by the gap, or so many times as much."""
        return bd.Bernoulli([self.base] * (self.arms - 1) + [self.base + times * self.gap])

    def policy(self, kind: Any = bd.EarlyCut, horizon: int = 10**7) -> Any:
        """Make the policy for it."""
        known = {"arms": self.arms, "horizon": horizon, "rho": self.rho, "gap": self.gap}
        return kind(**known, rate_at_most=self.rate_at_most)


QUESTIONS = (
    Question(2, 0.3, 0.05, 0.475, None, None),
    Question(2, 0.1, 0.05, 0.475, None, 2599.0),
    Question(2, 0.03, 0.05, 0.475, None, 12_000.0),
    Question(4, 0.3, 0.05, 0.475, None, None),
    Question(4, 0.1, 0.05, 0.475, None, 15_000.0),
    Question(4, 0.3, 0.01, 0.05, 0.06, 20_000.0),
    Question(4, 0.3, 0.01, 0.05, 0.1, None),
)


class Spent(NamedTuple):
    """Pulls of each arm until there is a winner, over many executions, and how often the last arm is the winner."""

    mean: float
    median: float
    high: float  # 95% need no more
    power: float

    @classmethod
    def of(cls, policy: Policy[Any], world: Environment, executions: int, seed: int = 5) -> Spent:
        """Play executions until they name a winner."""
        winners, pulls = pulls_to_winner(Execution(policy, world, Coins(seed, 0, executions), Noise(seed + 1, 0, 0)))
        each = pulls / policy.arms
        middle, high = np.quantile(each, [0.5, 0.95])
        return cls(float(each.mean()), float(middle), float(high), float((winners == policy.arms).mean()))


def decided_after(policy: Policy[Any], world: Environment, executions: int, seed: int = 5) -> FloatArray:
    """Pulls of each arm, on average over arms, until a single one is left; for policies that commit."""
    execution = Execution(policy, world, Coins(seed, 0, executions), Noise(seed + 1, 0, 0))
    until = np.zeros(executions)
    while (plan := execution.advance()) is not None:
        until += np.where((plan > 0).sum(axis=1) > 1, plan.sum(axis=1), 0)
    return until / policy.arms


def table(executions: int) -> Iterator[tuple[Question, Spent, str]]:
    """Yield each question, what EarlyCut spends on it, and a line with the pulls of each arm of all policies."""
    for question in QUESTIONS:
        policy, world = question.policy(), question.world()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bd.ShortHorizonWarning)  # a ladder has no power to reach
            cut, ladder = question.policy(bd.OneCut), question.policy(bd.CertifiedElimination)
        own, twice, tie = (Spent.of(policy, question.world(times), executions) for times in (1.0, 2.0, 0.0))
        once, rungs = decided_after(cut, world, executions), decided_after(ladder, world, min(executions, 4000))
        ordinary = ordinary_test(world, question.gap, 0.95)
        assert ordinary is not None  # Bernoulli arms have means
        cells = [
            policy.cap,
            *(own.mean, own.median, own.high, twice.mean, tie.mean),
            *(cut.pulls_per_arm, once.mean(), rungs.mean(), float(np.quantile(rungs, 0.95)), ordinary.per_arm),
        ]
        yield question, own, " | ".join([question.name, *(f"{cell:,.0f}" for cell in cells), f"{own.power:.4f}"])


HEADER = (
    "question | cap | mean | median | p95 | mean at twice the gap | mean at a tie | OneCut | its mean | "
    "ladder, mean | p95 | ordinary test | found"
)

# -- hard instances ----------------------------------------------------------------------------------------------------


class Hard(NamedTuple):
    """A policy but for rho, and arms on which it is hard to agree."""

    name: str
    options: dict[str, Any]
    world: World

    def policy(self, rho: float) -> bd.EarlyCut:
        """Make the policy at this rho."""
        return bd.EarlyCut(horizon=HORIZON, rho=rho, **self.options)


def _coins(*places: str | float, top: float = 0.6) -> World:
    """Bernoulli arms so far behind the best: w is the cut's width, b and e the window's beginning and end."""
    return lambda policy: bd.Bernoulli([max(top - far, 0.0) for far in _behind(policy, places)])


def _normal(*places: str | float) -> World:
    return lambda policy: bd.Gaussian([-far for far in _behind(policy, places)], policy.sigma)


def _three_points(*places: str | float) -> World:
    def row(mean: float) -> tuple[list[float], list[float]]:
        return [0.0, 0.5, 1.0], [1.0 - mean - mean / 4.0, mean / 2.0, mean - mean / 4.0]

    return lambda policy: bd.Discrete([row(0.5 - far) for far in _behind(policy, places)])


def _one_constant(policy: bd.EarlyCut) -> Environment:
    """One arm pays a half for sure, the other one 0 or 1."""
    lead = 0.4 * policy.schedule.width
    return bd.Discrete([([0.5], [1.0]), ([0.0, 1.0], [0.5 - lead, 0.5 + lead])])


def _behind(policy: bd.EarlyCut, places: tuple[str | float, ...]) -> list[float]:
    width, knots = policy.schedule.width, policy.schedule.knots
    ends = {"begin": knots[0], "middle": knots[8], "end": knots[-1]} if knots else {}
    return [ends[place] if isinstance(place, str) else place * width for place in places]


_RARE: dict[str, Any] = {"gap": 0.005, "rate_at_most": 0.01}
HARD = (
    Hard("2 arms, tied", {"arms": 2, "gap": 0.1}, _coins(0.0, 0.0, top=0.5)),
    Hard("2 arms, a lead of half the cut", {"arms": 2, "gap": 0.1}, _coins(0.5, 0.0)),
    Hard("2 arms, a lead of nearly the cut", {"arms": 2, "gap": 0.05}, _coins(0.0, 0.9)),
    Hard("2 arms, one constant", {"arms": 2, "gap": 0.1}, _one_constant),
    Hard("2 arms, rates of 1%, tied", {"arms": 2, **_RARE}, _coins(0.0, 0.0, top=0.01)),
    Hard("2 arms, Gaussian", {"arms": 2, "gap": 0.1, "rewards": "gaussian"}, _normal(0.0, 0.3)),
    Hard("2 arms, control", {"arms": 2, "gap": 0.1, "control": 0}, _coins(0.5, 0.0)),
    Hard("3 arms, tied", {"arms": 3, "gap": 0.1}, _coins(0.0, 0.0, 0.0)),
    Hard("3 arms, a lead, one as the window begins", {"arms": 3, "gap": 0.1}, _coins(0.0, 0.4, "begin")),
    Hard("3 arms, three points, one in the window", {"arms": 3, "gap": 0.1}, _three_points(0.0, 0.2, "begin")),
    Hard("3 arms, Gaussian, one in the window", {"arms": 3, "gap": 0.1, "rewards": "gaussian"}, _normal(0, 0, "begin")),
    Hard("4 arms, rates of 1%, a lead", {"arms": 4, **_RARE}, _coins(0.0, 0.3, 0.3, 0.3, top=0.01)),
    Hard("4 arms, control in the window", {"arms": 4, "gap": 0.1, "control": 3}, _coins(0.0, 0.3, 0.5, "begin")),
    Hard("5 arms, tied", {"arms": 5, "gap": 0.1}, _coins(0, 0, 0, 0, 0)),
    Hard("5 arms, over the window", {"arms": 5, "gap": 0.1}, _coins(0.0, 0.4, "begin", "middle", "end", top=0.8)),
    Hard("10 arms, tied", {"arms": 10, "gap": 0.1}, _coins(*[0.0] * 10)),
    Hard("10 arms, eight as the window begins", {"arms": 10, "gap": 0.1}, _coins(0.0, 0.4, *["begin"] * 8)),
)
ATTACKED: tuple[dict[str, Any], ...] = (
    {"arms": 2, "gap": 0.1},
    {"arms": 3, "gap": 0.1},
    {"arms": 5, "gap": 0.1},
    {"arms": 10, "gap": 0.1},
    {"arms": 2, "gap": 0.1, "rewards": "gaussian"},
    {"arms": 4, **_RARE},
    {"arms": 3, "gap": 0.1, "control": 1},
)
CELLS = len(RHOS) * (len(HARD) + len(ATTACKED))


class Cell(NamedTuple):
    """Pairs of one policy on one instance, of which so many name different winners."""

    rho: float
    mismatches: int
    pairs: int
    cells: int  # of the family that it belongs to

    @property
    def share(self) -> float:
        """The share of pairs with different winners."""
        return self.mismatches / self.pairs

    @property
    def broken(self) -> bool:
        """Whether the exact lower limit exceeds rho, at an error of 1e-6 over the family."""
        return lower_limit(self.mismatches, self.pairs, ERROR / self.cells) > self.rho


def played(policy: bd.EarlyCut, world: Environment, pairs: int, seed: int = 2, cells: int = CELLS) -> Cell:
    """Play pairs and count those with different winners."""
    return Cell(policy.rho, bd.certify(policy, world, pairs=pairs, seed=seed).mismatches, pairs, cells)


def attacked(options: dict[str, Any], rho: float, budget: int, seed: int = 3, cells: int = CELLS) -> Cell:
    """Attack a policy, and return what fresh pairs show on the worst instance."""
    found = bd.attack(bd.EarlyCut(horizon=HORIZON, rho=rho, **options), pairs_budget=budget, seed=seed)
    return Cell(rho, found.worst.mismatches, found.worst.pairs, cells)


# -- planted faults ----------------------------------------------------------------------------------------------------


class MostlyShared(bd.EarlyCut):
    """A fault: in one of a hundred decisions an execution takes coins that the other one does not see.

    A hash of its own totals says in which, so that nobody would notice who looks at one execution.
    """

    def decide(self, state: Race, totals: FloatArray, coins: Coins) -> Race:
        """The intact decision, and in some rows that of another seed."""
        intact = super().decide(state, totals, coins)
        other = super().decide(state, totals, replace(coins, seed=coins.seed ^ 1))
        odd = _odd(np.where(state.active, state.totals + totals, 0.0))[:, np.newaxis]
        columns = zip(other[1:-1], intact[1:-1], strict=True)  # all but the batch and `all_testing`
        active, sums, several, remaining, testing = (np.where(odd, new, old) for new, old in columns)
        return Race(intact.batch, active, sums, several, remaining, testing, bool(testing.all()))


def _odd(totals: FloatArray) -> BoolArray:
    """Which rows, about one of a hundred."""
    weights = np.arange(1, totals.shape[1] + 1) * 2_654_435_761
    words = (totals.astype(np.int64) * weights).sum(axis=1) % 1_000_003
    return np.asarray(words * 48_271 % 1_000_003 < 10_000)


def rarely_shared(policy: bd.EarlyCut, world: Environment, pairs: int, missing: float = 0.01) -> Cell:
    """A smaller fault: an execution has other coins from its beginning, in one of a hundred executions."""

    def winners(seed: int, side: int) -> IntArray:
        return pulls_to_winner(Execution(policy, world, Coins(seed, 0, pairs), Noise(8, side, 0)))[0]

    one, two = winners(7, 0), winners(7, 1)
    lost = np.random.default_rng(9).random((2, pairs)) < missing  # by either side
    differ = np.where(lost[0] | lost[1], one != winners(6, 1), one != two)
    return Cell(policy.rho, int(differ.sum()), pairs, CELLS)


def narrowed(policy: bd.EarlyCut, share: float) -> bd.EarlyCut:
    """Return the policy with margins that are this share of its own, and with its own cut."""
    looks = policy.schedule.looks
    thin = tuple(EarlyLook(pulls, share * margin, share * default) for pulls, margin, default in looks)
    return replace(policy, schedule=policy.schedule._replace(looks=thin))


def faults(pairs: int) -> Iterator[tuple[str, Cell]]:
    """Yield every planted fault that 100,000 pairs must find, and what they show; two arms each.

    At rho = 0.3 the proof has so much slack on [0, 1] that none of them leads beyond rho. Margins at 0.8 of what the
    proof needs do for Gaussian rewards; for 0 or 1, whose margins come from Hoeffding's lemma, it takes about 0.7.
    """
    for rho in (0.01, 0.1):
        for place, hard in (("tied", HARD[0]), ("a lead of half the cut", HARD[1])):
            intact = hard.policy(rho)
            faulty = MostlyShared(horizon=HORIZON, rho=rho, schedule=intact.schedule, **hard.options)
            yield f"99% of decisions by shared coins, {place}", played(faulty, hard.world(intact), pairs)
    rare = HARD[0].policy(0.01)
    yield "99% of executions with shared coins, tied", rarely_shared(rare, HARD[0].world(rare), pairs)
    normal = bd.EarlyCut(arms=2, horizon=HORIZON, rho=0.1, gap=0.05, rewards="gaussian")
    yield "margins 20% too narrow, Gaussian, tied", played(narrowed(normal, 0.8), _normal(0.0, 0.0)(normal), pairs)
    binary = HARD[0].policy(0.1)
    yield "margins 30% too narrow, 0 or 1, tied", played(narrowed(binary, 0.7), HARD[0].world(binary), pairs)


def main(quick: bool = False) -> None:
    """Print a line for each question, each cell and each fault."""
    executions, pairs, budget = (1000, 2000, 2000) if quick else (EXECUTIONS, PAIRS, ATTACK)
    print(f"      (t) {HEADER}", flush=True)
    for question, own, row in table(executions):
        print(f"      (t) {row}", flush=True)
        if question.wanted is not None:
            met = own.mean <= question.wanted
            line(f"(t) {question.name}", f"{own.mean:,.0f}", f"{question.wanted:,.0f} at most", met)
    for rho in (0.3,) if quick else RHOS:
        for hard in HARD:
            policy = hard.policy(rho)
            _show("(u)", hard.name, played(policy, hard.world(policy), pairs))
        for options in ATTACKED:
            name = ", ".join(f"{key} {value}" for key, value in options.items())
            _show("(u)", f"attack: {name}", attacked(options, rho, budget))
    for name, cell in faults(pairs):
        line(f"(v) {name}", f"{cell.share:.5f}", f"found above {cell.rho:g}", cell.broken)


def _show(letter: str, name: str, cell: Cell) -> None:
    figure = f"{cell.share:.5f}, {cell.share / cell.rho:.2f} rho"
    line(f"{letter} {name}", figure, f"{cell.rho:g} at most", not cell.broken)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
