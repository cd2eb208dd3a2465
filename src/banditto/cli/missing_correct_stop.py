"""`banditto missing`, `banditto correct` and `banditto stop`: what a live experiment wants a reason for."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from banditto.cli import parameters
from banditto.cli.output import EXIT_OK, print_steps
from banditto.core.errors import InvalidArgument
from banditto.core.exact import real

By = Annotated[
    str | None,
    typer.Option("--by", metavar="WHO", help="Who says so, for the log (default: your login name)."),
]
Tickets = Annotated[
    list[str] | None,
    typer.Argument(metavar="TICKET", help="Their ids, as `ask` gave them."),
    parameters.StandsFor("ticket"),
]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="AGE", help="All that have waited so long: 90 (seconds), 45m, 12h or 7d."),
]


def missing(
    name: parameters.Name,
    tickets: Tickets = None,
    older_than: OlderThan = None,
    reason: parameters.Reason = None,
    by: By = None,
    store: parameters.StoreOption = None,
    as_json: parameters.Json = False,
) -> int:
    """Say that rewards will not come, of these tickets or of all old ones: their slots are handed out again."""
    if bool(tickets) == (older_than is not None):
        given = "both" if tickets else "nothing"
        raise InvalidArgument("ticket", given, "tickets, or --older-than AGE")
    why, who = parameters.reason_of(reason), _login_name() if by is None else by
    if older_than is not None:
        age = parameters.seconds_of(older_than, "older_than")
        with parameters.opened(store, name) as experiment:
            given_up = experiment.missing_older(age, why, by=who)
        print_steps({"recorded": given_up, "repeated": 0}, f"{given_up:,} recorded", as_json)
        return EXIT_OK
    listed = tickets or []
    with parameters.opened(store, name) as experiment:
        answers = experiment.missing_many(listed, why, by=who)
    if len(listed) == 1:
        print_steps({"ticket": listed[0], "answer": answers[0]}, answers[0], as_json)
        return EXIT_OK
    recorded = answers.count("recorded")
    repeated = len(answers) - recorded
    text = ", ".join(f"{count:,} {word}" for word, count in (("recorded", recorded), ("repeated", repeated)) if count)
    print_steps({"recorded": recorded, "repeated": repeated}, text, as_json)
    return EXIT_OK


def _login_name() -> str:
    """Find out who types; nothing comes back where the system does not say."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


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
