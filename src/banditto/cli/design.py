"""`banditto design`: which arms to pull, and in which proportions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from banditto.cli import parameters
from banditto.cli.output import EXIT_CHECK, EXIT_OK, place_to_write, print_json, print_text, spinner, write_file
from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer, real
from banditto.core.provenance import provenance
from banditto.core.text import text_table

if TYPE_CHECKING:
    from banditto.cli.documents import DesignDocument, PulledContent
    from banditto.geometry.actions.finite import FiniteActions
    from banditto.geometry.actions.sets import ConvexSet
    from banditto.geometry.design.design_result import Design

SCHEMA_VERSION: Final = 1
MOST_ROWS = 40
Arms = Annotated[
    str | None,
    typer.Argument(metavar="ARMS", help="A CSV file with one arm a line, its features in columns; or --action-set."),
    parameters.StandsFor("actions"),
]
Accuracy = Annotated[str, typer.Option("--accuracy", metavar="X", help="By which share g may be above its optimum.")]
Pulls = Annotated[
    str | None,
    typer.Option("--pulls", metavar="N", help="Also say how often to pull each arm, in at least this many pulls."),
]


def design(
    arms: Arms = None,
    accuracy: Accuracy = "0.01",
    normalise: parameters.Normalise = False,
    action_set: parameters.ActionSetOption = None,
    dimension: parameters.Dimension = None,
    pulls: Pulls = None,
    figure: parameters.Figure = None,
    overwrite: parameters.Overwrite = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Find a G-optimal design: which few arms to pull, and how often, to learn about all arms equally well.

    Every machine finds the same design. Exit code 3 when the accuracy could not be certified. --figure draws designs of
    two features.
    """
    picture = None if figure is None else _picture(figure, overwrite)
    from banditto.geometry.design import g_optimal_design
    from banditto.geometry.design.design_result import MOST_PULLS, checked_accuracy
    from banditto.problems.spec import ProblemSpec, typed

    wanted = checked_accuracy(real(accuracy, "accuracy"))
    count = None if pulls is None else integer(typed("pulls", pulls), "pulls", 1, MOST_PULLS)
    spec = ProblemSpec(actions=arms, normalise=normalise or None, action_set=action_set, dimension=dimension)
    actions = spec.read_actions()
    if picture is not None and actions.dimension != 2:
        raise InvalidArgument("figure", f"{actions.dimension} features", "a design of actions with two features")
    with spinner("design", quiet) as tell:
        progress = None if tell is None else lambda ratio: tell(f"g/d is {ratio:.8g}, wanted {1 + wanted:.8g}")
        found = g_optimal_design(actions, accuracy=wanted, progress=progress)
    allocation = None if count is None else found.plan(count)
    if picture is not None:
        _draw(picture, found, actions)
    if as_json:
        pulled: PulledContent = (
            {} if allocation is None else {"pulls": list(allocation.pulls), "plan_digest": allocation.digest}
        )
        content: DesignDocument = {"schema_version": SCHEMA_VERSION, **found.to_dict(), **pulled, **provenance()}
        print_json(content)
    else:
        print_text(_table(found, None if allocation is None else allocation.pulls))
    return EXIT_OK if found.target_met else EXIT_CHECK


def _picture(text: str, overwrite: bool) -> Path:
    if Path(text).suffix not in (".png", ".svg"):
        raise InvalidArgument("figure", repr(text), "a file that ends in .png or .svg")
    return place_to_write(text, overwrite, "figure")


def _draw(path: Path, found: Design, actions: FiniteActions | ConvexSet) -> None:
    from banditto.geometry.actions.finite import FiniteActions
    from banditto.report.figures import PLAIN, design_figure
    from banditto.report.style import as_png, as_svg, drawn_in

    with drawn_in(PLAIN):
        figure = design_figure(found, actions.to_array() if isinstance(actions, FiniteActions) else actions)
        write_file(path, as_svg(figure) if path.suffix == ".svg" else as_png(figure), "figure")


def _table(found: Design, pulls: tuple[int, ...] | None) -> str:
    met = "met" if found.target_met else "not certified"
    facts = [
        ("core set", f"{found.support} action{'s' if found.support > 1 else ''}"),
        ("g/d", f"{found.g_over_d:.8g} (1 is optimal; asked for {1 + found.accuracy:.8g}: {met})"),
        ("dimension", f"{found.dimension} of {len(found.actions[0])} features are spanned"),
        ("iterations", str(found.iterations)),
        ("digest", found.digest),
    ]
    rows = found.rows(pulls)
    more = f"\n... and {len(rows) - MOST_ROWS} more (--json has them all)" if len(rows) > MOST_ROWS else ""
    core = text_table(found.header(pulls), rows[:MOST_ROWS], "r" * (len(rows[0]) - 1) + "l")
    return text_table(("design", ""), facts) + "\n\n" + core + more
