"""Stores and services for the tests, as those of live experiments have them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from banditto.live.experiment import Experiment
from tests.live.conftest import server as server
from tests.live.conftest import store_url as store_url
from tests.live.worlds import small
from tests.service.services import new_token, service_in_thread


@pytest.fixture
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('store')}/trial.db"


@pytest.fixture
def cta(sqlite_url: str) -> str:
    """A store with the experiment cta, whose arms are A and B."""
    Experiment.create(sqlite_url, "cta", small(arm_names=["A", "B"])).close()
    return sqlite_url


@pytest.fixture
def service(cta: str) -> Iterator[str]:
    """The address of a service with the experiment cta; tokens are looked up each time."""
    with service_in_thread(cta, token_memory=0.0) as address:
        yield address


@pytest.fixture
def admin(cta: str) -> str:
    return new_token(cta)
