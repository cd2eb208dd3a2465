"""Selection: the arm that was named, what named it, and what a second lab needs to do the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, NamedTuple

from typing_extensions import TypedDict

from banditto.core.errors import InvalidArgument
from banditto.core.json_types import AboveZero, Amount, Digest, InsideUnit, Keywords, Natural, Positive
from banditto.core.protocol import Protocol
from banditto.core.results import Part, Result, TablePart
from banditto.core.text import short, text_table
from banditto.engine.observations import DecidedBy, Observations
from banditto.policies.policy import Guarantee, Level, LevelContent, ProvedContent

SCHEMA_VERSION: Final = 1
HEADER = ("arm", "mean", "pulls", "")


class EstimateContent(TypedDict):
    """An `Estimate` as plain data."""

    mean: float | None
    pulls: Natural


class Estimate(NamedTuple):
    """The mean of an arm's rewards, None without any, and how many there are."""

    mean: float | None
    pulls: int

    def to_dict(self) -> EstimateContent:
        """Return plain data with the names of the fields."""
        return {"mean": self.mean, "pulls": self.pulls}


class SelectionContent(TypedDict):
    """A `Selection` as plain data."""

    schema_version: Literal[1]
    winner: str
    decided_by: Annotated[
        DecidedBy,
        Keywords(description="lead: the winner led by more than needed_lead; coin: nobody did (a tie, or nearly)"),
    ]
    level: LevelContent
    estimates: Annotated[dict[str, EstimateContent], Keywords(minProperties=2)]
    pulls: Annotated[Positive, Keywords(description="of all arms")]
    most_pulls: Annotated[Positive, Keywords(description="of all arms, had no look named a winner before the cap")]
    lead: Annotated[Amount, Keywords(description="of the best mean over the second best")]
    needed_lead: Annotated[Amount, Keywords(description="the shared cut")]
    gap: AboveZero
    power: InsideUnit
    rho: InsideUnit
    seed: Natural
    control: str | None
    guarantee: ProvedContent
    digest: Digest
    protocol: dict[str, Any]
    warnings: list[str]


