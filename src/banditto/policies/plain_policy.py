"""PlainPolicy: a policy of one's own in plain Python, an object with `select` and `update`, or two functions.

It is played round by round, by the interpreter: slowly, and by the same rules as every other policy. Each execution
gets an object, or a state, of its own, so that nothing passes from one execution to the next.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, ClassVar, Protocol

import numpy as np

from banditto import policies
from banditto.core.errors import InvalidArgument, shown
from banditto.core.protocol import Plain
from banditto.core.rewards import Rewards
from banditto.policies import baselines

PAGE = "docs/add-a-policy.md"
METHODS = ("select", "update")
WANTED = "select(t, rng) and update(arm, reward)"
STATEMENT = "plain Python, which this protocol names and does not hold: a second lab needs the code as well"
_LONGEST_NAME = 60
_CANNOT_CHANGE = (bool, int, float, complex, str, bytes, tuple, frozenset, type(None))


class Chooser(Protocol):
    """One execution of a policy in plain Python: it chooses an arm each round, and is told what that paid."""

    def select(self, t: int, rng: np.random.Generator, /) -> int:
        """Return the arm of round t, both counted from 0; `rng` has the coins of this round, which a pair shares."""

    def update(self, arm: int, reward: float, /) -> None:
        """Learn that the arm just selected paid `reward`."""


@dataclass(frozen=True, eq=False, init=False)
class PlainPolicy:
    """A policy of your own in plain Python, which `certify`, `compare` and `watch_pair` take like any other.

    Its objects have `select(t, rng)`, which returns the arm of round t, and `update(arm, reward)`, which learns what
    that arm paid. Rounds and arms are counted from 0. A new object is made for each execution. `rng` is a NumPy
    generator with the coins of the round: both executions of a pair get the same, however much they drew before.
    Rewards are fresh in each execution. Nothing is proved of such a policy; it is measured. docs/add-a-policy.md begins
    with one. Keywords beyond those below, such as `arms=3`, are handed to the class, or to `start`, each time.

    Args:
        policy: A class, or a function that returns a new object, with `select` and `update`; or, with `update`, the
            function `select(t, rng)`.
        update: With a function `select`, the function `update(arm, reward)`. Default None: `policy` makes objects.
        start: With two functions, what makes the state of an execution, such as `dict`. Both functions then take it as
            their first argument. Default None: they remember nothing.
        name: What tables call it. Default: the name of the class or function.

    Examples:
        >>> class Greedy:
        ...     def __init__(self, arms):
        ...         self.pulls, self.sums = [0] * arms, [0.0] * arms
        ...     def select(self, t, rng):
        ...         if t < len(self.pulls):
        ...             return t
        ...         return max(range(len(self.pulls)), key=lambda arm: self.sums[arm] / self.pulls[arm])
        ...     def update(self, arm, reward):
        ...         self.pulls[arm] += 1
        ...         self.sums[arm] += reward
        >>> from banditto import Bernoulli, certify
        >>> found = certify(PlainPolicy(Greedy, arms=2), Bernoulli([0.9, 0.5]), horizon=100, rho=0.1, pairs=200)
        >>> found.policy, found.verdict
        ('Greedy', 'FAIL')
    """

    policy: Callable[..., Any]
    update: Callable[..., Any] | None
    start: Callable[..., Any] | None
    name: str
    arguments: Mapping[str, Any]
    kind: type | None = field(repr=False)  # of what is made for each execution

    decision_version: ClassVar[int] = 1

    def __init__(
        self,
        policy: Callable[..., Any],
        /,
        update: Callable[..., Any] | None = None,
        *,
        start: Callable[..., Any] | None = None,
        name: str | None = None,
        **arguments: Any,
    ) -> None:
        _check_parts(policy, update, start, arguments)
        given = {"policy": policy, "update": update, "start": start, "arguments": dict(arguments)}
        for part, value in (given | {"name": _checked_name(policy, name)}).items():
            object.__setattr__(self, part, value)
        first, second = self._made(), self._made()
        object.__setattr__(self, "kind", None if update is not None else type(first))
        if first is second and not isinstance(first, _CANNOT_CHANGE):
            made = "policy" if update is None else "start"
            allowed = "a new object each time it is called, because an execution must not know what another one learnt"
            raise InvalidArgument(made, f"{word_for(self._maker)}, which returns the same object twice", allowed)
        if update is None:
            _check_methods(policy, first)

    def __repr__(self) -> str:
        given = [word_for(part) for part in (self.policy, self.update) if part is not None]
        given += [f"start={word_for(self.start)}"] if self.start is not None else []
        given += [f"{key}={value!r}" for key, value in self.arguments.items()]
        return f"PlainPolicy({', '.join(given)})"

    def begin(self) -> Chooser:
        """Return the object that plays one execution: a new one, or the two functions with a new state."""
        if self.update is None:
            made: Chooser = self._made()
            return made
        return _Functions(self.policy, self.update, () if self.start is None else (self._made(),))

    def settings(self) -> Mapping[str, Plain]:
        """Return where the code is, its sha256, and its arguments; the code itself is not included."""
        return {
            "plain": STATEMENT,
            "code": ", ".join(_place(part) for part in self.parts),
            "source": _source_digest(self._coded()),
            "arguments": {key: _written(value) for key, value in self.arguments.items()},
        }

    def resolved(self) -> Mapping[str, Plain]:
        """Return an empty mapping: code decides, not constants."""
        return {}

    def check_rewards(self, rewards: Rewards, means: Sequence[float] = ()) -> None:
        """Accept any rewards."""

    @property
    def parts(self) -> tuple[Callable[..., Any], ...]:
        """The callables that the user gave: a class or a function that makes objects, or two or three functions."""
        return tuple(part for part in (self.policy, self.update, self.start) if part is not None)

    @property
    def _maker(self) -> Callable[..., Any] | None:
        return self.policy if self.update is None else self.start

    def _made(self) -> Any:
        """Call the class, or `start`, once more, and return what it makes; if it fails, refuse it in one line."""
        make = self._maker
        if make is None:
            return None
        try:
            return make(**self.arguments)
        except Exception as error:
            argument = "policy" if self.update is None else "start"
            example = f"PlainPolicy({word_for(make)}, arms=3)" if self.update is None else "start=dict"
            allowed = f"one that can be called with these arguments, as in {example} ({type(error).__name__}: {error})"
            raise InvalidArgument(argument, self._called(make), " ".join(allowed.split())) from error

    def _called(self, make: Callable[..., Any]) -> str:
        words = ", ".join(f"{key}={value!r}" for key, value in self.arguments.items())
        return f"{word_for(make)}({words})"

    def _coded(self) -> list[Any]:
        """Return everything with source code of the user's: the parts, and the classes of what they make."""
        made = () if self.kind is None else self.kind.__mro__[:-1]  # all but object
        return [*self.parts, *(kind for kind in made if kind not in self.parts)]


