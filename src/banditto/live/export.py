"""Exports: every ticket as CSV or Parquet, or the whole log as JSON, each with the digest and the head.

Exports are written as they are read: no more than a few thousand lines are in memory, beside what `verify` must
remember. The JSON has an analysis for those who read it by eye or in another language. Nothing here reads it again:
whoever analyses the file works it out from the events, which verify.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import IO, Any, NamedTuple

from typing_extensions import TypedDict

from banditto.core.errors import LogError, MissingExtra
from banditto.core.json_types import Digest, Natural
from banditto.core.text import visible
from banditto.engine.observations import Observations
from banditto.engine.progress import Progress
from banditto.live.analyse import analysed_if_possible
from banditto.live.event_log import Row
from banditto.live.exact_sums import exact_sum
from banditto.live.folded_log import FoldedLog
from banditto.live.metrics import METRIC_PREFIX
from banditto.live.observing import observed
from banditto.live.reading import Reading
from banditto.live.store import Store
from banditto.live.ticket_book import NEVER, STATES, time_text
from banditto.live.verify import Verification, verified
from banditto.measure.analysis.analysis import Analysis

COLUMNS = (
    *("ticket", "batch", "place", "attempt", "arm", "arm_name", "status", "pulls", "reward", "issued", "answered"),
    *("reason", "experiment", "digest", "head"),
)
SCHEMA_VERSION = 2  # 1 had no analysis
_LINES = 5000  # that are written at once
Line = tuple[str | int | float | None, ...]
_WHOLE = {"batch", "place", "attempt", "arm", "pulls"}  # columns of integers


class ReceiptContent(TypedDict):
    """What to keep of an experiment outside its store."""

    name: str
    digest: Digest
    events: Natural
    head: Digest
    created: str


class VerifiedLog(NamedTuple):
    """What `verify` says of an experiment's log, and the fold of its events up to the first bad one.

    The fold is None if not even the first event follows.
    """

    row: Row
    verification: Verification
    fold: FoldedLog | None

    def observations(self) -> Observations | None:
        """Return the observations that the verified events hold; None if no event verifies."""
        return None if self.fold is None else observed(self.fold)

    def analysis(self) -> Analysis | None:
        """Analyse the verified events; None before the first batch is decided."""
        seen = self.observations()
        return None if seen is None else analysed_if_possible(seen)

    def receipt(self) -> ReceiptContent:
        """Return what to keep outside the store; with it anybody can tell whether the log was rewritten."""
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
    """Read and verify a log inside a transaction, as `read_log` does."""
    return VerifiedLog(view.known(name), *verified(view, name, progress=progress))


def export(url: str, name: str, kind: str, out: IO[bytes], progress: Progress | None = None) -> VerifiedLog:
    """Write a log as "json", "csv" or "parquet" into an open file that can be rewound; what was verified comes back.

    A log that does not verify raises `LogError`, and nothing is written.
    """

    def write(view: Reading) -> VerifiedLog:
        """Write the log into `out` from its beginning, and return what was verified."""
        out.seek(0)  # a store that was lost half way is read from the beginning again
        out.truncate()
        log = looked_up(view, name, progress)
        if log.verification.problem is not None:
            raise LogError(log.verification.problem, log.verification.event)
        assert log.fold is not None
        if kind == "json":
            _write_json(log, view, out)
        elif kind == "csv":
            _write_csv(log.row, log.fold, out)
        else:
            _write_parquet(log.row, log.fold, out)
        return log

    with Store(url) as store:
        return store.read(write)


def _columns(fold: FoldedLog) -> tuple[str, ...]:
    return (*COLUMNS, *(f"{METRIC_PREFIX}{name}" for name in sorted(fold.book.metric_names)))


def _lines(row: Row, fold: FoldedLog, written: Callable[[str], str] = str) -> Iterator[Line]:
    """Yield a line for each ticket, from the log alone, by batch, place and attempt: a cell for each of `_columns`.

    A batch that was told as totals has a line for each arm: so many pulls, and their sum as the reward. Text that
    somebody chose is given as `written` writes it, which is called once for what is the same on every line.
    """
    names = [written(name) for name in fold.registration.arm_names]
    same = tuple(written(row[key]) for key in ("name", "digest", "head"))
    metric_names = sorted(fold.book.metric_names)
    summed = {content["batch"]: (decision, content) for decision, content in _totals(fold)}
    for batch in sorted({*fold.book.batches, *summed}):
        if batch in summed:
            time, content = summed[batch]
            for arm, (count, total) in enumerate(zip(content["counts"], content["sums"], strict=True)):
                if count:
                    told = (count, float(exact_sum(total)), None, time, None)
                    nothing = (None,) * len(metric_names)
                    yield (None, batch, None, None, arm, names[arm], "total", *told, *same, *nothing)
            continue
        for ticket, arm, state, reward, issued, answered, metrics in fold.book.batches[batch].lines(batch):
            reason = fold.reasons.get(ticket)
            yield (
                *(written(fold.ids.write(ticket)), batch, ticket.position + 1, ticket.attempt + 1),
                *(arm, names[arm], STATES[state], 1, reward, time_text(issued)),
                *(None if answered == NEVER else time_text(answered), None if reason is None else written(reason)),
                *same,
                *[metrics.get(name) for name in metric_names],
            )


def _totals(fold: FoldedLog) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the time and the content of every event that told a whole batch as totals."""
    for event in fold.timeline:
        if event.kind == "totals":
            yield event.time, event.content


