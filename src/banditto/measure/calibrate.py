"""Calibrate: the smallest constants for which an attack finds nothing above rho.

The constants tried are those that are certified for a larger, nominal rho: what is proved for them is that larger rho,
what attacks measure is less. The result is labelled `calibrated, not certified` wherever its constants are named,
because a search that finds nothing proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.chance.coins import LARGEST_SEED
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer
from banditto.core.json_types import Digest, Horizon, InsideUnit, Keywords, Natural, Positive
from banditto.core.protocol import Protocol
from banditto.core.results import Result, TablePart
from banditto.core.text import at_least, hundredths
from banditto.engine.pool import shared_executor
from banditto.measure.attack.attacking import (
    DEFAULT_BUDGET,
    Attack,
    AttackProgress,
    Worst,
    WorstContent,
    attack,
    space_of,
)
from banditto.measure.certificate import LEVELS
from banditto.measure.certify import MOST_JOBS, certify
from banditto.policies.policy import AnyPolicy, LevelContent, Policy, own_level
from banditto.policies.shared.replicable import CALIBRATED, Replicable, without_warnings
from banditto.problems.environment import Environment
from banditto.problems.environment_words import environment_in_words

SCHEMA_VERSION: Final = 2
LARGEST_NOMINAL = 0.98
_FIRST_STEP = 1.5
_FINEST = 1.02  # nominal rhos closer than this are the same
_CONFIRMATIONS, _MOST_KNOWN = 3, 12
_REGRET_PAIRS = 2048


class CalibrationContent(TypedDict):
    """A `Calibration` as plain data."""

    schema_version: Literal[2]
    policy: str
    constants: Annotated[str, Keywords(const=CALIBRATED)]
    level: LevelContent
    arms: Annotated[int, Keywords(minimum=0, description="0 for an infinite action set")]
    horizon: Horizon
    rho: InsideUnit
    nominal_rho: Annotated[
        float,
        Keywords(exclusiveMinimum=0, exclusiveMaximum=1, description="the constants are those certified for this rho"),
    ]
    bound: Annotated[None, Keywords(description="nothing is certified")]
    proved: Annotated[float, Keywords(description="what the proof gives for these constants: more than rho")]
    attacks: Positive
    instances_tried: Positive
    pairs_tried: Positive
    worst: WorstContent
    regret_factor: Annotated[
        float,
        Keywords(exclusiveMinimum=0, description="certified regret divided by calibrated regret, on regret_means"),
    ]
    regret_means: list[float]
    seed: Natural
    digest: Digest


class CalibrationStep(NamedTuple):
    """One attack of a calibration: on which constants, how many pairs differed, and whether they passed."""

    nominal_rho: float
    differ: float
    interval: tuple[float, float]
    passed: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class Calibration(Result):
    """A calibrated policy, and the effort that did not break it.

    Made by `calibrate`. Nothing is certified for it: a search that finds nothing proves nothing.

    Attributes:
        policy: the policy with the smaller constants.
        rho: the probability of a difference that no attack found more than.
        nominal_rho: the constants are those that are certified for this larger rho.
        attacks: how many attacks were made, on this policy and on others that were tried.
        instances_tried: instances that all attacks looked at.
        pairs_tried: pairs that all attacks played.
        worst: the worst instance of the attacks that confirmed the policy.
        regret_factor: the certified policy's regret over the calibrated one's, on the arms of `regret_means`.
        regret_means: the means of the arms on which regrets were compared.
        seed: the seed of the attacks, and of the protocol.
        protocol: what a second lab needs to play the calibrated policy.
        last: the worst of the attacks that confirmed the policy.
        steps: all attacks in their order: the `nominal_rho` whose constants were attacked, the share of pairs that
            `differ` on the worst instance, its `interval`, and whether it `passed`.

    Examples:
        >>> from banditto import ExploreThenCommit, calibrate
        >>> found = calibrate(ExploreThenCommit(arms=2, horizon=10**4, rho=0.3, gap=0.5), pairs_budget=1000)
        >>> found.label, found.policy.guarantee().holds
        ('calibrated, not certified', False)
    """

    policy: Policy[Any]
    rho: float
    nominal_rho: float
    attacks: int
    instances_tried: int
    pairs_tried: int
    worst: Worst
    regret_factor: float
    regret_means: tuple[float, ...]
    seed: int
    protocol: Protocol
    last: Attack
    steps: tuple[CalibrationStep, ...] = field(default=(), compare=False)

    _picture = "attack_pictures:calibration_figure"
    _named = ("label", "rho", "nominal_rho", "attacks", "regret_factor")

    @property
    def label(self) -> str:
        """What stands wherever the constants are named: "calibrated, not certified"."""
        return CALIBRATED

    def to_dict(self) -> CalibrationContent:
        """Return plain data.

        The policy is there by name, and whole in the `protocol`, which is a file of its own and is there by its digest.
        `last`, the worst of the attacks that confirmed it, is left out but for its `worst`; `steps` are for pictures.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "policy": self.policy.name,
            "constants": self.label,
            "level": own_level(self.policy),
            "arms": self.policy.arms,
            "horizon": self.policy.horizon,
            "rho": self.rho,
            "nominal_rho": self.nominal_rho,
            "bound": None,
            "proved": self.policy.guarantee().total,
            "attacks": self.attacks,
            "instances_tried": self.instances_tried,
            "pairs_tried": self.pairs_tried,
            "worst": self.worst.to_dict(),
            "regret_factor": self.regret_factor,
            "regret_means": list(self.regret_means),
            "seed": self.seed,
            "digest": self.protocol.digest,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return what a reader wants to know, as pairs of a label and its text."""
        low, high = self.worst.interval
        return [
            ("policy", f"{self.policy.name}, constants {self.label}"),
            ("level", LEVELS[own_level(self.policy)]),
            ("arms", str(self.policy.arms)),
            ("horizon", f"{self.policy.horizon:,}"),
            ("constants", f"those certified for {self.nominal_rho:.4g} instead of {self.rho:g}"),
            ("tried", f"{self.attacks} attacks, {self.instances_tried:,} instances, {self.pairs_tried:,} pairs"),
            ("worst found on", environment_in_words(self.worst.environment)),
            (
                "agree there",
                f"{hundredths(1 - self.worst.differ, 2)} of pairs, interval {100 * (1 - high):.2f} to "
                f"{100 * (1 - low):.2f}%; wanted: {100 * (1 - self.rho):g}%",
            ),
            ("proved", self._proved()),
            ("regret", self._regret()),
            ("seed", str(self.seed)),
            ("digest", self.protocol.digest),
        ]

    def _proved(self) -> str:
        total = self.policy.guarantee().total
        return f"only {at_least(total)} of pairs agree" if total < 1.0 else "nothing"

    def _regret(self) -> str:
        if self.nominal_rho == self.rho:
            return "nothing is gained: no smaller constants than the certified ones pass"
        if abs(self.regret_factor - 1.0) < 0.005:
            return "the same as with certified constants"
        if self.regret_factor > 1.0:
            return f"{self.regret_factor:.3g} times less than with certified constants"
        return f"{1.0 / self.regret_factor:.3g} times MORE than with certified constants: wrong decisions are dearer"

    def _parts(self) -> list[TablePart]:
        return [TablePart(("calibration", ""), self.rows())]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each attack, in their order."""
        return [
            {
                "nominal_rho": step.nominal_rho,
                "differ": step.differ,
                "low": step.interval[0],
                "high": step.interval[1],
                "passed": step.passed,
            }
            for step in self.steps
        ]


