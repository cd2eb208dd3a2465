"""Attack: find the instance on which a policy replicates worst, and measure it on fresh pairs.

PASS says that nothing was found with this effort, never that nothing is there: that is what `guarantee()` proves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.chance.coins import LARGEST_SEED
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, open_unit, real
from banditto.core.json_types import Digest, Horizon, InsideUnit, Keywords, Natural, Positive, Share
from banditto.core.results import Result, TablePart
from banditto.core.rewards import RewardKind
from banditto.core.tabular import matrix_rows
from banditto.core.text import at_least, hundredths
from banditto.engine.pool import shared_executor
from banditto.measure.attack.arm_spaces import ArmSpace
from banditto.measure.attack.linear_spaces import LinearSpace
from banditto.measure.attack.search import Space, search
from banditto.measure.certificate import LEVELS, Certificate
from banditto.measure.certify import MOST_JOBS, certify, checked_rho
from banditto.numbers.intervals import MOST_PAIRS
from banditto.policies.policy import Acting, AnyPolicy, BatchedPolicy, Level, LevelContent, RoundPolicy
from banditto.policies.recognising import check_policy
from banditto.problems.catalogue import rewards_of
from banditto.problems.environment import EnvironmentContent
from banditto.problems.environment_words import environment_in_words

SCHEMA_VERSION: Final = 2
FEWEST_PAIRS = 1000
DEFAULT_BUDGET = 200_000
_SEARCH_SHARE = 0.5  # of the budget; the rest measures what was found

AttackProgress = Callable[[str, int, int], None]  # stage, pairs done, pairs in all


class WorstContent(TypedDict):
    """A `Worst` as plain data."""

    environment: EnvironmentContent
    means: Annotated[list[float], Keywords(description="of the arms; empty for an infinite action set")]
    pairs: Positive
    mismatches: Natural
    differ: Share
    interval: Annotated[
        list[float], Keywords(minItems=2, maxItems=2, description="exact, for P(two executions differ)")
    ]


class AttackContent(TypedDict):
    """An `Attack` as plain data."""

    schema_version: Literal[2]
    policy: str
    constants: str | None
    level: LevelContent
    arms: Annotated[int, Keywords(minimum=0, description="0 for an infinite action set")]
    horizon: Horizon
    rho: InsideUnit
    bound: Annotated[float | None, Keywords(description="on P(two executions differ), proved; null without a proof")]
    seed: Natural
    confidence: InsideUnit
    pairs_budget: Annotated[int, Keywords(minimum=1000)]
    instances_tried: Positive
    pairs_searched: Annotated[
        int,
        Keywords(minimum=1, description="pairs that chose the worst instance; what is reported of it has others"),
    ]
    worst: WorstContent
    verdict: Literal["PASS", "FAIL"]
    interrupted: bool
    digest: Digest


class Worst(NamedTuple):
    """The worst instance found, and how often pairs differ there; `interval` is exact, from fresh pairs alone."""

    environment: dict[str, Any]
    means: tuple[float, ...]
    pairs: int
    mismatches: int
    differ: float
    interval: tuple[float, float]

    @property
    def point(self) -> tuple[float, ...]:
        """The instance as `attack(known=...)` takes it: theta of a linear problem, else the means."""
        return tuple(self.environment.get("theta", self.means))

    def to_dict(self) -> WorstContent:
        """Return plain data with the names of the fields."""
        return {
            "environment": self.environment,
            "means": list(self.means),
            "pairs": self.pairs,
            "mismatches": self.mismatches,
            "differ": self.differ,
            "interval": list(self.interval),
        }


class Tried(NamedTuple):
    """An instance that a search looked at: the means of its arms, and how many of its pairs differed."""

    means: tuple[float, ...]  # none for an infinite action set
    pairs: int
    mismatches: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Attack(Result):
    """What an attack found; FAIL if the worst instance's lower bound on P(differ) is above rho.

    Made by `attack`. Definition 1 is about every instance: a PASS here is no proof (docs/attack.md).

    Attributes:
        policy: the policy's name.
        constants: which constants it has, such as "certified" or "paper"; None for a baseline.
        level: what pairs were compared by: "sequence", every pull, or "winner", the arm that is named.
        arms: how many arms there are; 0 for an infinite action set.
        horizon: pulls in one execution.
        rho: the largest probability of a difference that is allowed.
        bound: on that probability, proved; None without a proof that gives rho.
        seed: the seed of the search, and of the coins.
        confidence: of the worst instance's interval.
        pairs_budget: how many pairs there were for search and measurement.
        instances_tried: instances that the search looked at.
        pairs_searched: pairs that the search used; what is reported of the worst instance has others.
        worst: the worst instance: its `environment`, `means`, fresh `pairs`, `mismatches`, `differ` and `interval`.
        verdict: "PASS" or "FAIL".
        interrupted: whether Ctrl-C ended the measurement early.
        certificate: the certificate of the worst instance.
        tried: the instances that the search looked at: their `means`, `pairs` and `mismatches`.

    Examples:
        >>> from banditto import ExploreThenCommit, attack
        >>> found = attack(ExploreThenCommit(arms=2, horizon=10**4, rho=0.2, gap=0.4), pairs_budget=1000)
        >>> found.worst.differ == found.worst.mismatches / found.worst.pairs
        True
        >>> found.pairs_searched + found.worst.pairs
        1000
    """

    policy: str
    constants: str | None
    level: Level
    arms: int
    horizon: int
    rho: float
    bound: float | None
    seed: int
    confidence: float
    pairs_budget: int
    instances_tried: int
    pairs_searched: int
    worst: Worst
    verdict: Literal["PASS", "FAIL"]
    interrupted: bool
    certificate: Certificate
    tried: tuple[Tried, ...] = field(default=(), compare=False)

    _picture = "attack_pictures:attack_figure"
    _named = ("policy", "horizon", "rho", "instances_tried", "verdict")

    def to_dict(self) -> AttackContent:
        """Return plain data with the names of the attributes.

        The `certificate` of the worst instance is left out: what it measured is in `worst`, and its digest is there.
        The instances that were `tried` are for pictures; how many there are is in `instances_tried`.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "policy": self.policy,
            "constants": self.constants,
            "level": self.level,
            "arms": self.arms,
            "horizon": self.horizon,
            "rho": self.rho,
            "bound": self.bound,
            "seed": self.seed,
            "confidence": self.confidence,
            "pairs_budget": self.pairs_budget,
            "instances_tried": self.instances_tried,
            "pairs_searched": self.pairs_searched,
            "worst": self.worst.to_dict(),
            "verdict": self.verdict,
            "interrupted": self.interrupted,
            "digest": self.certificate.digest,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return what a reader wants to know, as pairs of a label and its text."""
        worst = self.worst
        low, high = worst.interval
        found = {
            "FAIL": f"FAIL: at least {hundredths(low)} of all pairs differ there, {100 * self.rho:g}% are allowed",
            "PASS": f"PASS: no arms were found where over {100 * self.rho:g}% of pairs differ, which proves nothing",
        }
        name = self.policy if self.constants is None else f"{self.policy}, {self.constants} constants"
        return [
            ("policy", name),
            ("level", LEVELS[self.level]),
            ("horizon", f"{self.horizon:,}"),
            ("tried", f"{self.instances_tried:,} instances with {self.pairs_searched:,} pairs"),
            ("worst instance", environment_in_words(worst.environment)),
            (
                "agree there",
                f"{hundredths(1 - worst.differ, 2)} of {worst.pairs:,} fresh pairs, {100 * self.confidence:g}% "
                f"interval {100 * (1 - high):.2f} to {100 * (1 - low):.2f}%"
                + (" (interrupted)" if self.interrupted else ""),
            ),
            ("proved", "none" if self.bound is None else f"{at_least(self.bound)} of pairs agree"),
            ("verdict", found[self.verdict]),
            ("seed", str(self.seed)),
            ("digest", self.certificate.digest),
        ]

    def _parts(self) -> list[TablePart]:
        return [TablePart(("attack", ""), self.rows())]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each instance that the search looked at, and last the worst one, on fresh pairs."""
        seen = [*self.tried, Tried(self.worst.means, self.worst.pairs, self.worst.mismatches)]
        return [
            {
                "means": list(one.means),
                "pairs": one.pairs,
                "mismatches": one.mismatches,
                "differ": one.mismatches / one.pairs,
                "fresh": number == len(seen),
            }
            for number, one in enumerate(seen, 1)
        ]


