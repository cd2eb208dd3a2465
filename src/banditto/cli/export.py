"""`banditto export`: tickets, the log or an audit report of a live experiment, as a file."""

from __future__ import annotations

import sys
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
    path = None if out is None else place_to_write(out)
    from banditto.live.export import arrow_modules, read_log
    from banditto.live.export import export as exported

    if kind == "parquet":
        arrow_modules()
    with progress_bar("verify", quiet, "events") as progress:
        log = read_log(url, name, progress)
    if kind == "html":
        from banditto.report.audit import audit_page

        content = audit_page(log).encode("utf-8", "backslashreplace")  # a damaged row may hold anything
    else:
        content = exported(log, kind)
    if path is None:
        sys.stdout.write(content.decode())
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
