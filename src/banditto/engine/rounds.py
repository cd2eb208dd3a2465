"""Per-round executions: a compiled loop around a baseline's choice, recorded as it is made.

Both sides of a pair are played chunk by chunk into two small buffers, which are compared, run-length encoded and
hashed before the next chunk: T integers are never in memory. Noise and coins are looked up by round, with one key
per pair, so any number of pairs is a prefix of a larger number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from banditto.chance.coins import Coins
from banditto.chance.noise import round_keys
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.trajectory import SEQUENCE, start_digest
from banditto.engine.pairs import PairCounts, Study, pseudo_regret
from banditto.policies.policy import Kernel, Record, Remembering, RoundPolicy
from banditto.problems.environment import RewardKernel

ROUNDS_PER_CHUNK = 16_384

ArmBuffer = npt.NDArray[np.uint16]
ByteBuffer = npt.NDArray[np.uint8]


class RoundRun(NamedTuple):
    """What is kept of one execution: pulls per arm (K,), the digest of the sequence, and the watched rounds' arms."""

    pulls: IntArray
    digest: str
    watched: IntArray


class Execution:
    """One execution; `advance` plays the next rounds into `arms` and takes them into the digest."""

    def __init__(self, study: Study, policy: RoundPolicy, side: int, pair: int) -> None:
        self._choose = policy.kernel()
        arms = len(study.environment.means)
        self._parameters = policy.parameters(arms, study.horizon)
        self._reward = study.environment.round_kernel()
        self._law = study.environment.round_parameters()
        self._coin_key = Coins(study.seed, pair).words("rounds", 0)[0]
        self._noise_key = round_keys(study.noise_seed, side, pair, 1)[0]
        self._hasher = start_digest(SEQUENCE)
        self._run = np.array([-1, 0], dtype=np.int64)  # the run that is not finished yet: arm, length
        self._encoded: ByteBuffer = np.empty(ROUNDS_PER_CHUNK * 4 + 16, dtype=np.uint8)
        self.pulls: IntArray = np.zeros(arms, dtype=np.int64)
        sums, averages, shares = (np.zeros(arms, dtype=np.float64) for _ in range(3))
        numbers = policy.memory(arms) if isinstance(policy, Remembering) else arms
        memory: FloatArray = np.zeros(numbers, dtype=np.float64)
        self._record: Record = (self.pulls, sums, averages, shares, memory)
        self.played = 0

    def advance(self, arms: ArmBuffer) -> None:
        """Play as many rounds as `arms` has room for."""
        _play(
            self._choose,
            self._parameters,
            self._coin_key,
            self._reward,
            self._law,
            self._noise_key,
            self._record,
            self.played,
            arms,
        )
        self.played += arms.size
        size = _encode_runs(arms, self._run, self._encoded)
        self._hasher.update(self._encoded[:size].data)

    def digest(self) -> str:
        """sha256 of the finished sequence, the same as of its runs all at once."""
        size = _encode_runs(np.array([_END], dtype=np.uint16), self._run.copy(), self._encoded)
        finished = self._hasher.copy()
        finished.update(self._encoded[:size].data)
        return finished.hexdigest()


def run_block(study: Study, policy: RoundPolicy, start: int, keep: int) -> PairCounts:
    """Play pairs `start` to `start + keep - 1`."""
    diverged = np.zeros(keep, dtype=np.int64)
    pulls = np.zeros((2, keep, len(study.environment.means)), dtype=np.int64)
    for row in range(keep):
        diverged[row], runs = play_pair(study, policy, start + row)
        pulls[0, row], pulls[1, row] = runs[0].pulls, runs[1].pulls
    means = study.environment.means
    return PairCounts.of(diverged, diverged, (pseudo_regret(pulls[0], means), pseudo_regret(pulls[1], means)), keep)


def play_pair(
    study: Study, policy: RoundPolicy, pair: int, watch: IntArray | None = None
) -> tuple[int, tuple[RoundRun, RoundRun]]:
    """Play one pair: the round (counted from 1) of its first divergence, 0 if none, and both runs.

    `watch` names rounds (counted from 0, ascending) whose arms are wanted for a picture.
    """
    sides = Execution(study, policy, 0, pair), Execution(study, policy, 1, pair)
    watched: tuple[list[int], list[int]] = ([], [])
    rounds = np.zeros(0, dtype=np.int64) if watch is None else watch
    diverged = 0
    while (played := sides[0].played) < study.horizon:
        size = min(ROUNDS_PER_CHUNK, study.horizon - played)
        buffers = np.empty((2, size), dtype=np.uint16)
        seen = rounds[(rounds >= played) & (rounds < played + size)] - played
        for side, arms, kept in zip(sides, buffers, watched, strict=True):
            side.advance(arms)
            kept += arms[seen].tolist()
        if not diverged:
            first = _first_difference(buffers[0], buffers[1])
            diverged = played + first + 1 if first < size else 0
    first_run, second_run = (
        RoundRun(side.pulls, side.digest(), np.array(kept, dtype=np.int64))
        for side, kept in zip(sides, watched, strict=True)
    )
    return diverged, (first_run, second_run)


_END = 0xFFFF  # no arm: ends the last run


# not cached on disk: specialised on the two kernels that are passed in, which numba's cache cannot key
@njit(cache=False, error_model="numpy")
def _play(
    choose: Kernel,
    parameters: FloatArray,
    coin_key: np.uint64,
    reward: RewardKernel,
    law: FloatArray,
    noise_key: np.uint64,
    record: Record,
    played: int,
    arms: ArmBuffer,
) -> None:
    pulls, sums, averages, shares, _ = record
    for index in range(arms.size):
        time = played + index
        arm = choose(record, time, parameters, coin_key)
        sums[arm] += reward(arm, law, noise_key, time)
        pulls[arm] += 1
        shares[arm] = 1.0 / pulls[arm]
        averages[arm] = sums[arm] * shares[arm]
        arms[index] = arm


@njit(cache=True)
def _first_difference(first: ArmBuffer, second: ArmBuffer) -> int:
    for index in range(first.size):
        if first[index] != second[index]:
            return index
    return first.size


@njit(cache=True)
def _encode_runs(arms: ArmBuffer, run: IntArray, out: ByteBuffer) -> int:
    """Append the runs that end within `arms` to `out` as LEB128 pairs (arm, length); `run` carries the open one."""
    size = 0
    current, length = run[0], run[1]
    for index in range(arms.size):
        arm = np.int64(arms[index])
        if arm == current:
            length += 1
            continue
        if current >= 0:
            for number in (current, length):
                while number > 0x7F:
                    out[size] = 0x80 | (number & 0x7F)
                    number >>= 7
                    size += 1
                out[size] = number
                size += 1
        current, length = arm, 1
    run[0], run[1] = current, length
    return size
