"""Where an experiment stands, in the words of its page: who won or leads, by how much, and what it waits for.

The numbers are those of the tables below them, to the digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from banditto.core.text import short
from banditto.live.answers import ExperimentStatus
from banditto.live.folded_log import Decision
from banditto.measure.analysis.analysis import Analysis
from banditto.service.pages.rendering import moment


def first_sentence(status: ExperimentStatus, decisions: Sequence[Decision]) -> str:
    """Say where an experiment stands: who won or leads and by how much, or what it waits for."""
    if status.analysis is not None:
        return _compared(status.analysis)
    if status.state == "stopped":
        return "It was stopped before anything was decided."
    told, planned = sum(status.told.values()), sum(status.plan.values())
    if decisions:
        return f"{len(decisions)} batches are decided, and nothing can be said of them yet."
    if not told:
        return f"It waits for its first result; the first decision needs {planned:,} of them."
    return f"Nothing is decided yet: {told:,} of the {planned:,} results for the first decision are in."


def more_lines(status: ExperimentStatus, decisions: Sequence[Decision], now: datetime) -> list[str]:
    """Say when it was decided, what is missing, and when it may be finished."""
    said = []
    if status.winner is not None and decisions:
        last = deciding(decisions)
        said.append(f"Decided on {moment(last.time)}, after {_each(decisions[: decisions.index(last) + 1])}.")
    elif decisions and status.state == "running":
        said.append("It is not decided yet: no arm has led by enough so far.")
    if status.state == "finished":
        said.append("The experiment is finished.")
    elif status.state == "stopped":
        said.append("It was stopped before its horizon; results that are still on their way are recorded.")
    else:
        said.append(_waits(status))
        finish = projected(status, now)
        if finish:
            said.append(finish)
    return said


def deciding(decisions: Sequence[Decision]) -> Decision:
    """Return the decision that left one arm: the first after which one alone is pulled, or the one with a winner."""
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
    """Say how many results of the batch have come, and what it waits for."""
    told, planned = sum(status.told.values()), sum(status.plan.values())
    free = planned - status.issued
    if free > 0:
        return f"Batch {status.batch} has {told:,} of {planned:,} results; {free:,} tickets can be handed out."
    return (
        f"Batch {status.batch} has {told:,} of {planned:,} results, and all its tickets are out: it waits for "
        f"{status.tickets['open']:,} results."
    )


def projected(status: ExperimentStatus, now: datetime) -> str:
    """Say when the batch and the whole experiment would be complete at the pace so far; empty if it is too early."""
    told = status.spent + sum(status.told.values())
    passed = (now - datetime.fromisoformat(status.registered)).total_seconds()
    if told < 10 or passed < 600.0:
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
            return f"{short(pace * seconds)} results {unit}"
    raise AssertionError


def _after(now: datetime, seconds: float) -> str | None:
    if not math.isfinite(seconds) or seconds > 50 * 365 * 86_400:
        return None
    then = now + timedelta(seconds=seconds)
    return f"at {then:%H:%M} UTC" if then.date() == now.date() else f"on {then:%Y-%m-%d}"


def _compared(found: Analysis) -> str:
    """Say who won or leads, against the best of the other arms, and what the data leave open."""
    if not found.differences or found.winner not in (None, found.arms[found.compared].name):
        return f"{found.headline}."
    pays = {arm.name: arm.estimate for arm in found.arms}
    rival = max(range(len(found.differences)), key=lambda place: pays[found.differences[place].against] or -math.inf)
    one, row = found.differences[rival], found.difference_rows()[rival]
    by, span = f"{row[2]} against {row[1]}", f"the data fit anything from {row[3]}"
    next_best = " (the next best)" if len(found.differences) > 1 else ""
    if found.winner is None and one.low > 0.0:
        return f"{row[0]} is ahead: {by}{next_best}; {span}."
    if found.winner is None:
        return f"Too early to tell: {row[0]} {by}{next_best}; {span}."
    if found.decided_by == "coin":
        kept = getattr(found.observations.policy, "control", None) is not None
        rule = f"{row[0]}, the control, was kept" if kept else f"a coin that all teams share chose {row[0]}"
        return f"No arm led by enough, so {rule}. Best estimate: {by}{next_best}; {span}."
    if one.low > 0.0:
        return f"{row[0]} won: {by}{next_best}; {span}."
    return f"{row[0]} won by its lead, and may still be no better: {by}{next_best}; {span}."
