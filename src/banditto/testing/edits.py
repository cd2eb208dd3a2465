"""Protocols with other constants than those that were resolved: what somebody could write into the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from banditto.core.protocol import Protocol, fraction, from_fraction

_FACTOR = 1024
Place = tuple[str | int, ...]  # keys and indices on the way to a number


def scaled(protocol: Protocol) -> Iterator[tuple[str, Protocol, Protocol]]:
    """Yield each name of numbers in `resolved`, with two edited protocols: larger and smaller numbers.

    All numbers of a name are edited together, then the first alone and the last alone. Numbers that are 0 cannot be
    scaled, so they are left out.
    """
    content = protocol.to_dict()
    places: dict[str, list[Place]] = {}
    for place in _numbers(content["resolved"]):
        name = next(key for key in reversed(place) if isinstance(key, str))
        places.setdefault(name, []).append(place)
    for name, found in places.items():
        for chosen in dict.fromkeys((tuple(found), (found[0],), (found[-1],))):
            larger = _with(protocol, chosen, _larger)
            if larger != protocol:
                yield name, larger, _with(protocol, chosen, _smaller)


def edited(protocol: Protocol) -> Iterator[tuple[str, Protocol]]:
    """Yield what was done and the protocol with its first or last batch or look left out, or there twice."""
    for name in ("batches", "looks"):
        rows = protocol.to_dict()["resolved"].get(name, [])
        if rows:
            yield "left out", _with_rows(protocol, name, rows[1:])
            yield "left out", _with_rows(protocol, name, rows[:-1])
            yield "repeated", _with_rows(protocol, name, [rows[0], *rows])
            yield "repeated", _with_rows(protocol, name, [*rows, rows[-1]])


def _numbers(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every integer and binary fraction in nested content, as keys and indices."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _numbers(item, (*place, index))
    elif _is_fraction(value) or (isinstance(value, int) and not isinstance(value, bool)):
        yield place


def _is_fraction(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip("-").startswith("0x")


def _larger(value: Any) -> Any:
    return fraction(from_fraction(value, "constant") * _FACTOR) if _is_fraction(value) else value * _FACTOR


def _smaller(value: Any) -> Any:
    return fraction(from_fraction(value, "constant") / _FACTOR) if _is_fraction(value) else value // _FACTOR


def _with(protocol: Protocol, places: tuple[Place, ...], change: Callable[[Any], Any]) -> Protocol:
    """Return the protocol with `change` applied to the numbers at these places of `resolved`."""
    content = protocol.to_dict()  # a fresh copy
    for *way, last in places:
        inner = content["resolved"]
        for key in way:
            inner = inner[key]
        inner[last] = change(inner[last])
    return Protocol.from_dict(content)


def _with_rows(protocol: Protocol, name: str, rows: list[Any]) -> Protocol:
    content = protocol.to_dict()
    content["resolved"][name] = rows
    return Protocol.from_dict(content)
