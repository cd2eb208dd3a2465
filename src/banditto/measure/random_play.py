"""Random play, every arm equally often: the regret that every other regret is shown as a share of.

A number of lost rewards says nothing by itself. As a share of random play it does: 0.03 is a policy that learns soon,
0.97 one for which a coin would do as well, however well its executions agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

from banditto.core.protocol import Plain
from banditto.policies.early_cut.early_cut import EarlyCut
from banditto.policies.one_cut.one_cut import OneCut
from banditto.policies.policy import AnyPolicy

_LATE = 0.8  # of the horizon
COIN = 0.9  # of random play: whoever loses as much has learnt next to nothing
_ROUNDING = 2.0**-40  # of the means: gaps below are none


def share_of_random_play(regret: float, means: Sequence[float], horizon: int) -> float | None:
    """Divide a regret by that of pulling every arm equally often, T (best mean - average mean).

    None where that has no meaning: all arms are equally good, or there are infinitely many.
    """
    if not means:
        return None
    lag = max(means) - fsum(means) / len(means)
    if lag <= _ROUNDING * max(abs(mean) for mean in means):
        return None
    return regret / (horizon * lag)


def is_a_coins(share: float | None) -> bool:
    """Say whether a regret is so near to that of random play that a coin would do as well."""
    return share is not None and share >= COIN


def percent(share: float | None) -> str:
    """Return a share as a percentage: whole from 10% on, two digits below; a dash for None."""
    if share is None:
        return "-"
    return f"{share:.0%}" if share >= 0.1 else f"{100 * share:.2g}%"


def in_words(share: float | None, means: Sequence[float], *, coin: bool = True) -> str:
    """Return the share of random play as text for a table, or why there is none."""
    if share is None:
        return "none: all arms are equally good" if means else "none: infinitely many actions"
    end = "; a coin would do as well" if coin and is_a_coins(share) else ""
    return f"{percent(share)} of the regret of pulling every arm equally often{end}"


def coin_warning(share: float, settings: Mapping[str, Plain], *, replicable: bool, where: str = "") -> str:
    """Return a warning that a coin would do as well, with what would help."""
    helps = what_helps(settings, replicable=replicable)
    return f"a coin would do as well as the rewards: regret is {percent(share)} of random play{where}; {helps}"


def decides_late(policy: AnyPolicy) -> bool:
    """Say whether nearly all pulls come before the one decision, which is right more often than not.

    Such an experiment is for its conclusion: its regret is near that of random play, and still no coin would do.
    """
    if not isinstance(policy, OneCut | EarlyCut):
        return False
    pulls = policy.pulls_per_arm if isinstance(policy, OneCut) else policy.mean_pulls(policy.gap)
    return policy.arms * pulls >= _LATE * policy.horizon and policy.reached_power >= 0.5


def late_warning(share: float | None) -> str:
    """Say that nearly all pulls come before the decision."""
    about = "near that of random play" if share is None else f"{percent(share)} of random play"
    return f"regret is {about}: nearly all pulls are spent before the decision"


def what_helps(settings: Mapping[str, Plain], *, replicable: bool) -> str:
    """Return what would let rewards decide, from the settings that this policy has."""
    helps = ["a longer horizon"]
    helps += ["a larger rho"] if replicable else []
    helps += ["a named gap"] if settings.get("gap") == "" else []
    listed = helps[0] if len(helps) == 1 else f"{', '.join(helps[:-1])} or {helps[-1]}"
    return f"{listed} would help"
