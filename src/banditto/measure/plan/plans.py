"""Plan: what an experiment will need and cost, before the first pull.

Of gap, rho and horizon one is left out and solved for. With a budget of regret a second one may be left out. A plan is
feasible when, on its instance, every arm that is `gap` worse than the best is dropped with probability `power` before
the share `by` of the horizon is spent; that is measured by rehearsals, and stands with 99.9% confidence. Where the same
winner is enough (`same="winner"`), it is feasible when the best arm is named with that probability, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from banditto import policies
from banditto.chance.coins import LARGEST_SEED
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, open_unit, real
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON
from banditto.geometry.actions.checking import checked_actions
from banditto.measure.certificate import Regret
from banditto.measure.lower_bounds import WIDEST_COIN, LowerBound, lower_bound
from banditto.measure.plan.planner import (
    LARGEST_RHO,
    LEAST_RHO,
    NARROWEST,
    Open,
    PlanEffort,
    Planner,
    Progress,
    Settled,
)
from banditto.measure.plan.questions import AIMED, AIMED_LINEAR, EARLY_CUT, ONE_CUT, Question
from banditto.measure.plan.rehearsal import Rehearsal
from banditto.measure.plan.trial_plan import RHOS, TrialPlan
from banditto.measure.plan.winner_pulls import WinnerPulls, winner_pulls
from banditto.measure.plan.yardsticks import Alternative, LimitLine, ordinary_test
from banditto.policies.policy import Level, Policy
from banditto.problems.catalogue import protocol_on, takes_option
from banditto.problems.environment import Environment, LinearEnvironment

REHEARSAL_SEED = 0  # of every plan: a random seed for the protocol must neither change the horizon nor refuse the plan
MOST_SURE = 0.999  # more would take too many rehearsals
HOUSE = (ONE_CUT, AIMED)  # what a plan chooses from; the first is the cheaper one where no regret is asked for
LEVELS: tuple[Level, ...] = ("sequence", "winner")
CAVEATS = {  # policies that a plan is compared with, and what to know of them
    ONE_CUT: "it makes one decision, after one batch",
    AIMED: "it goes on testing for smaller gaps",
    "explore-then-commit": "it is replicable only if the best arm does lead by the gap",
}


def plan(
    *,
    arms: int | None = None,
    gap: float | None = None,
    rho: float | None = None,
    horizon: int | None = None,
    regret: float | None = None,
    policy: str | None = None,
    actions: Any = None,
    environment: str = "bernoulli",
    power: float | None = None,
    by: float | None = None,
    rate_at_most: float | None = None,
    baseline: float | None = None,
    control: int | None = None,
    resolve: float | None = None,
    same: Level | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> TrialPlan:
    """Solve for the one of gap, rho and horizon that is left out; a plan comes back that says what it will cost.

    A plan promises that, with probability `power`, every arm that is `gap` worse than the best is dropped before the
    share `by` of the horizon is spent. Rehearsals measure that; docs/cost.md says how. With `same="winner"` it promises
    that the best arm is named as the winner; two runs name the same one, after pulls that may differ, and
    `horizon` is the most that there may be.

    Args:
        arms: how many arms there are; linear problems have `actions` instead.
        gap: by how much the best arm leads every other, in units of the rewards.
        rho: the largest probability that two runs differ.
        horizon: how many pulls there are.
        regret: the most that may be lost in expectation; with it, leave out two of gap, rho and horizon.
        policy: a name such as `random-threshold:paper`; by default the cheapest one that keeps the promise.
        actions: a list of feature vectors or an action set, for a linear problem.
        environment: the kind of rewards: `bernoulli` or `gaussian:SIGMA`.
        power: the probability with which the promise is to be kept, at most 0.999. Default 0.95.
        by: the share of the horizon before whose end it is to be kept; with 1, the last pull must show it. Default
            0.5; a winner may be named at the end.
        rate_at_most: a promise that no arm's mean exceeds this, for rewards in [0, 1].
        baseline: the mean of the worse arms in the rehearsals. By default one at which it is hardest.
        control: the number of the arm that is kept unless another one leads, for `one-cut` and `early-cut`.
        resolve: the name that `power` had before; give one of them.
        same: what two runs are to have in common: "sequence", every pull, or "winner". By default that of the policy,
            and "sequence" if none is named.
        seed: the seed of the protocol. Rehearsals have their own, so that figures do not depend on it.
        progress: called with a line about what is being done.

    Raises:
        InvalidArgument: an argument is not allowed, or no plan keeps the promise; the error says what could be.

    Examples:
        >>> found = plan(arms=2, gap=0.4, rho=0.5)
        >>> found.policy.name, found.policy.guarantee().holds
        ('one-cut', True)
        >>> winner = plan(arms=2, gap=0.4, rho=0.5, same="winner")
        >>> winner.policy.name, winner.level, winner.horizon == 2 * winner.pulls.cap + 1
        ('early-cut', 'winner', True)
    """
    if power is not None and resolve is not None:
        raise InvalidArgument("resolve", resolve, "power alone: resolve is its old name")
    named = "resolve" if power is None and resolve is not None else "power"
    least = 0.5 if named == "power" else 0.0
    allowed = f"a number above {least:g} and at most {MOST_SURE:g}"
    sure = real(next((value for value in (power, resolve) if value is not None), 0.95), named, allowed)
    if not least < sure <= MOST_SURE:
        raise InvalidArgument(named, sure, allowed)
    question = asked(policy, arms, actions, environment, sure, by, rate_at_most, baseline, control, same)
    seed = integer(seed, "seed", 0, LARGEST_SEED)
    numbers, tell = _checked(question, gap, rho, horizon, regret), progress or (lambda line: None)
    planner, settled = _cheapest(question, numbers, tell, choose=policy is None and actions is None)
    found = answered(planner, settled)
    return replace(found, seed=seed, protocol=replace(found.protocol, seed=seed))


def _cheapest(question: Question, numbers: Open, tell: Progress, *, choose: bool) -> tuple[Planner, Settled]:
    """Return the planner and the numbers of the policy that needs least of what was left open.

    Without a budget of regret nothing that we have needs less than OneCut. With one, a ladder may lose less in the end.
    """
    choose = choose and numbers.regret is not None and question.control is None and question.level == "sequence"
    names = HOUSE if choose else (question.policy,)
    found: list[tuple[Planner, Settled]] = []
    refusals: list[InvalidArgument] = []
    for name in names:
        planner = Planner(replace(question, policy=name), REHEARSAL_SEED, tell)
        try:
            found.append((planner, planner.settled(numbers)))
        except InvalidArgument as error:
            refusals.append(error)
    if not found:
        raise refusals[0]
    left_open = [index for index, value in enumerate(numbers[:3]) if value is None]
    return min(found, key=lambda one: [one[1][index] for index in reversed(left_open)])


def asked(
    policy: str | None,
    arms: int | None,
    actions: Any,
    environment: str,
    resolve: float = 0.95,
    by: float | None = None,
    rate_at_most: float | None = None,
    baseline: float | None = None,
    control: int | None = None,
    same: Level | None = None,
) -> Question:
    """Check what a plan is about; the question comes back."""
    if same not in (None, *LEVELS):
        raise InvalidArgument("same", same, " or ".join(LEVELS))
    if actions is not None and same == "winner":
        raise InvalidArgument("same", same, "sequence: no policy for linear problems names a winner")
    if not isinstance(policy, str | None):
        raise InvalidArgument("policy", policy, "the name of a policy, such as one-cut")
    usual = EARLY_CUT if same == "winner" else ONE_CUT
    question = Question(
        policy=policy or (usual if actions is None else AIMED_LINEAR),
        arms=arms,
        actions=None if actions is None else checked_actions(actions),
        environment=environment,
        resolve=resolve,
        by=1.0,
        rate_at_most=None if rate_at_most is None else open_unit(rate_at_most, "rate_at_most"),
        baseline=baseline,
        control=control,
    )
    question = replace(question, by=_share(by, _level_of(question, same)))
    _check_rates(question)
    if control is not None and not takes_option(question.policy, "control"):
        raise InvalidArgument("control", control, f"none, because {question.policy} does not take one")
    if actions is not None and not question.entry.linear:
        allowed = "one that uses features: " + ", ".join(
            name for name, entry in policies.REGISTRY.items() if entry.linear
        )
        raise InvalidArgument("policy", question.policy, allowed)
    question.made(gap=question.widest / 2.0, rho=0.5, horizon=10**6)  # raises for a policy that is not for this
    return question


def _level_of(question: Question, same: Level | None) -> Level:
    """Return the policy's level; one that contradicts what was asked for is refused."""
    level = question.level
    if same not in (None, level):
        why = "names a winner after pulls that may differ" if level == "winner" else "repeats every pull"
        raise InvalidArgument("same", f"{same} with {question.policy}", f"{level}, because {question.policy} {why}")
    return level


