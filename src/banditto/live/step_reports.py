"""What is said of every step while an experiment runs: a log line, and a report for whoever counts.

Neither has a reward, a unit, a request id or a ticket: logs are kept and read by more people than the store is.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Literal

from banditto.core.errors import BandittoError, ConflictError, StoreError

Step = Literal["ask", "tell", "totals", "correct", "missing", "stop"]
Outcome = Literal["done", "repeated", "nothing", "conflict", "refused", "failed"]
logger = logging.getLogger("banditto.live")
logger.addHandler(logging.NullHandler())  # without one, Python would print warnings itself
_LEVELS = {"conflict": logging.INFO, "refused": logging.INFO, "failed": logging.WARNING}


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """What one step of an experiment did, for counters and histograms: what `on_step` is called with.

    Attributes:
        experiment: its name.
        step: "ask", "tell", "totals", "correct", "missing" or "stop".
        outcome: "done"; "repeated", if all of it was done before; "nothing", if there was no ticket to hand out;
            "conflict", "refused" (an argument is wrong) or "failed" (the store), if an error was raised.
        tickets: how many tickets were handed out, told, corrected or given up.
        seconds: how long the step took.
        waited: of these, seconds of waiting for the store: for other writers, connections and answers.
        open_tickets: how many tickets of the experiment wait for a reward after the step; None if it failed.
        problem: what went wrong, in one line; empty if nothing did.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from banditto import Experiment, ExploreThenCommit
        >>> protocol = ExploreThenCommit(arms=2, horizon=10**4, rho=0.5, gap=0.5).protocol(seed=1)
        >>> seen = []
        >>> with TemporaryDirectory() as folder:
        ...     with Experiment.open(f"sqlite:///{folder}/trial.db", "cta", protocol, on_step=seen.append) as trial:
        ...         answer = trial.ask(3)
        >>> [(report.step, report.outcome, report.tickets, report.open_tickets) for report in seen]
        [('ask', 'done', 3, 3)]
    """

    experiment: str
    step: Step
    outcome: Outcome
    tickets: int
    seconds: float
    waited: float
    open_tickets: int | None
    problem: str = ""


OnStep = Callable[[StepReport], None]


class StepNotes:
    """Collects the outcome, tickets and seconds of a step while it is taken, for its report."""

    def __init__(self) -> None:
        self.outcome: Outcome = "done"
        self.tickets = 0
        self.waited = 0.0
        self.open_tickets: int | None = None


@contextmanager
def watched(experiment: str, step: Step, on_step: OnStep | None) -> Iterator[StepNotes]:
    """Report the step that is taken inside this context: once, whether it works or fails."""
    if on_step is None and not logger.isEnabledFor(logging.WARNING):
        yield StepNotes()
        return
    noted, begun, problem = StepNotes(), time.perf_counter(), ""
    try:
        yield noted
    except BandittoError as error:
        noted.outcome, problem = _outcome_of(error), str(error)
        raise
    finally:
        _report(experiment, step, noted, time.perf_counter() - begun, problem, on_step)


def _outcome_of(error: BandittoError) -> Outcome:
    if isinstance(error, StoreError):
        return "failed"
    return "conflict" if isinstance(error, ConflictError) else "refused"


def _report(
    experiment: str, step: Step, noted: StepNotes, seconds: float, problem: str, on_step: OnStep | None
) -> None:
    """Log the report of a step, and hand it to `on_step`; an error raised there is logged and goes no further."""
    level = _LEVELS.get(noted.outcome, logging.DEBUG)
    if on_step is None and not logger.isEnabledFor(level):
        return
    report = StepReport(
        experiment=experiment,
        step=step,
        outcome=noted.outcome,
        tickets=noted.tickets,
        seconds=seconds,
        waited=noted.waited,
        open_tickets=noted.open_tickets,
        problem=problem if noted.outcome == "failed" else "",  # others name tickets and rewards
    )
    if logger.isEnabledFor(level):
        said = f"{step} {noted.outcome}: {noted.tickets} tickets of {experiment} in {1e3 * seconds:.1f} ms"
        logger.log(level, said, extra={"banditto": asdict(report)})
    if on_step is not None:
        try:
            on_step(report)
        except Exception:  # whoever counts must not stop a trial
            logger.exception("on_step failed")


class JsonLogFormatter(logging.Formatter):
    """Writes each log record as one line of JSON: time, level, logger, message, and what a `StepReport` has.

    Examples:
        >>> import logging
        >>> handler = logging.StreamHandler()
        >>> handler.setFormatter(JsonLogFormatter())  # and add it to the logger "banditto.live"
        >>> record = logging.makeLogRecord({"name": "banditto.live", "msg": "ask done", "created": 0})
        >>> handler.format(record)[:41]
        '{"time": "1970-01-01T00:00:00.000+00:00",'
    """

    def __init__(self) -> None:
        super().__init__()

    def format(self, record: logging.LogRecord) -> str:
        """Write a record; one line comes back."""
        content: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        more = getattr(record, "banditto", None)
        if isinstance(more, dict):
            content |= more
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)
