"""Requests that a hostile or broken client might send to the explorer's server, as bytes: made by hand, and drawn at random.

Most are refused by the server itself. The others reach the child, which answers with an error, or harmlessly.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import urlsplit

MARK = "intruded"  # the name of a file that must never appear
ASKS = ("look", "next", "plan", "space", "examples", "run", "time", "compare")
CODE = (
    f"__import__('os').system('touch {MARK}')", f"$(touch {MARK})", f"`touch {MARK}`", f"; touch {MARK} ;",
    f'"; system("touch {MARK}"); //', f"*/ system(\"touch {MARK}\"); /*", f"// \n system(\"touch {MARK}\");",
    f"\\\n#include </etc/passwd>\n#pragma {MARK}", "%s%n%s%n",
    f"{{0.__class__.__mro__}} {MARK}", "<script>alert(1)</script>", "A\\", "A'", 'A"', "A\n", "A\0", "\u202eA", "\ud800",
    "Ａ", "µ", "𝐀", "A\u0301",
    f"-o{MARK}", "-fplugin=x.so", f"../../{MARK}", f"/tmp/{MARK}", "__builtins__", "constructor", "__proto__", "main", "int", "restrict",
)  # fmt: skip
ODD = (
    None, True, False, 0, -1, 1.5, -0.0, 1e308, 5e-324, 2**31, 2**63, 10**40, "", " ", "x" * 5000, "\0", "\ud800", "🧵", [], {}, [[]],
    [None], {"": None}, {"a": {"a": {}}}, [0] * 2000, {"on": 1}, {"text": 1},
)  # fmt: skip
HOSTS = (
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:{port}.evil.example", "localhost.evil.example:{port}",
    "[::1]:{port}", "0.0.0.0:{port}", "127.1:{port}", "2130706433:{port}", "", " ", "127.0.0.1:{port}, evil.example",
    "user@127.0.0.1:{port}", "127.0.0.1:0{port}", "localhost:{port}/", "xn--localhost:{port}",
)  # fmt: skip
ORIGINS = (
    "http://evil.example", "null", "", "https://127.0.0.1:{port}", "http://127.0.0.1", "http://127.0.0.1:{port}.evil.example",
    "http://evil.example:{port}", "http://127.0.0.1:{port}/", "file://", "http://localhost", "chrome-extension://abc",
)  # fmt: skip
PATHS = (
    "..", "../", "../..", "../../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "%2e%2e%2fserver.py",
    "..\\..\\server.py", "....//....//etc/passwd", "%c0%ae%c0%ae/etc/passwd", "%252e%252e%252fserver.py", "/etc/passwd", "//etc/passwd",
    "index.html/../server.py", "./index.html", "index.html%00", "index.html\0.py", "index.html/", "INDEX.HTML", "page/index.html",
    "server.py", "child.py", "__init__.py", "~", "~root", "file:///etc/passwd", "index.html?x", "?", "*", "index.html#", ".", "%", "%zz",
    "ask", "ask/", "CON", "a" * 3000,
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """What is sent. ``statuses`` are those that may come back, without any the connection may also just end."""

    name: str
    data: bytes
    statuses: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Door:
    """Where the server is."""

    port: int
    token: str

    @staticmethod
    def of(url: str) -> Door:
        found = urlsplit(url)
        return Door(found.port or 0, found.path.strip("/"))

    def send(self, data: bytes, seconds: float = 60.0) -> bytes:
        """All that comes back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            try:
                connection.sendall(data)
                if not data.endswith(b"}"):  # who closes its end wants no answer to a request
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it was refused before it was sent
            return _all(connection)

    def head(self, method: str, path: str, headers: dict[str, str] | None = None, **instead: str) -> bytes:
        """The head of a request; ``path`` stands behind the token."""
        sent = {"Host": f"127.0.0.1:{self.port}", **(headers or {}), **instead}
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("utf-8", "surrogatepass")

    def ask(self, body: bytes, headers: dict[str, str] | None = None) -> bytes:
        """A request as the page sends it, but for what is given."""
        usual = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Origin": f"http://127.0.0.1:{self.port}"}
        return self.head("POST", f"/{self.token}/ask", {**usual, **(headers or {})}) + body


