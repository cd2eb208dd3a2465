"""Action sets: the right maximiser, exactly one, from any start; certified norms; cuts; nets."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection

import banditto as bd
from banditto.core.arrays import FloatArray
from banditto.geometry.actions.action_reading import load_set, named_set, set_of
from banditto.geometry.actions.exact_simplex import Empty, integer_row, maximiser
from banditto.geometry.actions.filtering import settled
from banditto.geometry.actions.linear_program import LinearProgram
from banditto.geometry.actions.relaxation import norm_bound
from banditto.geometry.actions.sets import ConvexSet, Slab
from banditto.testing import ACTION_SET_CHECKS
from banditto.testing.action_contract import Check
from tests.geometry.design_digests import coins
from tests.geometry.oracles import ball_maximum


def random_polytope(d: int, seed: int = 0) -> bd.Polytope:
    rows = np.random.default_rng(seed).standard_normal((3 * d, d))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return bd.Polytope(rows=np.vstack([rows, np.eye(d), -np.eye(d)]), bounds=(0.5,) * (3 * d) + (1.0,) * (2 * d))


def cut_box(d: int) -> bd.Polytope:
    normal = coins(1, d, 40 + d)[0]
    box = bd.Box.unit(d)
    return box.cut(normal, 0.8 * float(normal @ np.array(box.maximise(normal))))


def cut_ball(d: int, cuts: int = 3, seed: int = 5) -> bd.Ball:
    ball = bd.Ball(dimension=d)
    for normal in coins(cuts, d, seed + d):
        high = float(normal @ np.array(ball.maximise(normal)))
        low = float(normal @ np.array(ball.maximise(-normal)))
        ball = ball.cut(normal, low + 0.55 * (high - low))
    return ball


@dataclass(frozen=True)
class Ellipse:
    """A user's own set: an axis-parallel ellipsoid, by stretching a ball."""

    ball: bd.Ball
    stretch: tuple[float, ...]

    @property
    def dimension(self) -> int:
        return self.ball.dimension

    def maximise(self, direction: Any) -> tuple[float, ...]:
        action = self.ball.maximise([s * x for s, x in zip(self.stretch, direction, strict=True)])
        return tuple(s * x for s, x in zip(self.stretch, action, strict=True))

    def cut(self, normal: Any, least: float) -> Ellipse:
        return Ellipse(self.ball.cut([s * x for s, x in zip(self.stretch, normal, strict=True)], least), self.stretch)


