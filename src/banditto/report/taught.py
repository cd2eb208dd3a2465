"""What an experiment taught, as a section of a page: who won, every arm, the winner against all others, a picture."""

from __future__ import annotations

from banditto.measure.analysis.analysis import ARM_HEADER, DIFFERENCE_HEADER, METRIC_HEADER, Analysis
from banditto.report import page
from banditto.report.forest import forest_figure
from banditto.report.plotting import MOST_ROWS
from banditto.report.style import LOOKS, as_svg, drawn_in

TAUGHT = "What the experiment taught"


def taught(analysis: Analysis) -> list[str]:
    """Return the section on results as HTML parts: headline, tables, what is proved, checks, forest plot."""
    parts = [
        page.heading(2, TAUGHT),
        page.paragraph(analysis.headline, "headline"),
        page.table(ARM_HEADER, analysis.arm_rows(), "ends-in-words"),
    ]
    if analysis.differences:
        parts.append(page.table(DIFFERENCE_HEADER, analysis.difference_rows(), "names"))
    parts.append(page.paragraph(analysis.statement, "soft"))
    kinds = {"alarm": "note", "ok": ""}
    checks = [page.paragraph(_sentence(check.line), kinds[check.verdict]) for check in analysis.checks]
    return [*parts, *checks, page.picture(_forest(analysis)), *_metrics(analysis)]


def _metrics(analysis: Analysis) -> list[str]:
    """Return the HTML parts on metrics; empty if there are none."""
    if not analysis.metrics:
        return []
    return [
        page.table(METRIC_HEADER, analysis.metric_rows(), "names"),
        page.paragraph(analysis.metric_statement, "soft"),
    ]


def _sentence(line: str) -> str:
    return f"{line[0].upper()}{line[1:]}."


def _forest(analysis: Analysis) -> page.Picture:
    """Return the forest plot in every look, with a description for readers who cannot see it."""
    looks = {}
    for key, look in LOOKS.items():
        with drawn_in(look):
            looks[key] = as_svg(forest_figure(analysis, look))
    spoken = f"The numbers of the two tables above as points with intervals. {analysis.headline}."
    shown = (
        "The tables above" if len(analysis.arms) <= MOST_ROWS else f"The first {MOST_ROWS} lines of the tables above"
    )
    caption = f"{shown} as a picture. Filled: the winner, and differences whose intervals lie above 0."
    return page.Picture("", spoken, caption, looks)
