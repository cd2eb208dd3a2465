"""The section of what an experiment taught: escaped, whole without tickets, and a picture that fits its screen."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import banditto as bd
from banditto.live.analyse import analyse
from banditto.measure.analysis.analysing import analysis_of
from banditto.measure.analysis.analysis import Analysis
from banditto.report.forest import forest_figure
from banditto.report.style import LOOKS, Look, drawn_in
from banditto.report.taught import TAUGHT, taught

MARKUP = "<script>alert(1)</script>"
LONG = tuple(f"{letter}-{letter * 60}" for letter in "abc")


def found(names: tuple[str, ...] | None = None) -> Analysis:
    policy = bd.OneCut(arms=3, horizon=10**5, rho=0.2, gap=0.1)
    seen = bd.watch_pair(policy, bd.Bernoulli([0.5, 0.4, 0.3])).executions[0].observations()
    return analysis_of(seen if names is None else replace(seen, names=names))


def test_names_are_escaped_and_nothing_is_fetched() -> None:
    section = "\n".join(taught(found((MARKUP, "b", "c"))))
    assert section.startswith(f'<h2>{TAUGHT}</h2>\n<p class="headline">&lt;script&gt;')
    assert "<script" not in section
    assert not re.search(r"(src|srcset|href)=[\"'](?!data:)", section)


def test_without_tickets_there_are_no_checks() -> None:
    policy = bd.OneCut(arms=3, horizon=10**5, rho=0.2, gap=0.1)
    analysis = analyse(bd.watch_pair(policy, bd.Bernoulli([0.5, 0.4, 0.3])).executions[0])
    section = "\n".join(taught(analysis))
    assert "Assignment" not in section
    assert section.count("<table") == 2
    assert section.count("data:image/svg+xml") == len(LOOKS)


@pytest.mark.parametrize("names", [None, LONG], ids=["short", "long"])
@pytest.mark.parametrize("look", LOOKS.values(), ids=["-".join(key) for key in LOOKS])
def test_every_word_of_the_picture_is_inside_it(look: Look, names: tuple[str, ...] | None) -> None:
    with drawn_in(look):
        figure = forest_figure(found(names), look)
        figure.draw_without_rendering()
        box = figure.bbox
        texts = [axes.xaxis.label for axes in figure.axes]
        texts += [label for axes in figure.axes for label in axes.get_yticklabels()]
        for text in (*texts, *figure.texts):
            extent = text.get_window_extent()
            assert extent.x0 >= box.x0 - 1, text.get_text()
            assert extent.x1 <= box.x1 + 1, text.get_text()
        for axes in figure.axes:
            assert axes.get_window_extent().width > 0.3 * box.width
