"""`banditto certify`: measure how often two executions make the same decisions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
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
    progress_bar,
    write_together,
)
from banditto.core.provenance import provenance

if TYPE_CHECKING:
    from banditto.cli.documents import CertificateDocument
    from banditto.problems.environment import Environment

FILES = ("certificate.json", "protocol.toml")
UntilSettled = Annotated[
    bool,
    typer.Option(
        "--until-settled",
        rich_help_panel="Simulation",
        help="Play until the verdict is PASS or FAIL, but at most --pairs (default: 1e7).",
    ),
]
Gpu = Annotated[
    bool,
    typer.Option("--gpu", rich_help_panel="Simulation", help="Play on a GPU, four million pairs at a time."),
    parameters.StandsFor("backend"),
]


def certify(
    policy: parameters.PolicyArgument,
    means: parameters.Means = None,
    theta: parameters.Theta = None,
    actions: parameters.Actions = None,
    action_set: parameters.ActionSetOption = None,
    dimension: parameters.Dimension = None,
    normalise: parameters.Normalise = False,
    log: parameters.Log = None,
    arm_column: parameters.ArmColumn = None,
    reward_column: parameters.RewardColumn = None,
    reward_range: parameters.RewardRange = None,
    horizon: parameters.Horizon = None,
    rho: parameters.Rho = None,
    gap: parameters.Gap = None,
    power: parameters.Power = None,
    control: parameters.Control = None,
    rate_at_most: parameters.RateAtMost = None,
    pairs: parameters.Pairs = None,
    until_settled: UntilSettled = False,
    environment: parameters.EnvironmentOption = None,
    seed: parameters.Seed = None,
    noise_seed: parameters.NoiseSeed = None,
    confidence: parameters.Confidence = None,
    jobs: parameters.Jobs = None,
    cluster: parameters.Cluster = None,
    gpu: Gpu = False,
    out: parameters.Out = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Play pairs of executions with the same coins and different rewards, and count how many pairs agree.

    Exit code 0 when the policy passes at this rho, or when its rho is proved and the pairs do not contradict that; 3
    when it fails, or when nothing is proved and more pairs are needed. With --out, the same command continues a run
    that was stopped, and a larger --pairs adds to the pairs that are there.
    """
    from banditto.engine.ledger import FILE_NAME  # numerical libraries are loaded once there is work for them
    from banditto.measure import certify as certification
    from banditto.problems.spec import ProblemSpec, chosen, typed

    workers = parameters.WorkerOptions.of(jobs, cluster, gpu)
    with collected_warnings() as warnings:
        spec = ProblemSpec(
            means=means,
            environment=environment,
            theta=theta,
            actions=actions,
            action_set=action_set,
            dimension=dimension,
            normalise=normalise or None,
            log=log,
            arm_column=arm_column,
            reward_column=reward_column,
            reward_range=reward_range,
        )
        problem = chosen(
            policy,
            spec.instance,
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
    with output_directory(parameters.folder(out), (*FILES, FILE_NAME), overwrite) as folder:
        try:
            with notices(quiet), workers.opened() as executor, progress_bar("certify", quiet) as progress:
                certificate = certification.certify(
                    problem.policy,
                    problem.environment,
                    horizon=problem.horizon,
                    rho=problem.rho,
                    seed=problem.seed,
                    noise_seed=typed("noise_seed", noise_seed),
                    pairs=typed("pairs", pairs),
                    until_settled=until_settled,
                    out=folder,
                    confidence=0.95 if confidence is None else typed("confidence", confidence),
                    backend="cupy" if gpu else "numpy",
                    jobs=workers.jobs,
                    executor=executor,
                    progress=progress,
                )
        except KeyboardInterrupt:
            _tell_of_interrupt(folder)
            raise
        told = [certificate.warning] if certificate.warning else []
        content: CertificateDocument | None = None
        if as_json or folder is not None:
            content = {**certificate.to_dict(), "warnings": [*warnings, *told], **provenance()}
        if folder is not None:
            texts = json.dumps(content, indent=2, allow_nan=False) + "\n", certificate.protocol.to_toml()
            write_together(folder, dict(zip(FILES, texts, strict=True)))
    if as_json and content is not None:
        print_json(content)
    else:
        print_text(certificate.table())
        if log is not None:
            _print_log(problem.environment)
        print_warnings([] if quiet else told)
    if certificate.interrupted:
        _tell_what_is_kept(certificate.pairs, folder)
        return EXIT_INTERRUPTED
    return EXIT_OK if certificate.verdict in ("PASS", "CONSISTENT") else EXIT_CHECK


def _print_log(environment: Environment) -> None:
    from banditto.problems.environments.resampled import Resampled

    assert isinstance(environment, Resampled)
    print_text(f"\n{environment.table()}")


def _tell_of_interrupt(folder: Path | None) -> None:
    from banditto.engine.ledger import FILE_NAME

    what = "nothing to report"
    if folder is not None and (folder / FILE_NAME).exists():
        what = "finished pairs are kept, and the same command goes on from there"
    sys.stderr.write(f"banditto: interrupted before there was a result; {what}\n")


def _tell_what_is_kept(pairs: int, folder: Path | None) -> None:
    kept = f"the result is that of --pairs {pairs}, and the same command runs all pairs"
    if folder is not None:
        kept = f"{pairs:,} pairs are kept, and the same command goes on from there"
    sys.stderr.write(f"banditto: interrupted; {kept}\n")
