"""The choice of one arm by a shared cut: the leader if it leads by more, else the first of a ranking in the window.

`OneCut` makes it after its last batch, and `EarlyCut` at its cap; docs/one-cut.md has the rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from banditto.chance.coins import Coins
from banditto.core.arrays import BoolArray, FloatArray, counted, namespace, within

PIECES = 16  # the window's cut is uniform within each of so many pieces, which are equally probable


class CutChoice(NamedTuple):
    """The rule of choice: the largest cut, the window's knots, and the control, which leads every ranking."""

    arms: int
    width: float
    knots: tuple[float, ...]
    control: int | None

    def cut(self, coins: Coins, address: int, pulls: int, xp: Any) -> Any:
        """Return each replicate's cut for totals of so many pulls, (R, 1): uniform from 0 to the width."""
        return xp.asarray(coins.uniform("cut", address)) * (pulls * self.width)

    def window(self, coins: Coins, address: int, pulls: int, xp: Any) -> Any:
        """Return each replicate's end of the window for totals, (R, 1): uniform in one of 16 equally likely pieces."""
        toss = xp.asarray(coins.uniform("window", address)) * PIECES
        piece = xp.clip(xp.floor(toss), 0.0, PIECES - 1.0)
        edges = xp.asarray(self.knots)
        index = xp.reshape(xp.astype(piece, xp.int64), (-1,))
        low = xp.reshape(xp.take(edges, index), (-1, 1))
        high = xp.reshape(xp.take(edges, index + 1), (-1, 1))
        return pulls * (low + (toss - piece) * (high - low))

    def ranking(self, coins: Coins, address: int, xp: Any) -> Any:
        """Return a shared random number for each arm, (R, K); the largest ranks first, a control before all others."""
        tosses = [xp.asarray(coins.uniform("ranking", address, arm)) for arm in range(self.arms)]
        ranks = xp.concat(tosses, axis=1)
        if self.control is not None:
            ranks = xp.where(xp.arange(self.arms)[None, :] == self.control, xp.asarray(2.0), ranks)
        return ranks

    def first(self, ranks: Any, eligible: Any) -> BoolArray:
        """Return a mask (R, K) of the one eligible arm that ranks first."""
        xp = namespace(ranks)
        shown = xp.where(eligible, ranks, xp.asarray(-1.0))
        found: BoolArray = xp.arange(self.arms)[None, :] == xp.argmax(shown, axis=-1, keepdims=True)
        return found

    def leads(self, totals: FloatArray, pulls: int, coins: Coins, address: int) -> BoolArray:
        """Return where the leader leads by more than the cut, so that the ranking is not needed; (R, 1)."""
        found: BoolArray = counted(within(totals, self.cut(coins, address, pulls, namespace(totals)))) == 1
        return found

    def chosen(self, totals: FloatArray, pulls: int, coins: Coins, address: int) -> BoolArray:
        """Return a mask of one arm: the leader if it leads by more than the cut, else the window's first by rank."""
        xp = namespace(totals)
        near = within(totals, self.cut(coins, address, pulls, xp))  # (R, K)
        # two arms: if neither leads, both are within the window
        inside = within(totals, self.window(coins, address, pulls, xp)) if self.knots else xp.ones_like(near)
        default = self.first(self.ranking(coins, address, xp), inside)
        found: BoolArray = xp.where(counted(near) > 1, default, near)
        return found
