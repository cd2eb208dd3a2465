"""Executions of policies in plain Python: their `select` and `update` are called in every round.

Coins come from a generator that is put in its place each round (`chance/round_coins.py`). Rewards are drawn one by one;
they are those that a compiled policy would get in the same round of the same execution.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from banditto.chance.noise import SIDES
from banditto.chance.round_coins import RoundCoins
from banditto.core.errors import ContractError, shown
from banditto.engine.player import Run
from banditto.engine.rounds import ArmBuffer, RoundByRound, RoundExecution
from banditto.policies.plain_policy import PlainPolicy


class PlainExecution(RoundExecution):
    """One execution of a policy in plain Python; if `mirrored`, each arm pays what the one opposite would pay."""

    def __init__(self, run: Run, policy: PlainPolicy, side: int, pair: int, *, mirrored: bool = False) -> None:
        super().__init__(run, side, pair)
        self._name = policy.name
        self._where = f"pair {pair}, {SIDES[side]} execution"
        self._chooser = policy.begin()
        self._coins = RoundCoins(run.seed, pair)
        if mirrored:
            self._law = np.ascontiguousarray(self._law[::-1])

    def _play(self, arms: ArmBuffer) -> None:
        """Play as many rounds as `arms` has room for, and add what they did to `pulls` and `sums`."""
        select, update, move = self._chooser.select, self._chooser.update, self._coins.move_to
        generator, pay, law, key = self._coins.generator, self._reward, self._law, self._noise_key
        pulls, sums = self.pulls.tolist(), self.sums.tolist()
        count = len(pulls)
        for place in range(arms.size):
            time = self.played + place
            move(time)
            try:
                arm = select(time, generator)
            except Exception as error:
                raise self._failed("select", time, error) from error
            if type(arm) is not int or not 0 <= arm < count:
                arm = self._checked(arm, time, count)
            reward = float(pay(arm, law, key, time))
            try:
                update(arm, reward)
            except Exception as error:
                raise self._failed("update", time, error) from error
            pulls[arm] += 1
            sums[arm] += reward
            arms[place] = arm
        self.pulls[:], self.sums[:] = pulls, sums

    def _checked(self, arm: Any, time: int, count: int) -> int:
        """Return the arm as an int, or refuse it: NumPy's integers are allowed, truth values and 1.0 are not."""
        try:
            number = -1 if isinstance(arm, bool | np.bool_) else index(arm)
        except TypeError:
            number = -1
        if not 0 <= number < count:
            given = "nothing" if arm is None else shown(arm)
            allowed = f"allowed: an integer from 0 to {count - 1}"
            raise ContractError(f"{self._name}: select returned {given} at t = {time} ({self._where}), {allowed}")
        return number

    def _failed(self, method: str, time: int, error: Exception) -> ContractError:
        """Return an error that says in one line where the user's code failed; the caller chains the original error."""
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return ContractError(f"{self._name}: {method} failed at t = {time} ({self._where}): {shown(said)}")


@dataclass(frozen=True)
class PlainPlayer(RoundByRound):
    """Plays a policy in plain Python, round by round."""

    policy: PlainPolicy

    def execution(self, side: int, pair: int) -> PlainExecution:
        """Return one side of a pair, with an object or a state of its own, to be played in pieces."""
        return PlainExecution(self.run, self.policy, side, pair)
