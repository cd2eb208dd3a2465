"""`banditto ask` and `banditto tell`: tickets of a live experiment, and their rewards."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from banditto.cli import parameters, stores
from banditto.cli.output import EXIT_OK, print_steps, spinner
from banditto.core.errors import InvalidArgument, masked, shown
from banditto.core.exact import parsed_integer, real
from banditto.core.input_files import MIB, Unreadable, text_lines
from banditto.core.text import text_table

if TYPE_CHECKING:
    from banditto.cli.documents import TellingContent
    from banditto.live.experiment import Experiment
    from banditto.live.registration import RewardRange

Number = Annotated[str, typer.Option("-n", metavar="N", help="How many tickets you want; you may get fewer.")]
RequestId = Annotated[
    str | None,
    typer.Option("--request-id", metavar="ID", help="An id for this request; the same id gets the same tickets again."),
]
UnitOption = Annotated[
    str | None,
    typer.Option(
        "--unit", metavar="ID", help="Who gets the arm, such as a user; the same unit gets the same ticket again."
    ),
]
ArmOption = Annotated[
    str | None,
    typer.Option("--arm", metavar="NAME", help="The arm that you showed, as a check."),
]
RewardArgument = Annotated[str | None, typer.Argument(metavar="REWARD", help="The ticket's reward.")]
TicketOrNone = Annotated[
    str | None, typer.Argument(metavar="TICKET", help="The ticket's id; or use --from or --totals.")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FILE", help="A CSV file with the columns ticket and reward, and perhaps metric:NAME."
    ),
    parameters.StandsFor("arm", where_given=True),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option("--metric", metavar="NAME=X", help="One more number to keep with the reward; it decides nothing."),
    parameters.StandsFor("metrics", "name of a metric", where_given=True),
]
TotalsOption = Annotated[
    str | None,
    typer.Option(
        "--totals", metavar="FILE", help="A whole batch as a CSV file with the columns batch, arm, count and total."
    ),
    parameters.StandsFor("arm", where_given=True),
]

FullTelling = tuple[str, float, dict[str, float], str | None]  # a ticket, its reward, its metrics and its arm
TICKETS_VERSION: Final = 2  # of the schema
_LARGEST_FILE = 64 * MIB  # its rows take some two gigabytes of memory, and are told in one transaction
_METRIC_ALLOWED = "NAME=X with a finite number, such as revenue=12.5"


def ask(
    name: parameters.Name,
    store: parameters.StoreOption = None,
    number: Number = "1",
    request_id: RequestId = None,
    unit: UnitOption = None,
    as_json: parameters.Json = False,
) -> int:
    """Get tickets: each says which arm to show, and has the id to report its reward with."""
    with stores.opened(store, name) as experiment:
        answer = experiment.ask(parsed_integer(number, "n"), request_id, unit=unit)
    rows = [tuple(ticket) for ticket in answer]
    text = text_table(("ticket", "arm", "name", "batch"), rows) if rows else f"{answer.state}: {answer.reason}"
    if answer.repeated:
        text += "\nrepeated: this request was answered before, with the same tickets"
    if answer.fallback is not None:
        text += f"\nshow {answer.fallback.arm_name}, the fallback, which is outside the experiment"
    print_steps(answer.to_dict(), text, as_json, TICKETS_VERSION)
    return EXIT_OK


def tell(
    name: parameters.Name,
    ticket: TicketOrNone = None,
    reward: RewardArgument = None,
    store: parameters.StoreOption = None,
    source: From = None,
    totals: TotalsOption = None,
    metric: MetricOption = None,
    arm: ArmOption = None,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Report rewards: of one ticket, of a file, or of a whole batch.

    Reporting the same reward again changes nothing; another reward for the same ticket is a conflict (exit code 4). Of
    a file with an error nothing is recorded.
    """
    if metric and (source is not None or totals is not None):
        raise InvalidArgument(
            "metric", metric[0], "none with --from, whose file may have columns metric:NAME, or --totals"
        )
    if arm is not None and (source is not None or totals is not None):
        raise InvalidArgument("arm", arm, "none with --from, whose file may have a column arm_name, or --totals")
    text = ""
    if totals is not None:
        if ticket is not None or source is not None:
            raise InvalidArgument("totals", totals, "none with a ticket or --from")
        batch, sums = read_totals(Path(totals))
        with stores.opened(store, name) as experiment:
            answers = [experiment.tell_totals(batch, sums)]
            ended = _ended(experiment)
        text = f"batch {batch} {answers[0]}: {sum(count for count, _ in sums.values()):,} rewards"
    else:
        tellings = _rewards(ticket, reward, metric or [], arm, source)
        with stores.opened(store, name) as experiment, spinner("telling", quiet):
            if source is not None:
                _check_range(tellings, experiment.registration.rewards)
                tellings = _with_arms(tellings, experiment.registration.arm_names)
            answers = experiment.tell_many(tellings)
            ended = _ended(experiment)
    counts: TellingContent = {
        "recorded": answers.count("recorded"),
        "repeated": answers.count("repeated"),
        "excluded": answers.count("excluded"),
    }
    if not text:
        text = ", ".join(f"{count:,} {answer}" for answer, count in counts.items() if count) or "nothing to tell"
    print_steps({"told": counts}, text + ended, as_json)
    return EXIT_OK


