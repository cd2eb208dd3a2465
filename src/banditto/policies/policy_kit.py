"""What authors of policies import, from one place: `from banditto.policies.policy_kit import Replicable, Guarantee`.

The interfaces (`Policy`, `BatchedPolicy`, `RoundPolicy`, `PlacedPolicy`, `Leading`), what every replicable policy
inherits (`Replicable`), what it returns (`Guarantee`, `Description`), the coins that it tosses, the arrays that it
works on, exact arithmetic for its constants, and two modules: `confidence`, the quantities of the proofs, and
`elimination`, the race of arms. docs/add-a-policy.md writes a whole policy with it.
"""

from __future__ import annotations

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray, counted, namespace, times, within
from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.core.exact import (
    first_true,
    float_above,
    floor_power,
    floor_root,
    integer,
    open_unit,
    precise,
    real,
    scale,
    written,
)
from banditto.core.horizons import LONGEST_HORIZON, SHORTEST_HORIZON, checked_arms, checked_horizon, useful_horizons
from banditto.core.protocol import Plain, Protocol, WithProtocol, fraction, from_fraction
from banditto.core.rewards import RewardKind, Rewards
from banditto.core.schedule import Schedule
from banditto.core.text import significant
from banditto.policies.policy import (
    Acting,
    AnyPolicy,
    BatchedPolicy,
    Configured,
    Description,
    Guarantee,
    Kernel,
    Leading,
    PlacedPolicy,
    Policy,
    Record,
    Remembering,
    RoundPolicy,
    Term,
)
from banditto.policies.shared import confidence, elimination
from banditto.policies.shared.elimination import Race
from banditto.policies.shared.replicable import UNRESOLVED, Constants, Replicable

__all__ = [
    "LONGEST_HORIZON",
    "SHORTEST_HORIZON",
    "UNRESOLVED",
    "Acting",
    "AnyPolicy",
    "BatchedPolicy",
    "BoolArray",
    "Coins",
    "Configured",
    "Constants",
    "Description",
    "FloatArray",
    "Guarantee",
    "IntArray",
    "InvalidArgument",
    "Kernel",
    "Leading",
    "PlacedPolicy",
    "Plain",
    "Policy",
    "Protocol",
    "Race",
    "Record",
    "Remembering",
    "Replicable",
    "RewardKind",
    "Rewards",
    "RoundPolicy",
    "Schedule",
    "ShortHorizonWarning",
    "Term",
    "WithProtocol",
    "checked_arms",
    "checked_horizon",
    "confidence",
    "counted",
    "elimination",
    "first_true",
    "float_above",
    "floor_power",
    "floor_root",
    "fraction",
    "from_fraction",
    "integer",
    "namespace",
    "open_unit",
    "precise",
    "real",
    "scale",
    "significant",
    "times",
    "useful_horizons",
    "within",
    "written",
]
