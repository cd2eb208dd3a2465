"""The pictures of docs/examples.md: each example script runs as it is, and what its calls returned is drawn."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import banditto as bd
from banditto.measure.study_file import StudyFile
from banditto.numbers.intervals import clopper_pearson
from banditto.report.figures import agreement_figure, draw_design
from banditto.report.style import LOOKS, Look, new_figure
from docs.drawing import Drawing, pens_of, save

EXAMPLES = Path(__file__).parents[1] / "examples"
LOOKED = (LOOKS["light", "narrow"], LOOKS["dark", "narrow"])  # small pictures: one size for all screens
HEIGHT = 2.7


class Call(NamedTuple):
    """A call of a public function: its arguments, and what came back."""

    given: tuple[Any, ...]
    named: dict[str, Any]
    returned: Any


@contextlib.contextmanager
def recorded(name: str, instead: Callable[..., Any] | None) -> Iterator[list[Call]]:
    """Keep every call of a public function while a script runs, with what came back or what is kept instead of it."""
    function: Callable[..., Any] = getattr(bd, name)
    calls: list[Call] = []

    def keep(*given: Any, **named: Any) -> Any:
        returned = function(*given, **named)
        calls.append(Call(given, named, instead(*given, **named) if instead else returned))
        return returned

    setattr(bd, name, keep)
    try:
        yield calls
    finally:
        setattr(bd, name, function)


@cache
def calls_of(script: str, function: str, instead: Callable[..., Any] | None = None) -> list[Call]:
    """Run an example and return its calls of a public function."""
    path = str(EXAMPLES / f"{script}.py")
    alone = mock.patch.object(sys, "argv", [path])  # without the words that this program was called with
    quiet = contextlib.redirect_stdout(io.StringIO())
    with recorded(function, instead) as calls, quiet, alone, warnings.catch_warnings():
        warnings.simplefilter("ignore", bd.ShortHorizonWarning)
        runpy.run_path(path, run_name="__main__")
    assert calls, f"{script} does not call {function}"
    return calls


def small(look: Look) -> tuple[Figure, Axes]:
    figure = new_figure(look, HEIGHT)
    return figure, figure.subplots()


def compared(script: str, look: Look) -> Figure:
    """Of a comparison: how many pairs agree."""
    return agreement_figure(calls_of(script, "compare")[-1].returned, look)


def cells(look: Look) -> Figure:
    """Of a policy in plain Python: how many pairs agree with each window that its cut is drawn from."""
    figure, axes = small(look)
    pens, calls = pens_of(look), calls_of("certify_your_own_policy", "certify")
    for place, call in enumerate(calls):
        found = call.returned
        colour = pens.first if found.verdict == "PASS" else pens.second
        axes.bar(place, found.agreement, color=colour, width=0.6)
        axes.annotate(f"{found.agreement:.0%}", (place, found.agreement), ha="center", va="bottom", fontsize=9)
    axes.axhline(1 - calls[0].returned.rho, color=pens.alarm, linewidth=1.2)
    axes.annotate("asked for", (-0.45, 1 - calls[0].returned.rho), va="bottom", fontsize=8, color=pens.alarm)
    axes.set_xticks(range(len(calls)), [f"{call.given[0].arguments['width']:g}" for call in calls])
    axes.set_xlabel("width of the window that both labs draw their cut from")
    axes.set_ylabel("pairs that agree")
    axes.set_ylim(0, 1.12)
    return figure


def planned(look: Look) -> Figure:
    """Of plans: patients against rho."""
    figure, axes = small(look)
    plans = [call.returned for call in calls_of("plan_a_trial", "plan")]
    axes.plot([one.rho for one in plans], [one.horizon for one in plans], marker="o", color=pens_of(look).first)
    for one in plans:
        axes.annotate(f"{one.horizon:,}", (one.rho, one.horizon), (6, 4), textcoords="offset points", fontsize=9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([one.rho for one in plans], [f"{one.rho:g}" for one in plans])
    axes.minorticks_off()
    axes.margins(x=0.2, y=0.2)
    axes.set_xlabel("rho: how often two trials may differ")
    axes.set_ylabel("patients")
    return figure


def doses(look: Look) -> Figure:
    """Of a polytope: its design, and the best doses."""
    figure, axes = small(look)
    (call,) = calls_of("linear_polytope", "g_optimal_design")
    (actions,) = call.given
    draw_design(axes, call.returned, actions, look)
    found = calls_of("linear_polytope", "certify")[-1]
    best = actions.maximise(found.given[1].theta)
    axes.scatter(best[0], best[1], s=90, marker="*", color=pens_of(look).ink, zorder=5, label="best doses")
    axes.set_xlim(-0.08, 1.2)
    axes.set_ylim(-0.08, 0.85)
    shown = {
        "actions": "doses that are allowed",
        "core set, by weight": "to begin with",
        "best doses": "the best doses",
    }
    handles, labels = axes.get_legend_handles_labels()
    named = {shown[label]: handle for handle, label in zip(handles, labels, strict=True) if label in shown}
    axes.legend(named.values(), named.keys(), frameon=False, fontsize=8, loc="upper right", markerscale=0.6)
    axes.set_xlabel("first dose")
    axes.set_ylabel("second dose")
    return figure


def runs(look: Look) -> Figure:
    """Of forty runs in two labs: a square for each, filled if they took the same decisions."""
    figure, axes = small(look)
    pens = pens_of(look)
    same = []
    for call in calls_of("second_lab", "watch_pair"):
        other = bd.watch_pair(*call.given, **call.named | {"noise_seed": 2})  # as the second lab has it
        same.append(call.returned.digests[0] == other.digests[0])
    for number, agrees in enumerate(same):
        marker, colour = ("s", pens.first) if agrees else ("X", pens.second)
        axes.scatter(number % 10, number // 10, s=150, marker=marker, color=colour)
    axes.set_title(f"{sum(same)} of {len(same)} runs are the same, pull by pull", loc="left", fontsize=10)
    axes.set_xlim(-0.7, 9.7)
    axes.set_ylim(3.7, -0.7)
    axes.set_axis_off()
    return figure


def raced(script: str, look: Look) -> Figure:
    """Of a race: each candidate's mean, and the winner."""
    figure, axes = small(look)
    found, pens = calls_of(script, "select")[0].returned, pens_of(look)
    names = list(found.estimates)
    for place, name in enumerate(names):
        one = found.estimates[name]
        axes.barh(place, one.mean, color=pens.first if name == found.winner else look.theme.faint, height=0.6)
        told = f"{one.mean:.2f}, {one.pulls:,} pulls"
        axes.annotate(told, (one.mean, place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.45 * max(one.mean for one in found.estimates.values()))
    axes.set_xlabel("mean reward")
    axes.set_title(f"{found.winner} won", loc="left", fontsize=10)
    return figure


def _analysed(url: str, name: str) -> bd.Analysis:
    return bd.analyse(f"{url}#{name}")


def labs(look: Look) -> Figure:
    """Of two logs: each arm's mean in each lab, with intervals that hold at once."""
    figure, axes = small(look)
    pens = pens_of(look)
    found = [call.returned for call in calls_of("live_trial", "verify", _analysed)]
    for shift, name, colour, one in zip((-0.12, 0.12), ("first lab", "second lab"), pens[:2], found, strict=True):
        for row, arm in enumerate(one.arms):
            axes.plot(
                [arm.low, arm.high], [row + shift] * 2, color=colour, linewidth=4, alpha=0.45, solid_capstyle="butt"
            )
            axes.plot(arm.estimate, row + shift, "o", color=colour, label=name if row == 0 else None)
    axes.set_yticks(range(len(found[0].arms)), [arm.name for arm in found[0].arms])
    axes.set_ylim(1.6, -0.6)
    axes.set_xlabel("mean reward")
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    return figure


def insurance(look: Look) -> Figure:
    """Of the log of an experiment: how many people of each plan saw a doctor."""
    figure, axes = small(look)
    log = calls_of("real_data", "replay")[0].given[1]
    pens = pens_of(look)
    for place, rewards in enumerate(log.rewards):
        low, high = clopper_pearson(int(sum(rewards)), len(rewards), 0.95)
        mean = sum(rewards) / len(rewards)
        axes.plot([low, high], [place, place], color=pens.first, linewidth=4, alpha=0.45, solid_capstyle="butt")
        axes.plot(mean, place, "o", color=pens.first)
        axes.annotate(f"{mean:.0%}", (high, place), (6, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(range(len(log.arms)), log.arms)
    axes.invert_yaxis()
    axes.margins(x=0.15, y=0.2)
    axes.set_ylabel("share that people pay")
    axes.set_xlabel("people who saw a doctor in a year")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    return figure


def demo(look: Look) -> Figure:
    """Of `make demo`: how many of the study's pairs agree."""
    return agreement_figure(_studied(), look)


@cache
def _studied() -> Any:
    study = StudyFile.load(str(EXAMPLES / "demo.toml"))
    built = study.built()
    common: dict[str, Any] = {"horizon": study.horizon, "rho": study.rho, "seed": study.seed or 0}
    common |= {"pairs": study.pairs, "rounds": study.rounds}
    return bd.compare(built.policies, built.environment, labels=built.labels, **common)


FIGURES: dict[str, Drawing] = {
    "first_comparison": partial(compared, "first_comparison"),
    "certify_your_own_policy": cells,
    "custom_environment": partial(compared, "custom_environment"),
    "plan_a_trial": planned,
    "linear_polytope": doses,
    "second_lab": runs,
    "select_classifiers": partial(raced, "select_classifiers"),
    "select_scorers": partial(raced, "select_scorers"),
    "select_simulator": partial(raced, "select_simulator"),
    "live_trial": labs,
    "real_data": insurance,
    "demo": demo,
}


def figures(names: Sequence[str] = ()) -> None:
    """Draw the pictures of these examples, or of all."""
    for name in names or FIGURES:
        save(f"example-{name.replace('_', '-')}", FIGURES[name], LOOKED, narrow=False)
