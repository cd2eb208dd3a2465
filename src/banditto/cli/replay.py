"""`banditto replay`: what one policy does on the rows of a log, each read once and in order."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from banditto.cli import parameters
from banditto.cli.output import EXIT_CHECK, EXIT_OK, collected_warnings, print_json, print_warnings
from banditto.core.provenance import provenance
from banditto.problems.spec import ProblemSpec, chosen, is_protocol

if TYPE_CHECKING:
    from banditto.cli.documents import ReplayDocument

SCHEMA_VERSION: Final = 2
Split = Annotated[
    bool,
    typer.Option("--split", help="Two labs: one reads the first, third ... row of each arm, the other the rest."),
]
RowHorizon = Annotated[
    str | None, typer.Option("--horizon", metavar="N", help="Pulls (default: as many as the log has rows).")
]


def replay(
    policy: parameters.PolicyArgument,
    log: parameters.RowLog = None,
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
    """Follow one policy through the rows of a log: no row is used twice, and nothing is simulated but for a warning.

    Exit code 0 when every pull up to the horizon is decided, or a winner is named, and with --split the same in both
    labs; 3 when the log runs dry before that, or the labs part.
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
        sys.stdout.write("\n\n".join(run.table() for run in runs) + "\n")
        if parting is not None:
            same = f"The same arms in all {parting.compared:,} pulls that both labs decided."
            parted = f"The two labs part at pull {parting.parted or 0:,} of {parting.compared:,} that both decided."
            if runs[0].level == "winner":
                same = "Both labs name the same winner." if parting.compared else "Not both labs name a winner."
                parted = "The two labs name different winners."
            sys.stdout.write(f"\n{same if parting.parted is None else parted}\n")
        print_warnings([] if quiet else told)
    agreed = parting is None or parting.parted is None
    return EXIT_OK if agreed and all(run.finished for run in runs) else EXIT_CHECK
