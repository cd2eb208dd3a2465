"""The paper's claims as files: report.html, figures, and the rows as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from banditto.core.text import escape
from banditto.paper.claims import Chart, Claim, ClaimCurve, Row
from banditto.paper.running import Reproduction, cells
from banditto.report import page
from banditto.report.page import Picture
from banditto.report.style import (
    DARK,
    LIGHT,
    Look,
    as_png,
    as_svg,
    drawn_in,
    legend_below,
    legend_height,
    new_figure,
    policy_style,
)

WIDTH = 5.6  # inches; one size for all screens
CHART_LOOKS = {("light", "wide"): Look(LIGHT, WIDTH), ("dark", "wide"): Look(DARK, WIDTH)}
_HEIGHT = 3.1
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ((5.0, 3.0), (1.5, 2.0), (8.0, 2.0, 1.5, 2.0))  # of a chart's first, second and third line of theory
_LONG_LABEL = 36
# where the labels of an axis stand in each decade, by how many decades it has at the most
_MARKS = {0.45: (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0), 0.9: (1.0, 2.0, 3.0, 5.0), 1.9: (1.0, 2.0, 5.0)}


def claim_figure(chart: Chart, look: Look) -> Figure:
    """Draw the chart of a claim: measured points in colours, lines of the theory in grey dashes."""
    curves = [replace(curve, label=curve.label.replace("$", r"\$")) for curve in chart.curves]  # no formulas
    labels = [curve.label for curve in curves]
    joined = sum(not curve.theory for curve in curves) > 1  # a single row of points lies on its theory's line
    figure = new_figure(look, _HEIGHT + legend_height(look, labels))
    axes = figure.subplots()
    number = lines = 0
    for curve in curves:
        if curve.theory:
            dashes = (0, _DASHES[lines % len(_DASHES)])
            axes.plot(curve.x, curve.y, color=look.theme.ink, alpha=0.65, linestyle=dashes, label=curve.label)
            lines += 1
        else:
            _points(axes, curve, look, number, joined)
            number += 1
    if chart.x_log:
        _logarithmic(axes, "x")
    if chart.y_log:
        _logarithmic(axes, "y")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label, fontsize=_size(chart.y_label))
    axes.grid(visible=True, which="major")
    axes.set_axisbelow(True)
    legend_below(figure, look)
    return figure


def _points(axes: Axes, curve: ClaimCurve, look: Look, number: int, joined: bool) -> None:
    """Draw a curve's points with their bars, joined by a line if `joined`."""
    style = policy_style(look, number) | ({} if joined else {"linestyle": "none"})
    bars = None
    if curve.low:
        below = [max(y - low, 0.0) for y, low in zip(curve.y, curve.low, strict=True)]
        above = [max(high - y, 0.0) for y, high in zip(curve.y, curve.high, strict=True)]
        bars = [below, above]
    axes.errorbar(
        curve.x,
        curve.y,
        yerr=bars,
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=4.5,
        linewidth=1.0,
        capsize=2.0,
        label=curve.label,
        **style,
    )


def _logarithmic(axes: Axes, which: str) -> None:
    """Make an axis logarithmic, with enough labels on short ranges, and not too many on long ones."""
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    for most, marks in _MARKS.items():
        if decades <= most:
            axis.set_major_locator(LogLocator(subs=marks, numticks=20))
            axis.set_major_formatter(lambda value, _: _label(value))
            break
    axis.set_minor_formatter(NullFormatter())


def _label(value: float) -> str:
    if 1e-3 <= value < 1e4:
        return f"{value:.4g}"
    power = math.floor(math.log10(value) + 1e-9)
    return rf"${value / 10.0**power:.3g}\times10^{{{power}}}$"


def _size(label: str) -> float:
    """Return the font size for a label, smaller for long ones so that they fit the axis."""
    return 10.0 if len(label) <= _LONG_LABEL else max(6.0, 10.0 * _LONG_LABEL / len(label))


Files = dict[str, str | bytes]
DRAWING = "drawing the report"
TITLE = "Replicable Bandits, measured"
_COLUMNS = ("name", "place", "quantity", "relation", "predicted", "measured", "low", "high", "detectable", "verdict")


def reproduction_files(
    found: Reproduction, content: Mapping[str, Any], progress: Callable[[str, int, int], None] | None = None
) -> Files:
    """Return all files of the report by name; `content` is what `--json` prints."""
    files: Files = {"claims.json": json.dumps(content, indent=2, allow_nan=False) + "\n", "claims.csv": _csv(found)}
    pictures: dict[str, Picture] = {}
    for done, row in enumerate(found.rows):
        if progress is not None:
            progress(DRAWING, done, len(found.rows))
        if row.measured is None or row.measured.chart is None:
            continue
        looks: dict[tuple[str, str], bytes] = {}
        for key, look in CHART_LOOKS.items():
            with drawn_in(look):
                figure = claim_figure(row.measured.chart, look)
                looks[key] = as_svg(figure)
                if key == ("light", "wide"):
                    files |= dict(zip(figure_names([row.claim]), (looks[key], as_png(figure)), strict=True))
        pictures[row.claim.name] = Picture("", _spoken(row), _caption(row), looks)
    files["report.html"] = _report(found, content, pictures)
    return files


