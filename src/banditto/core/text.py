"""Small tables as plain text and as HTML, for `table()` and notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from html import escape as html_escape
from itertools import zip_longest
from textwrap import wrap
from typing import Final

Row = Sequence[object]
_BETWEEN: Final = "  "  # two columns
_EMPTY: Final = ("", "-", "none")  # a column with nothing else is left out
PAGE: Final = 100  # columns of a sentence where no terminal says how wide it is
_RULE: Final = 80  # dashes below a heading, at the most
_NARROWEST: Final = 20  # columns: no terminal is taken to be narrower
_SHORT: Final = 24  # letters: cells that are broken only where there is no other way
_TALLEST: Final = 6  # lines of a wrapped row: if one had more, each row would become a block
_LONGEST_WORD: Final = 32  # letters: a longer one, such as a digest, may be broken
_WIDTH: ContextVar[int | None] = ContextVar("width", default=None)  # of the terminal that a table is for


def visible(text: str, keep: str = "") -> str:
    """Return text with invisible characters as escapes such as \\x1b or \\u202e, so that none acts on a screen."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text)


def escape(text: str) -> str:
    """Return text escaped for HTML, with invisible characters made visible."""
    return html_escape(visible(text, keep="\n\t"))


def text_table(header: Row, rows: Sequence[Row], align: str = "") -> str:
    """Return a table as text, columns aligned by `align` ("llr"), or else numbers right and other text left.

    Inside `fitted` no line is longer than the width: long texts are wrapped inside their columns, and where even that
    is too wide, each row becomes a block with a line for each column. A column of empty cells is left out.
    """
    numeric = [
        align[column] == "r" if align else bool(rows) and all(isinstance(row[column], int | float) for row in rows)
        for column in range(len(header))
    ]
    kept = _kept(header, rows)
    right = [numeric[column] for column in kept]
    head, *body = ([str(row[column]) for column in kept] for row in (header, *rows))
    width = _WIDTH.get()
    natural = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    if width is None or _spread(natural) <= width:
        return _lines(head, body, natural, right)
    for prose in (_SHORT, 0):  # first only long texts and headings are broken, then all that can be
        least = [_least(column, prose) for column in zip(head, *body, strict=True)]
        if _spread(least) <= width:
            widths = _shared_out(natural, least, width)
            tallest = max((len(_row(row, widths, right)) for row in body), default=1)
            if len(kept) <= 2 or tallest <= _TALLEST:
                return _lines(head, body, widths, right)
    return _blocks(head, body, width)


def html_table(header: Row, rows: Sequence[Row]) -> str:
    """Return a table as HTML for a notebook, with every cell escaped and without columns that are empty."""
    head, texts = without_empty(header, rows)
    # notebooks set every cell to the right, which only numbers should be
    numeric = [all(_is_figure(str(cell)) for cell in column) for column in zip(*texts, strict=True)]
    left = ["" if right else ' style="text-align: left"' for right in numeric or [False] * len(head)]

    def line(tag: str, cells: Sequence[object]) -> str:
        return "".join(f"<{tag}{side}>{escape(str(cell))}</{tag}>" for side, cell in zip(left, cells, strict=True))

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in texts)
    return f"<table><thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody></table>"


def _is_figure(text: str) -> bool:
    """Say whether a cell is a number, or empty: no words."""
    return not text or (text[0] in "+-±≥.0123456789" and not any(letter.isalpha() for letter in text.replace("e", "")))


@contextmanager
def fitted(width: int | None) -> Iterator[None]:
    """Make all tables inside fit so many columns, 20 at least; None leaves every row on one line."""
    token = _WIDTH.set(None if width is None else max(width, _NARROWEST))
    try:
        yield
    finally:
        _WIDTH.reset(token)


def filled(text: str, page: int | None = None) -> str:
    """Wrap the lines that are longer than the width of `fitted`, or than a page; their indent is kept."""
    widths = [width for width in (_WIDTH.get(), page) if width is not None]
    width = min(widths, default=None)
    if width is None:
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        lines += [line] if len(line) <= width else _sentence(line, width, indent)
    return "\n".join(lines)


