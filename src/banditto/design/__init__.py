"""G-optimal design: `result` is what it is, `making` makes it, the other modules are the steps on the way."""

from banditto.design.making import g_optimal_design
from banditto.design.result import Design, PullPlan

__all__ = ["Design", "PullPlan", "g_optimal_design"]
