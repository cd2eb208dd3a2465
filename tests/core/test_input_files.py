"""Files that somebody names: bounded, regular, and parsed in one line or refused in one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import banditto as bd
from banditto.cli.ask_tell import read_rewards, read_totals
from banditto.core.errors import InvalidArgument, shown
from banditto.core.exact import integer, real
from banditto.core.input_files import Unreadable, parsed_json, parsed_toml, read_text, sized, text_lines
from banditto.core.text import escape, visible
from banditto.geometry.actions.action_reading import load_set
from banditto.geometry.actions.finite import FiniteActions
from banditto.measure.study_file import StudyFile
from banditto.problems.environments.discrete import Discrete

READERS = {
    "protocol": (bd.Protocol.load, ".toml"),
    "protocol as JSON": (bd.Protocol.load, ".json"),
    "study": (lambda path: StudyFile.load(str(path)), ".toml"),
    "actions": (FiniteActions.load, ".csv"),
    "action set": (load_set, ".json"),
    "discrete": (lambda path: Discrete.load(str(path)), ".json"),
    "log": (bd.RewardLog.read, ".csv"),
    "parquet": (bd.RewardLog.read, ".parquet"),
    "told rewards": (read_rewards, ".csv"),
    "told totals": (read_totals, ".csv"),
    "exported log": (lambda path: bd.analyse(path), ".json"),
}


@pytest.mark.parametrize("which", READERS)
def test_devices_pipes_and_directories_are_refused_at_once(tmp_path: Path, which: str) -> None:
    """A device that never ends filled the memory, a pipe waited for ever."""
    read, suffix = READERS[which]
    device, pipe, folder = (tmp_path / f"{name}{suffix}" for name in ("device", "pipe", "folder"))
    device.symlink_to("/dev/zero")
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (device, pipe, folder):
        begun = time.monotonic()
        with pytest.raises(InvalidArgument) as caught:
            read(path)
        assert "\n" not in str(caught.value)
        assert time.monotonic() - begun < 20


@pytest.mark.parametrize("which", READERS)
def test_huge_files_are_refused_before_they_are_read(tmp_path: Path, which: str) -> None:
    read, suffix = READERS[which]
    path = tmp_path / f"huge{suffix}"
    with path.open("wb") as file:
        file.truncate(2 * 2**40)  # of zeros that take no room on the disk
    with pytest.raises(InvalidArgument, match="at most"):
        read(path)


def test_what_is_open_already_may_be_a_pipe(tmp_path: Path) -> None:
    """The shell's <(...) and /dev/stdin go on working."""
    code = "from banditto.core.input_files import read_text; print(read_text('/dev/stdin', 5))"
    done = subprocess.run([sys.executable, "-c", code], input="abcd", capture_output=True, text=True, check=False)
    assert done.stdout == "abcd\n"
    done = subprocess.run([sys.executable, "-c", code], input="abcdef", capture_output=True, text=True, check=False)
    assert "Unreadable: at most 5 bytes" in done.stderr