def figure_names(claims: Sequence[Claim]) -> list[str]:
    """List the files that a claim's chart may have, in every report."""
    return [f"figures/{claim.name}.{kind}" for claim in claims for kind in ("svg", "png")]


def _spoken(row: Row) -> str:
    predicted, measured, interval = cells(row)[3:6]
    return f"{row.claim.quantity}: predicted {predicted}, measured {measured}, interval {interval}."


def _caption(row: Row) -> str:
    return "Points are measured, with 95% intervals where they are wider than the marks; dashed lines are theory."


def _report(found: Reproduction, content: Mapping[str, Any], pictures: Mapping[str, Picture]) -> str:
    """Return the report as one HTML page."""
    size = "quick" if found.quick else "full"
    parts = [
        page.heading(1, TITLE),
        page.paragraph(
            "Every theorem, lemma and remark of the paper (Esfandiari, Kalavasis, Karbasi, Krause, Mirrokni and"
            " Velegkas, ICLR 2023) as a number that can be measured, with the rule that judges it.",
        ),
        page.paragraph(f"{found.summary()}. This is the {size} version.", "soft"),
        page.paragraph(
            "A claim agrees when its whole interval is where theory says: within half the detectable effect of a"
            " predicted figure, or on the right side of a bound. A figure that is wrong by the detectable effect does"
            " not agree. Intervals are at the 95% level; figures that are computed, not sampled, are exact.",
            "soft",
        ),
    ]
    if found.interrupted:
        parts.append(page.paragraph("This run was interrupted; only what was measured is shown.", "note"))
    parts.append(_overview(found))
    for title, rows in groupby(found.rows, key=_section_title):
        parts.append(page.heading(2, title))
        parts += [_section(row, pictures.get(row.claim.name)) for row in rows]
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    parts += [
        page.heading(2, "Run it again"),
        page.code(shlex.join(content["command"])),
        page.paragraph(f"Made on {content['created']} with {versions}, {content['platform']}.", "soft"),
        page.paragraph("Beside this file: claims.json, claims.csv, and figures/ as PNG and SVG."),
    ]
    return page.page(TITLE, parts)


def _section_title(row: Row) -> str:
    """Return the part of the paper that a claim is about; a repair goes with what it repairs."""
    first, second, *_ = row.claim.name.split("-")
    special = {"printed": "What is printed, and its repair", "beyond": "Beyond the paper", "warm": "Warm-up I"}
    special |= {"appendix": "Appendix G"}  # the names of its claims say f, and names stay
    return special.get(first) or f"{first.capitalize()} {second}"


def _overview(found: Reproduction) -> str:
    """Return the table of all claims as HTML, with links to their sections."""
    rows = []
    for row in found.rows:
        name, place, _, predicted, measured, interval, _, verdict = cells(row)
        link = f'<a href="#{escape(name)}">{escape(name)}</a>'
        others = "".join(f"<td>{escape(text)}</td>" for text in (place, predicted, measured, interval))
        rows.append(f'<tr><td>{link}</td><td class="{verdict}">{verdict}</td>{others}</tr>')
    head = "".join(f"<th>{name}</th>" for name in ("claim", "verdict", "where", "predicted", "measured", "interval"))
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table class="text">{body}</table></div>'


def _section(row: Row, picture: Picture | None) -> str:
    """Return a claim's section as HTML: statement, experiment, result, explanation and figure."""
    claim = row.claim
    parts = [f'<h3 id="{escape(claim.name)}">{escape(claim.name)}</h3>', page.paragraph(claim.statement)]
    if claim.experiment:
        parts.append(page.paragraph(f"Experiment: {claim.experiment}", "soft"))
    if row.measured is not None:
        _, _, quantity, predicted, measured, interval, detectable, verdict = cells(row)
        header = ("quantity", "verdict", "predicted", "measured", "interval", "detectable")
        line = (quantity, verdict, predicted, measured, interval, detectable)
        parts.append(page.table(header, [line], marked=1))
    if row.explanation:
        parts.append(page.paragraph(row.explanation, "soft" if row.verdict == "agrees" else "note"))
    if picture is not None:
        parts.append(page.picture(picture))
    return f'<section class="claim">{"".join(parts)}</section>'


def _csv(found: Reproduction) -> str:
    """Return all claims as CSV, one row each."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in found.rows:
        content = row.to_dict()
        low, high = content["interval"] or ("", "")
        fields = {**content, "low": low, "high": high}
        writer.writerow(["" if fields[name] is None else fields[name] for name in _COLUMNS])
    return out.getvalue()
