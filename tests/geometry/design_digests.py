"""Prints the digests of designs, for comparison between machines: `python design_digests.py [blas]`.

The instances are made of integers or of elementary operations, so that they are themselves the same everywhere.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np

import banditto as bd
from banditto.chance.coins import Coins
from banditto.core.arrays import FloatArray
from banditto.numbers.fixed_order import inner

sys.path.insert(0, str(Path(__file__).parents[2]))


def coins(count: int, dimension: int, seed: int) -> FloatArray:
    """Uniform numbers in [-1, 1), the same on every machine."""
    words = [Coins(seed, 0, count).uniform("instance", feature)[:, 0] for feature in range(dimension)]
    return np.array(words).T * 2.0 - 1.0


def instances() -> dict[str, FloatArray]:
    out: dict[str, FloatArray] = {}
    for d in (2, 3, 4, 5, 6, 7, 8, 10):
        out[f"cube {d}"] = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    for d, values in ((2, 7), (3, 5), (4, 4), (5, 3), (6, 3)):
        out[f"grid {values}^{d}"] = np.array(list(itertools.product(range(values), repeat=d)), dtype=np.float64)
        out[f"centred grid {values}^{d}"] = out[f"grid {values}^{d}"] - (values - 1) / 2
        out[f"sphere of grid {values}^{d}"] = _unit(out[f"centred grid {values}^{d}"])
    for d in (3, 5, 8, 12):
        pairs = list(itertools.combinations(range(d), 2))
        out[f"pairs {d}"] = np.array([[float(j in pair) for j in range(d)] for pair in pairs])
        out[f"differences {d}"] = np.array([[float(j == a) - float(j == b) for j in range(d)] for a, b in pairs])
        out[f"one-hot with intercept {d}"] = np.hstack([np.eye(d), np.ones((d, 1))])
    for seed, (count, d) in enumerate(
        [(20, 2), (50, 5), (200, 8), (400, 10), (1000, 12), (300, 20), (2000, 6), (12_000, 4)]
    ):
        drawn = coins(count, d, seed)
        out[f"uniform {count} x {d}"] = drawn
        out[f"signs {count} x {d}"] = np.where(drawn < 0.0, -1.0, 1.0)
        out[f"ternary {count} x {d}"] = np.trunc(drawn * 1.5)
        out[f"sphere {count} x {d}"] = _unit(drawn)
    return out


def sets() -> dict[str, bd.ActionSet]:
    out: dict[str, bd.ActionSet] = {}
    for d in (2, 5, 13):
        normals = coins(3, d, 100 + d)
        ball: bd.Ball = bd.Ball(dimension=d)
        polytope = bd.Simplex(dimension=d).polytope()
        for normal in normals:
            high = inner(normal, np.array(ball.maximise(normal)))
            low = inner(normal, np.array(ball.maximise(-normal)))
            ball = ball.cut(normal, low + 0.6 * (high - low))
        polytope = polytope.cut(normals[0], float(np.mean(normals[0])))
        out |= {f"box {d}": bd.Box.unit(d), f"cut ball {d}": ball, f"cut simplex {d}": polytope}
    for d in (3, 6, 9):
        rows = np.vstack([_unit(coins(3 * d, d, 200 + d)), np.eye(d), -np.eye(d)])
        out[f"polytope {d}"] = bd.Polytope(rows=rows, bounds=(0.5,) * (3 * d) + (1.0,) * (2 * d))
    return out


def _unit(points: FloatArray) -> FloatArray:
    squares = np.zeros(points.shape[0])
    for feature in points.T:
        squares += feature * feature
    lengths = np.sqrt(np.where(squares == 0.0, 1.0, squares))
    return points / lengths[:, None]


def digests(every: int = 1) -> dict[str, str]:
    """By name: what decides a plan, the certified g included; of all sets or of every so-manieth."""
    out = {}
    for name, actions in list((instances() | sets()).items())[::every]:
        for accuracy in (1.0, 0.01) if isinstance(actions, np.ndarray) else (1.0,):
            design = bd.g_optimal_design(actions, accuracy=accuracy)
            out[f"{name}, {accuracy}"] = f"{design.digest} {design.g.hex()}"
    return out


if __name__ == "__main__":
    every = 4 if "few" in sys.argv else 1
    if "blas" in sys.argv:
        from tests.geometry.blas_fixed_order import blas

        with blas():
            print(json.dumps(digests(every)))
    else:
        print(json.dumps(digests(every), indent=1))
