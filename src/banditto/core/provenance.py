"""Where a result came from: versions, platform, command line, time."""

from __future__ import annotations

import hashlib
import platform
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from typing_extensions import TypedDict

from banditto.core.errors import masked
from banditto.core.json_types import Keywords, Moment
from banditto.version import __version__

LIBRARIES = ("numpy", "scipy", "numba", "highspy")
OF_EXTRAS = ("sqlalchemy", "psycopg", "pyarrow", "dask", "cupy-cuda13x")


class Origin(TypedDict):
    """Where, when and by which command a document was made."""

    platform: str
    command: list[str]
    created: Moment


class Provenance(Origin):
    """Where a document was made, and by which versions; None stands for a library that is not installed."""

    versions: Annotated[dict[str, Any], Keywords(required=["banditto", "python", "numpy", "scipy", "numba"])]


class Warned(TypedDict):
    """The warnings that a command prints beside its result."""

    warnings: list[str]


def provenance() -> Provenance:
    """Return the metadata that every JSON result carries; nothing in it enters a digest."""
    return {
        "versions": {"banditto": __version__, "python": platform.python_version()} | _libraries(),
        "platform": platform.platform(),
        "command": [Path(sys.argv[0]).name, *(masked(word) for word in sys.argv[1:])],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def fingerprint() -> dict[str, str | None]:
    """Return the versions that two machines must have in common to draw the same noise; worked out once per process.

    Machines of one version need not run the same code (a clone has the version of the last release), so a digest of the
    sources is included.
    """
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return {
        "banditto": f"{__version__} (sources {digest.hexdigest()[:8]})",
        "python": ".".join(platform.python_version_tuple()[:2]),
        "processor": platform.machine(),
    } | _libraries()


def mismatch(expected: dict[str, str | None], found: dict[str, str | None], where: str) -> str | None:
    """Return a line that says which version is different on `where`, None if all are the same."""
    for name, value in expected.items():
        if found.get(name) != value:
            there = found.get(name) or "not installed"
            return f"{name} is {there} on {where} and {value or 'not installed'} here: results would not be the same"
    return None


def extras() -> dict[str, str | None]:
    """Return the version of each library that optional extras install, None where it is not installed."""
    return {name: _installed(name) for name in OF_EXTRAS}


def _libraries() -> dict[str, str | None]:
    return {name: _installed(name) for name in LIBRARIES}


def _installed(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # takes longer to load than all of this file

    try:
        return version(name)
    except PackageNotFoundError:
        return None
