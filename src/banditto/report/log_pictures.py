"""The pictures of executions and logs: pulls over time, rewards of a log, where an experiment stands, two runs."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from banditto.engine.watching import PairView
from banditto.live.answers import ExperimentStatus
from banditto.live.replicate import Replication
from banditto.live.verify import Verification
from banditto.measure.replay import Replay
from banditto.problems.reward_log import RewardLog
from banditto.report.colours import ARM_COLOURS
from banditto.report.plotting import (
    MOST_ROWS,
    PLOT,
    checked_axes,
    figure_or_axes,
    named_rows,
    numbered,
    soft_grid,
    titled,
    whole_numbers,
)
from banditto.report.ribbons import DIFFERENT, arm_colours, draw_ribbons, ribbon_figure
from banditto.report.standing_figures import SeenSide, arm_colour, draw_means
from banditto.report.style import Look, drawn_in, new_figure, plain

_POINTS = 400  # of a line


def pair_figure(view: PairView, ax: Any = None) -> Any:
    """Draw the two executions of a pair side by side, a colour for each arm."""
    views = [(view.policy, view)]
    if ax is None:
        means = view.executions[0].run.environment.means if view.executions else ()
        with drawn_in(PLOT):
            return ribbon_figure(views, means, PLOT)
    draw_ribbons(axes := checked_axes(ax), view.policy, view, PLOT, arm_colours(views, view.arms))
    axes.set_xlabel("pull number")
    return axes


def replay_figure(replay: Replay, ax: Any = None) -> Any:
    """Draw how often each arm had been pulled after so many pulls of all arms."""
    return figure_or_axes(_replay, replay, ax, 3.6)


def _replay(axes: Axes, replay: Replay, look: Look) -> None:
    ends = np.array(list(accumulate(length for _, length in replay.runs)), dtype=np.float64)
    shown = list(range(len(replay.log.arms)))
    for arm in sorted(sorted(shown, key=lambda one: -replay.pulls[one])[: len(ARM_COLOURS)]):
        own = np.array(list(accumulate(length if one == arm else 0 for one, length in replay.runs)), dtype=np.float64)
        keep = np.unique(np.linspace(0, len(ends) - 1, min(_POINTS, len(ends))).astype(np.int64))
        line = np.concatenate([[0.0], own[keep]])
        axes.plot(
            np.concatenate([[0.0], ends[keep]]),
            line,
            color=ARM_COLOURS[arm % len(ARM_COLOURS)],
            linewidth=1.8,
            label=f"{plain(replay.log.arms[arm])}: {replay.pulls[arm]:,}",
        )
    whole_numbers(axes, "y")
    axes.set_xscale("symlog", linthresh=max(1.0, float(ends[0])))
    axes.set_yscale("symlog", linthresh=max(1.0, float(min(length for _, length in replay.runs))))
    axes.set_xlim(0.0, float(ends[-1]))
    axes.set_ylim(bottom=0.0)
    whole_numbers(axes)
    whole_numbers(axes, "y")
    soft_grid(axes)
    axes.set_xlabel("pulls of all arms")
    axes.set_ylabel("pulls of each arm")
    end = "" if replay.finished else f": cut off there, {replay.dry[0].arm} has too few rows"
    titled(axes, f"{replay.decided:,} of {replay.horizon:,} pulls were decided{end}")


def log_figure(log: RewardLog, ax: Any = None) -> Any:
    """Draw the mean of each arm's first rewards, so that a drift can be seen; of many arms the first seven."""
    return figure_or_axes(_log, log, ax, 3.4)


def _log(axes: Axes, log: RewardLog, look: Look) -> None:
    arms = list(zip(log.arms, log.rewards, ARM_COLOURS, strict=False))
    for name, rewards, colour in arms:
        means = np.cumsum(rewards) / np.arange(1, len(rewards) + 1)
        keep = np.unique(np.geomspace(1, len(rewards), _POINTS).astype(np.int64)) - 1
        label = f"{plain(name)}: {means[-1]:.4g}"
        axes.plot(keep + 1, means[keep], color=colour, linewidth=1.6, label=label)
        axes.plot(len(rewards), means[-1], marker="o", markersize=4, color=colour)
    axes.set_xscale("log")
    soft_grid(axes)
    axes.set_xlabel("rows of the arm")
    axes.set_ylabel("mean of its rewards so far")
    more = f"; the first {len(arms)} arms" if len(log.arms) > len(arms) else ""
    titled(axes, f"{log.rows:,} rows{more}")


def status_figure(status: ExperimentStatus, ax: Any = None) -> Any:
    """Draw each arm's mean with its interval; before the first decision, how many rewards of the batch were told."""
    count = len(status.estimates or status.plan)
    return figure_or_axes(_estimates if status.estimates else _told, status, ax, 1.3 + 0.32 * min(count, MOST_ROWS))


