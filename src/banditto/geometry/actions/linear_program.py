"""Linear programs over {F a <= f}: HiGHS proposes a basis, exact arithmetic settles the vertex."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import highspy
import numpy as np

from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import NoMaximum
from banditto.geometry.actions.exact_simplex import Beyond, Empty, Vertex, integer_row, maximiser, tie_breaker
from banditto.geometry.actions.filtering import settled

_ANSWERED = (
    highspy.HighsModelStatus.kOptimal,
    highspy.HighsModelStatus.kUnbounded,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,
)
# Towards the first maximiser, so that ties seldom need a pivot; too small to matter otherwise.
_TILT = 2.0**-16


class LinearProgram:
    """A polytope to maximise over many times; `solved` counts the questions, `pivots` the exact repairs."""

    def __init__(self, rows: FloatArray, bounds: FloatArray) -> None:
        self.dimension = rows.shape[1]
        self.solved = 0
        self.pivots = 0
        pairs = zip(rows.tolist(), bounds.tolist(), strict=True)
        self.rows = [integer_row(row, bound, number) for number, (row, bound) in enumerate(pairs)]
        self.matrix, self.bounds = rows, bounds
        # the solver drops entries below 1e-9 and takes 1e20 for infinite: rows and features are brought to size 1
        by_row, self._by_feature = _balanced(rows)
        self._solver = _model(np.ldexp(rows, by_row[:, None] + self._by_feature), np.ldexp(bounds, by_row))
        self._reach = self._measured()

    def maximise(self, objective: FloatArray, *, cold: bool = False) -> Vertex:
        """Return the first maximiser (see `exact_simplex`); `cold` forgets the solver's last basis: same answer."""
        return self._exact(self._proposed(objective, cold), objective)

    def action(self, objective: FloatArray) -> tuple[float, ...]:
        """Return the first maximiser with each coordinate rounded once, to the nearest float."""
        status = self._proposed(objective, cold=False)
        basis = self._basis()
        if status == highspy.HighsModelStatus.kOptimal and basis:
            found = settled(self.matrix, self.bounds, self.rows, basis, objective)
            if found is not None:
                self.solved += 1
                return found
        return tuple(float(value) for value in self._exact(status, objective).point)

    def _proposed(self, objective: FloatArray, cold: bool) -> highspy.HighsModelStatus:
        tilt = float(np.max(np.abs(objective))) * _TILT
        steps = np.array(tie_breaker(self.dimension)) / self.dimension
        return self._solve(objective + (tilt or 1.0) * steps, cold)

    def _exact(self, status: highspy.HighsModelStatus, objective: FloatArray) -> Vertex:
        """Return the exact vertex, starting from the solver's basis; raise `NoMaximum` where there is none."""
        if status == highspy.HighsModelStatus.kInfeasible:
            raise self._without_actions()
        self.solved += 1
        try:
            vertex = maximiser(self.rows, self._reach, self._basis(), integer_row(objective.tolist(), 0.0, -1).row)
        except Empty:
            raise NoMaximum("empty", "no action satisfies all rows") from None
        except Beyond:
            raise NoMaximum("unbounded", "or so large that the solver cannot tell; rescale the rows") from None
        self.pivots += vertex.pivots
        return vertex

    def _solve(self, objective: FloatArray, cold: bool) -> highspy.HighsModelStatus:
        """Let HiGHS maximise the objective, from scratch if `cold`, and return its status."""
        if cold:
            self._solver.clearSolver()
        costs = np.ldexp(objective, self._by_feature)
        top = math.frexp(float(np.max(np.abs(costs))))[1]
        self._scale = -top  # costs of size 1 too: the solver's tolerances are absolute
        scaled = np.ldexp(costs, -top)
        self._solver.changeColsCost(self.dimension, np.arange(self.dimension, dtype=np.int32), scaled)
        self._solver.run()
        status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kUnboundedOrInfeasible and not cold:
            return self._solve(objective, cold=True)
        return status

    def _basis(self) -> Sequence[int]:
        """Return the numbers of the rows that the solver holds at their bounds; none if they are not a whole basis."""
        basic = highspy.HighsBasisStatus.kBasic
        held = [k for k, status in enumerate(self._solver.getBasis().row_status) if status != basic]
        return held if len(held) == self.dimension else ()

    def _without_actions(self) -> NoMaximum:
        """Return the error to raise when the solver finds no action; exact arithmetic tells whether there is none."""
        try:
            maximiser(self.rows, [10**30] * self.dimension, (), [0] * self.dimension)
        except Empty:
            return NoMaximum("empty", "no action satisfies all rows")
        except Beyond:
            pass
        return NoMaximum("undecided", "HiGHS finds no action, although there are some; rescale the features")

    def _measured(self) -> list[int]:
        """Return a generous bound on each |a_j|; raise `NoMaximum` with the reason where there is none."""
        reach = []
        for feature in range(self.dimension):
            ends = []
            for sign in (1.0, -1.0):
                objective = np.zeros(self.dimension)
                objective[feature] = sign
                status = self._solve(objective, cold=True)
                if status == highspy.HighsModelStatus.kInfeasible:
                    raise self._without_actions()
                if status not in _ANSWERED:
                    raise NoMaximum("undecided", f"HiGHS stopped with {status.name}; rescale the rows")
                if status != highspy.HighsModelStatus.kOptimal:
                    side = "above" if sign > 0 else "below"
                    raise NoMaximum("unbounded", f"feature {feature} is not bounded from {side}")
                ends.append(abs(math.ldexp(float(self._solver.getInfo().objective_function_value), -self._scale)))
            reach.append(2 * math.ceil(max(ends)) + 2)
        return reach


def _balanced(rows: FloatArray) -> tuple[IntArray, IntArray]:
    """Return exponents of two for rows and for features that bring the largest entry of each to about 1."""
    by_row = np.zeros(rows.shape[0], dtype=np.int64)
    by_feature = np.zeros(rows.shape[1], dtype=np.int64)
    for _ in range(8):
        sizes = np.abs(np.ldexp(rows, by_row[:, None] + by_feature))
        by_row -= np.frexp(np.max(sizes, axis=1))[1]
        sizes = np.abs(np.ldexp(rows, by_row[:, None] + by_feature))
        by_feature -= np.frexp(np.max(sizes, axis=0))[1]
    return by_row, by_feature


def _model(rows: FloatArray, bounds: FloatArray) -> highspy.Highs:
    """Return a HiGHS solver that holds the program {rows a <= bounds}, still without an objective."""
    new_solver: Callable[[], highspy.Highs] = highspy.Highs
    solver = new_solver()
    for option, value in (("output_flag", False), ("solver", "simplex"), ("presolve", "off"), ("threads", 1)):
        solver.setOptionValue(option, value)
    count, dimension = rows.shape
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = dimension, count
    program.col_cost_ = np.zeros(dimension)
    program.col_lower_ = np.full(dimension, -highspy.kHighsInf)
    program.col_upper_ = np.full(dimension, highspy.kHighsInf)
    program.row_lower_ = np.full(count, -highspy.kHighsInf)
    program.row_upper_ = bounds
    program.sense_ = highspy.ObjSense.kMaximize
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.arange(0, count * dimension + 1, dimension, dtype=np.int32)
    program.a_matrix_.index_ = np.tile(np.arange(dimension, dtype=np.int32), count)
    program.a_matrix_.value_ = rows.reshape(-1)
    solver.passModel(program)
    return solver
