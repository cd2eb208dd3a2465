"""The picture of a schedule: which leads a policy leaves to a coin, batch by batch."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from matplotlib.axes import Axes

from banditto.core.protocol import Protocol
from banditto.policies.policy import Description, Policy
from banditto.problems.catalogue import policy_of
from banditto.report.plotting import figure_or_axes, soft_grid, titled, whole_numbers
from banditto.report.style import Look

# columns of a schedule between which a coin decides, and what it decides
_WINDOWS = (
    ("commit low", "commit high", "commit to the leader, or go on"),
    ("cut low", "cut high", "name the leader, or go on"),
    ("low", "high", "drop an arm that is so far behind, or keep it"),
    ("window low", "window high", "who may be named where nobody leads"),
)


def protocol_figure(protocol: Protocol, ax: Any = None) -> Any:
    """Draw the schedule of the policy that a protocol writes down."""
    policy = policy_of(protocol)
    described = policy.describe() if isinstance(policy, Policy) else Description({"policy": protocol.policy}, (), ())
    return schedule_figure(described, ax)


def schedule_figure(description: Description, ax: Any = None) -> Any:
    """Draw the windows of each batch against pulls so far; for a policy without windows, the pulls of each batch."""
    return figure_or_axes(_schedule, description, ax, 3.6)


def _schedule(axes: Axes, description: Description, look: Look) -> None:
    rows = [dict(zip(description.header, row, strict=True)) for row in description.rows]
    pulls = [row.get("pulls per arm") for row in rows]
    numbers = [float(value) if isinstance(value, int | float) else 0.0 for value in pulls]
    so_far = list(accumulate(numbers))
    drawn = False
    for (low, high, word), colour in zip(_WINDOWS, look.theme.policies, strict=False):
        label: dict[str, Any] = {"label": word}
        for place, row in zip(so_far, rows, strict=True):
            ends = [float(end) for end in (row.get(low), row.get(high)) if isinstance(end, int | float)]
            if len(ends) == 2 and place > 0.0:
                margin = row.get("margin") if low == "cut low" else None  # by which a look must exceed the cut
                ends = [end + margin for end in ends] if isinstance(margin, int | float) else ends
                width = 6.0 if len(rows) <= 12 else 3.0
                axes.plot([place] * 2, ends, color=colour, linewidth=width, alpha=0.75, solid_capstyle="butt", **label)
                label, drawn = {}, True
    titled(axes, str(description.facts.get("policy", "a policy")))
    if not rows:
        axes.set_axis_off()
        axes.text(0.0, 0.5, "This policy decides after every pull: it has no batches.", transform=axes.transAxes)
        return
    soft_grid(axes)
    if not drawn:
        axes.bar(range(1, len(rows) + 1), numbers, color=look.theme.policies[0], width=0.4)
        axes.set_xlim(0.0, len(rows) + 1.0)
        axes.set_xticks(range(1, len(rows) + 1) if len(rows) <= 20 else [1, len(rows)])
        axes.set_xlabel("batch")
        axes.set_ylabel("pulls of each arm")
        whole_numbers(axes, "y")
        return
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("lead, in rewards")
    if len(so_far) > 1 and so_far[-1] / so_far[0] > 20.0:
        axes.set_xscale("log")
        axes.set_xlim(so_far[0] / 1.5, so_far[-1] * 1.5)
    else:
        axes.margins(x=0.15)
        whole_numbers(axes)
    axes.set_xlabel("pulls of each arm so far")
