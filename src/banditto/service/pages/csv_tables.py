"""Tables of a page as CSV, and files that are part of a page."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Sequence

from starlette.responses import Response

from banditto.live.export import safe_cell
from banditto.service.pages.rendering import HEADERS


def csv_text(header: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Write a table as CSV; text that a spreadsheet would take for a formula is marked as text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe_cell(cell) for cell in header])
    writer.writerows([safe_cell("" if cell is None else cell) for cell in row] for row in rows)
    return out.getvalue()


def table(header: Sequence[object], rows: Sequence[Sequence[object]], name: str) -> Response:
    """Return a response with a table as a CSV file of this name."""
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(csv_text(header, rows), 200, headers, "text/csv")


def data_address(kind: str, content: bytes) -> str:
    """Return a `data:` URL that holds a whole file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