class _Functions:
    """Two functions as one object; if there is a state of the execution, it comes before their arguments."""

    def __init__(self, select: Callable[..., Any], update: Callable[..., Any], state: tuple[Any, ...]) -> None:
        self._select, self._update, self._state = select, update, state

    def select(self, t: int, rng: np.random.Generator, /) -> int:
        arm: int = self._select(*self._state, t, rng)
        return arm

    def update(self, arm: int, reward: float, /) -> None:
        self._update(*self._state, arm, reward)


def word_for(thing: Any) -> str:
    """Return the name of a class or a function, or what kind of object it is."""
    found = getattr(thing, "__name__", None)
    if isinstance(found, str):
        return found
    inner = getattr(thing, "func", None)  # of functools.partial
    return f"an object of class {type(thing).__name__}" if inner is None else word_for(inner)


def missing_methods(thing: Any) -> list[str]:
    """Return which of `select` and `update` a class or an object does not have."""
    return [name for name in METHODS if not callable(getattr(thing, name, None))]


def _check_parts(policy: Any, update: Any, start: Any, arguments: Mapping[str, Any]) -> None:
    """Refuse what cannot be played: an object instead of its class, or functions that do not fit together."""
    if update is None:
        if not isinstance(policy, type) and not missing_methods(policy):
            kind = type(policy).__name__
            allowed = f"the class, PlainPolicy({kind}, ...): an object keeps what it learnt in the execution before"
            raise InvalidArgument("policy", word_for(policy), f"{allowed} ({PAGE})")
        if not callable(policy):
            raise InvalidArgument("policy", policy, f"a class with {WANTED}, or a function that makes one ({PAGE})")
        if start is not None:
            raise InvalidArgument("start", word_for(start), f"none with a class; with two functions, {WANTED} ({PAGE})")
        return
    for name, value in (("policy", policy), ("update", update)):
        if isinstance(value, type) or not callable(value):
            raise InvalidArgument(name, word_for(value), f"a function; or a class alone, with {WANTED} ({PAGE})")
    if start is None and arguments:
        allowed = f"a function that takes {', '.join(arguments)} and makes the state of an execution ({PAGE})"
        raise InvalidArgument("start", None, allowed)
    if start is not None and not callable(start):
        raise InvalidArgument("start", start, "a class or function that makes the state of an execution, such as dict")


