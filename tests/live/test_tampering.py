"""Whatever is changed in a store, `verify` finds it; what only a receipt can find is said here too.

Each kind of change is tried on 16 random places, on 200 in `make check-long`. A change is made inside a transaction,
looked at, and rolled back.
Places are drawn with fixed seeds, so that the tests cannot fail by chance.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from io import BytesIO
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import sqlalchemy as sql

from banditto.core.errors import InvalidArgument, LogError
from banditto.live.event_log import FIRST_HASH, chained
from banditto.live.experiment import Experiment
from banditto.live.export import export, looked_up
from banditto.live.reading import Reading
from banditto.live.store import engine_of
from banditto.live.tables import EVENTS, EXPERIMENTS, METRICS, REQUESTS, TICKETS
from banditto.live.verify import Verification, verified
from banditto.report.audit import audit_page
from tests.live.administrators import allow_tampering
from tests.live.servers import KINDS, PostgresServer, new_store
from tests.live.worlds import hashed_reward, place, small

PLACES, MANY_PLACES = 16, 200
KEY = ("batch", "position", "attempt")


class Bench:
    """A store with the log of one experiment in the middle of its second batch, and a second experiment beside it."""

    def __init__(self, url: str, places: int) -> None:
        self.places = places
        with Experiment.create(url, "cta", small()) as experiment:
            play(experiment)
        with Experiment.create(url, "beside", small()) as other:
            other.ask(1, "r")
        self.engine = engine_of(url)
        self.sqlite = url.startswith("sqlite")
        self.looks = 0

    def after(self, change: Callable[[sql.Connection], object], expect: str | None = None) -> Verification | None:
        """What `verify` says once this was changed; None if it does not find the experiment."""
        with self.engine.connect() as connection:
            if self.sqlite:
                connection.execute(sql.text("PRAGMA defer_foreign_keys=ON"))
                allow_tampering(connection)
            else:  # whoever can write to the tables can do this as well
                connection.execute(sql.text("SET LOCAL session_replication_role = replica"))
            change(connection)
            self.looks += 1
            try:
                if self.looks % 20 == 0:
                    exports_say_so(connection)
                return verified(Reading(connection), "cta", expect)[0]
            except InvalidArgument:
                return None
            finally:
                connection.rollback()

    def rows(self, table: sql.Table) -> list[dict[str, Any]]:
        key = [column for column in table.primary_key.columns if column.name != "experiment"]
        query = sql.select(table).order_by(*key)
        if "experiment" in table.c:
            query = query.where(table.c.experiment == 1)
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def text(self, content: bytes) -> Any:
        """Bytes as the text that they are, valid or not."""
        if self.sqlite:
            return sql.cast(sql.literal(content, sql.LargeBinary), sql.Text)
        return content.decode("utf-8")


class Inside(nullcontext["Inside"]):
    """A store that is seen from inside a transaction."""

    def __init__(self, connection: sql.Connection) -> None:
        super().__init__(self)
        self._connection = connection

    def read(self, look: Callable[[Reading], Any]) -> Any:
        return look(Reading(self._connection))


def exports_say_so(connection: sql.Connection) -> None:
    """An audit report of what does not verify says so first, and there are no other exports of it."""
    log = looked_up(Reading(connection), "cta")
    text = audit_page(log)
    if log.verification.holds:
        assert "The log verifies" in text
        return
    assert "The log does NOT verify" in text
    with patch("banditto.live.export.Store", lambda url: Inside(connection)):
        for kind in ("csv", "json", "parquet"):
            with BytesIO() as out:
                with pytest.raises(LogError):
                    export("", "cta", kind, out)
                assert not out.getvalue()


def play(experiment: Experiment) -> None:
    """About 60 events of all kinds but totals and stop."""
    while (status := experiment.status()).events < 58:
        answer = experiment.ask(2 if status.batch == 1 else 3, f"request {status.events}")
        for ticket in answer:
            reward = hashed_reward(*place(ticket.id))
            metrics = {"revenue": 100 * reward, "clicks": 3} if place(ticket.id)[1] % 3 == 2 else None
            if ticket.id in ("cta.1-3", "cta.2-5"):
                experiment.missing(ticket.id, "left the page")
                experiment.tell(ticket.id, 0.5, metrics)
                continue
            experiment.tell(ticket.id, reward, metrics)
            if place(ticket.id)[1] % 5 == 3:
                experiment.correct(ticket.id, 0.25, "a typo")
    experiment.ask(2)


BENCHES = [
    *(pytest.param((kind, PLACES), id=kind) for kind in KINDS),
    *(pytest.param((kind, MANY_PLACES), id=f"{kind}, many", marks=pytest.mark.long) for kind in KINDS),
]


@pytest.fixture(scope="module", params=BENCHES)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    kind, places = request.param
    server: PostgresServer | None = request.getfixturevalue("server") if kind == "postgresql" else None
    with new_store(kind, tmp_path_factory.mktemp("tampering"), server) as url:
        made = Bench(url, places)
        yield made
        made.engine.dispose()


def found(bench: Bench, change: Callable[[sql.Connection], object], event: int | None = None) -> Verification:
    seen = bench.after(change)
    assert seen is not None
    assert not seen.holds
    if event is not None:
        assert seen.event == event, seen.problem
    return seen


def executing(statement: sql.Executable) -> Callable[[sql.Connection], object]:
    return lambda connection: connection.execute(statement)


def another(bench: Bench, value: Any, generator: np.random.Generator) -> Any:
    """A value that differs in one byte, or, for a number, in one bit."""
    if isinstance(value, str):
        content = bytearray(value.encode("utf-8"))
        if not content:
            return bench.text(b"x")
        index = int(generator.integers(len(content)))
        old = content[index]
        most = 256 if bench.sqlite else 128  # PostgreSQL refuses what is not UTF-8
        content[index] = int(generator.choice([byte for byte in range(1, most) if byte != old]))
        return bench.text(bytes(content))
    if isinstance(value, float):
        bits = np.float64(value).view(np.uint64) ^ np.uint64(1 << int(generator.integers(64)))
        return float(np.uint64(bits).view(np.float64))
    if value is None:
        return 0.5
    return int(value) ^ (1 << int(generator.integers(20)))


def test_the_log_verifies_before_it_is_changed(bench: Bench) -> None:
    seen = bench.after(lambda connection: None)
    assert seen is not None
    assert seen.holds, seen.problem
    assert 55 <= seen.events <= 70
    kinds = {row["kind"] for row in bench.rows(EVENTS)}
    assert kinds == {"init", "software", "ask", "tell", "late", "correct", "lost", "decide"}


def test_one_byte_of_an_event(bench: Bench) -> None:
    generator = np.random.default_rng(1)
    events = bench.rows(EVENTS)
    taken = {row["number"] for row in events} | {1, 2, 3}  # a number or the other experiment's that is taken already
    done = 0
    while done < 3 * bench.places:
        column = str(generator.choice(["number", "kind", "time", "body", "hash", "experiment"]))
        row = events[int(generator.integers(len(events)))]
        value = 2 if column == "experiment" else another(bench, row[column], generator)
        if (column == "experiment" and row["number"] <= 3) or (column == "number" and value in taken):
            continue
        where = (EVENTS.c.experiment == 1, EVENTS.c.number == row["number"])
        change = EVENTS.update().where(*where).values({column: value})
        first = column == "number" and int(value) < 1  # which would be the first event
        found(bench, executing(change), 1 if first else row["number"])
        done += 1


def test_a_deleted_event_also_the_last_one(bench: Bench) -> None:
    generator = np.random.default_rng(2)
    events = [row["number"] for row in bench.rows(EVENTS)]
    for trial in range(bench.places):
        number = events[-1] if trial % 10 == 0 else int(generator.choice(events))
        gone = EVENTS.delete().where(EVENTS.c.experiment == 1, EVENTS.c.number == number)
        found(bench, executing(gone), number)


def test_two_events_that_change_places(bench: Bench) -> None:
    generator = np.random.default_rng(3)
    events = bench.rows(EVENTS)
    for trial in range(bench.places):
        one, two = sorted(int(k) for k in generator.choice(len(events), 2, replace=False))
        if trial % 2:
            two = min(one + 1, len(events) - 1)
            one = two - 1
        keep = ("kind", "time", "body") if trial % 4 < 2 else ("kind", "time", "body", "hash")

        def swap(connection: sql.Connection, one: int = one, two: int = two, keep: tuple[str, ...] = keep) -> None:
            for number, other in ((one, two), (two, one)):
                where = (EVENTS.c.experiment == 1, EVENTS.c.number == events[number]["number"])
                connection.execute(EVENTS.update().where(*where).values({name: events[other][name] for name in keep}))

        found(bench, swap, events[one]["number"])


def test_an_added_event(bench: Bench) -> None:
    events = bench.rows(EVENTS)
    for row in events[2:]:
        extra = {**row, "number": events[-1]["number"] + 1}
        extra["hash"] = chained(events[-1]["hash"], extra["number"], row["kind"], row["time"], row["body"])
        found(bench, executing(EVENTS.insert().values(extra)))


def test_a_changed_ticket(bench: Bench) -> None:
    generator = np.random.default_rng(4)
    tickets = bench.rows(TICKETS)
    keys = {(row["batch"], row["position"], row["attempt"]) for row in tickets}
    done = 0
    while done < bench.places:
        column = str(generator.choice(["batch", "position", "attempt", "arm", "issued", "status", "reward"]))
        row = tickets[int(generator.integers(len(tickets)))]
        value = another(bench, row[column], generator)
        moved = row | {column: value}
        if column in KEY and tuple(moved[name] for name in KEY) in keys:
            continue
        if value == row[column]:  # -0.0 and 0.0 are one number
            continue
        where = (TICKETS.c.experiment == 1, *(TICKETS.c[name] == row[name] for name in KEY))
        change = TICKETS.update().where(*where).values({column: value})
        found(bench, executing(change))
        done += 1


def test_deleted_and_added_tickets_and_requests(bench: Bench) -> None:
    generator = np.random.default_rng(5)
    tickets, requests = bench.rows(TICKETS), bench.rows(REQUESTS)
    for _ in range(bench.places // 4):
        row = tickets[int(generator.integers(len(tickets)))]
        where = (TICKETS.c.experiment == 1, *(TICKETS.c[name] == row[name] for name in KEY))
        found(bench, executing(TICKETS.delete().where(*where)))
        extra = row | {"attempt": row["attempt"] + 7}
        found(bench, executing(TICKETS.insert().values(extra)))
        asked = requests[int(generator.integers(len(requests)))]
        mine = (REQUESTS.c.experiment == 1, REQUESTS.c.request == asked["request"])
        column = ("request", "event")[int(generator.integers(2))]
        changed = REQUESTS.update().where(*mine).values({column: another(bench, asked[column], generator)})
        found(bench, executing(changed))
        found(bench, executing(REQUESTS.delete().where(*mine)))


def test_a_changed_metric(bench: Bench) -> None:
    generator = np.random.default_rng(8)
    metrics = bench.rows(METRICS)
    assert len(metrics) >= 16
    names = (*KEY, "name")
    keys = {tuple(row[name] for name in names) for row in metrics}
    done = 0
    while done < bench.places:
        column = str(generator.choice([*names, "value", "experiment"]))
        row = metrics[int(generator.integers(len(metrics)))]
        value = 2 if column == "experiment" else another(bench, row[column], generator)
        moved = row | {column: value}
        if column in KEY and tuple(moved[name] for name in names) in keys:
            continue
        where = (METRICS.c.experiment == 1, *(METRICS.c[name] == row[name] for name in names))
        change = METRICS.update().where(*where).values({column: value})
        seen = found(bench, executing(change))
        assert (seen.problem or "").startswith("the table of metrics ")
        done += 1
    for row in metrics[:: max(1, len(metrics) // 5)]:
        where = (METRICS.c.experiment == 1, *(METRICS.c[name] == row[name] for name in names))
        found(bench, executing(METRICS.delete().where(*where)))
        found(bench, executing(METRICS.insert().values(row | {"name": "more"})))


def test_a_changed_row_of_the_experiment(bench: Bench) -> None:
    """With another name, or as another experiment's row, it is not found or has no log."""
    generator = np.random.default_rng(6)
    row = next(row for row in bench.rows(EXPERIMENTS) if row["name"] == "cta")
    columns = [column.name for column in EXPERIMENTS.columns]
    for trial in range(bench.places):
        column = columns[trial % len(columns)]
        value = another(bench, row[column], generator)
        if column == "id" and value == 2:
            continue
        change = EXPERIMENTS.update().where(EXPERIMENTS.c.id == 1).values({column: value})
        seen = bench.after(executing(change))
        assert (seen is None) if column == "name" else (seen is not None and not seen.holds)


