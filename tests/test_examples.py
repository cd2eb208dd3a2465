"""The demo: what it prints and draws. Its figures are checked by eye; here that they are there and not empty."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examples import demo
from matplotlib.image import imread

import banditto as bd
from banditto.report.ribbons import ribbon_figure, save_ribbons


def test_the_picture_shows_agreement_and_disagreement(tmp_path: Path) -> None:
    views = demo.views()
    assert [view.same for _, view in views] == [True, False]
    save_ribbons(tmp_path / "ribbons.png", views, demo.MEANS)
    pixels = imread(tmp_path / "ribbons.png")
    assert pixels.shape[1] == 1500
    red = np.array([0xD7, 0x26, 0x1E]) / 255
    reddish = np.asarray(np.all(np.abs(pixels[..., :3] - red) < 0.02, axis=-1))
    top, bottom = reddish[: pixels.shape[0] // 2 - 60], reddish[pixels.shape[0] // 2 :]
    assert not top.any()
    assert bottom.any()


def test_titles_say_what_happened() -> None:
    figure = ribbon_figure(demo.views(), demo.MEANS)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["RandomThreshold: every pull the same", "UCB1: the two labs part ways"]


@pytest.mark.parametrize("arms", [2, 9])
def test_any_number_of_arms_can_be_drawn(arms: int, tmp_path: Path) -> None:
    means = np.linspace(0.1, 0.9, arms).tolist()
    policy = bd.RandomThreshold(arms=arms, horizon=10**9, rho=0.2)
    save_ribbons(tmp_path / "x.png", [("x", bd.watch_pair(policy, bd.Bernoulli(means), points=50))], means)
    assert (tmp_path / "x.png").stat().st_size > 5000
