"""Exact binomial intervals, and how many more pairs would settle a question."""

from __future__ import annotations

from collections.abc import Callable

from scipy.special import betaincinv

from banditto.core.exact import first_true

MOST_PAIRS = 10**9


def clopper_pearson(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Return the exact two-sided interval for a binomial probability (Clopper and Pearson 1934)."""
    tail = (1.0 - confidence) / 2.0
    return lower_limit(successes, trials, tail), upper_limit(successes, trials, tail)


def lower_limit(successes: int, trials: int, tail: float) -> float:
    """Return a lower bound on a binomial probability that is above the true one with probability at most `tail`."""
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, tail))


def upper_limit(successes: int, trials: int, tail: float) -> float:
    """Return an upper bound on a binomial probability that is below the true one with probability at most `tail`."""
    if successes == trials:
        return 1.0
    return float(betaincinv(successes + 1, trials - successes, 1.0 - tail))


def pairs_to_settle(
    mismatches: int,
    pairs: int,
    rho: float,
    confidence: float,
    settles: Callable[[int, int], bool] | None = None,
) -> int | None:
    """Return about the smallest number above `pairs` whose interval is on one side of `rho`, at the observed rate.

    With n pairs, round(rate * n) mismatches are expected. None comes back when even `MOST_PAIRS` would not do. If
    `settles(mismatches, pairs)` is given, it is asked instead of the exact interval.
    """
    tail = (1.0 - confidence) / 2.0
    rate = mismatches / pairs

    def settled(trials: int) -> bool:
        """Return whether the interval after so many trials, at the observed rate, lies on one side of `rho`."""
        expected = round(rate * trials)
        if settles is not None:
            return (expected <= rho * trials) == (rate <= rho) and settles(expected, trials)
        if rate <= rho:
            return upper_limit(expected, trials, tail) <= rho
        return lower_limit(expected, trials, tail) > rho

    # `settled` wobbles where round(rate * n) steps. Between two steps it is monotone, towards more trials when
    # the upper limit decides and towards fewer when the lower one does; so look at the best end of each step.
    def best_end(expected: int) -> int:
        if rate <= rho:
            return _last(lambda n: round(rate * n) <= expected, MOST_PAIRS)
        return first_true(lambda n: round(rate * n) >= expected, 1, MOST_PAIRS)

    if rate == 0.0:
        return first_true(settled, 1, MOST_PAIRS) if settled(MOST_PAIRS) else None
    most = round(rate * MOST_PAIRS)
    if not settled(best_end(most)):
        return None

    def smallest(above: int, first: int) -> int:
        """Return the smallest number above `above` that settles it, from the step of `first` mismatches on."""
        step = first_true(lambda expected: settled(best_end(expected)), min(first, most), most)
        if rate > rho:
            return best_end(step)
        start = max(above + 1, first_true(lambda n: round(rate * n) >= step, 1, MOST_PAIRS))
        return first_true(settled, start, best_end(step))

    found = smallest(0, 0 if rate <= rho else 1)
    if found > pairs:
        return found
    # the pairs themselves are open: as it wobbles, fewer would have settled it, and now it takes more
    return smallest(pairs, mismatches if rate <= rho and best_end(mismatches) > pairs else mismatches + 1)


def _last(holds: Callable[[int], bool], high: int) -> int:
    """Return the largest integer in [1, high] at which `holds` is true; from some point on it must be false."""
    if holds(high):
        return high
    return first_true(lambda n: not holds(n), 1, high) - 1