def test_a_log_that_was_cut_and_whose_hashes_were_computed_anew_is_found_by_a_receipt_alone(bench: Bench) -> None:
    """An administrator who writes a shorter log, with the tables that fit, forges a store that verifies.

    Nothing inside the store can show it. The head that a receipt or an export gave before is no longer in the log.
    """
    events = bench.rows(EVENTS)
    head = events[-1]["hash"]
    whole = bench.after(lambda connection: None, expect=head)
    assert whole is not None
    assert whole.holds
    earlier = bench.after(lambda connection: None, expect=events[20]["hash"])
    assert earlier is not None
    assert earlier.holds  # a receipt of an earlier day still fits

    def forge(connection: sql.Connection) -> None:
        """Everything but the registration is taken back, and the registration gets another time."""
        for table in (TICKETS, REQUESTS, METRICS):
            connection.execute(table.delete().where(table.c.experiment == 1))
        connection.execute(EVENTS.delete().where(EVENTS.c.experiment == 1, EVENTS.c.number > 1))
        first, time = events[0], "2030-01-01T00:00:00.000000+00:00"
        anew = chained(FIRST_HASH, 1, first["kind"], time, first["body"])
        connection.execute(EVENTS.update().where(EVENTS.c.experiment == 1).values(time=time, hash=anew))
        fresh = sql.select(EXPERIMENTS.c.progress).where(EXPERIMENTS.c.id == 2)
        progress = (
            str(connection.execute(fresh).scalar_one())
            .replace('"issued":1', '"issued":0')
            .replace("[1,0,0,0]", "[0,0,0,0]")
        )
        values = {"events": 1, "head": anew, "created": time, "software": "", "progress": progress}
        connection.execute(EXPERIMENTS.update().where(EXPERIMENTS.c.id == 1).values(values))

    forged = bench.after(forge)
    assert forged is not None
    assert forged.holds, forged.problem
    caught = bench.after(forge, expect=head)
    assert caught is not None
    assert caught.problem == "the head of the receipt is not in the log: it was written anew, or is of another run"


