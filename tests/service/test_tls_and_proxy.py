"""TLS by certificate files, and behind a real proxy that does it."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import banditto as bd
from tests.live.worlds import small
from tests.service.programs import program
from tests.service.services import ROOT, ServiceProcess, bearer, new_token, serve_in_vain

pytestmark = pytest.mark.slow

NGINX = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
# what a system's own nginx.conf says around a file of /etc/nginx/conf.d, without places that are root's
AROUND = """
daemon off;
{user}
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/banditto.conf;
}}
"""


class Certificate(NamedTuple):
    """A certificate for this machine that vouches for itself, and its key."""

    file: Path
    key: Path

    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("certificate")
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    subprocess.run(
        [
            *(
                program("openssl", "apt-get install openssl"),
                "req",
                "-x509",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=banditto",
            ),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(made.key), "-out", str(made.file)),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return made


@contextmanager
def serving(url: str, *words: str, verify: Any = True, log: Path | None = None) -> Iterator[ServiceProcess]:
    """A service that is ready; whom its certificate is checked by may be said."""
    made = ServiceProcess(url, *words, log=log)
    try:
        made.wait_until_ready(verify)
        yield made
    finally:
        made.stop()


def try_it(address: str, token: str, name: str, certificate: Certificate) -> None:
    """Register, ask, tell and verify over HTTPS."""
    with bd.Client(address, token, verify_tls=str(certificate.file)) as client:
        trial = client.open(name, small(arm_names=["A", "B"]))
        answer = trial.ask(unit="user-1")
        assert trial.tell(answer.tickets[0].id, 1.0) == "recorded"
        assert trial.tell(answer.tickets[0].id, 1.0) == "repeated"
        assert trial.status().tickets["told"] == 1
        assert trial.verify()["verified"]
        assert b"told" in trial.export("csv")


# -- certificate files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.long), "2"])
def test_https_by_certificate_files(certificate: Certificate, sqlite_url: str, workers: str) -> None:
    files = ("--tls-certificate", str(certificate.file), "--tls-key", str(certificate.key))
    token = new_token(sqlite_url)
    trusted = certificate.trusted()
    # on all addresses, which needs TLS; the client knows one of them
    words = ("--host", "0.0.0.0", "--workers", workers, *files)
    made = ServiceProcess(sqlite_url, *words)
    try:
        assert made.address.startswith("https://0.0.0.0:")
        made.address = made.address.replace("0.0.0.0", "127.0.0.1")
        made.wait_until_ready(trusted)
        try_it(made.address, token, "cta", certificate)
        stranger = bd.Client(made.address, token, deadline=1)  # who does not know the certificate
        with stranger, pytest.raises(bd.ServiceError, match="CERTIFICATE_VERIFY_FAILED"):
            stranger.experiments()
        plain = made.address.replace("https://", "http://")
        with pytest.raises(httpx.TransportError):  # nobody answers in clear
            httpx.get(f"{plain}/healthz", timeout=10)
    finally:
        made.stop()


def refused(*words: str) -> str:
    """The one line that `serve` ends with, and nothing was served."""
    done = serve_in_vain("--port", "0", *words)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("banditto: error: --")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("banditto: error: ").strip()


def test_files_that_do_not_fit_are_refused_in_a_line(
    certificate: Certificate, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANDITTO_STORE", sqlite_url)
    own = ("--tls-certificate", str(certificate.file))
    assert refused(*own) == "--tls-key: got nothing, allowed: both files or none"
    assert refused("--tls-key", str(certificate.key)) == "--tls-certificate: got nothing, allowed: both files or none"
    assert "No such file or directory" in refused(*own, "--tls-key", str(tmp_path / "nowhere.pem"))
    other = tmp_path / "other.pem"
    command = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", str(other)]
    subprocess.run(
        [program("openssl", "apt-get install openssl"), *command], check=True, capture_output=True, timeout=60
    )
    assert "a certificate and its key" in refused(*own, "--tls-key", str(other))
    words = tmp_path / "words.pem"
    words.write_text("no key\n")
    assert "a certificate and its key" in refused(*own, "--tls-key", str(words))
    assert "tokens travel in clear" in refused("--host", "0.0.0.0")


# -- a proxy -----------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def rendered(folder: Path, service: str, port: int, certificate: Certificate) -> Path:
    """deploy/nginx.conf for this service, in a folder; nothing but addresses and names of files is changed."""
    text = NGINX
    for here, there in (
        ("server 127.0.0.1:8642;", f"server {httpx.URL(service).netloc.decode()};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/banditto/fullchain.pem", str(certificate.file)),
        ("/etc/banditto/key.pem", str(certificate.key)),
    ):
        assert text.count(here) == 1, here
        text = text.replace(here, there)
    (folder / "banditto.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""  # else its workers could not read this folder
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, user=user))
    return folder / "nginx.conf"


@contextmanager
def proxy(folder: Path, service: str, certificate: Certificate) -> Iterator[str]:
    """The address of nginx in front of a service, in this process's folder and not as a daemon."""
    nginx = program("nginx", "apt-get install nginx-light")
    for _ in range(5):  # somebody else may take the port first
        port = free_port()
        settings = rendered(folder, service, port, certificate)
        process = subprocess.Popen(
            [nginx, "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(settings)], stderr=subprocess.PIPE
        )
        address, trusted = f"https://127.0.0.1:{port}", certificate.trusted()
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            try:
                if httpx.get(f"{address}/readyz", verify=trusted, timeout=10).status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.05)
        if process.poll() is None:
            break
        process.communicate()  # which closes its end of the pipe, too
    try:
        assert process.poll() is None, (folder / "error.log").read_text()
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=60)


def strangers(log: Path) -> list[str]:
    """As whom those were logged whose token was refused."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [line["client"] for line in lines if line.get("status") == 401]


def call_as_stranger(address: str, certificate: Certificate | None, own: str = "127.0.0.1") -> None:
    """Call without a token, from an address of this machine, and pretend to be somebody else."""
    trusted = True if certificate is None else certificate.trusted()
    with httpx.Client(transport=httpx.HTTPTransport(verify=trusted, local_address=own), timeout=60) as caller:
        answer = caller.get(f"{address}/v1/experiments", headers={"X-Forwarded-For": "203.0.113.9"})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_behind_nginx(certificate: Certificate, sqlite_url: str, tmp_path: Path) -> None:
    token, log = new_token(sqlite_url), tmp_path / "log"
    with serving(sqlite_url, "--behind-proxy", "127.0.0.1", log=log) as service:
        with proxy(tmp_path, service.address, certificate) as address:
            try_it(address, token, "cta", certificate)
            call_as_stranger(address, certificate, "127.0.0.2")
            large = httpx.post(  # which the proxy refuses before it bothers the service
                f"{address}/v1/experiments/cta/ask",
                content=b"x" * (4 * 2**20 + 1),
                headers=bearer(token),
                verify=certificate.trusted(),
                timeout=60,
            )
            assert large.status_code == 413
        call_as_stranger(service.address, None, "127.0.0.3")  # past the proxy, from another address than its own
    assert strangers(log) == ["127.0.0.2", "127.0.0.3"]


def test_nobody_is_believed_without_the_option(certificate: Certificate, sqlite_url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(sqlite_url, log=log) as service:
        call_as_stranger(service.address, None)
        call_as_stranger(service.address, None, "127.0.0.3")
        with proxy(tmp_path, service.address, certificate) as address:
            call_as_stranger(address, certificate, "127.0.0.2")
    assert strangers(log) == ["127.0.0.1", "127.0.0.3", "127.0.0.1"]  # the last one is the proxy
