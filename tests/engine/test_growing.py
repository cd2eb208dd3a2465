"""Runs that are stopped, go on and grow: the same counts as in one go, and an interval that allows for it."""

from __future__ import annotations

import errno
import json
import logging
import random
import signal
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banditto as bd
from banditto.core.errors import ConflictError, InvalidArgument
from banditto.engine.block_sizes import PAIRS_PER_BLOCK
from banditto.engine.blocks import run_pairs
from banditto.engine.ledger import FILE_NAME, Ledger
from banditto.engine.pair_counts import Moments, PairCounts
from banditto.engine.player import player_of, run_of
from banditto.numbers.confidence_sequence import ConfidenceSequence
from banditto.numbers.intervals import clopper_pearson
from tests.commands import banditto

pytestmark = pytest.mark.slow

POLICY = bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1)
WORLD = bd.Bernoulli([0.5, 0.58])
ROUNDS: dict[str, Any] = {"horizon": 200, "rho": 0.3}


def certified(out: Path | None, pairs: int | None = None, **options: Any) -> bd.Certificate:
    return bd.certify(POLICY, WORLD, pairs=pairs, seed=3, out=out, **options)


def counted(certificate: bd.Certificate) -> tuple[Any, ...]:
    """All that was counted, to the last bit."""
    regret = certificate.regret
    names = ("pairs", "mismatches", "first_divergence", "divergence_pulls")
    return (*(getattr(certificate, name) for name in names), regret.mean, regret.interval, regret.largest)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FILE_NAME).read_text().splitlines()]


def stop_at(pairs: int) -> Any:
    def progress(done: int, total: int) -> None:
        if done >= pairs:
            raise KeyboardInterrupt

    return progress


# -- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [(100, 5000), (2048, 4096, 9000), (3000, 3001, 4500, 9000), (9000, 9000)])
def test_a_result_that_grew_is_that_of_one_run(steps: tuple[int, ...], tmp_path: Path) -> None:
    for pairs in steps:
        grown = certified(tmp_path, pairs)
        assert counted(grown) == counted(certified(None, pairs))
    blocks = [(line["block"], line["pairs"]) for line in lines_of(tmp_path) if "block" in line]
    assert len(set(blocks)) == len(blocks)  # nothing was played that was there already
    assert counted(certified(tmp_path, steps[-1], jobs=2)) == counted(grown)


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_finished_and_the_same_call_goes_on(jobs: int, tmp_path: Path) -> None:
    first = certified(tmp_path, 300_000, progress=stop_at(8000), jobs=jobs)
    assert first.interrupted
    assert 8000 <= first.pairs < 300_000
    assert first.interval_kind == "sequence"
    starts: list[int] = []
    last = certified(tmp_path, 300_000, progress=lambda done, total: starts.append(done), jobs=3 - jobs)
    assert starts[0] == first.pairs  # the bar begins at what is there
    assert counted(last) == counted(certified(None, 300_000))
    assert last.interval_kind == "sequence"  # it was looked at on the way
    assert not last.interrupted


def test_policies_by_rounds_and_linear_ones_go_on_too(tmp_path: Path) -> None:
    actions = [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]]
    cases: list[tuple[Any, Any, dict[str, Any], tuple[int, int]]] = [
        (bd.UCB1(), WORLD, ROUNDS, (10, 21)),
        (
            bd.CertifiedLinear(actions=actions, horizon=10**6, rho=0.3),
            bd.LinearBernoulli([0.5, 0.3], actions),
            {},
            (150, 300),
        ),
    ]
    for number, (policy, world, options, (few, many)) in enumerate(cases):
        folder = tmp_path / str(number)
        bd.certify(policy, world, pairs=few, out=folder, **options)
        grown = bd.certify(policy, world, pairs=many, out=folder, **options)
        assert counted(grown) == counted(bd.certify(policy, world, pairs=many, **options))