@contextmanager
def crowd(door: Door, count: int, sent: bytes = b"") -> Iterator[None]:
    """So many connections that send this much and then nothing, held open."""
    with ExitStack() as held:
        for _ in range(count):
            connection = held.enter_context(socket.create_connection(("127.0.0.1", door.port), timeout=30))
            with suppress(OSError):  # the oldest may have ended for the others
                connection.sendall(sent)
        yield


def _all(connection: socket.socket) -> bytes:
    pieces = []
    try:
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def status_of(answer: bytes) -> int:
    """The status of an answer; 0 if it is none."""
    first = answer.split(b"\r\n", 1)[0].split()
    return int(first[1]) if len(first) > 1 and first[0].startswith(b"HTTP/1.") else 0


def body_of(answer: bytes) -> Any:
    """What an answer says, which must be JSON; to HTTP/0.9 it comes without a head."""
    return json.loads(answer.partition(b"\r\n\r\n")[2] if answer.startswith(b"HTTP/1.") else answer)


def look(statement: str = "y(i) = A(i,j) * x(j)", **state: Any) -> dict[str, Any]:
    """A request as it should be."""
    return {"ask": "look", "state": {"statement": statement, "formats": {"A": "csr"}, **state}}


def trials(door: Door, rng: Random, count: int) -> Iterator[Trial]:
    """So many requests: each made by hand once, as far as they go, then random ones."""
    made = list(by_hand(door, rng))
    rng.shuffle(made)
    yield from made[:count]
    for _ in range(count - len(made)):
        yield rng.choice(DRAWN)(door, rng)


def by_hand(door: Door, rng: Random) -> Iterator[Trial]:
    """Everything that has a list."""
    refused = frozenset({400, 403, 404, 405, 421})
    for host in HOSTS:
        yield Trial("host", door.head("GET", f"/{door.token}/", Host=host.format(port=door.port)), frozenset({421}))
    for origin in ORIGINS:
        yield Trial("origin", door.ask(_json(look()), {"Origin": origin.format(port=door.port)}), frozenset({403}))
    for path in PATHS:
        yield Trial("path", door.head("GET", f"/{door.token}/{path}"), refused)
        yield Trial("path without token", door.head("GET", f"/{path}"), refused)
    yield from _tokens(door)
    yield from _methods(door)
    yield from _types_and_lengths(door)
    yield from _no_http(door)
    yield from _bodies(door)
    for code in CODE:
        for place in PLACES:
            yield Trial("code", door.ask(_json(place(code))), frozenset({200, 400}))


def _tokens(door: Door) -> Iterator[Trial]:
    t = door.token
    for path in (
        "/", "/ask", "//", f"/{t}", f"/{t[:-1]}/", f"/{t}x/", f"/{t.swapcase()}/", f"/%{ord(t[0]):02x}{t[1:]}/", f"//{t}/x/", f"/./{t}/",
        f"/x/../{t}/", f"http://evil.example/{t}/", f"/{t}//", f"/{'A' * len(t)}/", "/é/", f"/{t}/\tindex.html", f"{t}/",
    ):  # fmt: skip
        asked = door.head("POST", path, {"Content-Type": "application/json", "Content-Length": "2"}) + b"{}"
        yield Trial("token", door.head("GET", path), frozenset({400, 404}))
        yield Trial("token", asked, frozenset({400, 404}))


