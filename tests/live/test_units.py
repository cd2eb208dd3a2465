"""People, not tickets: one unit has one ticket, whatever happens, and its id is kept nowhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from banditto.core.errors import InvalidArgument
from banditto.live.experiment import Experiment
from banditto.live.export import read_log
from banditto.live.store import engine_of
from banditto.live.tables import EVENTS, REQUESTS, UNIT_KEYS, metadata
from banditto.live.verify import verify
from banditto.report.audit import audit_page
from tests.live.test_contract import unchanged
from tests.live.worlds import exported, finish, small

UNIT = "user-17@example.org"


@pytest.fixture
def experiment(store_url: str) -> Iterator[Experiment]:
    with Experiment.create(store_url, "cta", small(arm_names=["A", "B"], fallback="A")) as made:
        yield made


def test_a_unit_has_one_ticket_and_one_reward(experiment: Experiment, store_url: str) -> None:
    first = experiment.ask(unit=UNIT)
    assert ([ticket.id for ticket in first], first.repeated, first.state) == (["cta.1-1"], False, "issued")
    events = experiment.status().events
    for _ in range(3):
        again = experiment.ask(unit=UNIT)
        assert (again.tickets, again.repeated, again.fallback) == (first.tickets, True, None)
    assert experiment.status().events == events
    assert experiment.ask(unit="user-18")[0].id == "cta.1-2"
    assert experiment.ask()[0].id == "cta.1-3"
    with Experiment.open(store_url, "cta") as other:  # another process, or another day
        assert other.ask(unit=UNIT).tickets == first.tickets
    assert experiment.tell(first[0].id, 0.5) == "recorded"
    assert experiment.ask(unit=UNIT).tickets == first.tickets
    assert experiment.tell(first[0].id, 0.5) == "repeated"
    found = verify(store_url, "cta")
    assert found.holds, found.problem


def test_the_same_unit_in_another_experiment_has_another_hash(experiment: Experiment, store_url: str) -> None:
    experiment.ask(unit=UNIT)
    with Experiment.create(store_url, "other", small()) as other:
        assert other.ask(unit=UNIT)[0].id == "other.1-1"
    engine = engine_of(store_url)
    with engine.connect() as connection:
        requests = set(connection.execute(sql.select(REQUESTS.c.request)).scalars())
        keys = set(connection.execute(sql.select(UNIT_KEYS.c.key)).scalars())
    engine.dispose()
    assert (len(requests), len(keys)) == (2, 2)
    assert all(request.startswith("unit:") for request in requests)


def test_threads_that_ask_for_one_unit_get_one_ticket(experiment: Experiment, store_url: str) -> None:
    """Also the first of all, for whom the key is made."""
    units = [UNIT, "user-18", UNIT, UNIT, "user-19", "user-18"] * 3
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda unit: experiment.ask(unit=unit), units))
    by_unit: dict[str, set[str]] = {unit: set() for unit in units}
    for unit, answer in zip(units, answers, strict=True):
        by_unit[unit] |= {ticket.id for ticket in answer}
    assert all(len(tickets) == 1 for tickets in by_unit.values()), by_unit
    assert sum(not answer.repeated for answer in answers) == 3
    assert experiment.status().issued == 3
    assert verify(store_url, "cta").holds


def test_two_handles_make_one_key(experiment: Experiment, store_url: str) -> None:
    with Experiment.open(store_url, "cta") as other, ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda handle: handle.ask(unit=UNIT), (experiment, other)))
    assert both[0].tickets == both[1].tickets
    assert sorted(answer.repeated for answer in both) == [False, True]


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_the_id_of_a_unit_stands_nowhere(experiment: Experiment, store_url: str) -> None:
    """Neither as it is nor as a hash that anybody could compute; the key is in the store and in no export."""
    experiment.ask(unit=UNIT)
    experiment.tell("cta.1-1", 0.5)
    texts = {kind: exported(store_url, "cta", kind) for kind in ("csv", "json", "parquet")}
    texts["html"] = audit_page(read_log(store_url, "cta")).encode()
    engine = engine_of(store_url)
    with engine.connect() as connection:
        rows = [str(row) for table in metadata.sorted_tables for row in connection.execute(sql.select(table))]
        (key,) = connection.execute(sql.select(UNIT_KEYS.c.key)).scalars()
        (request,) = connection.execute(sql.select(REQUESTS.c.request)).scalars()
    engine.dispose()
    texts["tables"] = "\n".join(rows).encode()
    if store_url.startswith("sqlite"):
        folder = Path(str(sql.make_url(store_url).database)).parent
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert any(request.encode() in text for text in files.values())
        texts |= files
    hashes = [hashlib.new(kind, UNIT.encode()).hexdigest()[:32] for kind in ("sha256", "sha1", "md5")]
    for name, text in texts.items():
        for secret in (UNIT, "user-17", *hashes):
            assert secret.encode() not in text, (name, secret)
    assert len(bytes.fromhex(key)) == 32
    for name in ("csv", "json", "parquet", "html"):
        assert key.encode() not in texts[name]
    assert request.encode() in texts["json"]  # by which the log can still be verified


def test_a_key_of_one_store_does_not_find_a_unit_in_another(tmp_path: Path) -> None:
    requests = []
    for name in ("one", "two"):
        url = f"sqlite:///{tmp_path}/{name}-units.db"
        with Experiment.create(url, "cta", small()) as experiment:
            experiment.ask(unit=UNIT)
        content = json.loads(exported(url, "cta", "json"))
        requests += [event["content"]["request"] for event in content["events"] if event["kind"] == "ask"]
    assert requests[0] != requests[1]


# -- without a ticket --------------------------------------------------------------------------------------------------


def test_a_unit_that_comes_while_a_batch_waits_gets_the_fallback(experiment: Experiment) -> None:
    tickets = [experiment.ask(unit=f"u{k}")[0] for k in range(12)]
    status = experiment.status()
    for _ in range(2):
        answer = experiment.ask(unit="late")
        assert (len(answer), answer.state, answer.reason) == (0, "waiting", "batch 1 waits for 12 rewards")
        assert (answer.fallback, answer.arm_name, answer.repeated) == ((0, "A"), "A", False)
    assert experiment.status() == status  # it is outside the experiment
    assert experiment.ask(unit="u3")[0] == tickets[3]
    assert experiment.ask(unit="u3").arm_name == tickets[3].arm_name
    experiment.tell_many([(ticket.id, 0.5) for ticket in tickets])
    assert experiment.ask(unit="late")[0].id == "cta.2-1"  # there is a ticket now
    assert experiment.ask().fallback is None


def test_after_the_end_a_unit_gets_the_fallback_and_those_who_have_a_ticket_keep_it(store_url: str) -> None:
    for name in ("finished", "stopped"):
        with Experiment.create(store_url, name, small(fallback=1)) as experiment:
            mine = experiment.ask(unit=UNIT)
            finish(experiment) if name == "finished" else experiment.stop("enough")
            answer = experiment.ask(unit="another")
            assert (len(answer), answer.state, answer.fallback, answer.arm_name) == (0, name, (1, "1"), "1")
            again = experiment.ask(unit=UNIT)
            assert (again.tickets, again.fallback, again.repeated) == (mine.tickets, None, True)
            assert experiment.ask(2).fallback is None  # who asks for tickets is no unit


def test_without_a_fallback_there_is_none(store_url: str) -> None:
    with Experiment.create(store_url, "cta", small()) as experiment:
        experiment.ask(12)
        answer = experiment.ask(unit=UNIT)
        assert (answer.state, answer.fallback, answer.arm_name) == ("waiting", None, None)


@pytest.mark.parametrize("fallback", [2, -1, "C", 0.5, True, ""])
def test_a_fallback_must_be_an_arm(fallback: Any) -> None:
    with pytest.raises(InvalidArgument, match="^fallback: got"):
        small(arm_names=["A", "B"], fallback=fallback)


def test_a_fallback_changes_the_digest_and_no_decision(store_url: str) -> None:
    plain, other = small(), small(fallback=1)
    assert plain.digest != other.digest
    with Experiment.create(store_url, "one", plain) as one, Experiment.create(store_url, "two", other) as two:
        assert [ticket.arm for ticket in one.ask(12)] == [ticket.arm for ticket in two.ask(12)]


def test_a_unit_whose_ticket_was_given_up_keeps_it(experiment: Experiment, store_url: str) -> None:
    """Its slot is handed out again, to somebody else; the unit sees what it saw, and its reward is excluded."""
    mine = experiment.ask(unit=UNIT)
    experiment.missing(mine[0].id, "left the page")
    again = experiment.ask(unit=UNIT)
    assert (again.tickets, again.repeated) == (mine.tickets, True)
    other = experiment.ask(unit="another")
    assert (other[0].id, other[0].arm) == ("cta.1-1-2", mine[0].arm)
    assert experiment.tell(mine[0].id, 0.5) == "excluded"
    assert experiment.ask(unit=UNIT).tickets == mine.tickets
    assert verify(store_url, "cta").holds


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_unit_is_its_own_request(experiment: Experiment) -> None:
    allowed = "^unit: got user-17@example.org, allowed: one ticket and no request id"
    unchanged(experiment, lambda: experiment.ask(2, unit=UNIT), InvalidArgument, allowed)
    unchanged(experiment, lambda: experiment.ask(1, "r", unit=UNIT), InvalidArgument, allowed)
    unchanged(experiment, lambda: experiment.ask(request_id="r", unit=UNIT), InvalidArgument, allowed)


def test_nobody_asks_under_the_name_of_a_unit(experiment: Experiment, store_url: str) -> None:
    experiment.ask(unit=UNIT)
    engine = engine_of(store_url)
    with engine.connect() as connection:
        (request,) = connection.execute(sql.select(REQUESTS.c.request)).scalars()
    engine.dispose()
    for request_id in (request, "unit:", "unit:ann"):
        allowed = "^request_id: got unit:.*, allowed: text that does not begin with unit:"
        unchanged(experiment, partial(experiment.ask, 1, request_id), InvalidArgument, allowed)
    assert experiment.ask(1, "Unit:ann").state == "issued"


@pytest.mark.parametrize("unit", ["", "  ", "x" * 1001, "a\0b", "\ud800", 5, b"ann", True])
def test_bad_units(experiment: Experiment, unit: Any) -> None:
    unchanged(experiment, lambda: experiment.ask(unit=unit), InvalidArgument, "^unit: got")


@pytest.mark.parametrize("unit", ["x" * 1000, "\U0001f680" * 1000, "a  b", "'; DROP TABLE banditto_event; --", "%s"])
def test_odd_units(experiment: Experiment, store_url: str, unit: str) -> None:
    assert experiment.ask(unit=unit).tickets == experiment.ask(unit=unit).tickets
    assert experiment.status().issued == 1
    assert verify(store_url, "cta").holds


def test_the_requests_of_units_are_verified_like_all_others(experiment: Experiment, store_url: str) -> None:
    experiment.ask(unit=UNIT)
    engine = engine_of(store_url)
    with engine.begin() as connection:
        connection.execute(REQUESTS.update().values(request=f"unit:{'0' * 32}"))
        assert connection.execute(sql.select(EVENTS.c.kind).where(EVENTS.c.kind == "ask")).scalars().all() == ["ask"]
    engine.dispose()
    assert verify(store_url, "cta").problem == "the table of requests has others than the log"
