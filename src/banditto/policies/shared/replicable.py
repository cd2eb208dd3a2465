"""What the replicable policies have in common: arguments checked at once, and what is written down of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

from banditto.core.errors import InvalidArgument, ShortHorizonWarning
from banditto.core.exact import open_unit, written
from banditto.core.horizons import checked_arms, checked_horizon
from banditto.core.protocol import Plain, Protocol, WithProtocol, fraction, from_fraction
from banditto.core.rewards import RewardKind, Rewards

Constants = Literal["certified", "paper"]
_SILENT: ContextVar[bool] = ContextVar("silent", default=False)
# the default of a field for constants that decide: its policy resolves them, unless it is handed resolved ones
UNRESOLVED: Any = None
CALIBRATED = "calibrated, not certified"  # constants that no attack broke; stands wherever constants are named


@contextmanager
def without_warnings() -> Iterator[None]:
    """Make policies without warnings of short horizons inside the `with` block: for searches that try many."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


@dataclass(frozen=True, kw_only=True)
class Replicable(WithProtocol):
    """The base of the replicable policies: arms, horizon, rho, the set of constants, and what is known of the rewards.

    `sigma` is 1/2 for rewards in [0, 1]; with another sigma the rewards are taken as sigma-subgaussian unless
    `rewards="gaussian"`. `rate_at_most` promises rewards in [0, 1] with means of at most that, and sets sigma.
    """

    arms: int
    horizon: int
    rho: float
    constants: Literal["certified", "paper"] = "certified"
    sigma: float = 0.5
    rewards: RewardKind | None = None
    rate_at_most: float | None = None

    def __post_init__(self) -> None:
        arms = self._checked_arms()
        horizon = checked_horizon(self.horizon, arms)
        rho = open_unit(self.rho, "rho")
        kind, sigma, rate = Rewards.of(self.rewards, self.sigma, self.rate_at_most)
        if self.constants not in ("certified", "paper", CALIBRATED):  # the last one only `relaxed` and protocols say
            raise InvalidArgument("constants", self.constants, "'certified' or 'paper'")
        self._set(arms=arms, horizon=horizon, rho=rho, rewards=kind, sigma=sigma, rate_at_most=rate)

    def _checked_arms(self) -> int:
        """Return the number of arms, or refuse it; linear policies take it from their actions instead."""
        return checked_arms(self.arms)

    def _set(self, **values: object) -> None:
        """Set fields of the frozen object while it is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def _rewards(self) -> Rewards:
        return Rewards.of(self.rewards, self.sigma, self.rate_at_most)

    @property
    def _paper(self) -> bool:
        return self.constants == "paper"

    @property
    def _caution(self) -> str:
        """The sentence that a guarantee adds if its constants were not chosen by a proof; empty if they were."""
        calibrated = f"Constants are {CALIBRATED}: no attack broke them, and the terms above are what is proved."
        return calibrated if self.constants == CALIBRATED else ""

    @property
    def free_constants(self) -> frozenset[str]:
        """The names of those numbers in `resolved` that the proof leaves free: its bound holds whatever they are."""
        return frozenset()

    def relaxed(self, nominal: float) -> Self:
        """Return the same policy with the constants of `nominal`, a larger rho: what `calibrate` tries."""
        # constants are what the constructor takes and `repr` leaves out
        names = [entry.name for entry in fields(self) if entry.init and not entry.repr]
        unresolved: dict[str, Any] = dict.fromkeys(names, UNRESOLVED)
        other = replace(self, rho=nominal, **unresolved)
        resolved: dict[str, Any] = {name: getattr(other, name) for name in names}
        return replace(self, **resolved | {"constants": CALIBRATED})

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Refuse rewards that the guarantee does not cover."""
        mine = self._rewards
        if self.rate_at_most is not None:
            self._check_rates(rewards, means)
            return
        # the paper's algorithms have the same constants for [0, 1] and for Gaussian rewards, so either covers the other
        covered = mine.kind == "subgaussian" or rewards.kind != "subgaussian"
        if not covered or rewards.sigma > mine.sigma:
            raise InvalidArgument("environment", rewards, f"{mine}, which the policy was built for")
        for mean in means:
            if abs(mean) > mine.reach:  # finite precision is accounted for up to there
                raise InvalidArgument("means", mean, f"at most {mine.reach:g} from 0 for a policy built for {mine}")

    def _check_rates(self, rewards: Rewards, means: Sequence[float]) -> None:
        """Refuse rewards outside [0, 1], and means above the promised rate."""
        if rewards.kind != "bounded":
            raise InvalidArgument("environment", rewards, f"{self._rewards}, which the policy was built for")
        for mean in means:
            if self.rate_at_most is not None and mean > self.rate_at_most:
                allowed = f"at most {self.rate_at_most:g}, the rate_at_most that the policy was built for"
                raise InvalidArgument("means", mean, allowed)

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose: constants, rewards and sigma; and the largest rate, where one was promised."""
        known: dict[str, Plain] = {
            "constants": self.constants,
            "rewards": self._rewards.kind,
            "sigma": fraction(self.sigma),
        }
        return known if self.rate_at_most is None else known | {"rate_at_most": str(written(self.rate_at_most))}

    @classmethod
    def _arguments(cls, protocol: Protocol, *more: str) -> dict[str, Any]:
        """Return the constructor's arguments that a protocol holds; `more` names settings beyond the common ones."""
        settings: Any = protocol.settings
        for key in ("constants", "rewards", "sigma", *more):
            if key not in settings:
                raise InvalidArgument("protocol", f"settings without {key!r}", f"what {cls.name} writes")
        return {
            "arms": protocol.arms,
            "horizon": protocol.horizon,
            "rho": open_unit(protocol.rho, "rho"),
            "constants": settings["constants"],
            "rewards": settings["rewards"],
            "sigma": from_fraction(settings["sigma"], "sigma"),
            "rate_at_most": settings.get("rate_at_most"),  # absent where none was promised
        } | {key: settings[key] for key in more}

    def _facts(self) -> dict[str, object]:
        """Return the first facts of a description: policy, arms, horizon, rho and rewards."""
        return {
            "policy": f"{self.name}, {self.constants} constants",
            "arms": self.arms,
            "horizon": self.horizon,
            "rho": self.rho,
            "rewards": str(self._rewards),
        }

    def _warn_of_short_horizon(self, longer: Callable[[], int | None], missing: str = "") -> None:
        """Warn that nothing will be learnt, or what is `missing`, and say which horizon would be long enough."""
        if _SILENT.get():
            return
        what = f"drop any of {self.arms} arms" if self.arms else "learn anything"
        shortest = longer()
        advice = "no horizon in range is long enough" if shortest is None else f"it must be at least {shortest}"
        nothing = (
            f"to {what} at rho = {self.rho:g} with {self.constants} constants, so one arm is played for good with "
            "little or no evidence"
        )
        message = f"horizon {self.horizon} is too short for {self.name} {missing or nothing}; {advice}"
        warnings.warn(message, ShortHorizonWarning, stacklevel=4)
