"""AsyncClient: experiments of a service, for programs that await."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
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
from banditto.service.client import trusted
from banditto.service.sending import Attempts, Requests, checked_address, give_up, headers_of, read_answer

T = TypeVar("T")


class AsyncClient(AbstractAsyncContextManager["AsyncClient"]):
    """Speaks to a service of experiments, as `Client` does, for programs that use asyncio: its methods are awaited.

    Args:
        url: where the service is, such as http://127.0.0.1:8642.
        token: the text of a token, as `banditto token create` printed it.
        deadline: seconds for a request and its repetitions.
        verify_tls: False, or the file of a certificate, for a service whose certificate the system does not know.

    Examples:
        >>> AsyncClient("http://127.0.0.1:8642", "bdt_0123456789ab_secret").url
        'http://127.0.0.1:8642'
    """

    def __init__(self, url: str, token: str, *, deadline: float = 60.0, verify_tls: bool | str = True) -> None:
        self.url, self._deadline = checked_address(url), deadline
        self._http = httpx.AsyncClient(
            base_url=self.url, headers=headers_of(token), timeout=deadline, verify=trusted(verify_tls)
        )
        self._requests = Requests(self._http)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def experiments(self) -> list[str]:
        """List the experiments that the token may see, the oldest first."""
        return await self.send(calls.names_call())

    async def open(self, name: str, protocol: Protocol | Registration | None = None) -> AsyncRemoteExperiment:
        """Open an experiment, as `Client.open` does.

        Args:
            name: the experiment.
            protocol: what the experiment must have been registered with; None takes whatever is there.
        """
        if protocol is None:
            return AsyncRemoteExperiment(self, await self.send(calls.card_call(name)))
        try:
            found = await self.send(calls.registration_call(name))
        except InvalidArgument as error:
            if error.argument != "name":
                raise
            wanted = registered(protocol) if isinstance(protocol, Protocol) else protocol
            found = await self.send(calls.register_call(name, wanted))
        wanted_registration(found.to_json(), name, protocol)
        return AsyncRemoteExperiment(self, await self.send(calls.card_call(name)))

    async def replicate(self, first: str, second: str) -> dict[str, Any]:
        """Compare two experiments of one protocol, as `Client.replicate` does.

        Args:
            first: the name of an experiment.
            second: the name of another.
        """
        return await self.send(calls.replicate_call(first, second))

    async def plan(self, **question: Any) -> tuple[dict[str, Any], Protocol]:
        """Plan an experiment, as `Client.plan` does.

        Args:
            question: what `plan` takes.
        """
        return await self.send(calls.plan_call(question))

    async def send(self, call: Call[T]) -> T:
        """Send a request until it is answered; what it asked for comes back."""
        attempts = Attempts(self._deadline)
        while True:
            try:
                answer = await self._http.send(self._requests.of(call))
            except httpx.TransportError as error:
                wait = attempts.pause(None, error)
                if wait is None:
                    give_up(self.url, error)
            else:
                wait = None if answer.is_success else attempts.pause(answer)
                if wait is None:
                    return read_answer(call, answer)
            await asyncio.sleep(wait)


class AsyncRemoteExperiment:
    """An experiment of a service, as `RemoteExperiment` is one; its methods are awaited.

    Attributes:
        name: the experiment's name.
        arm_names: the names of its arms, in order.
        digest: that of its registration.
    """

    def __init__(self, client: AsyncClient, card: ExperimentCard) -> None:
        self.name, self.arm_names, self.digest = card.name, card.arm_names, card.digest
        self._client, self._calls = client, ExperimentCalls(card)

    async def registration(self) -> Registration:
        """Look up the protocol, the names of the arms and what rewards may be; that takes a token for reading."""
        return await self._client.send(calls.registration_call(self.name))

    async def ask(self, n: int = 1, request_id: str | None = None, *, unit: str | None = None) -> Answer:
        """Hand out tickets, as `Experiment.ask` does."""
        return await self._client.send(self._calls.ask(n, request_id, unit=unit))

    async def tell(
        self, ticket: str, reward: float, metrics: Metrics | None = None, *, arm: str | int | None = None
    ) -> Told:
        """Record a ticket's reward, as `Experiment.tell` does."""
        return (await self.tell_many([(ticket, reward, metrics, arm)]))[0]

    async def tell_many(self, rewards: Tellings) -> list[Told]:
        """Record several rewards, all of them or none, as `Experiment.tell_many` does; 10,000 at the most."""
        call = self._calls.tell_many(rewards)
        return [] if call is None else await self._client.send(call)

    async def tell_totals(self, batch: int, totals: Totals) -> Told:
        """Record a whole batch at once, as `Experiment.tell_totals` does."""
        return await self._client.send(self._calls.tell_totals(batch, totals))

    async def correct(self, ticket: str, reward: float, reason: str) -> Changed:
        """Replace a reward that was wrong, as `Experiment.correct` does."""
        return await self._client.send(self._calls.correct(ticket, reward, reason))

    async def missing(self, ticket: str, reason: str, *, by: str = "") -> Changed:
        """Say that a reward will not come, as `Experiment.missing` does."""
        return (await self.missing_many([ticket], reason, by=by))[0]

    async def missing_many(self, tickets: Iterable[str], reason: str, *, by: str = "") -> list[Changed]:
        """Say that several rewards will not come, as `Experiment.missing_many` does."""
        call = self._calls.missing_many(tickets, reason, by=by)
        return [] if call is None else await self._client.send(call)

    async def missing_older(self, older_than: float | timedelta, reason: str, *, by: str = "") -> int:
        """Say of all old tickets that their rewards will not come, as `Experiment.missing_older` does."""
        return await self._client.send(self._calls.missing_older(older_than, reason, by=by))

    async def stop(self, reason: str) -> Changed:
        """End the experiment before its horizon, as `Experiment.stop` does."""
        return await self._client.send(self._calls.stop(reason))

    async def status(self) -> ExperimentStatus:
        """Look up where the experiment stands, as `Experiment.status` does, without its `analysis`."""
        return await self._client.send(self._calls.status())

    async def pending(self, older_than: float | timedelta | None = None, most: int = 1000) -> PendingTickets:
        """List tickets without a reward, as `Experiment.pending` does; 10,000 at the most."""
        return await self._client.send(self._calls.pending(older_than, most))

    async def events(self, after: int = 0, limit: int = 1000) -> AsyncIterator[dict[str, Any]]:
        """Yield the log, event by event, as `RemoteExperiment.events` does.

        Args:
            after: the number of the last event that you have; 0 begins with the first.
            limit: how many are fetched at a time.
        """
        place: int | None = after
        while place is not None:
            found, place = await self._client.send(self._calls.events(place, limit))
            for event in found:
                yield event

    async def analyse(
        self,
        confidence: float = 0.95,
        *,
        binary: bool | None = None,
        metric_ranges: Mapping[str, tuple[float, float]] | None = None,
        guardrails: Iterable[str] | None = None,
    ) -> AnalysisContent:
        """Say what the experiment taught, as `RemoteExperiment.analyse` does.

        Args:
            confidence: how likely all intervals hold at once, at the least.
            binary: whether rewards are 0 or 1; None takes them as they look.
            metric_ranges: the smallest and the largest value of a metric, by its name.
            guardrails: bounds that metrics should keep, such as latency<=3.
        """
        return await self._client.send(self._calls.analyse(confidence, binary, metric_ranges, guardrails))

    async def verify(self, expect: str | None = None) -> VerificationContent:
        """Replay the log, as `RemoteExperiment.verify` does.

        Args:
            expect: the head that a receipt or an export gave; the log must still contain it.
        """
        return await self._client.send(self._calls.verify(expect))

    async def export(self, kind: str) -> bytes:
        """Get a file, as `RemoteExperiment.export` does.

        Args:
            kind: "csv", "parquet", "json" or "html".
        """
        return await self._client.send(self._calls.export(kind))
