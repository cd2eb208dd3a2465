"""What a plan is about: a policy, a kind of problem, and the instance on which its promises are made.

The instance of a plan is the least favourable one in which the best arm leads every other by `gap`: all others are
exactly `gap` worse. Rewards in [0, 1] are Bernoulli with means around 1/2, where their variance is largest; where rates
are promised to be low, the best arm has the largest one; with a baseline, that is the others' rate. The best arm is the
last one, so that nothing is won by playing the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from banditto import policies
from banditto.core.errors import InvalidArgument
from banditto.core.exact import written
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON
from banditto.core.registry import Entry
from banditto.core.rewards import Rewards
from banditto.measure.attack.linear_spaces import LinearSpace
from banditto.policies.certified_elimination.ladder_search import LadderProblem
from banditto.policies.certified_elimination.named_gap import Aim, best_aim
from banditto.policies.policy import AnyPolicy, Level, Policy, own_level
from banditto.policies.shared.replicable import without_warnings
from banditto.policies.shared_linear.linear_policy import usual_centre
from banditto.problems.catalogue import (
    blank_environment,
    build_environment,
    build_policy,
    load_class,
    lookup,
    takes_option,
)
from banditto.problems.environment import Environment, LinearEnvironment

AIMED = "certified-elimination"  # its constants are made for the plan
AIMED_LINEAR = "certified-linear"
ONE_CUT = "one-cut"
EARLY_CUT = "early-cut"
# of the probability that is left: OneCut and EarlyCut are aimed at a little more than what is promised, and if
# rehearsals still leave a doubt, because there are few of them or few pulls, at more
MARGINS = (0.06, 0.15, 0.3, 0.5)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a plan is for: the policy by name, the arms or actions, the kind of rewards, and the promise."""

    policy: str
    arms: int | None
    actions: Any
    environment: str
    resolve: float
    by: float
    rate_at_most: float | None = None
    baseline: float | None = None
    control: int | None = None

    @property
    def entry(self) -> Entry:
        """The policy's line in the registry."""
        return lookup(self.policy.partition(":")[0], policies.REGISTRY, "policy")

    @property
    def level(self) -> Level:
        """What two runs of the policy have in common: every pull, or the winner."""
        return own_level(load_class(self.entry))

    def blank(self) -> Environment:
        """Make an environment with rewards of this kind, in which all arms are equal."""
        return blank_environment(self.environment, self.arms, self.actions)

    @property
    def widest(self) -> float:
        """The widest gap that an instance can have."""
        blank = self.blank()
        if isinstance(blank, LinearEnvironment):
            return self._space(blank).widest_lead()
        if blank.rewards.kind != "bounded":
            return 20.0 * blank.rewards.sigma
        highest = 0.98 if self.rate_at_most is None else self.rate_at_most
        # as decimals: 0.06 - 0.05 is 0.01
        return highest if self.baseline is None else float(written(highest) - written(self.baseline))

    def instance(self, gap: float) -> Environment:
        """Make the environment in which the best arm leads all others by exactly `gap`, or by at least that."""
        blank = self.blank()
        if isinstance(blank, LinearEnvironment):
            return self._space(blank).leading_by(gap)
        worse = (0.5 if blank.rewards.kind == "bounded" else 0.0) - gap / 2.0
        if self.baseline is not None:
            worse = self.baseline
        elif self.rate_at_most is not None:
            worse = min(worse, max(0.0, self.rate_at_most - gap))
        best = worse + gap if self.rate_at_most is None else min(worse + gap, self.rate_at_most)
        means = [worse] * (len(blank.means) - 1) + [best]
        # a control is not the best arm: that would be the easy case
        return build_environment(self.environment, means[::-1] if self.control == len(means) - 1 else means)

    def elsewhere(self, gap: float) -> Environment | None:
        """Make the instance for a gap that was not asked for, such as a tie; None where no rewards leave room for it.

        A baseline below which there is no room for it moves down, so that promised rates are kept.
        """
        highest = 1.0 if self.rate_at_most is None else self.rate_at_most
        if self.blank().rewards.kind == "bounded":
            if gap > highest:
                return None
            if self.baseline is not None and written(self.baseline) + written(gap) > written(highest):
                return replace(self, baseline=float(written(highest) - written(gap))).instance(gap)
        return self.instance(gap)

    def _space(self, blank: LinearEnvironment) -> LinearSpace:
        return LinearSpace(blank.actions, blank.rewards, usual_centre(blank.rewards), ())

    def candidates(self, *, gap: float, rho: float, horizon: int) -> Iterator[Policy[Any]]:
        """Yield the policy for these numbers; of CertifiedLinear both methods, of the cuts some with more power."""
        if self.level == "winner":
            for margin in MARGINS:
                if self.most_pulls(gap, rho, margin) > horizon:
                    return  # and more power takes more
                fitting: Any = replace(_longest(self, gap, rho, margin), horizon=horizon)
                yield fitting
            return
        if self.policy == ONE_CUT:
            for margin in MARGINS:
                yield self.made(gap=gap, rho=rho, horizon=horizon, margin=margin)
            return
        first: Any = self.made(gap=gap, rho=rho, horizon=horizon)
        yield first
        if self.policy == AIMED_LINEAR and self.blank().means:
            with without_warnings():
                yield replace(first, inner=None, method="lattice" if first.method == "thresholds" else "thresholds")

    def made(self, *, gap: float, rho: float, horizon: int, margin: float = MARGINS[0]) -> Policy[Any]:
        """Make the policy for these numbers; one that is not replicable is refused."""
        made = self.other(self.policy, gap=gap, rho=rho, horizon=horizon, margin=margin)
        if not isinstance(made, Policy):
            raise InvalidArgument("policy", self.policy, "a replicable policy: " + ", ".join(policies.REGISTRY))
        return made

    def other(self, spec: str, *, gap: float, rho: float, horizon: int, margin: float = MARGINS[0]) -> AnyPolicy:
        """Make another policy, by its name, for the same problem and these numbers; `margin` is for OneCut's power."""
        blank = self.blank()
        with without_warnings():  # whether it is long enough is what we are asking
            if spec == AIMED:
                aim = Aim(gap, self.resolve, self.by)
                kind, (rewards, sigma, _) = load_class(policies.REGISTRY[AIMED]), blank.rewards
                known = {"arms": len(blank.means), "horizon": horizon, "rho": rho, "rewards": rewards, "sigma": sigma}
                aimed: Policy[Any] = kind.planned(aim, **known, rate_at_most=self.rate_at_most)
                return aimed
            power = self._aimed_power(margin)
            given = {"gap": gap, "power": power, "rate_at_most": self.rate_at_most, "control": self.control}
            options = {name: value if takes_option(spec, name) else None for name, value in given.items()}
            return build_policy(spec, arms=len(blank.means), horizon=horizon, rho=rho, environment=blank, **options)

    def _aimed_power(self, margin: float) -> float:
        """Return the power that OneCut is built for, a little above the promised one."""
        return max(0.51, float(f"{self.resolve + margin * (1.0 - self.resolve):.6g}"))

    def most_pulls(self, gap: float, rho: float, margin: float = MARGINS[0]) -> float:
        """Return the shortest horizon of a policy that names a winner: the cap of all arms, and a pull for the winner.

        Infinity where no horizon is long enough.
        """
        try:
            longest = _longest(self, gap, rho, margin)
        except InvalidArgument:  # more arms than it takes
            return math.inf
        if self.falls_short(longest):
            return math.inf
        return float(max(SHORTEST_HORIZON, longest.arms * longest.cap + 1))

    def falls_short(self, policy: Policy[Any]) -> bool:
        """Say whether a policy knows that it had too few pulls to reach its power."""
        reached, aimed = (getattr(policy, name, None) for name in ("reached_power", "power"))
        return reached is not None and aimed is not None and reached < aimed - 1e-6

    def likely_horizon(self, gap: float, rho: float) -> float | None:
        """Estimate the shortest horizon, where constants are aimed and say what they will spend; None elsewhere."""
        if self.policy == ONE_CUT:
            longest: Any = self.made(gap=gap, rho=rho, horizon=LONGEST_HORIZON)
            return float(min(longest.arms * longest.pulls_per_arm / self.by + 1.0, LONGEST_HORIZON))
        if self.policy != AIMED:
            return None
        length = 1e6
        for _ in range(3):  # it depends on itself through logarithms alone
            blank = self.blank()
            rewards = Rewards.of(*blank.rewards[:2], self.rate_at_most)
            problem = LadderProblem(len(blank.means), math.ceil(length), rho, rewards, gap)
            length = min(best_aim(problem, Aim(gap, self.resolve, self.by)).spending / self.by, LONGEST_HORIZON)
        return length

    @property
    def promised(self) -> bool:
        """Whether the policy relies on the gap."""
        return "gap" in self.entry.options and self.policy not in (ONE_CUT, EARLY_CUT)

    @property
    def papers(self) -> str:
        """The name of the paper's algorithm for this problem, with the paper's constants."""
        name = self.policy.partition(":")[0]
        if "paper" in self.entry.constants:
            return f"{name}:paper"
        if not self.entry.linear:
            return "random-threshold:paper"
        return "linear-threshold:paper" if self.blank().means else "least-squares-rounding:paper"

    @property
    def ordinary(self) -> str | None:
        """The name of a policy in batches that is not replicable; None for infinitely many actions."""
        blank = self.blank()
        if not blank.means:
            return None
        return "phased-elimination" if isinstance(blank, LinearEnvironment) else "batched-elimination"


@lru_cache(maxsize=1024)
def _longest(question: Question, gap: float, rho: float, margin: float) -> Any:
    """Return the policy at the longest horizon; its cap does not depend on the horizon, so this is cached."""
    return question.made(gap=gap, rho=rho, horizon=LONGEST_HORIZON, margin=margin)
