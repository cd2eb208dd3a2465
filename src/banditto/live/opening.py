"""Whether an experiment that a store keeps is the one that a caller wants, and can go on."""

from __future__ import annotations

from dataclasses import replace

from banditto.core.errors import BandittoError, ConflictError, InvalidArgument
from banditto.core.protocol import Protocol
from banditto.live.registration import Registration
from banditto.version import __version__


def wanted_registration(text: str, name: str, wanted: Protocol | Registration | None) -> Registration:
    """Read a stored registration; raise `ConflictError` if it is not the wanted one, or cannot be run any more."""
    try:
        found = Registration.from_json(text)
    except (BandittoError, ValueError, TypeError, KeyError) as error:
        raise ConflictError(f"the protocol of experiment {name} cannot be read: {error}") from None
    if not _same(found, wanted):
        other = f"experiment {name} has another protocol (digest {found.digest[:12]})"
        raise ConflictError(f"{other}; a registered protocol cannot change")
    try:
        found.policy()
    except InvalidArgument as error:
        raise ConflictError(f"this experiment cannot go on with banditto {__version__}: {error}") from None
    return found


def _same(found: Registration, wanted: Protocol | Registration | None) -> bool:
    """Whether an experiment has the registration that a caller wants."""
    if wanted is None:
        return True
    if isinstance(wanted, Protocol):  # which says nothing about names and rewards
        return found.protocol == wanted
    # whoever ran it with an earlier version asks for the newest order of slots, and means the one that it has
    plain = wanted.fallback is None and wanted.deadline is None
    return found == wanted or (found.first_version and plain and found == replace(wanted, order=found.order))