def test_a_log_written_anew_must_still_be_the_policys(bench: Bench) -> None:
    """Hashes that fit do not help: rewards, tickets and decisions that do not follow from the protocol are found."""
    events = bench.rows(EVENTS)
    generator = np.random.default_rng(7)
    numbers = [row["number"] for row in events if row["kind"] in ("ask", "decide", "lost", "late", "tell")]
    assert any('"metrics"' in row["body"] for row in events if row["number"] in numbers)
    done = 0
    while done < bench.places:
        number = int(generator.choice(numbers))
        body = bytearray(events[number - 1]["body"].encode())
        digits = [k for k, byte in enumerate(body) if chr(byte).isdigit() and not inside_text(bytes(body), k)]
        if not digits:
            continue
        index = int(generator.choice(digits))
        body[index] = int(generator.choice([byte for byte in b"0123456789" if byte != body[index]]))
        if asks_for_more(bytes(body), events, number):
            continue

        def rewrite(connection: sql.Connection, number: int = number, body: str = body.decode()) -> None:
            previous = FIRST_HASH
            for row in events:
                text = body if row["number"] == number else row["body"]
                previous = chained(previous, row["number"], row["kind"], row["time"], text)
                where = (EVENTS.c.experiment == 1, EVENTS.c.number == row["number"])
                connection.execute(EVENTS.update().where(*where).values(body=text, hash=previous))
            connection.execute(EXPERIMENTS.update().where(EXPERIMENTS.c.id == 1).values(head=previous))

        seen = found(bench, rewrite)
        assert seen.event is None or seen.event >= number
        done += 1


def asks_for_more(body: bytes, events: list[Any], number: int) -> bool:
    """Whether an ask that got a batch's last slot now says that it wanted more of them: nobody can know."""
    try:
        before, after = json.loads(events[number - 1]["body"]), json.loads(body)
    except ValueError:  # such as 007
        return False
    if events[number - 1]["kind"] != "ask" or {**before, "n": 0} != {**after, "n": 0}:
        return False
    asks = [json.loads(row["body"]) for row in events if row["kind"] == "ask"]
    last = max(slot[0] for ask in asks if ask["batch"] == before["batch"] for slot in ask["slots"])
    return any(slot[0] == last for slot in before["slots"]) and after["n"] >= len(before["slots"])


def inside_text(body: bytes, index: int) -> bool:
    """Whether a byte of JSON stands between quotation marks, where it may say anything."""
    return body[:index].count(b'"') % 2 == 1
