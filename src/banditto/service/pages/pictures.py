"""Pictures of pages: drawn in a process of their own, in the look that a browser asks for, and kept for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from starlette.responses import Response

from banditto.core.errors import InvalidArgument
from banditto.service.pages.rendering import HEADERS
from banditto.service.side_process import SideProcess

Kind = Literal["svg", "png"]
_TYPES: dict[str, str] = {"svg": "image/svg+xml", "png": "image/png"}
_LOOKS = ("light-wide", "dark-wide", "light-narrow", "dark-narrow")
_MOST_KEPT = 400
_SECONDS = 30.0


class Wanted(NamedTuple):
    """Which picture a browser asks for: of what, in which format and look."""

    figure: str
    kind: str
    look: str

    @classmethod
    def of(cls, file: str, look: str) -> Wanted:
        """Parse a file's name such as forest.svg and a look such as dark-narrow."""
        figure, _, kind = file.rpartition(".")
        if kind not in _TYPES:
            raise InvalidArgument("figure", file, "a name that ends in .svg or .png")
        if look not in _LOOKS:
            raise InvalidArgument("look", look, f"one of {', '.join(_LOOKS)}")
        return cls(figure, kind, look)


class Pictures:
    """Draws pictures, and keeps those that were asked for last."""

    def __init__(self) -> None:
        self._process = SideProcess(_SECONDS, "a picture")
        self._kept: OrderedDict[tuple[object, ...], bytes] = OrderedDict()

    async def answer(self, wanted: Wanted, of: tuple[object, ...], draw: Callable[..., bytes], *what: Any) -> Response:
        """Return a picture, drawn in another process unless it is cached; `of` identifies what it shows."""
        key = (*of, *wanted)
        content = self._kept.get(key)
        if content is None:
            content = await self._process.run(draw, wanted, *what)
            self._kept[key] = content
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return Response(content, 200, HEADERS, _TYPES[wanted.kind])

    def close(self) -> None:
        """End the process."""
        self._process.close()


# -- in the other process, which alone loads Matplotlib ----------------------------------------------------------------


def _drawn(wanted: Wanted, figure: Callable[..., Any], *what: Any, **more: Any) -> bytes:
    from banditto.report.style import LOOKS, as_png, as_svg, drawn_in

    theme, _, size = wanted.look.partition("-")
    look = LOOKS[theme, size]
    with drawn_in(look):
        made = figure(*what, look=look, **more)
        return as_svg(made) if wanted.kind == "svg" else as_png(made)


def draw_forest(wanted: Wanted, analysis: Any) -> bytes:
    """Draw the forest plot of an analysis; return the file's bytes."""
    from banditto.report.forest import forest_figure

    return _drawn(wanted, forest_figure, analysis)


def draw_play(wanted: Wanted, names: Any, batches: Any) -> bytes:
    """Draw the arms in play over time; return the file's bytes."""
    from banditto.report.standing_figures import play_figure

    return _drawn(wanted, play_figure, names, batches)


def draw_means(wanted: Wanted, sides: Any, cuts: Any, percent: bool) -> bytes:
    """Draw the means of one run or two against the cuts; return the file's bytes."""
    from banditto.report.standing_figures import means_figure

    return _drawn(wanted, means_figure, sides, cuts, percent=percent)


def draw_ribbons(wanted: Wanted, view: Any, title: str, means: Any, names: Any) -> bytes:
    """Draw a simulated pair of runs as ribbons; return the file's bytes."""
    from banditto.report.ribbons import ribbon_figure

    return _drawn(wanted, ribbon_figure, [(title, view)], means, arm_names=names)


def draw_prices(wanted: Wanted, points: Any, limits: Any, chosen: Any) -> bytes:
    """Draw what a smaller rho costs; return the file's bytes."""
    from banditto.report.figures import price_figure

    return _drawn(wanted, price_figure, points, "horizon", chosen=chosen, limits=limits)
