"""`banditto replay`: what one policy does on the rows of a log, each read once and in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from banditto.cli import parameters
from banditto.cli.output import EXIT_CHECK, EXIT_OK, collected_warnings, print_json, print_text, print_warnings
from banditto.core.provenance import provenance

if TYPE_CHECKING:
    from banditto.cli.documents import ReplayDocument

SCHEMA_VERSION: Final = 2
Split = Annotated[
    bool,
    typer.Option(
        "--split",
        rich_help_panel="Simulation",
        help="Play two labs: one reads every other row of each arm, the other reads the rest.",
    ),
]
RowHorizon = Annotated[
    str | None,
    typer.Option(
        "--horizon",
        rich_help_panel="Policy",
        metavar="N",
        help="The number of pulls (default: the log's number of rows).",
    ),
]


def replay(
    policy: parameters.PolicyArgument,
    log: parameters.RowLog,
    arm_column: parameters.ArmColumn = None,
    reward_column: parameters.RewardColumn = None,
    reward_range: parameters.RewardRange = None,
    horizon: RowHorizon = None,
    rho: parameters.Rho = None,
    gap: parameters.Gap = None,
    power: parameters.Power = None,
    control: parameters.Control = None,
    rate_at_most: parameters.RateAtMost = None,
    seed: parameters.Seed = None,
    split: Split = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Run one policy on the rows of a log. It uses each row once, in order, and simulates nothing.

    Exit code 0 when the policy gets to its horizon or names a winner, and with --split when both labs do the same;
    3 when the log has too few rows, or the labs differ.
    """
    from banditto.measure.log_rows import LogRows
    from banditto.measure.random_play import (  # numerical libraries are loaded for work alone
        coin_warning,
        decides_late,
        is_a_coins,
        late_warning,
    )
    from banditto.measure.replay import replay as replayed
    from banditto.measure.unknown_arms import share_on_averages
    from banditto.problems.spec import ProblemSpec, chosen, is_protocol

    spec = ProblemSpec(log=log, arm_column=arm_column, reward_column=reward_column, reward_range=reward_range)
    whole = spec.read_log()
    labs = whole.split() if split else (whole,)
    if horizon is None and not is_protocol(policy):
        horizon = str(whole.rows)
    with collected_warnings() as warnings:
        problem = chosen(
            policy,
            lambda _: LogRows(whole),
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
    runs = [replayed(problem.policy, lab, seed=problem.seed, horizon=problem.horizon) for lab in labs]
    share = share_on_averages(problem.policy, LogRows(whole).means)
    told = []
    late = decides_late(problem.policy)
    if share is not None and is_a_coins(share) and late:
        told = [late_warning(share)]
    elif share is not None and is_a_coins(share):
        where = ", if the arms pay what the log's averages say"
        told = [coin_warning(share, problem.policy.settings(), replicable=True, where=where)]
    parting = runs[0].against(runs[1]) if split else None
    if as_json:
        content: ReplayDocument = {
            "schema_version": SCHEMA_VERSION,
            "labs": [run.to_dict() for run in runs],
            "compared": None if parting is None else parting.compared,
            "parted": None if parting is None else parting.parted,
            "share_of_random_play": share,
            "coin_decides": is_a_coins(share) and not late,
            "warnings": [*warnings, *told],
            **provenance(),
        }
        print_json(content)
    else:
        print_text("\n\n".join(run.table() for run in runs))
        if parting is not None:
            same = f"The same arms in all {parting.compared:,} pulls that both labs decided."
            parted = f"The two labs part at pull {parting.parted or 0:,} of {parting.compared:,} that both decided."
            if runs[0].level == "winner":
                same = "Both labs name the same winner." if parting.compared else "Not both labs name a winner."
                parted = "The two labs name different winners."
            print_text(f"\n{same if parting.parted is None else parted}")
        print_warnings([] if quiet else told)
    agreed = parting is None or parting.parted is None
    return EXIT_OK if agreed and all(run.finished for run in runs) else EXIT_CHECK