def _check_methods(policy: Any, made: Any) -> None:
    missing = missing_methods(made)
    if missing:
        given = f"{word_for(policy)}, whose objects have no {' and no '.join(missing)}"
        raise InvalidArgument("policy", given, f"a class with {WANTED}, or a function that makes one ({PAGE})")


def _checked_name(policy: Any, name: Any) -> str:
    """Return the policy's name; refuse one that tables cannot show, or that a policy of banditto already has."""
    if name is None:
        own = word_for(policy)
        name = own if own.isidentifier() else "plain-policy"
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise InvalidArgument("name", name, f"one line of text, of at most {_LONGEST_NAME} letters")
    if name in policies.REGISTRY or name in baselines.REGISTRY:
        raise InvalidArgument("name", name, "another name, because a policy of banditto has this one")
    return name


def _place(part: Any) -> str:
    """Return where a class or a function is defined, as `module.name`."""
    while hasattr(part, "func"):
        part = part.func
    named = part if hasattr(part, "__qualname__") else type(part)
    return f"{named.__module__}.{named.__qualname__}"


def _written(value: Any) -> str:
    """Return an argument as text that is the same in every process."""
    plain = isinstance(value, bool | int | float | str | list | tuple | dict | None)
    return str(shown(repr(value))) if plain and " at 0x" not in repr(value) else f"of class {type(value).__name__}"


def _source_digest(parts: Sequence[Any]) -> str:
    """Return the sha256 of the code of classes and functions: of its text, or compiled where there is no text."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update("\n".join(_code_of(inspect.unwrap(getattr(part, "func", part)))).encode())
    return hasher.hexdigest()


def _code_of(part: Any) -> Iterator[str]:
    """Yield the source of a class or a function; where there is none, its compiled code and its constants."""
    if getattr(part, "__module__", None) == "builtins":
        return
    try:
        yield inspect.getsource(part)
    except (OSError, TypeError):  # made at a prompt, or an object that can be called
        if isinstance(part, FunctionType):
            yield from _compiled(part.__code__)
            return
        kind = part if isinstance(part, type) else type(part)
        for name, value in sorted(vars(kind).items()):
            yield name
            if isinstance(value, FunctionType):
                yield from _compiled(value.__code__)
            elif isinstance(value, bool | int | float | str):
                yield repr(value)


def _compiled(code: CodeType) -> Iterator[str]:
    """Yield what identifies compiled code: its bytes, names and constants, those of inner functions included."""
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _compiled(constant)
        else:
            yield repr(constant)
