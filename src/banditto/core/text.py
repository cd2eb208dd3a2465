"""Small tables as plain text and as HTML, for `table()` and notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Row = Sequence[object]


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


def short(value: float) -> str:
    """A number for people: four significant digits."""
    return f"{value:.4g}"
