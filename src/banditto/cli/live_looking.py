"""`banditto status | pending | verify | replicate | export`: what happened in a live experiment."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from banditto.cli import parameters
from banditto.cli.live_options import Name, StoreOption, opened, printed, store_url
from banditto.cli.output import EXIT_CHECK, EXIT_OK, progress_bar, progress_bars
from banditto.cli.saving import place_to_write, write
from banditto.core.errors import InvalidArgument
from banditto.core.exact import real
from banditto.core.text import short, text_table

OlderThan = Annotated[
    str | None, typer.Option("--older-than", metavar="SECONDS", help="Only those that have waited so long.")
]
Expect = Annotated[
    str | None,
    typer.Option("--expect", metavar="HEAD", help="The head of a receipt, which must be in the log."),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="URL#NAME.")]
OtherRun = Annotated[str, typer.Argument(metavar="RUN", help="URL#NAME of another run of the same protocol.")]
FormatOption = Annotated[str, typer.Option("--format", metavar="KIND", help="csv, parquet, json or html.")]
OutFile = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Where to write it (default: stdout).")]
FORMATS = ("csv", "parquet", "json", "html")


def status(name: Name, store: StoreOption = None, as_json: parameters.Json = False) -> int:
    """Say where an experiment stands."""
    with opened(store, name) as experiment:
        found = experiment.status()
    rows = [
        ("state", found.state),
        ("batches", f"{found.batch - 1}, all decided") if found.state == "finished" else ("batch", str(found.batch)),
        ("pulls decided", f"{found.spent:,} of {found.horizon:,}"),
    ]
    rows += [(f"arm {arm}", f"{found.told[arm]:,} of {pulls:,} rewards") for arm, pulls in found.plan.items()]
    rows += [("tickets", ", ".join(f"{count:,} {state}" for state, count in found.tickets.items()))]
    rows += [("events", f"{found.events:,}"), ("digest", found.digest), ("head", found.head)]
    printed(found.to_dict(), text_table(("", name), rows), as_json)
    return EXIT_OK


def pending(
    name: Name, store: StoreOption = None, older_than: OlderThan = None, as_json: parameters.Json = False
) -> int:
    """List tickets that wait for a reward, the oldest first."""
    age = None if older_than is None else real(older_than, "older_than", "seconds")
    with opened(store, name) as experiment:
        found = experiment.pending(age)
    rows = [(line.id, line.arm_name, line.batch, line.issued) for line in found]
    text = text_table(("ticket", "arm", "batch", "handed out"), rows) if rows else "no ticket waits for a reward"
    printed({"tickets": [line._asdict() for line in found]}, text, as_json)
    return EXIT_OK


def verify(
    name: Name,
    store: StoreOption = None,
    expect: Expect = None,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Replay the log from the protocol alone. Exit code 3 with the first bad event if something does not follow."""
    url = store_url(store)
    from banditto.live.verify import verify as replay

    with progress_bar("verify", quiet, "events") as progress:
        found = replay(url, name, expect, progress=progress)
    text = f"{name} verifies: {found.events:,} events, {len(found.decisions)} decisions, head {found.head}"
    if not found.holds:
        where = "" if found.event is None else f"event {found.event}: "
        text = f"{name} does not verify: {where}{found.problem}"
    printed(found.to_dict(), text, as_json)
    return EXIT_OK if found.holds else EXIT_CHECK


def replicate(first: Run, second: OtherRun, as_json: parameters.Json = False, quiet: parameters.Quiet = False) -> int:
    """Compare two runs of one protocol. Exit code 3 if they made different decisions."""
    from banditto.cli.live_options import check_extra

    check_extra()
    from banditto.live.replicate import replicate as compared

    with progress_bars(quiet, "events") as progress:
        found = compared(first, second, progress=progress)
    content = found.to_dict()
    if not found.compared:
        text = f"nothing to compare: no batch is decided in both (digest {found.digest[:12]})"
    elif found.divergence is None:
        text = f"the same: {found.compared} decisions of both (digest {found.digest[:12]})"
    else:
        text = _diverged(content)
    printed(content, text, as_json)
    return EXIT_OK if found.same else EXIT_CHECK


def export(
    name: Name,
    store: StoreOption = None,
    kind: FormatOption = "csv",
    out: OutFile = None,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Write tickets (csv, parquet), the log (json) or an audit report (html). Exit code 3 if it does not verify."""
    if kind not in FORMATS:
        raise InvalidArgument("format", kind, ", ".join(FORMATS))
    url = store_url(store)
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
        write(path, content)
    if as_json:
        printed({"file": out, "receipt": log.receipt()}, "", as_json)
    elif path is not None and not quiet:
        sys.stderr.write(f"banditto: wrote {out}\n")
    return EXIT_OK if log.verification.holds else EXIT_CHECK


def _diverged(content: dict[str, Any]) -> str:
    found = content["divergence"]
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
    lines += [text_table(header, rows), ""]
    lines += [f"{name}: {value}" for name, value in found["thresholds"].items()]
    lines += [f"coin {toss['purpose']}, arm {toss['arm']}: {toss['value']:.6f}" for toss in found["coins"]]
    lines += [f"cut from coin {name}: {value:.6g}" for name, value in found["cuts"].items()]
    return "\n".join(lines)
