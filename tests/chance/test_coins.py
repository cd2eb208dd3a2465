"""Coins against an implementation of Philox4x64-10 written from its definition, and their promises."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banditto.chance.coins import Coins
from banditto.core.errors import InvalidArgument

MASK = 2**64 - 1


def philox_block(counter: int, key: int) -> list[int]:
    """Salmon et al. 2011, Philox4x64 with ten rounds."""
    words = [(counter >> (64 * lane)) & MASK for lane in range(4)]
    low, high = key & MASK, key >> 64
    for _ in range(10):
        first = words[0] * 0xD2E7470EE14C6C93
        second = words[2] * 0xCA5A826395121157
        words = [
            (second >> 64) ^ words[1] ^ low,
            second & MASK,
            (first >> 64) ^ words[3] ^ high,
            first & MASK,
        ]
        low, high = (low + 0x9E3779B97F4A7C15) & MASK, (high + 0xBB67AE8584CAA73B) & MASK
    return words


def reference_word(seed: int, purpose: str, batch: int, arm: int, replicate: int) -> int:
    digest = hashlib.sha256(f"banditto/coins/1|{seed}|{purpose}|{batch}|{arm}".encode()).digest()
    key = int.from_bytes(digest[:16], "little")
    # NumPy's generator steps its counter before it makes a block
    return philox_block(replicate // 4 + 1, key)[replicate % 4]


@given(
    st.integers(0, 2**128 - 1),
    st.sampled_from(["threshold", "commit"]),
    st.integers(0, 40),
    st.integers(0, 999),
    st.integers(0, 10**15 - 1),
)
@settings(max_examples=60)
def test_words_follow_the_published_scheme(seed: int, purpose: str, batch: int, arm: int, replicate: int) -> None:
    word = int(Coins(seed, replicate).words(purpose, batch, arm)[0])
    assert word == reference_word(seed, purpose, batch, arm, replicate)


def test_golden_words() -> None:
    words = Coins(11, 0, 5).words("threshold", 3)
    assert [int(word) for word in words] == [reference_word(11, "threshold", 3, 0, r) for r in range(5)]
    assert hashlib.sha256(Coins(11, 2, 4099).words("threshold", 7, 2).tobytes()).hexdigest() == (
        "5ce5d8f6657b7d1eff29b6174c4a43d3d4c897c861340dd18dd7e1f9ad141cfe"
    )


@given(st.integers(0, 5000), st.integers(1, 50), st.integers(0, 20))
@settings(max_examples=50)
def test_any_range_is_a_part_of_any_other(start: int, count: int, offset: int) -> None:
    wide = Coins(3, start, count + offset).uniform("threshold", 1)
    narrow = Coins(3, start + offset, count).uniform("threshold", 1)
    assert np.array_equal(wide[offset:], narrow)


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    addresses = [("threshold", batch, arm) for batch in range(4) for arm in range(3)]
    forwards = {address: Coins(5, 0, 7).uniform(*address).tolist() for address in addresses}
    backwards = {address: Coins(5, 0, 7).uniform(*address).tolist() for address in reversed(addresses)}
    assert forwards == backwards
    assert len({str(values) for values in forwards.values()}) == len(addresses)


def test_uniforms_have_the_right_shape_range_and_distribution() -> None:
    values = Coins(1, 0, 100_000).uniform("threshold", 1)
    assert values.shape == (100_000, 1)
    assert values.min() >= 0.0
    assert values.max() < 1.0
    # Dvoretzky-Kiefer-Wolfowitz: false-failure rate 1e-9; a shift of 1.5% would be seen
    empirical = np.arange(1, 100_001) / 100_000
    assert np.max(np.abs(np.sort(values[:, 0]) - empirical)) < np.sqrt(np.log(2 / 1e-9) / 200_000)


def test_coins_cannot_be_changed_by_a_reader() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Coins(1, 0, 1024).uniform("threshold", 1)[0] = 0


@pytest.mark.parametrize("seed", [-1, 2**128, 0.5, "x", None])
def test_bad_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(InvalidArgument, match="^seed: got"):
        Coins(seed)


def test_addresses_are_integers_whatever_their_type() -> None:
    plain = Coins(3).uniform("threshold", 2).tolist()
    assert Coins(3).uniform("threshold", cast(int, np.int64(2))).tolist() == plain
    with pytest.raises(TypeError):
        Coins(3).uniform("threshold", cast(int, 2.0))
    with pytest.raises(InvalidArgument, match="^purpose: got a|1"):
        Coins(3).uniform("a|1", 2)
