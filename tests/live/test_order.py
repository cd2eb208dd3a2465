"""The order of a batch's slots: permuted blocks, the same everywhere, found without walking."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from banditto.core.errors import InvalidArgument
from banditto.live.order import ORDER_RULE, ORDER_RULE_1, ORDER_RULE_2, ORDER_RULES, BatchOrder, MixedOrder, order_of
from tests.live.worlds import walked_mixed_order, walked_order

# Fixed for good: another order would break every experiment that is running.
GOLDEN = {
    (8, 1, (6, 6)): "010110011010",
    (7, 2, (5, 0, 2)): "2000020",
    (2023, 3, (4, 4, 4, 4)): "3012132032010123",
}
GOLDEN_FAR = "1212012012012021"  # slots 10^12 to 10^12 + 15 of three times 10^12 pulls
GOLDEN_MIXED = {
    (8, 1, (6, 6)): "110010110001",
    (7, 2, (5, 0, 2)): "2020000",
    (2023, 3, (4, 4, 4, 4)): "0302013123123120",
    (2**64 - 1, 4, (30, 7)): "0011000000000000001010100000001100000",
}
GOLDEN_MIXED_FAR = "0101201210212210"


def first_rule(seed: int, batch: int, pulls: tuple[int, ...]) -> list[int]:
    order = BatchOrder(seed, batch, pulls)
    return [order.arm(position) for position in range(order.length)]


@pytest.mark.parametrize(("address", "expected"), GOLDEN.items())
def test_golden_orders(address: tuple[int, int, tuple[int, ...]], expected: str) -> None:
    assert "".join(map(str, first_rule(*address))) == expected


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
    found = first_rule(seed, batch, tuple(pulls))
    assert found == walked_order(seed, batch, pulls)
    assert [found.count(arm) for arm in range(len(pulls))] == pulls


def test_equal_plans_have_every_arm_once_in_each_block() -> None:
    found = first_rule(11, 1, (50, 50, 50))
    blocks = [found[first : first + 3] for first in range(0, 150, 3)]
    assert all(sorted(block) == [0, 1, 2] for block in blocks)
    assert len({tuple(block) for block in blocks}) == 6  # none is missing with this seed


@pytest.mark.parametrize("pulls", [(1000, 10), (999, 1), (700, 200, 100), (3, 5000, 40, 40)])
def test_unequal_plans_keep_proportions_all_along(pulls: tuple[int, ...]) -> None:
    """After any number of slots no arm is further from its share than one block can bring it."""
    found, length = first_rule(3, 2, pulls), sum(pulls)
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


# -- rule 2 ------------------------------------------------------------------------------------------------------------


def mixed(seed: int, batch: int, pulls: tuple[int, ...]) -> list[int]:
    order = order_of(ORDER_RULE_2, seed, batch, pulls)
    return [int(arm) for arm in order.arms(0, order.length)]


def test_rules_have_names() -> None:
    assert ORDER_RULES == (ORDER_RULE_1, ORDER_RULE_2) == ("permuted-blocks/1", "permuted-blocks/2")
    assert ORDER_RULE == ORDER_RULE_2
    assert isinstance(order_of(ORDER_RULE_1, 1, 1, [2, 2]), BatchOrder)
    with pytest.raises(InvalidArgument, match=r"^order: got permuted-blocks/3, allowed: permuted-blocks/1 or"):
        order_of("permuted-blocks/3", 1, 1, [2, 2])


@pytest.mark.parametrize(("address", "expected"), GOLDEN_MIXED.items())
def test_golden_orders_of_rule_2(address: tuple[int, int, tuple[int, ...]], expected: str) -> None:
    assert "".join(map(str, mixed(*address))) == expected


def test_golden_order_of_rule_2_far_inside_a_batch() -> None:
    order = MixedOrder(7, 5, [10**12] * 3)
    assert "".join(map(str, order.arms(10**12, 10**12 + 16).tolist())) == GOLDEN_MIXED_FAR


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**64 - 1),
    batch=st.integers(1, 100),
    pulls=st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(any),
)
def test_rule_2_walked_through(seed: int, batch: int, pulls: list[int]) -> None:
    found = mixed(seed, batch, tuple(pulls))
    assert found == walked_mixed_order(seed, batch, pulls)
    assert [found.count(arm) for arm in range(len(pulls))] == pulls


@pytest.mark.parametrize("pulls", [(7000, 7000), (10_000, 77), (999, 1), (3, 5000, 40, 0, 40), (1,) * 300, (30_000, 1)])
def test_rule_2_over_several_stretches(pulls: tuple[int, ...]) -> None:
    """Exact counts, the rule walked through, and the same arms one by one, backwards and in parts."""
    order = MixedOrder(5, 3, pulls)
    found = order.arms(0, order.length)
    assert np.bincount(found, minlength=len(pulls)).tolist() == list(pulls)
    assert found.tolist() == walked_mixed_order(5, 3, pulls)
    again = MixedOrder(5, 3, pulls)
    places = [*range(order.length - 1, -1, -97), *range(0, order.length, 61)]
    assert [again.arm(place) for place in places] == found[places].tolist()
    cut = order.length // 3
    parts = [again.arms(cut, order.length), again.arms(0, cut), again.arms(cut, cut)]
    assert parts[1].tolist() + parts[0].tolist() == found.tolist()
    assert not len(parts[2])


@pytest.mark.parametrize("pulls", [(500, 500), (1000, 10), (700, 200, 100), (3, 5000, 40, 40)])
def test_rule_2_keeps_proportions_all_along(pulls: tuple[int, ...]) -> None:
    """After any number of slots no arm is further from its share than a block of four portions can bring it."""
    found, length = np.array(mixed(3, 2, pulls)), sum(pulls)
    portion = length / max(min(pulls), -(-length // (32 * len(pulls))))
    done = np.arange(1, length + 1)
    for arm, count in enumerate(pulls):
        off = np.abs(np.cumsum(found == arm) - done * count / length)
        assert off.max() <= 4 * portion * min(count / length, 1 - count / length) + 2


def test_rule_2_mixes_lengths_and_orders_evenly() -> None:
    """Chi-square of the first four slots of 3,000 batches, false-failure rate 1e-6.

    A block of 2, 3 or 4 pairs comes first, each a third of the time; so the probability of each sequence is known.
    """
    seen = Counter(tuple(MixedOrder(17, batch, [4, 4]).arms(0, 4).tolist()) for batch in range(1, 3001))
    weights = first_four()
    statistic = sum((seen[word] - 3000 * weight) ** 2 / (3000 * weight) for word, weight in weights.items())
    assert sum(weights.values()) == pytest.approx(1)
    assert set(seen) <= set(weights)
    assert statistic < chi2.isf(1e-6, len(weights) - 1)


def first_four() -> dict[tuple[int, ...], float]:
    """How likely each beginning of a batch of (4, 4) is: the first block has 4, 6 or 8 slots, a third each."""
    likely: dict[tuple[int, ...], float] = {}
    for word in np.ndindex(2, 2, 2, 2):
        total = 0.0
        for pairs in (2, 3, 4):
            chance, left = 1.0, [pairs, pairs]
            for arm in word:
                chance *= left[arm] / sum(left)
                left[arm] -= 1
            total += chance / 3
        if total:
            likely[word] = total
    return likely


def fresh_blocks(
    begin: int, stretch: int, arms: int, lengths: tuple[int, ...]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The blocks that may come after `begin` portions of a stretch: where they end, and how often each arm is left."""
    for length in lengths:
        yield min(begin + length, stretch), (min(length, stretch - begin),) * arms


