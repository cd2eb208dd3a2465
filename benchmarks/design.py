"""(i), (j), (k) Optimal design: against other ways, against BLAS, and on polytopes. About five minutes.

(i) The time for a 2-approximate design as a ratio to plain Frank-Wolfe from uniform weights (with BLAS, and with all
    arms in its core set) and to cvxpy with Clarabel where that finishes within a minute. (j) Fixed-order arithmetic
    against the same program with BLAS on one thread, wanted at most 2.5. (k) Polytopes: seconds, and linear programs.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import banditto as bd
from banditto.core.arrays import FloatArray
from benchmarks.measure import alternating, line, quick_asked, seconds

SIZES = ((1000, 10), (10_000, 20), (100_000, 30))
DIMENSIONS = (2, 5, 10, 20)
LIMIT = 60  # seconds for cvxpy
CVXPY = """
import numpy as np
from benchmarks.design import arms
from tests.geometry.oracles import d_optimal
d_optimal(arms({count}, {d}), 1e-4)
"""


def arms(count: int, d: int, kind: str = "normal") -> FloatArray:
    rng = np.random.default_rng(1)
    drawn = rng.standard_normal((count, d))
    if kind == "skewed":  # a few long arms, many short ones
        drawn *= np.geomspace(1.0, 1e-3, d) * rng.pareto(1.5, size=(count, 1))
    scaled: FloatArray = drawn / np.max(np.linalg.norm(drawn, axis=1))
    return scaled


def plain_frank_wolfe(points: FloatArray, target: float) -> int:
    """From uniform weights, towards the worst arm, until it is no worse than the target: textbook code, with BLAS."""
    count, d = points.shape
    weights = np.full(count, 1.0 / count)
    inverse = np.linalg.inv(points.T @ (weights[:, None] * points))
    norms = np.einsum("ki,ij,kj->k", points, inverse, points)
    steps = 0
    while norms.max() > target:
        worst = int(norms.argmax())
        step = (norms[worst] / d - 1.0) / (norms[worst] - 1.0)
        direction = inverse @ points[worst]
        scale = step / (1.0 - step + step * norms[worst])
        inverse = (inverse - scale * np.outer(direction, direction)) / (1.0 - step)
        norms = (norms - scale * (points @ direction) ** 2) / (1.0 - step)
        weights *= 1.0 - step
        weights[worst] += step
        steps += 1
    return steps


def against_others(sizes: tuple[tuple[int, int], ...]) -> None:
    for (count, d), kind in itertools.product(sizes, ("normal", "skewed")):
        points = arms(count, d, kind)
        own, plain = alternating(
            partial(bd.g_optimal_design, points, accuracy=1.0), partial(plain_frank_wolfe, points, 2.0 * d), 5
        )
        support = bd.g_optimal_design(points, accuracy=1.0).support
        figure = f"{1000 * own:.0f} ms, core set {support / d:.2f} d"
        line(f"(i) {count} x {d} {kind}, 2-approximate", figure, "core set <= 2 d", support <= 2 * d)
        steps = plain_frank_wolfe(points, 2.0 * d)
        told = f"{own / plain:.2f} ({1000 * plain:.0f} ms, {steps} steps)"
        line("    own time / plain Frank-Wolfe's from uniform weights", told, "reported", True)
        if kind == "normal":
            line("    own time / cvxpy's", cvxpy_ratio(count, d, own), "reported", True)


def cvxpy_ratio(count: int, d: int, own: float) -> str:
    """Another process, because it may need more memory or time than there is."""
    began = time.perf_counter()
    try:
        run_python(CVXPY.format(count=count, d=d), LIMIT)
    except subprocess.TimeoutExpired:
        return f"below {own / LIMIT:.1g} (not done in {LIMIT} s)"
    except subprocess.CalledProcessError:
        return "cvxpy failed"
    taken = (
        time.perf_counter() - began - seconds(lambda: run_python("import benchmarks.design, tests.geometry.oracles"))
    )
    return f"{own / taken:.2g} ({taken:.1f} s)"


def run_python(script: str, limit: float | None = None) -> None:
    root = Path(__file__).parent.parent
    subprocess.run([sys.executable, "-c", script], cwd=root, timeout=limit, check=True, capture_output=True)


def against_blas(sizes: tuple[tuple[int, int], ...]) -> None:
    from tests.geometry.blas_fixed_order import blas

    one_thread: Any = import_module("threadpoolctl").threadpool_limits
    for count, d in sizes:
        points = arms(count, d)

        def with_blas(points: FloatArray = points) -> None:
            with one_thread(1), blas():
                bd.g_optimal_design(points, accuracy=1.0)

        own, other = alternating(partial(bd.g_optimal_design, points, accuracy=1.0), with_blas, 9)
        figure = f"{own / other:.2f} ({1000 * own:.0f} / {1000 * other:.0f} ms)"
        line(f"(j) {count} x {d}, fixed order / BLAS on one thread", figure, "<= 2.5", own <= 2.5 * other)


def polytopes(dimensions: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    for d in dimensions:
        rows = rng.standard_normal((3 * d, d))
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        random = bd.Polytope(rows=np.vstack([rows, np.eye(d), -np.eye(d)]), bounds=[0.5] * (3 * d) + [1.0] * (2 * d))
        normal = rng.standard_normal(d)
        box = bd.Box.unit(d)
        cut = box.cut(normal, 0.8 * float(normal @ np.array(box.maximise(normal))))
        simplex = bd.Simplex(dimension=d).polytope()
        for name, polytope in (("random", random), ("box", box.polytope()), ("simplex", simplex), ("cut box", cut)):
            began = time.perf_counter()
            design = bd.g_optimal_design(polytope, accuracy=1.0)
            taken = time.perf_counter() - began
            how = "all vertices" if polytope.vertices() is not None else f"{polytope.program.solved:,} programs"
            figure = f"{taken:.2f} s, {how}, g/d <= {design.g_over_d:.2f}"
            line(f"(k) {name} polytope, d = {d}, {len(polytope.bounds)} rows", figure, "reported", True)


def main(quick: bool = False) -> None:
    sizes, dimensions = (SIZES[:1], DIMENSIONS[:2]) if quick else (SIZES, DIMENSIONS)
    against_others(sizes)
    against_blas(sizes)
    polytopes(dimensions)


if __name__ == "__main__":
    main(quick=quick_asked(__doc__))
