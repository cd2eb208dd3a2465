"""docs/service.md: what it shows is run against a real service, and the answers are those that it shows."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from banditto.live.experiment import Experiment
from banditto.live.verify import verify
from banditto.service.routes import ROUTES
from tests.service.programs import program
from tests.service.services import ROOT, ServiceProcess, new_token, service_process

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8642"  # of the service on the page
EXAMPLE = ROOT / "examples" / "service.mjs"
END = "-- the end of a block --"


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def variables(folder: Path, **more: str) -> dict[str, str]:
    """The environment of somebody who has banditto on his path."""
    command = folder / "bin" / "banditto"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m banditto "$@"\n')
    command.chmod(0o755)
    source = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": source} | more


def run(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=variables(folder, **more), capture_output=True, text=True, timeout=300, check=False
    )


def objects(text: str) -> list[Any]:
    """What the lines that begin with a brace say."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def shows(page: Any, answer: Any) -> bool:
    """Whether an answer has all that the page shows of it; the page may leave keys out."""
    if isinstance(page, Mapping):
        return isinstance(answer, Mapping) and all(
            key in answer and shows(value, answer[key]) for key, value in page.items()
        )
    if isinstance(page, list):
        return (
            isinstance(answer, list)
            and len(page) == len(answer)
            and all(shows(one, other) for one, other in zip(page, answer, strict=True))
        )
    return bool(page == answer)


def test_the_walk_with_curl(tmp_path: Path) -> None:
    program("curl", "apt-get install curl")
    first, *walk = blocks(section("With curl"))
    assert first == ("text", "BANDITTO_STORE=sqlite:///trial.db banditto serve\n")
    url = f"sqlite:///{tmp_path}/trial.db"
    with service_process(url) as service:
        lines = ["set -eu"]
        for kind, text in walk:
            if kind == "sh":
                lines += [text.replace(ADDRESS, service.address), f"echo '{END}'"]
        done = run(["bash", "-c", "\n".join(lines)], tmp_path)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{END}\n")[:-1]
    assert [kind for kind, _ in walk] == ["sh", *["sh", "json"] * 5]
    answers = iter(printed)
    for kind, text in walk:
        if kind == "sh":
            answer = next(answers)
        else:
            for page, real in zip(objects(text), objects(answer), strict=True):
                assert shows(page, real), (page, real)
    assert "\napplication/problem+json\n" in done.stdout
    assert len(re.findall("is shown this once", done.stderr)) == 2
    assert (tmp_path / "cta.csv").read_text().startswith("ticket,batch,")
    assert "<html" in (tmp_path / "audit.html").read_text()
    assert verify(url, "cta").holds


def test_the_call_that_the_demonstration_prints(tmp_path: Path) -> None:
    """The second of the two commands; the first is `make serve`."""
    program("curl", "apt-get install curl")
    for attempt in range(2):  # the second time the experiment is there already
        with service_process(f"sqlite:///{tmp_path}/banditto.db", "--demo", log=tmp_path / "log") as service:
            log = (tmp_path / "log").read_text()
            call = re.search(r"^  curl .*\\\n.*$", log, flags=re.MULTILINE)
            assert call is not None, log
            assert service.address in call[0]
            for again in range(2):
                done = run(["bash", "-c", call[0]], tmp_path)
                answer = json.loads(done.stdout)
                assert answer["tickets"][0]["id"] == "demo.1-1"
                assert answer["repeated"] is bool(attempt + again)
    shown = next(text for kind, text in blocks(section("Two commands")) if kind == "json")
    assert set(json.loads(shown)) == set(answer)


def test_make_serve_starts_it() -> None:
    make = program("make", "apt-get install make")
    done = subprocess.run([make, "-n", "serve"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines()[-1] == ".venv/bin/banditto serve --demo", done.stderr


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServiceProcess, str]]:
    url = f"sqlite:///{tmp_path_factory.mktemp('demo')}/banditto.db"
    with service_process(url, "--demo") as service:
        yield service, url


def test_the_examples_in_python(demonstration: tuple[ServiceProcess, str], tmp_path: Path) -> None:
    service, url = demonstration
    token = new_token(url, "read", "ask", "tell", experiment="demo")
    found = [text for kind, text in blocks(section("With Python")) if kind == "py"]
    assert len(found) == 2
    for code in found:
        done = run([sys.executable, "-W", "error", "-c", code.replace(ADDRESS, service.address)], tmp_path, TOKEN=token)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[0] in ("blue", "green")


def test_the_page_shows_the_file_in_javascript() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert ("js", text) in blocks(section("With JavaScript"))
    assert len(text.splitlines()) <= 35


def test_the_example_in_javascript(demonstration: tuple[ServiceProcess, str], tmp_path: Path) -> None:
    node = program("node", "apt-get install nodejs")
    service, url = demonstration
    token = new_token(url, "ask", "tell", experiment="demo")
    printed = []
    for _ in range(2):
        done = run([node, str(EXAMPLE)], tmp_path, SERVICE=service.address, TOKEN=token)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    assert re.fullmatch("show (blue|green)", printed[0][0])
    assert printed[0][1] == "{ told: [ 'recorded' ] }"
    assert printed[1][1] == "{ told: [ 'repeated' ] }"
    assert printed[0][0] == printed[1][0]
    assert printed[0][2] == printed[1][2]  # the same tickets for the same key
    refused = run([node, str(EXAMPLE)], tmp_path, SERVICE=service.address, TOKEN="bdt_wrong")
    assert refused.returncode == 1
    assert "401: " in refused.stderr


def test_answers_that_are_lost_cost_javascript_no_ticket(tmp_path: Path) -> None:
    """Between the two stands somebody who does every request and swallows every other answer."""
    node = program("node", "apt-get install nodejs")
    url = f"sqlite:///{tmp_path}/lossy.db"
    with service_process(url, "--demo") as service, swallowing(service.address) as (address, swallowed):
        token = new_token(url, "ask", "tell", experiment="demo")
        done = run([node, str(EXAMPLE)], tmp_path, SERVICE=address, TOKEN=token)
        assert done.returncode == 0, done.stderr
        assert swallowed == ["ask", "tell", "ask"]
        assert "{ told: [ 'repeated' ] }" in done.stdout
    with Experiment.open(url, "demo") as trial:
        assert trial.status().issued == 3


@contextmanager
def swallowing(service: str) -> Iterator[tuple[str, list[str]]]:
    """The address of somebody who passes requests on, and hangs up in place of every other answer."""
    behind, swallowed, passed = urlsplit(service).netloc, list[str](), [0]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            names = ("Authorization", "Content-Type", "Idempotency-Key")
            connection = http.client.HTTPConnection(behind, timeout=60)
            connection.request("POST", self.path, body, {name: self.headers[name] for name in names})
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            passed[0] += 1
            if passed[0] % 2:
                swallowed.append(self.path.rpartition("/")[2])
            else:
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", swallowed
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def test_the_table_has_every_route_with_its_scope() -> None:
    listed = re.findall(r"^\| `(\w+) (/\S+)` \| (\w+) \|", section("All routes"), flags=re.MULTILINE)
    real = [(route.method, route.path, route.scope or "none") for route in ROUTES]
    assert listed == [*real, ("GET", "/openapi.json", "none")]


def test_the_page_shows_the_settings_of_nginx() -> None:
    assert ("nginx", (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")) in blocks(section("TLS"))
