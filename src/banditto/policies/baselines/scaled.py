"""What index policies share whose only setting is the scale of the rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from banditto.core.exact import scale
from banditto.core.protocol import Plain, Protocol, WithProtocol, fraction, from_fraction
from banditto.core.rewards import Rewards


@dataclass(frozen=True, kw_only=True)
class Scaled(WithProtocol):
    """The base of policies whose only setting is sigma: 1/2 for rewards in [0, 1], else the subgaussian scale."""

    sigma: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", scale(self.sigma, "sigma"))

    @classmethod
    def made_for(cls, rewards: Rewards, arms: int, horizon: int) -> Self:
        """Return the policy made for these rewards, with their sigma."""
        return cls(sigma=rewards.sigma)

    @classmethod
    def from_protocol(cls, protocol: Protocol) -> Self:
        """Return the policy that a protocol describes, with its settings."""
        return cls(sigma=from_fraction(protocol.settings.get("sigma"), "sigma"))

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Accept any rewards."""

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose: sigma."""
        return {"sigma": fraction(self.sigma)}

    def resolved(self) -> Mapping[str, Plain]:
        """Return an empty mapping: the settings say all."""
        return {}
