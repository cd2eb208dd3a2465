"""Per-round executions, recorded as they are made: a compiled loop around a baseline's choice, or a loop in Python.

Both sides of a pair are played chunk by chunk into two small buffers, which are compared, run-length encoded and
hashed before the next chunk: T integers are never in memory. Noise and coins are looked up by round, with one key
per pair, so any number of pairs is a prefix of a larger number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise, round_keys
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.trajectory import SEQUENCE, start_digest
from banditto.engine.block_sizes import PAIRS_PER_ROUND_BLOCK
from banditto.engine.pair_counts import PairCounts, pseudo_regret
from banditto.engine.player import Followed, Run, Unit, Watched
from banditto.policies.policy import Kernel, Record, Remembering, RoundPolicy
from banditto.problems.environment import RewardKernel

ROUNDS_PER_CHUNK = 16_384
MOST_PAIRS_OF_A_CURVE = 24

ArmBuffer = npt.NDArray[np.uint16]
ByteBuffer = npt.NDArray[np.uint8]


class RoundResult(NamedTuple):
    """What is kept of one execution: pulls per arm (K,), the digest of the sequence, and the watched rounds' arms."""

    pulls: IntArray
    digest: str
    watched: IntArray


class RoundExecution(ABC):
    """One execution of a policy that chooses round by round, played in pieces, with a digest of its arms."""

    def __init__(self, run: Run, side: int, pair: int) -> None:
        arms = len(run.environment.means)
        self._reward = run.environment.round_kernel()
        self._law = run.environment.round_parameters()
        self._noise_key = round_keys(run.noise_seed, side, pair, 1)[0]
        self._hasher = start_digest(SEQUENCE)
        self._run = np.array([-1, 0], dtype=np.int64)  # the run that is not finished yet: arm, length
        self._encoded: ByteBuffer = np.empty(ROUNDS_PER_CHUNK * 4 + 16, dtype=np.uint8)
        self.pulls: IntArray = np.zeros(arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(arms, dtype=np.float64)
        self.played = 0

    @abstractmethod
    def _play(self, arms: ArmBuffer) -> None:
        """Play as many rounds as `arms` has room for, and add what they did to `pulls` and `sums`."""

    def advance(self, arms: ArmBuffer) -> None:
        """Play as many rounds as `arms` has room for; write their arms into it, and add them to the digest."""
        self._play(arms)
        self.played += arms.size
        size = _encode_runs(arms, self._run, self._encoded)
        self._hasher.update(self._encoded[:size].data)

    def digest(self) -> str:
        """Return the sha256 of the finished sequence; it does not depend on the pieces in which it was played."""
        size = _encode_runs(np.array([_END], dtype=np.uint16), self._run.copy(), self._encoded)
        finished = self._hasher.copy()
        finished.update(self._encoded[:size].data)
        return finished.hexdigest()


class CompiledExecution(RoundExecution):
    """One execution of a baseline, in compiled code."""

    def __init__(self, run: Run, policy: RoundPolicy, side: int, pair: int) -> None:
        super().__init__(run, side, pair)
        arms = len(run.environment.means)
        self._choose = policy.kernel()
        self._parameters = policy.parameters(arms, run.horizon)
        self._coin_key = Coins(run.seed, pair).words("rounds", 0)[0]
        averages, shares = (np.zeros(arms, dtype=np.float64) for _ in range(2))
        numbers = policy.memory(arms) if isinstance(policy, Remembering) else arms
        memory: FloatArray = np.zeros(numbers, dtype=np.float64)
        self._record: Record = (self.pulls, self.sums, averages, shares, memory)

    def _play(self, arms: ArmBuffer) -> None:
        """Play as many rounds as `arms` has room for, and add what they did to `pulls` and `sums`."""
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


@dataclass(frozen=True)
class RoundByRound(ABC):
    """The base of players whose policies choose round by round; each says how one execution is made."""

    run: Run

    unit: ClassVar[Unit] = "round"
    block_size: ClassVar[int] = PAIRS_PER_ROUND_BLOCK

    def play_block(self, start: int, keep: int) -> PairCounts:
        """Play pairs `start` to `start + keep - 1`, and return their counts."""
        means = self.run.environment.means
        diverged = np.zeros(keep, dtype=np.int64)
        pulls = np.zeros((2, keep, len(means)), dtype=np.int64)
        for row in range(keep):
            diverged[row], sides = self.play_pair(start + row)
            pulls[0, row], pulls[1, row] = sides[0].pulls, sides[1].pulls
        return PairCounts.of(diverged, diverged, (pseudo_regret(pulls[0], means), pseudo_regret(pulls[1], means)), keep)

    def play_pair(self, pair: int, watch: IntArray | None = None) -> tuple[int, tuple[RoundResult, RoundResult]]:
        """Play one pair, and return the round (from 1) of its first divergence, 0 if none, and both sides' results.

        `watch` names rounds (counted from 0, ascending) whose arms are wanted for a picture.
        """
        horizon = self.run.horizon
        sides = self.execution(0, pair), self.execution(1, pair)
        watched: tuple[list[int], list[int]] = ([], [])
        rounds = np.zeros(0, dtype=np.int64) if watch is None else watch
        diverged = 0
        while (played := sides[0].played) < horizon:
            size = min(ROUNDS_PER_CHUNK, horizon - played)
            buffers = np.empty((2, size), dtype=np.uint16)
            seen = rounds[(rounds >= played) & (rounds < played + size)] - played
            for side, arms, kept in zip(sides, buffers, watched, strict=True):
                side.advance(arms)
                kept += arms[seen].tolist()
            if not diverged:
                first = _first_difference(buffers[0], buffers[1])
                diverged = played + first + 1 if first < size else 0
        first_side, second_side = (
            RoundResult(side.pulls, side.digest(), np.array(kept, dtype=np.int64))
            for side, kept in zip(sides, watched, strict=True)
        )
        return diverged, (first_side, second_side)

    @abstractmethod
    def execution(self, side: int, pair: int) -> RoundExecution:
        """Return one side of a pair, to be played in pieces."""

    def watch(self, pair: int, rounds: IntArray) -> tuple[Watched, Watched]:
        """Play one pair, and return what both sides did in these rounds."""
        _, sides = self.play_pair(pair, rounds)
        first, second = (Watched(side.watched, side.digest, len(side.pulls)) for side in sides)
        return first, second

    def regrets_at(self, pairs: int, pulls: IntArray) -> FloatArray:
        """Return the regret of the first pairs' executions after each of `pulls`; shape (executions, N)."""
        rows = []
        for pair in range(min(pairs, MOST_PAIRS_OF_A_CURVE)):
            for side in (0, 1):
                execution = self.execution(side, pair)
                counts = []
                for target in pulls.tolist():
                    while execution.played < target:
                        size = min(ROUNDS_PER_CHUNK, target - execution.played)
                        execution.advance(np.empty(size, dtype=np.uint16))
                    counts.append(execution.pulls.copy())
                rows.append(pseudo_regret(np.array(counts), self.run.environment.means))
        return np.array(rows)

    def follow(self, coins: Coins, noise: Noise) -> Followed:
        """Refuse: a policy that chooses round by round has no batches to follow."""
        raise self._no_batches()

    def count_differing(self, group: int, size: int) -> int:
        """Refuse: searches look at policies that work in batches."""
        raise self._no_batches()

    def _no_batches(self) -> InvalidArgument:
        return InvalidArgument("policy", self.run.policy.name, "a policy that works in batches")


@dataclass(frozen=True)
class RoundPlayer(RoundByRound):
    """Plays a policy that chooses round by round, in compiled code."""

    policy: RoundPolicy

    def execution(self, side: int, pair: int) -> CompiledExecution:
        """Return one side of a pair, to be played in pieces."""
        return CompiledExecution(self.run, self.policy, side, pair)


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
    """Play rounds in compiled code: choose, draw, add up; the arms go into `arms`, the sums into `record`."""
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
    """Write the runs that end within `arms` into `out`, as LEB128 pairs (arm, length); return the bytes written.

    `run` carries the run that is still open.
    """
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
