"""Whether a policy in plain Python starts each execution afresh: the same coins and rewards must give the same arms.

An execution is played, then one in which arms pay each other's rewards, then the first one again; and so on, a few
times. If the first ever changes, something passed from one to the next, or the policy has randomness of its own. What
outlives an execution tells these apart: a variable that changed is named and refused. Randomness of its own is no
mistake of that kind. It is measured like everything else, with a warning, because pairs cannot agree on it.
"""

from __future__ import annotations

import inspect
import pickle
import random
import warnings
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from banditto.core.arrays import IntArray
from banditto.core.errors import InvalidArgument
from banditto.engine.plain_rounds import PlainExecution
from banditto.engine.player import Run
from banditto.policies.plain_policy import PAGE, PlainPolicy, word_for

_ROUNDS = 1000  # of each execution that is tried out: a few hundredths of a second in all
_NOT_DATA = (type, FunctionType, ModuleType, np.random.Generator, np.random.RandomState, random.Random)


def check_fresh_starts(run: Run, policy: PlainPolicy) -> None:
    """Refuse a policy that passes something from one execution to the next; warn of randomness that no pair shares."""
    rounds = min(run.horizon, _ROUNDS)
    first = _arms(run, policy, rounds)
    for between in (0, rounds, 1, rounds // 2):  # some number of rounds may lead back to where it began
        _arms(run, policy, between, mirrored=True)
        differ = np.flatnonzero(first != _arms(run, policy, rounds))
        if differ.size:
            break
    else:
        return
    before = _outliving(policy)
    _arms(run, policy, rounds, mirrored=True)
    after = _outliving(policy)
    changed = sorted(name for name in before.keys() & after.keys() if before[name] != after[name])
    if changed:
        allowed = f"one that starts each execution afresh: {changed[0]} kept what an earlier execution learnt ({PAGE})"
        raise InvalidArgument("policy", policy.name, allowed)
    warnings.warn(
        f"{policy.name}: the same rewards and coins gave another arm at t = {differ[0]}. Either it draws random "
        f"numbers elsewhere than from rng, which pairs do not share, or it keeps something between executions ({PAGE})",
        stacklevel=4,
    )


def _arms(run: Run, policy: PlainPolicy, rounds: int, *, mirrored: bool = False) -> IntArray:
    """Play the first rounds of the very first execution, and return their arms."""
    arms = np.empty(rounds, dtype=np.uint16)
    PlainExecution(run, policy, 0, 0, mirrored=mirrored).advance(arms)
    return arms.astype(np.int64)


def _outliving(policy: PlainPolicy) -> dict[str, bytes]:
    """Return the values that outlive an execution and that a policy's code can reach, as bytes to compare."""
    found: dict[str, bytes] = {}
    for name, value in _reached(policy):
        if not isinstance(value, _NOT_DATA):
            try:
                found[name] = pickle.dumps(value)
            except Exception:  # what cannot be pickled cannot be compared, so it is not blamed
                continue
    return found


def _reached(policy: PlainPolicy) -> Iterator[tuple[str, Any]]:
    """Yield name and value of all that a policy's code can reach: arguments, class attributes, variables."""
    yield from ((f"the argument {name}", value) for name, value in policy.arguments.items())
    kinds = () if policy.kind is None else policy.kind.__mro__[:-1]  # all but object
    functions = [part for part in policy.parts if isinstance(part, FunctionType)]
    for kind in kinds:
        for name, value in vars(kind).items():
            if isinstance(value, FunctionType):
                functions.append(value)
            elif not name.startswith("__"):
                yield f"{kind.__name__}.{name}", value
    for function in functions:
        yield from _reached_by(function)


def _reached_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of a function's defaults, enclosing variables and global variables."""
    where = word_for(function)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not parameter.empty:
            yield f"the default value of {name} in {where}", parameter.default
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield f"the variable {name}", cell.cell_contents
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield f"the global variable {name}", function.__globals__[name]


def _names(code: CodeType) -> set[str]:
    """Return the names that a function, and functions inside it, look up outside of themselves."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)
