"""The explorer's server alone: what it serves, to whom, and how it treats clients that are slow or too many. No process is started."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from explorer.hostile import Door, body_of, crowd, status_of

from sparseloom.explorer import server as serving
from sparseloom.explorer.server import MOST_CONNECTIONS, POLICY, START_PAGE, Server

ARRIVED = threading.Semaphore(0)


def echo(request: Mapping[str, Any], is_wanted: Callable[[], bool]) -> bytes:
    """An answer for the server alone; one that waits does so until it is not wanted any more."""
    ARRIVED.release()
    while request.get("ask") == "wait" and is_wanted():
        time.sleep(0.01)
    return json.dumps({"ok": True, "asked": request, "wanted": is_wanted()}).encode()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(serving, "LONGEST_READ", 1.0)
    with Server(echo) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def door(server: Server) -> Door:
    return Door.of(server.url)


def headers_of(answer: bytes) -> dict[str, str]:
    lines = answer.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


def test_every_file_of_the_page_is_served_with_its_type_under_a_strict_policy(server: Server, door: Door) -> None:
    assert {START_PAGE, "main.js", "style.css"} <= set(server.page)
    kinds = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    for name in ("", *server.page):
        answer = door.send(door.head("GET", f"/{door.token}/{name}"))
        headers = headers_of(answer)
        assert status_of(answer) == 200
        assert answer.partition(b"\r\n\r\n")[2] == server.page[name or START_PAGE].read_bytes()
        assert headers["Content-Type"].partition(";")[0] == kinds[(name or START_PAGE).rpartition(".")[2]]
        assert headers["Content-Security-Policy"] == POLICY and headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert headers["Server"] == "sparseloom" and "Access-Control-Allow-Origin" not in headers


def test_a_request_of_the_page_is_answered(door: Door) -> None:
    body = '{"ask": "look", "state": {"statement": "é"}}'.encode()
    for others in ({}, {"Host": f"localhost:{door.port}", "Origin": f"http://localhost:{door.port}"}, {"Sec-Fetch-Site": "same-origin"}):
        answer = door.send(door.ask(body, {"Content-Type": "application/json; charset=utf-8", **others}))
        assert status_of(answer) == 200 and headers_of(answer)["Content-Type"] == "application/json"
        assert body_of(answer) == {"ok": True, "asked": json.loads(body), "wanted": True}


def test_a_person_may_follow_a_link_to_the_page_but_no_other_site_may_embed_it(door: Door) -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert status_of(door.send(door.head("GET", f"/{door.token}/", followed))) == 200
    for change in ({"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Dest": "script"}):
        assert status_of(door.send(door.head("GET", f"/{door.token}/", followed | change))) == 403
    assert status_of(door.send(door.head("GET", f"/{door.token}/main.js", followed))) == 403


def test_what_is_refused_says_why_and_what_to_do(door: Door) -> None:
    answer = door.send(door.ask(b"{}", {"Origin": "http://evil.example"}))
    told = {"text": "the request comes from another page", "help": "open the address that the explorer printed"}
    assert (status_of(answer), body_of(answer)) == (403, {"ok": False, "error": told})
    told = body_of(door.send(door.ask(b'{"ask": NaN}')))["error"]
    assert told == {"text": "the request is no JSON: NaN is no number of JSON", "help": "send a request as the page does"}
    told = body_of(door.send(door.ask(b" " * (257 << 10))))["error"]
    assert told == {"text": "a request may have 256 KiB at most", "help": "write a shorter statement or schedule"}
    assert body_of(door.send(door.head("BREW", "/")))["error"]["text"] == "only GET and POST are understood"


def test_tokens_differ_and_cannot_be_guessed() -> None:
    with Server(echo) as one, Server(echo) as other:
        assert one.token != other.token and len(one.token) >= 32
        assert one.server_address[0] == "127.0.0.1"


def test_slow_clients_are_let_go_while_others_are_served(door: Door) -> None:
    """One that drips its head or its body byte by byte has as long as anybody else."""
    began = time.monotonic()
    begun = door.ask(b'{"ask": "look"}')
    slow = [socket.create_connection(("127.0.0.1", door.port), timeout=30) for _ in range(3)]
    for connection, head in zip(slow, (b"", b"GET /", begun[:-5]), strict=True):
        connection.sendall(head)
    assert status_of(door.send(begun)) == 200
    for _ in range(6):
        time.sleep(0.1)
        slow[1].sendall(b"x")
    answers = [connection.recv(1 << 16) for connection in slow]
    assert [status_of(answer) for answer in answers] == [0, 0, 408]
    assert time.monotonic() - began < 20
    for connection in slow:
        connection.close()


def test_too_many_connections_are_turned_away_and_the_rest_goes_on(door: Door) -> None:
    while ARRIVED.acquire(blocking=False):
        pass
    held = [socket.create_connection(("127.0.0.1", door.port), timeout=30) for _ in range(MOST_CONNECTIONS)]
    for connection in held:
        connection.sendall(door.ask(b'{"ask": "wait"}'))
        assert ARRIVED.acquire(timeout=60)
    assert door.send(door.head("GET", f"/{door.token}/")) == b""
    for connection in held:
        connection.close()
    tries = (status_of(door.send(door.head("GET", f"/{door.token}/"))) for _ in range(600) if time.sleep(0.05) is None)
    assert 200 in tries  # as soon as it is seen that they have gone


@pytest.mark.parametrize("sent", [b"", b"GET /", b"POST"], ids=["idle", "half a line", "half a body"])
def test_idle_connections_delay_nobody(server: Server, door: Door, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are more of them than the server serves at a time, and nothing would end them in an hour."""
    monkeypatch.setattr(serving, "LONGEST_READ", 3600.0)
    asked = door.ask(b'{"ask": "look"}')
    with crowd(door, 3 * MOST_CONNECTIONS, asked[:-5] if sent == b"POST" else sent):
        for _ in range(20):
            assert status_of(door.send(asked, 30.0)) == 200
        assert len(server._open) <= MOST_CONNECTIONS


def test_idle_connections_end_no_request_that_is_being_answered(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LONGEST_READ", 3600.0)
    while ARRIVED.acquire(blocking=False):
        pass
    with socket.create_connection(("127.0.0.1", door.port), timeout=30) as waiting:
        waiting.sendall(door.ask(b'{"ask": "wait"}'))
        assert ARRIVED.acquire(timeout=60)
        with crowd(door, 2 * MOST_CONNECTIONS):
            assert status_of(door.send(door.ask(b'{"ask": "look"}'), 30.0)) == 200
        waiting.shutdown(socket.SHUT_WR)
        assert status_of(waiting.recv(1 << 16)) == 200


def test_whoever_does_not_wait_is_noticed(door: Door) -> None:
    with socket.create_connection(("127.0.0.1", door.port), timeout=30) as connection:
        connection.sendall(door.ask(b'{"ask": "wait"}'))
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(1 << 16)
        while piece := connection.recv(1 << 16):
            answer += piece
    assert body_of(answer)["wanted"] is False
