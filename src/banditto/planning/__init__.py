"""Planning: what an experiment needs and costs, before it begins."""

from banditto.planning.plans import plan
from banditto.planning.result import TrialPlan

__all__ = ["TrialPlan", "plan"]