def test_a_kill_at_any_byte_is_repaired(tmp_path: Path) -> None:
    """What is left of the file is a beginning of it, whatever its length; a planned run stays a planned one."""
    pairs = 3 * PAIRS_PER_BLOCK + 100
    whole = certified(tmp_path / "whole", pairs)
    content = (tmp_path / "whole" / FILE_NAME).read_bytes()
    lines = content.splitlines(keepends=True)
    ends = [sum(map(len, lines[:number])) for number in range(1, len(lines) + 1)]
    cuts = sorted({0, 1, *ends, *(end - 1 for end in ends), *random.Random(1).sample(range(len(content)), 6)})
    for cut in cuts:
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / FILE_NAME).write_bytes(content[:cut])
        again = certified(folder, pairs)
        assert again.to_dict() == whole.to_dict()
        assert again.interval_kind == "fixed"
        assert (folder / FILE_NAME).read_bytes() == content
    assert len(cuts) > 15


TRACED = ("run_pairs", "plus", "append", "_write", "_kept")


def test_an_interrupt_anywhere_never_loses_or_repeats_a_block(tmp_path: Path) -> None:
    """Ctrl-C at many places of the loop and of the writing; then the run goes on."""
    run = run_of(POLICY, WORLD, seed=3, noise_seed=None, horizon=None)
    whole = run_pairs(run, 3 * PAIRS_PER_BLOCK + 7).counts
    stopped = 0
    for place in range(1, 120, 3):
        steps = 0

        def trace(frame: Any, event: str, argument: Any, place: int = place) -> Any:
            nonlocal steps
            if frame.f_code.co_name in TRACED and event == "line":
                steps += 1
                if steps == place:
                    raise KeyboardInterrupt
            return trace

        with Ledger(tmp_path, {"place": place}, player_of(run).block_size) as ledger:
            ledger.plan(whole.pairs)
            sys.settrace(trace)
            try:
                outcome = run_pairs(run, whole.pairs, ledger=ledger)
                stopped += outcome.interrupted
                assert outcome.counts == ledger.counts
            except KeyboardInterrupt:
                pass  # before the loop began
            finally:
                sys.settrace(None)
        with Ledger(tmp_path, {"place": place}, player_of(run).block_size) as ledger:
            ledger.plan(whole.pairs)
            assert run_pairs(run, whole.pairs, ledger=ledger).counts == ledger.counts == whole
        (tmp_path / FILE_NAME).unlink()
    assert stopped > 20