CalibrationProgress = Callable[[str, int, int], None]


def calibrate(
    policy: AnyPolicy,
    *,
    pairs_budget: int = DEFAULT_BUDGET,
    seed: int = 0,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: CalibrationProgress | None = None,
) -> Calibration:
    """Search for the smallest constants that no attack breaks; the policy with them comes back, and the effort.

    An attack passes if the upper end of its exact 95% interval for P(differ) is at most rho. What is found by bisection
    must pass three more, with other seeds; each begins with the worst instances of those before.

    Args:
        policy: a replicable policy with certified constants.
        pairs_budget: how many pairs each attack may play, 1000 or more.
        seed: the seed of the attacks, and of the protocol.
        jobs: how many processes to start.
        executor: an executor of yours to use instead of processes, such as that of `cluster`.
        progress: called with the attack and its stage, the pairs that are done, and how many there are in all.

    Raises:
        InvalidArgument: an argument is not allowed, or the policy is not certified.
        WorkerError: a process could not be started, or died.

    Examples:
        >>> from banditto import ExploreThenCommit
        >>> found = calibrate(ExploreThenCommit(arms=2, horizon=10**4, rho=0.3, gap=0.5), pairs_budget=1000)
        >>> found.nominal_rho > found.rho, found.worst.interval[1] <= found.rho
        (True, True)
    """
    if not isinstance(policy, Replicable) or not isinstance(policy, Policy) or policy.constants != "certified":
        given = f"{getattr(policy, 'name', policy)}, {getattr(policy, 'constants', 'no')} constants"
        raise InvalidArgument("policy", given, "one of the replicable policies with certified constants")
    seed = integer(seed, "seed", 0, LARGEST_SEED)
    jobs = integer(jobs, "jobs", 1, MOST_JOBS)
    with shared_executor(jobs, executor) as shared:
        trial = _Trial(policy, pairs_budget, shared, progress)
        nominal = _worthwhile(_largest(trial, seed), policy.rho)
        while (found := trial.confirmed(nominal, seed)) is None:
            nominal = _worthwhile(nominal / _FINEST, policy.rho)
        with without_warnings():
            chosen = policy.relaxed(nominal)
        world = _world(policy)
        regrets = [
            certify(p, world, pairs=_REGRET_PAIRS, seed=seed, executor=shared).regret.mean for p in (policy, chosen)
        ]
    return Calibration(
        policy=chosen,
        rho=policy.rho,
        nominal_rho=nominal,
        attacks=trial.attacks,
        instances_tried=trial.instances,
        pairs_tried=trial.pairs,
        worst=found.worst,
        regret_factor=regrets[0] / regrets[1] if regrets[1] > 0.0 else 1.0,
        regret_means=world.means,
        seed=seed,
        protocol=chosen.protocol(seed=seed),
        last=found,
        steps=tuple(trial.steps),
    )


