"""Words for people: what the columns of a description and the terms of a guarantee mean.

In JSON, columns and terms keep their short names; tables show these instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# two columns of a description that are the ends of a range, and the heading of the one that shows both
_RANGES: Final = {
    ("commit low", "commit high"): "commit to a leader ahead by more than",
    ("low", "high"): "drop an arm behind by more than",
    ("cut low", "cut high"): "choose a leader ahead by more than",
    ("window low", "window high"): "default is behind by at most",
}
_UNDECIDED: Final = "gaps that the offset decides"
_HEADINGS: Final = {
    "R": "lead by luck (R)",
    "E": "noise between runs (E)",
    "eps": "accuracy (eps)",
    "rho": "share of rho",
    "cell": "width of a grid cell",
    "cut": "drop if rounded mean is behind by more than",
    "so far": "per arm so far",
    "margin": "margin beyond the cut",
    "default margin": "margin for the default",
}
_KEYS: Final = {
    "R": "R: a worse arm leads by more than this with next to no probability.",
    "E": "E: how far apart the same lead is in two runs, on average, at the most.",
    "cell": "Means are rounded to a grid whose offset a shared coin draws.",
}
_DRAWN: Final = "Where there is a range, a shared coin draws the number from it, the same for both runs."
# why two runs may differ, by the name of the term that bounds it
TERMS: Final = {
    "good event": "an estimate is further off than the proof allows for",
    "elimination": "one run drops an arm that the other keeps",
    "commit": "one run commits to its leader, the other does not",
    "final choice": "the runs choose different arms at the end",
    "cut": "one run's lead is above the cut, the other's below",
    "window": "the runs take different arms as the default",
    "normal approximation": "means are not quite normal, which the other terms take them to be",
    "early commits": "only one run commits before the last batch",
    "early looks": "a look decides otherwise than the cap would",
    "early leaders": "a look names a leader that the cap would not",
    "early defaults": "a look names another default than the cap would",
    "undecided batches": "the runs drop an arm in different batches",
    "different cells": "a mean is rounded to different points in the two runs",
    "accuracy": "a mean is further off than it may be",
    "wrong commitment": "a run commits to an arm that is not the best",
    "last line": "the runs choose different arms at the end",
    "finite precision": "numbers in a computer have finitely many digits",
    "coin resolution": "coins have finitely many digits",
}
LETTERS: Final = "K: number of arms; T: horizon; m, n: pulls; the policy's page explains the other letters."


def readable(header: Sequence[str], rows: Sequence[Sequence[object]]) -> tuple[list[str], list[list[str]], str]:
    """Return headings, cells and alignment of a description: a range is one column, and numbers have commas."""
    ends = {low: high for low, high in _RANGES if low in header and high in header}
    left_out = set(ends.values())
    shown = [name for name in header if name not in left_out]
    headings = [_RANGES[name, ends[name]] if name in ends else _HEADINGS.get(name, name) for name in shown]
    if "cell" in header:
        headings = [_UNDECIDED if heading == _RANGES["low", "high"] else heading for heading in headings]
    place = {name: column for column, name in enumerate(header)}
    cells = [
        [
            _range(row[place[name]], row[place[ends[name]]]) if name in ends else _cell(row[place[name]])
            for name in shown
        ]
        for row in rows
    ]
    align = "".join("l" if any(isinstance(row[place[name]], str) for row in rows) else "r" for name in shown)
    return headings, cells, align


def column_keys(header: Sequence[str]) -> str:
    """Explain the letters among the headings of a description, and who draws from a range."""
    told = [_DRAWN] if any(low in header for low, _ in _RANGES) and "cell" not in header else []
    return " ".join([*(_KEYS[name] for name in _KEYS if name in header), *told])


def _range(low: object, high: object) -> str:
    return "" if low == "" else f"{_cell(low)} to {_cell(high)}"


def _cell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
