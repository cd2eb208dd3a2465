"""Coins of policies in plain Python: the same in both executions, round by round, whatever was drawn before."""

from __future__ import annotations

import numpy as np

from banditto.chance.round_coins import RoundCoins


def words(seed: int, pair: int, time: int, count: int = 4) -> list[int]:
    coins = RoundCoins(seed, pair)
    coins.move_to(time)
    found: list[int] = coins.generator.bit_generator.random_raw(count).tolist()
    return found


def test_golden_words() -> None:
    """Certificates are made again from these: a Philox with the pair's key, its counter at the round."""
    assert words(0, 0, 0) == np.random.Philox(key=0x8022B5304D8B68DE9820E2AD50E24AFE).random_raw(4).tolist()
    assert words(0, 0, 0)[:2] == [17847240627210863842, 4180687687373038205]
    assert words(2026, 5, 10**6)[:2] == [5550229052060814484, 5191442207518311740]


def test_a_round_has_the_same_numbers_whatever_was_drawn_before() -> None:
    first, second = RoundCoins(7, 3), RoundCoins(7, 3)
    for time in range(50):
        first.move_to(time)
        second.move_to(time)
        second.generator.permutation(0)
        numbers = first.generator.random(), first.generator.standard_normal(), first.generator.integers(10)
        assert numbers == (second.generator.random(), second.generator.standard_normal(), second.generator.integers(10))
        second.generator.integers(5, size=time, dtype=np.uint32)  # leaves half a word behind, sometimes


def test_seeds_pairs_and_rounds_have_numbers_of_their_own() -> None:
    found = [words(seed, pair, time)[0] for seed in range(4) for pair in range(4) for time in range(500)]
    assert len(set(found)) == len(found)
    uniforms = np.array(found) * 2.0**-64
    assert abs(uniforms.mean() - 0.5) < 5.0 * np.sqrt(
        1 / 12 / len(found)
    )  # false-failure rate 6e-7; the seeds are fixed
    assert abs(uniforms.var() - 1 / 12) < 5.0 * np.sqrt(1 / 180 / len(found))
