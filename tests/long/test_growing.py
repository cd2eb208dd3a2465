"""Two million pairs on one core, interrupted twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from banditto.engine.ledger import FILE_NAME

pytestmark = pytest.mark.long

PAIRS = 2 * 10**6  # the second is for the time it takes to interrupt it
COMMAND = [
    *("certify", "certified-elimination", "--means", "0.9,0.8,0.7", "--horizon", "1e6", "--rho", "0.1", "--seed", "5"),
    *("--pairs", str(PAIRS), "--jobs", "1", "--json"),
]


def started(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "banditto", *COMMAND, "--out", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def blocks_in(folder: Path) -> int:
    path = folder / FILE_NAME
    return path.read_bytes().count(b'"block":') if path.exists() else 0


def test_two_million_pairs_interrupted_twice_are_those_of_one_run(tmp_path: Path) -> None:
    """Ctrl-C and kill -9, each at a random block; the ledger and the certificate are then compared bit for bit."""
    generator = random.Random(2024)
    whole = started(tmp_path / "whole")
    out, err = whole.communicate(timeout=600)
    assert whole.returncode == 0, err
    alone: dict[str, Any] = json.loads(out)
    assert (alone["pairs"], alone["interval_kind"], alone["verdict"]) == (PAIRS, "fixed", "PASS")
    folder = tmp_path / "stopped"
    reached = 0
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        aim = reached + generator.randrange(20, 200)
        running = started(folder)
        while running.poll() is None and blocks_in(folder) < aim:
            time.sleep(0.005)
        running.send_signal(number)
        out, err = running.communicate(timeout=600)
        assert running.returncode == code, err
        assert reached < blocks_in(folder) < PAIRS // 2048
        reached = blocks_in(folder)
    last = started(folder)
    out, err = last.communicate(timeout=600)
    assert last.returncode == 0, err
    grown: dict[str, Any] = json.loads(out)
    for name in ("pairs", "mismatches", "agreement", "regret", "first_divergence", "digest", "verdict"):
        assert grown[name] == alone[name], name
    assert grown["interval_kind"] == "sequence"  # Ctrl-C has shown a result on the way
    kept = [(tmp_path / name / FILE_NAME).read_text().splitlines() for name in ("whole", "stopped")]
    first, second = ([line.partition(',"check"')[0] for line in lines if '"block":' in line] for lines in kept)
    assert first == second
    assert len(first) == -(-PAIRS // 2048)
