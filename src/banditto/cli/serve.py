"""`banditto serve`: experiments over HTTP."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from banditto.cli import parameters, stores
from banditto.cli.output import EXIT_OK, print_steps
from banditto.core.errors import InvalidArgument, MissingExtra, masked
from banditto.core.exact import parsed_integer, real

if TYPE_CHECKING:
    from banditto.live.store import Store

DEFAULT_STORE = "sqlite:///banditto.db"
ServeStore = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="The database, without a password (default: sqlite:///banditto.db).  [env var: BANDITTO_STORE]",
    ),
]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")]
Port = Annotated[str, typer.Option("--port", metavar="N", help="The port to listen on; 0 takes a free one.")]
Workers = Annotated[str, typer.Option("--workers", metavar="N", help="How many processes serve.")]
Certificate = Annotated[
    str | None,
    typer.Option("--tls-certificate", metavar="FILE", help="Serve HTTPS with this certificate (PEM)."),
]
Key = Annotated[str | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's key (PEM).")]
Proxy = Annotated[
    str | None,
    typer.Option("--behind-proxy", metavar="ADDRESS", help="A proxy in front that does TLS; its headers are trusted."),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin",
        metavar="URL",
        help="An origin whose pages may call from a browser (CORS); you may repeat this.",
    ),
]
Rate = Annotated[
    str, typer.Option("--rate", metavar="N", help="How many requests a second each token may make to each process.")
]
LargestBody = Annotated[
    str, typer.Option("--largest-body", metavar="BYTES", help="How large the body of a request may be.")
]
Demo = Annotated[
    bool, typer.Option("--demo", help="Register an experiment called demo, and print a token and a first call.")
]


def serve(
    store: ServeStore = None,
    host: Host = "127.0.0.1",
    port: Port = "8642",
    workers: Workers = "1",
    tls_certificate: Certificate = None,
    tls_key: Key = None,
    behind_proxy: Proxy = None,
    allow_origin: Origins = None,
    rate: Rate = "1000",
    largest_body: LargestBody = "4194304",
    demo: Demo = False,
    as_json: parameters.Json = False,
    quiet: parameters.Quiet = False,
) -> int:
    """Serve experiments over HTTP, for programs in any language. Callers need a token: `banditto token create`.

    The log of requests goes to stderr, as lines of JSON. Ctrl-C stops the server once it has answered what it began.
    """
    url = _store(store)
    check_service()
    from banditto.live.store import Store, shown_url
    from banditto.service.service_settings import ServiceSettings
    from banditto.service.serving import Listening
    from banditto.service.serving import serve as served

    listening = Listening(
        host=host,
        port=parsed_integer(port, "port"),
        workers=parsed_integer(workers, "workers"),
        certificate=None if tls_certificate is None else Path(tls_certificate),
        key=None if tls_key is None else Path(tls_key),
        proxy=behind_proxy,
    )
    settings = ServiceSettings(
        store=url,
        rate=real(rate, "rate"),
        largest_body=parsed_integer(largest_body, "largest_body"),
        origins=tuple(allow_origin or ()),
    )
    with Store(url) as opened:
        tokens = opened.write(lambda rows: len(rows.tokens()))  # which makes the tables where there are none
        token = _demonstration(url, opened) if demo else ""
    for address in served(settings, listening, quiet=quiet):
        sys.stderr.write(f"banditto: serving {shown_url(url)} at {address}; open that in a browser to look\n")
        if demo:
            sys.stderr.write(_first_call(address, token))
        elif not tokens:
            sys.stderr.write("banditto: nobody has a token yet; make one with: banditto token create --scope admin\n")
        sys.stderr.flush()
        if as_json:
            print_steps({"address": address, "store": shown_url(url)}, "", as_json)
            sys.stdout.flush()
    return EXIT_OK


def check_service() -> None:
    """Refuse to go on without what the service needs, and say how to install it."""
    stores.check_extra()
    for library in ("fastapi", "uvicorn", "prometheus_client", "jinja2", "python_multipart"):
        if find_spec(library) is None:
            raise MissingExtra("the service", library.replace("_", "-"), "service")


def _store(given: str | None) -> str:
    """Find the store; a password on the command line would stand in the list of processes for as long as it serves."""
    if given is None:
        return os.environ.get("BANDITTO_STORE") or DEFAULT_STORE
    if masked(given) != given:
        allowed = "a URL without a password, or none here and the URL in BANDITTO_STORE: others see this command line"
        raise InvalidArgument("store", given, allowed)
    return given


def _demonstration(url: str, store: Store) -> str:
    """Register the experiment `demo`, unless it is there; a token for it comes back that lives for a day."""
    from banditto.live.experiment import Experiment
    from banditto.live.registration import registered
    from banditto.live.select import shortest
    from banditto.service.tokens import create_token

    if "demo" not in store.read(lambda view: view.names()):
        policy = shortest(arms=2, gap=0.1, rho=0.2)
        registration = registered(policy.protocol(seed=parameters.drawn_seed()), ["blue", "green"], fallback="blue")
        Experiment.create(url, "demo", registration).close()
    text, _ = create_token(store, ["read", "ask", "tell"], experiment="demo", life=86_400, label="serve --demo")
    return text


def _first_call(address: str, token: str) -> str:
    """Write a call of curl that gets the first ticket."""
    return (
        f"banditto: its page is {address}/experiments/demo; the token to sign in with, for a day:\n\n"
        f"  {token}\n\n"
        "banditto: the first call, with the same token:\n\n"
        f"  curl {address}/v1/experiments/demo/ask -H 'Authorization: Bearer {token}' \\\n"
        "    -H 'Content-Type: application/json' -d '{\"unit\": \"user-1\"}'\n\n"
    )