def _ended(experiment: Experiment) -> str:
    """Say that a winner was named, if one was; nothing at the level of sequences."""
    from banditto.policies.policy import own_level

    if own_level(experiment.registration.policy()) != "winner":
        return ""
    winner = experiment.status().winner
    return "" if winner is None else f"; the experiment has ended: the winner is {winner}"


def _rewards(
    ticket: str | None, reward: str | None, metric: list[str], arm: str | None, source: str | None
) -> list[FullTelling]:
    if source is not None:
        if ticket is not None:
            raise InvalidArgument("from", source, "none with a ticket")
        return read_rewards(Path(source))
    if ticket is None or reward is None:
        missing = "ticket" if ticket is None else "reward"
        raise InvalidArgument(missing, "nothing", "a ticket and its reward, --from FILE or --totals FILE")
    return [(ticket, real(reward, "reward", "a number"), _metrics(metric), arm)]


def _metrics(words: list[str]) -> dict[str, float]:
    """Read metrics as they are typed, NAME=X, each once."""
    from banditto.live.metrics import metric_name, metric_value

    found: dict[str, float] = {}
    for word in words:
        name, equals, text = word.rpartition("=")
        if not equals:
            raise InvalidArgument("metric", word, _METRIC_ALLOWED)
        if metric_name(name) in found:
            raise InvalidArgument("metric", f"{name} more than once", "each metric once")
        try:
            number = real(text, "metric")
        except InvalidArgument:
            raise InvalidArgument("metric", word, _METRIC_ALLOWED) from None
        found[name] = metric_value(number, f"metric {name}")
    return found


def _with_arms(tellings: list[FullTelling], names: Sequence[str]) -> list[FullTelling]:
    """Find the arms that a file names, as they are called or as an export wrote them; one that may be two is none."""
    from banditto.live.export import safe_cell

    meant: dict[str, set[str]] = {}
    for name in names:
        for cell in (name, str(safe_cell(name))):
            meant.setdefault(cell.strip(), set()).add(name)
    found: list[FullTelling] = []
    for ticket, reward, metrics, arm in tellings:
        arms = set() if arm is None else meant.get(arm, {arm})
        found.append((ticket, reward, metrics, next(iter(arms)) if len(arms) == 1 else None))
    return found


def _check_range(tellings: list[FullTelling], ends: RewardRange) -> None:
    """Refuse a reward out of range, and name its ticket: a file may have thousands."""
    for ticket, reward, _, _ in tellings:
        try:
            ends.checked(reward)
        except InvalidArgument as error:
            raise InvalidArgument(f"reward of {shown(ticket)}", reward, error.allowed) from None


