"""Where an experiment stands, put together from what its store says."""

from __future__ import annotations

from dataclasses import asdict

from banditto.engine.observations import Observations
from banditto.live.analyse import analysed_if_possible
from banditto.live.answers import ExperimentStatus
from banditto.live.event_log import Row
from banditto.live.fold import Standing
from banditto.live.promises import contradictions, promised_rate
from banditto.live.registration import Registration
from banditto.policies.policy import own_level


def status_of(registration: Registration, row: Row, standing: Standing, seen: Observations) -> ExperimentStatus:
    """Build the status of an experiment from its row, its standing, and what its complete batches showed."""
    names, stage = registration.arm_names, standing.stage
    found = analysed_if_possible(seen)
    planned = [(names[arm], arm, pulls) for arm, pulls in enumerate(stage.pulls) if pulls]
    return ExperimentStatus(
        name=row["name"],
        state=standing.status,
        digest=row["digest"],
        head=row["head"],
        events=row["events"],
        batch=stage.batch,
        horizon=registration.protocol.horizon,
        spent=stage.spent,
        plan={name: pulls for name, _, pulls in planned},
        told={name: standing.counts[arm] for name, arm, _ in planned},
        issued=standing.issued,
        tickets=asdict(standing.tickets),
        registered=row["created"],
        warnings=_warnings(registration, standing, seen),
        level=own_level(seen.policy),
        winner=None if seen.winner is None else names[seen.winner],
        decided_by=seen.decided_by,
        headline=None if found is None else found.headline,
        estimates=() if found is None else found.arms,
        analysis=found,
    )


def _warnings(registration: Registration, standing: Standing, seen: Observations) -> tuple[str, ...]:
    """Return a line for each arm whose rewards so far contradict the promised largest rate."""
    if promised_rate(registration) is None:  # sums of any rewards may be too large for a float until they are decided
        return ()
    paid = [registration.total(*both) for both in zip(standing.sums, standing.counts, strict=True)]
    told = [*((batch.counts, batch.totals) for batch in seen.batches), (standing.counts, paid)]
    return tuple(contradictions(registration, told))
