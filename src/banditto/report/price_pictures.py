"""The pictures of prices: what a plan costs beside others, what nobody can do with less, and the terms of a proof."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from banditto.core.errors import InvalidArgument
from banditto.core.text import short
from banditto.measure.lower_bounds import LowerBound, lai_robbins, lower_bound
from banditto.measure.plan.plans import limit_lines
from banditto.measure.plan.price_table import POWER, RHOS, prices
from banditto.measure.plan.trial_plan import TrialPlan
from banditto.policies.policy import Guarantee
from banditto.problems.environments.bernoulli import Bernoulli
from banditto.report.plotting import figure_or_axes, named_rows, soft_grid, titled, whole_numbers
from banditto.report.style import Look, plain

_TABLED = ("one-cut", "early-cut")  # policies whose prices are in a table
_RING: dict[str, Any] = {"marker": "o", "markersize": 11, "markerfacecolor": "none", "linestyle": "none"}


def plan_figure(plan: TrialPlan, ax: Any = None) -> Any:
    """Draw pulls against rho: this plan, other policies for the same promise, and what an ordinary test needs."""
    return figure_or_axes(_plan, plan, ax, 4.0)


def _plan(axes: Axes, plan: TrialPlan, look: Look) -> None:
    for limit, dashes in zip(limit_lines(plan.question, plan.gap), ("--", ":", "-."), strict=False):
        axes.plot(limit.rhos, limit.pulls, linestyle=dashes, color=look.theme.ink, linewidth=1.0, label=limit.name)
    colours = dict(
        zip(dict.fromkeys([*_TABLED, *(one.policy for one in plan.alternatives)]), look.theme.policies, strict=False)
    )
    for name, line in zip(_TABLED, _curves(plan), strict=False):
        axes.plot(RHOS, line, color=colours[name], linewidth=1.6, label=f"{name}, at most (about)")
    own = f"this plan ({plan.policy.name}), until it decides"
    axes.plot([plan.rho], [plan.exploration_pulls], markeredgecolor=look.theme.ink, label=own, **_RING)
    for other in plan.alternatives:
        if other.horizon is not None:
            colour, label = colours.get(other.policy, look.theme.ink), f"{other.policy}: its shortest horizon"
            axes.plot([plan.rho], [other.horizon], marker="^", color=colour, linestyle="none", label=label)
    _over_rho(axes, "pulls of all arms")
    titled(axes, f"{plan.arms} arms, gap {plan.gap:g}" if plan.arms else f"infinitely many actions, gap {plan.gap:g}")


def _curves(plan: TrialPlan) -> list[list[float]]:
    """Return about what the two cheapest policies take at each rho; nothing where no table says so."""
    known = isinstance(plan.instance, Bernoulli) and plan.question.actions is None and plan.power == POWER
    if not known:
        return []
    try:
        found = [prices(plan.arms, plan.gap, rho, plan.question.rate_at_most) for rho in RHOS]
    except InvalidArgument:  # more arms than the table has
        return []
    return [[one.one_cut for one in found], [one.early_cut for one in found]]


def _over_rho(axes: Axes, label: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(RHOS)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    soft_grid(axes)
    axes.set_xlabel("rho, the largest probability that two runs differ")
    axes.set_ylabel(label)


def lower_bound_figure(bound: LowerBound, ax: Any = None) -> Any:
    """Draw how the bound grows as rho falls, or for Lai and Robbins as the horizon grows; a ring marks this one."""
    return figure_or_axes(_lower_bound, bound, ax, 3.4)


def _lower_bound(axes: Axes, bound: LowerBound, look: Look) -> None:
    asked = dict(bound.asked)
    if not asked:
        raise InvalidArgument("asked", "nothing", "a bound that `lower_bound` or `lai_robbins` returned")
    colour = look.theme.policies[0]
    if "rho" in asked:
        own = asked["rho"]
        places = sorted({own, *(rho for rho in RHOS)})
        found = [lower_bound(**{**asked, "rho": rho}) for rho in places]
        title = f"No replicable policy needs less: {asked['arms']} arms, gap {asked['gap']:g}"
    else:
        own = asked["horizon"]
        places = [own * 10.0**power for power in (-2, -1, 0, 1, 2) if 10 <= own * 10.0**power <= 1e15]
        found = [lai_robbins(**{**asked, "horizon": round(place)}) for place in places]
        title = f"The line of Lai and Robbins: {asked['arms']} arms, gap {asked['gap']:g}"
    axes.plot(places, [one.total for one in found], color=colour, marker="o", markersize=3.5, label="all arms together")
    axes.plot(
        places,
        [one.per_arm for one in found],
        color=look.theme.policies[1],
        marker="o",
        markersize=3.5,
        label="each arm",
    )
    ring = f"this bound: {bound.total:,}"
    axes.plot([own], [bound.total], markeredgecolor=look.theme.ink, label=ring, **_RING)
    if "rho" in asked:
        _over_rho(axes, "pulls, at least")
    else:
        axes.set_xscale("log")
        soft_grid(axes)
        whole_numbers(axes, "y")
        axes.set_xlabel("horizon, pulls")
        axes.set_ylabel("pulls of worse arms, in the limit")
    titled(axes, title)


def guarantee_picture(guarantee: Guarantee, ax: Any = None) -> Any:
    """Draw the terms of a guarantee one after the other up to their total, against rho."""
    return figure_or_axes(_guarantee, guarantee, ax, 1.3 + 0.34 * (len(guarantee.terms) + 1))


def _guarantee(axes: Axes, guarantee: Guarantee, look: Look) -> None:
    left = 0.0
    widest = 1.6 * guarantee.rho if guarantee.holds else min(guarantee.total * 1.2, 8.0 * guarantee.rho)
    for row, term in enumerate(guarantee.terms):
        axes.barh(row, term.value, left=left, height=0.55, color=look.theme.terms[row % len(look.theme.terms)])
        _beside(axes, left + term.value, row, short(term.value), widest, look)
        left += term.value
    last = len(guarantee.terms)
    axes.barh(last, guarantee.total, height=0.55, color=look.theme.ink)
    _beside(axes, guarantee.total, last, short(guarantee.total), widest, look)
    axes.axvline(guarantee.rho, color=look.theme.alarm, linestyle="--", label=f"rho = {guarantee.rho:g}")
    named_rows(axes, [*(plain(term.name) for term in guarantee.terms), "total"])
    axes.set_xlim(0.0, widest)
    what = "name different winners" if guarantee.level == "winner" else "differ"
    axes.set_xlabel(f"proved bound on the probability that two executions {what}")
    titled(axes, "The guarantee holds" if guarantee.holds else "The guarantee does not hold")


def _beside(axes: Axes, place: float, row: int, text: str, widest: float, look: Look) -> None:
    """Write a number right of a bar, or inside where the bar goes on beyond the picture."""
    beyond = place > 0.95 * widest
    axes.annotate(
        f"{text} →" if place > widest else text,
        (min(place, widest), row),
        xytext=(-6 if beyond else 6, 0),
        textcoords="offset points",
        ha="right" if beyond else "left",
        va="center",
        fontsize=9,
        color=look.theme.paper if beyond else look.theme.ink,
        bbox=None if beyond else {"facecolor": look.theme.paper, "edgecolor": "none", "pad": 1.0},
    )
