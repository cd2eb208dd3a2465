"""What a policy is: the interface that the simulator, the certifier, the planner and live runs share.

A batched policy is three pure functions on small arrays with axes (replicate, arm):

    state = policy.init(replicates)
    pulls = policy.plan(state)                      # how often to pull each arm now; None when all is spent
    state = policy.decide(state, totals, coins)     # totals: the summed rewards of exactly those pulls

It owns no generator, clock or file. All rows of a state are at the same batch; a row that has spent its horizon
plans zero pulls. Pulls add up to the horizon exactly. Totals of pulls that end the horizon decide nothing, and a
caller may pass zeros for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from typing_extensions import TypedDict

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import float_above, precise, real, written
from banditto.core.json_types import Keywords
from banditto.core.protocol import Plain
from banditto.core.protocol import Protocol as WrittenProtocol
from banditto.core.rewards import Rewards
from banditto.core.text import html_table, short, text_table

# What a per-round policy sees of each arm: pulls n, summed rewards, their average, 1/n (0 before the first pull); and
# numbers of its own (0 at first; one for each arm, unless it is `Remembering`), the only ones that it may write to.
Record = tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]
Kernel = Callable[[Record, int, FloatArray, np.uint64], int]
S = TypeVar("S")
# What two executions have in common with probability 1 - rho: every pull (Definition 1), or the winner that they name.
Level = Literal["sequence", "winner"]
LevelContent = Annotated[
    Level,
    Keywords(description="what two executions have in common: sequence, every pull; winner, the arm that they name"),
]


class Term(NamedTuple):
    """One summand of a guarantee: its name, its value and the statement that it evaluates."""

    name: str
    value: float
    statement: str


class TermContent(TypedDict):
    """A `Term` as plain data."""

    name: str
    value: float
    statement: str


class ProvedContent(TypedDict):
    """A `Guarantee` as plain data."""

    terms: list[TermContent]
    total: float
    rho: float
    holds: bool
    level: LevelContent
    promised_gap: float | None
    note: str


class DescriptionContent(TypedDict):
    """A `Description` as plain data: its batches have the header's words as keys."""

    facts: dict[str, Any]
    batches: list[dict[str, Any]]


@dataclass(frozen=True)
class Guarantee:
    """A bound on the probability that two executions differ, term by term: in a pull (Definition 1), or in the winner.

    With a `promised_gap` it holds only where one arm is better than all others by at least that; `on` checks it.

    Args:
        terms: The summands: name, value and the statement that each evaluates.
        total: Their sum, rounded upwards.
        rho: The largest allowed probability that two executions differ.
        holds: Whether the proof's total is at most rho, compared in exact arithmetic before rounding.
        note: What a reader should know beyond the terms; empty by default.
        promised_gap: The lead of the best arm that the proof assumes. Default None: it assumes nothing.
        level: "sequence", the default, if it is about every pull; "winner" if it is about the arm that is named.

    Examples:
        >>> from banditto import RandomThreshold
        >>> guarantee = RandomThreshold(arms=2, horizon=10**6, rho=0.1).guarantee()
        >>> print(guarantee.table())
        term               value      statement
        -----------------  ---------  -----------------------------------------------------------
        good event         2e-06      2/T: in some execution a mean is off by more than U~/2
        undecided batches  0.09942    (K-1) M kappa/sqrt(beta L), M = 2, kappa = 1.128, beta = 29
        finite precision   8.803e-13  (K-1) M (2^-47 + 2^-48 R/U): coins, cuts, totals
        total              0.09942    <= rho = 0.1
    """

    terms: tuple[Term, ...]
    total: float
    rho: float
    holds: bool
    note: str = ""
    promised_gap: float | None = None
    level: Level = "sequence"

    @classmethod
    def of(
        cls,
        terms: Sequence[tuple[str, Decimal, str]],
        rho: float,
        note: str = "",
        promised_gap: float | None = None,
        level: Level = "sequence",
    ) -> Self:
        """Add exact terms up, round each and the total upwards, and return the guarantee."""
        with precise():
            total = sum((value for _, value, _ in terms), Decimal(0))
            holds = total <= written(rho)
        rounded = tuple(Term(name, float_above(value), statement) for name, value, statement in terms)
        # a decimal rho may lie above its own float: a total that is at most rho is not printed as more
        printed = min(float_above(total), rho) if holds else float_above(total)
        return cls(rounded, printed, rho, holds, note, promised_gap, level)

    def on(self, means: Sequence[float]) -> Guarantee:
        """Return what is proved for arms with these means: the same, or nothing if they break the promise."""
        if self.promised_gap is None:
            return self
        if isinstance(means, str) or len(means) < 2:
            raise InvalidArgument("means", means, "the expected reward of each arm")
        with precise():
            best, second = sorted((written(real(mean, "means")) for mean in means), reverse=True)[:2]
            # means may have been computed in floating point; proofs leave more room than that for rounding
            rounding = Decimal(2) ** -50 * max(abs(best), abs(second), Decimal(1))
            if best - second >= written(self.promised_gap) - rounding:
                return self
        statement = f"the best arm leads by {best - second:.6g}, promised were {self.promised_gap:g}"
        return Guarantee.of(
            [("promise broken", Decimal(1), statement)], self.rho, self.note, self.promised_gap, self.level
        )

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = [(term.name, short(term.value), term.statement) for term in self.terms]
        relation = "<=" if self.holds else ">"
        about = ", for the same winner" if self.level == "winner" else ""
        return [*rows, ("total", short(self.total), f"{relation} rho = {self.rho:g}{about}")]

    def table(self) -> str:
        """Return the terms, the total and the note as plain text."""
        table = text_table(("term", "value", "statement"), self._rows())
        return f"{table}\n{self.note}" if self.note else table

    def _repr_html_(self) -> str:
        return html_table(("term", "value", "statement"), self._rows())

    def to_dict(self) -> ProvedContent:
        """Return the same as plain data."""
        return {
            "terms": [{"name": term.name, "value": term.value, "statement": term.statement} for term in self.terms],
            "total": self.total,
            "rho": self.rho,
            "holds": self.holds,
            "level": self.level,
            "promised_gap": self.promised_gap,
            "note": self.note,
        }


