"""One side of a pair, played once more with its rewards kept: what `analyse` learns from a simulated execution."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from banditto.chance.coins import Coins
from banditto.chance.noise import Noise
from banditto.core.arrays import FloatArray
from banditto.core.errors import InvalidArgument
from banditto.engine.batched import BatchedPlayer, Execution
from banditto.engine.choosing import chosen_by
from banditto.engine.observations import Observations, SeenBatch
from banditto.engine.player import Run, player_of
from banditto.policies.policy import own_level

_ROUNDS = 16_384
_BEYOND = 2**48  # blocks that no run comes to: noise of its own for pulls after a commit
_ZERO_OR_ONE = ("bernoulli", "linear-bernoulli")  # environments whose rewards are nothing else


@dataclass(frozen=True)
class WatchedExecution:
    """One side of a pair that `watch_pair` looked at; `observations` plays it again and keeps what it paid."""

    run: Run
    pair: int
    side: int

    def observations(self) -> Observations:
        """Return pulls and totals batch by batch, as `certify` sees them; totals after a commit are drawn for this."""
        player = player_of(self.run)
        return self._observed(self._by_batches(player) if isinstance(player, BatchedPlayer) else [self._by_rounds()])

    def _observed(self, batches: list[SeenBatch]) -> Observations:
        """Return these batches as observations, with the winner and what decided it."""
        run = self.run
        arms = len(run.environment.means)
        played = [arm for arm, pulls in enumerate(batches[-1].counts) if pulls]
        winner = played[0] if len(batches) > 1 and len(played) == 1 else None
        seen = [(batch.counts, batch.totals) for batch in batches]
        bounded = run.environment.rewards.kind == "bounded"
        if own_level(run.policy) == "winner":
            batches = batches[:-1]  # the rest of the horizon is no experiment
        return Observations(
            names=tuple(str(arm) for arm in range(arms)),
            policy=run.policy,
            horizon=run.horizon,
            rewards=run.environment.rewards,
            batches=tuple(batches),
            pulls=tuple(sum(batch.counts[arm] for batch in batches) for arm in range(arms)),
            ends=(0.0, 1.0) if bounded else None,
            binary=run.environment.name in _ZERO_OR_ONE,
            winner=winner,
            decided_by=None if winner is None else chosen_by(run.policy, seen, Coins(run.seed, self.pair, 1)),
            state="finished",
        )

    def _by_batches(self, player: BatchedPlayer) -> list[SeenBatch]:
        """Play the side again batch by batch, and return pulls and totals of each batch."""
        block, row = divmod(self.pair, player.block_size)
        run = self.run
        if run.backend != "numpy":
            raise InvalidArgument("source", f"an execution on {run.backend}", "one that was played on this machine")
        coins = Coins(run.seed, block * player.block_size, player.block_size)
        execution = _Keeping(player.policy, run.environment, coins, Noise(run.noise_seed, self.side, block))
        batches: list[SeenBatch] = []
        spent = 0
        for _ in count():
            plan = execution.advance()
            if plan is None:
                raise AssertionError("an execution ends with its last pull")
            counts = plan[row : row + 1]
            spent += int(counts.sum())
            if spent >= run.horizon:  # what ends the horizon decides nothing and was not drawn; here it is wanted
                fresh = run.environment.draw(counts, Noise(run.noise_seed, self.side, _BEYOND + self.pair))
                batches.append(_batch(counts[0].tolist(), fresh[0].tolist()))
                return batches
            batches.append(_batch(counts[0].tolist(), execution.totals[row].tolist()))
        raise AssertionError("unreachable: `count` does not end")

    def _by_rounds(self) -> SeenBatch:
        """Play the side again round by round, and return all pulls and totals as a single batch."""
        from banditto.engine.rounds import RoundByRound  # compiled code is loaded only where it is used

        player = player_of(self.run)
        assert isinstance(player, RoundByRound)
        execution = player.execution(self.side, self.pair)
        while execution.played < self.run.horizon:
            execution.advance(np.empty(min(_ROUNDS, self.run.horizon - execution.played), dtype=np.uint16))
        return _batch(execution.pulls.tolist(), execution.sums.tolist())


class _Keeping(Execution):
    """Executions that keep the totals of their last batch."""

    totals: FloatArray

    def _decide(self, totals: FloatArray) -> None:
        self.totals = totals
        super()._decide(totals)


def _batch(counts: list[int], totals: list[float]) -> SeenBatch:
    return SeenBatch(
        tuple(counts), tuple(total if pulls else 0.0 for pulls, total in zip(counts, totals, strict=True)), None
    )
