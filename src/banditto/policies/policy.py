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
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from typing_extensions import TypedDict

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import float_above, precise, real, written
from banditto.core.json_types import Keywords
from banditto.core.protocol import Plain
from banditto.core.protocol import Protocol as WrittenProtocol
from banditto.core.results import Part, Result, TablePart
from banditto.core.rewards import Rewards
from banditto.core.tabular import items_in
from banditto.core.text import PAGE, filled, short, text_table
from banditto.policies.plain_policy import PlainPolicy
from banditto.policies.plain_words import LETTERS, TERMS, column_keys, readable

# What a per-round policy sees of each arm: pulls n, summed rewards, their average, 1/n (0 before the first pull); and
# numbers of its own (0 at first; one for each arm, unless it is `Remembering`), the only ones that it may write to.
Record = tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]
Kernel = Callable[[Record, int, FloatArray, np.uint64], int]
S = TypeVar("S")
GUARANTEE_HEADER: Final = ("term", "at most", "two runs may differ because")
# What two executions have in common with probability 1 - rho: every pull (Definition 1), or the winner that they name.
Level = Literal["sequence", "winner"]
LevelContent = Annotated[
    Level,
    Keywords(description="what two executions have in common: sequence, every pull; winner, the arm that they name"),
]


class Term(NamedTuple):
    """One summand of a guarantee: its name, its value, and the formula that gives it."""

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


@dataclass(frozen=True, repr=False)
class Guarantee(Result):
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
        term               at most    two runs may differ because
        -----------------  ---------  ----------------------------------------------------
        good event         2e-06      an estimate is further off than the proof allows for
        undecided batches  0.09942    the runs drop an arm in different batches
        finite precision   8.803e-13  numbers in a computer have finitely many digits
        total              0.09942    <= rho = 0.1
        <BLANKLINE>
        good event: 2/T: in some execution a mean is off by more than U~/2
        undecided batches: (K-1) M kappa/sqrt(beta L), M = 2, kappa = 1.128, beta = 29
        finite precision: (K-1) M (2^-47 + 2^-48 R/U): coins, cuts, totals
        K: number of arms; T: horizon; m, n: pulls; the policy's page explains the other letters.
    """

    terms: tuple[Term, ...]
    total: float
    rho: float
    holds: bool
    note: str = ""
    promised_gap: float | None = None
    level: Level = "sequence"

    _picture = "price_pictures:guarantee_picture"
    _named = ("total", "rho", "holds", "level")

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
        means = items_in(means, "means", "the expected reward of each arm")
        if len(means) < 2:
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
        rows = [(term.name, short(term.value), TERMS.get(term.name, term.statement)) for term in self.terms]
        relation = "<=" if self.holds else ">"
        about = ", for the same winner" if self.level == "winner" else ""
        return [*rows, ("total", short(self.total), f"{relation} rho = {self.rho:g}{about}")]

    def table(self) -> str:
        """Return the terms and the total in words, the formula of each term, and the note, as plain text."""
        return "\n".join([text_table(GUARANTEE_HEADER, self._rows()), *self._formulas()])

    def _formulas(self) -> list[str]:
        lines = [f"{term.name}: {term.statement}" for term in self.terms if term.name in TERMS]
        return [*(["", *lines, LETTERS] if lines else []), *([self.note] if self.note else [])]

    def _parts(self) -> list[Part]:
        lines = "\n".join(line for line in self._formulas() if line)
        return [TablePart(GUARANTEE_HEADER, self._rows()), *([lines] if lines else [])]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each term, and the last for the total."""
        terms = [{"term": term.name, "value": term.value, "statement": term.statement} for term in self.terms]
        return [*terms, {"term": "total", "value": self.total, "statement": self._rows()[-1][2]}]

    def to_dict(self) -> ProvedContent:
        """Return the guarantee as plain data."""
        return {
            "terms": [{"name": term.name, "value": term.value, "statement": term.statement} for term in self.terms],
            "total": self.total,
            "rho": self.rho,
            "holds": self.holds,
            "level": self.level,
            "promised_gap": self.promised_gap,
            "note": self.note,
        }


