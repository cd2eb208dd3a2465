"""`banditto analyse`: what an experiment taught, with intervals whose coverage is proved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banditto.cli import parameters, stores
from banditto.cli.output import (
    EXIT_OK,
    place_to_write,
    print_json,
    print_text,
    print_warnings,
    progress_bar,
    write_file,
)
from banditto.core.errors import InvalidArgument
from banditto.core.exact import real
from banditto.core.provenance import provenance

if TYPE_CHECKING:
    from banditto.cli.documents import AnalysisDocument
    from banditto.measure.analysis.analysis import Analysis

Confidence = Annotated[
    str,
    typer.Option("--confidence", metavar="X", help="The probability with which all intervals hold at once, at least."),
]
NotBinary = Annotated[
    bool,
    typer.Option("--not-binary", help="Rewards may lie between the ends of their range, even if none of them did."),
]
MetricRange = Annotated[
    list[str] | None,
    typer.Option("--metric-range", metavar="NAME=LO,HI", help="The smallest and the largest value of a metric."),
    parameters.StandsFor("metric_ranges"),
]
Guardrails = Annotated[
    list[str] | None,
    typer.Option("--guardrail", metavar="NAME<=X", help="A bound that the mean of a metric should keep; or NAME>=X."),
    parameters.StandsFor("guardrails"),
]


def analyse(
    source: parameters.Source,
    store: parameters.OptionalStore = None,
    confidence: Confidence = "0.95",
    not_binary: NotBinary = False,
    metric_range: MetricRange = None,
    guardrail: Guardrails = None,
    figure: parameters.Figure = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Say who won, what each arm pays, and by how much the winner is better, with intervals that hold at once.

    --figure draws a forest plot. Exit code 3 if the log does not verify.
    """
    sure = real(confidence, "confidence", "a number between 0.5 and 1, both excluded")
    drawing = _place_to_draw(figure, overwrite)
    address = stores.address_of(source, store)
    from banditto.live.analyse import analyse as analysed  # numerical libraries are loaded once there is work for them

    with progress_bar("analyse", quiet, "bytes") as progress:
        found = analysed(
            address,
            sure,
            binary=False if not_binary else None,
            metric_ranges=_ranges(metric_range or []),
            guardrails=guardrail,
            progress=progress,
        )
    if drawing is not None:
        write_file(drawing, _drawn(found, drawing.suffix), "figure")
    if as_json:
        content: AnalysisDocument = {**found.to_dict(), **provenance()}
        print_json(content)
    else:
        print_text(found.table().partition("\n\nwarning: ")[0])
        print_warnings([] if quiet else list(found.warnings))
    return EXIT_OK


def _ranges(texts: list[str]) -> dict[str, tuple[float, float]]:
    """Read such as revenue=0,100."""
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, ends = text.partition("=")
        parts = ends.split(",")
        if not name or len(parts) != 2 or name in found:
            raise InvalidArgument("metric_ranges", text, "NAME=LO,HI, such as revenue=0,100, once for each metric")
        low, high = (real(part, "metric_ranges", "NAME=LO,HI, such as revenue=0,100") for part in parts)
        found[name] = (low, high)
    return found


def _place_to_draw(text: str | None, overwrite: bool) -> Path | None:
    if text is None:
        return None
    if Path(text).suffix not in (".svg", ".png"):
        raise InvalidArgument("figure", text, "a file that ends in .svg or .png")
    return place_to_write(text, overwrite, "figure")


def _drawn(found: Analysis, suffix: str) -> bytes:
    from banditto.report.forest import forest_figure
    from banditto.report.style import LOOKS, as_png, as_svg, drawn_in

    with drawn_in(LOOKS["light", "wide"]):  # the look is asked for once more where a figure becomes a file
        drawing = forest_figure(found)
        return as_svg(drawing) if suffix == ".svg" else as_png(drawing)