def test_bounds_are_exact(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("äb\n")
    assert read_text(path, 4) == "äb\n"
    with pytest.raises(Unreadable, match="^4 bytes, at most 3 bytes$"):
        read_text(path, 3)
    path.write_bytes(b"\xff")
    with pytest.raises(Unreadable, match="no UTF-8"):
        read_text(path, 3)
    with pytest.raises(Unreadable, match="No such file"):
        read_text(tmp_path / "nowhere", 3)
    with pytest.raises(Unreadable, match="null"):
        read_text("a\0b", 3)
    path.write_text("\ufeffa,b\n" + "c" * (2**20 + 1))
    lines = text_lines(path, 2**30)
    assert next(lines) == "a,b\n"
    with pytest.raises(Unreadable, match="a line of more than 1,048,576 characters"):
        next(lines)
    assert [sized(n) for n in (1, 2048, 64 * 2**20, 4 * 2**30)] == ["1 bytes", "2 KiB", "64 MiB", "4 GiB"]


# -- nesting -----------------------------------------------------------------------------------------------------------


def protocol_text() -> str:
    return bd.OneCut(arms=2, horizon=3000, rho=0.3, gap=0.3).protocol(seed=7).to_toml()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("keys.toml", ".".join("a" * 50_000) + " = 1\n"),  # it took minutes
        ("quoted.toml", ".".join(['"a"'] * 50_000) + " = 1\n"),
        ("inline.toml", "x = {" + ".".join("a" * 50_000) + " = 1}\n"),
        ("tables.toml", protocol_text() + "\n[settings." + ".".join("a" * 5000) + "]\nb = 1\n"),  # RecursionError
        ("lists.toml", "x = " + "[" * 5000 + "]" * 5000 + "\n"),
        ("lists.json", "[" * 200_000),
        ("objects.json", '{"a":' * 100_000),
    ],
)
def test_deep_protocols_are_one_line(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    begun = time.monotonic()
    with pytest.raises(InvalidArgument, match="^protocol: got ") as caught:
        bd.Protocol.load(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert time.monotonic() - begun < 20


def test_deep_settings_are_one_line() -> None:
    deep: object = 1
    for _ in range(500):
        deep = {"a": deep}
    plain = bd.OneCut(arms=2, horizon=3000, rho=0.3, gap=0.3).protocol(seed=7).to_dict()
    with pytest.raises(InvalidArgument, match="^settings: got tables in tables, allowed: at most 64"):
        bd.Protocol.from_dict({**plain, "settings": deep})
    for _ in range(5000):
        deep = {"a": deep}
    assert shown(deep) == "something that is nested too deep"
    with pytest.raises(InvalidArgument, match="^policies: got"):
        StudyFile.of({"policies": [deep]})


def test_ordinary_files_are_parsed_as_before() -> None:
    text = 'a.b.c = 1\n[x.y]\n"q.r" = "' + "." * 200 + '"\nz = [0.1, 0.2, 1.5]\nw = "' + "a." * 40 + '"\n'
    assert parsed_toml(text)["a"] == {"b": {"c": 1}}
    assert parsed_json('{"a": 1}') == {"a": 1}
    begun = time.monotonic()
    parsed_toml('x = "' + "a" * 10**6 + '"\n')  # the check takes no longer than the parser
    assert time.monotonic() - begun < 10


def test_long_lists_are_not_written_out_for_a_message() -> None:
    assert shown([1] * 10**6).startswith("[1, 1, 1")
    assert len(shown([1] * 10**6)) <= 80


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"), [("arms", 10**9), ("horizon", 10**19), ("seed", 2**128), ("decision_version", 10**7)]
)
def test_numbers_of_a_protocol_have_ends(key: str, value: int) -> None:
    plain = bd.OneCut(arms=2, horizon=3000, rho=0.3, gap=0.3).protocol(seed=7).to_dict()
    with pytest.raises(InvalidArgument, match=f"^{key}: got .*, allowed: an integer of at most"):
        bd.Protocol.from_dict({**plain, key: value})


def test_seeds_of_any_size_are_exact() -> None:
    protocol = bd.OneCut(arms=2, horizon=3000, rho=0.3, gap=0.3).protocol(seed=2**127 + 1)
    assert bd.Protocol.from_toml(protocol.to_toml()).seed == 2**127 + 1
    assert bd.Protocol.from_json(protocol.to_json()).seed == 2**127 + 1
    assert integer("9007199254740993", "seed", 0, 2**128) == 2**53 + 1


def test_integers_above_2_to_the_53_are_exact_or_refused() -> None:
    for value in (2**53 + 1, str(2**53 + 1), -(2**53) - 1, f"+{2**53 + 1}", "9_007_199_254_740_993"):
        with pytest.raises(InvalidArgument, match="2\\^53"):
            real(value, "reward")
    for exact in (2**53, 2**53 + 2, str(2**60), "1e300", 1e300, 10**22, "0.1"):
        assert real(exact, "reward") == float(exact)
    with pytest.raises(InvalidArgument, match="^seed: got"):
        integer(float(2**53 + 2), "seed", 0, 2**128)  # as TOML's 9007199254740993.0 would become
    assert integer(1e15, "horizon", 1, 10**15) == 10**15


def test_logged_rewards_above_2_to_the_53_are_refused() -> None:
    rows = [("a", str(2**53 + 1)), ("b", "1")]
    with pytest.raises(InvalidArgument, match="^rewards: got 9007199254740993 in row 1"):
        bd.RewardLog.of(rows, low=0, high=1e17)
    assert bd.RewardLog.of([("a", 2**53), ("b", "1e16")], low=0, high=1e17).rewards == ((2.0**53,), (1e16,))


# -- what cannot be seen -----------------------------------------------------------------------------------------------


def test_what_cannot_be_seen_is_written_as_an_escape() -> None:
    assert visible("caf\u00e9 \u202e\x1b[2J\u200b\n") == "caf\u00e9 \\u202e\\x1b[2J\\u200b\\n"
    assert escape("<b>\x00\u2066\n") == "&lt;b&gt;\\x00\\u2066\n"
