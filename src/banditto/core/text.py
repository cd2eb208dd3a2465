"""Small tables as plain text and as HTML, for `table()` and notebooks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from html import escape as html_escape

Row = Sequence[object]


def visible(text: str, keep: str = "") -> str:
    """Write what cannot be seen as an escape such as \\x1b or \\u202e: nothing in a file hides or commands a screen."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text)


def escape(text: str) -> str:
    """Write text for HTML, all of it visible."""
    return html_escape(visible(text, keep="\n\t"))


def text_table(header: Row, rows: Sequence[Row], align: str = "") -> str:
    """Columns aligned with spaces: by `align` ("llr"), or else numbers to the right and the rest to the left."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    numeric = [
        align[column] == "r" if align else bool(rows) and all(isinstance(row[column], int | float) for row in rows)
        for column in range(len(header))
    ]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def html_table(header: Row, rows: Sequence[Row]) -> str:
    """The same table for a notebook; every cell is escaped."""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def significant(value: float) -> float:
    """Six significant digits, for tables whose numbers may be of any size."""
    return float(f"{value:.6g}")


def outwards(low: float, high: float, digits: int = 3) -> tuple[str, str, int]:
    """Write an interval with so many digits of its width, its ends rounded outwards, and say how many decimals that is.

    An interval that is rounded to the nearest number may lose what it covers.
    """
    width = high - low
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"{low:.4g}", f"{high:.4g}", 4
    places = 6 if width <= 0.0 else max(0, digits - 1 - math.floor(math.log10(width)))
    step = Decimal(1).scaleb(-places)
    with localcontext() as context:
        context.prec = 400  # more than any float has
        # as they are written: 0.9 is no more than 0.9
        below, above = Decimal(repr(float(low))), Decimal(repr(float(high)))
        ends = below.quantize(step, ROUND_FLOOR) + 0, above.quantize(step, ROUND_CEILING) + 0
    return f"{ends[0]:f}", f"{ends[1]:f}", places


def short(value: float) -> str:
    """A number for people: four significant digits."""
    return f"{value:.4g}"
