"""Planning: what an experiment needs and costs, before it begins."""

from banditto.measure.plan.plans import plan
from banditto.measure.plan.trial_plan import TrialPlan

__all__ = ["TrialPlan", "plan"]
