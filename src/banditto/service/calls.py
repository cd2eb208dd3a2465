"""What clients send, and what they make of the answers: one place for the client that waits and the one that awaits.

Arguments are checked here as `Experiment` checks them, with the registration that the service gave, so that a mistake
is the same error and costs no journey.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from banditto.core.errors import InvalidArgument
from banditto.core.exact import integer
from banditto.core.protocol import Protocol
from banditto.core.tabular import items_in
from banditto.live.answers import Answer, Changed, ExperimentStatus, Pending, PendingTickets, Told
from banditto.live.ask_tell import MOST_LOST, Totals, checked_totals
from banditto.live.checked_words import (
    LONGEST_TEXT,
    LONGEST_UNIT,
    checked_age,
    checked_name,
    checked_request,
    checked_text,
)
from banditto.live.experiment import MOST_TICKETS
from banditto.live.registration import Registration, RewardRange
from banditto.live.tickets import TicketIds
from banditto.live.told_rewards import Tellings, checked_tellings
from banditto.live.verify import VerificationContent
from banditto.measure.analysis.analysis import AnalysisContent

T = TypeVar("T")
MOST_REWARDS = 10_000  # that a service takes at once


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """A request, and how to read its answer. It may be sent again: no request does anything twice."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def names_call() -> Call[list[str]]:
    """Make the call that lists the names of experiments."""
    return Call(method="GET", path="/v1/experiments", read=lambda content: list(content["experiments"]))


def card_call(name: str) -> Call[ExperimentCard]:
    """Make the call that looks up what is needed to ask and tell."""

    def read(content: Any) -> ExperimentCard:
        """Turn the answer's JSON into a card."""
        low, high = content["rewards"] or (-math.inf, math.inf)
        return ExperimentCard(
            name=content["name"],
            digest=content["digest"],
            arm_names=tuple(content["arm_names"]),
            rewards=RewardRange(low=low, high=high),
            bare_tickets=content["bare_tickets"],
        )

    return Call(method="GET", path=f"{_path(name)}/card", read=read)


def registration_call(name: str) -> Call[Registration]:
    """Make the call that looks up an experiment's registration."""
    return Call(method="GET", path=f"{_path(name)}/registration", read=_registration)


def register_call(name: str, wanted: Registration) -> Call[Registration]:
    """Make the call that registers an experiment; one that is there with this registration is left as it is."""
    rewards = wanted.rewards
    body = {
        "protocol": wanted.protocol.to_dict(),
        "arm_names": list(wanted.arm_names),
        "rewards": [rewards.low, rewards.high] if rewards.bounded else [],
        "fallback": wanted.fallback,
        "deadline": wanted.deadline,
    }
    return Call(method="PUT", path=_path(name), body=body, read=_registration)


def replicate_call(first: str, second: str) -> Call[dict[str, Any]]:
    """Make the call that compares two experiments of the service's store."""
    body = {"first": checked_name(first, "first"), "second": checked_name(second, "second")}
    return Call(method="POST", path="/v1/replicate", body=body, read=dict)


def plan_call(question: Mapping[str, Any]) -> Call[tuple[dict[str, Any], Protocol]]:
    """Make the call that plans an experiment; its answer is the plan as plain data, and its protocol."""

    def read(content: Any) -> tuple[dict[str, Any], Protocol]:
        return content["plan"], Protocol.from_dict(content["protocol"])

    return Call(method="POST", path="/v1/plan", body=dict(question), read=read)


def _path(name: str) -> str:
    return f"/v1/experiments/{quote(checked_name(name), safe='')}"


def _registration(content: Any) -> Registration:
    from banditto.core.digest import canonical_json

    return Registration.from_json(canonical_json(content["registration"]))


@dataclass(frozen=True, kw_only=True)
class ExperimentCard:
    """What a caller must know of an experiment to ask and tell; whoever may read gets its registration, too."""

    name: str
    digest: str
    arm_names: tuple[str, ...]
    rewards: RewardRange
    bare_tickets: bool


