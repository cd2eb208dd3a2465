"""One canonical JSON, and its sha256: what the digests of protocols, registrations, designs and events are taken of.

Two labs compare digests, and a store keeps them for years: the same content must give the same bytes on every machine
and in every later version.
"""

from __future__ import annotations

import hashlib
import json

# FROZEN(v1): every stored digest is taken of these bytes
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(content: object) -> str:
    """Return plain content as canonical JSON, the text that digests are taken of: keys sorted, no spaces, ASCII.

    Floats are written as Python writes them, so that reading gives the same bits; NaN and infinities are refused.
    """
    return _CANONICAL.encode(content)


def canonical_numbers(numbers: object) -> str:
    """Return nested lists of finite numbers as canonical JSON, faster than `canonical_json` does.

    They must be Python's own integers and floats.
    """
    return repr(numbers).replace(" ", "")


def sha256_of(text: str) -> str:
    """Return the sha256 of ASCII text, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def digest_of(content: object) -> str:
    """Return the sha256 of the canonical JSON of plain content, as 64 hexadecimal digits."""
    return sha256_of(canonical_json(content))
