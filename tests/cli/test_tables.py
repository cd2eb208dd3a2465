"""Every verb that prints a table, on terminals of 60, 80 and 140 columns: no line is too long, no number is broken."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path
from threading import Thread
from unittest import mock

import pytest

from banditto.cli import main
from banditto.cli.output import columns_of
from banditto.cli.verbs import VERBS
from banditto.core.text import fitted, html_table, text_table
from tests.commands import banditto

pytestmark = pytest.mark.slow

ARMS = ("--means", "0.8,0.4", "--horizon", "1e5", "--rho", "0.3", "--pairs", "40")
STORE = ("--store", "sqlite:///trial.db")
LONG = "a rather long name of an arm, such as people give to the versions of a page"
FILES = {
    "actions.csv": "1,0\n0.6,0.6\n0,1\n",
    "log.csv": "arm,reward\n" + "".join(f"{'ABC'[i % 3]},{int(i * 7 % 10 < 6 - i % 3)}\n" for i in range(600)),
    "fitting_arms.py": "def worse(rng): return rng.random() < 0.4\ndef better(rng): return rng.random() < 0.7\n",
}
# how live experiments come about that the commands below look at: two runs of one protocol, which part
BEFORE = (
    (*("plan", "--arms", "2", "--gap", "0.3", "--rho", "0.3", "--seed", "0", "--save", "plan.toml"),),
    *(
        ("init", "plan.toml", *STORE, "--name", name, "--arm-names", arms)
        for name, arms in (("cta", "A,B"), ("one", "A,B"), ("two", "A,B"), ("long", f"{LONG.replace(',', '')},B"))
    ),
    ("ask", "cta", *STORE, "-n", "4", "--request-id", "r1"),
    ("tell", "one", *STORE, "--totals", "first.csv"),
    ("tell", "two", *STORE, "--totals", "second.csv"),
)
TOTALS = {"first.csv": (27, 8), "second.csv": (8, 27)}
COMMANDS = {
    "select": ("select", "a=fitting_arms:worse", "b=fitting_arms:better", "--gap", "0.3", "--rho", "0.3"),
    "compare": ("compare", *ARMS, "--policies", "random-threshold,ucb1,batched-elimination", "--rounds", "1e4"),
    "compare a log": ("compare", "--log", "log.csv", *ARMS[2:], "--policies", "random-threshold"),
    "certify": ("certify", "random-threshold", *ARMS),
    "certify a log": ("certify", "random-threshold", "--log", "log.csv", *ARMS[2:]),
    "plan": ("plan", "--arms", "2", "--gap", "0.3", "--rho", "0.3"),
    "plan a winner": ("plan", "--arms", "2", "--gap", "0.3", "--rho", "0.3", "--same", "winner"),
    "attack": (*("attack", "random-threshold", "--arms", "2", *ARMS[2:6]), "--pairs-budget", "1000"),
    "calibrate": (*("calibrate", "random-threshold", "--arms", "2", *ARMS[2:6]), "--pairs-budget", "1000"),
    "design": ("design", "actions.csv", "--pulls", "1000"),
    "replay": ("replay", "random-threshold", "--log", "log.csv", "--horizon", "300", "--rho", "0.3"),
    "reproduce": ("reproduce", "--quick", "--only", "lemma-7-design"),
    "policies": ("policies",),
    "doctor": ("doctor",),
    "ask": ("ask", "cta", *STORE, "-n", "4", "--request-id", "r1"),
    "status": ("status", "one", *STORE),
    "status of long names": ("status", "long", *STORE),
    "pending": ("pending", "cta", *STORE),
    "analyse": ("analyse", "one", *STORE),
    "verify": ("verify", "one", *STORE),
    "replicate": ("replicate", "sqlite:///trial.db#one", "sqlite:///trial.db#two"),
    "token": ("token", "list", *STORE),
}
SLOW = ("calibrate", "doctor", "plan", "plan a winner", "reproduce")
SPEAK_IN_SENTENCES = {"correct", "export", "init", "missing", "serve", "stop", "tell"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("tables")
    for name, text in FILES.items():
        (path / name).write_text(text)
    for name, totals in TOTALS.items():
        lines = [f"1,{arm},34,{total}\n" for arm, total in zip("AB", totals, strict=True)]
        (path / name).write_text("batch,arm,count,total\n" + "".join(lines))
    for words in BEFORE:
        done = banditto(*words, cwd=path)
        assert done.returncode == 0, done.stderr
    yield path
    sys.modules.pop("fitting_arms", None)


def on_a_terminal(columns: int, *arguments: str, cwd: Path) -> str:
    """Run a command in this process with a real terminal of so many columns as its stdout; return what it shows."""
    terminal, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # how a terminal ends
            while part := os.read(terminal, 4096):
                shown.append(part)

    reader = Thread(target=read)
    reader.start()
    variables = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with (
        chdir(cwd),
        os.fdopen(its_end, "w", encoding="utf-8") as stream,
        mock.patch.dict(os.environ, variables, clear=True),
        mock.patch.object(sys, "stdout", stream),
        mock.patch.object(sys, "argv", ["banditto", *arguments]),
        suppress(SystemExit),
    ):
        main(arguments)
    reader.join()
    os.close(terminal)
    return b"".join(shown).decode().replace("\r\n", "\n")


def numbers(text: str) -> Counter[str]:
    """The words with a digit in them, but for digests, which may be broken, and seconds, which vary."""
    steady = re.sub(r"\([\d.]+ s\)", "", text)
    return Counter(word for word in steady.split() if any(map(str.isdigit, word)) and len(word) <= 32)


CASES = [pytest.param(name, (60,) if name in SLOW else (60, 80, 140), id=name) for name in COMMANDS] + [
    pytest.param(name, (80, 140), id=f"{name}, wider", marks=pytest.mark.long) for name in SLOW
]


@pytest.mark.parametrize(("name", "widths"), CASES)
def test_tables_fit_the_terminal(name: str, widths: tuple[int, ...], folder: Path) -> None:
    words = COMMANDS[name]
    whole = banditto(*words, cwd=folder)
    assert whole.returncode in (0, 3), whole.stderr
    for columns in widths:
        shown = on_a_terminal(columns, *words, cwd=folder)
        assert shown.strip(), columns
        long = [line for line in shown.splitlines() if len(line) > columns and " " in line.strip()]
        assert not long, shown  # a single word, such as a digest in a sentence, stays whole
        missing = numbers(whole.stdout) - numbers(shown)
        assert not missing, (columns, missing, shown)


def test_every_verb_is_looked_at() -> None:
    assert {words[0] for words in COMMANDS.values()} == set(VERBS) - SPEAK_IN_SENTENCES


def test_a_pipe_gets_whole_rows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever COLUMNS says: programs read them."""
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, banditto("policies", cwd=folder).stdout.splitlines())) > 140