def best_guesser(sequence: list[int], arms: int, lengths: tuple[int, ...], stretch: int) -> tuple[float, float]:
    """How often the next arm is guessed right by somebody who knows the rule and all arms so far, and is certain.

    This is Bayes' rule over where the present block may end, for equal counts: nobody without the seed guesses better.
    """
    right = certain = 0.0
    belief: dict[tuple[int, tuple[int, ...]], float] = {}
    for place, arm in enumerate(sequence):
        if place % (stretch * arms) == 0:
            belief = defaultdict(float)
            for block in fresh_blocks(0, stretch, arms, lengths):
                belief[block] += 1 / len(lengths)
        chances = [sum(w * left[a] / sum(left) for (_, left), w in belief.items()) for a in range(arms)]
        right += max(chances)
        certain += sum(any(left[a] for _, left in belief) for a in range(arms)) == 1
        after: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
        for (end, left), weight in belief.items():
            if left[arm]:
                rest = (*left[:arm], left[arm] - 1, *left[arm + 1 :])
                weight = weight * left[arm] / sum(left) / chances[arm]
                if any(rest):
                    after[end, rest] += weight
                elif end < stretch:
                    for block in fresh_blocks(end, stretch, arms, lengths):
                        after[block] += weight / len(lengths)
        belief = after
    return right / len(sequence), certain / len(sequence)