def _chunks(lines: Iterator[Line]) -> Iterator[list[Line]]:
    while chunk := list(islice(lines, _LINES)):
        yield chunk


def _write_csv(row: Row, fold: FoldedLog, out: IO[bytes]) -> None:
    """Write a line for each ticket as CSV into an open file, under a line with the names of the columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # which writes floats as Python does, and None as nothing
    writer.writerow(_columns(fold))
    for chunk in _chunks(_lines(row, fold, safe_text)):
        writer.writerows(chunk)
        out.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()
    out.write(text.getvalue().encode())


def safe_cell(value: object) -> object:
    """Put an apostrophe before text that a spreadsheet would take for a formula; numbers stay numbers."""
    if isinstance(value, str):
        return safe_text(value)
    return repr(value) if isinstance(value, float) else value


def safe_text(text: str) -> str:
    """Write text as a cell for spreadsheets, as `safe_cell` does."""
    return visible("'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else text)


def arrow_modules() -> tuple[Any, Any]:
    """Return PyArrow and its Parquet module, or raise `MissingExtra`; call it before a long verification."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtra("Parquet", "pyarrow", "data") from None


def _write_parquet(row: Row, fold: FoldedLog, out: IO[bytes]) -> None:
    """Write a row for each ticket as Parquet into an open file, with typed columns."""
    arrow, parquet = arrow_modules()
    columns = _columns(fold)
    kinds = {name: arrow.int64() if name in _WHOLE else arrow.string() for name in COLUMNS} | {
        "reward": arrow.float64()
    }
    kinds |= {name: arrow.float64() for name in columns if name.startswith(METRIC_PREFIX)}
    schema = arrow.schema([(name, kinds[name]) for name in columns])
    with parquet.ParquetWriter(out, schema) as writer:
        for chunk in _chunks(_lines(row, fold)):
            cells = zip(*chunk, strict=True)
            arrays = [arrow.array(column, kinds[name]) for name, column in zip(columns, cells, strict=True)]
            writer.write_table(arrow.table(arrays, schema=schema))


def _write_json(log: VerifiedLog, view: Reading, out: IO[bytes]) -> None:
    """Write the log with an event on each line, its body exactly as it is hashed."""
    row, analysis = log.row, log.analysis()
    content = {
        "schema_version": SCHEMA_VERSION,
        **{key: row[key] for key in ("name", "digest", "head", "created")},
        "registration": json.loads(row["registration"]),
        "analysis": None if analysis is None else analysis.to_dict(),
    }
    head = json.dumps(content, indent=2).removesuffix("\n}")
    out.write(f'{head},\n  "events": ['.encode())  # last, so that a reader has the rest at hand
    lines: list[str] = []
    comma = ""
    for event in view.events(row["id"]):
        kind, time = json.dumps(event.kind), json.dumps(event.time)
        first = f'{comma}\n    {{"number": {event.number}, "kind": {kind}, "time": {time}, "content": '
        lines.append(f'{first}{event.body}, "hash": "{event.hash}"}}')
        comma = ","
        if len(lines) == _LINES:
            out.write("".join(lines).encode())
            lines.clear()
    out.write(("".join(lines) + "\n  ]\n}\n").encode())
