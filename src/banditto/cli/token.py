"""`banditto token`: who may call the service, for what, and until when."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from banditto.cli import parameters, stores
from banditto.cli.completions import ACTIONS, SCOPES, among
from banditto.cli.output import EXIT_OK, print_steps
from banditto.core.errors import InvalidArgument
from banditto.core.text import text_table

if TYPE_CHECKING:
    from banditto.live.store import Store
    from banditto.service.tokens import Token

Action = Annotated[
    str, typer.Argument(metavar="ACTION", help="create, list or revoke.", autocompletion=among(*ACTIONS))
]
TokenId = Annotated[
    str | None,
    typer.Argument(metavar="ID", help="The id of the token to revoke.", show_default=False),
    parameters.StandsFor("id"),
]
ScopeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="What the token allows: read, ask, tell or admin; you may repeat this.",
        autocompletion=among(*SCOPES),
    ),
]
ForExperiment = Annotated[
    str | None,
    typer.Option("--experiment", metavar="NAME", help="The only experiment that the token is for (default: all)."),
]
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="AGE", help="When the token expires: 45m, 12h, 30d (default: never).")
]
Label = Annotated[str, typer.Option("--label", metavar="TEXT", help="A note on who or what the token is for.")]


def token(
    action: Action,
    public: TokenId = None,
    store: parameters.StoreOption = None,
    scope: ScopeOption = None,
    experiment: ForExperiment = None,
    expires: Expires = None,
    label: Label = "",
    as_json: parameters.Json = False,
) -> int:
    """Create, list or revoke tokens of the service. A new token is shown once; the store keeps only a hash of it."""
    if action not in ACTIONS:
        raise InvalidArgument("action", action, ", ".join(ACTIONS))
    if (action == "revoke") != (public is not None):
        given = "nothing" if public is None else public
        raise InvalidArgument("id", given, "the id of a token" if action == "revoke" else f"none with {action}")
    made_of = {"scope": scope, "experiment": experiment, "expires": expires, "label": label}
    for name, value in made_of.items():
        if value and action != "create":
            raise InvalidArgument(name, value[0] if isinstance(value, list) else value, f"none with {action}")
    url = stores.store_url(store)
    from banditto.live.store import Store
    from banditto.service import tokens

    with Store(url) as opened:
        if action == "create":
            life = None if expires is None else parameters.seconds_of(expires, "expires")
            text, made = tokens.create_token(opened, scope or (), experiment=experiment, life=life, label=label)
            print_steps({"text": text, "token": made.to_dict()}, text, as_json)
            sys.stderr.write(f"banditto: token {made.id} is shown this once; the store keeps a hash of it\n")
        elif action == "list":
            _print_list(opened, as_json)
        else:
            revoked = tokens.revoke_token(opened, str(public))
            print_steps({"token": revoked.to_dict()}, f"{revoked.id} is revoked", as_json)
    return EXIT_OK


def _print_list(store: Store, as_json: bool) -> None:
    from banditto.service.tokens import list_tokens

    found = list_tokens(store)
    rows = [(one.id, ",".join(one.scopes), one.experiment or "all", _state(one), one.label) for one in found]
    text = text_table(("id", "scopes", "experiment", "state", "label"), rows) if rows else "no tokens yet"
    print_steps({"tokens": [one.to_dict() for one in found]}, text, as_json)


def _state(token: Token) -> str:
    from banditto.live.reading import now

    if token.revoked is not None:
        return f"revoked {token.revoked[:16]}"
    if token.expires is None:
        return "valid"
    return f"{'expired' if token.expires <= now() else 'valid until'} {token.expires[:16]}"
