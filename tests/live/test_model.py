"""Any interleaving of steps, by two handles that come and go, is the simulator's run with the same rewards."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from banditto.core.errors import ConflictError
from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from tests.live.servers import PostgresServer
from tests.live.worlds import place, simulated_plans, small, small_policy, walked_mixed_order

REWARDS = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1 / 3])
WHICH = st.integers(0, 10**6)  # which of the tickets that there are
HANDLE = st.integers(0, 1)
METRICS = st.sampled_from([{}, {}, {"clicks": 1.0}, {"clicks": 2.0}, {"clicks": 1.0, "revenue": 1 / 3}])


class LiveRun(RuleBasedStateMachine):
    """The model: a queue of slots from the simulator's plans, and what was said about each ticket."""

    url = ""
    runs = 0
    decided = 0  # batches in all runs, so that the test can say what it has seen
    late = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).runs += 1
        self.name = f"run{self.runs}"
        self.seed = 7 + self.runs % 5
        made = small(seed=self.seed, arm_names=["A", "B"], fallback="B")
        self.handles = [Experiment.open(self.url, self.name, made) for _ in range(2)]
        self.totals: list[list[float]] = []
        self.arms: dict[str, int] = {}
        self.status: dict[str, str] = {}
        self.rewards: dict[str, float] = {}
        self.metrics: dict[str, dict[str, float]] = {}
        self.requests: dict[str, tuple[int, list[str]]] = {}  # how many were asked for, and what was given
        self.units: dict[str, str] = {}
        self.decisions_seen = 0

    @initialize()
    def begin(self) -> None:
        self.start_batch()

    def start_batch(self) -> None:
        plans = simulated_plans(small_policy(), self.seed, self.totals)
        self.batch = len(self.totals) + 1
        self.order = walked_mixed_order(self.seed, self.batch, plans[-1]) if len(plans) == self.batch else []
        self.queue: list[str] = [f"{self.name}.{self.batch}-{number}" for number in range(1, len(self.order) + 1)]
        self.counts = [0, 0]

    def pick(self, which: int, *status: str) -> str:
        found = [ticket for ticket in self.status if self.status[ticket] in status]
        return found[which % len(found)]

    def some(self, *status: str) -> bool:
        return any(value in status for value in self.status.values())

    def paid(self, ticket: str, reward: float) -> None:
        """The model's side of a reward that counts."""
        self.status[ticket], self.rewards[ticket] = "told", reward
        self.counts[self.arms[ticket]] += 1
        if sum(self.counts) == len(self.order):
            sums = [Fraction(0), Fraction(0)]
            for told, value in self.rewards.items():
                if place(told)[0] == self.batch and self.status[told] == "told":
                    sums[self.arms[told]] += Fraction(value)
            self.totals.append([float(total) for total in sums])
            type(self).decided += 1
            self.start_batch()

    # -- steps --------------------------------------------------------------------------------------------------------

    @rule(handle=HANDLE, n=st.integers(1, 9), known=st.booleans())
    def ask(self, handle: int, n: int, known: bool) -> None:
        request = f"q{len(self.requests)}" if known else None
        answer = self.handles[handle].ask(n, request)
        expected = self.queue[:n]
        assert [ticket.id for ticket in answer] == expected
        assert answer.state == ("issued" if expected else "waiting" if self.order else "finished")
        del self.queue[:n]
        for ticket in answer:
            assert ticket.arm == self.order[place(ticket.id)[1]]
            assert ticket.batch == self.batch
            self.arms[ticket.id], self.status[ticket.id] = ticket.arm, "open"
        assert not answer.repeated
        if request is not None and expected:
            self.requests[request] = n, expected

    @precondition(lambda self: self.requests)
    @rule(handle=HANDLE, n=st.integers(1, 9), which=WHICH)
    def ask_again(self, handle: int, n: int, which: int) -> None:
        request = list(self.requests)[which % len(self.requests)]
        asked, given = self.requests[request]
        if n != asked:
            with pytest.raises(ConflictError):
                self.handles[handle].ask(n, request)
        answer = self.handles[handle].ask(asked, request)
        assert [(ticket.id, ticket.arm) for ticket in answer] == [(ticket, self.arms[ticket]) for ticket in given]
        assert answer.repeated

    @rule(handle=HANDLE, unit=st.sampled_from(["ann", "bob", "cem", "dora", "eve"]))
    def ask_for_a_unit(self, handle: int, unit: str) -> None:
        answer = self.handles[handle].ask(unit=unit)
        known = unit in self.units
        if not known and self.queue:
            self.units[unit] = self.queue.pop(0)
            self.arms[self.units[unit]] = self.order[place(self.units[unit])[1]]
            self.status[self.units[unit]] = "open"
        given = [self.units[unit]] if unit in self.units else []
        assert [(ticket.id, ticket.arm) for ticket in answer] == [(ticket, self.arms[ticket]) for ticket in given]
        assert answer.repeated == known
        fallback = None if given else "B"
        assert (answer.fallback.arm_name if answer.fallback else None) == fallback

    @precondition(lambda self: self.some("open"))
    @rule(handle=HANDLE, which=WHICH, reward=REWARDS, metrics=METRICS)
    def tell(self, handle: int, which: int, reward: float, metrics: dict[str, float]) -> None:
        ticket = self.pick(which, "open")
        with pytest.raises(ConflictError):
            self.handles[handle].tell(ticket, reward, metrics, arm=1 - self.arms[ticket])
        assert self.handles[handle].tell(ticket, reward, metrics, arm="AB"[self.arms[ticket]]) == "recorded"
        self.metrics[ticket] = metrics
        self.paid(ticket, reward)

    @precondition(lambda self: self.some("open"))
    @rule(handle=HANDLE, base=REWARDS, lead=st.sampled_from([-0.5, 0.0, 0.5]), backwards=st.booleans())
    def tell_all_that_are_out(self, handle: int, base: float, lead: float, backwards: bool) -> None:
        tickets = [ticket for ticket, status in self.status.items() if status == "open"]
        tickets = tickets[::-1] if backwards else tickets
        pairs = [(ticket, min(1.0, max(0.0, base + lead * self.arms[ticket]))) for ticket in tickets]
        assert self.handles[handle].tell_many(pairs) == ["recorded"] * len(pairs)
        for ticket, reward in pairs:
            self.paid(ticket, reward)

    @precondition(lambda self: self.some("told", "late"))
    @rule(handle=HANDLE, which=WHICH, silent=st.booleans())
    def duplicate(self, handle: int, which: int, silent: bool) -> None:
        ticket = self.pick(which, "told", "late")
        metrics = None if silent else self.metrics.get(ticket)
        answer = self.handles[handle].tell(ticket, self.rewards[ticket], metrics)
        assert answer == {"told": "repeated", "late": "excluded"}[self.status[ticket]]

    @precondition(lambda self: self.some("told", "late"))
    @rule(handle=HANDLE, which=WHICH, reward=REWARDS, metrics=METRICS)
    def conflict(self, handle: int, which: int, reward: float, metrics: dict[str, float]) -> None:
        ticket = self.pick(which, "told", "late")
        if reward != self.rewards[ticket]:
            with pytest.raises(ConflictError):
                self.handles[handle].tell(ticket, reward)
        if metrics and metrics != self.metrics.get(ticket, {}):
            with pytest.raises(ConflictError):
                self.handles[handle].tell(ticket, self.rewards[ticket], metrics)

    @precondition(lambda self: self.some("told"))
    @rule(handle=HANDLE, which=WHICH, reward=REWARDS)
    def correct(self, handle: int, which: int, reward: float) -> None:
        ticket = self.pick(which, "told")
        if reward == self.rewards[ticket]:
            assert self.handles[handle].correct(ticket, reward, "no change") == "repeated"
        elif place(ticket)[0] != self.batch:
            with pytest.raises(ConflictError):
                self.handles[handle].correct(ticket, reward, "too late")
        else:
            assert self.handles[handle].correct(ticket, reward, "a typo") == "recorded"
            self.rewards[ticket] = reward

    @precondition(lambda self: self.some("open"))
    @rule(handle=HANDLE, which=WHICH)
    def missing(self, handle: int, which: int) -> None:
        ticket = self.pick(which, "open")
        assert self.handles[handle].missing(ticket, "lost") == "recorded"
        self.given_up(ticket)

    def given_up(self, ticket: str) -> None:
        """The model's side of a reward that will not come."""
        self.status[ticket] = "missing"
        first, second, *attempt = ticket.split("-")
        again = sum(len(waiting.split("-")) == 3 for waiting in self.queue)  # those that were lost before it come first
        self.queue.insert(again, f"{first}-{second}-{int(attempt[0]) + 1 if attempt else 2}")

    @precondition(lambda self: self.some("open"))
    @rule(handle=HANDLE, first=WHICH, second=WHICH, by_age=st.booleans())
    def missing_at_once(self, handle: int, first: int, second: int, by_age: bool) -> None:
        """Two of them, or all, oldest first."""
        tickets = list(dict.fromkeys((self.pick(first, "open"), self.pick(second, "open"))))
        if by_age:
            tickets = [line.id for line in self.handles[handle].pending()]
            assert self.handles[handle].missing_older(0, "lost") == len(tickets)
        else:
            assert self.handles[handle].missing_many(tickets, "lost") == ["recorded"] * len(tickets)
        for ticket in tickets:
            self.given_up(ticket)

    @precondition(lambda self: self.some("missing", "late", "told"))
    @rule(handle=HANDLE, which=WHICH)
    def missing_again(self, handle: int, which: int) -> None:
        ticket = self.pick(which, "missing", "late", "told")
        if self.status[ticket] == "told":
            with pytest.raises(ConflictError):
                self.handles[handle].missing(ticket, "lost")
        else:
            assert self.handles[handle].missing(ticket, "lost") == "repeated"

    @precondition(lambda self: self.some("missing"))
    @rule(handle=HANDLE, which=WHICH, reward=REWARDS, metrics=METRICS)
    def tell_late(self, handle: int, which: int, reward: float, metrics: dict[str, float]) -> None:
        ticket = self.pick(which, "missing")
        assert self.handles[handle].tell(ticket, reward, metrics) == "excluded"
        self.metrics[ticket] = metrics
        self.status[ticket], self.rewards[ticket] = "late", reward
        type(self).late += 1

    @rule(handle=HANDLE)
    def restart(self, handle: int) -> None:
        self.handles[handle].close()
        self.handles[handle] = Experiment.open(self.url, self.name)

    @invariant()
    def status_is_the_models(self) -> None:
        if not hasattr(self, "batch") or len(self.totals) == self.decisions_seen:
            return
        self.decisions_seen = len(self.totals)
        found = self.handles[0].status()
        assert found.batch == self.batch
        assert list(found.plan.values()) == [self.order.count(arm) for arm in (0, 1) if arm in self.order]

    def metrics_are_the_models(self) -> None:
        """Each name's values of tickets that count, by batch and arm; late ones are left out."""
        counts: Counter[tuple[str, int, int]] = Counter()
        sums: defaultdict[tuple[str, int, int], float] = defaultdict(float)
        for ticket, metrics in self.metrics.items():
            for name, value in metrics.items() if self.status[ticket] == "told" else ():
                counts[name, place(ticket)[0], self.arms[ticket]] += 1
                sums[name, place(ticket)[0], self.arms[ticket]] += value
        store = self.handles[0]._store
        found = store.read(lambda view: view.metric_sums(view.known(self.name)["id"]))
        assert {(line.name, line.batch, line.arm): line.count for line in found} == counts
        for line in found:
            assert line.total == pytest.approx(sums[line.name, line.batch, line.arm], rel=1e-12)

    def teardown(self) -> None:
        """Go on to the end, whatever was out; then replay."""
        if hasattr(self, "batch"):
            while self.order:
                self.ask(0, 9, False)
                self.tell_all_that_are_out(1, 0.5, 0.0, False)
            found = verify(self.url, self.name)
            assert found.holds, found.problem
            assert [decision.totals for decision in found.decisions] == [tuple(total) for total in self.totals]
            plans = simulated_plans(small_policy(), self.seed, self.totals)
            assert [decision.counts for decision in found.decisions] == plans
            self.metrics_are_the_models()
        for handle in self.handles:
            handle.close()


def run(url: str, examples: int, steps: int) -> None:
    class Machine(LiveRun):
        """Counts its own runs."""

    Machine.url = url
    options = settings(max_examples=examples, stateful_step_count=steps, print_blob=False)
    run_state_machine_as_test(Machine, settings=options)
    assert Machine.runs >= examples // 2
    assert Machine.decided > 2 * Machine.runs  # runs went on to their end, through several decisions
    assert Machine.late > 0


@pytest.mark.parametrize("examples", [15, pytest.param(120, marks=pytest.mark.long)])
def test_any_interleaving_on_sqlite(examples: int, tmp_path: Path) -> None:
    run(f"sqlite:///{tmp_path}/model.db", examples, steps=40)


@pytest.mark.parametrize("examples", [6, pytest.param(40, marks=pytest.mark.long)])
def test_any_interleaving_on_postgresql(examples: int, server: PostgresServer) -> None:
    run(server.new_schema(), examples, steps=40)
