"""The study file of a comparison that was made in Python, where one can say the same."""

from __future__ import annotations

from typing import Any

from banditto.core.errors import InvalidArgument
from banditto.engine.player import Run
from banditto.measure.compare import allotment, label_of
from banditto.measure.comparison import Comparison, Entrant
from banditto.measure.study_file import PolicyLine, StudyFile
from banditto.policies.shared.replicable import without_warnings
from banditto.problems.catalogue import OPTIONS, build_environment, build_linear_environment, build_policy, protocol_on
from banditto.problems.environment import Environment, LinearEnvironment
from banditto.problems.environments.discrete import Discrete
from banditto.problems.environments.resampled import Resampled

_PARAMETERS = ("sigma", "concentration")  # of environments: a spec has it after a colon


def study_of(comparison: Comparison) -> StudyFile | None:
    """Return the study that would play the same comparison; None if a study file cannot name all of it.

    What it names is made again and compared with what was played, digest by digest.
    """
    place = _environment(comparison.environment)
    runs = [row.run for row in comparison.entrants if row.run is not None]
    if place is None or len(runs) < len(comparison.entrants) or not runs:
        return None
    certificates = [row.certificate for row in comparison.entrants]
    study = StudyFile(
        **place,
        horizon=max(certificate.horizon for certificate in certificates),
        rho=certificates[0].rho,
        policies=tuple(_line(row, run) for row, run in zip(comparison.entrants, runs, strict=True)),
        pairs=max(certificate.pairs for certificate in certificates),
        noise_seed=certificates[0].noise_seed,
    )
    return study if all(_is_same(study, comparison, number) for number in range(len(runs))) else None


def _environment(world: Environment) -> dict[str, Any] | None:
    """Return the keys that name an environment; None if there are none."""
    if isinstance(world, Resampled):
        return {"log": "log.csv"}
    if isinstance(world, Discrete):
        return {"environment": "discrete:arms.json"}
    content = world.to_dict()
    linear = isinstance(world, LinearEnvironment)
    name = str(world.name).removeprefix("linear-")
    given = next((f":{content[key]!r}" for key in _PARAMETERS if key in content), "")
    try:
        if isinstance(world, LinearEnvironment):
            made: Environment = build_linear_environment(f"{name}{given}", content["theta"], world.actions)
        else:
            made = build_environment(f"{name}{given}", world.means)
    except InvalidArgument:  # an environment of somebody's own
        return None
    if type(made) is not type(world) or made.to_dict() != content:
        return None
    if not linear:
        return {"environment": f"{name}{given}", "means": tuple(world.means)}
    keys = {"environment": f"{name}{given}", "theta": tuple(content["theta"])}
    return keys | ({"actions": "actions.csv"} if world.means else {"action_set": "action_set.json"})


def _line(row: Entrant, run: Run) -> PolicyLine:
    spec = label_of(run.policy)
    options: dict[str, Any] = {}
    line = PolicyLine(policy=spec, label=None if row.label == spec else row.label)
    for name in OPTIONS:
        if line.takes(name) and getattr(run.policy, name, None) is not None:
            options[name] = getattr(run.policy, name)
    return PolicyLine(policy=spec, label=line.label, **options)


def _is_same(study: StudyFile, comparison: Comparison, number: int) -> bool:
    """Say whether a line of the study makes the policy that was played, for as many pulls and pairs."""
    certificate, world = comparison.entrants[number].certificate, comparison.environment
    assert study.policies is not None
    assert study.horizon is not None
    assert study.rho is not None
    line = study.policies[number]
    options = {name: getattr(line, name) for name in OPTIONS}
    arms = len(world.means)
    try:
        with without_warnings():
            made = build_policy(
                line.policy, arms=arms, horizon=study.horizon, rho=study.rho, environment=world, **options
            )
        length, pairs = allotment(made, world, study.horizon, study.pairs or 1, comparison.rounds)
        length = certificate.horizon if length is None else length
        written = protocol_on(made, seed=certificate.seed, arms=arms, horizon=length, rho=study.rho)
    except InvalidArgument:
        return False
    return written.digest == certificate.digest and length == certificate.horizon and pairs == certificate.pairs
