"""Bad input is one line with a 4xx; what is slow, large or half open does not stop the service."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from urllib.parse import quote

import httpx
import pytest

from banditto.live.verify import verify
from banditto.service import patient_protocol
from tests.service.services import bearer, new_token, post, service_in_thread

NASTY = [
    "<script>alert(1)</script>",
    "'; DROP TABLE banditto_event; --",
    '" OR 1=1 --',
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "a\r\nX-Injected: yes",
    "a\nb",
    "\u202eevil",
    "\x00",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "%s%n",
    "=cmd|' /C calc'!A0",
    "\U0001f600" * 3,
    "x" * 5000,
]


def one_line(answer: httpx.Response) -> str:
    """The detail of a refusal, which is one line."""
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    detail: str = answer.json()["detail"]
    assert "\n" not in detail
    assert len(detail) < 500
    return detail


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_injections_are_text_or_refused(service: str, admin: str, cta: str, text: str) -> None:
    headers = bearer(admin)
    encoded = quote(text.encode("utf-8", "surrogatepass"), safe="")
    answer = httpx.get(f"{service}/v1/experiments/{encoded}", headers=headers, timeout=60)
    assert answer.status_code == 404, answer.text  # no such experiment, or no such path
    assert "x-injected" not in answer.headers
    answer = httpx.put(f"{service}/v1/experiments/{encoded}", headers=headers, json={"protocol": {}}, timeout=60)
    assert 400 <= answer.status_code < 500
    body = json.dumps({"unit": text}).encode()
    answer = httpx.post(
        f"{service}/v1/experiments/cta/ask",
        headers={**headers, "Content-Type": "application/json"},
        content=body,
        timeout=60,
    )
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 422:
        one_line(answer)
    ticket = post(service, admin, "cta/ask", {}).json()["tickets"][0]["id"]
    answer = post(service, admin, "cta/missing", {"tickets": [ticket], "reason": text[:1000], "by": text[:900]})
    assert answer.status_code in (200, 422), answer.text
    for kind in ("csv", "json", "html"):
        exported = httpx.get(f"{service}/v1/experiments/cta/export/{kind}", headers=headers, timeout=60)
        assert exported.status_code == 200
        assert "<script>alert" not in exported.text or kind != "html"
    assert verify(cta, "cta").holds


def test_bad_bodies_are_one_line(service: str, admin: str) -> None:
    bad: list[tuple[bytes, str]] = [
        (b"", "body"),
        (b"{", "body"),
        (b"[]", "body"),
        (b"null", "body"),
        (b'"x"', "body"),
        (b"\xff\xfe", "body"),
        (b"[" * 100_000, "body"),
        (b'{"n": ' + b"9" * 5000 + b"}", "body"),
        (b'{"n": 1e999}', "n"),
        (b'{"n": NaN}', "n"),
        (b'{"n": "5"}', "n"),
        (b'{"n": true}', "n"),
        (b'{"n": 0}', "n"),
        (b'{"m": 1}', "m"),
        (b'{"n": 1, "unit": ""}', "unit"),
        (b'{"unit": "\\ud800"}', "unit"),
        (b'{"unit": {"a": 1}}', "unit"),
        (b'{"request_id": "unit:x"}', "request_id"),
    ]
    headers = {**bearer(admin), "Content-Type": "application/json"}
    for body, argument in bad:
        answer = httpx.post(f"{service}/v1/experiments/cta/ask", headers=headers, content=body, timeout=60)
        one_line(answer)
        assert answer.status_code in (400, 422)
        assert answer.json()["argument"] == argument, (body[:50], answer.text)
    headers["Content-Type"] = "text/plain"
    one_line(httpx.post(f"{service}/v1/experiments/cta/ask", headers=headers, content=b'{"n": 1}', timeout=60))
    assert post(service, admin, "cta/ask", {"n": 1}).status_code == 200


def test_the_librarys_own_words_and_codes(service: str, admin: str) -> None:
    post(service, admin, "cta/ask", {"n": 2})
    tell = {"rewards": [{"ticket": "cta.1-1", "reward": 0.25}]}
    assert post(service, admin, "cta/tell", tell).json() == {"told": ["recorded"]}
    assert post(service, admin, "cta/tell", tell).json() == {"told": ["repeated"]}
    answer = post(service, admin, "cta/tell", {"rewards": [{"ticket": "cta.1-1", "reward": 0.5}]})
    words = "ticket cta.1-1 has the reward 0.25 and was told 0.5; a reward that was wrong can be corrected"
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (409, "conflict", words)
    answer = post(service, admin, "cta/tell", {"rewards": [{"ticket": "cta.1-2", "reward": 7}]})
    assert answer.status_code == 422
    assert answer.json() == {
        "type": "urn:banditto:problem:invalid-argument",
        "title": "Unprocessable Content" if "Content" in answer.json()["title"] else "Unprocessable Entity",
        "status": 422,
        "detail": "reward: got 7, allowed: a number from 0 to 1",
        "code": "invalid-argument",
        "argument": "reward",
        "given": "7",
        "allowed": "a number from 0 to 1",
    }
    answer = httpx.get(f"{service}/v1/experiments/nobody", headers=bearer(admin), timeout=60)
    assert (answer.status_code, answer.json()["argument"]) == (404, "name")
    answer = post(service, admin, "cta/tell", {"rewards": [{"ticket": "cta.1-2", "reward": 2**53 + 1}]})
    assert answer.status_code == 422


# -- large and slow ---------------------------------------------------------------------------------------------------


def raw(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    made = socket.create_connection((host, int(port)), 30)
    made.settimeout(30)
    return made


def answered(connection: socket.socket) -> bytes:
    """What comes until the other side closes; nothing if it only closes."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except OSError:
        pass
    return found


