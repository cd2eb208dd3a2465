"""A real Dask cluster: the results of one process, whatever happens to its workers."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

import banditto as bd
from banditto.core.errors import InvalidArgument, MissingExtra, WorkerError
from banditto.core.provenance import fingerprint
from banditto.engine import dask_cluster as opening
from banditto.engine.blocks import run_pairs
from banditto.engine.dask_executor import ClusterExecutor
from banditto.engine.pair_counts import PairCounts
from banditto.engine.player import Run, run_of
from tests.commands import banditto, interrupted
from tests.engine.dask_cluster import LocalDask, local_dask
from tests.lazily import Lazily

pytestmark = pytest.mark.slow

WORLD = bd.Bernoulli([0.5, 0.72, 0.6])
BATCHED = bd.RandomThreshold(arms=3, horizon=10**7, rho=0.3)
POINTS = [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]]
CERTIFY = ["certify", "random-threshold", "--means", "0.9,0.8,0.7", "--horizon", "1e8", "--rho", "0.1", "--seed", "11"]


def run_with(policy: Any = BATCHED, world: Any = WORLD, horizon: int | None = None) -> Run:
    return run_of(policy, world, seed=5, noise_seed=None, horizon=horizon)


RUNS = Lazily(
    {
        "batched": lambda: (run_with(), 100_000),
        "linear": lambda: (
            run_with(
                bd.CertifiedLinear(actions=POINTS, horizon=10**6, rho=0.3), bd.LinearBernoulli([0.5, 0.3], POINTS)
            ),
            3000,
        ),
        "infinite": lambda: (
            run_with(
                bd.CertifiedLinear(actions=bd.Ball(dimension=2), horizon=10**6, rho=0.3),
                bd.LinearBernoulli([0.5, 0.3], bd.Ball(dimension=2)),
            ),
            100,
        ),
        "rounds": lambda: (run_with(bd.Thompson(), horizon=2000), 300),
    }
)


@pytest.fixture(scope="module")
def dask() -> Iterator[LocalDask]:
    with local_dask(2) as cluster:
        yield cluster
    assert all(process.poll() is not None for process in (*cluster.workers, cluster.scheduler))


def scheduler_state(dask_scheduler: Any = None) -> tuple[int, int]:
    """Tasks that are there, and how often one was on a worker that died."""
    prefixes = dask_scheduler.task_prefixes.values()
    return len(dask_scheduler.tasks), sum(prefix.suspicious for prefix in prefixes)


def until_true(condition: Callable[[], bool], seconds: float = 600.0) -> None:
    """Wait for it."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def left_over(dask: LocalDask) -> int:
    """Tasks on the cluster once its client is gone."""
    with dask.client() as client:
        for _ in range(1000):
            tasks, _ = client.run_on_scheduler(scheduler_state)
            if not tasks:
                return 0
            time.sleep(0.1)
    return int(tasks)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * bool(k)) for k, name in enumerate(RUNS)]
)
def test_the_counts_are_those_of_one_process(name: str, dask: LocalDask) -> None:
    what, pairs = RUNS[name]
    with bd.cluster(dask.address) as workers:
        assert run_pairs(what, pairs, executor=workers).counts == run_pairs(what, pairs).counts
        assert isinstance(workers, ClusterExecutor)
        blocks = -(-pairs // 2048) if name == "batched" else None
        assert blocks is None or 0 < workers._sent < blocks  # blocks travelled in groups
    assert left_over(dask) == 0


def test_certificates_comparisons_and_attacks_are_the_same(dask: LocalDask) -> None:
    policies: list[Any] = [BATCHED, bd.UCB1()]
    known: dict[str, Any] = {"pairs": 3000, "rounds": 10**5, "curves": True}
    with bd.cluster(dask.address) as workers:
        assert bd.certify(BATCHED, WORLD, pairs=5000, executor=workers) == bd.certify(BATCHED, WORLD, pairs=5000)
        compared = bd.compare(policies, WORLD, **known, executor=workers)
        found = bd.attack(BATCHED, pairs_budget=4000, executor=workers)
    assert compared.to_dict() == bd.compare(policies, WORLD, **known).to_dict()
    assert found == bd.attack(BATCHED, pairs_budget=4000)
    assert left_over(dask) == 0


@pytest.mark.long
def test_a_worker_that_is_killed_in_mid_run_is_survived(dask: LocalDask) -> None:
    what, pairs = run_with(), 2048 * 400
    outcomes: list[PairCounts] = []
    with bd.cluster(dask.address) as workers, dask.client() as client:
        _, before = client.run_on_scheduler(scheduler_state)
        done: list[int] = []
        victim = dask.workers.pop()
        (address,) = [where for where, pid in client.run(os.getpid).items() if pid == victim.pid]

        def follow(now: int, _: int) -> None:
            if now > 0 and not done:
                victim.send_signal(signal.SIGSTOP)  # what it has and what it is sent it keeps until it dies
            done.extend([now] * (now > 0))

        job = threading.Thread(
            target=lambda: outcomes.append(run_pairs(what, pairs, executor=workers, progress=follow).counts)
        )
        job.start()
        until_true(lambda: bool(done) and bool(client.processing([address])[address]))
        victim.send_signal(signal.SIGKILL)
        assert victim.wait(timeout=600) == -signal.SIGKILL
        assert 0 < done[-1] < pairs  # in mid-run
        assert outcomes == []
        job.join(timeout=600)
        _, after = client.run_on_scheduler(scheduler_state)
        assert len(client.nthreads()) == 1
    assert after > before  # a task was on the worker when it died
    assert outcomes[0] == run_pairs(what, pairs, jobs=2).counts
    assert outcomes[0].pairs == pairs
    dask.start_worker()
    dask.await_workers(2)
    assert left_over(dask) == 0


def suicide(run: Run) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_when_all_workers_die_others_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """And not for ever; what kills whoever touches it is given up, after two workers with this scheduler."""
    with local_dask(1, {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}) as dask:
        with bd.cluster(dask.address, patience=1.0) as workers:
            future = workers.submit(suicide, run_with())
            with caplog.at_level(logging.WARNING), pytest.raises(WorkerError, match="no workers were left for 1 sec"):
                future.result(timeout=600)
            assert "no workers are left: waiting 1 seconds" in caplog.text
            dask.start_worker()
        with bd.cluster(dask.address) as workers:
            future = workers.submit(suicide, run_with())
            dask.start_worker()
            with pytest.raises(WorkerError, match="2 workers died one after another"):
                future.result(timeout=600)
        with pytest.raises(WorkerError, match="no worker joined tcp://.* within 0.1 seconds"):
            opened(dask.address, patience=0.1)
        assert "waiting for the first one, 0.1 seconds at most" in caplog.text
        dask.start_worker()
        with bd.cluster(dask.address) as workers:
            future = workers.submit(time.sleep, 60)
            with dask.client() as client:
                until_true(lambda: any(client.processing().values()))
            dask.scheduler.kill()
            with pytest.raises(WorkerError, match="the cluster's scheduler went away"):
                future.result(timeout=600)


def opened(address: str, **options: Any) -> None:
    with bd.cluster(address, **options):
        pass


def test_ctrl_c_keeps_what_was_finished_and_leaves_no_tasks(dask: LocalDask) -> None:
    def stop(done: int, total: int) -> None:
        if done > 20_000:
            raise KeyboardInterrupt

    with bd.cluster(dask.address) as workers:
        outcome = run_pairs(run_with(), 10**7, executor=workers, progress=stop)
        assert outcome.interrupted
        assert 20_000 < outcome.counts.pairs < 10**7
        assert left_over(dask) == 0  # the cluster is still open
    assert outcome.counts == run_pairs(run_with(), outcome.counts.pairs).counts


def held(gate: Path) -> None:
    """Wait until a file is there, or nobody waits for the answer any more."""
    until_true(gate.exists)


def test_calls_can_be_cancelled_and_errors_come_back(dask: LocalDask, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with bd.cluster(dask.address) as workers:
        long = [workers.submit(held, gate) for _ in range(8)]
        until_true(long[0].running)
        assert not long[0].cancel()  # under way
        assert long[-1].cancel()
        gate.touch()
        assert long[0].result(timeout=600) is None
        with pytest.raises(CancelledError):
            long[-1].result(timeout=600)
        with pytest.raises(ZeroDivisionError):
            workers.submit(divmod, 1, 0).result(timeout=600)
        with pytest.raises(InvalidArgument, match="^rho: got 2"):
            workers.submit(bd.RandomThreshold, arms=2, horizon=10**6, rho=2).result(timeout=600)
        with pytest.raises(TypeError):
            workers.submit(id, threading.Lock()).result(timeout=600)
        last = workers.submit(held, tmp_path / "never")
    with pytest.raises(WorkerError, match="closed"):
        last.result(timeout=600)
    (tmp_path / "never").touch()
    with pytest.raises(WorkerError, match="closed"):
        workers.submit(len, ())
    assert left_over(dask) == 0


def test_other_software_on_a_worker_is_refused(dask: LocalDask, monkeypatch: pytest.MonkeyPatch) -> None:
    here = fingerprint()
    for name, argument in (("numpy", "1.0"), ("banditto", "0.0.1"), ("python", "3.1"), ("numba", None)):
        monkeypatch.setattr(opening, "fingerprint", Elsewhere(here | {name: argument}))
        with pytest.raises(WorkerError, match=f"^{name} is .* on .* and {argument or 'not installed'} here"):
            opened(dask.address)
    monkeypatch.undo()
    with bd.cluster(dask.address) as workers:  # whoever joins later is found by the first task
        monkeypatch.setattr("banditto.engine.dask_executor.fingerprint", lambda: here | {"numpy": "1.0"})
        with pytest.raises(WorkerError, match="^numpy is .* on a worker that joined and 1.0 here"):
            run_pairs(run_with(), 5000, executor=workers)


class Elsewhere:
    """Versions of this process as they are not; a worker tells its own."""

    def __init__(self, versions: dict[str, str | None]) -> None:
        self.versions = versions

    def __call__(self) -> dict[str, str | None]:
        return self.versions

    def __reduce__(self) -> Any:
        return real_fingerprint, ()


def real_fingerprint() -> Any:
    return fingerprint


def test_a_worker_without_banditto_is_refused(tmp_path: Path) -> None:
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text("import sys\nsys.modules['banditto'] = None\n")
    with local_dask(0) as dask:
        dask.start_worker({"PYTHONPATH": str(tmp_path)})
        with pytest.raises(WorkerError, match="worker tcp://.* does not have what is installed here: .*banditto"):
            opened(dask.address)


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"pip install 'banditto\[cluster\]'"):
        opened("tcp://127.0.0.1:8786")


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "tcp://no.such.host.invalid:8786", "tls://127.0.0.1:9"])
def test_an_address_that_nobody_answers(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_ANSWER_SECONDS", 1.0)
    with pytest.raises(InvalidArgument, match=f"^address: got {address}, allowed: a Dask scheduler that answers"):
        opened(address)


def test_nobody_answers_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opening._ANSWER_SECONDS <= 10.0
    monkeypatch.setattr(opening, "_ANSWER_SECONDS", 1.0)
    done = banditto(*CERTIFY, "--cluster", "tcp://127.0.0.1:9")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    said = "--cluster: got tcp://127.0.0.1:9, allowed: a Dask scheduler that answers within 1 seconds"
    assert done.stderr.startswith(f"banditto: error: {said}")


def test_an_address_where_something_else_listens(dask: LocalDask, monkeypatch: pytest.MonkeyPatch) -> None:
    with dask.client() as client, pytest.raises(InvalidArgument, match="this is a Worker"):
        opened(min(client.nthreads()))
    monkeypatch.setattr(opening, "_ANSWER_SECONDS", 1.0)
    match = "that answers within 1 seconds"
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(InvalidArgument, match=match):
        opened(f"tcp://127.0.0.1:{silent.getsockname()[1]}")


def test_other_bad_arguments() -> None:
    wrong: Any = 8786
    with pytest.raises(InvalidArgument, match="^address: got 8786"):
        opened(wrong)
    for patience in (-1.0, float("nan")):
        with pytest.raises(InvalidArgument, match="^patience: got"):
            opened("tcp://127.0.0.1:9", patience=patience)


def test_the_command_line_prints_the_certificate_of_one_process(dask: LocalDask) -> None:
    variables = os.environ | {"BANDITTO_JOBS": "2"}  # gives way to the flag
    flags = ["--pairs", "20_000", "--cluster", dask.address, "--json"]
    done = banditto(*CERTIFY, *flags, env=variables)
    assert (done.returncode, done.stderr) == (0, "")
    policy = bd.RandomThreshold(arms=3, horizon=10**8, rho=0.1)
    own = bd.certify(policy, bd.Bernoulli([0.9, 0.8, 0.7]), pairs=20_000, seed=11).to_dict()
    assert {key: json.loads(done.stdout)[key] for key in own} == own
    assert left_over(dask) == 0


@pytest.mark.long
def test_ctrl_c_on_the_command_line(dask: LocalDask) -> None:
    command = [*CERTIFY, "--pairs", "90_000_000", "--cluster", dask.address, "--json"]
    code, out, err = interrupted(command, r"[1-9]\d*/90000000")
    assert code == 130, err
    printed = json.loads(out)
    assert printed["interrupted"]
    assert 0 < printed["pairs"] < 90_000_000
    assert "Traceback" not in err
    policy = bd.RandomThreshold(arms=3, horizon=10**8, rho=0.1)
    same = bd.certify(policy, bd.Bernoulli([0.9, 0.8, 0.7]), pairs=printed["pairs"], seed=11, jobs=2)
    assert same.mismatches == printed["mismatches"]
    assert left_over(dask) == 0