def _methods(door: Door) -> Iterator[Trial]:
    for method in "PUT DELETE HEAD OPTIONS TRACE CONNECT PATCH PROPFIND get GETT G\0T __init__ setup finish".split():
        yield Trial("method", door.head(method, f"/{door.token}/"), frozenset({400, 501}))
    yield Trial("method", door.head("GET", f"/{door.token}/ask"), frozenset({404}))
    yield Trial("method", door.head("POST", f"/{door.token}/", {"Content-Length": "0"}), frozenset({405}))


def _types_and_lengths(door: Door) -> Iterator[Trial]:
    body = _json(look())
    forms = ("application/x-www-form-urlencoded", "multipart/form-data")
    for kind in ("text/plain", *forms, "", "text/plain; application/json", "application/jsonp"):
        yield Trial("type", door.ask(body, {"Content-Type": kind}), frozenset({415}))
    for length in ("", "-1", "+5", "1e3", "0x10", "٣", "1 2", "5, 5", "nan", "1_0"):
        yield Trial("length", door.ask(body, {"Content-Length": length}), frozenset({411}))
    for length in (str((256 << 10) + 1), str(10**12), "9" * 5000):
        yield Trial("length", door.ask(body, {"Content-Length": length}), frozenset({413, 400}))
    yield Trial("length", door.ask(body, {"Content-Length": str(len(body) + 9)}) + b" ", frozenset({400}))  # it ends early
    yield Trial("length", door.ask(body, {"Content-Length": str(len(body) - 9)}), frozenset({400}))
    yield Trial("length", door.ask(body, {"Transfer-Encoding": "chunked"}), frozenset({411}))
    yield Trial("length", door.ask(b" " * (300 << 10)), frozenset({413}))
    twice = door.head("POST", f"/{door.token}/ask", {"Content-Type": "application/json", "Content-Length": "2", "content-length": "3"})
    yield Trial("length", twice + b"{} ", frozenset({411}))
    for site in ("cross-site", "same-site", "Same-Origin", "x"):
        framed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
        yield Trial("site", door.ask(body, {**framed, "Sec-Fetch-Dest": "document"}), frozenset({403}))
        yield Trial("site", door.head("GET", f"/{door.token}/", framed), frozenset({403}))


def _no_http(door: Door) -> Iterator[Trial]:
    start, host = f"GET /{door.token}/".encode(), f"Host: 127.0.0.1:{door.port}\r\n".encode()
    for data in (
        b"", b"\r\n\r\n", b"\0" * 4000, b"GET\r\n\r\n", start + b"\r\n\r\n", start + b" HTTP/9.9\r\n\r\n", start + b" HTTP/1.1\r\n\r\n",
        start + b" HTTP/-1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        start + b" HTTP/1.1\r\nHost\r\n: x\r\n\r\n", start + b" HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n",
        start + b" HTTP/1.1\r\nX: " + b"y" * 70000 + b"\r\n\r\n", b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n",
        start + b" HTTP/1.1 more words\r\n\r\n", b"GET / HTTP/1.1\nHost: \xff\xfe\n\n",
        start + b"%0d%0aX:%20y HTTP/1.1\r\n" + host + b"\r\n",
        start + b" HTTP/1.1\r\n" + host + b"Host: evil.example\r\n\r\n", start + b"\r\n" + host + b"\r\n",
    ):  # fmt: skip
        yield Trial("no http", data)


def _bodies(door: Door) -> Iterator[Trial]:
    for body in (
        b"", b"{", b"}", b"nul", b"{'ask': 'look'}", b'{"ask": NaN}', b'{"ask": Infinity}', b'{"ask": -Infinity}', b'{"ask": 1e999}', b"[]",
        b"0", b'"look"', b"null", b"\xff\xfe{\0}\0", b'{"ask": "\xff"}', b'\xef\xbb\xbf{"ask": "look"}', b"[" * 200_000, b'{"a":' * 40_000,
        b'{"ask": ' + b"9" * 200_000 + b"}", b"{}{}", b'{"ask": "look",}', b"\0", b'{"ask": "\0"}',
    ):  # fmt: skip
        yield Trial("body", door.ask(body), frozenset({400}))
    asked = (None, ["look"], {}, "__init__", "explore", "look" * 999, "")
    for request in ({}, {"state": {}}, *({"ask": word} for word in asked)):
        yield Trial("ask", door.ask(_json(request)), frozenset({200}))
    nested = json.dumps(look()).replace('"csr"', "[" * 700 + "]" * 700)
    yield Trial("nested", door.ask(nested.encode()), frozenset({200, 400}))