def _estimates(axes: Axes, status: ExperimentStatus, look: Look) -> None:
    arms = [arm for arm in status.estimates if arm.estimate is not None][:MOST_ROWS]
    for place, arm in enumerate(arms):
        assert arm.estimate is not None
        won = arm.name == status.winner
        colour = look.theme.terms[0] if won else look.theme.terms[-1]
        if math.isfinite(arm.low) and math.isfinite(arm.high):
            axes.plot([arm.low, arm.high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        inside = colour if won else look.theme.paper
        axes.plot(arm.estimate, place, marker="o", markersize=7, color=colour, markerfacecolor=inside, linestyle="none")
    named_rows(axes, [f"{plain(arm.name)} ({arm.used:,})" for arm in arms])
    soft_grid(axes, "x")
    axes.set_xlabel("mean reward; all intervals hold at once")
    titled(axes, f"{status.name}: " + (f"{status.winner} won" if status.winner else "no winner yet"))


def _told(axes: Axes, status: ExperimentStatus, look: Look) -> None:
    arms = list(status.plan)[:MOST_ROWS]
    for place, arm in enumerate(arms):
        axes.barh(place, status.plan[arm], height=0.6, color=look.theme.faint)
        axes.barh(place, status.told[arm], height=0.6, color=arm_colour(place))
    named_rows(axes, [plain(arm) for arm in arms])
    whole_numbers(axes)
    axes.locator_params(axis="x", nbins=7)
    soft_grid(axes, "x")
    axes.set_xlabel(f"rewards told of those planned, batch {status.batch}")
    titled(axes, f"{status.name}: {status.state}, {status.spent:,} of {status.horizon:,} pulls decided")


def verification_figure(found: Verification, ax: Any = None) -> Any:
    """Draw how many rewards of each arm every decided batch had: which arms were in play until when."""
    return figure_or_axes(_verification, found, ax, 3.4)


def _verification(axes: Axes, found: Verification, look: Look) -> None:
    arms = len(found.decisions[0].counts) if found.decisions else 0
    batches = [decision.batch for decision in found.decisions]
    below = np.zeros(len(batches))
    for arm in range(min(arms, MOST_ROWS)):
        counts = np.array([float(decision.counts[arm]) for decision in found.decisions])
        word = f"arm {arm}" if arm < len(ARM_COLOURS) else "other arms"
        label: dict[str, Any] = {"label": word} if arm <= len(ARM_COLOURS) else {}
        axes.bar(batches, counts, bottom=below, width=0.7, color=arm_colour(arm), **label)
        below += counts
    whole_numbers(axes, "y")
    soft_grid(axes, "y")
    numbered(axes, max([*batches, 3]))
    axes.set_xlabel("batch" if batches else "no batch is decided yet")
    axes.set_ylabel("rewards")
    said = "verifies" if found.holds else "does not verify"
    won = "" if found.winner is None else f"; {found.winner} won"
    titled(axes, f"{found.name} {said}: {len(batches)} decision{'' if len(batches) == 1 else 's'}{won}")


def replication_figure(found: Replication, ax: Any = None) -> Any:
    """Draw the decisions of both runs side by side; in a new figure, also what each saw where they part."""
    if ax is not None or found.divergence is None:
        return figure_or_axes(_decisions, found, ax, 2.0)
    sides = [
        SeenSide(f"{run}, after batch {found.divergence.batch}", side.means)
        for run, side in zip(found.runs, found.divergence.sides, strict=True)
    ]
    rows = [2.2, *(0.9 + 0.32 * len(side.means) for side in sides)]
    with drawn_in(PLOT):
        figure: Figure = new_figure(PLOT, sum(rows) + 0.4)
        first, *panels = figure.subplots(3, 1, height_ratios=rows)
        _decisions(first, found, PLOT)
        first.legend(frameon=False, fontsize=9, ncols=3, loc="upper left", bbox_to_anchor=(0.0, -0.35))
        panels[0].sharex(panels[1])
        draw_means(panels, sides, found.divergence.cuts, PLOT)
    return figure


def _decisions(axes: Axes, found: Replication, look: Look) -> None:
    most = max(*found.decisions, 3)
    width = 0.8
    named: set[str] = set()
    for row, taken in enumerate(found.decisions):
        for number in range(1, taken + 1):
            # at the level of winners only the look that names one counts
            counts = number == taken and found.compared if found.level == "winner" else number <= found.compared
            apart = found.divergence is not None and (found.level == "winner" or number == found.compared)
            word = ("different" if apart else "the same") if counts else "not compared"
            colour = {"different": DIFFERENT, "the same": look.theme.terms[2], "not compared": look.theme.faint}[word]
            label: dict[str, Any] = {} if word in named else {"label": word}
            named.add(word)
            axes.barh(row, width, left=number - width / 2.0, height=0.55, color=colour, **label)
    named_rows(axes, [plain(run) for run in found.runs])
    numbered(axes, most)
    axes.set_xlabel("look" if found.level == "winner" else "decision")
    titled(axes, found.verdict)
