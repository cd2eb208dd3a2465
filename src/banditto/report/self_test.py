"""`banditto doctor`: golden sequences on this machine, the libraries, and a store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Literal

from typing_extensions import TypedDict

from banditto.core.errors import BandittoError, NoStore
from banditto.core.provenance import extras, provenance
from banditto.measure.golden import digests, expected
from banditto.report import page

Outcome = Literal["ok", "failed", "not checked"]
SCHEMA_VERSION: Final = 1


class CheckContent(TypedDict):
    """A `Check` as plain data."""

    name: str
    outcome: Outcome
    detail: str


class DiagnosisContent(TypedDict):
    """A `Diagnosis` as plain data."""

    schema_version: Literal[1]
    healthy: bool
    checks: list[CheckContent]


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at, and how it is."""

    name: str
    outcome: Outcome
    detail: str


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """All checks of one self-test."""

    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Whether no check failed."""
        return all(check.outcome != "failed" for check in self.checks)

    def to_dict(self) -> DiagnosisContent:
        """Return plain data: the checks, and whether nothing failed."""
        checks: list[CheckContent] = [
            {"name": check.name, "outcome": check.outcome, "detail": check.detail} for check in self.checks
        ]
        return {"schema_version": SCHEMA_VERSION, "healthy": self.healthy, "checks": checks}


def examine(store: str | None = None) -> Diagnosis:
    """Check everything, and a store if one is given: whether it can be written and every log in it verifies."""
    checks = [_timed("golden sequences", _golden)]
    checks.append(_timed("store", lambda: _store(store)) if store else _unasked("store", "no --store was given"))
    return Diagnosis(checks=tuple(checks))


def _unasked(name: str, why: str) -> Check:
    return Check(name=name, outcome="not checked", detail=why)


def _timed(name: str, look: Callable[[], tuple[bool, str]]) -> Check:
    began = time.perf_counter()
    try:
        good, detail = look()
    except BandittoError as error:
        good, detail = False, str(error)
    seconds = time.perf_counter() - began
    return Check(name=name, outcome="ok" if good else "failed", detail=f"{detail} ({seconds:.1f} s)")


def _golden() -> tuple[bool, str]:
    """Compare coins, plans and decisions with the golden ones; return whether they agree, and a line of text."""
    wanted, found = expected(), digests()
    wrong = [name for name in wanted if found.get(name) != wanted[name]]
    if wrong or set(found) != set(wanted):
        return False, f"{len(wrong)} of {len(wanted)} digests differ, the first is {wrong[0] if wrong else 'a new one'}"
    return True, f"{len(wanted)} digests of coins, plans and decisions are what they are everywhere"


def _store(url: str) -> tuple[bool, str]:
    """Check that a store can be written and all its logs verify; return whether it is well, and a line of text."""
    if find_spec("sqlalchemy") is None:
        return False, "SQLAlchemy is not installed: pip install 'banditto[live]'"
    from banditto.live.store import Store
    from banditto.live.verify import verify

    store = Store(url)
    try:
        names, weak = store.read(lambda view: (view.names(), view.weak_settings()))
        store.write(lambda tx: tx.try_writing())  # takes the write lock and gives it back
    except NoStore:
        return True, "it can be reached, and has no experiments yet"
    finally:
        store.close()
    for name in names:
        found = verify(url, name)
        if not found.holds:
            return False, f"{name} does not verify: {found.problem}"
    logs = "the log of 1 experiment verifies" if len(names) == 1 else f"the logs of {len(names)} experiments verify"
    warning = f"; warning: a power cut can take back steps: {', '.join(weak)} on the server" if weak else ""
    return True, f"it can be written, and {logs}{warning}"


def doctor_page(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as one HTML page, to be filed for inspectors."""
    about = provenance()
    rows = [(check.name, check.outcome, check.detail) for check in diagnosis.checks]
    versions = [(name, str(version or "not installed")) for name, version in (about["versions"] | extras()).items()]
    digest_rows = sorted(expected().items())
    parts = [
        page.heading(1, "banditto self-test"),
        page.paragraph("Everything is as it should be." if diagnosis.healthy else "Something failed.", "note"),
        page.table(("check", "outcome", "detail"), rows, "text"),
        page.heading(2, "Software"),
        page.table(("library", "version"), versions, "text"),
        page.paragraph(f"{about['platform']}, {about['created']}", "soft"),
        page.heading(2, "Golden digests"),
        page.paragraph(
            "sha256 of coins, of protocols and of decisions on recorded totals. They are the same on every machine;"
            " this one was compared with them digest by digest."
        ),
        page.table(("sequence", "digest"), digest_rows, "text"),
    ]
    return page.page("banditto self-test", parts)
