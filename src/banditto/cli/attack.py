"""`banditto attack`: search for the instance on which a policy replicates worst."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from banditto.cli import parameters
from banditto.cli.output import (
    EXIT_CHECK,
    EXIT_INTERRUPTED,
    EXIT_OK,
    collected_warnings,
    notices,
    output_directory,
    print_json,
    print_text,
    print_warnings,
    progress_bars,
    write_together,
)
from banditto.core.provenance import provenance

if TYPE_CHECKING:
    from banditto.cli.documents import AttackDocument

FILES = ("attack.json", "protocol.toml")
Budget = Annotated[
    str,
    typer.Option(
        "--pairs-budget",
        rich_help_panel="Simulation",
        metavar="N",
        help="How many pairs of executions to play: half to search, half to measure.",
    ),
]
AttackOut = Annotated[
    str | None,
    typer.Option(
        "--out", rich_help_panel="Output", metavar="DIR", help="Write attack.json and protocol.toml to this folder."
    ),
]


def attack(
    policy: parameters.PolicyArgument,
    arms: parameters.ArmCount = None,
    actions: parameters.Actions = None,
    action_set: parameters.ActionSetOption = None,
    dimension: parameters.KindDimension = None,
    normalise: parameters.Normalise = False,
    horizon: parameters.Horizon = None,
    rho: parameters.Rho = None,
    gap: parameters.Gap = None,
    power: parameters.Power = None,
    control: parameters.Control = None,
    rate_at_most: parameters.RateAtMost = None,
    environment: parameters.KindOption = None,
    pairs_budget: Budget = "2e5",
    seed: parameters.Seed = None,
    confidence: parameters.Confidence = None,
    jobs: parameters.Jobs = None,
    cluster: parameters.Cluster = None,
    out: AttackOut = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Search for the arms on which a policy replicates worst, and measure it there on fresh pairs.

    Exit code 3 when the policy breaks its promise on these arms, 0 when it does not. Finding nothing proves nothing.
    """
    from banditto.problems.spec import ProblemSpec, chosen_blank, typed

    workers = parameters.WorkerOptions.of(jobs, cluster)
    with collected_warnings() as warnings:
        spec = ProblemSpec(
            arms=arms,
            actions=actions,
            action_set=action_set,
            dimension=dimension,
            normalise=normalise or None,
            environment=environment,
        )
        problem = chosen_blank(
            policy,
            spec,
            horizon=horizon,
            rho=rho,
            seed=seed,
            gap=gap,
            power=power,
            control=control,
            rate_at_most=rate_at_most,
        )
    if not quiet and not as_json:
        print_warnings(warnings)
    from banditto.measure.attack import attacking  # numerical libraries are loaded once there is work for them

    with output_directory(parameters.folder(out), FILES, overwrite) as folder:
        try:
            with notices(quiet), workers.opened() as executor, progress_bars(quiet) as progress:
                found = attacking.attack(
                    problem.policy,
                    pairs_budget=typed("pairs_budget", pairs_budget),
                    rho=problem.rho,
                    rewards=problem.environment.rewards.kind if environment is not None else None,
                    seed=problem.seed,
                    confidence=0.95 if confidence is None else typed("confidence", confidence),
                    jobs=workers.jobs,
                    executor=executor,
                    progress=progress,
                )
        except KeyboardInterrupt:
            sys.stderr.write("banditto: interrupted before the search was finished; nothing to report\n")
            raise
        content: AttackDocument = {**found.to_dict(), "warnings": warnings, **provenance()}
        if folder is not None:
            texts = json.dumps(content, indent=2, allow_nan=False) + "\n", found.certificate.protocol.to_toml()
            write_together(folder, dict(zip(FILES, texts, strict=True)))
    if as_json:
        print_json(content)
    else:
        print_text(found.table())
    if found.interrupted:
        sys.stderr.write("banditto: interrupted; what was found is measured on fewer pairs than the budget has\n")
        return EXIT_INTERRUPTED
    return EXIT_OK if found.verdict == "PASS" else EXIT_CHECK
