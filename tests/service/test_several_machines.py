"""Several services on one store, as on several machines: they share experiments, tickets and tokens."""

from __future__ import annotations

import sqlalchemy as sql

from banditto.live.experiment import Experiment
from banditto.live.store import engine_of
from banditto.live.tables import EXPERIMENTS
from banditto.live.verify import verify
from banditto.service.client import Client
from tests.live.administrators import allow_tampering
from tests.live.worlds import hashed_reward, place, simulated_arms, small, small_policy
from tests.service.services import new_token, service_in_thread


def test_two_services_play_one_experiment(store_url: str) -> None:
    Experiment.create(store_url, "cta", small()).close()
    token, arms = new_token(store_url, "ask", "tell"), dict[tuple[int, int], int]()
    with (
        service_in_thread(store_url) as one,
        service_in_thread(store_url) as two,
        Client(one, token) as first,
        Client(two, token) as second,
    ):
        asking, telling = first.open("cta"), second.open("cta")
        while (answer := asking.ask(7)).state == "issued":
            arms |= {place(ticket.id): ticket.arm for ticket in answer}
            telling.tell_many([(ticket.id, hashed_reward(*place(ticket.id))) for ticket in answer])
            again = telling.ask(3, f"request-{len(arms)}")
            assert asking.ask(3, f"request-{len(arms)}").tickets == again.tickets
            arms |= {place(ticket.id): ticket.arm for ticket in again}
            asking.tell_many([(ticket.id, hashed_reward(*place(ticket.id))) for ticket in again])
    expected = simulated_arms(small_policy(), small().protocol.seed, hashed_reward)
    assert arms == {(b, p): arm for b, batch in enumerate(expected, 1) for p, arm in enumerate(batch)}
    assert verify(store_url, "cta").holds


def test_an_experiment_that_was_replaced_is_opened_again(store_url: str) -> None:
    """As after a backup was put back, or where somebody has made it anew: no process goes on with the old one."""
    Experiment.create(store_url, "cta", small()).close()
    with service_in_thread(store_url) as address, Client(address, new_token(store_url)) as client:
        trial = client.open("cta")
        assert trial.ask(1)[0].id == "cta.1-1"
        rename(store_url)
        Experiment.create(store_url, "cta", small(arm_names=["A", "B"])).close()
        answer = client.open("cta").ask(1)
        assert (answer[0].id, answer[0].arm_name in ("A", "B")) == ("cta.1-1", True)
        assert client.open("cta").status().tickets["open"] == 1


def rename(url: str) -> None:
    """Give the experiment another name, as an administrator can."""
    engine = engine_of(url)
    with engine.begin() as connection:
        allow_tampering(connection)
        connection.execute(sql.update(EXPERIMENTS).values(name="old"))
    engine.dispose()