def _largest(trial: _Trial, seed: int) -> float:
    """Return the largest nominal rho that passes: steps away from rho, then bisection of the logarithm."""
    passed, failed = trial.rho, None
    while failed is None and passed < LARGEST_NOMINAL:
        following = min(passed * _FIRST_STEP, LARGEST_NOMINAL)
        if trial.passes(following, seed):
            passed = following
        else:
            failed = following
    while failed is not None and failed / passed > _FINEST:
        middle = math.sqrt(passed * failed)
        if trial.passes(middle, seed):
            passed = middle
        else:
            failed = middle
    return passed


def _worthwhile(nominal: float, rho: float) -> float:
    """Return the nominal rho, or rho itself if the gain is too small to give up a proof for."""
    return nominal if nominal >= rho * _FINEST else rho


class _Trial:
    """Makes attacks on policies with relaxed constants, and counts them."""

    def __init__(
        self, policy: Replicable, budget: int, executor: Executor | None, progress: AttackProgress | None
    ) -> None:
        self.policy, self.budget, self.executor, self.progress = policy, budget, executor, progress
        self.rho = policy.rho
        self.attacks = self.instances = self.pairs = 0
        self.last: Attack | None = None
        self.hard: list[tuple[float, ...]] = []
        self.steps: list[CalibrationStep] = []

    def confirmed(self, nominal: float, seed: int) -> Attack | None:
        """Attack again with other seeds; return the worst attack, or None if a relaxed policy failed in one of them."""
        attacks = []
        for number in range(1, _CONFIRMATIONS + 1):
            passed = self.passes(nominal, seed + number)
            assert self.last is not None
            attacks.append(self.last)
            if not passed and nominal > self.rho:
                return None
        return max(attacks, key=lambda found: found.worst.differ)

    def passes(self, nominal: float, seed: int) -> bool:
        """Say whether an attack on the constants of a nominal rho leaves them unbroken, by the interval's upper end.

        It begins with what was worst for other constants: windows move little.
        """
        with without_warnings():
            relaxed: Any = self.policy.relaxed(nominal)
        number = self.attacks + 1
        tell = self.progress or (lambda stage, done, total: None)
        found = attack(
            relaxed,
            pairs_budget=self.budget,
            known=self.hard[-_MOST_KNOWN:],
            seed=seed,
            executor=self.executor,
            progress=lambda stage, done, total: tell(f"attack {number}, {stage}", done, total),
        )
        if found.interrupted:
            raise KeyboardInterrupt
        self.attacks, self.last = number, found
        self.hard.append(found.worst.point)
        self.instances += found.instances_tried
        self.pairs += found.pairs_searched + found.worst.pairs
        passed = found.worst.interval[1] <= self.rho
        self.steps.append(CalibrationStep(nominal, found.worst.differ, found.worst.interval, passed))
        return passed


def _world(policy: Policy[Any]) -> Environment:
    """Return the arms to compare regrets on: equal gaps of a tenth of the range, or the policy's own gap."""
    return space_of(policy).typical(getattr(policy, "gap", None))
