"""G-optimal design: which arms to pull, and how often, so that every arm's value is learnt equally well.

Paper    Esfandiari et al. 2023, Lemmas 5, 7 and 8, Appendices F.1 and G.
Symbols  pi: design, V(pi): sum pi(a) a a', g(pi): max over all actions of a' V(pi)^-1 a, d: dimension of their span
Departs  - pi consists of integer counts. They are rounded up from 64 |C| / accuracy parts, which costs a factor of at
           most 1 + accuracy / 64 in g: no weight shrinks by more, hence V does not, hence V^-1 grows by no more.
         - g is an upper bound for those very counts, not an estimate for the weights before rounding.
         - Effective support (Lemma 8) is the mixture (pi + uniform on the core set) / 2: V is at least V(pi) / 2, so
           g at most doubles, and every mass is at least 1 / (2 |C|).
         - Actions that do not span are designed for inside their span, in as many of their features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

from typing_extensions import TypedDict

from banditto.core.digest import digest_of
from banditto.core.errors import InvalidArgument
from banditto.core.exact import Count, Real, integer, real
from banditto.core.json_types import AboveZero, Amount, Digest, Keywords, Natural, Positive
from banditto.core.results import Result, TablePart

MOST_PULLS = 10**18
COARSEST, FINEST = 1000.0, 1e-8

# g for the core set with other counts
Certify = Callable[[Sequence[int]], float]


class Allocation(NamedTuple):
    """How often to pull each action of the core set, in whole numbers."""

    pulls: tuple[int, ...]
    digest: str

    @property
    def total(self) -> int:
        """The number of pulls of all actions together."""
        return sum(self.pulls)


class DesignContent(TypedDict):
    """A `Design` as plain data."""

    arms: Annotated[
        Annotated[list[Natural], Keywords(minItems=1)] | None,
        Keywords(
            description="The numbers of the core set's arms, from 0, in the order of the file; null for an action set."
        ),
    ]
    actions: Annotated[
        list[Annotated[list[float], Keywords(minItems=1)]],
        Keywords(minItems=1, description="The core set's features, rounded as they were used."),
    ]
    weights: Annotated[list[Annotated[float, Keywords(exclusiveMinimum=0, maximum=1)]], Keywords(minItems=1)]
    counts: Annotated[
        list[Positive],
        Keywords(minItems=1, description="The weights as whole numbers: weight = count / sum of counts."),
    ]
    support: Positive
    dimension: Positive
    features: Annotated[list[Natural], Keywords(minItems=1)]
    residual: Amount
    g: AboveZero
    g_over_d: AboveZero
    accuracy: AboveZero
    target_met: bool
    iterations: Natural
    maximisations: Natural
    digest: Digest


@dataclass(frozen=True, kw_only=True, repr=False)
class Design(Result):
    """A design by integer counts, with a certified g (Lemmas 5 and 7; `effective` is Lemma 8).

    `g_optimal_design` makes it.

    Args:
        arms: The numbers of the core set's actions; None for infinite sets.
        actions: The features of the core set's actions, rounded as they were used.
        counts: The weight of each, in whole numbers.
        g: An upper bound on `a' V^-1 a` for all actions a, V being that of the counts.
        accuracy: How far above its optimum d, relatively, g was allowed to be.
        features: Those in which the design was made: all of them unless the actions do not span.
        residual: How far, in units of its size, any action lies off the span.
        iterations: Steps of the search for the weights.
        maximisations: How often an infinite set was maximised over. Default 0.
        actions_digest: sha256 of all actions.
        certify: The function from other counts to their g.

    Examples:
        >>> from banditto import g_optimal_design
        >>> design = g_optimal_design([[1, 0], [0, 1], [0.6, 0.6], [0.3, -0.4]])
        >>> design.weights, design.support, design.target_met
        ((0.5, 0.5), 2, True)
    """

    arms: tuple[int, ...] | None
    actions: tuple[tuple[float, ...], ...] = field(repr=False)
    counts: tuple[int, ...]
    g: float
    accuracy: float
    features: tuple[int, ...]
    residual: float
    iterations: int
    maximisations: int = 0
    actions_digest: str = field(repr=False)
    certify: Certify = field(repr=False, compare=False)

    _picture = "design_picture:weights_figure"
    _named = ("support", "dimension", "g_over_d", "target_met")

    @property
    def dimension(self) -> int:
        """The dimension of the actions' span."""
        return len(self.features)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight of each action of the core set; they add up to 1."""
        total = sum(self.counts)
        return tuple(count / total for count in self.counts)

    @property
    def support(self) -> int:
        """The size of the core set."""
        return len(self.counts)

    @property
    def g_over_d(self) -> float:
        """g / d, which is 1 for an optimal design (Kiefer and Wolfowitz)."""
        return self.g / self.dimension

    @property
    def target_met(self) -> bool:
        """Whether `g <= (1 + accuracy) d` is certified."""
        return self.g <= (1.0 + self.accuracy) * self.dimension

    @cached_property  # every plan of this design asks for it
    def digest(self) -> str:
        """The sha256 of the actions, the core set and the counts, in hexadecimal."""
        core: Any = [[value.hex() for value in action] for action in self.actions] if self.arms is None else self.arms
        content = {"actions": self.actions_digest, "core": core, "counts": self.counts, "schema": 1}
        return digest_of(content)

    def plan(self, pulls: Count) -> Allocation:
        """Return at least `pulls` pulls in the proportions of the design: every share is rounded up."""
        wanted, total = integer(pulls, "pulls", 1, MOST_PULLS), sum(self.counts)
        each = tuple(-(-wanted * count // total) for count in self.counts)
        return Allocation(each, digest_of({"design": self.digest, "pulls": each}))

    def effective(self) -> Design:
        """Return the design with half of its mass spread evenly over the core set.

        No arm has less than `1 / (2 |C|)`, and g at most doubles.
        """
        total = sum(self.counts)
        counts = tuple(count * self.support + total for count in self.counts)
        return replace(self, counts=counts, g=min(self.certify(counts), 2.0 * self.g))

    def to_dict(self) -> DesignContent:
        """Return what `banditto design --json` prints of the design.

        The actions are represented by `digest`, which is made of `actions_digest` and the core set; `certify`, a
        function, is left out.
        """
        return {
            "arms": None if self.arms is None else list(self.arms),
            "actions": [list(action) for action in self.actions],
            "weights": list(self.weights),
            "counts": list(self.counts),
            "support": self.support,
            "dimension": self.dimension,
            "features": list(self.features),
            "residual": self.residual,
            "g": self.g,
            "g_over_d": self.g_over_d,
            "accuracy": self.accuracy,
            "target_met": self.target_met,
            "iterations": self.iterations,
            "maximisations": self.maximisations,
            "digest": self.digest,
        }

    def header(self, pulls: Sequence[int] | None = None) -> tuple[str, ...]:
        """Return the columns of `rows`."""
        return ("action" if self.arms is None else "arm", "weight", *(() if pulls is None else ("pulls",)), "features")

    def rows(self, pulls: Sequence[int] | None = None) -> list[tuple[str, ...]]:
        """Return the core set for people, with the pulls of a plan if they are given."""
        names = range(self.support) if self.arms is None else self.arms
        features = [" ".join(f"{value:>10.4g}" for value in action) for action in self.actions]
        counts = [()] * self.support if pulls is None else [(f"{count:,}",) for count in pulls]
        cells = zip(names, self.weights, counts, features, strict=True)
        return [(str(name), f"{weight:.6f}", *count, values) for name, weight, count, values in cells]

    def _parts(self) -> list[TablePart]:
        return [TablePart(self.header(), self.rows(), "rrl")]

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each action of the core set: its number, its weight and its features."""
        names = range(self.support) if self.arms is None else self.arms
        return [
            {"action" if self.arms is None else "arm": name, "weight": weight}
            | {f"feature {number}": value for number, value in enumerate(action, 1)}
            for name, weight, action in zip(names, self.weights, self.actions, strict=True)
        ]


def counts_of(weights: Sequence[float], accuracy: float) -> tuple[int, ...]:
    """Return weights as whole parts of a power of two, rounded up; an even share has 64 parts or more."""
    mantissa, exponent = math.frexp(64 * len(weights) / min(accuracy, 1.0))
    bits = exponent - (mantissa == 0.5)  # log2, rounded up
    return tuple(math.ceil(math.ldexp(weight, bits)) for weight in weights)


def aim(accuracy: float) -> float:
    """Return the accuracy that the weights need so that rounded counts still have `accuracy`."""
    part = min(accuracy, 1.0) / 64
    return ((1.0 + accuracy) / (1.0 + part) - 1.0) * (1.0 - 2.0**-20)


def checked_accuracy(accuracy: Real) -> float:
    """Return the accuracy, which is how far g may be above its optimum d, relatively; or refuse it."""
    number = real(accuracy, "accuracy")
    if not FINEST <= number <= COARSEST:
        raise InvalidArgument("accuracy", accuracy, f"a number from {FINEST} to {COARSEST:g}")
    return number
