"""A search that knows both sides finds what it would have found, and asks less often."""

from __future__ import annotations

import math

import pytest

from banditto.core.exact import first_true
from banditto.core.known_sides import KnownSides


def counted(turns: float) -> tuple[list[float], KnownSides]:
    """A condition that turns true at a value, and what was asked of it."""
    asked: list[float] = []

    def excess(value: float) -> float:
        asked.append(value)
        return math.log(value / turns) if value < turns else max(math.log(value / turns), 0.0)

    return asked, KnownSides(excess)


@pytest.mark.parametrize("turns", [1.0, 17.0, 4096.0, 777_777.0, 999_999.0])
@pytest.mark.parametrize("guess", [1.0, 5e3, 1e6])
def test_the_same_integer_is_found_with_fewer_questions(turns: float, guess: float) -> None:
    plainly, plain = counted(turns)
    known, condition = counted(turns)
    assert first_true(condition.aimed(guess, 1.0, 1e-7, 1.0, 1e6), 1, 10**6) == first_true(plain, 1, 10**6) == turns
    assert len(known) <= len(plainly) + 2
    if 5.0 < turns < 999_999.0:
        assert len(known) < 0.75 * len(plainly)


def test_nothing_is_asked_twice_or_where_it_is_known() -> None:
    asked, condition = counted(100.0)
    assert [condition(value) for value in (50.0, 200.0, 20.0, 500.0)] == [False, True, False, True]
    assert [condition(value) for value in (50.0, 200.0)] == [False, True]
    assert asked == [50.0, 200.0]


def test_what_is_too_small_from_the_start_is_not_asked() -> None:
    asked: list[float] = []

    def excess(value: float) -> float:
        asked.append(value)
        return value - 3.0

    condition = KnownSides(excess, no=2.0)
    assert not condition(1.5)
    assert not condition(2.0)
    assert asked == []
    assert condition(3.0)
    assert asked == [3.0]


def test_a_slope_that_is_wrong_costs_questions_and_no_answers() -> None:
    for slope in (1e-6, 1e6, -1.0, math.nan):
        _, condition = counted(12_345.0)
        assert first_true(condition.aimed(10.0, slope, 1e-7, 1.0, 1e6), 1, 10**6) == 12_345


def test_where_the_excess_jumps_nothing_is_taken_as_known() -> None:
    asked: list[float] = []

    def excess(value: float) -> float:  # it jumps at 2, and above that it is too small once more
        asked.append(value)
        return -1.0 if value < 2.0 or 2.2 < value < 2.3 else 1.0

    condition = KnownSides(excess).aimed(2.1, 1.0, 1e-6, 1.0, 3.0)
    asked.clear()
    assert not condition(2.25)
    assert 2.25 in asked
