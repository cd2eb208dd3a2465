"""What the verbs of live experiments share: where a store is, how steps are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from banditto.cli.output import print_json
from banditto.core.errors import InvalidArgument, MissingExtra
from banditto.core.provenance import provenance

if TYPE_CHECKING:
    from banditto.live.experiment import Experiment

Name = Annotated[str, typer.Argument(metavar="NAME", help="The experiment.")]
TicketArgument = Annotated[str, typer.Argument(metavar="TICKET", help="Its id, as `ask` gave it.")]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="sqlite:///FILE or postgresql://... \\[env var: BANDITTO_STORE]"),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the log.")]
SCHEMA_VERSION = 1


def store_url(given: str | None) -> str:
    """The store of a flag or of the environment."""
    url = os.environ.get("BANDITTO_STORE") if given is None else given
    if not url:
        raise InvalidArgument("store", "nothing" if given is None else repr(given), "a URL such as sqlite:///trial.db")
    check_extra()
    return url


def checked_url(url: str) -> None:
    """Refuse what is no store's address, or a file that is not there; nothing is opened or made."""
    check_extra()
    from banditto.live.store import Store, shown_url

    store = Store(url)
    store.close()
    if not store.exists():
        raise InvalidArgument("store", shown_url(url), "a file that exists")


def check_extra() -> None:
    """Say how to install what live experiments need."""
    if find_spec("sqlalchemy") is None:
        raise MissingExtra("a live experiment", "SQLAlchemy", "live")


@contextmanager
def opened(store: str | None, name: str) -> Iterator[Experiment]:
    """An experiment that is there."""
    url = store_url(store)
    from banditto.live.experiment import Experiment

    with Experiment.open(url, name) as experiment:
        yield experiment


def reason_of(text: str | None) -> str:
    """A reason, which must be given."""
    if text is None:
        raise InvalidArgument("reason", "nothing", "some words that will stand in the log")
    return text


def printed(content: dict[str, Any], lines: str, as_json: bool) -> None:
    """One object, or lines for people."""
    if as_json:
        print_json({"schema_version": SCHEMA_VERSION} | content | provenance())
    else:
        sys.stdout.write(lines.rstrip("\n") + "\n")
