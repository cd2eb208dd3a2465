"""The measured parts of docs/reproduce.md: the table of claims and some of their charts."""

from __future__ import annotations

from pathlib import Path

import banditto as bd
from banditto.paper.running import cells
from banditto.report.paper_report import CHART_LOOKS, claim_figure
from banditto.report.style import as_png, drawn_in

JOBS = 2
BAR = r"\|"  # in a table
HEADER = ("claim", "where", "quantity", "predicted", "measured", "95% interval", "detectable", "verdict")
CHARTS = ("theorem-4-saving", "beyond-price-horizon")


def claims_page(folder: Path) -> str:
    """Draw the charts into a folder and return the table."""
    found = bd.reproduce(quick=False, jobs=JOBS)
    look = CHART_LOOKS["light", "wide"]
    for row in found.rows:
        if row.claim.name in CHARTS and row.measured is not None and row.measured.chart is not None:
            with drawn_in(look):
                figure = claim_figure(row.measured.chart, look)
                (folder / f"reproduce-{row.claim.name}.png").write_bytes(as_png(figure))
    lines = [f"{found.summary()}.", "", f"| {' | '.join(HEADER)} |", "| --- |" + " --- |" * (len(HEADER) - 1)]
    lines += [f"| {' | '.join(text.replace('|', BAR) for text in cells(row))} |" for row in found.rows]
    reasons = [f"* `{row.claim.name}`: {row.explanation}" for row in found.rows if row.verdict != "agrees"]
    return "\n".join([*lines, "", "Those that do not agree:", "", *reasons]) + "\n"