def head(token: str, path: str = "cta/ask", more: str = "") -> bytes:
    lines = f"POST /v1/experiments/{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    return f"{lines}Content-Type: application/json\r\n{more}".encode()


def test_a_body_of_a_gigabyte_is_not_read(service: str, admin: str) -> None:
    with closing(raw(service)) as connection:
        connection.sendall(head(admin, more=f"Content-Length: {10**9}\r\n\r\n"))
        found = answered(connection)
    assert found.startswith(b"HTTP/1.1 413 ")
    assert b"the body is larger than 4,194,304 bytes" in found
    with closing(raw(service)) as connection:  # without saying so before
        connection.sendall(head(admin, more="Transfer-Encoding: chunked\r\n\r\n"))
        sent = 0
        part = b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            for _ in range(16_384):
                connection.sendall(part)
                sent += 65536
        except OSError:
            pass
        assert sent < 2**29  # it was cut off long before its gigabyte
    assert httpx.get(f"{service}/healthz", timeout=60).status_code == 200


def test_a_million_headers_are_not_read(service: str) -> None:
    with closing(raw(service)) as connection:
        sent = 0
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
            for _ in range(1000):
                connection.sendall(b"".join(b"X-%d: y\r\n" % number for number in range(1000)))
                sent += 1
        except OSError:
            pass
        assert sent < 1000
    with closing(raw(service)) as connection:
        connection.sendall(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n")
        assert answered(connection)[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 431")
    assert httpx.get(f"{service}/healthz", timeout=60).status_code == 200


@pytest.fixture
def impatient(cta: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A service with little patience."""
    monkeypatch.setattr(patient_protocol, "HEADER_SECONDS", 0.5)
    monkeypatch.setattr(patient_protocol, "READING_SECONDS", 0.5)
    with service_in_thread(cta, patience=0.5) as address:
        yield address


def test_slow_and_half_open_connections_are_closed(impatient: str, admin: str) -> None:
    with ExitStack() as opened:
        silent = [opened.enter_context(closing(raw(impatient))) for _ in range(200)]
        slow = opened.enter_context(closing(raw(impatient)))
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        slow_body = opened.enter_context(closing(raw(impatient)))
        slow_body.sendall(head(admin, more="Content-Length: 100\r\n\r\n{"))
        assert post(impatient, admin, "cta/ask", {}).status_code == 200  # others are served meanwhile
        assert answered(slow_body).startswith(b"HTTP/1.1 408 ")
        assert answered(slow) == b""
        assert [answered(connection) for connection in silent] == [b""] * 200


def test_a_header_that_comes_letter_by_letter_is_cut_off(impatient: str) -> None:
    with closing(raw(impatient)) as connection:
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < 30:
                connection.sendall(b"X")
                time.sleep(0.05)
        except OSError:
            pass
        assert time.monotonic() - begun < 30


def test_a_reader_that_does_not_read_is_left(impatient: str, cta: str, admin: str) -> None:
    answer = post(impatient, admin, "cta/ask", {"n": 12})
    assert answer.status_code == 200
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        host, _, port = impatient.removeprefix("http://").partition(":")
        connection.connect((host, int(port)))
        request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 200
        connection.settimeout(10)
        with suppress(OSError):
            connection.sendall(request)
        time.sleep(1.5)
        assert httpx.get(f"{impatient}/healthz", timeout=60).status_code == 200
        found = answered(connection)  # what was under way, and then the end
        assert len(found) < 200 * 30_000


def test_a_client_that_disappears_leaves_nothing_locked(service: str, admin: str, cta: str) -> None:
    for cut in (20, 120, 200, 10_000):
        with closing(raw(service)) as connection:
            whole = head(admin, more='Content-Length: 8\r\n\r\n{"n": 1}')
            connection.sendall(whole[:cut])
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    assert post(service, admin, "cta/ask", {"n": 1}).status_code == 200
    assert verify(cta, "cta").holds


def test_no_web_socket_and_no_other_origin(service: str, admin: str, cta: str) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}
    assert httpx.get(f"{service}/v1/experiments", headers=upgrade, timeout=60).status_code == 401
    page = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    answer = httpx.options(f"{service}/v1/experiments/cta/ask", headers=page)
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers
    with service_in_thread(cta, origins=("https://page.example",)) as address:
        answer = httpx.options(f"{address}/v1/experiments/cta/ask", headers=page)
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
        other = httpx.options(f"{address}/v1/experiments/cta/ask", headers={**page, "Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers
        token = new_token(cta)
        answer = httpx.get(
            f"{address}/v1/experiments", headers={**bearer(token), "Origin": "https://page.example"}, timeout=60
        )
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