class ExperimentCalls:
    """Makes the calls of one experiment, one method for each method of `Experiment`; it sends nothing itself."""

    def __init__(self, card: ExperimentCard) -> None:
        self._path, self._card = _path(card.name), card
        self._ids = TicketIds(card.name, bare=card.bare_tickets)

    def ask(self, n: int = 1, request_id: str | None = None, *, unit: str | None = None) -> Call[Answer]:
        """Make the call for tickets; without a key or unit it gets a random key, so that it can be sent again."""
        n = integer(n, "n", 1, MOST_TICKETS)
        if unit is None:
            key = uuid.uuid4().hex if request_id is None else checked_request(request_id)
            return self._post("ask", {"n": n, "request_id": key}, Answer.from_dict)
        if n != 1 or request_id is not None:
            raise InvalidArgument("unit", unit, "one ticket and no request id: a unit is its own request")
        return self._post("ask", {"unit": checked_text(unit, "unit", LONGEST_UNIT)}, Answer.from_dict)

    def tell_many(self, rewards: Tellings) -> Call[list[Told]] | None:
        """Tell rewards, all of them or none; no call comes back for no rewards."""
        tellings = checked_tellings(rewards, self._card)
        if not tellings:
            return None
        if len(tellings) > MOST_REWARDS:
            raise InvalidArgument("rewards", f"{len(tellings):,} of them", f"at most {MOST_REWARDS:,} at once")
        self._ids.check_all([ticket for ticket, _, _, _ in tellings])
        listed = [
            {"ticket": ticket, "reward": reward}
            if not metrics and arm is None  # as most are
            else {"ticket": ticket, "reward": reward}
            | ({"metrics": dict(metrics)} if metrics else {})
            | ({} if arm is None else {"arm": arm})
            for ticket, reward, metrics, arm in tellings
        ]
        return self._post("tell", {"rewards": listed}, lambda content: list(content["told"]))

    def tell_totals(self, batch: int, totals: Totals) -> Call[Told]:
        """Make the call that tells a whole batch at once."""
        batch = integer(batch, "batch", 1, 10**6)
        counts, sums = checked_totals(self._card, totals)
        names = self._card.arm_names
        told = {names[arm]: {"count": count, "total": _number(sums[arm])} for arm, count in enumerate(counts) if count}
        body = {"batch": batch, "totals": told}
        return self._post("totals", body, lambda content: content["told"][0])

    def correct(self, ticket: str, reward: float, reason: str) -> Call[Changed]:
        """Make the call that replaces a wrong reward."""
        value = self._card.rewards.checked(reward)
        self._ids.read(ticket)
        body = {"ticket": ticket, "reward": value, "reason": checked_text(reason, "reason", LONGEST_TEXT)}
        return self._post("correct", body, lambda content: content["changed"][0])

    def missing_many(self, tickets: Iterable[str], reason: str, *, by: str = "") -> Call[list[Changed]] | None:
        """Say that rewards will not come; no call comes back for no tickets."""
        listed = items_in(tickets, "tickets", "a list of ids")
        body = {"tickets": listed, **_reasons(reason, by)}
        for ticket in listed:
            self._ids.read(ticket)
        if len(listed) > MOST_LOST:
            raise InvalidArgument("tickets", f"{len(listed):,} of them", f"at most {MOST_LOST:,} at once")
        return self._post("missing", body, lambda content: list(content["changed"])) if listed else None

    def missing_older(self, older_than: float | timedelta, reason: str, *, by: str = "") -> Call[int]:
        """Make the call that gives up all tickets older than this; its answer is how many there were."""
        body = {"older_than": checked_age(older_than), **_reasons(reason, by)}
        return self._post("missing-older", body, lambda content: int(content["given_up"]))

    def stop(self, reason: str) -> Call[Changed]:
        """Make the call that ends the experiment before its horizon."""
        body = {"reason": checked_text(reason, "reason", LONGEST_TEXT)}
        return self._post("stop", body, lambda content: content["changed"][0])

    def status(self) -> Call[ExperimentStatus]:
        """Make the call that looks up where the experiment stands."""
        return Call(method="GET", path=self._path, read=ExperimentStatus.from_dict)

    def pending(self, older_than: float | timedelta | None = None, most: int = 1000) -> Call[PendingTickets]:
        """Make the call that lists tickets without a reward."""
        query = {"limit": str(integer(most, "most", 1, 10_000))}
        if older_than is not None:
            query["older_than"] = repr(checked_age(older_than))

        def read(content: Any) -> PendingTickets:
            return PendingTickets([Pending(**ticket) for ticket in content["tickets"]], content["total"])

        return Call(method="GET", path=f"{self._path}/pending", query=query, read=read)

    def events(self, after: int, limit: int) -> Call[tuple[list[dict[str, Any]], int | None]]:
        """Make the call for a page of the log; its answer is the events, and where the next page begins, if any."""
        query = {"after": str(integer(after, "after", 0, 2**62)), "limit": str(integer(limit, "limit", 1, 10_000))}

        def read(content: Any) -> tuple[list[dict[str, Any]], int | None]:
            return content["events"], content["next"]

        return Call(method="GET", path=f"{self._path}/events", query=query, read=read)

    def analyse(
        self,
        confidence: float,
        binary: bool | None,
        metric_ranges: Mapping[str, tuple[float, float]] | None,
        guardrails: Iterable[str] | None,
    ) -> Call[AnalysisContent]:
        """Make the call that analyses the experiment."""
        body = {
            "confidence": confidence,
            "binary": binary,
            "metric_ranges": None if metric_ranges is None else {key: list(two) for key, two in metric_ranges.items()},
            "guardrails": None if guardrails is None else list(guardrails),
        }
        return self._post("analyse", body, _same)

    def verify(self, expect: str | None) -> Call[VerificationContent]:
        """Make the call that replays the log."""
        return self._post("verify", {} if expect is None else {"expect": expect}, _same)

    def export(self, kind: str) -> Call[bytes]:
        """Make the call that fetches an exported file, as bytes."""
        return Call(method="GET", path=f"{self._path}/export/{quote(kind, safe='')}", read=bytes)

    def _post(self, verb: str, body: Mapping[str, Any], read: Callable[[Any], T]) -> Call[T]:
        return Call(method="POST", path=f"{self._path}/{verb}", body=body, read=read)


def _number(total: Fraction) -> int | float:
    """Return an exact total as an int or a float; raise `InvalidArgument` if no float equals it."""
    if total.denominator == 1:
        return total.numerator
    if Fraction(float(total)) != total:
        raise InvalidArgument("total", str(total), "an integer or a float, to be sent to a service")
    return float(total)


def _same(content: Any) -> Any:
    return content


def _reasons(reason: str, by: str) -> dict[str, str]:
    return {
        "reason": checked_text(reason, "reason", LONGEST_TEXT),
        "by": checked_text(by, "by", LONGEST_UNIT) if by else "",
    }