SETS: dict[str, bd.ActionSet] = {
    "ball 1": bd.Ball(dimension=1),
    "ball 5": bd.Ball(dimension=5, radius=0.7),
    "cut ball 2": cut_ball(2),
    "cut ball 6": cut_ball(6),
    "box 1": bd.Box(low=(-0.5,), high=(0.25,)),
    "box 4": bd.Box(low=(-0.5, 0.0, 0.1, -1e-6), high=(0.25, 0.3, 0.2, 1e-6)),
    "flat box": bd.Box(low=(-0.5, 0.0, 0.3), high=(0.25, 0.0, 0.3)),
    "box 14": bd.Box.unit(14),
    "simplex 1": bd.Simplex(dimension=1),
    "simplex 5": bd.Simplex(dimension=5),
    "cut simplex": bd.Simplex(dimension=4).cut((1.0, 0.5, 0.0, -0.5), 0.25),
    "cut box 2": cut_box(2),
    "cut box 13": cut_box(13),
    "polytope 2": random_polytope(2),
    "polytope 5": random_polytope(5),
    "polytope 9": random_polytope(9),
    "point": bd.Polytope(rows=[[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], bounds=(0.5, -0.5, 0.25, -0.25)),
    "segment": bd.Polytope(rows=[[1.0, 2.0], [-1.0, -2.0], [1.0, 0.0], [-1.0, 0.0]], bounds=(1.0, -1.0, 0.5, 0.5)),
    "own": Ellipse(bd.Ball(dimension=3), (1.0, 0.5, 1e-3)),
}  # fmt: skip


@pytest.mark.parametrize("check", ACTION_SET_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", SETS)
def test_contract(name: str, check: Check) -> None:
    if check.__name__ == "check_cuts" and name == "point":
        pytest.skip("a point cannot be cut in half")
    assert isinstance(SETS[name], bd.ActionSet)
    check(SETS[name])


@dataclass(frozen=True)
class Wrong(Ellipse):
    """Forgets to stretch its answer."""

    def maximise(self, direction: Any) -> tuple[float, ...]:
        return self.ball.maximise([s * x for s, x in zip(self.stretch, direction, strict=True)])


def test_the_contract_refuses_a_wrong_set() -> None:
    wrong = Wrong(bd.Ball(dimension=3).cut((1.0, 0.2, 0.3), 0.3), (1.0, 0.5, 0.1))
    refused = 0
    for check in ACTION_SET_CHECKS:
        try:
            check(wrong)
        except AssertionError:
            refused += 1
    assert refused >= 2


POLYTOPES = {
    f"{name} {d}": polytope
    for d in (2, 5, 10, 20)
    for name, polytope in (
        ("random", random_polytope(d)),
        ("box", bd.Box.unit(d).polytope()),
        ("simplex", bd.Simplex(dimension=d).polytope()),
        ("cut", cut_box(d)),
    )
}


@pytest.mark.slow
@pytest.mark.parametrize("name", POLYTOPES)
def test_linear_maximisers_agree_with_linprog_from_any_start(name: str) -> None:
    """30 objectives each, a third of them with ties (entries -1, 0 and 1)."""
    polytope = POLYTOPES[name]
    d = polytope.dimension
    rng = np.random.default_rng(d)
    fresh = LinearProgram(polytope.rows, np.array(polytope.bounds))
    for k in range(30):
        objective = rng.standard_normal(d) if k % 3 else rng.integers(-1, 2, size=d).astype(np.float64)
        vertex = polytope.program.maximise(objective)  # warm
        assert fresh.maximise(objective, cold=True).point == vertex.point
        reached = float(sum(Fraction(c) * x for c, x in zip(objective.tolist(), vertex.point, strict=True)))
        other = linprog(-objective, A_ub=polytope.rows, b_ub=polytope.bounds, bounds=(None, None))
        assert math.isclose(reached, -float(other.fun or 0.0), rel_tol=1e-7, abs_tol=1e-7)
        for half in fresh.rows:  # exactly inside
            assert sum(a * x for a, x in zip(half.row, vertex.point, strict=True)) <= half.bound
        action = polytope.maximise(objective)
        assert action == tuple(float(x) for x in vertex.point)


def test_the_vertex_is_the_first_maximiser() -> None:
    """Against all vertices of polytopes with many ties, from any proposed basis."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 5))
        rows = np.vstack([np.eye(d), -np.eye(d), rng.integers(-1, 2, size=(4, d))])
        rows = rows[np.any(rows != 0, axis=1)].astype(np.float64)
        polytope = bd.Polytope(rows=rows, bounds=[float(b) for b in rng.integers(1, 4, size=len(rows))])
        points = brute_force(polytope)
        for _ in range(6):
            objective = rng.integers(-1, 2, size=d)
            best = max(points, key=lambda p: (value(objective, p), value(range(d, 0, -1), p), p))
            for _ in range(4):
                proposed = [int(k) for k in rng.choice(len(rows), size=d, replace=False)]
                found = maximiser(polytope.program.rows, [10] * d, proposed, [int(c) for c in objective])
                assert found.point == best


def value(objective: Any, point: tuple[Fraction, ...]) -> Fraction:
    return sum((int(c) * x for c, x in zip(objective, point, strict=True)), Fraction(0))


def brute_force(polytope: bd.Polytope) -> set[tuple[Fraction, ...]]:
    """All vertices, from all d rows that meet in a point."""
    rows = [integer_row(row.tolist(), bound, 0) for row, bound in zip(polytope.rows, polytope.bounds, strict=True)]
    points = set()
    for chosen in itertools.combinations(rows, polytope.dimension):
        matrix = [[Fraction(value) for value in half.row] for half in chosen]
        point = solution(matrix, [Fraction(half.bound) for half in chosen])
        if point and all(sum(a * x for a, x in zip(half.row, point, strict=True)) <= half.bound for half in rows):
            points.add(point)
    return points


def solution(matrix: list[list[Fraction]], right: list[Fraction]) -> tuple[Fraction, ...] | None:
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        found = next((k for k in range(i, len(rows)) if rows[k][i]), None)
        if found is None:
            return None
        rows[i], rows[found] = rows[found], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return tuple(row[-1] for row in rows)


def test_floats_settle_only_what_exact_arithmetic_confirms() -> None:
    settled_ones = 0
    for d in (5, 9, 14):
        polytope = random_polytope(d, seed=d)
        program = polytope.program
        for objective in np.vstack([coins(40, d, d), np.sign(coins(10, d, d))]):
            vertex = program.maximise(objective)
            fast = settled(program.matrix, program.bounds, program.rows, vertex.basis, objective)
            if fast is not None:
                settled_ones += 1
                assert fast == tuple(float(x) for x in vertex.point)
            # a basis that is not optimal is never believed
            wrong = program.maximise(-objective).basis
            assert settled(program.matrix, program.bounds, program.rows, wrong, objective) is None
    assert settled_ones > 100


@pytest.mark.parametrize("name", ["random 2", "random 5", "box 2", "box 5", "cut 5", "cut 10", "simplex 5"])
def test_vertices_are_all_there(name: str) -> None:
    polytope = POLYTOPES[name]
    vertices = polytope.vertices()
    assert vertices is not None
    if polytope.dimension <= 5 and len(polytope.bounds) <= 16:
        assert {tuple(v) for v in vertices} == {tuple(map(float, p)) for p in brute_force(polytope)}
    elif not name.startswith("simplex"):
        inside = np.mean(vertices, axis=0)
        other = HalfspaceIntersection(np.c_[polytope.rows, -np.array(polytope.bounds)], inside).intersections
        assert len(vertices) == len({tuple(np.round(v, 7)) for v in other})


def test_degenerate_vertices_are_found_too() -> None:
    """A pyramid: four faces meet at its tip."""
    rows = [[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, -1.0, 1.0], [0.0, 0.0, -1.0]]
    vertices = bd.Polytope(rows=rows, bounds=(1.0, 1.0, 1.0, 1.0, 0.0)).vertices()
    assert vertices is not None
    assert {tuple(v) for v in vertices} == {(0, 0, 1), (1, 1, 0), (1, -1, 0), (-1, 1, 0), (-1, -1, 0)}


def largest_norm(design: bd.Design, actions: FloatArray) -> float:
    core = np.array(design.actions)
    inverse = np.linalg.inv((core * np.array(design.weights)[:, None]).T @ core)
    return float(np.max(np.einsum("ki,ij,kj->k", actions, inverse, actions)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name.endswith(" 20") else []) for name in POLYTOPES]
)
def test_the_certified_g_of_a_polytope(name: str) -> None:
    """Never below what any vertex shows, and right where all vertices are known."""
    polytope = POLYTOPES[name]
    design = bd.g_optimal_design(polytope, accuracy=1.0)
    vertices = polytope.vertices()
    if vertices is not None:
        assert math.isclose(design.g, largest_norm(design, vertices), rel_tol=1e-6)
        assert design.target_met
    else:
        rng = np.random.default_rng(1)
        some = np.array([polytope.maximise(rng.standard_normal(polytope.dimension)) for _ in range(200)])
        assert largest_norm(design, some) <= design.g
        assert design.maximisations > 0
    assert design.target_met == (design.g <= 2 * design.dimension)


def test_designs_with_and_without_the_list_of_vertices_agree() -> None:
    """The relaxation bounds what the vertices show, and is close for symmetric sets."""
    for polytope, factor in ((bd.Box.unit(6).polytope(), 1.6), (random_polytope(5), 3.0), (cut_box(8), 5.0)):
        vertices = polytope.vertices()
        assert vertices is not None
        design = bd.g_optimal_design(Plain(polytope), accuracy=0.2)
        true = largest_norm(design, vertices)
        assert true <= design.g <= factor * true


@dataclass(frozen=True)
class Plain:
    """A polytope that shows nothing but its maximisers."""

    inside: bd.Polytope

    @property
    def dimension(self) -> int:
        return self.inside.dimension

    def maximise(self, direction: Any) -> tuple[float, ...]:
        return self.inside.maximise(direction)

    def cut(self, normal: Any, least: float) -> Plain:
        return Plain(self.inside.cut(normal, least))


def test_the_relaxation_bounds_norms_over_boxes_and_caps() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 9))
        root = rng.standard_normal((d, d))
        factor = np.linalg.inv(np.linalg.cholesky(root @ root.T / d + 0.1 * np.eye(d)))
        low, high = np.sort(rng.uniform(-1.0, 1.0, size=(2, d)), axis=0)
        slabs = [Slab(tuple(row), a, b) for row, a, b in zip(np.eye(d).tolist(), low, high, strict=True)]
        corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
        true = float(np.max(np.sum((corners @ factor.T) ** 2, axis=1)))
        bound = norm_bound(factor, slabs, None)
        assert true <= bound <= 2.0 * true
        simple = sum(max(abs(corners @ row)) ** 2 for row in factor)  # the largest squares of d functions, added up
        own = [Slab(tuple(row), float(np.min(corners @ row)), float(np.max(corners @ row))) for row in factor]
        assert norm_bound(factor, own, None) <= simple * 1.01
        assert norm_bound(factor, slabs[:-1], None) == math.inf  # unbounded: no bound is made up
        around = rng.standard_normal((4000, d))
        around[:, 0] = 0.0
        heights = rng.uniform(0.8, 1.0, size=(4000, 1))
        points = around / np.linalg.norm(around, axis=1)[:, None] * np.sqrt(1 - heights**2)
        points[:, :1] = heights
        capped = norm_bound(factor, [Slab(tuple(np.eye(d)[0].tolist()), 0.8, 1.0)], np.ones(d))
        assert float(np.max(np.sum((points @ factor.T) ** 2, axis=1))) <= capped


def test_cut_balls_agree_with_an_independent_solver() -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 6))
        ball = cut_ball(d, cuts=int(rng.integers(1, 5)), seed=100 * seed)
        for direction in (rng.standard_normal(d), np.eye(d)[0], -np.array(ball.cuts[0].normal)):
            action = np.array(ball.maximise(direction))
            assert math.isclose(float(direction @ action), ball_maximum(ball, direction), abs_tol=1e-6)
            assert float(np.linalg.norm(action)) <= 1 + 1e-9


def test_a_ball_that_is_cut_to_a_point_or_a_slice() -> None:
    touched = bd.Ball(dimension=2).cut((1.0, 0.0), 1.0)
    for direction in ((1.0, 1.0), (0.0, 1.0), (-1.0, 0.5), (0.0, 0.0)):
        assert np.allclose(touched.maximise(direction), (1.0, 0.0), atol=1e-5)
    half = bd.Ball(dimension=3).cut((0.0, 0.0, -1.0), 0.0)
    assert half.maximise((0.0, 0.0, 1.0)) == (1.0, 0.0, 0.0)  # all of a disc: the lexicographically largest action
    assert bd.Ball(dimension=3).maximise((0.0, 0.0, 0.0)) == (1.0, 0.0, 0.0)


def test_balls_with_nearly_parallel_cuts_and_directions() -> None:
    """Where floats would need a tolerance: the answer is feasible, and as good as a slightly tighter set's."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 5))
        normal = rng.standard_normal(d)
        normal /= np.linalg.norm(normal)
        near = normal + 10.0 ** rng.uniform(-16, -5) * rng.standard_normal(d)
        least = float(rng.uniform(-0.5, 0.6))
        ball = (
            bd.Ball(dimension=d).cut(normal, least).cut(near, least).cut(-normal, -least - 10.0 ** rng.uniform(-8, -1))
        )
        shrunk = bd.Ball(dimension=d).cut(normal, least + 1e-9).cut(near, least + 1e-9).cut(*_far_side(ball))
        for direction in (rng.standard_normal(d), -near, near, -normal, np.eye(d)[0]):
            action = np.array(ball.maximise(direction))
            assert np.linalg.norm(action) <= 1 + 1e-12
            assert all(float(np.array(cut.normal) @ action) >= cut.least - 1e-12 for cut in ball.cuts)
            assert float(direction @ action) >= float(direction @ np.array(shrunk.maximise(direction))) - 1e-8


def _far_side(ball: bd.Ball) -> tuple[tuple[float, ...], float]:
    return ball.cuts[-1].normal, ball.cuts[-1].least


def test_many_cuts_are_no_trouble() -> None:
    """23 cuts in ten dimensions, and one more that leaves nothing."""
    rng = np.random.default_rng(0)
    normals = rng.standard_normal((24, 10))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    inside = rng.standard_normal(10)
    inside /= 1.5 * np.linalg.norm(inside)
    ball = bd.Ball(dimension=10)
    for normal in normals[:-1]:
        ball = ball.cut(normal, float(normal @ inside) - 1e-3)
    assert math.isclose(
        float(normals[0] @ np.array(ball.maximise(normals[0]))), ball_maximum(ball, normals[0]), abs_tol=1e-6
    )
    with pytest.raises(bd.InvalidArgument, match="empty set"):
        ball.cut(normals[-1], float(normals[-1] @ inside) + 1.5)


@pytest.mark.parametrize("d", [3, 5, 10])
def test_thin_caps_are_certified(d: int) -> None:
    """What elimination leaves of a ball: the part within 1e-4 of its top."""
    design = bd.g_optimal_design(bd.Ball(dimension=d).cut(np.eye(d)[0], 0.9999), accuracy=0.5)
    assert design.target_met


def test_equations_and_rows_of_any_size() -> None:
    """Sets with equations, whose slabs have no width, and rows that a solver would take for zeros or for infinity."""
    cube = bd.Box(low=(0.0,) * 12, high=(1.0,) * 12).polytope()
    halves = cube.cut((1.0,) * 12, 6.0).cut((-1.0,) * 12, -6.0)
    design = bd.g_optimal_design(halves, accuracy=1.0)
    some = np.array([halves.maximise(direction) for direction in coins(100, 12, 1)])
    assert largest_norm(design, some) <= design.g <= 12 * design.dimension
    for size in (1e-12, 1e12):
        rows = np.vstack([np.eye(2), -np.eye(2)]) * size
        assert bd.Polytope(rows=rows, bounds=[0.5 * size] * 4).maximise((1.0, -1.0)) == (0.5, -0.5)
    steep = bd.Polytope(
        rows=[[-3600.0, -0.2], [980.0, -0.067], [5500.0, -0.012], [0.0, 0.074]], bounds=(-0.67, 0.41, 1.9, 0.86)
    )
    assert steep.maximise((0.0, 1.0))[1] == 0.86 / 0.074
    tiny = bd.Polytope(rows=np.vstack([np.eye(2), -np.eye(2)]), bounds=[1e-12] * 4)
    assert tiny.maximise((1.0, -1.0)) == (1e-12, -1e-12)


def test_finite_actions() -> None:
    arms = bd.FiniteActions([[0.5, 0.0], [0.0, 0.5], [0.5, 0.0], [-0.5, 0.25]])
    assert (len(arms), arms.dimension, arms.arms) == (4, 2, (0, 1, 2, 3))
    assert arms.maximise((1.0, 0.0)) == (0.5, 0.0)
    left = arms.cut((0.0, 1.0), 0.25)
    assert left.arms == (1, 3)
    assert left.cut((1.0, 0.0), 0.0).arms == (1,)
    assert bd.g_optimal_design(left).arms == (1, 3)
    assert bd.g_optimal_design(left.cut((1.0, 0.0), 0.0)).arms == (1,)
    assert left == arms.kept([1, 3])
    assert left != arms
    with pytest.raises(bd.InvalidArgument, match="length 2 of action 0"):
        bd.FiniteActions([[2.0, 0.0]])
    assert bd.FiniteActions([[2.0, 0.0], [0.0, 1.0]], normalise=True).to_array().tolist() == [[1.0, 0.0], [0.0, 0.5]]
    assert len(bd.FiniteActions([[1.0 + 1e-10, 0.0]])) == 1
    assert bd.FiniteActions([[0.0, 0.0]], normalise=True).maximise((1, 1)) == (0.0, 0.0)


@pytest.mark.parametrize("radius", [0.5, 0.2, 0.07])
@pytest.mark.parametrize("name", ["ball 1", "box 1", "cut ball 2", "cut box 2", "polytope 2", "segment", "point"])
def test_nets_cover(name: str, radius: float) -> None:
    actions = SETS[name]
    points = bd.net(actions, radius)
    rng = np.random.default_rng(0)
    corners = np.array([actions.maximise(rng.standard_normal(actions.dimension)) for _ in range(60)])
    picked = corners[rng.integers(0, 60, size=(2000, 3))]  # (sample, corner, feature)
    mixed = np.einsum("sc,scf->sf", rng.dirichlet(np.ones(3), size=2000), picked)
    distances = np.linalg.norm(np.vstack([corners, mixed])[:, None, :] - points[None, :, :], axis=2)
    assert float(np.max(np.min(distances, axis=1))) <= radius
    for direction in corners:  # and it lies in the set
        best = float(direction @ np.array(actions.maximise(direction)))
        assert float(np.max(points @ direction)) <= best + 1e-9
    assert len(points) <= (2.0 / radius + 2) ** actions.dimension * 2


def test_nets_that_are_refused_and_nets_of_finite_sets() -> None:
    with pytest.raises(bd.InvalidArgument, match="^dimension: got 3"):
        bd.net(bd.Ball(dimension=3), 0.1)
    with pytest.raises(bd.InvalidArgument, match="^radius: got 0"):
        bd.net(bd.Ball(dimension=2), 0)
    with pytest.raises(bd.InvalidArgument, match="^radius: got 1e-09"):
        bd.net(bd.Ball(dimension=2), 1e-9)
    with pytest.raises(bd.InvalidArgument, match="^radius: got 1"):
        bd.net(bd.Box(low=(0.0, -1e9), high=(1e-3, 1e9)), 1.0)
    arms = bd.FiniteActions([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
    assert bd.net(arms, 0.1).tolist() == arms.to_array().tolist()


@pytest.mark.parametrize("name", [name for name, actions in SETS.items() if isinstance(actions, ConvexSet)])
def test_sets_are_read_back_from_what_they_say(name: str, tmp_path: Path) -> None:
    actions = SETS[name]
    assert isinstance(actions, ConvexSet)
    path = tmp_path / "set.json"
    path.write_text(json.dumps(actions.to_dict()))
    again = load_set(path)
    assert again == actions
    assert bd.g_optimal_design(again, accuracy=1).digest == bd.g_optimal_design(actions, accuracy=1).digest


@pytest.mark.parametrize(("make", "said"), [
    (lambda: bd.Polytope(rows=[[1.0, 0.0], [0.0, 1.0]], bounds=(1.0, 1.0)), "(feature 0 is not bounded from below)"),
    (lambda: bd.Polytope(rows=[[1.0, 0.0], [-1.0, 0.0]], bounds=(1.0, 1.0)), "unbounded set (feature 1 is"),
    (lambda: bd.Polytope(rows=[[0.0, 0.0]], bounds=(1.0,)), "not all 0"),
    (lambda: bd.Ball(dimension=2).cut((1e-320, 0.0), 0.0), "normal: got numbers up to"),
    (lambda: bd.net(bd.Ball(dimension=2), 5e-324), "radius: got 5e-324"),
    (lambda: bd.Polytope(rows=[[1.0], [-1.0]], bounds=(1.0, -2.0)), "empty set (no action satisfies all rows)"),
    (lambda: bd.Polytope(rows=[[1.0], [-1.0]], bounds=(1.0, -1.0 - 2.0**-50)), "empty set (no action"),
    (lambda: bd.Polytope(rows=[[1.0], [-1.0]], bounds=(1.0,)), "bounds: got 1 numbers, allowed: 2, one per row"),
    (lambda: bd.Polytope(rows=[[1.0], [math.nan]], bounds=(1.0, 1.0)), "rows: got nan in row 1, column 0"),
    (lambda: bd.Box.unit(3).cut((1.0, 1.0, 1.0), 5.0), "empty set"),
    (lambda: bd.Simplex(dimension=3).cut((1.0, 1.0, 1.0), 1.5), "empty set"),
    (lambda: bd.Ball(dimension=3).cut((1.0, 1.0, 1.0), 5.0), "empty set"),
    (lambda: bd.Ball(dimension=2).cut((1.0, 0.0), 0.8).cut((-1.0, 0.1), -0.2), "empty set"),
    (lambda: bd.Ball(dimension=2).cut((0.0, 0.0), 0.1), "normal: got all zeros"),
    (lambda: bd.Ball(dimension=2).cut((1.0,), 0.1), "normal: got 1 numbers, allowed: 2 numbers"),
    (lambda: bd.Ball(dimension=2).cut((1.0, 0.0), math.nan), "least: got nan"),
    (lambda: bd.Ball(dimension=2).maximise((1.0, 0.0, 0.0)), "direction: got 3 numbers"),
    (lambda: bd.Ball(dimension=0), "dimension: got 0"),
    (lambda: bd.Ball(dimension=2, radius=0), "radius: got 0.0"),
    (lambda: bd.Simplex(dimension=501), "dimension: got 501"),
    (lambda: bd.Box(low=(0.0,), high=(1.0, 2.0)), "high: got 2 numbers"),
    (lambda: bd.Box(low=(0.0, 1.0), high=(1.0, 0.5)), "high: got 0.5 for feature 1, allowed: at least low"),
    (lambda: set_of({"type": "cube"}), "type 'cube'"),
    (lambda: set_of([1]), "type None"),
    (lambda: set_of({"type": "ball"}), "no keys"),
    (lambda: set_of({"type": "ball", "dimension": 2, "colour": 1}), "keys colour, dimension"),
    (lambda: set_of({"type": "box", "low": 1, "high": [2]}), "low: got 1, allowed: a list"),
    (lambda: set_of({"type": "ball", "dimension": 2, "cuts": [{"normal": 3, "least": 1}]}), "objects with a normal"),
    (lambda: named_set("cube", 3), "action_set: got cube"),
    (lambda: load_set("nowhere.json"), "action_set: got nowhere.json"),
    (lambda: load_set(__file__), "a JSON file"),
])  # fmt: skip
def test_refusals(make: Any, said: str) -> None:
    with pytest.raises(bd.InvalidArgument) as error:
        make()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_exact_method_proves_emptiness_by_itself() -> None:
    rows = [integer_row([1.0], 1.0, 0), integer_row([-1.0], -2.0, 1)]
    with pytest.raises(Empty):
        maximiser(rows, [10], [], [1])


def test_numbers_of_any_size_are_exact() -> None:
    """Rows a thousandth of a bit from parallel: floats cannot tell the vertices apart, fractions can."""
    tilt = 2.0**-45
    rows = [[1.0, 1.0], [1.0, 1.0 + tilt], [-1.0, 0.0], [0.0, -1.0]]
    vertex = bd.Polytope(rows=rows, bounds=(1.0, 1.0 + tilt / 2, 0.0, 0.0)).vertex((1.0, 1.0))
    assert vertex.point == (Fraction(1), Fraction(0))
    steep = bd.Polytope(rows=rows, bounds=(1.0, 1.0 + tilt / 2, 0.0, 0.0)).vertex((1.0, 1.0 + 2.0**-46))
    assert steep.point == (Fraction(1, 2), Fraction(1, 2))
