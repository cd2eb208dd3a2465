"""The same examples on every machine, no limit to how long one may take on a busy one, and folders of slow tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

SLOW_FOLDERS = {"live", "long", "recorded", "statistical"}


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whole folders as slow."""
    for item in items:
        if SLOW_FOLDERS & set(item.path.relative_to(Path(__file__).parent).parts):
            item.add_marker("slow")