PLACES: tuple[Callable[[str], dict[str, Any]], ...] = (
    lambda code: look(f"y(i) = {code}(i,j) * x(j)"),
    lambda code: look(f"y(i) = A(i,{code}) * x({code})"),
    lambda code: look(f"y(i) = A(i,j) * x(j) {code}"),
    lambda code: look(formats={code: "csr"}),
    lambda code: look(formats={"A": code}),
    lambda code: look(steps=[{"text": f"split(i,{code},i1,4)", "on": True}]),
    lambda code: look(steps=[{"text": code, "on": True}]),
    lambda code: look(steps=[{"text": f"precompute({code},j,jw,{code})", "on": True}]),
    lambda code: look(target=code),
    lambda code: look(sizes={code: 4}),
    lambda code: {**look(), "ask": code},
    lambda code: {"ask": "space", "operand": code, "state": look()["state"]},
    lambda code: {"ask": "time", "step": code, "state": look()["state"]},
)


def costly() -> Iterator[dict[str, Any]]:
    """Requests that would run for hours, or need terabytes, if they were let."""
    many = [f"i{k}" for k in range(40)]
    yield look(sizes={"i": 10**12, "j": 10**12})
    yield look(sizes={"i": 10**7, "j": 10**7}, density=1)
    yield {**look(sizes={"i": 10**7, "j": 10**7}, formats={"A": "dense"}), "ask": "run"}
    yield look(f"y(i0) = A({','.join(many)})", formats={"A": "coo(40)"})
    yield look("y(i) = " + " * ".join(f"x{k}(j{k})" for k in range(40)), formats={})
    yield look("y(i) = " + " + ".join(["A(i,j) * x(j)"] * 2000))
    yield look("y(i) = " + " + ".join(["A(i,j) * x(j)"] * 200))
    yield look("y(i) = " + " + ".join(f"x{k}(i)" for k in range(12)), formats={f"x{k}": "s" for k in range(12)})
    yield look("y(i) = " + "(" * 1500 + "x(i)" + ")" * 1500, formats={})
    yield look("y(i) = " + "-" * 3000 + "x(i)", formats={})
    sizes = (f"split(i,i0,i1,{10**18})", f"split(i,i0,i1,{10**40})", f"divide(i,i0,i1,{10**18})", f"bound(i,b,{10**18},MaxExact)")
    for step in ("unroll(i,1000000000)", *sizes):
        yield look(steps=[{"text": step, "on": True}])
    yield look(steps=[{"text": f"split(j,j0,j1,1000000) unroll(j1,{10**6})", "on": True}])
    yield look(steps=[{"text": f"split({'i' if k == 0 else f'a{k - 1}'},a{k},b{k},2)", "on": True} for k in range(60)])
    heavy = look("C(i,j) = A(i,k) * B(k,j)", formats={}, sizes=dict.fromkeys("ijk", 4000))
    yield {**heavy, "ask": "run"}
    yield {**heavy, "ask": "space", "operand": "A"}
    yield {**look(steps=[{"text": f"split(j,j0,j1,1000000) unroll(j1,{10**6})", "on": True}]), "ask": "run"}
    yield look(formats={"A": "bcsr(1000000000,1000000000)"})
    yield look(formats={"A": "d" * 200})


def _json(request: Any) -> bytes:
    return json.dumps(request).encode()


