"""What every result has in common: a table, the same for a notebook, plain data, a frame and a picture.

A class says what its table is made of (`_parts`), what its frame has a row for (`records`), and where its picture is
drawn (`_picture`); `Result` does the rest. Pictures are drawn in a room above all of these, which is found by its
address, so that only those who draw load Matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from banditto.core.errors import MissingExtra
from banditto.core.text import Row, escape, html_table, text_table

if TYPE_CHECKING:
    import pandas as pd


class TablePart(NamedTuple):
    """A table among the parts of a result; `align` is as in `text_table`."""

    header: Row
    rows: Sequence[Row]
    align: str = ""


Part = TablePart | str  # a table, or a sentence or two


class Result:
    """A result that can be printed, shown in a notebook, drawn, and turned into plain data or a pandas frame."""

    _picture: ClassVar[str]  # where it is drawn, as module:function within `banditto.report`
    _named: ClassVar[tuple[str, ...]]  # attributes that its `repr` shows

    def _parts(self) -> Sequence[Part]:
        """Return what the table is made of, from top to bottom."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its table is made of")

    def table(self) -> str:
        """Return the result as a table in plain text: what `print` shows."""
        return "\n\n".join(part if isinstance(part, str) else text_table(*part) for part in self._parts())

    def records(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the data frame, by the names of its columns."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its frame has a row for")

    def to_frame(self) -> pd.DataFrame:
        """Return the records as a pandas data frame; needs `pip install 'banditto[data]'`."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("to_frame()", "pandas", "data") from None
        return pd.DataFrame(list(self.records()))

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the result with Matplotlib.

        Args:
            ax: Matplotlib axes to draw into. Without them a new figure is made, which a notebook shows.

        Returns:
            The new figure, or the axes that were given.
        """
        return drawn(self._picture, self, ax=ax)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._named)
        return f"{type(self).__name__}({named})"

    def _repr_html_(self) -> str:
        newline = "\n"
        return "".join(
            f"<p>{escape(part).replace(newline, '<br>')}</p>"
            if isinstance(part, str)
            else html_table(part.header, part.rows)
            for part in self._parts()
        )


def drawn(address: str, *what: Any, **options: Any) -> Any:
    """Call the drawing function at an address (module:function within `banditto.report`); what it drew comes back."""
    module, _, function = address.partition(":")
    return getattr(import_module(f"banditto.report.{module}"), function)(*what, **options)
