"""Tokens: who may come in by the service, for what, and until when. Only a hash of the secret half is kept.

A token is `bdt_ID_SECRET`. The id is no secret: it stands in lists and in the service's log. The secret has 256 random
bits, so that one round of SHA-256 is enough: nobody can try them all.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, get_args

from typing_extensions import TypedDict

from banditto.core.errors import InvalidArgument, NotAllowed
from banditto.core.json_types import Keywords
from banditto.live.checked_words import checked_name, checked_text
from banditto.live.event_log import Row
from banditto.live.reading import now
from banditto.live.store import Store

Scope = Literal["read", "ask", "tell", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
LONGEST_LABEL = 200
LONGEST_LIFE = 10 * 366 * 86_400  # seconds
_TEXT = re.compile(r"bdt_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOBODY = "0" * 64  # what the secret of a token that is not there is compared with


class TokenContent(TypedDict):
    """A `Token` as plain data: all but its secret, which nobody has."""

    id: str
    scopes: list[Scope]
    experiment: Annotated[str | None, Keywords(description="the one that it is for; null: all of them")]
    label: str
    created: str
    expires: Annotated[str | None, Keywords(description="null: never")]
    revoked: Annotated[str | None, Keywords(description="when; null: it was not")]


@dataclass(frozen=True, kw_only=True)
class Token:
    """Says what somebody may do: a token without its secret."""

    id: str
    scopes: tuple[Scope, ...]
    experiment: str | None  # None: all of them
    label: str
    created: str  # UTC, ISO 8601, as all times here
    expires: str | None
    revoked: str | None

    @classmethod
    def of_row(cls, row: Row) -> Token:
        """Read a row of the store."""
        held: Any = row["scopes"].split(",")
        return cls(scopes=tuple(held), **{key: row[key] for key in _PLAIN_KEYS})

    def to_dict(self) -> TokenContent:
        """Return plain data with the names of the attributes."""
        return {
            "id": self.id,
            "scopes": list(self.scopes),
            "experiment": self.experiment,
            "label": self.label,
            "created": self.created,
            "expires": self.expires,
            "revoked": self.revoked,
        }

    def check_time(self, moment: str) -> None:
        """Refuse a token that was revoked or has expired."""
        if self.revoked is not None:
            raise NotAllowed(401, "the token was revoked")
        if self.expires is not None and self.expires <= moment:
            raise NotAllowed(401, "the token has expired")

    def check_scope(self, scope: Scope) -> None:
        """Refuse what the token is not for; `admin` is for everything."""
        if scope not in self.scopes and "admin" not in self.scopes:
            raise NotAllowed(403, f"the token has the scope {', '.join(self.scopes)}; this needs {scope}")

    def check_experiment(self, name: str) -> None:
        """Refuse another experiment than the token's, if it has one."""
        if self.experiment is not None and name != self.experiment:
            raise NotAllowed(403, "the token is for another experiment")


_PLAIN_KEYS = ("id", "experiment", "label", "created", "expires", "revoked")


class KeptToken(NamedTuple):
    """A token as the store has it, with the hash of its secret."""

    token: Token
    hash: str


def create_token(
    store: Store,
    scopes: Iterable[str],
    *,
    experiment: str | None = None,
    life: float | None = None,
    label: str = "",
) -> tuple[str, Token]:
    """Make a token: its whole text comes back, which is shown once and kept nowhere, and what it may do.

    Args:
        store: where experiments are.
        scopes: some of read, ask, tell and admin.
        experiment: the only one that it is for, which need not exist yet; None lets it at all of them.
        life: seconds until it expires; None lets it live until it is revoked.
        label: whom or what it was made for, in words.
    """
    held = checked_scopes(scopes)
    name = None if experiment is None else checked_name(experiment, "experiment")
    words = checked_text(label, "label", LONGEST_LABEL) if label else ""
    if life is not None and not 1 <= life <= LONGEST_LIFE:
        raise InvalidArgument("expires", life, "from one second to ten years")
    public, secret, created = secrets.token_hex(6), secrets.token_urlsafe(32), now()
    expires = None if life is None else (datetime.now(UTC) + timedelta(seconds=life)).isoformat(timespec="microseconds")
    row = {
        **{"id": public, "hash": hash_of(secret), "scopes": ",".join(held), "experiment": name, "label": words},
        **{"created": created, "expires": expires, "revoked": None},
    }
    store.write(lambda rows: rows.add_token(row))
    return f"bdt_{public}_{secret}", Token.of_row(row)


def list_tokens(store: Store) -> list[Token]:
    """List all tokens of a store, the oldest first, also those that are of no use any more."""
    return [Token.of_row(row) for row in store.read(lambda view: view.tokens())]


def revoke_token(store: Store, public: str) -> Token:
    """Revoke a token by its id, and return it."""
    looks_right = re.fullmatch(r"[0-9a-f]{12}", public)
    if not looks_right or not store.write(lambda rows: rows.revoke_token(public, now())):
        given = public if looks_right else "something else"  # it may be a whole token
        raise InvalidArgument("id", given, "the id of a token, of 12 letters and digits, as `token list` has it")
    row = store.read(lambda view: view.token(public))
    assert row is not None
    return Token.of_row(row)


def checked_scopes(scopes: Iterable[str]) -> tuple[Scope, ...]:
    """Check the names of scopes; each comes back once, in the order of `SCOPES`."""
    wanted = list(scopes)
    for scope in wanted:
        if scope not in SCOPES:
            raise InvalidArgument("scope", scope, f"some of {', '.join(SCOPES)}")
    if not wanted:
        raise InvalidArgument("scope", "nothing", f"some of {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in wanted)


def hash_of(secret: str) -> str:
    """Return the sha256 of a secret in hexadecimal, which the store keeps instead of it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def halves_of(text: str) -> tuple[str, str] | None:
    """Split a token into its id and its secret; None comes back for what is no token."""
    found = _TEXT.fullmatch(text)
    return None if found is None else (found[1], found[2])


def looked_up(store: Store, public: str) -> KeptToken | None:
    """Look up a token by its id; None comes back if there is none."""
    row = store.read(lambda view: view.token(public))
    return None if row is None else KeptToken(Token.of_row(row), row["hash"])


def recognised(kept: KeptToken | None, secret: str) -> Token:
    """Compare a secret with the stored hash; return the token, or raise `NotAllowed`.

    A secret is compared in the same time wherever it differs, and a token that does not exist takes as long as a wrong
    one.
    """
    same = hmac.compare_digest(hash_of(secret), _NOBODY if kept is None else kept.hash)
    if kept is None or not same:
        raise NotAllowed(401, "the token is not one of this service")
    return kept.token
