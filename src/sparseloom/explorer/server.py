"""The server of the explorer: the page and its requests, for the user of this machine alone.

    GET  /<token>/            the page            what else stands in ``page``: GET /<token>/NAME
    POST /<token>/ask         one request, as JSON; the answer is JSON too

It listens on 127.0.0.1. Without the token nothing is there. Pages of other sites are refused: ``Host`` must be ours (a name that leads here
by DNS is not), and so must ``Origin`` where a browser sends it. Files are looked up in a table; no path is ever made of a request. Each
connection serves one request and is given some seconds for it. Connections that are idle or slow delay nobody: where there are too many,
the oldest of them ends.
"""

from __future__ import annotations

import hmac
import io
import json
import secrets
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NoReturn

from sparseloom.explorer.limits import failure

ADDRESS = "127.0.0.1"
MOST_CONNECTIONS = 64
BACKLOG = 256  # connections that wait to be accepted
LARGEST_REQUEST = 256 << 10  # bytes
LONGEST_READ = 5.0  # seconds for all of a request, however slowly it drips in
LONGEST_WRITE = 10.0
MOST_DISCARDED = 4 << 20  # bytes of a refused body that are read all the same, so that the refusal arrives
TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
START_PAGE = "index.html"
OPEN = "open the address that the explorer printed"
Answer = Callable[[Mapping[str, Any], Callable[[], bool]], bytes]


class Refused(Exception):
    """A request that is not answered: the status, what is wrong with it, and what to do."""

    def __init__(self, status: HTTPStatus, text: str, help: str) -> None:
        super().__init__(text)
        self.status, self.help = status, help


