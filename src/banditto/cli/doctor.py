"""`banditto doctor`: a self-test of this machine, for whoever must trust its decisions."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banditto.cli import parameters, stores
from banditto.cli.output import EXIT_CHECK, EXIT_OK, place_to_write, print_json, print_text, spinner, write_file
from banditto.core.errors import InvalidArgument
from banditto.core.provenance import extras, provenance
from banditto.core.text import text_table

if TYPE_CHECKING:
    from banditto.cli.documents import DoctorDocument

ReportFile = Annotated[
    str | None,
    typer.Option("--save", rich_help_panel="Output", metavar="FILE", help="Write a report to this file (.html)."),
]


def doctor(
    store: parameters.OptionalStore = None,
    save_to: ReportFile = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Check that this machine makes the same decisions as all others, and that a store works.

    Exit code 3 if a check fails.
    """
    if save_to is not None and (Path(save_to).suffix != ".html" or not Path(save_to).parent.is_dir()):
        raise InvalidArgument("save", save_to, "a file that ends in .html, in a folder that exists")
    path = None if save_to is None else place_to_write(save_to, overwrite)
    from banditto.report.self_test import doctor_page, examine

    url = os.environ.get("BANDITTO_STORE") or None if store is None else store  # an empty variable is none
    if url is not None:
        stores.check_store(url)
    with spinner("checking", quiet):
        found = examine(url)
    content: DoctorDocument = {**found.to_dict(), **provenance()}
    content["versions"] |= extras()
    if path is not None:
        write_file(path, doctor_page(found), "save")
    if as_json:
        print_json(content)
    else:
        rows: list[tuple[str, str, str]] = [(check.name, check.outcome, check.detail) for check in found.checks]
        rows += [(name, "", str(version or "not installed")) for name, version in content["versions"].items()]
        print_text(text_table(("check", "outcome", "detail"), rows))
        if path is not None and not quiet:
            sys.stderr.write(f"banditto: wrote {save_to}\n")
    return EXIT_OK if found.healthy else EXIT_CHECK
