"""Errors and warnings: one line that says which argument, what was given and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

_PASSWORD = re.compile(r"(:/+)[^/@]*:.*(?=@)|(password=)[^&#]*")  # of a store's URL, which no message may show
_SHOWN_ITEMS = 50
Trouble = Literal["empty", "unbounded", "undecided"]  # of a polytope


class BandittoError(Exception):
    """The base of every error that banditto raises on purpose; `code` names its kind for programs.

    Examples:
        >>> from banditto import Bernoulli
        >>> try:
        ...     Bernoulli([0.5, 1.2])
        ... except BandittoError as error:
        ...     print(error.code)
        invalid-argument
    """

    code = "error"


class InvalidArgument(BandittoError, ValueError):
    """An argument has a value that is not allowed.

    The three parts are kept apart so that a program can read them; `str()` is the line for people.

    Args:
        argument: The name of the argument.
        given: What was given; it is shown as one short line.
        allowed: What would have been allowed, in words.

    Examples:
        >>> from banditto import Bernoulli
        >>> Bernoulli([0.5, 1.2])
        Traceback (most recent call last):
        banditto.core.errors.InvalidArgument: means: got 1.2, allowed: numbers from 0 to 1
    """

    code = "invalid-argument"

    def __init__(self, argument: str, given: object, allowed: str) -> None:
        self.argument = argument
        self.given = shown(given)
        self.allowed = allowed
        super().__init__(f"{argument}: got {self.given}, allowed: {allowed}")

    def __reduce__(self) -> tuple[type[InvalidArgument], tuple[Any, ...]]:
        # exceptions are rebuilt from `args` by default, which here is the finished line
        return InvalidArgument, (self.argument, Shown(self.given), self.allowed)


class ContractError(BandittoError):
    """A policy or environment broke its contract (for example: pulls that do not add up to the horizon).

    Examples:
        >>> ContractError("a plan with 99 pulls for a horizon of 100").code
        'contract'
    """

    code = "contract"


class ConflictError(BandittoError):
    """What is on disk belongs to another run, is damaged, or is in use.

    Examples:
        >>> ConflictError("the folder holds another run").code
        'conflict'
    """

    code = "conflict"


class StoreError(ConflictError):
    """The database of a live experiment cannot be reached, or is of another kind.

    Examples:
        >>> StoreError("nobody answers").code
        'store'
    """

    code = "store"


class NoStore(InvalidArgument):
    """There are no experiments here yet: no database file, or one without tables for experiments.

    Args:
        argument: The argument that names the place.
        given: What was given for it.
        allowed: What is allowed.

    Examples:
        >>> print(NoStore("store", "sqlite:///trial.db", "a file that exists"))
        store: got sqlite:///trial.db, allowed: a file that exists
    """


class Offer(NamedTuple):
    """Numbers of a plan that is possible; `level` says what two runs of it would have in common."""

    rho: float
    gap: float
    horizon: int
    level: Literal["sequence", "winner"] = "sequence"


class NoPlan(InvalidArgument):
    """No plan meets the request; `offers` are plans that would be possible instead.

    Args:
        argument: The argument that is too small or too large.
        given: What was given for it.
        allowed: What would do, in words.
        offers: rho, gap, horizon and level of plans that there are. Default: none were found.

    Examples:
        >>> error = NoPlan("horizon", 10_000, "at least 101,400", [Offer(0.1, 0.05, 101_400)])
        >>> error.offers[0].horizon
        101400
    """

    def __init__(self, argument: str, given: object, allowed: str, offers: Sequence[Offer] = ()) -> None:
        super().__init__(argument, given, allowed)
        self.offers = tuple(offers)

    def __reduce__(self) -> tuple[type[InvalidArgument], tuple[Any, ...]]:
        return NoPlan, (self.argument, Shown(self.given), self.allowed, self.offers)


class LogError(BandittoError):
    """The log of a live experiment has an event that does not follow from those before it.

    Args:
        problem: What is wrong, without the number.
        number: The number of the event, from 1; None if it is about no event of a log.

    Examples:
        >>> print(LogError("a hash that does not follow", 7))
        event 7: a hash that does not follow
    """

    code = "log"

    def __init__(self, problem: str, number: int | None = None) -> None:
        self.problem, self.number = problem, number
        super().__init__(problem if number is None else f"event {number}: {problem}")

    def __reduce__(self) -> tuple[type[LogError], tuple[str, int | None]]:
        return LogError, (self.problem, self.number)


class IllConditioned(InvalidArgument):
    """The actions span their space so barely that double precision does not suffice.

    Examples:
        >>> IllConditioned().argument
        'actions'
    """

    def __init__(self) -> None:
        given = "actions that span their features too barely for double precision"
        super().__init__("actions", given, "actions that span them well: rescale or drop features")


class NoMaximum(BandittoError):
    """A linear program over a polytope has no answer.

    Args:
        trouble: "empty", "unbounded" or "undecided".
        why: What the solver found, in words.

    Examples:
        >>> print(NoMaximum("empty", "no point satisfies all rows"))
        the polytope is empty: no point satisfies all rows
    """

    code = "no-maximum"

    def __init__(self, trouble: Trouble, why: str) -> None:
        self.trouble, self.why = trouble, why
        super().__init__(f"the polytope is {trouble}: {why}")


class WorkerError(BandittoError):
    """A worker process could not be started or died.

    Examples:
        >>> WorkerError("a worker died").code
        'worker'
    """

    code = "worker"


class Unfinished(BandittoError):
    """A selection cannot go on: an arm's call raised, or there are no more rewards. Rewards told so far are kept.

    Args:
        arm: The name of the arm.
        index: Which pull of that arm it was, from 0.
        problem: What happened, in words.
        estimates: What is known so far, by arm: the mean of its rewards, None without any, and their number.

    Examples:
        >>> print(Unfinished("b", 17, "there are no more rewards", {"a": (0.5, 18), "b": (0.4, 17)}))
        arm b, index 17: there are no more rewards
    """

    code = "unfinished"

    def __init__(
        self, arm: str, index: int, problem: str, estimates: Mapping[str, tuple[float | None, int]] | None = None
    ) -> None:
        self.arm, self.index, self.problem = arm, index, problem
        self.estimates = dict(estimates or {})
        super().__init__(f"arm {shown(arm)}, index {index}: {problem}")

    def __reduce__(self) -> tuple[type[Unfinished], tuple[Any, ...]]:
        return Unfinished, (self.arm, self.index, self.problem, self.estimates)


class ServiceError(BandittoError):
    """A request to a service of experiments failed: it cannot be reached, is busy, or has no such thing.

    Args:
        status: The HTTP status that it answered; 0 if there was no answer.
        problem: What is wrong, in words.

    Examples:
        >>> ServiceError(429, "too many requests").status
        429
    """

    code = "service"

    def __init__(self, status: int, problem: str) -> None:
        self.status, self.problem = status, problem
        super().__init__(problem)

    def __reduce__(self) -> tuple[type[ServiceError], tuple[int, str]]:
        return type(self), (self.status, self.problem)


class NotAllowed(ServiceError):
    """A service refused a token: it is wrong, has expired, or does not permit this request.

    Args:
        status: The HTTP status: 401 if nobody knows the token, 403 if it is known and not enough.
        problem: What is wrong, in words.

    Examples:
        >>> print(NotAllowed(401, "the token has expired"))
        the token has expired
    """

    code = "not-allowed"


class MissingExtra(BandittoError, ImportError):
    """Something needs a library that only an optional extra of banditto installs.

    Args:
        what: What needs the library.
        library: The library's name.
        extra: The extra of banditto that installs it.

    Examples:
        >>> print(MissingExtra("reading a Parquet file", "pyarrow", "data"))
        reading a Parquet file needs pyarrow, which is not installed: pip install 'banditto[data]'
    """

    code = "missing-extra"

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(f"{what} needs {library}, which is not installed: pip install 'banditto[{extra}]'")


class ShortHorizonWarning(UserWarning):
    """A warning that the horizon is too short for the policy to drop any arm: replicable, and useless.

    Examples:
        >>> import warnings
        >>> from banditto import RandomThreshold
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     policy = RandomThreshold(arms=2, horizon=100, rho=0.1)
        >>> [warning.category.__name__ for warning in caught]
        ['ShortHorizonWarning']
    """


class Shown(str):
    """Text that `shown` has already made short and safe, so that it is not shortened again."""

    __slots__ = ()


def shown(value: object) -> Shown:
    """Return `value` as text for a message: one line of at most 80 printable characters, passwords masked."""
    if isinstance(value, Shown):
        return value
    if isinstance(value, int) and value.bit_length() > 1000:
        return Shown(f"an integer of {value.bit_length()} bits")  # Python refuses to write out longer ones
    if isinstance(value, list | tuple) and len(value) > _SHOWN_ITEMS:
        value = value[:_SHOWN_ITEMS]  # the rest would be cut off below
    try:
        text = repr(value) if isinstance(value, float | list) else str(value)
        if "\n" in text and not isinstance(value, str | BaseException):  # a result or an array, which prints as a table
            text = repr(value)
    except RecursionError:
        return Shown("something that is nested too deep")
    if isinstance(value, int) and len(text) > 5 and text.rstrip("0") == "1":
        text = f"1e{len(text) - 1}"  # 1e40 rather than forty zeros
    text = masked(" ".join(text.split())) or repr(value)
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)  # for no terminal
    return Shown(text if len(text) <= 80 else text[:77] + "...")


def masked(text: str) -> str:
    """Return the text with the password of a URL in it replaced by ***."""
    return _PASSWORD.sub(r"\1\2***", text)
