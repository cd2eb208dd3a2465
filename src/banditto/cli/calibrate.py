"""`banditto calibrate`: the smallest constants that no attack broke; calibrated, not certified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from banditto.cli import parameters
from banditto.cli.attack import Budget
from banditto.cli.output import (
    EXIT_OK,
    collected_warnings,
    notices,
    place_to_save,
    print_json,
    print_text,
    print_warnings,
    progress_bars,
    told_of_interrupts,
    write_file,
)
from banditto.core.provenance import provenance

if TYPE_CHECKING:
    from banditto.cli.documents import CalibrationDocument


def calibrate(
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
    seed: parameters.SavedSeed = None,
    jobs: parameters.Jobs = None,
    cluster: parameters.Cluster = None,
    save_to: parameters.Save = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Find the smallest constants with which a policy withstands all attacks that were tried.

    They are calibrated, not certified: you give up the proof and get less regret, and every table says so. A protocol
    that is written has a random seed unless you give one.
    """
    place = place_to_save(save_to, overwrite)
    from banditto.problems.spec import ProblemSpec, chosen_blank, is_protocol, typed

    if seed is None and save_to is not None and not is_protocol(policy):  # which has its own
        seed = str(parameters.drawn_seed())
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
    from banditto.measure import calibrate as calibrating  # numerical libraries are loaded once there is work for them

    with (
        collected_warnings(),
        notices(quiet),
        told_of_interrupts("calibration"),
        workers.opened() as executor,
        progress_bars(quiet) as progress,
    ):
        found = calibrating.calibrate(
            problem.policy,
            pairs_budget=typed("pairs_budget", pairs_budget),
            seed=problem.seed,
            jobs=workers.jobs,
            executor=executor,
            progress=progress,
        )
    content: CalibrationDocument = {**found.to_dict(), "warnings": warnings, **provenance()}
    tried = f"{found.attacks} attacks, {found.instances_tried} instances, {found.pairs_tried} pairs"
    write_file(place, f"# {found.label}: {tried}\n{found.protocol.to_toml()}", "save")
    if as_json:
        print_json(content)
    else:
        print_text(found.table())
    return EXIT_OK
