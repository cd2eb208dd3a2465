"""Stores for the tests: a folder for SQLite, and one PostgreSQL server for all of them. Nothing is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from banditto.measure import golden
from tests.live.servers import KINDS, PostgresServer, new_store

digests_once = cache(golden.digests)


@pytest.fixture(autouse=True)
def _golden_digests_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work the digests of `banditto doctor` out once: here its store is what is tested, not they."""
    monkeypatch.setattr("banditto.report.self_test.digests", digests_once)


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    made = PostgresServer()
    yield made
    made.close()


@pytest.fixture(params=KINDS)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty store, of each kind."""
    made = request.getfixturevalue("server") if request.param == "postgresql" else None
    with new_store(request.param, tmp_path, made) as url:
        yield url
