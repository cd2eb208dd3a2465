"""Two runs of one protocol side by side: the same, or where they part, with both labs' means and the cut between."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from banditto.core.errors import InvalidArgument
from banditto.core.text import short
from banditto.live.checked_words import checked_name
from banditto.live.replicate import Divergence, Replication, replicate
from banditto.report.standing_figures import SeenSide
from banditto.service.lanes import Lanes
from banditto.service.pages import pictures
from banditto.service.pages.csv_tables import csv_text, data_address
from banditto.service.pages.pictures import Pictures, Wanted
from banditto.service.pages.rendering import page
from banditto.service.pages.sessions import check_form
from banditto.service.tokens import Token

LARGEST_UPLOAD = 64 * 2**20  # bytes of two logs together
_LOOKS = ("light-wide", "dark-wide", "light-narrow", "dark-narrow")


class MeansRow(NamedTuple):
    """An arm in both runs: means, how far behind the best, pulls in the next batch."""

    arm: str
    means: tuple[str, str]
    behind: tuple[str, str]
    next_pulls: tuple[str, str]


class ComparePage:
    """The page that compares two runs of the store, or two exported logs."""

    def __init__(self, lanes: Lanes, drawn: Pictures) -> None:
        self._lanes, self._drawn = lanes, drawn

    async def show(self, request: Request) -> Response:
        """Show a form that asks for two runs of the store, and the comparison once they are named."""
        token: Token = request.scope["state"]["token"]
        names = await self._lanes.look(lambda store: store.read(lambda view: view.names()))
        mine = [name for name in names if token.experiment in (None, name)]
        first, second = (request.query_params.get(key, "") for key in ("first", "second"))
        found = None
        if first and second:
            for name in (first, second):
                token.check_experiment(checked_name(name))
                await self._lanes.see(name, lambda trial: trial)
            addresses = [f"{self._lanes.url}#{name}" for name in (first, second)]
            found = await self._lanes.job(lambda: replicate(*addresses))
        return await self._answer(request, mine, (first, second), found)

    async def compare_files(self, request: Request) -> Response:
        """Show the comparison of two uploaded logs, which were exported as JSON."""
        async with request.form(max_files=2, max_fields=4) as fields:
            check_form(request, {key: value for key, value in fields.items() if isinstance(value, str)})
            contents = [await _uploaded(fields, key) for key in ("first", "second")]
        found = await self._lanes.job(lambda: _compared(contents))
        return await self._answer(request, [], ("", ""), found)

    async def _answer(
        self, request: Request, names: list[str], wanted: tuple[str, str], found: Replication | None
    ) -> Response:
        """Fill in the page: the sentence and, where the runs part, the table of means, the cuts and figures."""
        content: dict[str, Any] = {"names": names, "wanted": wanted, "found": found, "sentence": "", "rows": []}
        content |= {"looks": {}, "png": "", "csv": "", "cuts": []}
        if found is not None:
            content["sentence"] = sentence(found)
        if found is not None and found.divergence is not None:
            rows = rows_of(found.divergence)
            content |= {
                "rows": rows,
                "cuts": [(name, short(cut)) for name, cut in found.divergence.cuts.items()],
                "csv": data_address("text/csv", _csv(found, rows)),
                **await self._figures(found),
            }
        return page(request, "compare.html", **content)

    async def _figures(self, found: Replication) -> dict[str, Any]:
        """Return both runs' means, drawn in every look, to be put into the page itself: uploaded logs are not kept."""
        assert found.divergence is not None
        sides = [SeenSide(run, side.means) for run, side in zip(found.runs, found.divergence.sides, strict=True)]
        of = (sides, found.divergence.cuts, False)
        key = ("compare", found.digest, repr(found.divergence))
        drawn = {}
        for look in _LOOKS:
            answer = await self._drawn.answer(Wanted("labs", "svg", look), key, pictures.draw_means, *of)
            drawn[look] = data_address("image/svg+xml", bytes(answer.body))
        answer = await self._drawn.answer(Wanted("labs", "png", "light-wide"), key, pictures.draw_means, *of)
        return {"looks": drawn, "png": data_address("image/png", bytes(answer.body))}


def sentence(found: Replication) -> str:
    """Say whether two runs agree, in a sentence."""
    one, two = found.runs
    if found.level == "winner":
        if not found.compared:
            return "Nothing to compare yet: not both runs have named a winner."
        if found.divergence is None:
            looks = f"{found.decisions[0]} and {found.decisions[1]} looks"
            return f"The same winner: both runs named {found.winners[0]}, after {looks}."
        return f"Different winners: {one} named {found.winners[0]}, {two} named {found.winners[1]}."
    if not found.compared:
        return "Nothing to compare yet: no batch is decided in both runs."
    if found.divergence is None:
        many = "decision" if found.compared == 1 else f"{found.compared} decisions"
        return f"The same: both runs took the same {many}."
    before = "" if found.divergence.batch == 1 else "; until then both took the same decisions"
    return f"They disagree after batch {found.divergence.batch}{before}."


def rows_of(found: Divergence) -> list[MeansRow]:
    """Return a row for each arm that both runs played: its means, how far behind it was, its next pulls."""
    one, two = found.sides
    return [
        MeansRow(
            arm,
            (short(one.means[arm]), short(two.means[arm])),
            (short(one.behind[arm]), short(two.behind[arm])),
            (f"{one.next_pulls.get(arm, 0):,}", f"{two.next_pulls.get(arm, 0):,}"),
        )
        for arm in one.means
        if arm in two.means
    ]


async def _uploaded(fields: FormData, key: str) -> bytes:
    file = fields.get(key)
    if not isinstance(file, UploadFile):
        raise InvalidArgument(key, "nothing", "the file of a log that `banditto export --format json` wrote")
    return await file.read()


def _compared(contents: list[bytes]) -> Replication:
    """Compare two exported logs, given as bytes, through files in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="banditto-compare-") as folder:
        paths = [Path(folder) / f"run {number}.json" for number in (1, 2)]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        try:
            return replicate(*(str(path) for path in paths))
        except InvalidArgument as error:  # without the folder's name, which nobody typed
            raise InvalidArgument(error.argument, Path(str(error.given)).name, error.allowed) from None


def _csv(found: Replication, rows: list[MeansRow]) -> bytes:
    named = [f"{what}, {run}" for what in ("mean", "behind the best", "next pulls") for run in found.runs]
    return csv_text(["arm", *named], [(row.arm, *row.means, *row.behind, *row.next_pulls) for row in rows]).encode()
