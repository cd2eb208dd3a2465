"""Exports: every ticket as CSV or Parquet, or the whole log as JSON, each with the digest and the head.

The JSON has an analysis for those who read it by eye or in another language. Nothing here reads it again: whoever
analyses the file works it out from the events, which verify.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from banditto.core.errors import LogError, MissingExtra
from banditto.core.json_types import Digest, Natural
from banditto.engine.blocks import Progress
from banditto.engine.observations import Observations
from banditto.live.analyse import analysed_if_possible
from banditto.live.event_log import Event, Row
from banditto.live.fold import Ticket, exact_sum
from banditto.live.metrics import METRIC_PREFIX
from banditto.live.observing import LogSums, observed_before
from banditto.live.sql import Reading
from banditto.live.store import Store
from banditto.live.verify import Verification, verified
from banditto.measure.analysis.analysis import Analysis

COLUMNS = (
    *("ticket", "batch", "place", "attempt", "arm", "arm_name", "status", "pulls", "reward", "issued", "answered"),
    *("reason", "experiment", "digest", "head"),
)
SCHEMA_VERSION = 2  # 1 had no analysis


class ReceiptContent(TypedDict):
    """What to keep of an experiment outside its store."""

    name: str
    digest: Digest
    events: Natural
    head: Digest
    created: str


class VerifiedLog(NamedTuple):
    """An experiment's row and events, and what `verify` says of them, as they were at one moment.

    The observations are from events that verify; None if there are none.
    """

    row: Row
    events: list[Event]
    verification: Verification
    observations: Observations | None

    def analysis(self) -> Analysis | None:
        """Work out what the events that verify taught; None before the first batch is decided."""
        return None if self.observations is None else analysed_if_possible(self.observations)

    def receipt(self) -> ReceiptContent:
        """Make what to keep outside the store: whoever has it can tell whether the log was written anew."""
        row = self.row
        return {
            "name": row["name"],
            "digest": row["digest"],
            "events": row["events"],
            "head": row["head"],
            "created": row["created"],
        }


def read_log(url: str, name: str, progress: Progress | None = None) -> VerifiedLog:
    """Read an experiment's log and verify it; both come back, also if it does not verify."""
    with Store(url) as store:
        return store.read(lambda view: looked_up(view, name, progress))


def looked_up(view: Reading, name: str, progress: Progress | None = None) -> VerifiedLog:
    """Read and verify a log as `read_log` does, inside a transaction."""
    row, sums = view.known(name), LogSums()
    verification = verified(view, name, progress=progress, watch=sums.add)
    events = list(view.events(row["id"]))
    if verification.event is None:
        return VerifiedLog(row, events, verification, sums.observations())
    # the fold may have taken a part of the bad event
    return VerifiedLog(row, events, verification, observed_before(events[: verification.event - 1], row))


def export(log: VerifiedLog, kind: str) -> bytes:
    """Write a log as "json", "csv" or "parquet"; the bytes of the file come back. A log must verify to be exported."""
    if log.verification.problem is not None:
        raise LogError(log.verification.problem, log.verification.event)
    if kind == "json":
        return _json(log)
    lines = list(_lines(log.row, log.events))
    columns = (*COLUMNS, *sorted({name for line in lines for name in line}.difference(COLUMNS)))
    return _csv(lines, columns) if kind == "csv" else _parquet(lines, columns)


def _lines(row: Row, events: list[Event]) -> Iterator[dict[str, Any]]:
    """Yield a line for each ticket, from the log alone, in the order in which they were handed out.

    A batch that was told as totals has a line for each arm: so many pulls, and their sum as the reward. A line with
    metrics has a column more for each of them.
    """
    names = json.loads(row["registration"])["arm_names"]
    same = {"experiment": row["name"], "digest": row["digest"], "head": row["head"]}
    lines: dict[Ticket | tuple[int, int], dict[str, Any]] = {}
    for event in events:
        content = event.content
        if event.kind == "ask":
            for position, attempt, arm in content["slots"]:
                ticket = Ticket(content["batch"], position, attempt)
                lines[ticket] = dict.fromkeys(COLUMNS) | {
                    **{"ticket": ticket.id, "batch": ticket.batch, "place": position + 1, "attempt": attempt + 1},
                    **{"arm": arm, "arm_name": names[arm], "status": "open", "pulls": 1, "issued": event.time},
                    **same,
                }
        elif event.kind == "totals":
            for arm, (count, total) in enumerate(zip(content["counts"], content["sums"], strict=True)):
                if count:
                    lines[content["batch"], arm] = dict.fromkeys(COLUMNS) | {
                        **{"batch": content["batch"], "arm": arm, "arm_name": names[arm], "status": "total"},
                        **{"pulls": count, "reward": float(exact_sum(total)), "answered": event.time},
                        **same,
                    }
        elif event.kind in ("tell", "late"):
            for *place, reward in content["rewards"]:
                status = "told" if event.kind == "tell" else "late"
                lines[Ticket(*place)] |= {"status": status, "reward": reward, "answered": event.time}
            for name, values in content.get("metrics", {}).items():
                for *place, value in values:
                    lines[Ticket(*place)][f"{METRIC_PREFIX}{name}"] = value
        elif event.kind == "correct":
            lines[Ticket(*content["ticket"])] |= {"reward": content["after"], "reason": content["reason"]}
        elif event.kind == "missing":
            lines[Ticket(*content["ticket"])] |= {"status": "missing", "reason": content["reason"]}
    yield from lines.values()


def _csv(lines: list[dict[str, Any]], columns: Sequence[str]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for line in lines:
        cells = [line.get(name) for name in columns]
        writer.writerow(["" if cell is None else _safe(cell) for cell in cells])
    return out.getvalue().encode()


def _safe(value: object) -> object:
    """Put an apostrophe before text that a spreadsheet would take for a formula; numbers stay numbers."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r", "\n"):
        return "'" + value
    return repr(value) if isinstance(value, float) else value


def arrow_modules() -> tuple[Any, Any]:
    """Import PyArrow and its part for Parquet; ask for them before a long verification."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra("Parquet", "pyarrow", "data") from None


def _parquet(lines: list[dict[str, Any]], columns: Sequence[str]) -> bytes:
    arrow, parquet = arrow_modules()
    whole = {"batch", "place", "attempt", "arm", "pulls"}
    kinds = {name: arrow.int64() if name in whole else arrow.string() for name in COLUMNS} | {"reward": arrow.float64()}
    kinds |= {name: arrow.float64() for name in columns if name.startswith(METRIC_PREFIX)}
    arrays = [arrow.array([line.get(name) for line in lines], kinds[name]) for name in columns]
    out = io.BytesIO()
    parquet.write_table(arrow.table(arrays, names=list(columns)), out)
    return out.getvalue()


def _json(log: VerifiedLog) -> bytes:
    row, analysis = log.row, log.analysis()
    content = {
        "schema_version": SCHEMA_VERSION,
        **{key: row[key] for key in ("name", "digest", "head", "created")},
        "registration": json.loads(row["registration"]),
        "analysis": None if analysis is None else analysis.to_dict(),
        "events": [  # last, so that a reader has the rest at hand and takes them one by one
            {"number": e.number, "kind": e.kind, "time": e.time, "content": e.content, "hash": e.hash}
            for e in log.events
        ],
    }
    return (json.dumps(content, indent=2) + "\n").encode()
