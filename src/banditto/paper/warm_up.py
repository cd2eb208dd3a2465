"""Warm-up I: explore-then-commit with a known gap, and what happens when the gap is wrong."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

from scipy.special import ndtr

from banditto.measure.certify import certify
from banditto.paper.claims import AtLeast, AtMost, Chart, Claim, ClaimCurve, Effort, Measured, Near
from banditto.paper.measuring import Point, curve, differing, regret_point
from banditto.policies.explore_then_commit import ExploreThenCommit
from banditto.policies.shared.replicable import Constants
from banditto.problems.environments.bernoulli import Bernoulli

PLACE = "Warm-up I"
RHO = 0.1
GAP = 0.1  # the true one
EXCESS = 4.0  # promised over true gap, where the promise is broken
RATIOS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # promised over true gap


class Game(NamedTuple):
    """A problem for explore-then-commit: arms, the true and the promised gap, rho, and which constants explore."""

    arms: int
    rho: float
    promised: float
    gap: float = GAP
    horizon: int = 10**7
    constants: Constants = "paper"

    @property
    def policy(self) -> ExploreThenCommit:
        """The policy, which explores as often as the promised gap asks for."""
        return ExploreThenCommit(
            arms=self.arms, horizon=self.horizon, rho=self.rho, gap=self.promised, constants=self.constants
        )

    @property
    def world(self) -> Bernoulli:
        """The environment: means around 1/2, where rewards have the largest variance; the best arm is last."""
        return Bernoulli([0.5 - self.gap / 2.0] * (self.arms - 1) + [0.5 + self.gap / 2.0])

    def differing(self, pairs: int, seed: int) -> Measured:
        """Measure the share of pairs that differ."""
        return differing(self.policy, self.world, pairs=pairs, seed=seed)


def kept_promise(game: Game, effort: Effort) -> Measured:
    """Measure the share of pairs that differ where the promised gap is the true one."""
    # a thousand arms take a while, and rho is so large there that fewer pairs do
    found = game.differing(effort.choose(8192, 65_536) if game.arms < 1000 else effort.choose(2048, 16_384), seed=201)
    proved = game.policy.guarantee().on(game.world.means).total
    detail = f"{found.detail} {game.policy.pulls} pulls of each arm; a union bound gives {proved:.3g}."
    return Measured(value=found.value, interval=found.interval, detail=detail)


def broken_promise(games: tuple[Game, ...], effort: Effort) -> Measured:
    """Measure the share of pairs that differ where the promised gap is `EXCESS` times the true one."""
    pairs = effort.choose(8192, 65_536)
    found = {game.promised / game.gap: game.differing(pairs, seed=202 + k) for k, game in enumerate(games)}
    points = [Point(ratio, row.value, *row.interval) for ratio, row in found.items() if row.value > 0.0]
    ratios = [RATIOS[0] * (RATIOS[-1] / RATIOS[0]) ** (k / 60.0) for k in range(61)]
    curves = (
        curve("measured", points),
        ClaimCurve(
            label="two normal means in the wrong order",
            x=tuple(ratios),
            y=tuple(predicted_to_differ(games[0]._replace(promised=ratio * GAP)) for ratio in ratios),
            theory=True,
        ),
        ClaimCurve(label="rho", x=(RATIOS[0], RATIOS[-1]), y=(RHO, RHO), theory=True),
    )
    chart = Chart(x_label="promised gap / true gap", y_label="share of pairs that differ", curves=curves)
    worst = found[EXCESS]
    return Measured(value=worst.value, interval=worst.interval, detail=worst.detail, chart=chart)


def predicted_to_differ(game: Game) -> float:
    """Return 2 p (1 - p) for two arms, where p is the chance that the worse of two normal means leads.

    Totals are whole numbers and ties go to the worse arm, which comes first: hence half a step.
    """
    pulls = game.policy.pulls
    variance = sum(p * (1.0 - p) for p in game.world.means) / pulls
    wrong = float(ndtr((0.5 / pulls - game.gap) / math.sqrt(variance)))
    return 2.0 * wrong * (1.0 - wrong)


def exploration(gaps: tuple[float, ...], effort: Effort) -> Measured:
    """Measure regret divided by m times the sum of gaps, at horizons too short for a wrong commitment to matter."""
    pairs, points, lines = effort.choose(2048, 16_384), [], []
    for number, gap in enumerate(gaps):
        game = Game(arms=5, rho=0.01, promised=gap, gap=gap)
        pulls = math.ceil(4.0 / gap**2 * math.log(1.0 / game.rho))  # m as printed
        game = game._replace(horizon=2 * game.arms * pulls)
        found = certify(game.policy, game.world, pairs=pairs, seed=210 + number)
        points.append(regret_point(gap, found))
        lines.append(pulls * (game.arms - 1) * gap)
    ratios = [(point.y / line, point.low / line, point.high / line) for point, line in zip(points, lines, strict=True)]
    value, low, high = (sum(column) / len(ratios) for column in zip(*ratios, strict=True))
    theory = ClaimCurve(label="m times the sum of gaps", x=gaps, y=tuple(lines), theory=True)
    chart = Chart(x_label="gap", y_label="regret, rewards", curves=(curve("measured", points), theory))
    return Measured(value=value, interval=(low, high), chart=chart)


def bounded_regret(game: Game, effort: Effort) -> Measured:
    """Measure regret divided by the whole formula, at a horizon where wrong commitments cost most."""
    found = certify(game.policy, game.world, pairs=effort.choose(8192, 65_536), seed=220)
    gaps, pulls = (game.arms - 1) * game.gap, game.policy.pulls
    bound = pulls * gaps + game.rho * (game.horizon - pulls * game.arms) * gaps
    low, high = found.regret.interval
    detail = f"Exploration alone is {pulls * gaps / bound:.2g} of the formula."
    return Measured(value=found.regret.mean / bound, interval=(low / bound, high / bound), detail=detail)


SHARE = "share of pairs that differ"
ANY_ARMS = "Explore-then-commit with m = 4/gap^2 log(1/rho) is rho-replicable for any number of arms."

CLAIMS = (
    Claim(
        name="warm-up-two-arms",
        place=PLACE,
        statement="With the right gap, m = 4/gap^2 log(1/rho) pulls of each of two arms make a commitment replicable.",
        quantity=SHARE,
        experiment="Pairs on two arms that differ by exactly the promised gap of 0.1; rho = 0.1.",
        rule=AtMost(predicted=RHO, detectable=0.02),
        measure=partial(kept_promise, Game(arms=2, rho=RHO, promised=GAP)),
        seconds=(0.1, 0.3),
    ),
    Claim(
        name="warm-up-fifty-arms",
        place=PLACE,
        statement=f"{ANY_ARMS} There is no union bound in it. Here: 50 arms, rho = 0.1.",
        quantity=SHARE,
        experiment="Pairs on 50 arms, all but one of them worse by exactly the promised gap of 0.1.",
        rule=AtMost(predicted=RHO, detectable=0.02),
        measure=partial(kept_promise, Game(arms=50, rho=RHO, promised=GAP)),
        seconds=(0.2, 1.0),
    ),
    Claim(
        name="warm-up-thousand-arms",
        place=PLACE,
        statement=f"{ANY_ARMS} Here: 1000 arms, rho = 0.5.",
        quantity=SHARE,
        experiment="Pairs on 1000 arms, all but one of them worse by exactly the promised gap of 0.1.",
        rule=AtMost(predicted=0.5, detectable=0.05),
        measure=partial(kept_promise, Game(arms=1000, rho=0.5, promised=GAP)),
        reason="The printed m does not grow with the number of arms. A union bound gives 2 (K-1) rho^4, which is below "
        "rho only for K up to 1 + 1/(2 rho^3): some 500 arms at rho = 0.1, and 5 at rho = 0.5.",
        seconds=(0.8, 4.0),
    ),
    Claim(
        name="warm-up-thousand-arms-certified",
        place="beyond",
        statement="With m = log(2 (K-1)/rho)/gap^2 it is. Here: 1000 arms, rho = 0.5, certified constants.",
        quantity=SHARE,
        experiment="The same pairs with the pulls that the union bound asks for.",
        rule=AtMost(predicted=0.5, detectable=0.05),
        measure=partial(kept_promise, Game(arms=1000, rho=0.5, promised=GAP, constants="certified")),
        seconds=(0.8, 4.0),
    ),
    Claim(
        name="warm-up-wrong-gap",
        place=PLACE,
        statement="The gap must be known: promised four times too large, it leaves executions far from replicable.",
        quantity=SHARE,
        experiment="Two arms that differ by 0.1, promised gaps up to eight times that; four times is the row's.",
        rule=AtLeast(predicted=2.0 * RHO, detectable=0.05),
        measure=partial(broken_promise, tuple(Game(arms=2, rho=RHO, promised=ratio * GAP) for ratio in RATIOS)),
        seconds=(0.3, 2.0),
    ),
    Claim(
        name="warm-up-exploration",
        place=PLACE,
        statement="Exploration costs m times the sum of all gaps.",
        quantity="regret / (m times the sum of gaps)",
        experiment="Five arms, rho = 0.01, gaps from 0.02 to 0.32, horizons of twice the exploration.",
        rule=Near(predicted=1.0, detectable=0.05),
        measure=partial(exploration, (0.02, 0.04, 0.08, 0.16, 0.32)),
        seconds=(0.1, 0.5),
    ),
    Claim(
        name="warm-up-regret",
        place=PLACE,
        statement="Regret is at most m times the sum of gaps, and rho (T - m K) times that sum.",
        quantity="regret / formula",
        experiment="Five arms, rho = 0.5, T = 10^7: a few commitments are wrong, and cost the rest of T.",
        rule=AtMost(predicted=1.0, detectable=0.1),
        measure=partial(bounded_regret, Game(arms=5, rho=0.5, promised=GAP)),
        seconds=(0.1, 0.5),
    ),
)
