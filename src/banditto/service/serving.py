"""`serve`: worker processes of uvicorn on one socket, which outlive each other's deaths."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from banditto.core.errors import InvalidArgument, ServiceError
from banditto.service.service_settings import VARIABLE, ServiceSettings

DEFAULT_PORT = 8642
_MOST_WORKERS = 64
_GRACE = 30  # seconds for requests that are under way when the service is told to end
_HEALTHY = 5  # seconds after which a worker that does not move is replaced
_SHARED_COUNTS = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Says where a service listens, and how.

    Args:
        host: an address; one that others can reach needs a certificate, or a proxy in front.
        port: its port; 0 takes any that is free.
        workers: processes.
        certificate: a file with the certificates, in PEM, for HTTPS; None serves plain HTTP.
        key: the file with the certificate's key.
        proxy: the address of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    workers: int = 1
    certificate: Path | None = None
    key: Path | None = None
    proxy: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= _MOST_WORKERS:
            raise InvalidArgument("workers", self.workers, f"from 1 to {_MOST_WORKERS}")
        if not 0 <= self.port <= 65535:
            raise InvalidArgument("port", self.port, "from 0 to 65535")
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgument("tls_key" if self.key is None else "tls_certificate", "nothing", "both files or none")
        if self.proxy is not None:
            _address(self.proxy, "behind_proxy")
        if not _loopback(self.host) and self.certificate is None and self.proxy is None:
            allowed = "127.0.0.1, or --tls-certificate and --tls-key, or --behind-proxy ADDRESS: tokens travel in clear"
            raise InvalidArgument("host", self.host, allowed)

    def check_files(self) -> None:
        """Refuse certificates that cannot be used before anything is started."""
        if self.certificate is None or self.key is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            words = error.strerror or str(error)
            raise InvalidArgument(
                "tls_certificate", str(self.certificate), f"a certificate and its key ({words})"
            ) from None

    def address(self, port: int) -> str:
        """Return the service's URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'' if self.certificate is None else 's'}://{host}:{port}"


def serve(settings: ServiceSettings, listening: Listening, *, quiet: bool = False) -> Iterator[str]:
    """Serve until somebody ends it, as `for address in serve(...)`: the service's URL comes once the socket is bound.

    What the loop does with it is done before the first request is answered.
    """
    listening.check_files()
    _allow_files()
    with _shared_counts(listening.workers > 1), _variable(VARIABLE, settings.to_json()):
        socket = _bound(listening)  # first, because `Config` sets up the logging of this process at once
        config = uvicorn.Config(
            "banditto.service.application:application",
            factory=True,
            host=listening.host,
            port=listening.port,
            workers=listening.workers,
            http="banditto.service.patient_protocol:PatientProtocol",
            ws="none",
            loop="auto",  # uvloop, which [service] installs where it exists; asyncio's own on Windows
            lifespan="on",
            access_log=False,
            log_config=_logging(quiet),
            server_header=False,
            proxy_headers=listening.proxy is not None,
            forwarded_allow_ips=listening.proxy,
            timeout_graceful_shutdown=_GRACE,
            timeout_worker_healthcheck=_HEALTHY,
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.key,
        )
        yield listening.address(socket.getsockname()[1])
        if listening.workers > 1:
            from uvicorn.supervisors import Multiprocess

            Multiprocess(config, sockets=[socket]).run()
        else:
            server = uvicorn.Server(config)
            signal.signal(signal.SIGTERM, lambda number, frame: None)  # uvicorn raises it again when all is done
            with contextlib.suppress(KeyboardInterrupt):
                server.run(sockets=[socket])
            if not server.started:
                raise ServiceError(0, "the service could not start; what stands above says why")


def _bound(listening: Listening) -> Any:
    """Bind and return the socket, which all workers share."""
    import socket

    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    # by its protocol's name: asyncio sends small parts at once only on sockets that say that they are of TCP
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((listening.host, listening.port))
    except OSError as error:
        made.close()
        name = "port" if listening.port else "host"
        raise InvalidArgument(name, getattr(listening, name), f"one that is free here ({error.strerror})") from None
    made.listen(2048)
    made.set_inheritable(True)
    return made


def _loopback(host: str) -> bool:
    return host == "localhost" or _address(host, "host").is_loopback


def _address(text: str, argument: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if text == "localhost":
        return ipaddress.ip_address("127.0.0.1")
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise InvalidArgument(argument, text, "an IP address, such as 127.0.0.1") from None


def _allow_files() -> None:
    """Let this process have as many connections as the system allows; the usual limit is for programs with few."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def _shared_counts(several: bool) -> Iterator[None]:
    """Give worker processes a folder to count in together, before any of them loads what counts."""
    if not several:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="banditto-counts-") as folder, _variable(_SHARED_COUNTS, folder):
        yield


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable inside this context, and restore it afterwards."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before


def _logging(quiet: bool) -> dict[str, Any]:
    """Return the logging configuration: lines of JSON on stderr, of requests and of uvicorn."""
    level = "WARNING" if quiet else "INFO"
    one = {"handlers": ["stderr"], "level": level, "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "banditto.live.step_reports.JsonLogFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
        "loggers": {"banditto": one, "uvicorn": {**one, "level": "WARNING"}},
    }
