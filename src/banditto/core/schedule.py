"""Schedule: the resolved batches of a policy that tests totals against random cuts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer
from banditto.core.protocol import Plain, fraction, from_fraction

MOST_BATCHES = 200
LARGEST_BLOWUP = 10**700  # K^2 / rho^2 for the smallest float


class Batch(NamedTuple):
    """A test after `samples` pulls of each active arm, of which `pulls` are new; the cut is low + coin * span."""

    pulls: int
    samples: int
    low: float
    span: float


class Schedule(NamedTuple):
    """The constants that decide: the blow-up of the sample sizes and the batches that it leaves room for."""

    blowup: int
    batches: tuple[Batch, ...]

    def batch(self, number: int) -> Batch:
        """Return batch `number`, counted from 1; past the last one, a batch that pulls nothing."""
        return self.batches[number - 1] if number <= len(self.batches) else Batch(0, 0, 0.0, 0.0)

    def to_plain(self) -> Mapping[str, Plain]:
        """Return the schedule as a protocol holds it: integers, and cuts as exact binary fractions."""
        rows: list[Mapping[str, Plain]] = [
            {"pulls": batch.pulls, "low": fraction(batch.low), "span": fraction(batch.span)} for batch in self.batches
        ]
        return {"blowup": self.blowup, "batches": tuple(rows)}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], horizon: int) -> Schedule:
        """Return the schedule that `to_plain` wrote, or refuse content that it could not have written."""
        rows = content.get("batches")
        if set(content) != {"blowup", "batches"} or not isinstance(rows, tuple) or len(rows) > MOST_BATCHES:
            raise InvalidArgument("resolved", list(content), f"a blow-up and at most {MOST_BATCHES} batches")
        blowup = integer(content["blowup"], "blowup", 1, LARGEST_BLOWUP)
        for row in rows:
            if not isinstance(row, Mapping) or set(row) != {"pulls", "low", "span"}:
                raise InvalidArgument("batches", row, "tables with pulls, low and span")
        pulls = [integer(row["pulls"], "pulls", 1, horizon) for row in rows]
        cuts = [(from_fraction(row["low"], "low"), from_fraction(row["span"], "span")) for row in rows]
        for low, span in cuts:
            if low < 0.0 or span <= 0.0:
                raise InvalidArgument("batches", (low, span), "cuts with low >= 0 and span > 0")
        batches = (Batch(n, total, *cut) for n, total, cut in zip(pulls, accumulate(pulls), cuts, strict=True))
        return cls(blowup, tuple(batches))
