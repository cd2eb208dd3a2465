"""`banditto export`: tickets, the log or an audit report of a live experiment, as a file."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from typing import Annotated

import typer

from banditto.cli import parameters, stores
from banditto.cli.completions import FORMATS, among
from banditto.cli.output import EXIT_CHECK, EXIT_OK, place_to_write, print_steps, progress_bar, write_file
from banditto.core.errors import InvalidArgument

FormatOption = Annotated[
    str,
    typer.Option("--format", metavar="KIND", help="csv, parquet, json or html.", autocompletion=among(*FORMATS)),
]
SaveFile = Annotated[
    str | None,
    typer.Option("--save", rich_help_panel="Output", metavar="FILE", help="Write to this file (default: to stdout)."),
]


def export(
    name: parameters.Name,
    store: parameters.StoreOption = None,
    kind: FormatOption = "csv",
    save_to: SaveFile = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Write the tickets (csv, parquet), the log (json) or an audit report (html) of an experiment.

    With --save, and once a batch is decided, stderr says who won or leads. Exit code 3 if the log does not verify.
    """
    if kind not in FORMATS:
        raise InvalidArgument("format", kind, ", ".join(FORMATS))
    url = stores.store_url(store)
    if save_to is None and (kind == "parquet" or as_json):
        raise InvalidArgument("save", "nothing", "a file")
    path = None if save_to is None else place_to_write(save_to, overwrite)
    from banditto.live.export import arrow_modules, read_log
    from banditto.live.export import export as exported

    if kind == "parquet":
        arrow_modules()
    with tempfile.TemporaryFile() as content:  # until it is whole, however large it is
        with progress_bar("verify", quiet, "events") as progress:
            if kind == "html":
                from banditto.report.audit import audit_page

                log = read_log(url, name, progress)
                content.write(audit_page(log).encode("utf-8", "backslashreplace"))  # a damaged row may hold anything
            else:
                log = exported(url, name, kind, content, progress)
        content.seek(0)
        if path is None:
            with io.TextIOWrapper(content, "utf-8", newline="") as text:
                shutil.copyfileobj(text, sys.stdout)
        else:
            write_file(path, content, "save")
    if save_to is not None and as_json:
        print_steps({"file": save_to, "receipt": log.receipt()}, "", as_json)
    elif path is not None and not quiet:
        sys.stderr.write(f"banditto: wrote {save_to}\n")
        analysis = log.analysis() if log.verification.holds else None
        if analysis is not None:
            sys.stderr.write(f"banditto: {analysis.headline}\n")
    return EXIT_OK if log.verification.holds else EXIT_CHECK
