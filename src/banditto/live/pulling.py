"""Where a selection's rewards come from: callables that return one, coroutines, and iterables."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from banditto.chance.pull_streams import pull_generator
from banditto.core.errors import InvalidArgument, shown
from banditto.core.horizons import FEWEST_ARMS
from banditto.live.tickets import Ticket

Arm = Callable[..., object] | Iterable[object]  # what a caller may give for an arm
_ALLOWED = "a callable that returns one reward, or an iterable of rewards"
_NAMES = ("index", "rng")  # what a callable may take


class Pull(NamedTuple):
    """A ticket that is to be played: its arm, and which pull of that arm it is, from 0."""

    ticket: Ticket
    arm: int
    number: int


class Returned(NamedTuple):
    """What a call returned, or how it failed; the error itself is kept only if it stays in this process."""

    value: object
    failure: str = ""
    error: BaseException | None = None


class Called(NamedTuple):
    """The outcomes of a group of calls, up to the first that failed or was too late, and the seconds that they took."""

    outcomes: list[Returned]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Source:
    """One arm's callable, and what it takes."""

    arm: int
    call: Callable[..., Any]
    takes: tuple[str, ...]
    noise_seed: int

    @property
    def waits(self) -> bool:
        """Whether the callable is asynchronous."""
        return is_async(self.call)

    def arguments(self, index: int) -> dict[str, object]:
        """Return the keyword arguments of the call for one pull; every attempt gets the same."""
        found: dict[str, object] = {}
        if "index" in self.takes:
            found["index"] = index
        if "rng" in self.takes:
            found["rng"] = pull_generator(self.noise_seed, self.arm, index)
        return found


class Items:
    """One arm's iterable, read once and in order."""

    def __init__(self, items: Iterable[object]) -> None:
        self._items: Iterator[object] = iter(items)
        self._place = 0

    def take(self, index: int) -> Returned:
        """Return the reward of a pull; rewards before it were told in an earlier run, and are skipped."""
        try:
            for value in islice(self._items, index - self._place, None):
                self._place = index + 1
                return Returned(value)
        except Exception as error:
            return Returned(None, described(error), error)
        return Returned(None, "there are no more rewards")


def sources_of(arms: Mapping[str, Arm], noise_seed: int) -> list[Source | Items]:
    """Check what was given for the arms; return where each arm's rewards come from, in the arms' order."""
    if not isinstance(arms, Mapping):
        raise InvalidArgument("arms", arms, "a dictionary of names, each with a callable or an iterable of rewards")
    if len(arms) < FEWEST_ARMS:
        raise InvalidArgument("arms", f"{len(arms)} of them", f"{FEWEST_ARMS} or more")
    for name in arms:
        if not isinstance(name, str):
            raise InvalidArgument("arms", f"{name!r} as a name", "names that are text, such as 'new'")
    return [_source(name, value, arm, noise_seed) for arm, (name, value) in enumerate(arms.items())]


def _source(name: str, value: Arm, arm: int, noise_seed: int) -> Source | Items:
    if callable(value):
        return Source(arm=arm, call=value, takes=_taken(name, value), noise_seed=noise_seed)
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidArgument(f"arm {shown(name)}", value, _ALLOWED)
    return Items(value)


def _taken(name: str, call: Callable[..., object]) -> tuple[str, ...]:
    """Return which of `index` and `rng` a callable takes; raise `InvalidArgument` if it needs anything else."""
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # some that are written in C do not say
        return ()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for one in parameters:
        known = one.name in _NAMES and one.kind in by_name
        if not known and one.default is inspect.Parameter.empty and one.kind not in loose:
            raise InvalidArgument(f"arm {shown(name)}", f"a callable that needs {one.name}", "only index and rng")
    return tuple(one.name for one in parameters if one.name in _NAMES and one.kind in by_name)


def is_async(call: Callable[..., object]) -> bool:
    """Say whether a callable, or an object that can be called, is asynchronous."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


def described(error: BaseException) -> str:
    """Say in one line what an error is."""
    text = shown(error) if str(error).strip() else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def play(
    calls: Sequence[tuple[Source, int]], retries: int, seconds: float, travels: bool, outcomes: list[Returned]
) -> Called:
    """Make these calls in order, until one fails or so much time has passed; outcomes are also added to the list.

    With `travels` the outcomes go to another process, which errors might not survive.
    """
    begun = time.monotonic()
    for source, index in calls:
        outcome = _called(source, index, retries)
        outcomes.append(outcome._replace(error=None) if travels else outcome)
        if outcome.failure or time.monotonic() - begun > seconds:
            break
    return Called(outcomes, time.monotonic() - begun)


def _called(source: Source, index: int, retries: int) -> Returned:
    """Call once and up to `retries` times more until it works; return its value, or the last failure."""
    for attempt in range(retries + 1):
        try:
            value = source.call(**source.arguments(index))
        except Exception as error:
            if attempt == retries:
                return _failed(error, retries)
        else:
            if inspect.iscoroutine(value):  # nobody will wait for it, and Python would say so
                value.close()
            return Returned(value)
    raise AssertionError("the last attempt returns")


async def played(source: Source, index: int, retries: int, turn: Any) -> Called:
    """Await one asynchronous call once the semaphore `turn` lets it in; return its outcome as `play` does."""
    async with turn:
        begun = time.monotonic()
        for attempt in range(retries + 1):
            try:
                waited: Awaitable[object] = source.call(**source.arguments(index))
                outcome = Returned(await waited)
                break
            except Exception as error:
                outcome = _failed(error, retries)
                if attempt == retries:
                    break
        return Called([outcome], time.monotonic() - begun)


def _failed(error: Exception, retries: int) -> Returned:
    attempts = f" (in the last of {retries + 1} attempts)" if retries else ""
    return Returned(None, described(error) + attempts, error)