def test_nothing_is_left_behind_when_nothing_was_finished(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        certified(tmp_path, 1000, progress=stop_at(0))
    assert list(tmp_path.iterdir()) == []


def test_fewer_pairs_than_are_there_show_all_of_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = certified(tmp_path, 5000)
    with caplog.at_level(logging.WARNING, "banditto"):
        again = certified(tmp_path, 100)
    assert again.to_dict() == whole.to_dict()
    assert "5,000 pairs are there already" in caplog.text


def test_reading_a_long_run_takes_no_memory(tmp_path: Path) -> None:
    block = PairCounts(pairs=4, mismatches=1, regret=Moments(count=4, mean=1.5, squares=0.25, largest=2.0))
    with Ledger(tmp_path, {}, 4) as ledger:
        ledger.plan(None)
        for number in range(5000):
            ledger.append(number, block)
    assert (tmp_path / FILE_NAME).stat().st_size > 6 * 10**5
    tracemalloc.start()
    with Ledger(tmp_path, {}, 4) as ledger:
        assert ledger.counts.mismatches == 5000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 250_000


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 4}, "seed 3 there, 4 now"),
        ({"noise_seed": 1}, "noise seed "),
        ({"environment": bd.Bernoulli([0.5, 0.6])}, "environment {'name': 'bernoulli', 'means': [0.5, 0.58]} there"),
        ({"policy": bd.RandomThreshold(arms=2, horizon=10**7, rho=0.1)}, "horizon 1e6 there, 1e7 now"),
        ({"policy": bd.RandomThreshold(arms=2, horizon=10**6, rho=0.2)}, "rho 0.1 there, 0.2 now"),
        ({"policy": bd.RandomThreshold(arms=2, horizon=10**6, rho=0.1, constants="paper")}, "digest "),
        ({"policy": bd.MeanRounding(arms=2, horizon=10**6, rho=0.1)}, "policy random-threshold there, mean-rounding"),
    ],
)
def test_another_run_is_refused_and_the_file_left_alone(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    certified(tmp_path, 10)
    before = (tmp_path / FILE_NAME).read_bytes()
    options: dict[str, Any] = {"policy": POLICY, "environment": WORLD, "seed": 3, "pairs": 20} | change
    with pytest.raises(ConflictError, match="belongs to another run") as refusal:
        bd.certify(**options, out=tmp_path)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def damaged(content: bytes, kind: str) -> tuple[bytes, int]:
    """Damage of one kind, and the number of the line at which it is found."""
    lines = content.splitlines(keepends=True)  # header, block, look, plan, block, block, look
    if kind == "a look is gone":
        del lines[2]
        return b"".join(lines), 3
    if kind == "a line twice":
        lines.insert(5, lines[4])
        return b"".join(lines), 6
    if kind == "no header":
        return b"".join(lines[1:]), 1
    if kind == "another file":
        return b"policy,pairs\nucb1,10\n", 1
    if kind == "zeros at the end":
        return content + b"\0" * 30 + b"\n", len(lines) + 1
    assert b'"mismatches":' in lines[4]
    lines[4] = {
        "a digit": lines[4].replace(b'"mismatches":', b'"mismatches":1', 1),
        "a line is gone": b"",
        "an empty line": b"\n",
        "no text": b"\xff\xfe\x00\n",
        "no object": b"[[[[]]]]\n",
    }[kind]
    return b"".join(lines), 5


@pytest.mark.parametrize(
    "kind",
    [
        *("a digit", "a line is gone", "a line twice", "a look is gone", "no text", "no object", "an empty line"),
        *("no header", "another file", "zeros at the end"),
    ],
)
def test_damage_is_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    certified(tmp_path, 2048)
    certified(tmp_path, 6000)
    path = tmp_path / FILE_NAME
    content, line = damaged(path.read_bytes(), kind)
    path.write_bytes(content)
    with pytest.raises(ConflictError, match=rf"^line {line} of .* is damaged") as refusal:
        certified(tmp_path, 9000)
    assert "\n" not in str(refusal.value)
    assert path.read_bytes() == content


def test_a_newer_format_is_refused_and_another_numpy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(np, "__version__", "1.99")
        certified(tmp_path / "old", 10)
        patched.setattr("banditto.engine.ledger.FORMAT", 2)
        certified(tmp_path / "new", 10)
    with caplog.at_level(logging.WARNING, "banditto"):
        assert certified(tmp_path / "old", 20).pairs == 20
    assert f"begun with NumPy 1.99, and this is {np.__version__}" in caplog.text
    with pytest.raises(ConflictError, match="was written by a newer banditto"):
        certified(tmp_path / "new", 20)


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    with Ledger(tmp_path, {}, 4), pytest.raises(ConflictError, match="is in use by another process"):
        Ledger(tmp_path, {}, 4)
    with Ledger(tmp_path, {}, 4) as ledger:
        assert ledger.pairs == 0


def test_a_folder_that_cannot_be_made_is_an_argument(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidArgument, match="^out: got "):
            certified(place, 10)
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(InvalidArgument, match="^out: got "):
        certified(tmp_path, 10)


# -- which interval --------------------------------------------------------------------------------------------------


def shown(folder: Path, pairs: int | None, how: str) -> str:
    """The kind of interval after one more run: shown, stopped by Ctrl-C ("stopped"), or killed before its end."""
    if how == "killed":
        run = run_of(POLICY, WORLD, seed=3, noise_seed=None, horizon=None)
        identity = {
            name: value for name, value in lines_of(folder)[0].items() if name not in ("ledger", "numpy", "check")
        }
        identity = {name: value for name, value in identity.items() if name not in ("planned", "block_pairs")}
        with Ledger(folder, identity, player_of(run).block_size) as ledger:
            ledger.plan(pairs)
            run_pairs(run, min(pairs or 10**9, ledger.pairs + 3000), ledger=ledger)
        return ""
    options = {"progress": stop_at(2048)} if how == "stopped" else {"until_settled": how == "until settled"}
    return certified(folder, pairs, **options).interval_kind


@pytest.mark.parametrize(
    ("runs", "kinds"),
    [
        ([(5000, "shown")], ["fixed"]),
        ([(5000, "shown"), (5000, "shown")], ["fixed", "fixed"]),
        ([(5000, "shown"), (6000, "shown")], ["fixed", "sequence"]),
        ([(5000, "shown"), (6000, "shown"), (5000, "shown")], ["fixed", "sequence", "sequence"]),
        ([(5000, "stopped"), (5000, "shown")], ["sequence", "sequence"]),
        ([(5000, "shown"), (9000, "killed"), (9000, "shown")], ["fixed", "", "sequence"]),
        ([(5000, "shown"), (2000, "shown")], ["fixed", "fixed"]),
        ([(5000, "until settled"), (5000, "shown")], ["sequence", "sequence"]),
        ([(5000, "shown"), (None, "killed"), (9000, "shown")], ["fixed", "", "sequence"]),
        ([(5000, "shown"), (5000, "until settled"), (5000, "shown")], ["fixed", "sequence", "sequence"]),
    ],
)
def test_an_exact_interval_is_for_the_number_that_was_planned_and_seen_alone(
    runs: list[tuple[int | None, str]], kinds: list[str], tmp_path: Path
) -> None:
    assert [shown(tmp_path, pairs, how) for pairs, how in runs] == kinds


def test_a_run_that_was_killed_has_shown_nothing(tmp_path: Path) -> None:
    """The first lines of a planned run are all that a kill leaves: the rest is played, and the interval is exact."""
    certified(tmp_path, 6000)
    path = tmp_path / FILE_NAME
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    finished = certified(tmp_path, 6000)
    assert finished.interval_kind == "fixed"
    assert finished.to_dict() == certified(None, 6000).to_dict()


def test_a_plan_may_be_changed_before_the_first_pair(tmp_path: Path) -> None:
    """Killed at once: only the header is there."""
    certified(tmp_path, 6000)
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    for _ in range(2):
        assert certified(tmp_path, 3000).interval_kind == "fixed"
    assert certified(tmp_path, 6000).interval_kind == "sequence"


def test_the_certificate_says_which_interval_it_has(tmp_path: Path) -> None:
    fixed = certified(tmp_path, 3000)
    grown = certified(tmp_path, 4000)
    for certificate, kind in ((fixed, "fixed"), (grown, "sequence")):
        assert certificate.to_dict()["interval_kind"] == certificate.interval_kind == kind
    low, high = clopper_pearson(fixed.mismatches, 3000, 0.95)
    assert fixed.interval == (1 - high, 1 - low)
    low, high = ConfidenceSequence(0.1, 0.95).interval(grown.mismatches, 4000)
    assert grown.interval == (1 - high, 1 - low)
    assert "95% interval" in fixed.table()
    assert "95% confidence sequence" in grown.table()


# -- until settled ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rho", "verdict"), [(0.1, "FAIL"), (0.3, "PASS")])
def test_a_run_goes_on_until_it_is_settled_and_no_further(rho: float, verdict: str, tmp_path: Path) -> None:
    """UCB1 differs in about a fifth of these pairs, in blocks of four."""
    world = bd.Bernoulli([0.02, 0.98])
    options: dict[str, Any] = {"horizon": 10, "rho": rho, "seed": 1, "until_settled": True}
    certificate = bd.certify(bd.UCB1(), world, **options, pairs=20_000)
    assert certificate.verdict == verdict
    assert certificate.interval_kind == "sequence"
    assert certificate.pairs_to_settle is None
    assert not certificate.interrupted
    sequence = ConfidenceSequence(rho, 0.95)
    assert sequence.settles(certificate.mismatches, certificate.pairs)
    before = bd.certify(bd.UCB1(), world, horizon=10, rho=rho, seed=1, pairs=certificate.pairs - 4)
    assert not sequence.settles(before.mismatches, before.pairs)
    # the same pair for any workers, and for any stops on the way
    with ThreadPoolExecutor(3) as threads:
        assert bd.certify(bd.UCB1(), world, **options, executor=threads).to_dict() == certificate.to_dict()
    assert certificate.pairs > 20
    for _ in range(200):
        stop = stop_at(1 + (lines_of(tmp_path)[-1]["look"] if (tmp_path / FILE_NAME).exists() else 0))
        part = bd.certify(bd.UCB1(), world, **options, out=tmp_path, progress=stop)
        if not part.interrupted or part.verdict != "INCONCLUSIVE":
            break
    assert counted(part) == counted(certificate)
    assert counted(bd.certify(bd.UCB1(), world, **options, out=tmp_path, pairs=10**6)) == counted(certificate)


def test_a_run_that_is_not_settled_ends_at_its_limit() -> None:
    near = certified(None, 100, until_settled=True)
    assert (near.pairs, near.verdict, near.interval_kind) == (100, "CONSISTENT", "sequence")
    assert near.pairs_to_settle is not None
    assert near.pairs_to_settle > 100
    assert f"about {near.pairs_to_settle:,} pairs would settle it" in near.table()


def test_a_planned_result_may_be_carried_on_until_it_is_settled(tmp_path: Path) -> None:
    few = certified(tmp_path, 20)
    assert few.verdict == "CONSISTENT"
    settled = certified(tmp_path, until_settled=True)
    assert settled.verdict == "PASS"
    assert settled.pairs == PAIRS_PER_BLOCK
    assert counted(settled) == counted(certified(None, PAIRS_PER_BLOCK))


# -- comparisons -----------------------------------------------------------------------------------------------------


def compared(out: Path | None, pairs: int, **options: Any) -> bd.Comparison:
    return bd.compare([POLICY, bd.UCB1()], WORLD, pairs=pairs, rounds=10**4, seed=3, out=out, **options)


def test_comparisons_grow_and_go_on(tmp_path: Path) -> None:
    def stop(label: str, done: int, total: int) -> None:
        if done >= 2048 or (label == "ucb1" and done >= 8):
            raise KeyboardInterrupt

    first = compared(tmp_path, 5000, progress=stop)
    assert [(row.label, row.certificate.interval_kind) for row in first.entrants] == [("random-threshold", "sequence")]
    assert (first.interrupted, first.entrants[0].certificate.pairs) == (True, 2048)
    second = compared(tmp_path, 5000)
    alone = compared(None, 5000)
    assert [counted(row.certificate) for row in second.entrants] == [counted(row.certificate) for row in alone.entrants]
    assert [row.certificate.interval_kind for row in second.entrants] == ["sequence", "fixed"]
    assert second.table().count("*") == 2  # beside the interval, and where it is explained
    assert alone.table().count("*") == 0
    assert second.records()[0]["interval_kind"] == "sequence"
    elsewhere = bd.compare([POLICY], bd.Bernoulli([0.5, 0.7]), pairs=50, seed=3, out=tmp_path)
    assert elsewhere.entrants[0].certificate == bd.certify(POLICY, bd.Bernoulli([0.5, 0.7]), pairs=50, seed=3)
    assert len(list((tmp_path / "pairs").iterdir())) == 3
    grown = compared(tmp_path, 6000).entrants[0].certificate
    assert counted(grown) == counted(certified(None, 6000))


def test_a_comparison_that_finished_nothing_leaves_nothing(tmp_path: Path) -> None:
    def stop(label: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    assert compared(tmp_path, 5000, progress=stop).entrants == ()
    assert list(tmp_path.iterdir()) == []


def test_a_report_of_results_that_grew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from banditto.cli.app import run
    from banditto.report import comparison_report

    monkeypatch.setattr(
        comparison_report, "drawn_files", lambda *arguments: {}
    )  # pictures take long, and nothing grew in them
    command = [*("compare", "--means", "0.5,0.7", "--horizon", "1e6", "--rho", "0.1", "--policies", "random-threshold")]
    command += ["--out", str(tmp_path / "o")]
    assert run([*command, "--pairs", "100"]) == 0
    assert "This result grew" not in capfd.readouterr().out
    assert run([*command, "--pairs", "300"]) == 0
    assert "* This result grew" in capfd.readouterr().out
    assert run([*command, "--pairs", "200", "--json"]) == 0
    out, err = capfd.readouterr()
    assert "300 pairs are there already" in err
    assert json.loads(out)["policies"][0]["pairs"] == 300
    assert "pairs = 300" in (tmp_path / "o" / "study.toml").read_text()


# -- the command line ------------------------------------------------------------------------------------------------

CERTIFY = [*("certify", "random-threshold", "--means", "0.5,0.58", "--horizon", "1e6", "--rho", "0.1", "--seed", "3")]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_real_interrupts_leave_the_same_counts(tmp_path: Path) -> None:
    """Ctrl-C, then kill -9, then to the end."""
    path = tmp_path / FILE_NAME
    command = [*CERTIFY, "--pairs", "600_000", "--out", str(tmp_path), "--json"]
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        size = path.stat().st_size if path.exists() else 0
        running = subprocess.Popen(
            [sys.executable, "-m", "banditto", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        while running.poll() is None and not (path.exists() and path.stat().st_size > size + 3000):
            time.sleep(0.01)
        running.send_signal(number)
        out, err = running.communicate(timeout=600)
        assert running.returncode == code, err
        if number == signal.SIGINT:
            assert json.loads(out)["interrupted"]
            assert err.splitlines()[-1].endswith("pairs are kept, and the same command goes on from there")
            assert json.loads((tmp_path / "certificate.json").read_text()) == json.loads(out)
        else:
            assert (out, err) == ("", "")
    done = banditto(*command)
    printed = json.loads(done.stdout)
    assert (done.returncode, printed["pairs"], printed["interval_kind"]) == (0, 600_000, "sequence")
    whole = certified(None, 600_000).to_dict()
    for name in ("pairs", "mismatches", "regret", "first_divergence", "digest"):
        assert printed[name] == whole[name]


def test_conflicts_have_their_exit_code_and_one_line(tmp_path: Path) -> None:
    folder = str(tmp_path / "o")
    assert banditto(*CERTIFY, "--pairs", "500", "--out", folder).returncode == 0
    files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    other = banditto(*CERTIFY, "--noise-seed", "8", "--pairs", "500", "--out", folder, "--json")
    assert (other.returncode, other.stdout, other.stderr.count("\n")) == (4, "", 1)
    assert json.loads(other.stderr)["code"] == "conflict"
    assert "noise seed" in json.loads(other.stderr)["message"]
    assert {path.name: path.read_bytes() for path in Path(folder).iterdir()} == files
    fcntl = pytest.importorskip("fcntl", reason="locks are for systems that have fcntl")
    with (Path(folder) / FILE_NAME).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        busy = banditto(*CERTIFY, "--pairs", "900", "--out", folder)
    assert (busy.returncode, busy.stdout, busy.stderr.count("\n")) == (4, "", 1)
    assert "is in use by another process" in busy.stderr


def test_until_settled_on_the_command_line(tmp_path: Path) -> None:
    command = [*CERTIFY, "--until-settled", "--out", str(tmp_path), "--json"]
    first = banditto(*command, "--pairs", "20")
    assert (first.returncode, json.loads(first.stdout)["verdict"]) == (0, "CONSISTENT")
    done = banditto(*command)
    printed = json.loads(done.stdout)
    assert (done.returncode, printed["verdict"], printed["interval_kind"]) == (0, "PASS", "sequence")
    again = banditto(*command)
    assert {key: value for key, value in json.loads(again.stdout).items() if key != "created"} == {
        key: value for key, value in printed.items() if key != "created"
    }


def test_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "blocks.jsonl").write_bytes(b"my notes, without an end of line")
    with pytest.raises(ConflictError, match="is not a ledger"):
        bd.certify(bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.2), WORLD, pairs=10, out=tmp_path)
    assert (tmp_path / "blocks.jsonl").read_bytes() == b"my notes, without an end of line"


def test_a_file_system_without_locks_is_used_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fcntl = pytest.importorskip("fcntl", reason="locks are for systems that have fcntl")

    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    policy = bd.CertifiedElimination(arms=2, horizon=10**5, rho=0.2)
    assert bd.certify(policy, WORLD, pairs=10, out=tmp_path).pairs == 10
    assert "cannot be locked (No locks available)" in caplog.text


# -- systems without fcntl -------------------------------------------------------------------------------------------


@pytest.fixture
def _without_fcntl(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: the ledger leaves its lock to filelock, which has one of the system's own here, too."""
    pytest.importorskip("filelock")
    monkeypatch.setattr("banditto.engine.ledger.fcntl", None)


@pytest.mark.usefixtures("_without_fcntl")
def test_without_fcntl_two_at_once_are_refused_and_the_next_goes_on(tmp_path: Path) -> None:
    refusal = r"blocks\.jsonl is in use by another process: wait for it, or choose another folder$"
    with Ledger(tmp_path, {}, 4) as ledger:
        ledger.plan(4)
        ledger.append(0, PairCounts(pairs=4, regret=Moments(count=4, largest=0.0)))
        for _ in range(2):  # who was refused lets go of nothing
            with pytest.raises(ConflictError, match=refusal):
                Ledger(tmp_path, {}, 4)
    with Ledger(tmp_path, {}, 4) as ledger:
        assert ledger.pairs == 4
    path = tmp_path / FILE_NAME
    content = path.read_bytes()
    path.write_bytes(b"damaged\n")
    for _ in range(2):  # a ledger that cannot be read is let go of
        with pytest.raises(ConflictError, match="line 1 of .* is damaged"):
            Ledger(tmp_path, {}, 4)
    path.write_bytes(content)
    assert counted(certified(tmp_path / "o", 3000)) == counted(certified(None, 3000))
    assert counted(certified(tmp_path / "o", 5000)) == counted(certified(None, 5000))


@pytest.mark.usefixtures("_without_fcntl")
def test_without_fcntl_a_run_that_finished_nothing_leaves_no_blocks(tmp_path: Path) -> None:
    with Ledger(tmp_path, {}, 4) as ledger:
        ledger.plan(4)
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.usefixtures("_without_fcntl")
def test_without_fcntl_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from banditto.engine import ledger;"
        "ledger.fcntl = None; held = ledger.Ledger(Path(sys.argv[1]), {}, 4); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConflictError, match="is in use by another process"):
            Ledger(tmp_path, {}, 4)
        holder.kill()
        holder.wait(timeout=60)
        with Ledger(tmp_path, {}, 4) as ledger:
            assert ledger.pairs == 0


@pytest.mark.usefixtures("_without_fcntl")
def test_without_fcntl_a_folder_that_cannot_be_locked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import filelock

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with pytest.raises(InvalidArgument, match=r"^out: got .*a folder whose files can be locked \(No locks available\)"):
        certified(tmp_path, 10)


@pytest.mark.parametrize(
    ("hidden", "allowed"),
    [
        (["fcntl"], "none on this system, which cannot lock files"),
        (["fcntl", "filelock"], "none until filelock is installed, to lock it"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has locks without fcntl")
def test_who_cannot_lock_is_refused_in_one_line(hidden: list[str], allowed: str, tmp_path: Path) -> None:
    """`import fcntl` fails for filelock as well, which would make do with a file that outlives a crash."""
    pytest.importorskip("filelock")
    code = f"import sys; sys.modules.update(dict.fromkeys({hidden})); from banditto.cli import main; sys.exit(main())"
    folder = tmp_path / "o"
    command = [sys.executable, "-c", code, *CERTIFY, "--pairs", "100"]
    done = subprocess.run([*command, "--out", str(folder)], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert allowed in done.stderr
    assert list(folder.glob("*")) == []
    if "filelock" in hidden:  # without --out nothing is locked
        assert subprocess.run(command, capture_output=True, timeout=120, check=False).returncode in (0, 3)
