"""AsyncExperiment: the same experiment, awaited."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest

import banditto as bd
from banditto.core.errors import ConflictError
from banditto.live.async_experiment import AsyncExperiment
from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from tests.live.worlds import hashed_reward, place, simulated_arms, small, small_policy


def test_many_tasks_play_an_experiment_to_its_end(store_url: str) -> None:
    registration = small()
    arms: dict[tuple[int, int], int] = {}

    async def worker(trial: AsyncExperiment) -> None:
        while True:
            answer = await trial.ask(3)
            if answer.state in ("finished", "stopped"):
                return
            if not len(answer):
                await asyncio.sleep(0.01)
            for ticket in answer:
                arms[place(ticket.id)] = ticket.arm
                await trial.tell(ticket.id, hashed_reward(*place(ticket.id)), arm=ticket.arm)

    async def play() -> str:
        async with await AsyncExperiment.open(store_url, "cta", registration) as trial:
            await asyncio.gather(*(worker(trial) for _ in range(8)))
            return (await trial.status()).state

    assert asyncio.run(play()) == "finished"
    assert verify(store_url, "cta").holds
    expected = simulated_arms(small_policy(), registration.protocol.seed, hashed_reward)
    assert arms == {(b, p): arm for b, batch in enumerate(expected, 1) for p, arm in enumerate(batch)}


def test_a_task_that_is_cancelled_takes_no_step_back(tmp_path: Path) -> None:
    async def play() -> int:
        async with await AsyncExperiment.open(f"sqlite:///{tmp_path}/trial.db", "cta", small()) as trial:
            task = asyncio.create_task(trial.ask(5, request_id="r"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return len(await trial.ask(5, request_id="r"))

    assert asyncio.run(play()) == 5
    assert verify(f"sqlite:///{tmp_path}/trial.db", "cta").holds


def test_errors_are_the_librarys_own(tmp_path: Path) -> None:
    async def play() -> None:
        async with await AsyncExperiment.open(f"sqlite:///{tmp_path}/trial.db", "cta", small()) as trial:
            (ticket,) = await trial.ask()
            await trial.tell_many((one, 0.5) for one in [ticket.id])
            with pytest.raises(ConflictError):
                await trial.tell(ticket.id, 0.75)

    asyncio.run(play())
    with pytest.raises(bd.NoStore):
        asyncio.run(AsyncExperiment.open(f"sqlite:///{tmp_path}/none.db", "cta"))


def test_it_has_the_methods_of_an_experiment_with_the_same_arguments() -> None:
    left_out = {"create", "close", "open", "observations"}
    for name, method in inspect.getmembers(Experiment, inspect.isfunction):
        if name.startswith("_") or name in left_out:
            continue
        mine = getattr(AsyncExperiment, name)
        assert inspect.iscoroutinefunction(mine), name
        assert inspect.signature(mine).parameters == inspect.signature(method).parameters, name
