"""What the page of an experiment shows, put together from its status and its decisions; no log is read for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from banditto.core.text import short
from banditto.live.answers import ExperimentStatus
from banditto.live.event_log import Event
from banditto.live.folded_log import Decision
from banditto.live.registration import Registration
from banditto.live.replicate import Grounds, grounds_of
from banditto.measure.analysis.analysis import Analysis
from banditto.policies.policy import Term
from banditto.report.standing_figures import PlayedBatch, SeenSide
from banditto.service.pages.rendering import moment
from banditto.service.pages.standing_words import deciding, first_sentence, more_lines

_MOST_NAMES = 12  # of arms in one cell


class BatchLine(NamedTuple):
    """A batch as a row of a table: pulls of each arm, rewards that are in, what became of it."""

    number: int
    pulls: str
    told: int
    planned: int
    arms: str
    outcome: str


class Fact(NamedTuple):
    """Something that the protocol fixed, and its value in words."""

    what: str
    value: str


@dataclass(frozen=True, kw_only=True)
class ExperimentView:
    """All that a page shows of an experiment, in words and numbers."""

    status: ExperimentStatus
    sentence: str
    more: tuple[str, ...]
    batches: tuple[BatchLine, ...]
    told: int
    planned: int
    decision: str  # known by the hash of its event; empty before the first
    facts: tuple[Fact, ...]
    agree: str
    bound: float
    bound_note: str
    terms: tuple[Term, ...]
    level: str

    @property
    def terms_text(self) -> list[tuple[str, str, str]]:
        """The terms of the proved bound as rows of a table: name, value, statement."""
        return [(term.name, short(term.value), term.statement) for term in self.terms]


_LEVELS = {
    "sequence": "every decision: a second run gives every visitor number the same arm, but for a chance of rho (below)",
    "winner": "the winner: a second run names the same arm, sooner or later, but for a chance of rho (below)",
}


def decisions_of(events: Sequence[Event]) -> list[Decision]:
    """Turn the store's decision events into `Decision` objects."""
    found = []
    for event in events:
        content = event.content
        found.append(
            Decision(
                batch=content["batch"],
                counts=tuple(content["counts"]),
                totals=tuple(float.fromhex(total) for total in content["totals"]),
                next_pulls=tuple(content["next"] or ()),
                event=event.number,
                time=event.time,
                winner=content.get("winner"),
            )
        )
    return found


def view_of(
    registration: Registration, status: ExperimentStatus, decisions: Sequence[Decision], last: str, now: datetime
) -> ExperimentView:
    """Build what a page shows of an experiment; `last` is the hash of the last decision."""
    protocol, guarantee = registration.protocol, registration.policy().guarantee()
    differ = "name different winners" if guarantee.level == "winner" else "make different decisions"
    agree = "name the same winner" if guarantee.level == "winner" else "make the same decisions"
    return ExperimentView(
        status=status,
        sentence=first_sentence(status, decisions),
        more=tuple(more_lines(status, decisions, now)),
        batches=tuple(_batches(registration, status, decisions)),
        told=sum(status.told.values()),
        planned=sum(status.plan.values()),
        decision=last,
        facts=(
            Fact("policy", f"{protocol.policy}, decision version {protocol.decision_version}"),
            Fact("arms", ", ".join(registration.arm_names)),
            Fact("maximum visitors", f"{protocol.horizon:,}"),
            Fact("rewards", registration.rewards.text()),
            Fact("what a second run reproduces", _LEVELS[guarantee.level]),
            Fact("rho", f"{protocol.rho}: two runs {differ} with at most this probability"),
            Fact("registered", moment(status.registered)),
            Fact("digest", registration.digest),
        ),
        agree=agree,
        bound=guarantee.total,
        bound_note=guarantee.note,
        terms=guarantee.terms,
        level=guarantee.level,
    )


# -- batches -----------------------------------------------------------------------------------------------------------


def _batches(registration: Registration, status: ExperimentStatus, decisions: Sequence[Decision]) -> list[BatchLine]:
    """Return a row for each decided batch, and one for the batch under way."""
    names = registration.arm_names
    lines = []
    for decision in decisions:
        playing = [arm for arm, count in enumerate(decision.counts) if count]
        pulls = sum(decision.counts)
        lines.append(
            BatchLine(
                decision.batch,
                _span([decision.counts[arm] for arm in playing]),
                pulls,
                pulls,
                _listed([names[arm] for arm in playing]),
                outcome(names, decision, status.decided_by),
            )
        )
    if status.state == "running":
        told, planned = sum(status.told.values()), sum(status.plan.values())
        pulls_of = list(status.plan.values())
        lines.append(BatchLine(status.batch, _span(pulls_of), told, planned, _listed(list(status.plan)), "under way"))
    return lines


def outcome(names: Sequence[str], decision: Decision, decided_by: str | None = None) -> str:
    """Say in a few words what a decision led to: a winner and whether its lead named it, arms dropped, all continue."""
    if decision.winner is not None:
        chosen = names[decision.winner]
        return f"no clear lead; {chosen} by the shared rule" if decided_by == "coin" else f"winner: {chosen}"
    after = [arm for arm, pulls in enumerate(decision.next_pulls) if pulls]
    if not after:
        return "the end"
    playing = [arm for arm, count in enumerate(decision.counts) if count]
    dropped = [names[arm] for arm in playing if arm not in after]
    if len(after) == 1 and dropped:
        return f"{names[after[0]]} alone from here on"
    return f"dropped: {_listed(dropped)}" if dropped else "all continue"


def _span(pulls: Sequence[int]) -> str:
    least, most = min(pulls, default=0), max(pulls, default=0)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


# -- what figures are drawn from ---------------------------------------------------------------------------------------


def played(registration: Registration, status: ExperimentStatus, decisions: Sequence[Decision]) -> list[PlayedBatch]:
    """Return the pulls of each batch so far, for the figure of arms in play."""
    batches = [PlayedBatch(decision.counts, True) for decision in decisions]
    if status.state == "running":
        pulls = tuple(status.plan.get(name, 0) for name in registration.arm_names)
        batches.append(PlayedBatch(pulls, False))
    return batches


class MeansSeen(NamedTuple):
    """What the figure of means is drawn from: a run's means at the decision that matters, and its cuts."""

    side: SeenSide
    cuts: dict[str, float]
    percent: bool
    batch: int


def means_seen(registration: Registration, decisions: Sequence[Decision], analysis: Analysis | None) -> MeansSeen:
    """Return the means and cuts of the decision that left one arm, or else of the last one, in the rewards' units."""
    last = deciding(decisions)
    grounds = grounds_of(registration, decisions[: decisions.index(last) + 1])
    side, cuts = own_units(registration, grounds)
    percent = analysis is not None and analysis.percent
    return MeansSeen(SeenSide("", side), cuts, percent, last.batch)


def own_units(registration: Registration, grounds: Grounds) -> tuple[dict[str, float], dict[str, float]]:
    """Return a decision's means and cuts, by name, in the rewards' own units instead of the policy's."""
    ends = registration.rewards
    if not registration.scales:
        return dict(grounds.side.means), dict(grounds.cuts)
    span = ends.high - ends.low
    return (
        {name: ends.low + mean * span for name, mean in grounds.side.means.items()},
        {name: cut * span for name, cut in grounds.cuts.items()},
    )


def utc_now() -> datetime:
    """Return the present time, in UTC."""
    return datetime.now(UTC)
