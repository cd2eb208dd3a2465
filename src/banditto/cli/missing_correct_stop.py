"""`banditto missing`, `banditto correct` and `banditto stop`: what a live experiment wants a reason for."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from banditto.cli import parameters, stores
from banditto.cli.output import EXIT_OK, print_steps
from banditto.core.errors import InvalidArgument
from banditto.core.exact import real

By = Annotated[
    str | None,
    typer.Option("--by", metavar="WHO", help="Who says so; it stands in the log (default: your login name)."),
]
Tickets = Annotated[
    list[str] | None,
    typer.Argument(metavar="TICKET", help="The ids of tickets, as `ask` gave them; or --older-than."),
    parameters.StandsFor("ticket"),
]
OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than", metavar="AGE", help="All tickets that have waited this long: 90 (seconds), 45m, 12h or 7d."
    ),
]


def missing(
    name: parameters.Name,
    reason: parameters.Reason,
    tickets: Tickets = None,
    older_than: OlderThan = None,
    by: By = None,
    store: parameters.StoreOption = None,
    as_json: parameters.Json = False,
) -> int:
    """Give up rewards that will not come: of some tickets, or of all old ones. Their arms are handed out again."""
    if bool(tickets) == (older_than is not None):
        given = "both" if tickets else "nothing"
        raise InvalidArgument("ticket", given, "tickets, or --older-than AGE")
    why, who = reason, _login_name() if by is None else by
    if older_than is not None:
        age = parameters.seconds_of(older_than, "older_than")
        with stores.opened(store, name) as experiment:
            given_up = experiment.missing_older(age, why, by=who)
        print_steps({"recorded": given_up, "repeated": 0}, f"{given_up:,} recorded", as_json)
        return EXIT_OK
    listed = tickets or []
    with stores.opened(store, name) as experiment:
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
    reward: Annotated[str, typer.Argument(metavar="REWARD", help="The right reward.")],
    reason: parameters.Reason,
    store: parameters.StoreOption = None,
    as_json: parameters.Json = False,
) -> int:
    """Replace a wrong reward. This works until the batch of the ticket is decided."""
    with stores.opened(store, name) as experiment:
        answer = experiment.correct(ticket, real(reward, "reward", "a number"), reason)
    print_steps({"ticket": ticket, "answer": answer}, answer, as_json)
    return EXIT_OK


def stop(
    name: parameters.Name,
    reason: parameters.Reason,
    store: parameters.StoreOption = None,
    as_json: parameters.Json = False,
) -> int:
    """End an experiment before its horizon. No tickets are handed out after that."""
    with stores.opened(store, name) as experiment:
        answer = experiment.stop(reason)
    print_steps({"answer": answer}, answer, as_json)
    return EXIT_OK
