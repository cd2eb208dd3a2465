"""Programs that tests need and that Python does not bring: found, or a reason why a test is skipped."""

from __future__ import annotations

import os
import shutil
import sysconfig

import pytest


def program(name: str, how: str) -> str:
    """Where a program is; a test that needs it is skipped without it, and fails where all must be there."""
    places = (sysconfig.get_path("scripts"), os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin")
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        missing = f"{name} is not installed ({how})"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    assert found is not None
    return found
