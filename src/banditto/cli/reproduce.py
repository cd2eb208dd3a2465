"""`banditto reproduce`: the paper's claims, measured."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from banditto.cli import parameters
from banditto.cli.completions import complete_claim
from banditto.cli.output import (
    EXIT_CHECK,
    EXIT_INTERRUPTED,
    EXIT_OK,
    notices,
    output_directory,
    print_json,
    print_text,
    progress_bars,
    remove_stale,
    write_together,
)
from banditto.core.exact import integer
from banditto.core.provenance import provenance

if TYPE_CHECKING:
    from banditto.cli.documents import ReproductionDocument

Quick = Annotated[
    bool, typer.Option("--quick", help="Play fewer pairs, at fewer points: some minutes instead of many.")
]
Only = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="NAME",
        help="Measure one claim, or all claims whose names begin with NAME, such as theorem-4.",
        autocompletion=complete_claim,
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        rich_help_panel="Output",
        metavar="DIR",
        help="Write report.html, its figures and its tables to this folder.",
    ),
]
FILES = ("report.html", "claims.json", "claims.csv", "figures/any")


def reproduce(
    quick: Quick = False,
    only: Only = None,
    jobs: parameters.Jobs = None,
    cluster: parameters.Cluster = None,
    out: Out = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Measure the claims of the paper: what theory predicts, what we find, and whether the two agree.

    Exit code 0 when we know, and print, the reason of every disagreement; 3 otherwise.
    """
    from banditto.measure.certify import MOST_JOBS
    from banditto.paper import claims as known  # numerical libraries are loaded once there is work for them
    from banditto.paper import running

    workers = parameters.WorkerOptions.of(jobs, cluster)
    processes = integer(workers.jobs, "jobs", 1, MOST_JOBS)
    claims = known.chosen(only)
    target = parameters.folder(out)
    with output_directory(target, FILES, overwrite) as folder:
        if not quiet and not as_json:
            seconds = running.expected_seconds(claims, quick, processes)
            number = "1 claim" if len(claims) == 1 else f"{len(claims)} claims"
            sys.stderr.write(f"banditto: {number}, about {_spoken(seconds)} with {_processes(workers)}\n")
        with notices(quiet), workers.opened() as executor, progress_bars(quiet) as progress:
            found = running.reproduce(quick=quick, only=only, jobs=workers.jobs, executor=executor, progress=progress)
            content: ReproductionDocument = {**found.to_dict(), **provenance()}
            if folder is not None and found.rows:
                from banditto.report.paper_report import figure_names, reproduction_files

                files = reproduction_files(found, content, progress)
                write_together(folder, files)
                remove_stale(folder, [name for name in figure_names(known.claims()) if name not in files])
        if not found.rows:
            sys.stderr.write("banditto: interrupted before the first claim was measured; nothing to report\n")
            raise KeyboardInterrupt
    if as_json:
        print_json(content)
    else:
        print_text(found.table())
    if target is not None and not quiet and not as_json:
        sys.stderr.write(f"banditto: wrote {target / 'report.html'}\n")
    if found.interrupted:
        measured = f"{len(found.rows)} of {len(claims)} claims were measured"
        sys.stderr.write(f"banditto: interrupted; {measured}, and --only NAME measures one of the others\n")
        return EXIT_INTERRUPTED
    return EXIT_CHECK if found.unexplained else EXIT_OK


def _spoken(seconds: float) -> str:
    return f"{max(1, round(seconds))} seconds" if seconds < 90.0 else f"{round(seconds / 60.0)} minutes"


def _processes(workers: parameters.WorkerOptions) -> str:
    if workers.address is not None:
        return "one worker of the cluster, less with more of them"
    return "one process" if workers.jobs == 1 else f"{workers.jobs} processes"