def _share(by: float | None, level: Level) -> float:
    """Return the share of the horizon by which the promise is kept: `by`, or its default for this level."""
    if by is None:
        return 1.0 if level == "winner" else 0.5
    share = real(by, "by", "a number above 0 and at most 1")
    if not 0.0 < share <= 1.0:
        raise InvalidArgument("by", by, "a number above 0 and at most 1")
    if level == "winner" and share != 1.0:
        raise InvalidArgument("by", by, "1 or none for a winner: the experiment ends when it is named")
    return share


def _check_rates(question: Question) -> None:
    """Refuse rates for rewards that have none, and a baseline that leaves no room for a better arm."""
    rate, baseline, blank = question.rate_at_most, question.baseline, question.blank()
    bounded = blank.rewards.kind == "bounded" and not isinstance(blank, LinearEnvironment)
    for name, value in (("rate_at_most", rate), ("baseline", baseline)):
        if value is not None and not bounded:
            raise InvalidArgument(name, value, "none but for arms with rewards in [0, 1]")
    if rate is not None and not takes_option(question.policy, "rate_at_most"):
        raise InvalidArgument("rate_at_most", rate, f"none, because {question.policy} cannot use it")
    highest = 1.0 if rate is None else rate
    if baseline is not None and not 0.0 <= real(baseline, "baseline") < highest:
        raise InvalidArgument("baseline", baseline, f"a number from 0 to {highest:g}, which a better arm can exceed")


