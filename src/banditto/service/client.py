"""Client: experiments of a service, with the methods of `Experiment`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Any, TypeVar

import httpx

from banditto.core.errors import InvalidArgument
from banditto.core.protocol import Protocol
from banditto.live.answers import Answer, Changed, ExperimentStatus, PendingTickets, Told
from banditto.live.ask_tell import Totals
from banditto.live.metrics import Metrics
from banditto.live.opening import wanted_registration
from banditto.live.registration import Registration, registered
from banditto.live.told_rewards import Tellings
from banditto.live.verify import VerificationContent
from banditto.measure.analysis.analysis import AnalysisContent
from banditto.service import calls
from banditto.service.calls import Call, ExperimentCalls, ExperimentCard
from banditto.service.sending import Attempts, Requests, checked_address, give_up, headers_of, read_answer

T = TypeVar("T")


class Client(AbstractContextManager["Client"]):
    """Speaks to a service of experiments (`banditto serve`); threads may share it.

    A request that gets no answer, or is told to come back later, is sent again until the deadline: no request does
    anything twice. Errors are the library's own; what only a service can say is a `ServiceError`.

    Args:
        url: where the service is, such as http://127.0.0.1:8642.
        token: the text of a token, as `banditto token create` printed it.
        deadline: seconds for a request and its repetitions.
        verify_tls: False, or the file of a certificate, for a service whose certificate the system does not know.

    Examples:
        >>> client = Client("http://127.0.0.1:8642", "bdt_0123456789ab_secret")
        >>> client.url
        'http://127.0.0.1:8642'
        >>> client.close()
    """

    def __init__(self, url: str, token: str, *, deadline: float = 60.0, verify_tls: bool | str = True) -> None:
        self.url, self._deadline = checked_address(url), deadline
        self._http = httpx.Client(
            base_url=self.url, headers=headers_of(token), timeout=deadline, verify=trusted(verify_tls)
        )
        self._requests = Requests(self._http)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def experiments(self) -> list[str]:
        """List the experiments that the token may see, the oldest first."""
        return self.send(calls.names_call())

    def open(self, name: str, protocol: Protocol | Registration | None = None) -> RemoteExperiment:
        """Open an experiment; with a protocol, register it if it is not there, which takes an admin's token.

        Args:
            name: the experiment.
            protocol: what the experiment must have been registered with; None takes whatever is there.

        Raises:
            ConflictError: the experiment has another protocol.
            InvalidArgument: there is no such experiment.
        """
        if protocol is None:
            return RemoteExperiment(self, self.send(calls.card_call(name)))
        try:
            found = self.send(calls.registration_call(name))
        except InvalidArgument as error:
            if error.argument != "name":
                raise
            wanted = registered(protocol) if isinstance(protocol, Protocol) else protocol
            found = self.send(calls.register_call(name, wanted))
        wanted_registration(found.to_json(), name, protocol)
        return RemoteExperiment(self, self.send(calls.card_call(name)))

    def replicate(self, first: str, second: str) -> dict[str, Any]:
        """Compare two experiments of one protocol; plain data comes back, as `Replication.to_dict` gives it.

        Args:
            first: the name of an experiment.
            second: the name of another.
        """
        return self.send(calls.replicate_call(first, second))

    def plan(self, **question: Any) -> tuple[dict[str, Any], Protocol]:
        """Plan an experiment; the plan comes back as `TrialPlan.to_dict` gives it, and its protocol.

        Args:
            question: what `plan` takes: arms, gap, rho, horizon, policy, power, rate_at_most, same and others. Without
                a seed, the service draws one.
        """
        return self.send(calls.plan_call(question))

    def send(self, call: Call[T]) -> T:
        """Send a request until it is answered; what it asked for comes back."""
        attempts = Attempts(self._deadline)
        while True:
            try:
                answer = self._http.send(self._requests.of(call))
            except httpx.TransportError as error:
                wait = attempts.pause(None, error)
                if wait is None:
                    give_up(self.url, error)
            else:
                wait = None if answer.is_success else attempts.pause(answer)
                if wait is None:
                    return read_answer(call, answer)
            time.sleep(wait)


class RemoteExperiment:
    """An experiment of a service, with the methods of `Experiment`; `Client.open` gives it.

    Attributes:
        name: the experiment's name.
        arm_names: the names of its arms, in order.
        digest: that of its registration.
    """

    def __init__(self, client: Client, card: ExperimentCard) -> None:
        self.name, self.arm_names, self.digest = card.name, card.arm_names, card.digest
        self._client, self._calls = client, ExperimentCalls(card)

    def registration(self) -> Registration:
        """Look up the protocol, the names of the arms and what rewards may be; that takes a token for reading."""
        return self._client.send(calls.registration_call(self.name))

    def ask(self, n: int = 1, request_id: str | None = None, *, unit: str | None = None) -> Answer:
        """Hand out tickets, as `Experiment.ask` does."""
        return self._client.send(self._calls.ask(n, request_id, unit=unit))

    def tell(self, ticket: str, reward: float, metrics: Metrics | None = None, *, arm: str | int | None = None) -> Told:
        """Record a ticket's reward, as `Experiment.tell` does."""
        return self.tell_many([(ticket, reward, metrics, arm)])[0]

    def tell_many(self, rewards: Tellings) -> list[Told]:
        """Record several rewards, all of them or none, as `Experiment.tell_many` does; 10,000 at the most."""
        call = self._calls.tell_many(rewards)
        return [] if call is None else self._client.send(call)

    def tell_totals(self, batch: int, totals: Totals) -> Told:
        """Record a whole batch at once, as `Experiment.tell_totals` does."""
        return self._client.send(self._calls.tell_totals(batch, totals))

    def correct(self, ticket: str, reward: float, reason: str) -> Changed:
        """Replace a reward that was wrong, as `Experiment.correct` does."""
        return self._client.send(self._calls.correct(ticket, reward, reason))

    def missing(self, ticket: str, reason: str, *, by: str = "") -> Changed:
        """Say that a reward will not come, as `Experiment.missing` does."""
        return self.missing_many([ticket], reason, by=by)[0]

    def missing_many(self, tickets: Iterable[str], reason: str, *, by: str = "") -> list[Changed]:
        """Say that several rewards will not come, as `Experiment.missing_many` does."""
        call = self._calls.missing_many(tickets, reason, by=by)
        return [] if call is None else self._client.send(call)

    def missing_older(self, older_than: float | timedelta, reason: str, *, by: str = "") -> int:
        """Say of all old tickets that their rewards will not come, as `Experiment.missing_older` does."""
        return self._client.send(self._calls.missing_older(older_than, reason, by=by))

    def stop(self, reason: str) -> Changed:
        """End the experiment before its horizon, as `Experiment.stop` does."""
        return self._client.send(self._calls.stop(reason))

    def status(self) -> ExperimentStatus:
        """Look up where the experiment stands, as `Experiment.status` does, without its `analysis`."""
        return self._client.send(self._calls.status())

    def pending(self, older_than: float | timedelta | None = None, most: int = 1000) -> PendingTickets:
        """List tickets without a reward, as `Experiment.pending` does; 10,000 at the most."""
        return self._client.send(self._calls.pending(older_than, most))

    def events(self, after: int = 0, limit: int = 1000) -> Iterator[dict[str, Any]]:
        """Yield the log, event by event: `number`, `kind`, `time`, `body` and `hash` of each.

        Args:
            after: the number of the last event that you have; 0 begins with the first.
            limit: how many are fetched at a time.
        """
        place: int | None = after
        while place is not None:
            found, place = self._client.send(self._calls.events(place, limit))
            yield from found

    def analyse(
        self,
        confidence: float = 0.95,
        *,
        binary: bool | None = None,
        metric_ranges: Mapping[str, tuple[float, float]] | None = None,
        guardrails: Iterable[str] | None = None,
    ) -> AnalysisContent:
        """Say what the experiment taught; plain data comes back, as `Analysis.to_dict` gives it.

        Args:
            confidence: how likely all intervals hold at once, at the least.
            binary: whether rewards are 0 or 1; None takes them as they look.
            metric_ranges: the smallest and the largest value of a metric, by its name.
            guardrails: bounds that metrics should keep, such as latency<=3.
        """
        return self._client.send(self._calls.analyse(confidence, binary, metric_ranges, guardrails))

    def verify(self, expect: str | None = None) -> VerificationContent:
        """Replay the log; plain data comes back, as `Verification.to_dict` gives it.

        Args:
            expect: the head that a receipt or an export gave; the log must still contain it.
        """
        return self._client.send(self._calls.verify(expect))

    def export(self, kind: str) -> bytes:
        """Get tickets ("csv", "parquet"), the log ("json") or an audit report ("html"); the file's bytes come back.

        Args:
            kind: one of these four.
        """
        return self._client.send(self._calls.export(kind))


def trusted(verify_tls: bool | str) -> Any:
    """Return `verify` for httpx: True or False as given, else a TLS context that trusts the file's certificates."""
    if isinstance(verify_tls, bool):
        return verify_tls
    import ssl

    return ssl.create_default_context(cafile=verify_tls)
