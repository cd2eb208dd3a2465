"""Names, reasons and ids that people write: composed, trimmed, visible, and not to be mistaken for each other."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import banditto as bd
from banditto.cli import main
from banditto.core.errors import InvalidArgument
from banditto.live.checked_words import checked_arm_names, checked_request, checked_text
from banditto.live.export import safe_cell
from banditto.live.registration import Registration, RewardRange
from tests.live.worlds import small, small_policy

UNSEEN = ["a\tb", "a\nb", "a\x1b[31m", "a\u200bb", "a\u202eb", "a\u2066b", "a\ue000", "a\udc80", "a\u0378", "a\u2028b"]


@pytest.mark.parametrize("text", UNSEEN)
def test_what_cannot_be_seen_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="^reason: got") as caught:
        checked_text(text, "reason", 2000)
    assert str(caught.value).isprintable()
    with pytest.raises(InvalidArgument, match="^request_id: got"):
        checked_request(text)
    with pytest.raises(InvalidArgument, match="^arm_names: got"):
        small(arm_names=[text, "b"])


def test_text_is_composed_and_trimmed() -> None:
    assert checked_text("  cafe\u0301 \n", "reason", 2000) == "caf\u00e9"
    assert checked_request(" r1 ") == "r1"
    assert small(arm_names=[" re\u0301d", "blue "]).arm_names == ("r\u00e9d", "blue")
    for empty in ("", "  ", "\n"):
        with pytest.raises(InvalidArgument):
            checked_text(empty, "reason", 2000)
    with pytest.raises(InvalidArgument):
        checked_text("x" * 2001, "reason", 2000)


def test_a_request_is_the_same_however_its_letters_are_composed(tmp_path: Path) -> None:
    with bd.Experiment.open(f"sqlite:///{tmp_path}/t.db", "cta", small()) as trial:
        first = [ticket.id for ticket in trial.ask(2, request_id="caf\u00e9")]
        assert [ticket.id for ticket in trial.ask(2, request_id="cafe\u0301 ")] == first


@pytest.mark.parametrize(
    "names",
    [
        ["Red", "red"],
        ["\uff21", "A"],
        ["stra\u00dfe", "STRASSE"],
        ["a ", " a"],
        ["\ufb01x", "fix"],
        ["caf\u00e9", "cafe\u0301"],
    ],
)
def test_names_that_look_alike_are_refused(names: list[str]) -> None:
    with pytest.raises(InvalidArgument, match="^arm_names: got .*, allowed: different names$"):
        small(arm_names=names)


def test_other_names_are_not(tmp_path: Path) -> None:
    assert checked_arm_names(["B1", "B2", "\u0431", "na\u00efve", "\U0001f600"], 200)[4] == "\U0001f600"
    assert small(arm_names=None).arm_names == ("0", "1")


def test_old_registrations_are_what_they_were() -> None:
    """They are not normalised when they are read: their digest stands in every event."""
    old = Registration(
        protocol=small_policy().protocol(seed=7), arm_names=("Red", "red "), rewards=RewardRange(low=0, high=1)
    )
    read = Registration.from_json(old.to_json())
    assert read.arm_names == ("Red", "red ")
    assert read.digest == old.digest


@pytest.mark.parametrize("name", ["one.toml", "baseline.toml"])
def test_a_thousand_million_arms_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """`init` made a name for each of them until there was no memory left."""
    monkeypatch.chdir(tmp_path)
    one = bd.OneCut(arms=2, horizon=3000, rho=0.3, gap=0.3).protocol(seed=7)
    baseline = bd.UCB1().protocol(seed=1, arms=2, horizon=10**6, rho=0.1)
    for arms in (10**9, 500_000):
        for file, protocol in (("one.toml", one), ("baseline.toml", baseline)):
            Path(file).write_text(protocol.to_toml().replace("arms = 2", f"arms = {arms}"))
        with pytest.raises(SystemExit) as stop:
            main(["init", name, "--store", "sqlite:///t.db", "--name", "x"])
        err = capsys.readouterr().err
        assert (stop.value.code, err.count("\n")) == (2, 1)
        assert "arms: got" in err


def test_rewards_above_2_to_the_53_are_exact_or_refused() -> None:
    ends = RewardRange(low=0, high=1e17)
    assert ends.checked(2**53 + 2) == 2.0**53 + 2
    with pytest.raises(InvalidArgument, match="^reward: got 9007199254740993, allowed: .*2\\^53"):
        ends.checked(2**53 + 1)
    assert ends.checked_sum(2**53 + 1, 10) == 2**53 + 1


def test_cells_of_exports_hide_nothing() -> None:
    """Old logs may have such reasons, and everything is exported."""
    text = io.StringIO()
    csv.writer(text).writerow(
        [safe_cell("lost\x1b[2J\u202e\nagain"), safe_cell("=1+1"), safe_cell("\tx"), safe_cell(0.5)]
    )
    assert text.getvalue() == "lost\\x1b[2J\\u202e\\nagain,'=1+1,'\\tx,0.5\r\n"
