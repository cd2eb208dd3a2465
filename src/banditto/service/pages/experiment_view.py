"""What the page of an experiment shows, put together from its status and its decisions; no log is read for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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
    differ: str
    bound: float
    bound_note: str
    terms: tuple[Term, ...]
    level: str

    @property
    def terms_text(self) -> list[tuple[str, str, str]]:
        """The terms of the proof as rows of a table."""
        return [(term.name, short(term.value), term.statement) for term in self.terms]


_LEVELS = {
    "sequence": "every pull: a second run gives every visitor number the same arm",
    "winner": "the winner: a second run names the same arm, perhaps after more or fewer visitors",
}


def decisions_of(events: Sequence[Event]) -> list[Decision]:
    """Read decisions as the store has them."""
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
    """Put together what a page shows; `last` is the hash of the last decision."""
    protocol, guarantee = registration.protocol, registration.policy().guarantee()
    differ = "name different winners" if guarantee.level == "winner" else "make different decisions"
    return ExperimentView(
        status=status,
        sentence=first_sentence(status, decisions),
        more=tuple(_more(status, decisions, now)),
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
        differ=differ,
        bound=guarantee.total,
        bound_note=guarantee.note,
        terms=guarantee.terms,
        level=guarantee.level,
    )


# -- where it stands, in words -----------------------------------------------------------------------------------------


def first_sentence(status: ExperimentStatus, decisions: Sequence[Decision]) -> str:
    """Say where an experiment stands: who won or leads and by how much, or what it waits for."""
    if status.headline is not None:
        return f"{status.headline}."
    if status.state == "stopped":
        return "It was stopped before anything was decided."
    told, planned = sum(status.told.values()), sum(status.plan.values())
    if decisions:
        return f"{len(decisions)} batches are decided, and nothing can be said of them yet."
    if not told:
        return f"It waits for its first reward; the first decision needs {planned:,} of them."
    return f"Nothing is decided yet: {told:,} of the {planned:,} rewards for the first decision are in."


def _more(status: ExperimentStatus, decisions: Sequence[Decision], now: datetime) -> list[str]:
    """Say when it was decided, what is missing, and when it may be finished."""
    said = []
    if status.winner is not None and decisions:
        last = _deciding(decisions)
        said.append(f"Decided on {moment(last.time)}, after {_each(decisions[: decisions.index(last) + 1])}.")
    elif decisions and status.state == "running":
        said.append("It is not decided yet: no arm has led by enough so far.")
    if status.state == "finished":
        said.append("The experiment is finished.")
    elif status.state == "stopped":
        said.append("It was stopped before its horizon; rewards of tickets that are out are still recorded.")
    else:
        said.append(_waits(status))
        finish = projected(status, now)
        if finish:
            said.append(finish)
    return said


def _deciding(decisions: Sequence[Decision]) -> Decision:
    """Find the decision that left one arm: the first after which a single one is pulled, or the one with a winner."""
    for decision in decisions:
        if decision.winner is not None or sum(pulls > 0 for pulls in decision.next_pulls) == 1:
            return decision
    return decisions[-1]


def _each(decisions: Sequence[Decision]) -> str:
    counts = [sum(column) for column in zip(*(decision.counts for decision in decisions), strict=True)]
    if len(set(counts)) == 1:
        return f"{counts[0]:,} visitors per arm"
    return f"{min(counts):,} to {max(counts):,} visitors per arm"


def _waits(status: ExperimentStatus) -> str:
    told, planned = sum(status.told.values()), sum(status.plan.values())
    free = planned - status.issued
    if free > 0:
        return f"Batch {status.batch} has {told:,} of {planned:,} rewards; {free:,} tickets can be handed out."
    return (
        f"Batch {status.batch} has {told:,} of {planned:,} rewards, and all its tickets are out: it waits for "
        f"{status.tickets['open']:,} results."
    )


def projected(status: ExperimentStatus, now: datetime) -> str:
    """Say when this batch and all of it would be complete at the pace so far; empty where nobody can know."""
    told = status.spent + sum(status.told.values())
    passed = (now - datetime.fromisoformat(status.registered)).total_seconds()
    if told < 10 or passed < 60.0:
        return ""
    pace = told / passed
    batch = sum(status.plan.values()) - sum(status.told.values())
    ends = [_after(now, batch / pace), _after(now, (status.horizon - told) / pace)]
    if None in ends:
        return ""
    if batch >= status.horizon - told:
        return f"At the pace so far ({_paced(pace)}) it is finished {ends[1]}."
    return (
        f"At the pace so far ({_paced(pace)}) this batch is complete {ends[0]}, and everything {ends[1]} at the latest."
    )


def _paced(pace: float) -> str:
    for unit, seconds in (("a second", 1.0), ("an hour", 3600.0), ("a day", 86_400.0)):
        if pace * seconds >= 10.0 or unit == "a day":
            return f"{short(pace * seconds)} rewards {unit}"
    raise AssertionError


def _after(now: datetime, seconds: float) -> str | None:
    if not math.isfinite(seconds) or seconds > 50 * 365 * 86_400:
        return None
    then = now + timedelta(seconds=seconds)
    return f"at {then:%H:%M} UTC" if then.date() == now.date() else f"on {then:%Y-%m-%d}"


# -- batches -----------------------------------------------------------------------------------------------------------


def _batches(registration: Registration, status: ExperimentStatus, decisions: Sequence[Decision]) -> list[BatchLine]:
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
                outcome(names, decision),
            )
        )
    if status.state == "running":
        told, planned = sum(status.told.values()), sum(status.plan.values())
        pulls_of = list(status.plan.values())
        lines.append(BatchLine(status.batch, _span(pulls_of), told, planned, _listed(list(status.plan)), "under way"))
    return lines


def outcome(names: Sequence[str], decision: Decision) -> str:
    """Say what a decision led to."""
    if decision.winner is not None:
        return f"{names[decision.winner]} named the winner"
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
    """List the batches so far, for the figure of arms in play."""
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
    """Find the means and cuts of the decision that left one arm, or else of the last one, in the rewards' own units."""
    last = _deciding(decisions)
    grounds = grounds_of(registration, decisions[: decisions.index(last) + 1])
    intervals = {}
    if analysis is not None:
        intervals = {
            arm.name: (arm.low, arm.high)
            for arm in analysis.arms
            if arm.name in grounds.side.means and math.isfinite(arm.low) and math.isfinite(arm.high)
        }
    side, cuts = own_units(registration, grounds)
    percent = analysis is not None and analysis.percent
    return MeansSeen(SeenSide("", side, intervals), cuts, percent, last.batch)


def own_units(registration: Registration, grounds: Grounds) -> tuple[dict[str, float], dict[str, float]]:
    """Turn a decision's means and cuts from the policy's units into those of the rewards."""
    ends = registration.rewards
    if not registration.scales:
        return dict(grounds.side.means), dict(grounds.cuts)
    span = ends.high - ends.low
    return (
        {name: ends.low + mean * span for name, mean in grounds.side.means.items()},
        {name: cut * span for name, cut in grounds.cuts.items()},
    )


def utc_now() -> datetime:
    """Read the clock."""
    return datetime.now(UTC)
