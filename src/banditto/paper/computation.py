"""Appendix G and Remark 11 on polytopes: what Algorithm 4 takes to compute, against the dimension.

Times are processor seconds of this machine, the smaller of two; a row about them may differ from run to run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.geometry.actions.sets import ActionSet
from banditto.geometry.design import g_optimal_design
from banditto.paper.claims import AtMost, Claim, Effort, Measured
from banditto.paper.linear_instances import cube, cut_cube
from banditto.paper.measuring import Point, exponent

REPEATS = 2


@dataclass(eq=False)
class Counted:
    """Wraps an action set so that it can only be maximised over, and counts how often it is."""

    inner: ActionSet
    calls: list[int] = field(default_factory=lambda: [0])

    @property
    def dimension(self) -> int:
        """The dimension of the set."""
        return self.inner.dimension

    def maximise(self, direction: FloatArray) -> tuple[float, ...]:
        """Return the best action along a direction, and count the question."""
        self.calls[0] += 1
        return tuple(self.inner.maximise(direction))

    def cut(self, normal: tuple[float, ...], least: float) -> Counted:
        """Return the part of the set where <normal, a> is at least `least`; the count goes on."""
        return Counted(self.inner.cut(normal, least), self.calls)


def oracle_calls(make: Callable[[int], ActionSet], effort: Effort, ask: type[Counted] = Counted) -> Measured:
    """Measure the exponent in d of the linear maximisations that a 2-approximate design takes."""
    points = []
    for dimension in (4, 6, 8, 12, 16, 24):
        asked = ask(make(dimension))
        g_optimal_design(asked, accuracy=1.0)
        count = float(asked.calls[0])
        points.append(Point(dimension, count, count, count))
    return exponent(points, "dimension d", "linear maximisations", 3.0, "counted")


def seconds(task: Callable[[int], object], dimensions: tuple[int, ...], predicted: float) -> Measured:
    """Measure the exponent in d of a task's processor time."""
    task(dimensions[0])  # what is loaded or compiled at the first call
    points = []
    for dimension in dimensions:
        spent = []
        for _ in range(REPEATS):
            began = time.process_time()
            task(dimension)
            spent.append(max(time.process_time() - began, 1e-6))
        points.append(Point(dimension, min(spent), min(spent), max(spent)))
    return exponent(points, "dimension d", "seconds", predicted, "smaller and larger of two")


def design_task(dimension: int) -> object:
    """Compute a 2-approximate design of a polytope; the task whose time is measured."""
    return g_optimal_design(cut_cube(dimension), accuracy=1.0)


def elimination_task(dimension: int) -> object:
    """Maximise over a polytope, cut it, and maximise again: issues (a) and (b) of the appendix, as a timed task."""
    polytope = cut_cube(dimension)
    drawn = np.random.default_rng([81, dimension]).standard_normal(dimension)
    theta = np.asarray(np.round(drawn / np.linalg.norm(drawn), 6), dtype=np.float64)
    best = polytope.maximise(theta)
    least = float(np.sum(theta * np.array(best))) - 0.2
    return polytope.cut(tuple(theta.tolist()), least).maximise(np.roll(theta, 1))


def design_time(task: Callable[[int], object], effort: Effort) -> Measured:
    """Measure the exponent in d of the time that designs of polytopes take; beyond seven not by listing vertices."""
    return seconds(task, (2, 3, 4, 5, 6, 8, 10) if effort.quick else (2, 3, 4, 5, 6, 8, 10, 12, 14, 16), 6.0)


def elimination_time(task: Callable[[int], object], effort: Effort) -> Measured:
    """Measure the exponent in d of the time that cuts of polytopes take."""
    return seconds(task, (8, 12, 16, 20, 24, 32), 4.0)


CLAIMS = (
    Claim(
        name="appendix-f-oracle",
        place="Appendix G",
        statement="A design takes polynomially many calls of an oracle that maximises a linear function.",
        quantity="exponent of calls in d",
        experiment="2-approximate designs of a cube that is known by its maximisation alone, d = 4 to 24.",
        rule=AtMost(predicted=3.0, detectable=0.5),
        measure=partial(oracle_calls, cube),
        seconds=(2.0, 2.0),
    ),
    Claim(
        name="appendix-f-elimination",
        place="Appendix G",
        statement="Finding the best action of a polytope and cutting it takes polynomial time.",
        quantity="exponent of time in d",
        experiment="A cube with 2 d corners cut off, exact arithmetic, d = 8 to 32; seconds of this machine.",
        rule=AtMost(predicted=4.0, detectable=1.0),
        measure=partial(elimination_time, elimination_task),
        seconds=(2.0, 2.0),
    ),
    Claim(
        name="appendix-f-design",
        place="Appendix G",
        statement="So does the design of a batch, the other part of an execution on a polytope.",
        quantity="exponent of time in d",
        experiment="2-approximate designs of a cube with 2 d corners cut off, d = 2 to 10; seconds of this machine.",
        rule=AtMost(predicted=6.0, detectable=2.0),
        measure=partial(design_time, design_task),
        seconds=(5.0, 35.0),
    ),
)
