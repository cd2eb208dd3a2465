"""Rewards with finitely many values in [0, 1]. Totals come from multinomial counts, drawn exactly.

A file (TOML or JSON) lists the arms in order:

    [[arms]]
    values = [0, 0.5, 1]
    probabilities = [0.2, 0.3, 0.5]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray, IntArray
from banditto.core.errors import InvalidArgument
from banditto.core.exact import Real, integer, real
from banditto.core.horizons import FEWEST_ARMS, LONGEST_HORIZON, MOST_ARMS
from banditto.core.input_files import MIB, Unreadable, parsed_json, parsed_toml, read_text
from banditto.core.rewards import Rewards, checked_means
from banditto.core.tabular import items_in
from banditto.problems.environment import RewardKernel

MOST_VALUES = 1000
_FORMAT = "arms with values from 0 to 1 and as many probabilities, which add up to 1"


@dataclass(frozen=True)
class Discrete:
    """Arms whose rewards have finitely many values in [0, 1].

    Args:
        arms: For each arm a pair (values, probabilities): as many of either, 1 to 1,000; probabilities add up to 1.

    Examples:
        >>> Discrete([([0, 0.5, 1], [0.25, 0.5, 0.25]), ([0, 1], [0.75, 0.25])]).means
        (0.5, 0.25)
    """

    values: tuple[tuple[float, ...], ...]
    probabilities: tuple[tuple[float, ...], ...]

    name: ClassVar[str] = "discrete"
    rewards: ClassVar[Rewards] = Rewards("bounded", 0.5)
    largest_count: ClassVar[int] = LONGEST_HORIZON

    def __init__(self, arms: Iterable[tuple[Sequence[Real], Sequence[Real]]]) -> None:
        checked = [_checked_arm(arm) for arm in items_in(arms, "arms", "pairs (values, probabilities)")]
        if not FEWEST_ARMS <= len(checked) <= MOST_ARMS:
            raise InvalidArgument("arms", f"{len(checked)} of them", f"{FEWEST_ARMS} to {MOST_ARMS} arms")
        object.__setattr__(self, "values", tuple(values for values, _ in checked))
        object.__setattr__(self, "probabilities", tuple(probabilities for _, probabilities in checked))

    @classmethod
    def from_means(cls, means: Iterable[Real], levels: int = 5) -> Discrete:
        """Return arms with `levels` equally spaced values and the probabilities of a binomial: a rating scale."""
        most = integer(levels, "levels", 2, MOST_VALUES) - 1
        values = [k / most for k in range(most + 1)]
        arms = checked_means(means, 0.0, 1.0, "numbers from 0 to 1")
        return cls(
            [(values, [math.comb(most, k) * p**k * (1 - p) ** (most - k) for k in range(most + 1)]) for p in arms]
        )

    @classmethod
    def load(cls, path: str) -> Discrete:
        """Read a TOML or JSON file of arms, and return them."""
        try:
            text = read_text(path, 16 * MIB)
        except Unreadable as error:
            raise InvalidArgument("environment", f"discrete:{path}", f"a file that can be read ({error})") from None
        try:
            content: Any = parsed_json(text) if path.endswith(".json") else parsed_toml(text)
        except ValueError as error:
            raise InvalidArgument("environment", f"discrete:{path}", f"a TOML or JSON file ({error})") from None
        rows = content.get("arms") if isinstance(content, dict) and set(content) == {"arms"} else None
        fields = {"values", "probabilities"}
        if not isinstance(rows, list) or not all(isinstance(row, dict) and set(row) == fields for row in rows):
            raise InvalidArgument("environment", f"discrete:{path}", f"a file of {_FORMAT}")
        return cls([(row["values"], row["probabilities"]) for row in rows])

    @property
    def means(self) -> tuple[float, ...]:
        """The expected reward of each arm."""
        return tuple(math.fsum(v * p for v, p in zip(*arm, strict=True)) for arm in self._arms())

    @property
    def variances(self) -> tuple[float, ...]:
        """The variance of one reward of each arm."""
        return tuple(
            math.fsum((v - mean) ** 2 * p for v, p in zip(*arm, strict=True))
            for mean, arm in zip(self.means, self._arms(), strict=True)
        )

    def _arms(self) -> Iterable[tuple[tuple[float, ...], tuple[float, ...]]]:
        return zip(self.values, self.probabilities, strict=True)

    def draw(self, pulls: IntArray, noise: Noise) -> FloatArray:
        """Return totals of the pulls (replicate, arm): values times multinomial counts, added up in their order."""

        return noise.discrete_totals(pulls, self.values, self.probabilities)

    def round_kernel(self) -> RewardKernel:
        """Return the compiled function that draws a single reward, by the cumulative probabilities."""
        from banditto.problems.environments import single_rewards  # compiled code is loaded only where it is used

        return single_rewards.discrete

    def round_parameters(self) -> FloatArray:
        """Return the numbers that the kernel reads: (cumulative probability, value) pairs.

        The last pair is repeated up to the longest arm's length.
        """
        longest = max(len(values) for values in self.values)
        law = np.empty((len(self.values), longest, 2), dtype=np.float64)
        for row, (values, probabilities) in zip(law, self._arms(), strict=True):
            row[: len(values), 0] = np.cumsum(probabilities)
            row[: len(values), 1] = values
            row[len(values) :] = (1.0, values[-1])
        return law.reshape(len(self.values), 2 * longest)

    def to_dict(self) -> dict[str, Any]:
        """Return name, means and arms as plain data."""
        arms = [{"values": list(v), "probabilities": list(p)} for v, p in self._arms()]
        return {"name": self.name, "means": list(self.means), "arms": arms}


def _checked_arm(arm: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return an arm's values and probabilities as floats, or refuse them: as many of either, adding up to 1."""
    pair = isinstance(arm, Sequence) and len(arm) == 2
    if not pair or not all(isinstance(part, Sequence) and not isinstance(part, str) for part in arm):
        raise InvalidArgument("arms", arm, "pairs (values, probabilities)")
    values = tuple(real(value, "values", "numbers from 0 to 1") for value in arm[0])
    probabilities = tuple(real(p, "probabilities", "numbers from 0 to 1 that add up to 1") for p in arm[1])
    if not 1 <= len(values) <= MOST_VALUES or len(values) != len(probabilities):
        given = f"{len(values)} values and {len(probabilities)} probabilities"
        raise InvalidArgument("values", given, f"as many of either, 1 to {MOST_VALUES}")
    for value in values:
        if not 0.0 <= value <= 1.0:
            raise InvalidArgument("values", value, "numbers from 0 to 1")
    if min(probabilities) < 0.0 or abs(math.fsum(probabilities) - 1.0) > 1e-9:
        raise InvalidArgument("probabilities", math.fsum(probabilities), "numbers from 0 to 1 that add up to 1")
    total = math.fsum(probabilities)
    return values, tuple(p / total for p in probabilities)