def test_columns_win_over_the_terminal() -> None:
    terminal, its_end = pty.openpty()
    with os.fdopen(its_end, "w") as stream:
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 90, 0, 0))
        for given, wanted in (("50", 50), ("", 90), ("0", 90), ("wide", 90)):
            with mock.patch.dict(os.environ, {"COLUMNS": given}):
                assert columns_of(stream) == wanted
    os.close(terminal)


HEADER = ("policy", "what it does", "regret")
ROWS = [("certified-elimination", "a long sentence with many words in it that has to be wrapped", "1,234,567")]


def test_cells_are_wrapped_and_numbers_are_not() -> None:
    with fitted(50):
        lines = text_table(HEADER, ROWS, "llr").splitlines()
    assert max(map(len, lines)) <= 50
    assert sum("1,234,567" in line for line in lines) == 1
    assert len(lines) > 3


def test_too_narrow_a_table_becomes_blocks() -> None:
    with fitted(24):
        text = text_table(HEADER, [*ROWS, ("ucb1", "", "7")], "llr")
    first, second = text.split("\n\n")
    assert first.splitlines()[0].split() == ["policy", "certified-"]
    assert second.splitlines() == ["policy      ucb1", "regret      7"]


def test_a_column_without_content_is_left_out() -> None:
    rows = [("a", "-", 1), ("b", "", 2)]
    assert text_table(("x", "nothing", "y"), rows).splitlines()[0] == "x  y"
    assert "nothing" not in html_table(("x", "nothing", "y"), rows)
    assert "nothing" in text_table(("x", "nothing", "y"), [])