def test_rule_1_gives_every_second_arm_of_two_away() -> None:
    assert best_guesser(first_rule(2023, 1, (500, 500)), 2, (1,), 10**9) == (0.75, 0.5)


@pytest.mark.parametrize(("arms", "right"), [(2, 0.68), (3, 0.53)])
def test_rule_2_gives_little_away(arms: int, right: float) -> None:
    """The figures of docs/live.md; of 30,000 slots, so that they are off by half a point at the most."""
    found = MixedOrder(2023, 1, [60_000] * arms).arms(0, 30_000).tolist()
    guessed, certain = best_guesser(found, arms, (2, 3, 4), 4096 // arms)
    assert guessed == pytest.approx(right, abs=0.005)
    assert certain < 0.03


def test_rule_2_costs_the_same_at_any_position() -> None:
    """Slots of a batch of 2 * 10^15, up to its last, within a second of work; walking there would take years."""
    order = MixedOrder(7, 1, [10**15, 10**15])
    begun = time.process_time()
    for position in (0, 10**12, 2 * 10**15 - 4096):
        stretch = [order.arm(position + k) for k in range(4096)]
        assert abs(sum(stretch) - 2048) <= 8
    assert time.process_time() - begun < 1


def test_one_arm_alone_needs_no_coins() -> None:
    order = MixedOrder(7, 1, [0, 10**12])
    assert (order.arm(10**11), order.arms(5, 8).tolist()) == (1, [1, 1, 1])


@pytest.mark.parametrize("rule", ORDER_RULES)
@pytest.mark.parametrize("ends", [(-1, 3), (3, 2), (0, 13)])
def test_there_are_no_other_ranges(rule: str, ends: tuple[int, int]) -> None:
    with pytest.raises(InvalidArgument, match="^positions: got .*, allowed: a part of 0 to 12$"):
        order_of(rule, 1, 1, [6, 6]).arms(*ends)


def test_rules_share_their_checks() -> None:
    with pytest.raises(InvalidArgument, match="^position: got 12, allowed: 0 to 11$"):
        MixedOrder(1, 1, [6, 6]).arm(12)
    with pytest.raises(InvalidArgument, match="^pulls: got"):
        MixedOrder(1, 1, [0, 0])
    with pytest.raises(InvalidArgument, match="^pulls: got"):
        MixedOrder(1, 1, [10**16, 1])
    assert order_of(ORDER_RULE_1, 8, 1, (6, 6)).arms(2, 7).tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("rule", ORDER_RULES)
@pytest.mark.parametrize("pulls", [(6, 6), (40, 40, 40), (0, 9), (7, 0, 19), (1, 500), (2049, 2049), (3000, 5000)])
def test_the_number_of_a_pull_among_those_of_its_arm(rule: str, pulls: tuple[int, ...]) -> None:
    order = order_of(rule, 7, 2, pulls)
    seen = [0] * len(pulls)
    for position, arm in enumerate(order.arms(0, order.length).tolist()):
        if position < 300 or position % 97 == 0 or position > order.length - 50:
            assert order.number(position) == seen[arm]
        seen[arm] += 1
    assert tuple(seen) == pulls


def test_threads_that_share_an_order_get_their_own_slots_arms() -> None:
    """Between two looks at what was found last, another thread may have found something else."""

    class Shared(MixedOrder):
        looks = 0

        @property
        def _last_found(self) -> tuple[int, int, int]:
            self.looks += 1
            return (0, 0, 4096) if self.looks == 1 else (1, 4096, 8192)

        @_last_found.setter
        def _last_found(self, found: tuple[int, int, int]) -> None:
            pass

    arms = MixedOrder(7, 1, (5000, 5000)).arms(0, 10_000).tolist()
    assert [Shared(7, 1, (5000, 5000)).arm(position) for position in range(40)] == arms[:40]
    assert [Shared(7, 1, (5000, 5000)).arm(position) for position in range(9000, 9020)] == arms[9000:9020]
