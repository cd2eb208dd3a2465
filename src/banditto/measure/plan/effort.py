"""How much work a plan may take: as much as is needed for an answer that luck does not decide."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditto.measure.plan.questions import Question
from banditto.measure.plan.solving import FINEST
from banditto.problems.environment import LinearEnvironment

_FAILURES = 100  # that a rehearsal expects of a plan which just keeps its promise


class Effort(NamedTuple):
    """How many executions a rehearsal has, how far apart horizons are tried, and how fine the answer is."""

    executions: int
    step: float
    finest: float


def effort_for(question: Question) -> Effort:
    """More for what is quick: constants that are searched for and designs take their time."""
    blank = question.blank()
    fewest = math.ceil(_FAILURES / (1.0 - question.resolve))  # else luck would decide
    if isinstance(blank, LinearEnvironment):
        return Effort(max(1024, fewest // 2), 2.0, 1.01) if blank.means else Effort(max(192, fewest // 10), 2.0, 1.02)
    usual = min(8192, max(2048, 400_000 // len(blank.means)))
    return Effort(max(usual, fewest), 1.15, FINEST)
