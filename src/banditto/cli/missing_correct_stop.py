"""`banditto missing`, `banditto correct` and `banditto stop`: what a live experiment wants a reason for."""

from __future__ import annotations

from typing import Annotated

import typer

from banditto.cli import parameters
from banditto.cli.output import EXIT_OK, print_steps
from banditto.core.exact import real


def missing(
    name: parameters.Name,
    ticket: parameters.TicketArgument,
    reason: parameters.Reason = None,
    store: parameters.StoreOption = None,
    as_json: parameters.Json = False,
) -> int:
    """Say that a reward will not come: its slot is handed out again."""
    with parameters.opened(store, name) as experiment:
        answer = experiment.missing(ticket, parameters.reason_of(reason))
    print_steps({"ticket": ticket, "answer": answer}, answer, as_json)
    return EXIT_OK


def correct(
    name: parameters.Name,
    ticket: parameters.TicketArgument,
    reward: Annotated[str, typer.Argument(metavar="REWARD", help="What it should have been.")],
    reason: parameters.Reason = None,
    store: parameters.StoreOption = None,
    as_json: parameters.Json = False,
) -> int:
    """Replace a reward that was wrong, until its batch is decided."""
    with parameters.opened(store, name) as experiment:
        answer = experiment.correct(ticket, real(reward, "reward", "a number"), parameters.reason_of(reason))
    print_steps({"ticket": ticket, "answer": answer}, answer, as_json)
    return EXIT_OK


def stop(
    name: parameters.Name,
    reason: parameters.Reason = None,
    store: parameters.StoreOption = None,
    as_json: parameters.Json = False,
) -> int:
    """End an experiment before its horizon."""
    with parameters.opened(store, name) as experiment:
        answer = experiment.stop(parameters.reason_of(reason))
    print_steps({"answer": answer}, answer, as_json)
    return EXIT_OK
