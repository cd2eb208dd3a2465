"""`banditto plan`: what an experiment needs and costs, before it begins."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from banditto.cli import parameters
from banditto.cli.output import (
    EXIT_OK,
    output_directory,
    place_to_save,
    print_json,
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
from banditto.problems.spec import ProblemSpec, typed

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
        metavar="POLICY", help="A name such as random-threshold:paper (default: one-cut; early-cut with --same winner)."
    ),
]
PolicyFlag = Annotated[str | None, typer.Option("--policy", metavar="NAME", hidden=True, help="The same as POLICY.")]
PlanGap = Annotated[
    str | None, typer.Option("--gap", metavar="X", help="By how much the best arm leads; leave it out to solve for it.")
]
PlanRho = Annotated[
    str | None, typer.Option("--rho", metavar="X", help="Allowed probability that two runs differ; may be left out.")
]
PlanHorizon = Annotated[str | None, typer.Option("--horizon", metavar="N", help="Pulls in all; may be left out.")]
RegretOption = Annotated[
    str | None, typer.Option("--regret", metavar="X", help="Expected regret that is allowed; then leave out two.")
]
Power = Annotated[
    str | None,
    typer.Option("--power", metavar="X", help="How likely arms a gap worse must be dropped in time (default: 0.95)."),
]
Resolve = Annotated[
    str | None, typer.Option("--resolve", metavar="X", hidden=True, help="The name that --power had before.")
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="X",
        help="In time: before this share of the horizon is spent (default: 0.5; not used with --same winner).",
    ),
]
Same = Annotated[
    str | None,
    typer.Option(
        "--same",
        metavar="WHAT",
        help="What two runs have in common: sequence (every pull; default) or winner, which takes fewer on average.",
    ),
]
Baseline = Annotated[
    str | None, typer.Option("--baseline", metavar="X", help="The worse arms' mean in the rehearsals.")
]
PlanOut = Annotated[
    str | None, typer.Option("--out", metavar="DIR", help="Write plan.json, protocol.toml, and curves over rho there.")
]
Save = Annotated[str | None, typer.Option("--save", metavar="FILE", help="Write the protocol there (.toml).")]


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
    save_to: Save = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Solve for the one of gap, rho and horizon that is left out, and say what the experiment will cost.

    A plan is feasible if it drops every arm in time that is worse than the best by the gap, on arms that all are.
    With --same winner it is what names the best arm, and the horizon is the most pulls that it may take. What is saved
    has a random seed unless --seed is given: who knows the seed knows which arm comes next.
    """
    if policy is not None and policy_flag not in (None, policy):
        raise InvalidArgument("--policy", policy_flag, f"{policy}, which was named already, or none")
    place = place_to_save(save_to, overwrite)
    if seed is None and (save_to is not None or out is not None):
        seed = str(parameters.drawn_seed())
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
            with progress_bars(quiet) as progress:
                write_together(folder, _files(found, content, progress))
    if as_json:
        print_json(content)
    else:
        sys.stdout.write(found.table() + "\n")
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
