"""The measured parts of docs/reproduce.md: the table of claims and some of their charts."""

from __future__ import annotations

from functools import cache, partial

from matplotlib.figure import Figure

import banditto as bd
from banditto.paper.claims import Chart
from banditto.paper.running import cells
from banditto.report.paper_report import claim_figure
from banditto.report.style import Look
from docs.drawing import Drawing

JOBS = 2
BAR = r"\|"  # in a table
HEADER = ("claim", "where", "quantity", "predicted", "measured", "95% interval", "detectable", "verdict")
CHARTS = ("theorem-4-saving", "beyond-price-horizon")


@cache
def chart_of(claim: str) -> Chart:
    """Measure one claim and return what is drawn of it."""
    (row,) = bd.reproduce(quick=False, only=claim, jobs=JOBS).rows
    assert row.measured is not None
    assert row.measured.chart is not None
    return row.measured.chart


def chart_figure(claim: str, look: Look) -> Figure:
    return claim_figure(chart_of(claim), look)


FIGURES: dict[str, Drawing] = {f"reproduce-{claim}": partial(chart_figure, claim) for claim in CHARTS}


def claims_page() -> str:
    """Measure every claim and return the table."""
    found = bd.reproduce(quick=False, jobs=JOBS)
    lines = [f"{found.summary()}.", "", f"| {' | '.join(HEADER)} |", "| --- |" + " --- |" * (len(HEADER) - 1)]
    lines += [f"| {' | '.join(text.replace('|', BAR) for text in cells(row))} |" for row in found.rows]
    reasons = [f"* `{row.claim.name}`: {row.explanation}" for row in found.rows if row.verdict != "agrees"]
    return "\n".join([*lines, "", "Those that do not agree:", "", *reasons]) + "\n"