@dataclass(frozen=True)
class Description:
    """What a policy will do: facts, and one row per batch."""

    facts: Mapping[str, object]
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def table(self) -> str:
        """Return facts and batches as plain text."""
        facts = "\n".join(f"{name}: {value}" for name, value in self.facts.items())
        return f"{facts}\n\n{text_table(self.header, self.rows)}"

    def _repr_html_(self) -> str:
        return html_table(("fact", "value"), list(self.facts.items())) + html_table(self.header, self.rows)

    def to_dict(self) -> DescriptionContent:
        """Return the same as plain data; `header` and `rows` are its `batches`, a dictionary for each row."""
        return {
            "facts": dict(self.facts),
            "batches": [dict(zip(self.header, row, strict=True)) for row in self.rows],
        }


class Configured(Protocol):
    """What every policy has: a name, settings, and a version that rises when its decisions change."""

    @property
    def name(self) -> str:
        """The name on the command line and in protocols."""

    @property
    def decision_version(self) -> int:
        """Raised only when golden decisions change."""

    def settings(self) -> Mapping[str, Plain]:
        """Return what the user chose, beyond arms, horizon and rho."""

    def resolved(self) -> Mapping[str, Plain]:
        """Return the constants that decide, as integers and exact fractions."""

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Raise `InvalidArgument` for rewards, or means, that the policy was not made for."""


@runtime_checkable
class BatchedPolicy(Configured, Protocol[S]):
    """A policy that works in batches, replicable or not; `S` is its state."""

    @property
    def arms(self) -> int:
        """The number of arms."""

    @property
    def horizon(self) -> int:
        """The number of pulls in one execution."""

    def init(self, replicates: int) -> S:
        """Return the state before the first batch."""

    def plan(self, state: S) -> IntArray | None:
        """Return the pulls per (replicate, arm) for the next batch, or None when every replicate is done."""

    def decide(self, state: S, totals: FloatArray, coins: Coins) -> S:
        """Return the state after the batch just planned brought these totals."""


@runtime_checkable
class Policy(BatchedPolicy[S], Protocol[S]):
    """A replicable policy."""

    @property
    def rho(self) -> float:
        """The largest allowed probability that two executions differ."""

    def protocol(self, *, seed: int) -> WrittenProtocol:
        """Return what a second lab needs to decide alike; `Replicable` has it for all that inherit."""

    def guarantee(self) -> Guarantee:
        """Return the proof's bound, evaluated."""

    def minimum_horizon(self) -> int | None:
        """Return the smallest horizon at which some arm could be dropped; None when there is none in range."""

    def describe(self) -> Description:
        """Return the batches with their pulls and thresholds."""


@runtime_checkable
class Leading(BatchedPolicy[S], Protocol[S]):
    """A policy that can tell a lead from a coin: what an A/A test asks for."""

    def by_lead(self, state: S, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return where `decide`, asked the same, drops or chooses an arm because another leads by enough; (R, 1)."""


@runtime_checkable
class Acting(Configured, Protocol):
    """A policy that was made for certain actions."""

    def check_actions(self, actions: Any, centre: float) -> None:
        """Raise `InvalidArgument` for other ones, or for rewards that are linear around another centre."""


@runtime_checkable
class PlacedPolicy(BatchedPolicy[S], Protocol[S]):
    """A policy that may pull any action of an infinite set: its plans have slots instead of arms."""

    def places(self, state: S) -> FloatArray:
        """Return the actions of the columns of `plan(state)`; shape (replicate, slot, feature)."""


@runtime_checkable
class RoundPolicy(Configured, Protocol):
    """An ordinary policy that chooses round by round, in compiled code."""

    def parameters(self, arms: int, horizon: int) -> FloatArray:
        """Return the numbers handed to the kernel, on a problem of this size."""

    def kernel(self) -> Kernel:
        """Return the compiled choice of an arm, from all arms' record, the round, the parameters and a coin key."""


@runtime_checkable
class Remembering(Protocol):
    """A round policy that needs more numbers of its own than one for each arm."""

    def memory(self, arms: int) -> int:
        """Return how many numbers the kernel keeps from round to round."""


AnyPolicy = BatchedPolicy[Any] | RoundPolicy


def own_horizon(policy: AnyPolicy) -> int | None:
    """Return the horizon that a policy was built for; None for one that plays any, such as UCB1."""
    return policy.horizon if isinstance(policy, BatchedPolicy) else None


def own_rho(policy: AnyPolicy) -> float | None:
    """Return the rho that a replicable policy was built for; None for a baseline, which promises nothing."""
    return policy.rho if isinstance(policy, Policy) else None


def own_guarantee(policy: AnyPolicy) -> Guarantee | None:
    """Return what is proved of a policy; None for a baseline, of which nothing is."""
    return policy.guarantee() if isinstance(policy, Policy) else None


def own_level(policy: AnyPolicy) -> Level:
    """Return what two executions of a policy are compared by: "winner" if it says so, else "sequence"."""
    level: Level = getattr(policy, "level", "sequence")
    return level
