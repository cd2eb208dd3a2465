"""Schedule: the resolved batches of a policy that tests totals against random cuts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from banditto.errors import InvalidArgument
from banditto.exact import integer
from banditto.protocol import Plain, fraction, from_fraction


class Batch(NamedTuple):
    """A test after `samples` pulls of each active arm, `pulls` of them new; the cut is low + coin * span."""

    pulls: int
    samples: int
    low: float
    span: float


class Schedule(NamedTuple):
    """The constants that decide: the blow-up of the sample sizes and the batches that it leaves room for."""

    blowup: int
    batches: tuple[Batch, ...]

    def batch(self, number: int) -> Batch:
        """Batch `number`, counted from 1; past the end one that pulls nothing."""
        return self.batches[number - 1] if number <= len(self.batches) else Batch(0, 0, 0.0, 0.0)

    def to_plain(self) -> Mapping[str, Plain]:
        """For a protocol: integers, and cuts as exact binary fractions."""
        rows: list[Mapping[str, Plain]] = [
            {"pulls": batch.pulls, "low": fraction(batch.low), "span": fraction(batch.span)} for batch in self.batches
        ]
        return {"blowup": self.blowup, "batches": tuple(rows)}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], horizon: int) -> Schedule:
        """Read what `to_plain` wrote."""
        try:
            pulls = [integer(row["pulls"], "pulls", 1, horizon) for row in content["batches"]]
            lows = [from_fraction(row["low"], "low") for row in content["batches"]]
            spans = [from_fraction(row["span"], "span") for row in content["batches"]]
            blowup = integer(content["blowup"], "blowup", 1, 10**40)
        except (KeyError, TypeError) as error:
            raise InvalidArgument("protocol", f"resolved constants without {error}", "a schedule") from None
        rows = zip(pulls, accumulate(pulls), lows, spans, strict=True)
        return cls(blowup, tuple(Batch(*row) for row in rows))
