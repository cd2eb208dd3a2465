"""Whether a policy in plain Python can be played in other processes: they import its code, and must find it."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

from banditto.core.errors import InvalidArgument
from banditto.policies.plain_policy import PlainPolicy
from banditto.policies.policy import AnyPolicy


def check_can_travel(policy: AnyPolicy, jobs: int, executor: Executor | None = None) -> None:
    """Refuse to play a policy in plain Python in other processes, which would not find its code."""
    if not isinstance(policy, PlainPolicy) or (jobs == 1 and not isinstance(executor, ProcessPoolExecutor)):
        return
    argument, given, alone = ("jobs", jobs, "1") if jobs > 1 else ("executor", "processes", "none")
    advice = "define it at the top of a module, and hand over its arguments as PlainPolicy(Mine, arms=3)"
    try:
        sent = pickle.dumps(policy)
    except Exception as error:  # whatever a user's object raises when it is pickled
        reason = f"{policy.name} cannot be sent to another process ({type(error).__name__}: {error})"
        raise InvalidArgument(argument, given, f"{alone}, because {reason}; {advice}") from error
    if b"__main__" in sent and not Path(getattr(sys.modules["__main__"], "__file__", None) or "").is_file():
        reason = f"{policy.name} was defined in a notebook or at a prompt, where other processes cannot find it"
        raise InvalidArgument(argument, given, f"{alone}, because {reason}; put it into a file and import it")
