"""Where a result came from: versions, platform, command line, time."""

from __future__ import annotations

import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from banditto.version import __version__

LIBRARIES = ("numpy", "scipy", "numba", "highspy")


def provenance() -> dict[str, Any]:
    """The metadata that every JSON result carries; nothing in it enters a digest."""
    return {
        "versions": {"banditto": __version__, "python": platform.python_version()}
        | {name: _installed(name) for name in LIBRARIES},
        "platform": platform.platform(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
