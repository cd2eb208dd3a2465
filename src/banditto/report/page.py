"""The report as one HTML file that opens anywhere: no scripts, nothing fetched, every name escaped."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from banditto.core.text import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --paper: #ffffff; --code: #f3f4f6;
  --good: #1a7f37; --bad: #c62828; --open: #9a6700; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --soft: #a5adb8; --line: #3a3f47; --paper: #16181d; --code: #22262d;
    --good: #57c474; --bad: #ff7b72; --open: #e3b341; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
.headline { font-size: 1.1rem; font-weight: 600; }
.soft, figcaption { color: var(--soft); font-size: .92rem; }
figure { margin: .5rem 0 0; }
figure img { display: block; width: 100%; height: auto; }
.scroll { overflow-x: auto; } .scroll + .scroll { margin-top: 1rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child, .text td, .text th { text-align: left; padding-left: 0; }
.names th:nth-child(2), .names td:nth-child(2), .ends-in-words td:last-child { text-align: left; }
td:first-child, .names td:nth-child(2) { white-space: normal; overflow-wrap: anywhere; min-width: 8rem;
  max-width: 18rem; }
.text td:last-child { white-space: normal; min-width: 16rem; }
.text td:nth-last-child(2) { white-space: normal; }
pre { background: var(--code); padding: .7rem .9rem; overflow: auto; max-height: 24rem; border-radius: 6px;
  font-size: .85rem; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.PASS { color: var(--good); font-weight: 600; } .FAIL { color: var(--bad); font-weight: 600; }
.CONSISTENT { color: var(--good); font-weight: 600; } .INCONCLUSIVE { color: var(--open); font-weight: 600; }
.agrees { color: var(--good); font-weight: 600; } .disagrees { color: var(--bad); font-weight: 600; }
.not.testable { color: var(--open); font-weight: 600; }
.claim { border-top: 1px solid var(--line); padding: .3rem 0 1rem; }
.claim h3 { font-size: 1rem; margin: 1rem 0 .2rem; }
.claim figure { max-width: 34rem; }
.note { border-left: 3px solid var(--open); padding: .3rem .8rem; margin: .8rem 0; }
@media print { body { max-width: none; } figure { break-inside: avoid; } }
"""


class Picture(NamedTuple):
    """A figure in its looks (theme, size) as SVG, with what a reader who cannot see it is told.

    Where one size is enough there are the wide ones alone; without a heading it stands in somebody else's section.
    """

    heading: str
    alternative: str
    caption: str
    looks: Mapping[tuple[str, str], bytes]


def page(title: str, parts: Sequence[str]) -> str:
    """Return a whole HTML document made of these parts."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="banditto">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(parts) + "\n</body></html>\n"


def heading(level: int, text: str) -> str:
    """Return a heading of this level as HTML."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text as HTML; `kind` is its CSS class."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def code(text: str) -> str:
    """Return lines that a reader may copy, as HTML."""
    return f"<pre><code>{escape(text)}</code></pre>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "", marked: int | None = None) -> str:
    """Return a table as HTML that scrolls on narrow screens; column `marked` holds verdicts, and is coloured."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)

    def cell(column: int, text: str) -> str:
        name = f' class="{escape(text)}"' if column == marked else ""
        return f"<td{name}>{escape(text)}</td>"

    body = "".join(f"<tr>{''.join(cell(column, text) for column, text in enumerate(row))}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def picture(figure: Picture) -> str:
    """Return a figure as HTML that follows the reader's theme and the screen's width."""

    def data(theme: str, size: str) -> str:
        return "data:image/svg+xml;base64," + base64.b64encode(figure.looks[theme, size]).decode("ascii")

    small, dark = "(max-width: 640px)", "(prefers-color-scheme: dark)"
    sources = "".join(
        f'<source media="{media}" srcset="{data(theme, size)}">'
        for media, theme, size in (
            (f"{small} and {dark}", "dark", "narrow"),
            (small, "light", "narrow"),
            (dark, "dark", "wide"),
        )
        if (theme, size) in figure.looks
    )
    image = f'<img src="{data("light", "wide")}" alt="{escape(figure.alternative)}">'
    caption = f"<figcaption>{escape(figure.caption)}</figcaption>"
    above = heading(2, figure.heading) if figure.heading else ""
    return f"{above}<figure><picture>{sources}{image}</picture>{caption}</figure>"
