"""Whether something is a policy, and if it is none, what it lacks to be one."""

from __future__ import annotations

from typing import Any

from banditto import policies
from banditto.core.errors import InvalidArgument
from banditto.policies import baselines
from banditto.policies.plain_policy import PAGE, WANTED, PlainPolicy, missing_methods, word_for
from banditto.policies.policy import BatchedPolicy, RoundPolicy

_EXAMPLES = "a policy, such as UCB1() or OneCut(arms=2, horizon=10**6, rho=0.1, gap=0.05)"
_DATA = (str, bytes, int, float, list, tuple, dict, set)
_MARKS = ("init", "plan", "decide")  # whoever has one of them means to work in batches
_BATCHED = (
    *("name", "decision_version", "arms", "horizon"),
    *("init", "plan", "decide", "settings", "resolved", "check_rewards"),
)


def check_policy(value: Any, argument: str = "policy") -> None:
    """Raise `InvalidArgument` for what is no policy; the line says what is missing, and where to read on."""
    if not isinstance(value, type) and isinstance(value, PlainPolicy | BatchedPolicy | RoundPolicy):
        return
    if isinstance(value, _DATA) or value is None:
        raise InvalidArgument(argument, value, _instead_of(value))
    kind = value if isinstance(value, type) else type(value)
    name = kind.__name__
    missing = missing_methods(value)
    if not missing:
        given = f"the class {name}" if kind is value else word_for(value)
        allowed = f"PlainPolicy({name}, ...): each execution needs an object of its own, which has learnt nothing yet"
        raise InvalidArgument(argument, given, f"{allowed} ({PAGE})")
    if kind is value and hasattr(value, "check_rewards"):
        raise InvalidArgument(argument, f"the class {name}", f"a policy object: {name}(...)")
    if any(hasattr(value, mark) for mark in _MARKS):
        lacks = ", ".join(part for part in _BATCHED if not hasattr(value, part))
        given = f"the class {name}" if kind is value else word_for(value)
        allowed = f"a policy object that works in batches; {name} has no {lacks}" if lacks else f"{name}(...)"
        raise InvalidArgument(argument, given, f"{allowed} ({PAGE})")
    lacks = " and no ".join(missing)
    allowed = f"{_EXAMPLES}; or PlainPolicy of a class with {WANTED}: {name} has no {lacks} ({PAGE})"
    raise InvalidArgument(argument, word_for(value), allowed)


def _instead_of(value: Any) -> str:
    """Return words for what would be a policy, to answer somebody who gave text or a number."""
    entry = (policies.REGISTRY | baselines.REGISTRY).get(value) if isinstance(value, str) else None
    known = _EXAMPLES if entry is None else f"a policy object: {entry.class_name}(...); names are for the command line"
    return f"{known} ({PAGE})"
