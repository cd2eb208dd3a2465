"""Opening a Dask cluster: an address that answers, workers that are there, the same software on all sides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from banditto.core.errors import InvalidArgument, MissingExtra, WorkerError
from banditto.core.exact import real
from banditto.core.provenance import fingerprint, mismatch
from banditto.engine.dask_executor import ClusterExecutor

logger = logging.getLogger(__name__)

SCHEMES = ("tcp", "tls")
DEFAULT_PATIENCE = 600.0
_ANSWER_SECONDS = 10.0  # busy machines are slow to answer
_LOGGERS = ("distributed", "distributed.client")


@contextmanager
def cluster(address: str, *, patience: float = DEFAULT_PATIENCE) -> Iterator[Executor]:
    """Open a Dask cluster in a `with` statement, which gives an executor that runs on its workers.

    It is for `executor=` of `certify`, `compare`, `attack`, `calibrate` and `reproduce`. Results are those of one
    process: workers with other versions are refused, and those that die are survived. Needs
    `pip install 'banditto[cluster]'`.

    Args:
        address: the scheduler's, such as tcp://scheduler:8786.
        patience: for how many seconds to wait for workers, at the beginning and whenever none is left.

    Raises:
        InvalidArgument: no Dask scheduler answers at the address.
        MissingExtra: Dask is not installed.
        WorkerError: no worker came in time, or one has other software.

    Examples:
        >>> from banditto import Bernoulli, ExploreThenCommit, certify
        >>> policy = ExploreThenCommit(arms=2, horizon=10**4, rho=0.2, gap=0.4)
        >>> with cluster("tcp://scheduler:8786") as executor:  # doctest: +SKIP
        ...     certificate = certify(policy, Bernoulli([0.9, 0.5]), pairs=10**6, executor=executor)
        >>> with cluster("scheduler"):  # doctest: +ELLIPSIS
        ...     pass
        Traceback (most recent call last):
        banditto.core.errors.InvalidArgument: address: got scheduler, allowed: ...
    """
    address = checked_address(address)
    patience = real(patience, "patience", "seconds, 0 or more")
    if not patience >= 0.0:
        raise InvalidArgument("patience", patience, "seconds, 0 or more")
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise MissingExtra("a cluster", "dask[distributed]", "cluster") from None
    with _quiet():
        client = _connected(distributed, address)
        try:
            threads = _threads(client, address, patience)
            _check_software(client)
            executor = ClusterExecutor(client, threads, patience)
            try:
                yield executor
            finally:
                executor.shutdown(cancel_futures=True)
        finally:
            client.close(timeout=_ANSWER_SECONDS)


def checked_address(address: str) -> str:
    """Return the address, or refuse it if a part is missing; whether anybody answers there is not asked."""
    allowed = "the address of a Dask scheduler, such as tcp://scheduler:8786"
    if not isinstance(address, str):
        raise InvalidArgument("address", address, allowed)
    try:
        parts = urlsplit(address)
        whole = parts.scheme in SCHEMES and bool(parts.hostname) and bool(parts.port)
        plain = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    except ValueError:  # a port that is no number, or too large
        whole = plain = False
    if not whole or not plain or not address.isprintable() or " " in address:
        raise InvalidArgument("address", address if address.strip() else repr(address), allowed)
    return address


def _connected(distributed: Any, address: str) -> Any:
    """Return a Dask client; who answers is asked first, because a client waits for ever for a silent server."""
    try:
        with ThreadPoolExecutor(1) as thread:  # a notebook has a loop of its own in this one
            kind = thread.submit(asyncio.run, _asked(distributed, address)).result()
        if kind == "Scheduler":
            return distributed.Client(address, timeout=_ANSWER_SECONDS, set_as_default=False, name="banditto")
        reason = f"this is a {kind}"
    except Exception as error:  # no such host, refused, mute, no keys for tls, no Dask at all
        reason = " ".join(str(error).split())[:120] or type(error).__name__
    allowed = f"a Dask scheduler that answers within {_ANSWER_SECONDS:g} seconds ({reason})"
    raise InvalidArgument("address", address, allowed)


async def _asked(distributed: Any, address: str) -> str:
    """Return the kind of server that answers at an address: "Scheduler", "Worker" or "Nanny"."""
    secrets = distributed.Security().get_connection_args("client")
    async with distributed.rpc(address, timeout=_ANSWER_SECONDS, connection_args=secrets) as other:
        return str((await asyncio.wait_for(other.identity(), _ANSWER_SECONDS))["type"])


def _threads(client: Any, address: str, patience: float) -> int:
    """Wait for the first worker, and return how many blocks can run at a time."""
    if not client.nthreads():
        logger.warning("no workers at %s yet: waiting for the first one, %g seconds at most", address, patience)
        try:
            client.wait_for_workers(1, timeout=max(patience, 0.001))
        except TimeoutError:
            raise WorkerError(f"no worker joined {address} within {patience:g} seconds") from None
    return max(1, int(sum(client.nthreads().values())))


def _check_software(client: Any) -> None:
    """Refuse a cluster with other versions, whose results would be different: noise depends on them."""
    expected = fingerprint()
    found: dict[str, Any] = {f"worker {where}": it for where, it in client.run(fingerprint, on_error="return").items()}
    try:
        found["the scheduler"] = client.run_on_scheduler(fingerprint)
    except Exception as error:
        found["the scheduler"] = error
    for where, there in sorted(found.items()):
        if isinstance(there, OSError):
            continue  # it died while it was asked; whoever takes its place is compared with every task
        if isinstance(there, Exception):
            raise WorkerError(f"{where} does not have what is installed here: {' '.join(str(there).split())}")
        # a scheduler only passes on what it is sent
        wanted = expected if where != "the scheduler" else {name: expected[name] for name in ("banditto", "python")}
        wrong = mismatch(wanted, there, where)
        if wrong is not None:
            raise WorkerError(wrong)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask from logging, inside the `with` block, what will be raised as a one-line error."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)