def attack(
    policy: AnyPolicy,
    *,
    pairs_budget: int = DEFAULT_BUDGET,
    rho: float | None = None,
    rewards: RewardKind | None = None,
    known: Sequence[Sequence[float]] = (),
    seed: int = 0,
    confidence: float = 0.95,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: AttackProgress | None = None,
) -> Attack:
    """Search for the instance on which a policy replicates worst; that instance comes back, measured on fresh pairs.

    Half of the budget goes into the search, the rest into fresh pairs of what it found: those that
    `certify(policy, worst, seed=seed, pairs=...)` would play. Definition 1 of *Replicable Bandits* is about every
    instance, which no search covers: a PASS is no proof.

    Args:
        policy: a policy that works in batches.
        pairs_budget: how many pairs to play in all, 1000 or more.
        rho: the largest probability of a difference that is allowed, for a baseline; a replicable policy has its own.
        rewards: the kind of rewards, for a baseline whose sigma does not tell: "bounded", "gaussian" or "subgaussian".
        known: instances to begin with: the means of all arms, or theta.
        seed: the seed of the search, and of the coins.
        confidence: of the worst instance's interval.
        jobs: how many processes to start.
        executor: an executor of yours to use instead of processes, such as that of `cluster`.
        progress: called with the stage, its pairs that are done, and how many there are in all.

    Raises:
        InvalidArgument: an argument is not allowed, or the policy does not work in batches.
        WorkerError: a process could not be started, or died.

    Examples:
        >>> from banditto import RandomThreshold
        >>> attack(RandomThreshold(arms=2, horizon=10**5, rho=0.3), pairs_budget=2000, seed=1).verdict
        'PASS'
    """
    check_policy(policy)
    if isinstance(policy, RoundPolicy) or not isinstance(policy, BatchedPolicy):
        given = getattr(policy, "name", policy)
        raise InvalidArgument("policy", given, "a policy that works in batches; certify measures the others")
    rho = checked_rho(policy, rho)
    budget = integer(pairs_budget, "pairs_budget", FEWEST_PAIRS, MOST_PAIRS)
    seed = integer(seed, "seed", 0, LARGEST_SEED)
    confidence = open_unit(confidence, "confidence")
    jobs = integer(jobs, "jobs", 1, MOST_JOBS)
    tell = progress or (lambda stage, done, total: None)
    space = space_of(policy, rewards)
    half = int(_SEARCH_SHARE * budget)
    instances = [] if isinstance(known, Sequence) and not known else matrix_rows(known, "known")
    with shared_executor(jobs, executor) as shared:
        points = [tuple(real(value, "known") for value in point) for point in instances]
        found = search(policy, space, half, seed, shared, lambda done: tell("searching", done, half), points)
        certificate = certify(
            policy,
            found.environment,
            pairs=budget - found.pairs,
            seed=seed,
            rho=rho,
            confidence=confidence,
            executor=shared,
            progress=lambda done, total: tell("measuring", done, total),
        )
    low, high = (1.0 - certificate.interval[1], 1.0 - certificate.interval[0])
    worst = Worst(
        environment=certificate.environment,
        means=found.environment.means,
        pairs=certificate.pairs,
        mismatches=certificate.mismatches,
        differ=certificate.mismatches / certificate.pairs,
        interval=(low, high),
    )
    return Attack(
        policy=certificate.policy,
        constants=certificate.constants,
        level=certificate.level,
        arms=len(found.environment.means),
        horizon=certificate.horizon,
        rho=certificate.rho,
        bound=certificate.bound,
        seed=seed,
        confidence=confidence,
        pairs_budget=budget,
        instances_tried=found.instances,
        pairs_searched=found.pairs,
        worst=worst,
        verdict="FAIL" if certificate.verdict == "FAIL" else "PASS",
        interrupted=certificate.interrupted,
        certificate=certificate,
        tried=tuple(
            Tried(space.environment(seen.point).means, seen.pairs, seen.differing)
            for seen in found.looked
            if seen.pairs
        ),
    )


def space_of(policy: BatchedPolicy[Any], kind: RewardKind | None = None) -> Space:
    """Return the instances that a policy was built for, with rewards of another kind if one is named."""
    rewards = rewards_of(policy, kind)
    return LinearSpace.of(policy, rewards) if isinstance(policy, Acting) else ArmSpace.of(policy, rewards)