class Server(socketserver.ThreadingTCPServer):
    """Listens at once, at any free port if it is 0. ``answer`` makes the answer to a request, and may ask if it is still awaited."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = BACKLOG

    def __init__(self, answer: Answer, port: int = 0, log: bool = False) -> None:
        super().__init__((ADDRESS, port), _Handler)
        self.answer, self.log = answer, log
        self.port: int = self.server_address[1]
        self.token = secrets.token_urlsafe(24)
        self.hosts = frozenset(f"{name}:{self.port}" for name in (ADDRESS, "localhost"))
        self.page = page_files()
        self._lock = threading.Lock()
        self._open: set[Any] = set()
        self._idle: dict[Any, None] = {}  # those whose requests are not read yet, or whose answers are being sent, the oldest first

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own. If there are too many, the one that has been idle longest ends for it."""
        if not self._admit(request):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread is to be had
            self._leave(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, then let another one in."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    @contextmanager
    def at_work(self, request: Any) -> Iterator[None]:
        """While the answer to a connection is made, which does not end for others."""
        with self._lock:
            self._idle.pop(request, None)
        try:
            yield
        finally:
            with self._lock:
                if request in self._open:
                    self._idle[request] = None

    def _admit(self, request: Any) -> bool:
        """Let a connection in; False if all that there may be are at work."""
        with self._lock:
            if len(self._open) >= MOST_CONNECTIONS:
                oldest = next(iter(self._idle), None)
                if oldest is None:
                    return False
                self._forget(oldest)
                with suppress(OSError):  # its client may have gone
                    oldest.shutdown(socket.SHUT_RDWR)  # wakes its thread, which closes it
            self._open.add(request)
            self._idle[request] = None
            return True

    def _leave(self, request: Any) -> None:
        with self._lock:
            self._forget(request)

    def _forget(self, request: Any) -> None:
        self._open.discard(request)
        self._idle.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is nothing to tell."""
        if self.log:
            sys.stderr.write(f"a connection ended: {sys.exception()!r}\n")


def page_files() -> dict[str, Traversable]:
    """What there is to fetch, by name: the page, its scripts and its style."""
    found = (file for file in files("sparseloom.explorer").joinpath("page").iterdir() if file.is_file())
    return {file.name: file for file in found if _suffix(file.name) in TYPES}


def read_request(body: bytes) -> dict[str, Any]:
    """A request out of JSON, in UTF-8. Numbers must be finite, for JSON knows no others."""
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_no_number)
        json.dumps(found, allow_nan=False)  # 1e999 is infinite too
    except RecursionError:
        raise Refused(HTTPStatus.BAD_REQUEST, "the request is nested too deeply", "send a request as the page does") from None
    except ValueError as fault:
        raise Refused(HTTPStatus.BAD_REQUEST, f"the request is no JSON: {fault}", "send a request as the page does") from None
    if not isinstance(found, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, "the request is no JSON object", 'send {"ask": "look", "state": ...}')
    return found


class _Handler(BaseHTTPRequestHandler):
    """One connection with one request. Whatever is wrong with it is said as JSON."""

    server: Server
    timeout = LONGEST_WRITE

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BufferedReader(_Hurried(self.connection, LONGEST_READ))

    def do_GET(self) -> None:
        """Send a file of the page."""
        self._guarded(self._send_file)

    def do_POST(self) -> None:
        """Answer a request."""
        self._guarded(self._send_answer)

    def _guarded(self, serve: Callable[[], None]) -> None:
        try:
            self._check_sender()
            serve()
        except Refused as refused:
            self._refuse(refused.status, str(refused), refused.help)

    def _check_sender(self) -> None:
        """Refuse whoever is not our page, or the user who opens it."""
        if self.request_version not in ("HTTP/1.0", "HTTP/1.1"):
            raise Refused(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "only HTTP/1.0 and HTTP/1.1 are understood", OPEN)
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0] not in self.server.hosts:
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "this server is not called so", f"{OPEN}; it begins with http://{ADDRESS}")
        for origin in self.headers.get_all("Origin", []):
            if origin not in {f"http://{host}" for host in self.server.hosts}:
                raise Refused(HTTPStatus.FORBIDDEN, "the request comes from another page", OPEN)
        if any(site not in ("same-origin", "none") for site in self.headers.get_all("Sec-Fetch-Site", [])) and not self._is_followed():
            raise Refused(HTTPStatus.FORBIDDEN, "the request comes from another site", OPEN)

    def _is_followed(self) -> bool:
        """Whether a person followed a link to the page, as from a notebook."""
        sent = (self.command, self.headers.get("Sec-Fetch-Mode"), self.headers.get("Sec-Fetch-Dest"))
        return sent == ("GET", "navigate", "document") and self._name() == START_PAGE

    def _name(self) -> str:
        """What is asked for behind the token, without which nothing is there."""
        lead, token, name, *rest = [*self.path.split("/"), "", ""]
        is_ours = hmac.compare_digest(token.encode("latin-1", "replace"), self.server.token.encode())
        if lead or not is_ours or len(rest) != 2:
            raise Refused(HTTPStatus.NOT_FOUND, "there is nothing at this address", OPEN)
        return name or START_PAGE

    def _send_file(self) -> None:
        name = self._name()
        file = self.server.page.get(name)
        if file is None:
            raise Refused(HTTPStatus.NOT_FOUND, "the page has no such file", OPEN)
        self._send(HTTPStatus.OK, TYPES[_suffix(name)], file.read_bytes())

    def _send_answer(self) -> None:
        if self._name() != "ask":
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is understood here", OPEN)
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a request must be application/json", "send it as the page does")
        request = read_request(self._body())
        with self.server.at_work(self.connection):
            answer = self.server.answer(request, self._is_awaited)
        self._send(HTTPStatus.OK, "application/json", answer)

    def _body(self) -> bytes:
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit()) or "Transfer-Encoding" in self.headers:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "a request must say its length once", "send Content-Length as a whole number")
        if len(lengths[0]) > 18 or int(lengths[0]) > LARGEST_REQUEST:
            help = "write a shorter statement or schedule"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request may have {LARGEST_REQUEST >> 10} KiB at most", help)
        try:
            body = self.rfile.read(int(lengths[0]))
        except TimeoutError:
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, f"the request took longer than {LONGEST_READ:g} s", "send it at once") from None
        if len(body) < int(lengths[0]):
            raise Refused(HTTPStatus.BAD_REQUEST, "the request ended early", "send as much as Content-Length says")
        return body

    def _is_awaited(self) -> bool:
        """Whether the client is still there: one that closed its end has nothing more to send."""
        self.connection.setblocking(False)
        try:
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def _refuse(self, status: HTTPStatus, text: str, help: str) -> None:
        self._send(status, "application/json", json.dumps(failure(text, help)).encode())
        self._discard()

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.connection.settimeout(LONGEST_WRITE)
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _discard(self) -> None:
        """Read what a refused client still sends: one that is cut off while it writes would not see the answer."""
        self.connection.shutdown(socket.SHUT_WR)
        left = MOST_DISCARDED
        while left > 0 and (piece := self.rfile.read1(1 << 16)):
            left -= len(piece)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses by itself: a method that we do not have, or what is not HTTP."""
        status = HTTPStatus(code)
        self._refuse(status, "only GET and POST are understood" if status is HTTPStatus.NOT_IMPLEMENTED else status.phrase, OPEN)

    def version_string(self) -> str:
        """Only what we are, not which Python."""
        return "sparseloom"

    def log_message(self, format: str, *args: Any) -> None:
        """Say something of a request, if that was asked for."""
        if self.server.log:
            told = (format % args).replace(self.server.token, "...")
            sys.stderr.write(f"{''.join(c if c.isprintable() else '?' for c in told)}\n")


class _Hurried(io.RawIOBase):
    """What a client sends, all of it within some seconds."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, or raise ``TimeoutError`` when the time is up."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
