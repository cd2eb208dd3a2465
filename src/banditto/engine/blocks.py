"""Many blocks on any executor, merged in the order of their numbers.

Results are the same for any executor, any number of workers and any order in which blocks finish. On Ctrl-C no new
block is started, those that workers have under way are finished (this process drops its own), and what is complete from
the first block on is kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from typing import NamedTuple

from banditto.core.errors import WorkerError
from banditto.engine.ledger import Ledger
from banditto.engine.pair_counts import PairCounts
from banditto.engine.player import Player, Run, player_of
from banditto.engine.pool import WORKER_DIED, Parts, Pool, Share, Task, pool_for
from banditto.engine.progress import Progress

logger = logging.getLogger(__name__)


class Outcome(NamedTuple):
    """The counts of all pairs that were played, and whether Ctrl-C ended the run early."""

    counts: PairCounts
    interrupted: bool


def play_blocks(player: Player, parts: Parts) -> Task:
    """Play some blocks, each given by its first pair and how many to keep; a worker is sent this call."""
    began = time.perf_counter()
    blocks = [player.play_block(start, keep) for start, keep in parts]
    return Task(blocks, time.perf_counter() - began)


def run_pairs(
    run: Run,
    pairs: int,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
    ledger: Ledger | None = None,
    settled: Callable[[PairCounts], bool] | None = None,
) -> Outcome:
    """Play the first `pairs` pairs of a run and return their counts; those of the ledger, if it has more.

    Finished blocks are stored in the ledger, and stored blocks are not played again. Once `settled` is true of the
    counts, no further block is counted. It is asked after each block, in order, so that the number of workers does not
    change where a run ends.
    """
    player = player_of(run)
    size = player.block_size
    report = progress or (lambda done, total: None)
    enough = settled or (lambda counts: False)
    there = 0 if ledger is None else ledger.pairs
    if ledger is not None and there and (there >= pairs or enough(ledger.counts)):
        report(there, max(pairs, there))
        return Outcome(ledger.counts, interrupted=False)
    total = -(-pairs // size)
    # One name holds both, so that an interrupt finds a block either counted and passed, or neither.
    counts, following = state = (PairCounts(), 0) if ledger is None else ledger.whole
    waiting: dict[int, Share] = {}
    with pool_for(jobs, executor) as pool:
        try:
            report(counts.pairs, pairs)
            submitted = following
            while following < total and not (counts.pairs > there and enough(counts)):
                while submitted < min(total, following + pool.queued):
                    numbers = range(submitted, submitted + pool.together(total - submitted))
                    parts = [(number * size, min(size, pairs - number * size)) for number in numbers]
                    waiting.update(zip(numbers, pool.submit(play_blocks, player, parts), strict=True))
                    submitted = numbers.stop
                counts, following = state = counts.plus(_kept(waiting[following], following, ledger)), following + 1
                waiting.pop(following - 1, None)
                report(counts.pairs, pairs)
        except KeyboardInterrupt:
            if waiting:
                logger.warning("interrupted: finishing the blocks under way (Ctrl-C again to leave them)")
            counts = _finished(state, waiting, pool, ledger, enough)
            return Outcome(counts if ledger is None else ledger.counts, interrupted=True)
        except BrokenExecutor:
            raise WorkerError(WORKER_DIED) from None
        finally:
            for share in waiting.values():
                share.cancel()
    return Outcome(counts, interrupted=False)


def _kept(share: Share, number: int, ledger: Ledger | None) -> PairCounts:
    """Wait for a block, store it in the ledger if there is one, and return its counts."""
    block = share.result()
    if ledger is not None:
        ledger.append(number, block)
    return block


def _finished(
    state: tuple[PairCounts, int],
    waiting: dict[int, Share],
    pool: Pool,
    ledger: Ledger | None,
    enough: Callable[[PairCounts], bool],
) -> PairCounts:
    """Return the counts before an interrupt, with blocks under way as long as none is missing between them."""
    counts, following = state
    for number in sorted(waiting, reverse=True):  # from the back, so that no free worker starts another one
        waiting[number].cancel()
    try:
        while following in waiting and not (counts.pairs and enough(counts)):
            counts, following = counts.plus(_kept(waiting[following], following, ledger)), following + 1
    except (CancelledError, BrokenExecutor):
        pass
    except KeyboardInterrupt:
        pool.abandon()
    return counts
