"""All claims, measured: `reproduce`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from dataclasses import dataclass
from typing import Any, Final, Literal

from typing_extensions import TypedDict

from banditto.core.errors import WorkerError
from banditto.core.exact import integer
from banditto.core.results import Part, Result, TablePart
from banditto.core.text import short
from banditto.engine.pool import WORKER_DIED, shared_executor, submitted
from banditto.measure.certify import MOST_JOBS
from banditto.paper.claims import Claim, Effort, Measured, Row, RowContent, Untestable, Verdict, chosen, claim_of

SCHEMA_VERSION: Final = 1
HEADER = ("claim", "place", "quantity", "predicted", "measured", "interval", "detectable", "verdict")

Progress = Callable[[str, int, int], None]
Timed = tuple[str, Measured, float]  # a claim's name, what was measured, and seconds


class ReproductionContent(TypedDict):
    """A `Reproduction` as plain data."""

    schema_version: Literal[1]
    quick: bool
    interrupted: bool
    claims: list[RowContent]


@dataclass(frozen=True, kw_only=True, repr=False)
class Reproduction(Result):
    """The paper's claims beside what was measured: a row for each, with a verdict.

    Made by `reproduce`; docs/reproduce.md describes the claims and their rules.

    Attributes:
        rows: what was found for each claim: `claim`, `measured`, `verdict`, `explanation`, `seconds`.
        quick: whether this is the quick version.
        interrupted: whether Ctrl-C ended it early; claims that were not finished have no row.

    Examples:
        >>> from banditto import reproduce
        >>> found = reproduce(quick=True, only="proposition-2-radius")
        >>> found.summary(), found.unexplained
        ('1 claims: 1 agree, 0 disagree, 0 not testable', ())
    """

    rows: tuple[Row, ...]
    quick: bool
    interrupted: bool = False

    _picture = "claims_picture:claims_figure"

    def __repr__(self) -> str:
        return f"Reproduction({self.summary()})"

    def count(self, verdict: Verdict) -> int:
        """Count the rows with a verdict.

        Args:
            verdict: "agrees", "disagrees" or "not testable".
        """
        return sum(row.verdict == verdict for row in self.rows)

    def summary(self) -> str:
        """Return one line: how many claims there are, and how many have each verdict."""
        names: tuple[Verdict, ...] = ("agrees", "disagrees", "not testable")
        words = {"agrees": "agree", "disagrees": "disagree", "not testable": "not testable"}
        return f"{len(self.rows)} claims: " + ", ".join(f"{self.count(name)} {words[name]}" for name in names)

    @property
    def unexplained(self) -> tuple[Row, ...]:
        """The rows that disagree for no known reason."""
        return tuple(row for row in self.rows if row.verdict == "disagrees" and not row.claim.reason)

    def _parts(self) -> list[Part]:
        others = [f"{row.claim.name}: {row.explanation}" for row in self.rows if row.verdict != "agrees"]
        said = ["\n".join(others)] if others else []
        return [TablePart(HEADER, [cells(row) for row in self.rows]), self.summary(), *said]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each claim: what is predicted, what was measured, both ends of its interval, verdict."""
        found = []
        for content in (row.to_dict() for row in self.rows):
            low, high = content["interval"] or (None, None)
            keys = ("name", "place", "quantity", "relation", "predicted", "measured")
            record: dict[str, Any] = {key: value for key, value in content.items() if key in keys}
            found.append({**record, "low": low, "high": high, "verdict": content["verdict"]})
        return found

    def to_dict(self) -> ReproductionContent:
        """Return plain data; `rows` are its `claims`, with statement, prediction, what was measured, and verdict."""
        return {
            "schema_version": SCHEMA_VERSION,
            "quick": self.quick,
            "interrupted": self.interrupted,
            "claims": [row.to_dict() for row in self.rows],
        }


def cells(row: Row) -> tuple[str, ...]:
    """Write a row of the table under `HEADER`, cell by cell."""
    rule = row.claim.rule
    if isinstance(rule, Untestable) or row.measured is None:
        found = ("", "", "", "")
    else:
        low, high = row.measured.interval
        between = "exact" if low == high else f"{short(low)} to {short(high)}"
        found = (rule.text(), short(row.measured.value), between, short(rule.detectable))
    return (row.claim.name, row.claim.place, row.claim.quantity, *found, row.verdict)


def expected_seconds(claims: Sequence[Claim], quick: bool, jobs: int) -> float:
    """Estimate for how many seconds these claims will be measured."""
    each = [claim.seconds[0 if quick else 1] for claim in claims if claim.measure is not None]
    return max(sum(each) / jobs, max(each, default=0.0))


def reproduce(
    *,
    quick: bool = False,
    only: str | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Measure the paper's claims; what theory predicts and what was measured come back side by side.

    Every theorem, lemma and remark of *Replicable Bandits* is one row or several. Coins and noise are fixed: two calls
    give the same figures; times, which some claims are about, differ. After Ctrl-C the claims that were finished come
    back.

    Args:
        quick: whether to measure less: a few minutes of one core in all.
        only: the name of a claim or of a group of claims, such as `theorem-4`; all by default.
        jobs: how many processes to start.
        executor: an executor of yours to use instead of processes, such as that of `cluster`.
        progress: called with "claims", the number of claims that are done, and how many there are.

    Raises:
        InvalidArgument: an argument is not allowed; for `only` the error lists the names.
        WorkerError: a process could not be started, or died.

    Examples:
        >>> found = reproduce(quick=True, only="proposition-2-radius")
        >>> [(row.claim.name, row.verdict) for row in found.rows]
        [('proposition-2-radius', 'agrees')]
    """
    claims = chosen(only)
    jobs = integer(jobs, "jobs", 1, MOST_JOBS)
    report = progress or (lambda label, done, total: None)
    rows: dict[str, Row] = {claim.name: Row(claim=claim, measured=None) for claim in claims if claim.measure is None}
    # the long ones first, so that no worker is left with one at the end
    open_ones = [claim for claim in claims if claim.measure is not None]
    waiting = sorted(open_ones, key=lambda claim: -claim.seconds[0 if quick else 1])
    report("claims", len(rows), len(claims))
    interrupted = False
    try:
        with shared_executor(jobs, executor) as shared:
            for name, measured, seconds in _measured(waiting, Effort(quick), shared):
                rows[name] = Row(claim=claim_of(name), measured=measured, seconds=seconds)
                report("claims", len(rows), len(claims))
    except KeyboardInterrupt:
        interrupted = True
    finished = tuple(rows[claim.name] for claim in claims if claim.name in rows)
    return Reproduction(rows=finished, quick=quick, interrupted=interrupted)


def _measured(claims: Sequence[Claim], effort: Effort, executor: Executor | None) -> Iterator[Timed]:
    """Yield each claim's measurement as it comes."""
    if executor is None:
        for claim in claims:
            yield measure(claim.name, effort)
        return
    futures: list[Future[Timed]] = [submitted(executor, measure, claim.name, effort) for claim in claims]
    try:
        for future in as_completed(futures):
            yield future.result()
    except BrokenExecutor:
        raise WorkerError(WORKER_DIED) from None
    finally:
        for future in futures:
            future.cancel()


def measure(name: str, effort: Effort) -> Timed:
    """Measure one claim; its name, the measurement and the seconds come back. This is what a worker is sent."""
    claim = claim_of(name)
    assert claim.measure is not None
    began = time.perf_counter()
    found = claim.measure(effort)
    return name, found, time.perf_counter() - began
