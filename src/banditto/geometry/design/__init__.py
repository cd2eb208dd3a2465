"""G-optimal design: `design_result` is what it is, `g_optimal` makes it, the other modules are the steps on the way."""

from banditto.geometry.design.design_result import Allocation, Design
from banditto.geometry.design.g_optimal import g_optimal_design

__all__ = ["Allocation", "Design", "g_optimal_design"]
