"""`banditto init | ask | tell | missing | correct | stop`: a live experiment, step by step."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banditto.cli import parameters
from banditto.cli.live_options import Name, Reason, StoreOption, TicketArgument, opened, printed, reason_of, store_url
from banditto.cli.output import EXIT_OK, spinner
from banditto.core.errors import InvalidArgument, masked, shown
from banditto.core.exact import real
from banditto.core.text import text_table

if TYPE_CHECKING:
    from banditto.live.registration import RewardRange

ProtocolFile = Annotated[
    str, typer.Argument(metavar="PROTOCOL", help="A protocol file (.toml), as `banditto plan --save` writes it.")
]
NameOption = Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call the experiment.")]
ArmNames = Annotated[str | None, typer.Option("--arm-names", metavar="A,B,...", help="Names of the arms, in order.")]
Rewards = Annotated[
    str | None,
    typer.Option(
        "--rewards", metavar="LOW,HIGH", help="What a reward may be, or any (default: 0,1, or what the policy is for)."
    ),
]
Number = Annotated[str, typer.Option("-n", metavar="N", help="How many tickets, at the most.")]
RequestId = Annotated[
    str | None,
    typer.Option("--request-id", metavar="ID", help="A name for this request: sent again, it gets the same tickets."),
]
RewardArgument = Annotated[str | None, typer.Argument(metavar="REWARD", help="Its reward.")]
TicketOrNone = Annotated[str | None, typer.Argument(metavar="TICKET", help="The ticket; or --from, or --totals.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="FILE", help="A CSV file with the columns ticket and reward: all of it or nothing."),
]
TotalsOption = Annotated[
    str | None,
    typer.Option("--totals", metavar="FILE", help="A whole batch: CSV with the columns batch, arm, count and total."),
]


def init(
    protocol: ProtocolFile,
    store: StoreOption = None,
    name: NameOption = None,
    arm_names: ArmNames = None,
    rewards: Rewards = None,
    as_json: parameters.Json = False,
) -> int:
    """Register an experiment: from now on its protocol cannot change. Prints the digest to publish."""
    from banditto.core.protocol import Protocol

    read = Protocol.load(protocol)
    url = store_url(store)
    if name is None:
        raise InvalidArgument("name", "nothing", "what to call the experiment")
    from banditto.live.experiment import Experiment
    from banditto.live.registration import registered

    names = None if arm_names is None else [part.strip() for part in arm_names.split(",")]
    made = registered(read, names, _range(rewards))
    with Experiment.create(url, name, made) as experiment:
        status = experiment.status()
    content = {"name": name, "digest": made.digest, "head": status.head, "arm_names": list(made.arm_names)}
    printed(content, f"{name} is registered\ndigest {made.digest}\nhead   {status.head}", as_json)
    return EXIT_OK


def ask(
    name: Name,
    store: StoreOption = None,
    number: Number = "1",
    request_id: RequestId = None,
    as_json: parameters.Json = False,
) -> int:
    """Get tickets: which arm to give next, and the id under which to tell its reward."""
    with opened(store, name) as experiment:
        answer = experiment.ask(parameters.count(number, "n"), request_id)
    rows = [tuple(ticket) for ticket in answer]
    text = text_table(("ticket", "arm", "name", "batch"), rows) if rows else f"{answer.state}: {answer.reason}"
    printed(answer.to_dict(), text, as_json)
    return EXIT_OK


def tell(
    name: Name,
    ticket: TicketOrNone = None,
    reward: RewardArgument = None,
    store: StoreOption = None,
    source: From = None,
    totals: TotalsOption = None,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Tell rewards, or a batch's totals. The same again changes nothing; another value is a conflict."""
    if totals is not None:
        if ticket is not None or source is not None:
            raise InvalidArgument("totals", totals, "none with a ticket or --from")
        batch, sums = read_totals(Path(totals))
        with opened(store, name) as experiment:
            answers = [experiment.tell_totals(batch, sums)]
    else:
        pairs = _rewards(ticket, reward, source)
        with opened(store, name) as experiment, spinner("telling", quiet):
            if source is not None:
                _check_range(pairs, experiment.registration.rewards)
            answers = experiment.tell_many(pairs)
    counts = {answer: answers.count(answer) for answer in ("recorded", "repeated", "excluded")}
    text = ", ".join(f"{count} {answer}" for answer, count in counts.items() if count) or "nothing to tell"
    printed({"told": counts}, text, as_json)
    return EXIT_OK


