"""The price of replicability as a curve: for each policy, what horizon and what regret a smaller rho costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from banditto import policies
from banditto.measure.plan.planner import Planner, Settled
from banditto.measure.plan.questions import Question
from banditto.problems.environment import LinearEnvironment

RHOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


CurveProgress = Callable[[str, int, int], None]


class CurvePoint(NamedTuple):
    """The shortest horizon that keeps the plan's promise, and the expected regret there."""

    policy: str
    rho: float
    horizon: int
    regret: float


def policies_for(question: Question) -> list[str]:
    """Every replicable policy that the problem allows, and the paper's constants for comparison."""
    blank = question.blank()
    linear = isinstance(blank, LinearEnvironment)
    names = [
        name
        for name, entry in policies.REGISTRY.items()
        if entry.linear == linear and (entry.any_set or blank.means) and name != "net-threshold"
    ]
    names = names if linear else [*names, "random-threshold:paper"]
    return names if question.policy in names else [question.policy, *names]


def price_curves(
    question: Question,
    gap: float,
    *,
    rhos: Sequence[float] = RHOS,
    seed: int = 0,
    progress: CurveProgress | None = None,
) -> list[CurvePoint]:
    """One point for each policy and rho; those for which no horizon is long enough are left out."""
    names, tell = policies_for(question), progress or (lambda name, done, total: None)

    points = []
    for name in names:
        planner = Planner(replace(question, policy=name), seed, lambda line: None)
        for number, rho in enumerate(rhos):
            tell(name, number, len(rhos))
            horizon = planner.horizon(gap, rho, planner.effort.finest)  # as `plan` would
            played = None if horizon is None else planner.best(Settled(gap, rho, horizon))
            if horizon is not None and played is not None:
                points.append(CurvePoint(name, rho, horizon, float(played.rehearsal.regrets.mean())))
        tell(name, len(rhos), len(rhos))
    return points