def _checked(
    question: Question, gap: float | None, rho: float | None, horizon: int | None, regret: float | None
) -> Open:
    """Check the numbers of a plan and return them; exactly two, or one with a budget of regret, must be given."""
    widest = question.widest
    if gap is not None:
        gap = real(gap, "gap", f"a number above 0 and at most {widest:.4g}")
        if not NARROWEST * widest <= gap <= widest:
            rated = question.rate_at_most is not None or question.baseline is not None
            room = ", which the rates leave room for" if rated else ""
            raise InvalidArgument("gap", gap, f"a number from {NARROWEST * widest:.4g} to {widest:.4g}{room}")
    if horizon is not None:
        horizon = integer(horizon, "horizon", max(SHORTEST_HORIZON, len(question.blank().means)), LONGEST_HORIZON)
    if regret is not None and (regret := real(regret, "regret", "a number above 0")) <= 0.0:
        raise InvalidArgument("regret", regret, "a number above 0")
    if rho is not None and not LEAST_RHO <= (rho := open_unit(rho, "rho")) <= LARGEST_RHO:
        raise InvalidArgument("rho", rho, f"a number from {LEAST_RHO:g} to {LARGEST_RHO:g}")
    numbers = Open(gap, rho, horizon, regret)
    known = [name for name in ("gap", "rho", "horizon") if getattr(numbers, name) is not None]
    if len(known) != (2 if regret is None else 1):
        given = " and ".join(known) or "none of gap, rho and horizon"
        allowed = "two of gap, rho and horizon (the third is solved for), or one of them and regret"
        raise InvalidArgument("plan", given if regret is None else f"{given} and regret", allowed)
    return numbers


def answered(planner: Planner, numbers: Settled) -> TrialPlan:
    """Build the whole plan: what it will do and cost, and what other policies would."""
    question, (gap, rho, horizon) = planner.question, numbers
    planner.tell("the answer")
    played, instance = planner.best(numbers), question.instance(gap)
    assert played is not None, "the planner has just found it"
    policy, rehearsal = played
    guarantee, constants = policy.guarantee(), policy.settings().get("constants")
    winner = question.level == "winner"
    pulls = _pulls(planner, policy, gap) if winner else ()
    return TrialPlan(
        question=question,
        policy=policy,
        constants=None if constants is None else str(constants),
        gap=gap,
        rho=rho,
        horizon=horizon,
        instance=instance,
        resolved=rehearsal.resolved(question.by),
        regret=_regret(rehearsal),
        pulls=pulls[0] if winner else None,
        pulls_elsewhere=pulls[1:],
        exploration_pulls=policy.arms * pulls[0].mean if winner else float(rehearsal.decided.mean()),
        bound=guarantee.total if guarantee.holds else None,
        # what the others spend the rest of a horizon on says nothing about an experiment that ends with its winner
        paper_regret=None if winner else _others_regret(planner, question.papers, numbers, instance),
        paper_horizon=None if winner else _papers_horizon(planner, numbers),
        ordinary_regret=None if winner else _others_regret(planner, question.ordinary, numbers, instance),
        lower_bound=_lower_bound(question, numbers),
        ordinary_test=ordinary_test(instance, gap, question.resolve),
        alternatives=_alternatives(planner, numbers),
        executions=rehearsal.regrets.size,
        seed=planner.seed,
        protocol=protocol_on(policy, arms=len(instance.means), seed=planner.seed, horizon=horizon, rho=rho),
    )


def _pulls(planner: Planner, policy: Policy[Any], gap: float) -> tuple[WinnerPulls, ...]:
    """Measure the pulls until there is a winner: at the gap, at twice the gap if that is possible, and on a tie."""
    planner.tell("pulls until there is a winner")
    places = [(lead, planner.question.elsewhere(lead)) for lead in (gap, 2.0 * gap, 0.0)]
    return tuple(winner_pulls(policy, place, lead, planner.seed) for lead, place in places if place is not None)