def missing(
    name: Name,
    ticket: TicketArgument,
    reason: Reason = None,
    store: StoreOption = None,
    as_json: parameters.Json = False,
) -> int:
    """Say that a reward will not come: its slot is handed out again."""
    with opened(store, name) as experiment:
        answer = experiment.missing(ticket, reason_of(reason))
    printed({"ticket": ticket, "answer": answer}, answer, as_json)
    return EXIT_OK


def correct(
    name: Name,
    ticket: TicketArgument,
    reward: Annotated[str, typer.Argument(metavar="REWARD", help="What it should have been.")],
    reason: Reason = None,
    store: StoreOption = None,
    as_json: parameters.Json = False,
) -> int:
    """Replace a reward that was wrong, until its batch is decided."""
    with opened(store, name) as experiment:
        answer = experiment.correct(ticket, real(reward, "REWARD", "a number"), reason_of(reason))
    printed({"ticket": ticket, "answer": answer}, answer, as_json)
    return EXIT_OK


def stop(name: Name, reason: Reason = None, store: StoreOption = None, as_json: parameters.Json = False) -> int:
    """End an experiment before its horizon."""
    with opened(store, name) as experiment:
        answer = experiment.stop(reason_of(reason))
    printed({"answer": answer}, answer, as_json)
    return EXIT_OK


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    if text == "any":
        return -math.inf, math.inf
    ends = parameters.numbers(text, "rewards")
    if len(ends) != 2:
        raise InvalidArgument("rewards", text, "two numbers such as 0,1, or any")
    return ends[0], ends[1]


def _rewards(ticket: str | None, reward: str | None, source: str | None) -> list[tuple[str, float]]:
    if source is not None:
        if ticket is not None:
            raise InvalidArgument("from", source, "none with a ticket")
        return read_rewards(Path(source))
    if ticket is None or reward is None:
        missing = "TICKET" if ticket is None else "REWARD"
        raise InvalidArgument(missing, "nothing", "a ticket and its reward, --from FILE or --totals FILE")
    return [(ticket, real(reward, "REWARD", "a number"))]


def _check_range(pairs: list[tuple[str, float]], ends: RewardRange) -> None:
    """Name the ticket: a file may have thousands."""
    for ticket, reward in pairs:
        try:
            ends.checked(reward)
        except InvalidArgument as error:
            raise InvalidArgument(f"reward of {shown(ticket)}", reward, error.allowed) from None


def read_rewards(path: Path) -> list[tuple[str, float]]:
    """The rows of a file with the columns `ticket` and `reward`; others are left alone."""
    return [
        (row["ticket"], real(row["reward"], f"reward in {place}", "a number"))
        for place, row in _rows(path, "from", ("ticket", "reward"))
    ]


def read_totals(path: Path) -> tuple[int, dict[str, tuple[int, float]]]:
    """The batch of a file with the columns `batch`, `arm`, `count` and `total`, and each arm's count and total."""
    batches: set[int] = set()
    totals: dict[str, tuple[int, float]] = {}
    for place, row in _rows(path, "totals", ("batch", "arm", "count", "total")):
        if row["arm"] in totals:
            raise InvalidArgument("totals", f"arm {row['arm']} again in {place}", "a line for each arm")
        batches.add(parameters.count(row["batch"], f"batch in {place}"))
        count = parameters.count(row["count"], f"count in {place}")
        totals[row["arm"]] = (count, real(row["total"], f"total in {place}", "a number"))
    if len(batches) != 1:
        raise InvalidArgument("totals", f"{len(batches)} batches in {path.name}", "one batch in a file")
    return batches.pop(), totals


def _rows(path: Path, option: str, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Where a row stands, for messages, and the columns that were asked for."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            lines = [(f"line {reader.line_num} of {path.name}", cells) for cells in reader if cells]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidArgument(option, str(path), f"a readable CSV file ({masked(str(error))})") from None
    place, header = lines[0] if lines else (f"line 1 of {path.name}", [])
    names = [cell.strip() for cell in header]
    allowed = f"the columns {', '.join(columns[:-1])} and {columns[-1]}"
    if any(names.count(name) != 1 for name in columns):  # of two with one name, nobody knows which is meant
        raise InvalidArgument(option, place, f"{allowed}, once each, named in the first line")
    for place, cells in lines[1:]:
        # 1-1,0,5 is half a reward where decimals have commas, and must not be taken for none
        if any(cell.strip() for cell in cells[len(names) :]):
            raise InvalidArgument(option, f"{len(cells)} cells in {place}", f"{len(names)}, one for each column")
        row = dict(zip(names, cells, strict=False))
        if any(name not in row for name in columns):
            raise InvalidArgument(option, place, allowed)
        yield place, {name: row[name].strip() for name in columns}
