"""`banditto verify` and `banditto replicate`: whether a log follows from its protocol, and two runs agree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from banditto.cli import parameters, stores
from banditto.cli.output import EXIT_CHECK, EXIT_OK, print_steps, progress_bar, progress_bars
from banditto.core.errors import shown
from banditto.core.text import short, text_table

if TYPE_CHECKING:
    from banditto.live.replicate import ReplicationContent

Expect = Annotated[
    str | None,
    typer.Option("--expect", metavar="HEAD", help="The head from a receipt; it must be in the log."),
]
REPLICATION_VERSION: Final = 2  # of the schema
VERIFICATION_VERSION: Final = 2
_URL_AND_NAME = parameters.StandsFor("store", "name")
Run = Annotated[str, typer.Argument(metavar="RUN", help="URL#NAME, or an exported log (.json)."), _URL_AND_NAME]
OtherRun = Annotated[
    str, typer.Argument(metavar="RUN", help="Another run of the same protocol, the same way."), _URL_AND_NAME
]


def verify(
    source: parameters.Source,
    store: parameters.OptionalStore = None,
    expect: Expect = None,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Replay a log from its protocol alone, and check that every decision follows.

    Exit code 3, with the first bad event, if something does not follow.
    """
    address = stores.address_of(source, store)
    from banditto.live.replicate import split_address
    from banditto.live.verify import clock_sentence, verify_exported
    from banditto.live.verify import verify as replay

    if isinstance(address, Path):
        with progress_bar("verify", quiet, "bytes") as progress:
            found = verify_exported(address, expect, progress)
    else:
        with progress_bar("verify", quiet, "events") as progress:
            found = replay(*split_address(address), expect, progress=progress)
    name = shown(found.name)  # of a file that anybody may have written
    named = "" if found.winner is None else f", winner {found.winner} (level: {found.level})"
    text = f"{name} verifies: {found.events:,} events, {len(found.decisions)} decisions{named}, head {found.head}"
    if found.holds and not found.decisions:
        text += "\nNo batch is decided yet, so there was no decision to check."
    if not found.holds:
        where = "" if found.event is None else f"event {found.event}: "
        text = f"{name} does not verify: {where}{found.problem}"
    elif found.clock_steps is not None:
        text += f"\n{clock_sentence(found.clock_steps)}"
    print_steps(found.to_dict(), text, as_json, VERIFICATION_VERSION)
    return EXIT_OK if found.holds else EXIT_CHECK


def replicate(first: Run, second: OtherRun, as_json: parameters.Json = False, quiet: parameters.Quiet = False) -> int:
    """Compare two runs of one protocol, decision by decision.

    Exit code 3 if their decisions differ, or if there is nothing to compare yet.
    """
    stores.check_extra()
    from banditto.live.replicate import replicate as compared

    with progress_bars(quiet, "events") as progress:
        found = compared(first, second, progress=progress)
    content = found.to_dict()
    if not found.compared:
        missing = "not both have a winner" if found.level == "winner" else "no batch is decided in both"
        text = f"nothing to compare: {missing} (digest {found.digest[:12]})"
    elif found.level == "winner" and found.divergence is None:
        looks = f"after {found.decisions[0]} and {found.decisions[1]} looks"
        text = f"the same winner: {found.winners[0]}, {looks} (level: winner; digest {found.digest[:12]})"
    elif found.divergence is None:
        text = f"the same: {found.compared} decisions of both (digest {found.digest[:12]})"
    else:
        text = _diverged(content)
    print_steps(content, text, as_json, REPLICATION_VERSION)
    return EXIT_OK if found.same else EXIT_CHECK


def _diverged(content: ReplicationContent) -> str:
    found = content["divergence"]
    assert found is not None
    one, two = found["sides"]
    rows = [
        (
            arm,
            *(short(side["means"][arm]) for side in (one, two)),
            *(short(side["behind"][arm]) for side in (one, two)),
            *(f"{side['next_pulls'].get(arm, 0):,}" for side in (one, two)),
        )
        for arm in one["means"]
    ]
    names = content["runs"]
    mean = "mean so far" if "so far" in found["thresholds"] else "mean"
    header = ("arm", *(f"{what}, run {k}" for what in (mean, "behind", "next pulls") for k in (1, 2)))
    lines = [f"run 1 is {names[0]}, run 2 is {names[1]}; they differ after batch {found['batch']}", ""]
    if content["level"] == "winner":
        one_named, two_named = content["winners"]
        lines.insert(0, f"different winners (level: winner): {one_named} in run 1, {two_named} in run 2")
    lines += [text_table(header, rows), ""]
    lines += [f"{name}: {value}" for name, value in found["thresholds"].items()]
    lines += [f"coin {toss['purpose']}, arm {toss['arm']}: {toss['value']:.6f}" for toss in found["coins"]]
    lines += [f"cut from coin {name}: {value:.6g}" for name, value in found["cuts"].items()]
    return "\n".join(lines)
