"""Other people's solvers, for comparison; cvxpy is not typed, so it is `Any` here and nowhere else."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from banditto.core.arrays import FloatArray
from banditto.geometry.actions.ball import Ball

cvxpy: Any = import_module("cvxpy")


def d_optimal(arms: FloatArray, tolerance: float = 1e-10) -> tuple[float, float]:
    """log det V and g of the D-optimal design, by Clarabel's interior-point method."""
    weights = cvxpy.Variable(len(arms), nonneg=True)
    moment = arms.T @ cvxpy.multiply(cvxpy.reshape(weights, (len(arms), 1), order="C"), arms)
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.log_det(moment)), [cvxpy.sum(weights) == 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may stop short of its tolerance, which the comparisons do not need
        problem.solve(solver="CLARABEL", tol_gap_abs=tolerance, tol_gap_rel=tolerance, tol_feas=tolerance)
    values = np.maximum(weights.value, 0.0)
    inverse = np.linalg.inv((arms * (values / values.sum())[:, None]).T @ arms)
    return float(problem.value), float(np.max(np.einsum("ki,ij,kj->k", arms, inverse, arms)))


def ball_maximum(ball: Ball, direction: FloatArray) -> float:
    """The largest <direction, a> over a ball with cuts."""
    variable = cvxpy.Variable(ball.dimension)
    limits = [np.array(cut.normal) @ variable >= cut.least for cut in ball.cuts]
    problem = cvxpy.Problem(cvxpy.Maximize(direction @ variable), [cvxpy.norm(variable) <= ball.radius, *limits])
    problem.solve(solver="CLARABEL")
    return float(problem.value)
