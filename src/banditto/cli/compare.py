"""`banditto compare`: many policies on one environment, and a report of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from banditto.cli import parameters
from banditto.cli.completions import complete_policies
from banditto.cli.output import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    collected_warnings,
    notices,
    output_directory,
    print_json,
    print_text,
    print_warnings,
    progress_bars,
)
from banditto.core.provenance import provenance
from banditto.core.text import PAGE, filled

if TYPE_CHECKING:
    from banditto.cli.documents import ComparisonDocument

StudyArgument = Annotated[
    str | None, typer.Argument(metavar="STUDY", help="A study file (.toml); options replace what it says.")
]
Policies = Annotated[
    str | None,
    typer.Option(
        "--policies",
        metavar="NAME,NAME,...",
        help="The policies to compare, such as one-cut,ucb1; `banditto policies` lists them.",
        autocompletion=complete_policies,
        rich_help_panel="Policy",
    ),
    parameters.StandsFor("policy"),
]
Rounds = Annotated[
    str | None,
    typer.Option(
        "--rounds",
        rich_help_panel="Simulation",
        metavar="N",
        help="How many rounds an ordinary policy such as ucb1 may play in all (default: 2e7).",
    ),
]
ReportOut = Annotated[
    str | None,
    typer.Option(
        "--out",
        rich_help_panel="Output",
        metavar="DIR",
        help="Write report.html, figures and results to this folder, and keep finished pairs there.",
    ),
]


def compare(
    study: StudyArgument = None,
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
    policies: Policies = None,
    horizon: parameters.Horizon = None,
    rho: parameters.Rho = None,
    gap: parameters.Gap = None,
    power: parameters.Power = None,
    control: parameters.Control = None,
    rate_at_most: parameters.RateAtMost = None,
    pairs: parameters.Pairs = None,
    rounds: Rounds = None,
    environment: parameters.EnvironmentOption = None,
    seed: parameters.Seed = None,
    noise_seed: parameters.NoiseSeed = None,
    confidence: parameters.Confidence = None,
    jobs: parameters.Jobs = None,
    cluster: parameters.Cluster = None,
    out: ReportOut = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Measure several policies on the same arms: how often they agree with themselves, and what they lose.

    Exit code 0 when all were measured, whatever the verdicts are; to check one policy, use `certify`.
    """
    # numerical libraries are loaded once there is work for them
    from banditto.measure.study_file import PolicyLine, StudyFile
    from banditto.problems.environments.resampled import Resampled

    workers = parameters.WorkerOptions.of(jobs, cluster)
    study_file = StudyFile() if study is None else StudyFile.load(study)
    names = None if policies is None else parameters.words(policies, "policies")
    study_file = study_file.with_flags(
        means=means,
        policies=None if names is None else tuple(PolicyLine(policy=name) for name in names),
        horizon=horizon,
        rho=rho,
        gap=gap,
        power=power,
        control=control,
        rate_at_most=rate_at_most,
        pairs=pairs,
        rounds=rounds,
        environment=environment,
        seed=seed,
        noise_seed=noise_seed,
        confidence=confidence,
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
    with collected_warnings() as warnings:
        built = study_file.built()
    if not quiet and not as_json:
        print_warnings(warnings)
    from banditto.measure import compare as comparing
    from banditto.measure.certify import DEFAULT_PAIRS
    from banditto.measure.comparison import least_explained
    from banditto.report.report_folder import NAMES, write_files

    target = parameters.folder(out)
    drawn = True
    with (
        output_directory(target, NAMES, overwrite) as folder,
        notices(quiet),
        workers.opened() as executor,
        progress_bars(quiet) as progress,
    ):
        comparison = comparing.compare(
            built.policies,
            built.environment,
            labels=built.labels,
            horizon=study_file.horizon,
            rho=study_file.rho,
            pairs=DEFAULT_PAIRS if study_file.pairs is None else study_file.pairs,
            rounds=comparing.DEFAULT_ROUNDS if study_file.rounds is None else study_file.rounds,
            seed=study_file.seed or 0,
            noise_seed=study_file.noise_seed,
            confidence=0.95 if study_file.confidence is None else study_file.confidence,
            jobs=workers.jobs,
            executor=executor,
            curves=folder is not None,
            out=folder,
            progress=progress,
        )
        if not comparison.entrants:
            sys.stderr.write("banditto: interrupted before the first policy was finished; nothing to report\n")
            raise KeyboardInterrupt
        told = [row.warning for row in comparison.entrants if row.warning]
        content: ComparisonDocument = {
            "title": study_file.title,
            **comparison.to_dict(),
            "warnings": [*warnings, *told],
            **provenance(),
        }
        if folder is not None:
            drawn = write_files(folder, comparison, study_file, content, progress)
    if as_json:
        print_json(content)
    else:
        print_text(comparison.table())
        if isinstance(built.environment, Resampled):
            print_text(f"\n{built.environment.table()}")
        for sentence in least_explained(comparison):
            print_text(f"\n{filled(sentence, PAGE)}")
        print_warnings([] if quiet else told)
    if target is not None and not quiet and not as_json:
        sys.stderr.write(f"banditto: wrote {target / ('report.html' if drawn else 'results.json')}\n")
    if comparison.interrupted or not drawn:
        what = "what is shown was finished" if comparison.interrupted else "all results are there, but no report"
        how = "goes on from there" if target is not None else "runs all of it"
        sys.stderr.write(f"banditto: interrupted; {what}, and the same command {how}\n")
        return EXIT_INTERRUPTED
    return EXIT_OK
