"""`banditto export`: tickets, the log or an audit report of a live experiment, as a file."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from typing import Annotated

import typer

from banditto.cli import parameters
from banditto.cli.output import EXIT_CHECK, EXIT_OK, place_to_write, print_steps, progress_bar, write_file
from banditto.core.errors import InvalidArgument

FormatOption = Annotated[str, typer.Option("--format", metavar="KIND", help="csv, parquet, json or html.")]
OutFile = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Where to write it (default: stdout).")]
FORMATS = ("csv", "parquet", "json", "html")


def export(
    name: parameters.Name,
    store: parameters.StoreOption = None,
    kind: FormatOption = "csv",
    out: OutFile = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Write tickets (csv, parquet), the log (json) or an audit report (html). Exit code 3 if it does not verify.

    With --out, stderr says who won or leads, once a batch is decided.
    """
    if kind not in FORMATS:
        raise InvalidArgument("format", kind, ", ".join(FORMATS))
    url = parameters.store_url(store)
    if out is None and (kind == "parquet" or as_json):
        raise InvalidArgument("out", "nothing", "a file")
    path = None if out is None else place_to_write(out, overwrite)
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
            write_file(path, content, "out")
    if out is not None and as_json:
        print_steps({"file": out, "receipt": log.receipt()}, "", as_json)
    elif path is not None and not quiet:
        sys.stderr.write(f"banditto: wrote {out}\n")
        analysis = log.analysis() if log.verification.holds else None
        if analysis is not None:
            sys.stderr.write(f"banditto: {analysis.headline}\n")
    return EXIT_OK if log.verification.holds else EXIT_CHECK
