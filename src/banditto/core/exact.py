"""Exact arithmetic: checked integers, decimals, integer roots and logarithms.

Whatever fixes a plan must come out the same on every machine. Floats do not promise that: `floor(T ** (i / B))`
gives 9999 for 10^4 at T = 10^8, and `floor(25 / 0.1**2)` gives 2499. Integers are therefore Python integers,
`rho` is the decimal number that the user wrote, and transcendental functions are evaluated by `decimal` at 60
digits, whose results do not depend on the machine's mathematical library.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal, DecimalException, localcontext
from functools import cache
from typing import SupportsFloat, SupportsIndex

from banditto.core.errors import InvalidArgument, shown

DIGITS = 60
EXACT_INTEGERS = 2**53  # beyond it, not every integer is a float
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")

Real = SupportsFloat | Decimal | str
Count = SupportsIndex | float | str


@contextmanager
def precise() -> Iterator[None]:
    """Calculate with decimals of `DIGITS` digits inside the `with` block."""
    with localcontext() as context:
        context.prec = DIGITS
        yield


def integer(value: Count, argument: str, low: int, high: int) -> int:
    """Return `value` as an integer in [low, high], or refuse it; `1e8`, 8.0 and `100_000_000` are integers too."""
    number = _integer_or_none(value)
    if number is None or not low <= number <= high:
        raise InvalidArgument(argument, value, f"an integer from {shown(low)} to {shown(high)}")
    return number


def parsed_integer(text: str, argument: str) -> int:
    """Return the integer that somebody typed, of any size; text that is no integer is refused."""
    number = _integer_or_none(text)
    if number is None:
        raise InvalidArgument(argument, text, "an integer, such as 1000, 1e8 or 100_000_000")
    return number


def _integer_or_none(value: Count) -> int | None:
    """Return `value` as an integer; None for a truth value, a fraction, or a float too large to be exact."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and abs(value) > EXACT_INTEGERS:
        return None  # it may have been another number before it was rounded to a float
    if isinstance(value, float | str):
        try:
            number = Decimal(value)
        except DecimalException:
            return None
        # the bound keeps a hostile exponent from being written out in digits
        if not number.is_finite() or number.adjusted() > 300 or number != number.to_integral_value():
            return None
        return int(number)
    try:
        return operator.index(value)
    except TypeError:
        return None


def open_unit(value: Real, argument: str) -> float:
    """Return `value` as a float strictly between 0 and 1, or refuse it."""
    number = real(value, argument, "a number between 0 and 1, both excluded")
    if not 0.0 < number < 1.0:
        raise InvalidArgument(argument, value, "a number between 0 and 1, both excluded")
    return number


def scale(value: Real, argument: str) -> float:
    """Return `value` as a standard deviation from 1e-6 to 1e6, or refuse it; in this range no total can overflow."""
    allowed = "a number from 1e-6 to 1e6"
    number = real(value, argument, allowed)
    if not 1e-6 <= number <= 1e6:
        raise InvalidArgument(argument, value, allowed)
    return number


def real(value: Real, argument: str, allowed: str = "a finite number") -> float:
    """Return `value` as a finite float, or refuse it; `allowed` is what the error message says is allowed."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(argument, value, allowed) from None
    if not math.isfinite(number):
        raise InvalidArgument(argument, value, allowed)
    if abs(number) >= EXACT_INTEGERS and is_rounded(value, number):
        raise InvalidArgument(argument, value, f"{allowed}; above 2^53 only integers that a float holds exactly")
    return number


def is_rounded(value: object, number: float) -> bool:
    """Return whether `value`, an integer or its digits as text, was changed when it became the float `number`."""
    if isinstance(value, str):
        digits = value.strip().replace("_", "").lstrip("+-")
        return digits.isdigit() and int(digits[:400]) != abs(int(number))
    return isinstance(value, int) and value != int(number)


def written(value: float) -> Decimal:
    """Return the decimal number that a float was written as: 0.1 is one tenth, not 0.1000000000000000055."""
    return Decimal(repr(float(value)))


def floor_log(value: int) -> int:
    """Return the integer part of the natural logarithm of `value`."""
    if 1 <= value < _powers_of_e()[-1]:  # a search for a horizon asks thousands of times
        return bisect_right(_powers_of_e(), value) - 1
    with precise():
        return int(Decimal(value).ln())


@cache
def _powers_of_e() -> tuple[int, ...]:
    """Return the smallest integers whose logarithm is at least 0, 1, ..., 49, which exceeds all horizons."""
    with precise():
        return tuple(math.ceil(Decimal(power).exp()) for power in range(50))


def floor_root(value: int, degree: int) -> int:
    """Return the integer part of the root: the largest n with n**degree <= value."""
    if value < 2 or degree == 1:
        return value
    guess = 1 << -(-value.bit_length() // degree)  # above the root, so that Newton's steps only go down
    while True:
        lower = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if lower >= guess:
            return guess
        guess = lower


def floor_power(base: int, numerator: int, denominator: int) -> int:
    """Return the integer part of base**(numerator/denominator)."""
    return floor_root(base**numerator, denominator)


def first_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest integer in [low, high] at which `holds` is true; from there on it must stay true."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def ceiling(value: Decimal) -> int:
    """Return the smallest integer that is at least `value`."""
    return math.ceil(value)


def snapped(value: float) -> float:
    """Round up to 32 binary digits: the last bits of a logarithm may differ between machines, the result does not."""
    part, exponent = math.frexp(value)
    return math.ldexp(math.ceil(math.ldexp(part, 32)), exponent - 32)


def float_above(value: Decimal) -> float:
    """Return the smallest float that is at least `value`: an upper bound is still one when it is printed."""
    nearest = float(value)
    return nearest if Decimal(nearest) >= value else math.nextafter(nearest, math.inf)
