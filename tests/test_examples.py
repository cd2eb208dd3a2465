"""The demo and the ribbon picture. Figures are checked by eye; here that they are there and say what happened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import banditto as bd
from banditto.engine.watching import PairView
from banditto.report.ribbons import ribbon_figure, save_ribbons
from banditto.study_file import StudyFile

DEMO = StudyFile.load(str(Path(__file__).parent.parent / "examples" / "demo.toml"))


def views() -> list[tuple[str, PairView]]:
    built = DEMO.built()
    chosen = [(label, p) for label, p in zip(built.labels, built.policies, strict=True) if label != "thompson"]
    labels, policies = zip(*chosen, strict=True)
    compared = bd.compare(
        policies, built.environment, labels=labels, horizon=DEMO.horizon, pairs=1, seed=DEMO.seed or 0, curves=True
    )
    return [(row.label, row.view) for row in compared.entrants if row.view is not None]


def test_the_demo_shows_agreement_and_disagreement(tmp_path: Path) -> None:
    found = {label: view.same for label, view in views()}
    assert found["random-threshold"]
    assert found["certified-elimination"]
    assert not found["ucb1"]
    pair = [(label, view) for label, view in views() if label in ("random-threshold", "ucb1")]
    save_ribbons(tmp_path / "ribbons.png", pair, (0.5, 0.9, 0.8, 0.3))
    pixels = imread(tmp_path / "ribbons.png")
    assert pixels.shape[1] == 1500
    red = np.array([0xD7, 0x26, 0x1E]) / 255
    reddish = np.asarray(np.all(np.abs(pixels[..., :3] - red) < 0.02, axis=-1))
    top, bottom = reddish[: pixels.shape[0] // 2 - 60], reddish[pixels.shape[0] // 2 :]
    assert not top.any()
    assert bottom.any()
    titles = [axes.get_title(loc="left") for axes in ribbon_figure(pair, (0.5, 0.9, 0.8, 0.3)).axes]
    assert titles == ["random-threshold: every pull the same", "ucb1: the two labs part ways"]


@pytest.mark.parametrize("arms", [2, 9])
def test_any_number_of_arms_can_be_drawn(arms: int, tmp_path: Path) -> None:
    means = np.linspace(0.1, 0.9, arms).tolist()
    policy = bd.RandomThreshold(arms=arms, horizon=10**9, rho=0.2)
    save_ribbons(tmp_path / "x.png", [("x", bd.watch_pair(policy, bd.Bernoulli(means), points=50))], means)
    assert (tmp_path / "x.png").stat().st_size > 5000