@dataclass(frozen=True, kw_only=True, repr=False)
class Selection(Result):
    """The winner that `select` named, and what named it: its lead, or the shared coin.

    On a tie, or near one, nobody leads by enough. Then the coin names the winner, the same in a second lab, and says
    nothing about which arm is better: `decided_by` is "coin".

    Attributes:
        winner: the name of the arm.
        decided_by: "lead" if it led by more than was needed, "coin" if nobody did.
        estimates: the `mean` of each arm's rewards and the number of its `pulls`, by name.
        pulls: pulls of all arms.
        most_pulls: what they could have been, had no look named a winner before the cap.
        lead: by how much the best mean was ahead of the second best.
        needed_lead: what it had to be ahead by: the shared cut.
        guarantee: the proved bound on the probability that two labs name different winners.
        protocol: what a second lab needs: constants and seed.
        level: "winner": what two labs have in common is the winner.
        gap: the smallest lead that matters.
        power: how likely the best arm wins where it leads by the gap.
        control: the arm that is kept unless another one leads; None if there is none.
        warnings: arms whose rewards contradict the `rate_at_most` that was promised.
        seen: what was seen at every look, for `analyse`.

    Examples:
        >>> from banditto import select
        >>> arms = {"old": lambda rng: rng.random() < 0.4, "new": lambda rng: rng.random() < 0.8}
        >>> found = select(arms, gap=0.2, seed=2)
        >>> found.winner, found.decided_by, found.level
        ('new', 'lead', 'winner')
    """

    winner: str
    decided_by: DecidedBy
    estimates: dict[str, Estimate]
    pulls: int
    most_pulls: int
    lead: float
    needed_lead: float
    guarantee: Guarantee = field(repr=False)
    protocol: Protocol = field(repr=False)
    level: Level
    gap: float
    power: float
    control: str | None = None
    warnings: tuple[str, ...] = ()
    seen: Observations | None = field(default=None, repr=False, compare=False)

    _picture = "selection_figure:selection_figure"
    _named = ("winner", "decided_by", "lead", "needed_lead", "pulls")

    def observations(self) -> Observations:
        """Return what was seen at every look, as `analyse` wants it."""
        if self.seen is None:
            raise InvalidArgument("source", "a selection without its looks", "what `select` returned")
        return self.seen

    @property
    def verdict(self) -> str:
        """Who won and by what, in a sentence or two."""
        if self.decided_by == "lead":
            led = f"it led by {short(self.lead)}, and more than {short(self.needed_lead)} was needed"
            return f"{self.winner} wins by its lead: {led}."
        needed = f"no arm led by more than {short(self.needed_lead)}, which was needed"
        if self.winner == self.control:
            return f"{self.winner} is kept, as the control: {needed} to take its place."
        sure = 1.0 - self.guarantee.total
        agree = f"two labs agree with probability {sure:.3g} or more"
        named = f"No arm led by enough, so the shared coin names {self.winner} ({agree})"
        if self._ahead:
            return f"{named}: {needed} to win by its lead. It is ahead by {short(self.lead)}, which may be noise."
        return f"{named}: {needed} to take its place. This does not show that {self.winner} is better."

    @property
    def _ahead(self) -> bool:
        best = max(self.estimates, key=lambda name: self.estimates[name].mean or 0.0)
        return self.lead > 0.0 and best == self.winner

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the lines of the table: each arm, its mean, its pulls, and a word beside the winner."""
        word = {"lead": "winner, by its lead", "coin": "winner, by the coin"}[self.decided_by]
        if self.decided_by == "coin" and self._ahead:
            word = "winner, by the coin, and ahead"
        if self.decided_by == "coin" and self.winner == self.control:
            word = "winner, as the control"
        return [(*line, word if line[0] == self.winner else "") for line in estimate_rows(self.estimates)]

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("pulls", f"{self.pulls:,} in all, of {self.most_pulls:,} at the most"),
            ("level", "winner: what a second lab finds again is the winner, not every pull"),
            ("proved", f"two labs name different winners with probability {self.guarantee.total:.3g} at the most"),
            ("power", f"{self.power:g} to find an arm that leads by {self.gap:g}"),
            ("digest", self.protocol.digest[:12]),
        ]

    def table(self) -> str:
        """Return who won and by what, each arm's mean and pulls, and what is proved, as plain text."""
        arms = text_table(HEADER, self.rows(), align="lrrl")
        facts = "\n".join(f"{name:<8}{value}" for name, value in self._facts())
        return "\n".join([self.verdict, "", arms, "", facts, *(f"warning: {line}" for line in self.warnings)])

    def _parts(self) -> list[Part]:
        facts = TablePart(("fact", "value"), self._facts())
        return [self.verdict, TablePart(HEADER, self.rows()), facts, *(f"warning: {line}" for line in self.warnings)]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each arm: its mean, its pulls, and whether it won."""
        return [
            {"arm": name, "mean": estimate.mean, "pulls": estimate.pulls, "winner": name == self.winner}
            for name, estimate in self.estimates.items()
        ]

    def to_dict(self) -> SelectionContent:
        """Return plain data with the names of the attributes but `seen`, and rho, seed and digest of the protocol."""
        return {
            "schema_version": SCHEMA_VERSION,
            "winner": self.winner,
            "decided_by": self.decided_by,
            "level": self.level,
            "estimates": {name: estimate.to_dict() for name, estimate in self.estimates.items()},
            "pulls": self.pulls,
            "most_pulls": self.most_pulls,
            "lead": self.lead,
            "needed_lead": self.needed_lead,
            "gap": self.gap,
            "power": self.power,
            "rho": self.guarantee.rho,
            "seed": self.protocol.seed,
            "control": self.control,
            "guarantee": self.guarantee.to_dict(),
            "digest": self.protocol.digest,
            "protocol": dict(self.protocol.to_dict()),
            "warnings": list(self.warnings),
        }


def estimate_rows(estimates: dict[str, Estimate]) -> Sequence[tuple[str, str, str]]:
    """Write each arm's name, mean and pulls."""
    return [
        (name, "" if estimate.mean is None else short(estimate.mean), f"{estimate.pulls:,}")
        for name, estimate in estimates.items()
    ]
