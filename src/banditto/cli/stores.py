"""The store that a verb is told of: its address, and an experiment in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from banditto.core.errors import InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from banditto.live.experiment import Experiment


def store_url(given: str | None) -> str:
    """Find the store of a live experiment: what `--store` says, or BANDITTO_STORE."""
    url = os.environ.get("BANDITTO_STORE") if given is None else given
    if not url:
        raise InvalidArgument("store", "nothing" if given is None else repr(given), "a URL such as sqlite:///trial.db")
    check_extra()
    return url


def check_store(url: str) -> None:
    """Refuse what is no store's address, or a file that is not there; nothing is opened or made."""
    check_extra()
    from banditto.live.store import Store, shown_url

    store = Store(url)
    store.close()
    if not store.exists():
        raise InvalidArgument("store", shown_url(url), "a file that exists")


def check_extra() -> None:
    """Refuse to go on without what live experiments need, and say how to install it."""
    if find_spec("sqlalchemy") is None:
        raise MissingExtra("a live experiment", "SQLAlchemy", "live")


@contextmanager
def opened(store: str | None, name: str) -> Iterator[Experiment]:
    """Open an experiment that is there, and close it."""
    url = store_url(store)
    from banditto.live.experiment import Experiment

    with Experiment.open(url, name) as experiment:
        yield experiment


def address_of(source: str, store: str | None) -> str | Path:
    """Find what is meant: a run as URL#NAME, a name in a store, or a file."""
    if "#" in source and "://" in source:
        check_extra()
        if store is not None:
            raise InvalidArgument("store", store, "none with URL#NAME")
        return source
    if store is None and (source.endswith(".json") or not os.environ.get("BANDITTO_STORE")):
        if not source.endswith(".json") and not Path(source).exists():
            raise InvalidArgument("store", "nothing", f"a URL such as sqlite:///trial.db, where {source} is")
        return Path(source)
    return f"{store_url(store)}#{source}"