@dataclass(frozen=True, repr=False)
class Description(Result):
    """What a policy will do: facts, and one row per batch."""

    facts: Mapping[str, object]
    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    _picture = "schedule_picture:schedule_figure"

    def __repr__(self) -> str:
        return f"Description({self.facts.get('policy', 'a policy')}, {len(self.rows)} batches)"

    def table(self) -> str:
        """Return facts and batches as plain text."""
        return f"{text_table(('policy', str(self.facts.get('policy', ''))), self._facts())}\n\n{self.batches_table()}"

    def batches_table(self, chosen: Sequence[int] | None = None) -> str:
        """Return the batches, or some of them by their places, as plain text, with a key to the headings."""
        rows = self.rows if chosen is None else [self.rows[place] for place in chosen]
        headings, cells, align = readable(self.header, rows)
        key = column_keys(self.header)
        return text_table(headings, cells, align) + (f"\n{filled(key, PAGE)}" if key else "")

    def batch_parts(self, chosen: Sequence[int] | None = None) -> list[Part]:
        """Return the same as parts of a result: the table, and the key to its headings."""
        rows = self.rows if chosen is None else [self.rows[place] for place in chosen]
        headings, cells, align = readable(self.header, rows)
        key = column_keys(self.header)
        return [TablePart(headings, cells, align), *([key] if key else [])]

    def _facts(self) -> list[tuple[str, str]]:
        """Return what is fixed, each with its name; whole numbers have commas."""
        return [
            (name, f"{value:,}" if isinstance(value, int) else str(value))
            for name, value in self.facts.items()
            if name != "policy"
        ]

    def _parts(self) -> list[Part]:
        return [TablePart(("policy", str(self.facts.get("policy", ""))), self._facts()), *self.batch_parts()]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each batch; what a batch does not have is None."""
        rows = [[None if cell == "" else cell for cell in row] for row in self.rows]
        return [dict(zip(self.header, row, strict=True)) for row in rows]

    def to_dict(self) -> DescriptionContent:
        """Return the description as plain data; `header` and `rows` are its `batches`, a dictionary for each row."""
        return {
            "facts": dict(self.facts),
            "batches": [dict(zip(self.header, row, strict=True)) for row in self.rows],
        }


class Configured(Protocol):
    """What every policy has: a name, settings, and a version that rises when its decisions change."""

    @property
    def name(self) -> str:
        """The name of the policy on the command line and in protocols."""

    @property
    def decision_version(self) -> int:
        """The version of the policy's decisions; it rises only when golden decisions change."""

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
        """Return the state after a batch, in which the pulls just planned brought these totals."""


@runtime_checkable
class Policy(BatchedPolicy[S], Protocol[S]):
    """A replicable policy."""

    @property
    def rho(self) -> float:
        """The largest allowed probability that two executions differ."""

    def protocol(self, *, seed: int) -> WrittenProtocol:
        """Return what a second lab needs to decide alike; policies that inherit from `Replicable` have it already."""

    def guarantee(self) -> Guarantee:
        """Return the proof's bound on P(two executions differ), evaluated term by term."""

    def minimum_horizon(self) -> int | None:
        """Return the smallest horizon at which some arm could be dropped; None when there is none in range."""

    def describe(self) -> Description:
        """Return the batches with their pulls and thresholds."""


@runtime_checkable
class Leading(BatchedPolicy[S], Protocol[S]):
    """A policy that can tell whether a lead or a coin decided, which an A/A test needs."""

    def by_lead(self, state: S, totals: FloatArray, coins: Coins) -> BoolArray:
        """Return in which replicates `decide`, asked the same, drops or chooses an arm by a lead; (R, 1)."""


@runtime_checkable
class Acting(Configured, Protocol):
    """A policy that was made for certain actions, and can refuse others."""

    def check_actions(self, actions: Any, centre: float) -> None:
        """Raise `InvalidArgument` for other actions, or for rewards that are linear around another centre."""


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
        """Return the compiled function that chooses an arm, from the arms' record, round, parameters and coin key."""


@runtime_checkable
class Remembering(Protocol):
    """A round policy that needs more numbers of its own than one for each arm."""

    def memory(self, arms: int) -> int:
        """Return how many numbers the kernel keeps from round to round."""


AnyPolicy = BatchedPolicy[Any] | RoundPolicy | PlainPolicy


def own_horizon(policy: AnyPolicy) -> int | None:
    """Return the horizon that a policy was built for; None for one that plays any, such as UCB1."""
    return policy.horizon if isinstance(policy, BatchedPolicy) else None


def own_rho(policy: AnyPolicy) -> float | None:
    """Return the rho that a replicable policy was built for; None for a baseline, which promises nothing."""
    return policy.rho if isinstance(policy, Policy) else None


def own_guarantee(policy: AnyPolicy) -> Guarantee | None:
    """Return what is proved of a policy; None for a baseline, for which nothing is proved."""
    return policy.guarantee() if isinstance(policy, Policy) else None


def own_level(policy: AnyPolicy) -> Level:
    """Return what two executions of a policy are compared by: "winner" if it says so, else "sequence"."""
    level: Level = getattr(policy, "level", "sequence")
    return level
