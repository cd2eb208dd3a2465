"""Files that verbs write: their modes, and what they must not replace."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import banditto as bd
from banditto.cli import main
from banditto.core.errors import InvalidArgument
from banditto.core.output_files import write_together
from banditto.core.own_files import check_folder, check_place, is_own

Run = Callable[..., tuple[int, str, str]]
STORE = ("--store", "sqlite:///trial.db")
PLAN = ("plan", "explore-then-commit", "--arms", "2", "--gap", "0.4", "--rho", "0.4", "--quiet")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in a folder with a small trial; what comes back is the exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BANDITTO_STORE", raising=False)
    policy = bd.RandomThreshold(arms=2, horizon=100, rho=0.9, sigma=0.1, rewards="gaussian")
    with bd.Experiment.open("sqlite:///trial.db", "cta", policy.protocol(seed=7)) as trial:
        trial.ask(3)

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(words))
        out, err = capsys.readouterr()
        return int(str(stop.value.code or 0)), out, err

    return call


@pytest.fixture
def masked() -> Iterator[Callable[[int], None]]:
    """Set the umask for one test."""
    before = os.umask(0o022)
    yield lambda mask: [os.umask(mask)].clear()
    os.umask(before)


def mode(name: str) -> int:
    return stat.S_IMODE(Path(name).stat().st_mode)


@pytest.mark.parametrize(("mask", "wanted"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_new_files_follow_the_umask(run: Run, masked: Callable[[int], None], mask: int, wanted: int) -> None:
    masked(mask)
    assert run("export", "cta", *STORE, "--save", "tickets.csv", "--quiet")[0] == 0
    assert run(*PLAN, "--save", "plan.toml")[0] == 0
    assert (mode("tickets.csv"), mode("plan.toml")) == (wanted, wanted)


def test_a_replaced_file_keeps_its_mode(run: Run, masked: Callable[[int], None]) -> None:
    masked(0o022)
    for kept in (0o600, 0o640, 0o666):
        for words in (("export", "cta", *STORE, "--quiet", "--save", "tickets.csv"), (*PLAN, "--save", "plan.toml")):
            assert run(*words)[0] == 0
            Path(words[-1]).chmod(kept)
            assert run(*words)[0] == 0
            assert mode(words[-1]) == kept
            Path(words[-1]).unlink()


def test_reports_follow_the_umask(tmp_path: Path, masked: Callable[[int], None]) -> None:
    masked(0o027)
    write_together(tmp_path, {"report.html": "a", "figures/a.svg": b"b"})
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("report.html", "figures/a.svg")} == {0o640}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.svg", "figures", "report.html"]


@pytest.mark.parametrize("name", ["trial.db-wal", "trial.db-shm", "trial.db-journal"])
@pytest.mark.parametrize("force", [(), ("--overwrite",)])
def test_nothing_of_a_store_is_replaced(run: Run, name: str, force: tuple[str, ...]) -> None:
    """Even while it is closed and these files are not there: SQLite would take what is written for its own."""
    with contextlib.closing(sqlite3.connect("trial.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE other (x)")
        database.commit()
        before = {path.name: path.read_bytes() for path in Path().glob("trial.db*")}
        for target in (name, "link.csv"):
            Path("link.csv").unlink(missing_ok=True)
            Path("link.csv").symlink_to(name)
            code, out, err = run("export", "cta", *STORE, "--save", target, *force)
            assert (code, out) == (2, "")
            assert err.startswith(
                f"banditto: error: --save: got {target}, allowed: a file that is no part of a database"
            )
        assert {path.name: path.read_bytes() for path in Path().glob("trial.db*")} == before


def test_logs_of_databases_are_known_by_content(run: Run) -> None:
    with contextlib.closing(sqlite3.connect("trial.db")) as database:
        database.execute("CREATE TABLE other (x)")
        database.commit()
        Path("copied.csv").write_bytes(Path("trial.db-wal").read_bytes())
    Path("rolled.csv").write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(100))
    for name in ("copied.csv", "rolled.csv"):
        assert run("export", "cta", *STORE, "--save", name, "--overwrite")[0] == 2


def test_a_plan_does_not_replace_a_database(run: Run) -> None:
    Path("trial.toml").write_bytes(Path("trial.db").read_bytes())
    code, _, err = run(*PLAN, "--save", "trial.toml", "--overwrite")
    assert code == 2
    assert err.startswith("banditto: error: --save: got trial.toml, allowed: a file that is not a database")


WRITERS = {
    "export": (("export", "cta", *STORE, "--quiet", "--save"), "notes.csv"),
    "html": (("export", "cta", *STORE, "--quiet", "--format", "html", "--save"), "notes.html"),
    "json": (("export", "cta", *STORE, "--quiet", "--format", "json", "--save"), "notes.json"),
    "parquet": (("export", "cta", *STORE, "--quiet", "--format", "parquet", "--save"), "notes.parquet"),
    "plan": ((*PLAN, "--save"), "notes.toml"),
    "png": (("design", "arms.csv", "--quiet", "--figure"), "notes.png"),
    "svg": (("design", "arms.csv", "--quiet", "--figure"), "notes.svg"),
}


@pytest.mark.parametrize("which", WRITERS)
def test_only_own_files_are_replaced_unless_told_otherwise(run: Run, which: str) -> None:
    """Somebody's file stays; what banditto wrote is replaced without a word."""
    words, name = WRITERS[which]
    Path("arms.csv").write_text("1,0\n0,1\n0.6,0.6\n")
    Path(name).write_text("what I must not forget")
    option = words[-1]
    code, out, err = run(*words, name)
    allowed = "a new file, or one that banditto made; --overwrite replaces any other"
    assert (code, out, err) == (2, "", f"banditto: error: {option}: got {name}, allowed: {allowed}\n")
    assert Path(name).read_text() == "what I must not forget"
    assert run(*words, name, "--overwrite")[0] == 0
    assert b"forget" not in Path(name).read_bytes()
    assert is_own(Path(name))
    assert run(*words, name)[0] == 0
    Path(name).write_text("")
    assert run(*words, name)[0] == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"version": 2, "x": "y"}'),
        ("a.csv", "name,ticket\n"),
        ("a.html", "<html>banditto</html>"),
        ("a.toml", 'x = "# banditto protocol, sha256 "\n'),
        ("a.parquet", "PAR1 ticket"),
        ("a.svg", "<svg></svg>"),
    ],
)
def test_other_files_are_not_taken_for_ours(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert not is_own(tmp_path / name)


def test_a_calibrated_protocol_is_ours(tmp_path: Path) -> None:
    protocol = bd.CertifiedElimination(arms=2, horizon=2_000, rho=0.3).protocol(seed=7)
    (tmp_path / "p.toml").write_text(f"# calibrated, not certified: 3 attacks\n{protocol.to_toml()}")
    assert is_own(tmp_path / "p.toml")


def test_folders_of_reports(tmp_path: Path) -> None:
    """A folder with somebody's table of a report's name is refused; with an earlier report it is written anew."""
    names = ("results.json", "log.csv", "figures/a.png")
    check_folder(tmp_path, names, overwrite=False)
    (tmp_path / "log.csv").write_text("arm,reward\n1,1\n")
    with pytest.raises(InvalidArgument, match=r"^out: got .*log.csv, allowed: a folder without such a file"):
        check_folder(tmp_path, names, overwrite=False)
    check_folder(tmp_path, names, overwrite=True)
    (tmp_path / "results.json").write_text('{\n  "schema_version": 3}')
    check_folder(tmp_path, names, overwrite=False)
    (tmp_path / "results.json").write_text('{"mine": 3}')
    with pytest.raises(InvalidArgument, match=r"^out: got .*results.json"):
        check_folder(tmp_path, names, overwrite=False)
    (tmp_path / "log.csv").write_bytes(b"SQLite format 3\0")
    with pytest.raises(InvalidArgument, match="a file that is not a database"):
        check_folder(tmp_path, names, overwrite=True)


def test_attack_keeps_somebodys_protocol(run: Run) -> None:
    Path("out").mkdir()
    Path("out/protocol.toml").write_text("mine = 1\n")
    words = ("attack", "random-threshold", "--arms", "2", "--horizon", "1e5", "--rho", "0.3", "--out", "out")
    code, _, err = run(*words)
    assert code == 2
    assert "--overwrite replaces it" in err
    assert Path("out/protocol.toml").read_text() == "mine = 1\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_read_only_files_stay(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "a.csv").chmod(0o444)
    with pytest.raises(InvalidArgument, match="read-only"):
        check_place(tmp_path / "a.csv", "out", overwrite=True)
