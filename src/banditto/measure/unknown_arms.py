"""What rehearsals say of a policy whose arms nobody knows: from which lead on rewards decide, and what a log hints at.

Arms pay 0 or 1 there, or Gaussian rewards if the policy is for those. Nothing is promised: this warns of experiments
that a coin would decide as well.
"""

from __future__ import annotations

from typing import Any

from banditto.measure.attack.attacking import space_of
from banditto.measure.attack.linear_spaces import LinearSpace
from banditto.measure.plan.rehearsal import rehearse
from banditto.measure.plan.root_finding import smallest
from banditto.measure.random_play import decides_late, is_a_coins, share_of_random_play, what_helps
from banditto.policies.policy import Acting, AnyPolicy, Policy
from banditto.problems.environment import Environment
from banditto.problems.environments.bernoulli import Bernoulli

_EXECUTIONS, _PULLS = 2048, 400_000  # a coin's choice of two arms is then known to 2% of random play
_LINEAR_EXECUTIONS = 256  # which take their time
_NARROWEST, _FINEST = 1e-4, 1.05  # of the widest lead; a factor


def rehearsed_share(policy: Policy[Any], environment: Environment) -> float | None:
    """Play many executions, the same at each call; return their mean regret as a share of random play."""
    executions = _LINEAR_EXECUTIONS if isinstance(policy, Acting) else min(_EXECUTIONS, _PULLS // policy.arms)
    regrets = rehearse(policy, environment, 0.0, executions, seed=0).regrets
    return share_of_random_play(float(regrets.mean()), environment.means, policy.horizon)


def share_on_averages(policy: AnyPolicy, averages: tuple[float, ...]) -> float | None:
    """Rehearse on arms that pay 0 or 1 with a log's averages; None for a baseline, or a policy that has features.

    The best arm is the last one, wherever the log has it, so that nothing is won by playing the first without a look.
    """
    if not isinstance(policy, Policy) or isinstance(policy, Acting):
        return None
    return rehearsed_share(policy, Bernoulli(sorted(averages)))


def decided_from(policy: Policy[Any]) -> float | None:
    """Find by how much the best arm must lead, about, for regret to be below 0.9 of random play; None if no lead does.

    All others are equally good, as on the instance of a plan, and a promise about the lead is kept.
    """
    space: Any = space_of(policy)
    widest = space.widest_lead() if isinstance(space, LinearSpace) else space.widest

    def decided(lead: float) -> bool:
        instance = space.leading_by(lead) if isinstance(space, LinearSpace) else space.typical(lead)
        return not is_a_coins(rehearsed_share(policy, instance))

    if widest <= 0.0 or not decided(widest):
        return None
    found = smallest(decided, policy.guarantee().promised_gap or _NARROWEST * widest, widest, _FINEST)
    return None if found is None else float(f"{found:.2g}")


def lead_warning(policy: Policy[Any], lead: float | None) -> str:
    """Say that a coin would do as well on all arms, or on those that were named; empty where rewards decide."""
    gap = getattr(policy, "gap", None)
    if decides_late(policy):
        return ""
    if lead is None:
        what = "whatever the arms are: regret is 90% of random play or more"
    elif gap is not None and lead > gap:
        what = f"where the best arm leads by {gap:g}, the named gap: rewards decide from about {lead:g} on"
    else:
        return ""
    return f"a coin would do as well as the rewards {what}; {what_helps(policy.settings(), replicable=True)}"