def _others_regret(planner: Planner, spec: str | None, numbers: Settled, instance: Environment) -> float | None:
    """Measure the expected regret of another policy on the same instance; None if it cannot be made for it."""
    if spec is None:
        return None
    planner.tell(f"the same with {spec}")
    try:
        other = planner.question.other(spec, gap=numbers.gap, rho=numbers.rho, horizon=numbers.horizon)
    except InvalidArgument:  # a net that is too fine for this horizon
        return None
    return float(planner.played(other, instance, numbers.gap).regrets.mean())


def _lower_bound(question: Question, numbers: Settled) -> LowerBound | None:
    """Bound the pulls of every replicable policy for this promise; None where nothing is proved.

    The bounds are on policies that repeat every pull; whoever promises the same winner alone may do with less.
    """
    blank = question.blank()
    if question.level == "winner":
        return None
    if isinstance(blank, LinearEnvironment) or question.resolve <= 0.5 or question.promised:
        return None  # a policy that relies on a promise is bound by less
    kind, sigma, _ = blank.rewards
    return lower_bound(
        arms=len(blank.means),
        gap=min(numbers.gap, WIDEST_COIN) if kind == "bounded" else numbers.gap,
        rho=numbers.rho,
        power=question.resolve,
        sigma=sigma,
        rewards="bounded" if kind == "bounded" else "gaussian",
        kind="adaptive",
        rate_at_most=question.rate_at_most,
    )


def limit_lines(question: Question, gap: float, rhos: Sequence[float] = RHOS) -> list[LimitLine]:
    """Return what figures draw beside policies: what no replicable one can do with less, and an ordinary test."""
    lines = []
    bounds = [_lower_bound(question, Settled(gap, rho, LONGEST_HORIZON)) for rho in rhos]
    proved = [(rho, bound.total) for rho, bound in zip(rhos, bounds, strict=True) if bound is not None]
    if proved:
        lines.append(LimitLine("no replicable policy with less", *zip(*proved, strict=True)))
    if (usual := ordinary_test(question.instance(gap), gap, question.resolve)) is not None:
        lines.append(LimitLine("an ordinary test", tuple(rhos), (usual.total,) * len(rhos)))
    return lines


def _alternatives(planner: Planner, numbers: Settled) -> tuple[Alternative, ...]:
    """Return about what other policies for arms would need for the same promise."""
    question = planner.question
    if question.actions is not None:
        return ()
    found = []
    caveats = {ONE_CUT: "it repeats every pull"} if question.level == "winner" else CAVEATS
    for name, caveat in caveats.items():
        if name == question.policy or (question.rate_at_most is not None and not takes_option(name, "rate_at_most")):
            continue
        planner.tell(f"the same with {name}")
        other = Planner(
            replace(question, policy=name, control=question.control if takes_option(name, "control") else None),
            planner.seed,
            planner.tell,
            PlanEffort(4096, 1.3, 1.02),
        )
        horizon = other.horizon(numbers.gap, numbers.rho, 1.02)
        played = None if horizon is None else other.best(Settled(numbers.gap, numbers.rho, horizon))
        regret = None if played is None else float(played.rehearsal.regrets.mean())
        found.append(Alternative(name, horizon, regret, caveat))
    return tuple(sorted(found, key=lambda one: one.horizon or LONGEST_HORIZON))


def _papers_horizon(planner: Planner, numbers: Settled) -> int | None:
    """Find about the shortest horizon at which the paper's constants keep the same promise; None without one."""
    question = replace(planner.question, policy=planner.question.papers)
    if question.policy == planner.question.policy:  # it is the plan
        return None
    if not question.blank().means:  # a design for every execution: that would take too long for a comparison
        return None
    others = Planner(question, planner.seed, planner.tell, PlanEffort(1024, 1.3, 1.05))
    return others.horizon(numbers.gap, numbers.rho, 1.05)


def _regret(rehearsal: Rehearsal) -> Regret:
    """Return the mean regret of a rehearsal, with an interval that holds 95% of runs and the mean."""
    regrets = rehearsal.regrets
    mean = float(regrets.mean())
    reach = 4.0 * float(regrets.std(ddof=1)) / float(np.sqrt(regrets.size))
    low, high = (float(value) for value in np.quantile(regrets, [0.025, 0.975]))
    rounding = 1e-9 * mean  # a regret that is always the same is added up in another order elsewhere
    interval = max(min(low, mean - reach) - rounding, 0.0), max(high, mean + reach) + rounding
    return Regret(mean, interval, float(regrets.max()))
