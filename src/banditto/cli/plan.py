"""`banditto plan`: what an experiment needs and costs, before it begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from banditto.cli import parameters
from banditto.cli.completions import LEVELS, among, complete_policy
from banditto.cli.output import (
    EXIT_OK,
    output_directory,
    place_to_save,
    print_json,
    print_text,
    print_warnings,
    progress_bars,
    spinner,
    told_of_interrupts,
    write_file,
    write_together,
)
from banditto.core.errors import InvalidArgument
from banditto.core.exact import real
from banditto.core.provenance import provenance

if TYPE_CHECKING:
    from banditto.cli.documents import PlanDocument
    from banditto.measure.plan import TrialPlan
    from banditto.policies.policy import Level

FILES = (
    "plan.json",
    "protocol.toml",
    "curves.csv",
    *(f"figures/{n}.{k}" for n in ("horizon", "regret") for k in ("png", "svg")),
)
PlanPolicy = Annotated[
    str | None,
    typer.Argument(
        metavar="POLICY",
        help="A policy such as random-threshold:paper (default: one-cut; early-cut with --same winner).",
        autocompletion=complete_policy,
    ),
]
PolicyFlag = Annotated[str | None, typer.Option("--policy", metavar="NAME", hidden=True, help="The same as POLICY.")]
PlanGap = Annotated[
    str | None,
    typer.Option(
        "--gap",
        rich_help_panel="Experiment",
        metavar="X",
        help="By how much the best arm leads. Leave out what you want to know: gap, rho or horizon.",
    ),
]
PlanRho = Annotated[
    str | None,
    typer.Option(
        "--rho",
        rich_help_panel="Experiment",
        metavar="X",
        help="The largest probability with which two runs may differ.",
    ),
]
PlanHorizon = Annotated[
    str | None, typer.Option("--horizon", rich_help_panel="Experiment", metavar="N", help="The number of pulls.")
]
RegretOption = Annotated[
    str | None,
    typer.Option(
        "--regret",
        rich_help_panel="Experiment",
        metavar="X",
        help="The expected regret that you allow; leave out two of the above.",
    ),
]
Power = Annotated[
    str | None,
    typer.Option(
        "--power",
        rich_help_panel="Experiment",
        metavar="X",
        help="How likely arms that are worse by the gap must be dropped in time (default: 0.95).",
    ),
]
Resolve = Annotated[
    str | None, typer.Option("--resolve", metavar="X", hidden=True, help="The name that --power had before.")
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        rich_help_panel="Experiment",
        metavar="X",
        help="In time means: before this share of the horizon is used (default: 0.5; not with --same winner).",
    ),
]
Same = Annotated[
    str | None,
    typer.Option(
        "--same",
        rich_help_panel="Experiment",
        metavar="WHAT",
        help="What two runs must have in common: sequence (every pull; default) or winner (fewer pulls on average).",
        autocompletion=among(*LEVELS),
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        rich_help_panel="Arms and rewards",
        metavar="X",
        help="The mean of the worse arms when the plan is tried out.",
    ),
]
PlanOut = Annotated[
    str | None,
    typer.Option(
        "--out",
        rich_help_panel="Output",
        metavar="DIR",
        help="Write plan.json, protocol.toml and curves over rho to this folder.",
    ),
]


def plan(
    policy: PlanPolicy = None,
    policy_flag: PolicyFlag = None,
    arms: parameters.ArmCount = None,
    gap: PlanGap = None,
    rho: PlanRho = None,
    horizon: PlanHorizon = None,
    regret: RegretOption = None,
    power: Power = None,
    resolve: Resolve = None,
    by: By = None,
    rate_at_most: parameters.RateAtMost = None,
    baseline: Baseline = None,
    control: parameters.Control = None,
    same: Same = None,
    actions: parameters.Actions = None,
    action_set: parameters.ActionSetOption = None,
    dimension: parameters.KindDimension = None,
    normalise: parameters.Normalise = False,
    environment: parameters.KindOption = None,
    seed: parameters.SavedSeed = None,
    out: PlanOut = None,
    save_to: parameters.Save = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Find what an experiment needs: give two of --gap, --rho and --horizon, and get the third and the cost.

    A plan works if it drops, in time, every arm that is worse than the best one by the gap. With --same winner it works
    if it names the best arm, and the horizon is the largest number of pulls. A protocol that is written has a random
    seed unless you give one: anybody who knows the seed knows which arm comes next.
    """
    if policy is not None and policy_flag not in (None, policy):
        raise InvalidArgument("--policy", policy_flag, f"{policy}, which was named already, or none")
    place = place_to_save(save_to, overwrite)
    if seed is None and (save_to is not None or out is not None):
        seed = str(parameters.drawn_seed())
    from banditto.problems.spec import ProblemSpec, typed

    world = ProblemSpec(
        arms=arms,
        actions=actions,
        action_set=action_set,
        dimension=dimension,
        normalise=normalise or None,
        environment=environment,
    ).blank()
    from banditto.measure import plan as planning  # numerical libraries are loaded once there is work for them

    with output_directory(parameters.folder(out), FILES, overwrite) as folder:
        with spinner("plan", quiet) as tell, told_of_interrupts("plan"):
            found = planning.plan(
                arms=len(world.means) or None,
                gap=typed("gap", gap),
                rho=typed("rho", rho),
                horizon=typed("horizon", horizon),
                regret=None if regret is None else real(regret, "regret"),
                policy=policy or policy_flag,
                actions=getattr(world, "actions", None),
                environment=environment or "bernoulli",
                power=None if power is None else real(power, "power"),
                resolve=typed("resolve", resolve),
                by=None if by is None else real(by, "by"),
                rate_at_most=None if rate_at_most is None else real(rate_at_most, "rate_at_most"),
                baseline=None if baseline is None else real(baseline, "baseline"),
                control=typed("control", control),
                same=cast("Level | None", same),  # it is checked there
                seed=0 if seed is None else typed("seed", seed),
                progress=tell,
            )
        told = [found.warning] if found.warning else []
        content: PlanDocument = {**found.to_dict(), "warnings": told, **provenance()}
        write_file(place, found.protocol.to_toml(), "save")
        if folder is not None:
            with progress_bars(quiet, "points") as progress:
                write_together(folder, _files(found, content, progress))
    if as_json:
        print_json(content)
    else:
        print_text(found.table())
        print_warnings([] if quiet else told)
    return EXIT_OK


def _files(found: TrialPlan, content: PlanDocument, progress: Any) -> dict[str, str | bytes]:
    from banditto.measure.plan.plans import limit_lines
    from banditto.measure.plan.trial_plan import CurvePoint, price_curves
    from banditto.report.figures import price_files
    from banditto.report.style import LOOKS

    points = price_curves(found.question, found.gap, progress=progress)
    here = CurvePoint(found.question.policy, found.rho, found.horizon, found.regret.mean)
    texts: dict[str, str | bytes] = {
        "plan.json": json.dumps(content, indent=2, allow_nan=False) + "\n",
        "protocol.toml": found.protocol.to_toml(),
    }
    return texts | price_files(points, here, LOOKS["light", "wide"], limit_lines(found.question, found.gap))
