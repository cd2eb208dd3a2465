"""Small experiments, and what the simulator says about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from io import BytesIO
from typing import Any

import numpy as np

import banditto as bd
from banditto.chance.coins import Coins, philox_words
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.engine.batched import Execution
from banditto.live.experiment import Experiment
from banditto.live.export import export
from banditto.live.registration import Registration, registered
from banditto.policies.policy import Policy
from banditto.service.client import RemoteExperiment

Reward = Callable[[int, int], float]  # of a batch and a position in it


def registration_of(policy: Policy[Any], seed: int = 7, **options: Any) -> Registration:
    protocol = policy.protocol(seed=seed)
    return registered(protocol, **options)


def small_policy(horizon: int = 100) -> bd.RandomThreshold:
    """Batches of (6, 6), (20, 20) and what is left; rewards that differ by a quarter decide it early."""
    return bd.RandomThreshold(arms=2, horizon=horizon, rho=0.9, sigma=0.1, rewards="gaussian")


def small(**options: Any) -> Registration:
    return registration_of(small_policy(), **({"rewards": (0.0, 1.0)} | options))


def hashed_reward(batch: int, position: int) -> float:
    """A number from 0 to 1 that looks random and is the same for everybody."""
    return ((batch * 1_000_003 + position * 7919 + 12345) * 2_654_435_761 % 2**32) / 2**32


# -- the simulator ----------------------------------------------------------------------------------------------------


class Recorded(bd.Bernoulli):
    """An environment that pays what was told: totals of batch 1, 2, ...; nothing afterwards."""

    def __init__(self, totals: Sequence[Sequence[float]], arms: int) -> None:
        super().__init__([0.5] * arms)
        object.__setattr__(self, "told", [np.array([row], dtype=np.float64) for row in totals])

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        told: list[FloatArray] = vars(self)["told"]
        return told.pop(0) if told else np.zeros(pulls.shape)


def simulated_plans(policy: Policy[Any], seed: int, totals: Sequence[Sequence[float]]) -> list[tuple[int, ...]]:
    """The plans of the batches with these totals and of the one after them, if there is one."""
    execution = Execution(policy, Recorded(totals, policy.arms), Coins(seed), Noise(1, 0, 0))
    plans: list[tuple[int, ...]] = []
    while len(plans) <= len(totals):
        plan = execution.advance()
        if plan is None:
            break
        plans.append(tuple(int(count) for count in plan[0]))
    return plans


def walked_order(seed: int, batch: int, pulls: Sequence[int], most: int | None = None) -> list[int]:
    """The arms of a batch's (first) slots, block after block: the slow way, straight from the rule."""
    playing = [arm for arm, count in enumerate(pulls) if count]
    length = sum(pulls)
    blocks = max(min(pulls[arm] for arm in playing), -(-length // (32 * len(playing))))
    arms: list[int] = []
    for block in range(blocks):
        if most is not None and len(arms) >= most:
            return arms[:most]
        share = [a for a in playing for _ in range((block + 1) * pulls[a] // blocks - block * pulls[a] // blocks)]
        words = philox_words(Coins(seed).key("order", batch, block), 0, len(share)).tolist()
        arms += [arm for _, _, arm in sorted(zip(words, range(len(share)), share, strict=True))]
    return arms


def walked_mixed_order(seed: int, batch: int, pulls: Sequence[int]) -> list[int]:
    """The arms of a batch's slots by rule 2, block after block: the slow way, straight from the rule."""
    playing = [arm for arm, count in enumerate(pulls) if count]
    length = sum(pulls)
    portions = max(min(pulls[arm] for arm in playing), -(-length // (32 * len(playing))))
    stretch = max(4, 4096 // (length // portions))
    arms: list[int] = []
    for number, first in enumerate(range(0, portions, stretch)):
        last = min(first + stretch, portions)
        lengths = (2 + int(word) % 3 for word in philox_words(Coins(seed).key("order-lengths", batch, number), 0, 4096))
        all_slots = sum(last * pulls[a] // portions - first * pulls[a] // portions for a in playing)
        words = iter(philox_words(Coins(seed).key("order-places", batch, number), 0, all_slots).tolist())
        while first < last:
            end = min(first + next(lengths), last)
            share = [
                arm
                for portion in range(first, end)
                for arm in playing
                for _ in range((portion + 1) * pulls[arm] // portions - portion * pulls[arm] // portions)
            ]
            keys = [(next(words) >> 12, place, arm) for place, arm in enumerate(share)]
            arms += [arm for _, _, arm in sorted(keys)]
            first = end
    return arms


def simulated_arms(
    policy: Policy[Any], seed: int, reward: Reward, until: tuple[int, int] | None = None
) -> list[list[int]]:
    """The arms of every batch, slot by slot, if each slot pays `reward`; up to a batch and so many slots in it."""
    totals: list[list[float]] = []
    sequence: list[list[int]] = []
    while len(plans := simulated_plans(policy, seed, totals)) > len(totals):
        last = until is not None and until[0] == len(plans)
        slots = walked_mixed_order(seed, len(plans), plans[-1])
        sequence.append(slots[: until[1]] if until and last else slots)
        if last:
            break
        sums = [Fraction(0)] * policy.arms
        for position, arm in enumerate(sequence[-1]):
            sums[arm] += Fraction(reward(len(plans), position))
        totals.append([float(total) for total in sums])
    return sequence


def exported(url: str, name: str, kind: str) -> bytes:
    """What an export writes."""
    with BytesIO() as out:
        export(url, name, kind, out)
        return out.getvalue()


# -- live runs --------------------------------------------------------------------------------------------------------


def place(ticket: str) -> tuple[int, int]:
    """Batch and position of a ticket's id."""
    batch, number, *_ = (int(part) for part in ticket.rpartition(".")[2].split("-"))
    return batch, number - 1


def finish(
    experiment: Experiment | RemoteExperiment, reward: Reward = hashed_reward, block: int = 1000
) -> dict[tuple[int, int], int]:
    """Ask and tell until the end; tickets that are out are told first. The arms of the slots that were asked for."""
    arms: dict[tuple[int, int], int] = {}
    while True:
        waiting = experiment.pending(most=10_000)
        if waiting:
            experiment.tell_many([(ticket.id, reward(*place(ticket.id))) for ticket in waiting])
        answer = experiment.ask(block)
        if answer.state in ("finished", "stopped"):
            return arms
        arms |= {place(ticket.id): ticket.arm for ticket in answer}