def _odd_field(door: Door, rng: Random) -> Trial:
    """A valid request with something odd in the place of one of its parts."""
    request: Any = look(steps=[{"text": "split(i,i0,i1,4)", "on": True}], target="c", sizes={"i": 9}, density=0.5, seed=1)
    request["ask"] = rng.choice((*["look"] * 20, *ASKS[:5]))
    inner, key = rng.choice(list(_places(request)))
    inner[key] = rng.choice(ODD)
    return Trial("odd field", door.ask(_json(request)), frozenset({200, 400}))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a request, as where it stands and under which key."""
    for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(part, dict | list):
            yield from _places(part)


def _mutated_text(door: Door, rng: Random) -> Trial:
    """A statement or step with letters taken out, doubled or replaced."""
    step = rng.choice(("split(i,i0,i1,4)", "pos(j,p,A(i,j))", "parallelize(i,CPUThread,NoRaces)", "fuse(i,j,f)"))
    request = look(_mutated("y(i) = A(i,j) * x(j)", rng), steps=[{"text": _mutated(step, rng), "on": True}])
    return Trial("mutated text", door.ask(_json(request)), frozenset({200}))


def _mutated(text: str, rng: Random) -> str:
    letters = list(text)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(letters))
        letters[at] = rng.choice(("", letters[at] * rng.choice((2, 99)), *"()=+*,.i0'\"\\\n\0#{}[]/@\ud800é", rng.choice(CODE)))
    return "".join(letters)


def _mutated_bytes(door: Door, rng: Random) -> Trial:
    """A whole request of which bytes were changed, so that it may be anything."""
    data = bytearray(door.ask(_json(look())))
    for _ in range(rng.randrange(1, 6)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return Trial("mutated bytes", bytes(data[: rng.choice((len(data), len(data), rng.randrange(1, len(data))))]))


def _random_sender(door: Door, rng: Random) -> Trial:
    """A valid request from where it must not come, or to where nothing is."""
    wrong = [{"Host": rng.choice(HOSTS)}, {"Origin": rng.choice(ORIGINS)}, {"Sec-Fetch-Site": "cross-site"}]
    chosen = {name: value.format(port=door.port) for name, value in rng.choice(wrong).items()}
    return Trial("sender", door.ask(_json(look()), chosen), frozenset({403, 421}))


def _random_path(door: Door, rng: Random) -> Trial:
    parts = ("..", ".", "%2e", "%2f", "/", "\\", "etc", "passwd", "server.py", "%00", "index.html", "//", "%5c", "ask")
    path = "".join(rng.choice(parts) for _ in range(rng.randrange(2, 8)))
    lead = rng.choice((f"/{door.token}/", f"/{door.token}", "/", "/" + "".join(rng.choices(door.token, k=len(door.token))) + "/"))
    return Trial("path", door.head("GET", lead + path), frozenset({400, 404}))


def _random_bytes(door: Door, rng: Random) -> Trial:
    return Trial("bytes", rng.randbytes(rng.randrange(1, 400)))


def _random_json(door: Door, rng: Random) -> Trial:
    """Something drawn as JSON, of any shape."""

    def drawn(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.4:
            return rng.choice((*ODD[:16], *CODE))
        if rng.random() < 0.5:
            return [drawn(depth - 1) for _ in range(rng.randrange(4))]
        keys = rng.choices(("ask", "state", "statement", "formats", "steps", "text", "on", "A"), k=rng.randrange(5))
        return {key: drawn(depth - 1) for key in keys}

    return Trial("json", door.ask(_json({"ask": rng.choice(ASKS[:5]), "state": drawn(4)})), frozenset({200, 400}))


DRAWN: tuple[Callable[[Door, Random], Trial], ...] = (
    _odd_field, _mutated_text, _mutated_bytes, _random_sender, _random_path, _random_bytes, _random_json,
)  # fmt: skip
