"""Figures of an experiment's page: every look, odd names, and colours that arms do not share with policies."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from banditto.report.colours import ARM_COLOURS, OTHERS
from banditto.report.standing_figures import MOST_ARMS, PlayedBatch, SeenSide, arm_colour, means_figure, play_figure
from banditto.report.style import DARK, LIGHT, LOOKS, Look, as_svg, drawn_in

ODD = ["$x$", "_private", "<script>", "x" * 200, "שלום"]


@pytest.mark.parametrize("look", LOOKS.values(), ids=["-".join(key) for key in LOOKS])
def test_figures_are_drawn_in_every_look(look: Look) -> None:
    batches = [PlayedBatch((5,) * 5, True), PlayedBatch((7, 0, 7, 0, 0), True), PlayedBatch((9, 0, 0, 0, 0), False)]
    sides = [SeenSide(lab, dict.fromkeys(ODD, 0.5) | {ODD[0]: 0.6}) for lab in ("here", "$there")]
    with drawn_in(look):
        bars = play_figure(ODD, batches, look)
        means = means_figure(sides, {"commit": 0.05}, look, percent=True)
        drawn = [as_svg(bars), as_svg(means)]
    assert all(text.startswith(b"<?xml") and b"<script" not in text for text in drawn)
    assert len(bars.axes[0].patches) == 5 + 2 + 1
    points = [line for axes in means.axes for line in axes.lines if line.get_marker() == "o"]
    assert len(points) == 2 * len(ODD)
    cuts = [line for axes in means.axes for line in axes.lines if line.get_color() == look.theme.alarm]
    assert [line.get_xdata()[0] for line in cuts] == [pytest.approx(55.0)] * 2  # type: ignore[index]  # of an axvline


def test_many_arms_stay_one_figure() -> None:
    names = [str(arm) for arm in range(200)]
    figure = play_figure(names, [PlayedBatch((3,) * 200, True)])
    assert len(figure.axes[0].patches) == MOST_ARMS
    assert arm_colour(6) == ARM_COLOURS[6]
    assert arm_colour(7) == arm_colour(199) == OTHERS


def test_no_arm_has_the_colour_of_a_policy_or_of_another_arm() -> None:
    """By their distance in CIELAB, where 2.3 can just be seen."""
    for policy in (*LIGHT.policies, *DARK.policies):
        assert min(np.linalg.norm(lab(arm) - lab(policy)) for arm in ARM_COLOURS) > 20.0, policy
    for one, two in combinations(ARM_COLOURS, 2):
        assert np.linalg.norm(lab(one) - lab(two)) > 25.0, (one, two)


def lab(colour: str) -> np.ndarray:
    """A colour in CIELAB, under D65."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (np.cbrt(t) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])
