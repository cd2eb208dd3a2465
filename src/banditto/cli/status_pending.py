"""`banditto status` and `banditto pending`: where a live experiment stands, and what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from banditto.cli import parameters, stores
from banditto.cli.output import EXIT_OK, print_steps, print_warnings
from banditto.core.text import text_table

if TYPE_CHECKING:
    from banditto.measure.analysis.analysis import Analysis

STATUS_VERSION: Final = 3  # of the schema
PENDING_VERSION: Final = 2
_LONGEST = 36  # letters of an arm's name, so that a line fits a terminal of 100 columns
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="AGE", help="Only tickets that have waited this long: 90 (seconds), 45m, 7d."),
]


def status(name: parameters.Name, store: parameters.StoreOption = None, as_json: parameters.Json = False) -> int:
    """Say where an experiment stands and, once a batch is decided, who won or leads and what each arm pays."""
    with stores.opened(store, name) as experiment:
        found = experiment.status()
        control = experiment.registration.protocol.settings.get("control")
        names = experiment.registration.arm_names
    rows = [
        ("state", found.state),
        ("batches", f"{found.batch - 1}, all decided") if found.state == "finished" else ("batch", str(found.batch)),
        ("pulls decided", f"{found.spent:,} of {found.horizon:,}"),
    ]
    if found.level == "winner":
        rows += [("level", "winner: two runs name the same one with probability 1 - rho, and end with it")]
    if found.winner is not None:
        how = {
            "lead": ", by its lead",
            "coin": ", by the shared coin: nobody led by enough",
            None: "",
        }
        if isinstance(control, int) and found.winner == names[control]:
            how["coin"] = ", as the control: nobody led by enough"
        rows += [("winner", found.winner + how[found.decided_by])]
    rows += [(f"arm {arm}", f"{found.told[arm]:,} of {pulls:,} rewards") for arm, pulls in found.plan.items()]
    rows += [("tickets", ", ".join(f"{count:,} {state}" for state, count in found.tickets.items()))]
    rows += [("events", f"{found.events:,}"), ("digest", found.digest), ("head", found.head)]
    parts = [text_table(("", name), rows)]
    if found.analysis is not None:
        parts = [found.analysis.headline, *parts, _estimates(found.analysis)]
    print_steps(found.to_dict(), "\n\n".join(parts), as_json, STATUS_VERSION)
    if not as_json:
        print_warnings(list(found.warnings))
    return EXIT_OK


def _estimates(found: Analysis) -> str:
    """Write each arm's mean with its interval, in lines that fit a terminal."""
    from banditto.measure.analysis.analysis import ARM_HEADER

    rows = [(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…", *row) for name, *row, _ in found.arm_rows()]
    return text_table(ARM_HEADER[:-1], rows, align="lrlrr")


def pending(
    name: parameters.Name,
    store: parameters.StoreOption = None,
    older_than: OlderThan = None,
    as_json: parameters.Json = False,
) -> int:
    """List the tickets that still wait for a reward, the oldest first."""
    age = None if older_than is None else parameters.seconds_of(older_than, "older_than")
    with stores.opened(store, name) as experiment:
        found = experiment.pending(age)
    rows = [(line.id, line.arm_name, line.batch, line.issued) for line in found]
    text = text_table(("ticket", "arm", "batch", "handed out"), rows) if rows else "no ticket waits for a reward"
    if found.total > len(found):
        text += f"\nThese are the oldest {len(found):,} of {found.total:,}."
    print_steps({"tickets": [line.to_dict() for line in found], "total": found.total}, text, as_json, PENDING_VERSION)
    return EXIT_OK
