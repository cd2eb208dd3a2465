"""The order of a batch's slots: permuted blocks, the same everywhere, found without walking."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from banditto.core.errors import InvalidArgument
from banditto.live.order import BatchOrder
from tests.live.worlds import walked_order

# Fixed for good: another order would break every experiment that is running.
GOLDEN = {
    (8, 1, (6, 6)): "010110011010",
    (7, 2, (5, 0, 2)): "2000020",
    (2023, 3, (4, 4, 4, 4)): "3012132032010123",
}
GOLDEN_FAR = "1212012012012021"  # slots 10^12 to 10^12 + 15 of three times 10^12 pulls


def order_of(seed: int, batch: int, pulls: tuple[int, ...]) -> list[int]:
    order = BatchOrder(seed, batch, pulls)
    return [order.arm(position) for position in range(order.length)]


@pytest.mark.parametrize(("address", "expected"), GOLDEN.items())
def test_golden_orders(address: tuple[int, int, tuple[int, ...]], expected: str) -> None:
    assert "".join(map(str, order_of(*address))) == expected


def test_golden_order_far_inside_a_batch() -> None:
    order = BatchOrder(7, 5, [10**12] * 3)
    assert "".join(str(order.arm(10**12 + k)) for k in range(16)) == GOLDEN_FAR


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**64 - 1),
    batch=st.integers(1, 100),
    pulls=st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any),
)
def test_the_order_is_the_rule_walked_through(seed: int, batch: int, pulls: list[int]) -> None:
    found = order_of(seed, batch, tuple(pulls))
    assert found == walked_order(seed, batch, pulls)
    assert [found.count(arm) for arm in range(len(pulls))] == pulls


def test_equal_plans_have_every_arm_once_in_each_block() -> None:
    found = order_of(11, 1, (50, 50, 50))
    blocks = [found[first : first + 3] for first in range(0, 150, 3)]
    assert all(sorted(block) == [0, 1, 2] for block in blocks)
    assert len({tuple(block) for block in blocks}) == 6  # none is missing with this seed


@pytest.mark.parametrize("pulls", [(1000, 10), (999, 1), (700, 200, 100), (3, 5000, 40, 40)])
def test_unequal_plans_keep_proportions_all_along(pulls: tuple[int, ...]) -> None:
    """After any number of slots no arm is further from its share than one block can bring it."""
    found, length = order_of(3, 2, pulls), sum(pulls)
    seen = Counter[int]()
    for done, arm in enumerate(found, 1):
        seen[arm] += 1
        for other, count in enumerate(pulls):
            assert abs(seen[other] - done * count / length) <= 32 * len(pulls) + len(pulls)
    halfway = Counter(found[: length // 2])
    for arm, count in enumerate(pulls):
        assert abs(halfway[arm] - count / 2) <= 32


def test_permutations_are_uniform() -> None:
    """Chi-square of the 6 orders over 12,000 blocks; false-failure rate 1e-6, finds an order that is 9 % off."""
    order = BatchOrder(99, 1, [12_000] * 3)
    counts = Counter(tuple(order.arm(3 * block + k) for k in range(3)) for block in range(12_000))
    statistic = sum((count - 2000) ** 2 / 2000 for count in counts.values())
    assert len(counts) == 6
    assert statistic < chi2.isf(1e-6, 5)


def test_a_slot_costs_the_same_at_any_position() -> None:
    """300 slots of a batch of 2 * 10^15, up to its last, within 0.6 s of work; walking there would take years."""
    order = BatchOrder(7, 1, [10**15, 10**15])
    begun = time.process_time()
    for position in (0, 10**12, 2 * 10**15 - 100):
        block = [order.arm(position + k) for k in range(100)]
        assert sorted(block) == [0] * 50 + [1] * 50
    assert time.process_time() - begun < 0.6


@pytest.mark.parametrize("position", [-1, 12, 10**18])
def test_there_are_no_other_slots(position: int) -> None:
    with pytest.raises(InvalidArgument, match="^position: got .*, allowed: 0 to 11$"):
        BatchOrder(1, 1, [6, 6]).arm(position)


def test_a_batch_has_pulls() -> None:
    with pytest.raises(InvalidArgument, match="^pulls: got"):
        BatchOrder(1, 1, [0, 0])
