"""The picture of a design in two dimensions: actions, core set, and the ellipse that they determine.

{a : a' V^-1 a <= g} is the smallest ellipse around 0 that holds all actions, when the design is optimal; it touches the
core set and nothing else.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.geometry.actions.sets import ActionSet
from banditto.geometry.design.design_result import Design
from banditto.report.style import LIGHT, Look, new_figure

PLAIN = Look(LIGHT, 6.4)
_DIRECTIONS = 360


def design_figure(design: Design, actions: FloatArray | ActionSet, look: Look = PLAIN) -> Figure:
    """Of actions with two features."""
    features = actions.shape[1] if isinstance(actions, np.ndarray) else actions.dimension
    if features != 2 or design.dimension != 2:
        given = f"{features} features, of which {design.dimension} are spanned"
        raise InvalidArgument("plot", given, "a design of actions that span two features")
    figure = new_figure(look, look.width * 0.92)
    axes = figure.subplots()
    draw_design(axes, design, actions, look)
    title = f"g/d = {design.g_over_d:.4g}, {design.support} actions in the core set"
    axes.set_title(title, fontsize=10, loc="left")
    handles, labels = axes.get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=1 if look.narrow else 3, frameon=False)
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([40.0])
    return figure


def draw_design(axes: Axes, design: Design, actions: FloatArray | ActionSet, look: Look = PLAIN) -> None:
    """Actions, ellipse and core set."""
    _actions(axes, actions, look)
    _ellipse(axes, design, look)
    core = np.array(design.actions)
    sizes = 30.0 + 500.0 * np.array(design.weights)
    axes.scatter(core[:, 0], core[:, 1], s=sizes, color=look.theme.policies[1], zorder=4, label="core set, by weight")
    axes.axhline(0.0, color=look.theme.faint, linewidth=0.6, zorder=0)
    axes.axvline(0.0, color=look.theme.faint, linewidth=0.6, zorder=0)
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("feature 1")
    axes.set_ylabel("feature 2")


def _actions(axes: Axes, actions: FloatArray | ActionSet, look: Look) -> None:
    colour = look.theme.policies[0]
    if isinstance(actions, np.ndarray):
        axes.scatter(actions[:, 0], actions[:, 1], s=9.0, color=colour, alpha=0.6, linewidths=0, label="actions")
        return
    angles = np.linspace(0.0, 2.0 * math.pi, _DIRECTIONS, endpoint=False)
    outline = np.array([actions.maximise((math.cos(angle), math.sin(angle))) for angle in angles])
    axes.fill(outline[:, 0], outline[:, 1], color=colour, alpha=0.3, linewidth=0, label="actions")


def _ellipse(axes: Axes, design: Design, look: Look) -> None:
    core, weights = np.array(design.actions), np.array(design.weights)
    size = np.max(np.abs(core), axis=0)  # features may be of very different size
    core = core / size
    moment = (core * weights[:, None]).T @ core
    angles = np.linspace(0.0, 2.0 * math.pi, 400)
    circle = np.array([np.cos(angles), np.sin(angles)])
    ellipse = size[:, None] * math.sqrt(design.g) * (np.linalg.cholesky(moment) @ circle)
    axes.plot(ellipse[0], ellipse[1], color=look.theme.ink, linewidth=1.2, label="{a : a' V$^{-1}$ a = g}")
