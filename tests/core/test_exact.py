from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditto.core.errors import InvalidArgument
from banditto.core.exact import (
    float_above,
    floor_log,
    floor_power,
    floor_root,
    integer,
    open_unit,
    parsed_integer,
    scale,
    written,
)


@given(st.integers(0, 10**60), st.integers(1, 40))
def test_floor_root_is_the_largest_integer_below(value: int, degree: int) -> None:
    root = floor_root(value, degree)
    assert root**degree <= value < (root + 1) ** degree


def test_floor_power_is_exact_where_floats_are_not() -> None:
    assert floor_power(10**8, 9, 18) == 10**4
    assert math.floor((10**8) ** (1 / 18) ** 1) == floor_power(10**8, 1, 18)
    assert [floor_power(3**20, i, 20) for i in range(1, 20)] == [3**i for i in range(1, 20)]


def test_floor_log_next_to_powers_of_e() -> None:
    # e^34 = 583461742527454.88...: floats cannot tell its two neighbours apart from 34
    below, above = 583461742527454, 583461742527455
    assert (floor_log(below), floor_log(above)) == (33, 34)
    assert math.log(below) == math.log(above) == 34.0


@pytest.mark.parametrize("value", [7, "7", 7.0, "7e0", "0_7", "70e-1"])
def test_integer_accepts_whatever_is_one(value: int | float | str) -> None:
    assert integer(value, "pairs", 1, 10) == 7


@pytest.mark.parametrize(
    "value", [True, 7.5, "7.5", "seven", "", math.nan, math.inf, "nan", "1e999999999", 0, 11, None]
)
def test_integer_refuses_the_rest_in_one_line(value: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^pairs: got .*, allowed: an integer from 1 to 10$") as caught:
        integer(value, "pairs", 1, 10)
    assert "\n" not in str(caught.value)


def test_messages_write_large_powers_of_ten_short() -> None:
    with pytest.raises(InvalidArgument, match=r"^horizon: got 1e40, allowed: an integer from 10 to 1e15$"):
        integer(10**40, "horizon", 10, 10**15)
    assert parsed_integer("100_000_000", "horizon") == parsed_integer("1e8", "horizon") == 10**8


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.1, math.nan, math.inf, "x", None, True])
def test_open_unit_refuses(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="between 0 and 1"):
        open_unit(value, "rho")


def test_scale_refuses_what_could_overflow() -> None:
    assert scale("0.25", "sigma") == 0.25
    for value in (0, -1, 1e308, math.inf):
        with pytest.raises(InvalidArgument, match="from 1e-6 to 1e6"):
            scale(value, "sigma")


def test_huge_integers_can_be_named_in_a_message() -> None:
    with pytest.raises(InvalidArgument, match="got an integer of 16610 bits"):
        integer(10**5000, "horizon", 10, 10**15)


def test_written_is_the_decimal_that_was_typed() -> None:
    assert written(0.1) == Decimal("0.1")
    assert int(25 / written(0.1) ** 2) == 2500
    assert math.floor(25 / 0.1**2) == 2499


@given(st.decimals(min_value=0, max_value=1, allow_nan=False, places=40))
def test_float_above_is_an_upper_bound(value: Decimal) -> None:
    assert Decimal(float_above(value)) >= value
    assert math.isclose(float_above(value), float(value), rel_tol=1e-15)