def _sentence(line: str, width: int, indent: str) -> list[str]:
    """Wrap a line between words; a longer word stays whole, so that it can be copied."""
    return wrap(line, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def without_empty(header: Row, rows: Sequence[Row]) -> tuple[list[object], list[list[object]]]:
    """Return the table without the columns in which every cell is empty."""
    kept = _kept(header, rows)
    return [header[column] for column in kept], [[row[column] for column in kept] for row in rows]


def _kept(header: Row, rows: Sequence[Row]) -> list[int]:
    """Return the numbers of the columns that say something; without rows, of all."""
    return [
        column
        for column in range(len(header))
        if not rows or any(str(row[column]).strip() not in _EMPTY for row in rows)
    ] or list(range(len(header)))


def _spread(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * (len(widths) - 1)


def _least(column: Sequence[str], prose: int) -> int:
    """Return the fewest letters that a column needs: the longest piece of its heading and cells that stays whole.

    A column whose cells have at most `prose` letters stays whole below its heading.
    """
    heading, *cells = column
    longest = max(map(len, cells), default=0)
    broken = column if longest > prose else (heading,)
    pieces = [len(piece) for cell in broken for line in _broken(cell, 1, whole=True) for piece in line.split()]
    least = max((min(piece, _LONGEST_WORD) for piece in pieces), default=0)
    return least if longest > prose else max(least, longest)


def _broken(cell: str, width: int, whole: bool = False) -> list[str]:
    """Break a cell into lines: between words, and a name of a single word at its hyphens; numbers stay whole."""
    if len(cell) <= width:
        return [cell]
    return wrap(cell, width, break_on_hyphens=" " not in cell, break_long_words=not whole) or [""]


def _shared_out(natural: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Give each column what it needs, and what is left to those that lack the least, letter by letter."""
    widths = list(least)
    left = width - _spread(widths)
    for column in sorted(range(len(widths)), key=lambda column: natural[column] - least[column]):
        more = min(natural[column] - widths[column], left)
        widths[column] += more
        left -= more
    return widths


def _lines(head: Sequence[str], body: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> str:
    """Write rows one below the other; a cell that is wider than its column goes on in the next line."""
    lines = _row(head, widths, right)
    lines.append(_BETWEEN.join("-" * min(width, _RULE) for width in widths))
    for row in body:
        lines += _row(row, widths, right)
    return "\n".join(lines)


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    parts = [_broken(cell, width) for cell, width in zip(cells, widths, strict=True)]
    return [
        _BETWEEN.join(
            part.rjust(width) if rightwards else part.ljust(width)
            for part, width, rightwards in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in zip_longest(*parts, fillvalue="")
    ]


def _blocks(head: Sequence[str], body: Sequence[Sequence[str]], width: int) -> str:
    """Write a block for each row, a line for each column: its heading, then its cell."""
    label = min(max(map(len, head)), width // 2 - len(_BETWEEN))
    widths = (label, width - label - len(_BETWEEN))
    blocks = [
        "\n".join(
            line
            for heading, cell in zip(head, row, strict=True)
            if cell.strip()
            for line in _row((heading, cell), widths, (False, False))
        )
        for row in body
    ]
    return "\n\n".join(blocks)


def significant(value: float) -> float:
    """Return the number rounded to six significant digits, for tables whose numbers may be of any size."""
    return float(f"{value:.6g}")


def outwards(low: float, high: float, digits: int = 3) -> tuple[str, str, int]:
    """Return both ends as text, rounded outwards to so many digits of the interval's width, and the number of decimals.

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
    """Return a number as text with four significant digits."""
    return f"{value:.4g}"


def amount(value: float, reach: float = 0.0) -> str:
    """Write a quantity for people: whole numbers with commas from 100 on, else three significant digits.

    With a `reach` it ends in how far it may be off, unless that is too little to be seen.
    """
    if abs(value) >= 1e15 or not math.isfinite(value):
        return f"{value:.4g}"
    places = 0 if abs(value) >= 99.95 or value == int(value) else 2 - math.floor(math.log10(abs(value)))
    off = f"{reach:,.{places}f}"
    seen = math.isfinite(reach) and float(off.replace(",", "")) > 0.0005 * abs(value)
    number = f"{value:,.{places}f}" if places < 7 else f"{value:.3g}"
    return f"{number} ±{off}" if seen and places < 7 else number


def hundredths(share: float, places: int = 1) -> str:
    """Write a share in percent, with as many digits that only 0 reads as 0% and only 1 as 100%."""
    while (
        places < 12
        and 0.0 < share < 1.0
        and f"{100.0 * share:.{places}f}" in (f"{0.0:.{places}f}", f"{100.0:.{places}f}")
    ):
        places += 1
    return f"{100.0 * share:.{places}f}%"


def at_least(bound: float) -> str:
    """Write a bound on P(two runs differ) as the share of pairs that agree at least, rounded downwards."""
    places = max(1, -math.floor(math.log10(bound)) - 2) if bound > 0.0 else 1
    with localcontext() as context:
        context.prec = 400
        share = 100 * (1 - Decimal(repr(float(bound))))
        return f"≥{share.quantize(Decimal(1).scaleb(-places), ROUND_FLOOR):f}%"
