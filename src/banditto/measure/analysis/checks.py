"""Checks beside an analysis: were arms handed out as planned, and were rewards lost alike in all arms?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from typing_extensions import TypedDict

from banditto.core.arrays import FloatArray, IntArray
from banditto.core.json_types import Share
from banditto.core.text import short

ALARM = 0.001  # a check is an alarm where chance alone would do as much in one experiment of a thousand
Verdict = Literal["ok", "alarm"]


class FlowCheckContent(TypedDict):
    """A `FlowCheck` as plain data."""

    name: str
    verdict: Verdict
    p_value: Share | None
    text: str


class FlowCheck(NamedTuple):
    """One check on tickets: its verdict, the p-value behind it (None where chance has no part), and words."""

    name: str
    verdict: Verdict
    p_value: float | None
    text: str

    @property
    def line(self) -> str:
        """The check's name, verdict and explanation, in one line."""
        return f"{self.name}: {self.verdict.upper() if self.verdict == 'alarm' else 'ok'}; {self.text}"

    def to_dict(self) -> FlowCheckContent:
        """Return plain data with the names of the fields."""
        return {"name": self.name, "verdict": self.verdict, "p_value": self.p_value, "text": self.text}


def assignment_check(names: Sequence[str], assigned: Sequence[int], planned: Sequence[int]) -> FlowCheck:
    """Check that the slots handed out of each arm are exactly those of the plan."""
    if list(assigned) == list(planned):
        said = ", ".join(f"{name} {count:,}" for name, count in zip(names, assigned, strict=True))
        return FlowCheck("assignment", "ok", None, f"slots were handed out as planned ({said})")
    wrong = [
        f"{name} {given:,} instead of {due:,}"
        for name, given, due in zip(names, assigned, planned, strict=True)
        if given != due
    ]
    return FlowCheck("assignment", "alarm", None, f"slots were not handed out as planned: {', '.join(wrong)}")


def loss_check(names: Sequence[str], handed: Sequence[int], lost: Sequence[int]) -> FlowCheck:
    """Check whether some arms lose more rewards than others: each arm against the rest by Fisher's exact test."""
    if not sum(lost):
        return FlowCheck("lost rewards", "ok", None, "no reward is missing")
    shares = ", ".join(
        f"{name} {gone:,} of {out:,}" for name, gone, out in zip(names, lost, handed, strict=True) if out
    )
    p_value = equal_loss(handed, lost)
    if p_value < ALARM:
        said = f"some arms lose more than others (p = {short(p_value)}): {shares}. Those who stay away may differ, too"
        return FlowCheck("lost rewards", "alarm", p_value, said)
    return FlowCheck(
        "lost rewards", "ok", p_value, f"no arm loses more than chance explains (p = {p_value:.2g}): {shares}"
    )


def equal_loss(handed: Sequence[int], lost: Sequence[int]) -> float:
    """Return a p-value for all arms losing the same share: the smallest of the arms' own, times their number.

    Given how many are lost in all, an arm's losses are hypergeometric if no arm matters; twice the smaller tail.
    """
    every, gone = sum(handed), sum(lost)
    tails = [_smaller_tail(every, gone, out, mine) for out, mine in zip(handed, lost, strict=True)]
    tests = len(tails) if len(tails) > 2 else 1  # of two arms one says all
    return min(1.0, tests * 2.0 * min(tails))


def _smaller_tail(every: int, gone: int, out: int, mine: int) -> float:
    """Return the smaller of P(X <= mine) and P(X >= mine): X counts the arm's losses if chance alone picks them.

    There are `every` tickets, of which `gone` are lost and `out` are the arm's.
    """
    values = np.arange(max(0, gone + out - every), min(gone, out) + 1)
    logs = _choices(out, values) + _choices(every - out, gone - values) - _choices(every, np.array([gone]))
    chances = np.exp(logs)
    return float(min(chances[values <= mine].sum(), chances[values >= mine].sum()))


def _choices(of: int, some: IntArray) -> FloatArray:
    """Return the logarithm of the number of ways to choose `some` out of `of`."""
    from scipy.special import gammaln  # here, so that who asks and tells does not wait for SciPy

    return np.asarray(gammaln(of + 1.0) - gammaln(some + 1.0) - gammaln(of - some + 1.0))
