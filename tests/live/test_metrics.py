"""Metrics: numbers that are told with a reward, kept beside it, exported, bound by the hashes, and never decide."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sql

from banditto.core.digest import canonical_json
from banditto.core.errors import BandittoError, ConflictError, InvalidArgument
from banditto.live.event_log import FIRST_HASH, Event, chained
from banditto.live.experiment import Experiment
from banditto.live.export import COLUMNS, read_log
from banditto.live.metrics import MetricSum
from banditto.live.reading import Reading
from banditto.live.store import Store, engine_of
from banditto.live.tables import EVENTS, EXPERIMENTS, METRICS
from banditto.live.told_rewards import Telling
from banditto.live.verify import verify
from banditto.report.audit import audit_page
from tests.live.administrators import allow_tampering
from tests.live.worlds import exported, hashed_reward, place, small

TOLD = {"revenue": 12.5, "clicks": 3.0}


@pytest.fixture
def experiment(store_url: str) -> Iterator[Experiment]:
    with Experiment.create(store_url, "cta", small(arm_names=["A", "B"])) as made:
        made.ask(12)
        yield made


def kept(experiment: Experiment) -> dict[tuple[str, str], float]:
    """What the table has, by ticket and name."""

    def look(view: Reading) -> dict[tuple[str, str], float]:
        rows = view.all_metrics(view.known(experiment.name)["id"])
        return {(f"{experiment.name}.{batch}-{position + 1}", name): value for batch, position, _, name, value in rows}

    return experiment._store.read(look)


def events(experiment: Experiment) -> list[Event]:
    return experiment._store.read(lambda view: list(view.events(view.known(experiment.name)["id"])))


def sums(experiment: Experiment) -> list[MetricSum]:
    return experiment._store.read(lambda view: view.metric_sums(view.known(experiment.name)["id"]))


def unchanged(experiment: Experiment, act: Callable[[], object], kind: type[BandittoError], match: str) -> None:
    """`act` is refused in one line and leaves no trace."""
    before = experiment.status(), kept(experiment)
    with pytest.raises(kind, match=match) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert (experiment.status(), kept(experiment)) == before
    assert verify(experiment._store.url, experiment.name).holds


# -- telling ----------------------------------------------------------------------------------------------------------


def test_metrics_are_kept_with_their_reward(experiment: Experiment, store_url: str) -> None:
    assert experiment.tell("cta.1-1", 1, metrics=TOLD) == "recorded"
    assert (
        experiment.tell_many([("cta.1-2", 0.5), ("cta.1-3", 0.5, {"clicks": 0}), ("cta.1-4", 0, None)])
        == ["recorded"] * 3
    )
    assert kept(experiment) == {("cta.1-1", "revenue"): 12.5, ("cta.1-1", "clicks"): 3.0, ("cta.1-3", "clicks"): 0.0}
    one, several = (event.body for event in events(experiment) if event.kind == "tell")
    assert one == '{"metrics":{"clicks":[[1,0,0,3.0]],"revenue":[[1,0,0,12.5]]},"rewards":[[1,0,0,1.0]]}'
    rewards = '"rewards":[[1,1,0,0.5],[1,2,0,0.5],[1,3,0,0.0]]'
    assert several == f'{{"metrics":{{"clicks":[[1,2,0,0.0]]}},{rewards}}}'
    assert verify(store_url, "cta").holds


def test_an_event_without_metrics_is_what_it_was(experiment: Experiment) -> None:
    experiment.tell("cta.1-1", 0.5)
    experiment.tell("cta.1-2", 0.5, {})
    experiment.tell_many([("cta.1-3", 0.5, None)])
    bodies = [event.body for event in events(experiment) if event.kind == "tell"]
    assert bodies == [f'{{"rewards":[[1,{position},0,0.5]]}}' for position in range(3)]


def test_metrics_never_decide(store_url: str) -> None:
    """Two runs with the same rewards, one of them with metrics that speak for the other arm: the same decisions."""
    decisions = []
    for name in ("plain", "measured"):
        with Experiment.create(store_url, name, small()) as experiment:
            while len(answer := experiment.ask(7)):
                rewards = [(ticket, hashed_reward(*place(ticket.id))) for ticket in answer]
                if name == "plain":
                    experiment.tell_many([(ticket.id, reward) for ticket, reward in rewards])
                else:
                    worse = [{"profit": (1 - 2 * ticket.arm) * 1e6} for ticket, _ in rewards]
                    told = [(ticket.id, reward, more) for (ticket, reward), more in zip(rewards, worse, strict=True)]
                    experiment.tell_many(told)
            decisions.append([event.body for event in events(experiment) if event.kind == "decide"])
            assert verify(store_url, name).holds
    assert decisions[0] == decisions[1]
    assert len(decisions[0]) >= 2


NUMBERS: list[Any] = [0, 7, -2.5, 10**20, np.int8(3), np.float32(0.1), np.float64(1 / 3), -0.0, 5e-324, 1e100, -1e100]


def test_numbers_of_python_and_numpy(experiment: Experiment, store_url: str) -> None:
    told = {f"m{k}": value for k, value in enumerate(NUMBERS)}
    experiment.tell("cta.1-1", 1, told)
    assert kept(experiment) == {("cta.1-1", name): float(value) for name, value in told.items()}
    assert math.copysign(1, kept(experiment)["cta.1-1", "m7"]) == 1  # -0.0 is 0.0
    assert experiment.tell("cta.1-1", 1, told) == "repeated"
    assert verify(store_url, "cta").holds
    assert len(sums(experiment)) == len(NUMBERS)  # no square is too large or too small for a server


BAD_VALUES = [math.nan, math.inf, -math.inf, 1.1e100, 10**400, True, np.True_, np.float64("nan"), "12.5", None, 1j, [1]]


@pytest.mark.parametrize("value", [*BAD_VALUES, np.array([1.0]), {}])
def test_values_that_are_none(experiment: Experiment, value: Any) -> None:
    allowed = r"^metric revenue: got .*, allowed: a finite number from -1e\+100 to 1e\+100$"
    many = [("cta.1-1", 0.5, {"clicks": 1}), ("cta.1-2", 0.5, {"clicks": 1, "revenue": value})]
    unchanged(experiment, lambda: experiment.tell("cta.1-1", 0.5, {"revenue": value}), InvalidArgument, allowed)
    unchanged(experiment, lambda: experiment.tell_many(many), InvalidArgument, allowed)


@pytest.mark.parametrize("name", ["", "a b", "x" * 101, "-a", ".a", "é", "a\n", "a:b", "a,b", "a=b", 5, None, ("a",)])
def test_bad_names_of_metrics(experiment: Experiment, name: Any) -> None:
    allowed = "^name of a metric: got .*, allowed: 1 to 100 letters, digits, hyphens, dots and underscores"
    unchanged(experiment, lambda: experiment.tell("cta.1-1", 0.5, {name: 1}), InvalidArgument, allowed)


@pytest.mark.parametrize("name", ["a", "9", "_", "x" * 100, "revenue.eur-2026_Q1", "NaN", "metric", np.str_("text")])
def test_odd_names_of_metrics(experiment: Experiment, store_url: str, name: str) -> None:
    assert experiment.tell("cta.1-1", 0.5, {name: 1}) == "recorded"
    assert kept(experiment) == {("cta.1-1", str(name)): 1.0}
    assert verify(store_url, "cta").holds


@pytest.mark.parametrize("metrics", [5, "revenue=5", [("revenue", 5)], ["revenue"], {"revenue"}, True, 0])
def test_metrics_that_are_none(experiment: Experiment, metrics: Any) -> None:
    allowed = "^metrics: got .*, allowed: numbers by their names, such as {'revenue': 12.5}$"
    unchanged(experiment, lambda: experiment.tell("cta.1-1", 0.5, metrics), InvalidArgument, allowed)


@pytest.mark.parametrize("telling", [(), ("cta.1-1",), ("cta.1-1", 0.5, None, 1, 1), 5, None])
def test_rewards_of_another_shape(experiment: Experiment, telling: Any) -> None:
    allowed = "^rewards: got .*, allowed: a ticket's id, its reward and, if there are any, metrics and the arm$"
    unchanged(experiment, lambda: experiment.tell_many([("cta.1-2", 0.5), telling]), InvalidArgument, allowed)


def test_an_experiment_has_at_most_fifty_names(experiment: Experiment, store_url: str) -> None:
    fifty = {f"m{k:02}": k for k in range(50)}
    other = "^metrics: got more, allowed: at most 50 names in an experiment, which has "
    unchanged(experiment, lambda: experiment.tell("cta.1-1", 0.5, fifty | {"more": 1}), InvalidArgument, f"{other}0$")
    assert experiment.tell("cta.1-1", 0.5, dict(list(fifty.items())[:49])) == "recorded"
    two = [("cta.1-2", 0.5, {"m49": 1}), ("cta.1-3", 0.5, {"more": 1})]
    unchanged(experiment, lambda: experiment.tell_many(two), InvalidArgument, "which has 49$")
    assert experiment.tell("cta.1-2", 0.5, fifty) == "recorded"
    unchanged(experiment, lambda: experiment.tell("cta.1-3", 0.5, {"more": 1}), InvalidArgument, f"{other}50$")
    assert experiment.tell("cta.1-3", 0.5, fifty) == "recorded"
    with Experiment.create(store_url, "beside", small()) as beside:  # whose names are its own
        beside.ask(1)
        assert beside.tell("beside.1-1", 0.5, {"more": 1}) == "recorded"
        names = beside._store.read(lambda view: [view.metric_names(number) for number in (1, 2, 3)])
    assert [sorted(found) for found in names] == [sorted(fifty), ["more"], []]
    assert verify(store_url, "cta").holds


# -- telling again ----------------------------------------------------------------------------------------------------

STAY = "; metrics come with the reward and stay as they are$"
CONFLICTS: list[tuple[dict[str, float] | None, dict[str, float], str]] = [
    (TOLD, TOLD | {"clicks": 4}, "has the metric clicks 3.0 and was told 4.0"),
    (TOLD, {"clicks": 3}, "has the metrics clicks, revenue and was told the metric clicks"),
    (TOLD, TOLD | {"more": 1}, "has the metrics clicks, revenue and was told the metrics clicks, more, revenue"),
    (TOLD, {"other": 3}, "has the metrics clicks, revenue and was told the metric other"),
    (None, {"clicks": 3}, "has no metrics and was told the metric clicks"),
]


@pytest.mark.parametrize("late", [False, True])
def test_the_same_again_is_nothing(experiment: Experiment, store_url: str, late: bool) -> None:
    if late:
        experiment.missing("cta.1-1", "lost")
    first, again = ("excluded", "excluded") if late else ("recorded", "repeated")
    assert experiment.tell("cta.1-1", 0.5, TOLD) == first
    before = experiment.status()
    for metrics in (TOLD, {"clicks": 3, "revenue": np.float64(12.5)}, None, {}):
        assert experiment.tell("cta.1-1", 0.5, metrics) == again
    assert experiment.tell_many([("cta.1-1", 0.5), ("cta.1-1", 0.5, TOLD)]) == [again, again]
    assert experiment.status() == before
    wrong = "^ticket cta.1-1 has the reward 0.5 and was told 0.25"
    unchanged(experiment, lambda: experiment.tell("cta.1-1", 0.25, TOLD), ConflictError, wrong)
    assert verify(store_url, "cta").holds


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("before", "told", "problem"), CONFLICTS)
def test_other_metrics_are_a_conflict(
    experiment: Experiment, before: dict[str, float] | None, told: dict[str, float], problem: str, late: bool
) -> None:
    if late:
        experiment.missing("cta.1-1", "lost")
    at_once = [("cta.1-1", 0.5, before), ("cta.1-2", 0.5, TOLD), ("cta.1-1", 0.5, told)]
    unchanged(experiment, lambda: experiment.tell_many(at_once), ConflictError, f"^ticket cta.1-1 {problem}{STAY}")
    experiment.tell("cta.1-1", 0.5, before)
    again = [("cta.1-2", 0.5, TOLD), ("cta.1-1", 0.5, told)]
    unchanged(experiment, lambda: experiment.tell_many(again), ConflictError, f"^ticket cta.1-1 {problem}{STAY}")


def test_who_tells_again_in_one_call(experiment: Experiment) -> None:
    assert experiment.tell_many([("cta.1-1", 0.5, TOLD), ("cta.1-1", 0.5), ("cta.1-1", 0.5, TOLD)]) == [
        *("recorded", "repeated", "repeated")
    ]


def test_a_correction_leaves_metrics_alone(experiment: Experiment, store_url: str) -> None:
    experiment.tell("cta.1-1", 0.5, TOLD)
    experiment.correct("cta.1-1", 0.25, "typo")
    assert experiment.tell("cta.1-1", 0.25, TOLD) == "repeated"
    assert kept(experiment) == {("cta.1-1", name): value for name, value in TOLD.items()}
    assert verify(store_url, "cta").holds


def test_metrics_of_many_tickets_are_looked_up(experiment: Experiment, store_url: str) -> None:
    """All of a batch again, in another process; an attempt at a slot does not have what another attempt has."""
    experiment.missing("cta.1-1", "lost")
    experiment.tell("cta.1-1", 0.5, {"clicks": 1})
    (again,) = experiment.ask(1)
    assert again.id == "cta.1-1-2"
    told = [(again.id, 0.5, {"clicks": 2}), *((f"cta.1-{k}", 0.5, {"clicks": k}) for k in range(2, 13))]
    assert set(experiment.tell_many(told)) == {"recorded"}
    with Experiment.open(store_url, "cta") as other:
        assert set(other.tell_many(told)) == {"repeated"}
        assert other.tell("cta.1-1", 0.5, {"clicks": 1}) == "excluded"
        with pytest.raises(ConflictError, match="^ticket cta.1-1-2 has the metric clicks 2.0 and was told 1.0"):
            other.tell(again.id, 0.5, {"clicks": 1})
    assert verify(store_url, "cta").holds


# -- sums -------------------------------------------------------------------------------------------------------------


def test_sums_are_by_name_batch_and_arm_and_leave_late_rewards_out(store_url: str) -> None:
    expected: dict[tuple[str, int, int], list[float]] = {}
    with Experiment.create(store_url, "beside", small()) as beside:
        beside.ask(1)
        beside.tell("beside.1-1", 0.5, {"Revenue": 5})
    with Experiment.create(store_url, "cta", small()) as experiment:
        assert sums(experiment) == []
        while len(answer := experiment.ask(5)):
            told = []
            for ticket in answer:
                batch, position = place(ticket.id)
                if position == 4 and ticket.id.count("-") == 1:
                    experiment.missing(ticket.id, "lost")
                    experiment.tell(ticket.id, 0.5, {"revenue": 1e6})
                    continue
                metrics = {"revenue": hashed_reward(position, batch) - 0.5, "Zeal": float(position)}
                if position % 3 == 0:
                    del metrics["Zeal"]
                for name, value in metrics.items():
                    expected.setdefault((name, batch, ticket.arm), []).append(value)
                told.append((ticket.id, hashed_reward(batch, position), metrics))
            experiment.tell_many(told)
        found = sums(experiment)
    assert [(line.name, line.batch, line.arm) for line in found] == sorted(expected)
    for line in found:
        values = expected[line.name, line.batch, line.arm]
        assert (line.count, line.smallest, line.largest) == (len(values), min(values), max(values))
        assert line.total == pytest.approx(float(sum(map(Fraction, values))), rel=1e-12, abs=1e-12)
        assert line.squares == pytest.approx(math.fsum(value * value for value in values), rel=1e-12)
    assert len(found) >= 8


# -- tampering --------------------------------------------------------------------------------------------------------


def rewritten(connection: sql.Connection, old: str, new: str) -> None:
    """Put other text into events, with hashes that fit, as an administrator can."""
    allow_tampering(connection)
    previous = FIRST_HASH
    for row in connection.execute(sql.select(EVENTS).order_by(EVENTS.c.number)).mappings().all():
        body = row["body"].replace(old, new)
        previous = chained(previous, row["number"], row["kind"], row["time"], body)
        connection.execute(EVENTS.update().where(EVENTS.c.number == row["number"]).values(body=body, hash=previous))
    connection.execute(EXPERIMENTS.update().values(head=previous))


CHANGES: dict[str, tuple[Callable[[sql.Connection], object], str]] = {
    "an event": (
        lambda c: c.execute(
            EVENTS.update().where(EVENTS.c.kind == "tell").values(body=sql.func.replace(EVENTS.c.body, "12.5", "99.5"))
        ),
        "its hash is wrong",
    ),
    "a chain": (lambda c: rewritten(c, "12.5", "99.5"), "the table of metrics has another revenue of ticket 1-1"),
    "a name in a chain": (lambda c: rewritten(c, "clicks", "clocks"), "the table of metrics has another clicks"),
    "a ticket in a chain": (
        lambda c: rewritten(c, "[1,0,0,12.5]", "[1,1,0,12.5]"),
        "whose reward is not in this event",
    ),
    "a chain without": (lambda c: rewritten(c, METRICS_IN_BODY, ""), "the table of metrics has another"),
    "a value": (
        lambda c: c.execute(METRICS.update().where(METRICS.c.name == "revenue").values(value=99.5)),
        "the table of metrics has another revenue of ticket 1-1 than the log",
    ),
    "a row": (
        lambda c: c.execute(METRICS.delete().where(METRICS.c.name == "revenue")),
        "the table of metrics lacks some that are in the log",
    ),
    "all rows": (lambda c: c.execute(METRICS.delete()), "the table of metrics lacks some that are in the log"),
    "the table": (lambda c: METRICS.drop(c), "the table of metrics lacks some that are in the log"),
}
METRICS_IN_BODY = '"metrics":{"clicks":[[1,0,0,3.0]],"revenue":[[1,0,0,12.5]]},'


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_metric_is_found(experiment: Experiment, store_url: str, what: str) -> None:
    experiment.tell("cta.1-1", 0.5, TOLD)
    assert verify(store_url, "cta").holds
    change, problem = CHANGES[what]
    engine = engine_of(store_url)
    with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
        allow_tampering(connection)
        change(connection)
    engine.dispose()
    found = verify(store_url, "cta")
    assert problem in (found.problem or "")


def test_whoever_may_write_may_write_metrics(store_url: str) -> None:
    with Store(store_url) as store:
        store.write(lambda rows: rows.try_writing())
        engine = engine_of(store_url)
        with engine.connect().execution_options(banditto_writes=True) as connection, connection.begin():
            METRICS.drop(connection)
        engine.dispose()
        with pytest.raises(BandittoError, match="banditto_metric"):
            store.write(lambda rows: rows.try_writing())


# -- exports ----------------------------------------------------------------------------------------------------------


def test_exports_have_a_column_for_each_metric(experiment: Experiment, store_url: str) -> None:
    plain = exported(store_url, "cta", "csv").decode().splitlines()[0]
    assert plain == ",".join(COLUMNS)
    experiment.missing("cta.1-3", "lost")
    told: list[Telling] = [("cta.1-1", 1, TOLD), ("cta.1-2", 0.5)]
    told += [("cta.1-3", 0.5, {"revenue": -1e-7}), ("cta.1-4", 0, {"Zeal": 0})]
    assert experiment.tell_many(told) == ["recorded", "recorded", "excluded", "recorded"]
    text = exported(store_url, "cta", "csv").decode()
    extra = ["metric:Zeal", "metric:clicks", "metric:revenue"]
    assert text.splitlines()[0].split(",") == [*COLUMNS, *extra]
    cells = {line["ticket"]: [line[name] for name in ("status", *extra)] for line in csv.DictReader(io.StringIO(text))}
    assert cells["cta.1-1"] == ["told", "", "3.0", "12.5"]
    assert cells["cta.1-2"] == ["told", "", "", ""]
    assert cells["cta.1-3"] == ["late", "", "", "-1e-07"]  # kept, and marked by its status
    assert cells["cta.1-4"] == ["told", "0.0", "", ""]
    assert cells["cta.1-5"] == ["open", "", "", ""]
    parquet: Any = import_module("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(exported(store_url, "cta", "parquet")))
    assert table.column_names == [*COLUMNS, *extra]
    assert {str(table.schema.field(name).type) for name in extra} == {"double"}
    assert table.column("metric:revenue").to_pylist()[:4] == [12.5, None, -1e-7, None]
    assert "The log verifies" in audit_page(read_log(store_url, "cta"))


def test_a_parquet_file_without_metrics_is_what_it_was(experiment: Experiment, store_url: str) -> None:
    experiment.tell("cta.1-1", 0.5)
    parquet: Any = import_module("pyarrow.parquet")
    assert parquet.read_table(io.BytesIO(exported(store_url, "cta", "parquet"))).column_names == list(COLUMNS)


def test_the_json_export_has_metrics_in_its_events_and_its_chain(experiment: Experiment, store_url: str) -> None:
    experiment.tell("cta.1-1", 0.5, TOLD | {"third": 1 / 3})
    content = json.loads(exported(store_url, "cta", "json"))
    previous = FIRST_HASH
    for event in content["events"]:
        body = canonical_json(event["content"])
        previous = chained(previous, event["number"], event["kind"], event["time"], body)
        assert event["hash"] == previous
    assert previous == content["head"] == experiment.status().head
    assert content["events"][-1]["content"]["metrics"] == {
        **{"clicks": [[1, 0, 0, 3.0]], "revenue": [[1, 0, 0, 12.5]], "third": [[1, 0, 0, 1 / 3]]}
    }