def read_rewards(path: Path) -> list[FullTelling]:
    """Read a file with the columns `ticket` and `reward`, and perhaps `arm_name` and `metric:NAME`.

    Others are left alone. A ticket, its reward, its metrics and its arm come back for each row; an empty cell is no
    value.
    """
    from banditto.live.metrics import METRIC_PREFIX

    return [
        (
            row["ticket"],
            real(row["reward"], f"reward in {place}", "a number"),
            _metrics_of(row, place),
            row.get("arm_name") or None,
        )
        for place, row in _rows(path, "from", ("ticket", "reward"), METRIC_PREFIX, ("arm_name",))
    ]


def _metrics_of(row: dict[str, str], place: str) -> dict[str, float]:
    """Read the cells of a row whose columns are metrics."""
    from banditto.live.metrics import METRIC_PREFIX, metric_name, metric_value

    found: dict[str, float] = {}
    for column, text in row.items():
        if not column.startswith(METRIC_PREFIX):
            continue
        try:
            name = metric_name(column.removeprefix(METRIC_PREFIX))
        except InvalidArgument as error:
            raise InvalidArgument(
                "from", f"the column {column}", f"{METRIC_PREFIX}NAME, NAME {error.allowed}"
            ) from None
        if text:
            found[name] = metric_value(real(text, f"{column} in {place}"), f"{column} in {place}")
    return found


def read_totals(path: Path) -> tuple[int, dict[str, tuple[int, float]]]:
    """Read a file with the columns `batch`, `arm`, `count` and `total`: its batch, and each arm's count and total."""
    batches: set[int] = set()
    totals: dict[str, tuple[int, float]] = {}
    for place, row in _rows(path, "totals", ("batch", "arm", "count", "total")):
        if row["arm"] in totals:
            raise InvalidArgument("totals", f"arm {row['arm']} again in {place}", "a line for each arm")
        batches.add(parsed_integer(row["batch"], f"batch in {place}"))
        count = parsed_integer(row["count"], f"count in {place}")
        totals[row["arm"]] = (count, real(row["total"], f"total in {place}", "a number"))
    if len(batches) != 1:
        raise InvalidArgument("totals", f"{len(batches)} batches in {path.name}", "one batch in a file")
    return batches.pop(), totals


def _rows(
    path: Path, option: str, columns: tuple[str, ...], prefix: str = "", perhaps: tuple[str, ...] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read a CSV file: where each row stands, for messages, and the columns that were asked for.

    Columns that begin with a prefix, and those that may be there, come, too; each row must have a cell for each of
    them.
    """
    try:
        with closing(text_lines(path, _LARGEST_FILE)) as text:
            reader = csv.reader(text, strict=True)
            lines = [(f"line {reader.line_num} of {path.name}", cells) for cells in reader if cells]
    except (Unreadable, csv.Error) as error:
        raise InvalidArgument(option, str(path), f"a readable CSV file ({masked(str(error))})") from None
    place, header = lines[0] if lines else (f"line 1 of {path.name}", [])
    names = [cell.strip() for cell in header]
    allowed = f"the columns {', '.join(columns[:-1])} and {columns[-1]}"
    if any(names.count(name) != 1 for name in columns):  # of two with one name, nobody knows which is meant
        raise InvalidArgument(option, place, f"{allowed}, once each, named in the first line")
    more = [name for name in names if (prefix and name.startswith(prefix)) or name in perhaps]
    for name in more:
        if names.count(name) != 1:
            raise InvalidArgument(option, f"{name} more than once in {place}", "each column once")
    for place, cells in lines[1:]:
        # 1-1,0,5 is half a reward where decimals have commas, and must not be taken for none
        if any(cell.strip() for cell in cells[len(names) :]) or (more and len(cells) < len(names)):
            raise InvalidArgument(option, f"{len(cells)} cells in {place}", f"{len(names)}, one for each column")
        row = dict(zip(names, cells, strict=False))
        if any(name not in row for name in columns):
            raise InvalidArgument(option, place, allowed)
        yield place, {name: row[name].strip() for name in (*columns, *more)}
