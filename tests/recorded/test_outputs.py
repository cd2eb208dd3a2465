"""What every verb prints is what it printed when it was recorded, but for machine and time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from banditto.cli.verbs import VERBS
from tests.recorded.commands import OUTPUTS, STORY, told

RECORDED: dict[str, Any] = json.loads(OUTPUTS.read_text())


def same(found: Any, wanted: Any) -> bool:
    """Equal, with floats to nine digits: the last ones may depend on the mathematical library."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict) and found.keys() == wanted.keys() and all(same(found[k], wanted[k]) for k in wanted)
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, float):
        return isinstance(found, float) and found == pytest.approx(wanted, rel=1e-9, abs=1e-15)
    return bool(found == wanted)


def test_every_command_answers_as_recorded() -> None:
    assert set(RECORDED) == set(STORY)
    answers = told()
    different = {
        command: (answers[command], RECORDED[command])
        for command in STORY
        if not same(answers[command], RECORDED[command])
    }
    assert not different, "\n".join(
        f"{command}\n  found    {a}\n  recorded {b}" for command, (a, b) in different.items()
    )


def test_every_verb_is_recorded() -> None:
    others = {"serve", "token"}  # one serves for ever, the other draws secrets: tests/service has them
    assert {line.split()[0] for line in STORY} == set(VERBS) - others


def test_the_comparison_sees_a_changed_digit_a_missing_key_and_a_longer_list() -> None:
    wanted = {"a": [1.0, 2], "b": "x"}
    assert same({"a": [1.0 + 1e-12, 2], "b": "x"}, wanted)
    for other in (
        {"a": [1.0 + 1e-6, 2], "b": "x"},
        {"a": [1.0, 2]},
        {"a": [1.0, 2, 3], "b": "x"},
        {"a": [1, 2], "b": "x"},
    ):
        assert not same(other, wanted)
