"""banditto: replicable bandits.

Run again by somebody else, on fresh data, with the same published seed, a replicable experiment makes exactly the
same decisions with a probability that you choose. Names are loaded on first use, so that `import banditto` is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from banditto import policies
from banditto.geometry import actions
from banditto.policies import baselines
from banditto.problems import environments
from banditto.version import __version__

if TYPE_CHECKING:
    from banditto.chance.coins import Coins
    from banditto.core.errors import (
        BandittoError,
        ConflictError,
        ContractError,
        IllConditioned,
        InvalidArgument,
        LogError,
        MissingExtra,
        NoMaximum,
        NoPlan,
        NoStore,
        NotAllowed,
        ServiceError,
        ShortHorizonWarning,
        StoreError,
        Unfinished,
        WorkerError,
    )
    from banditto.core.protocol import Protocol
    from banditto.engine.dask_cluster import cluster
    from banditto.engine.watching import watch_pair
    from banditto.geometry.actions import *
    from banditto.geometry.actions.nets import net
    from banditto.geometry.actions.sets import ActionSet
    from banditto.geometry.design import Design, g_optimal_design
    from banditto.live.analyse import analyse
    from banditto.live.async_experiment import AsyncExperiment
    from banditto.live.experiment import Experiment
    from banditto.live.registration import Registration
    from banditto.live.replicate import replicate
    from banditto.live.select import select
    from banditto.live.selection import Selection
    from banditto.live.step_reports import JsonLogFormatter, StepReport
    from banditto.live.store_settings import StoreSettings
    from banditto.live.verify import verify
    from banditto.measure.analysis.analysis import Analysis
    from banditto.measure.attack import Attack, attack
    from banditto.measure.calibrate import Calibration, calibrate
    from banditto.measure.certificate import Certificate
    from banditto.measure.certify import certify
    from banditto.measure.compare import compare
    from banditto.measure.comparison import Comparison
    from banditto.measure.lower_bounds import LowerBound, lai_robbins, lower_bound
    from banditto.measure.plan import TrialPlan, plan
    from banditto.measure.replay import Replay, replay
    from banditto.paper import Reproduction, reproduce
    from banditto.policies import *
    from banditto.policies.baselines import *
    from banditto.policies.plain_policy import PlainPolicy
    from banditto.policies.policy import Guarantee
    from banditto.policies.shared.replicable_mean import replicable_mean, samples_needed
    from banditto.policies.shared_linear.replicable_least_squares import ReplicableLeastSquares
    from banditto.problems.catalogue import policy_of
    from banditto.problems.environments import *
    from banditto.problems.reward_log import RewardLog
    from banditto.service.async_client import AsyncClient
    from banditto.service.client import Client

_PLACES = {
    "ActionSet": "banditto.geometry.actions.sets",
    "Analysis": "banditto.measure.analysis.analysis",
    "AsyncClient": "banditto.service.async_client",
    "AsyncExperiment": "banditto.live.async_experiment",
    "Attack": "banditto.measure.attack",
    "analyse": "banditto.live.analyse",
    "attack": "banditto.measure.attack",
    "BandittoError": "banditto.core.errors",
    "Calibration": "banditto.measure.calibrate",
    "Certificate": "banditto.measure.certificate",
    "Client": "banditto.service.client",
    "Coins": "banditto.chance.coins",
    "Comparison": "banditto.measure.comparison",
    "ConflictError": "banditto.core.errors",
    "ContractError": "banditto.core.errors",
    "Design": "banditto.geometry.design",
    "Experiment": "banditto.live.experiment",
    "Guarantee": "banditto.policies.policy",
    "IllConditioned": "banditto.core.errors",
    "InvalidArgument": "banditto.core.errors",
    "JsonLogFormatter": "banditto.live.step_reports",
    "LogError": "banditto.core.errors",
    "LowerBound": "banditto.measure.lower_bounds",
    "MissingExtra": "banditto.core.errors",
    "NoMaximum": "banditto.core.errors",
    "NoPlan": "banditto.core.errors",
    "NoStore": "banditto.core.errors",
    "NotAllowed": "banditto.core.errors",
    "PlainPolicy": "banditto.policies.plain_policy",
    "Protocol": "banditto.core.protocol",
    "Registration": "banditto.live.registration",
    "Reproduction": "banditto.paper",
    "ServiceError": "banditto.core.errors",
    "ShortHorizonWarning": "banditto.core.errors",
    "Selection": "banditto.live.selection",
    "StepReport": "banditto.live.step_reports",
    "StoreError": "banditto.core.errors",
    "StoreSettings": "banditto.live.store_settings",
    "TrialPlan": "banditto.measure.plan",
    "Unfinished": "banditto.core.errors",
    "WorkerError": "banditto.core.errors",
    "calibrate": "banditto.measure.calibrate",
    "certify": "banditto.measure.certify",
    "cluster": "banditto.engine.dask_cluster",
    "compare": "banditto.measure.compare",
    "g_optimal_design": "banditto.geometry.design",
    "lai_robbins": "banditto.measure.lower_bounds",
    "lower_bound": "banditto.measure.lower_bounds",
    "net": "banditto.geometry.actions.nets",
    "Replay": "banditto.measure.replay",
    "ReplicableLeastSquares": "banditto.policies.shared_linear.replicable_least_squares",
    "RewardLog": "banditto.problems.reward_log",
    "plan": "banditto.measure.plan",
    "policy_of": "banditto.problems.catalogue",
    "replay": "banditto.measure.replay",
    "replicable_mean": "banditto.policies.shared.replicable_mean",
    "replicate": "banditto.live.replicate",
    "reproduce": "banditto.paper",
    "select": "banditto.live.select",
    "verify": "banditto.live.verify",
    "samples_needed": "banditto.policies.shared.replicable_mean",
    "watch_pair": "banditto.engine.watching",
} | {
    entry.class_name: entry.module
    for registry in (policies.REGISTRY, baselines.REGISTRY, environments.REGISTRY, actions.REGISTRY)
    for entry in registry.values()
}

__all__ = [
    "ActionSet",
    "Analysis",
    "AsyncClient",
    "AsyncExperiment",
    "Attack",
    "BandittoError",
    "Calibration",
    "Certificate",
    "Client",
    "Coins",
    "Comparison",
    "ConflictError",
    "ContractError",
    "Design",
    "Experiment",
    "Guarantee",
    "IllConditioned",
    "InvalidArgument",
    "JsonLogFormatter",
    "LogError",
    "LowerBound",
    "MissingExtra",
    "NoMaximum",
    "NoPlan",
    "NoStore",
    "NotAllowed",
    "PlainPolicy",
    "Protocol",
    "Registration",
    "Replay",
    "ReplicableLeastSquares",
    "Reproduction",
    "RewardLog",
    "Selection",
    "ServiceError",
    "ShortHorizonWarning",
    "StepReport",
    "StoreError",
    "StoreSettings",
    "TrialPlan",
    "Unfinished",
    "WorkerError",
    "__version__",
    "analyse",
    "attack",
    "calibrate",
    "certify",
    "cluster",
    "compare",
    "g_optimal_design",
    "lai_robbins",
    "lower_bound",
    "net",
    "plan",
    "policy_of",
    "replay",
    "replicable_mean",
    "replicate",
    "reproduce",
    "samples_needed",
    "select",
    "verify",
    "watch_pair",
]
__all__ += policies.__all__
__all__ += baselines.__all__
__all__ += environments.__all__
__all__ += actions.__all__


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'banditto' has no attribute {name!r}")
    try:
        value = getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        from banditto.core.errors import MissingExtra

        raise MissingExtra("a client of the service", "httpx", "client") from None
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
