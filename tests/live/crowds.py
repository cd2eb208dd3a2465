"""Many workers on one experiment, and what must be true of their logs afterwards."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from banditto.live.experiment import Experiment
from banditto.live.store import Store
from banditto.live.verify import verify
from banditto.policies.policy import Policy
from tests.live.workers import NAME, measured
from tests.live.worlds import finish, hashed_reward, place, simulated_arms


@dataclass
class Acknowledged:
    """What the workers were told, from all their logs."""

    arms: dict[str, int] = field(default_factory=dict)
    asks: int = 0
    tells: dict[str, str] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path) -> Acknowledged:
        made = cls()
        requests: set[str] = set()
        for path in sorted(folder.glob("*.log")):
            for line in path.read_text().splitlines():
                made._add(line, requests)
        return made

    def _add(self, line: str, requests: set[str]) -> None:
        kind, _, rest = line.partition(" ")
        if kind == "ask":
            request, *tickets = rest.split()
            assert request not in requests, "a request was acknowledged twice"
            requests.add(request)
            self.asks += 1
            for ticket in tickets:
                name, _, arm = ticket.partition("=")
                assert name not in self.arms, f"ticket {name} was handed out twice"
                self.arms[name] = int(arm)
        elif kind == "tell":
            ticket, answer = rest.split()
            self.tells[ticket] = "excluded" if answer == "excluded" else "counted"
        elif kind == "missing":
            self.missing.add(rest)
        else:
            self.errors.append(line)


def start(url: str, folder: Path, workers: int, seconds: float, kills: int, seed: int) -> subprocess.Popen[bytes]:
    """The workers' parent, running."""
    numbers = [str(number) for number in (workers, seconds, kills, seed)]
    command = [sys.executable, "-m", "tests.live.workers", url, str(folder), *numbers]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])


def check(url: str, seen: Acknowledged, policy: Policy[Any], seed: int, to_the_end: bool) -> None:
    """Everything that was acknowledged is in the log; the log verifies; the arms are the simulator's."""
    found = verify(url, NAME)
    assert found.holds, found.problem
    store = Store(url)
    row = store.read(lambda view: view.find(NAME))
    assert row is not None
    names = ("arm", "status", "reward")
    tickets = store.read(
        lambda view: {
            ticket_id(*line[:3]): dict(zip(names, line[3:6], strict=True)) for line in view.all_tickets(row["id"])
        }
    )
    metrics = store.read(lambda view: {(ticket_id(*m[:3]), m[3]): m[4] for m in view.all_metrics(row["id"])})
    store.close()
    for ticket, arm in seen.arms.items():
        assert tickets[ticket]["arm"] == arm
    for ticket, answer in seen.tells.items():
        assert tickets[ticket]["status"] == ("told" if answer == "counted" else "late")
        reward = hashed_reward(*place(ticket))
        assert tickets[ticket]["reward"] == reward
        assert {name: metrics[ticket, name] for name in measured(reward)} == measured(reward)
    assert all(tickets[ticket]["status"] in ("missing", "late") for ticket in seen.missing)
    arms = {place(ticket): line["arm"] for ticket, line in tickets.items()}
    last = max(batch for batch, _ in arms)
    until: tuple[int, int] | None = (last, sum(batch == last for batch, _ in arms))
    if to_the_end:
        with Experiment.open(url, NAME) as experiment:
            arms |= finish(experiment)
        until = None
        found = verify(url, NAME)
        assert found.holds, found.problem
    expected = simulated_arms(policy, seed, hashed_reward, until)
    assert len(arms) == sum(len(row) for row in expected)
    assert [[arms[batch, slot] for slot in range(len(row))] for batch, row in enumerate(expected, 1)] == expected


def ticket_id(batch: int, position: int, attempt: int) -> str:
    first = f"{NAME}.{batch}-{position + 1}"
    return f"{first}-{attempt + 1}" if attempt else first
