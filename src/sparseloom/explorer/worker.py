"""A process that answers requests within a time, and is replaced when it does not."""

from __future__ import annotations

import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from sparseloom.explorer.limits import Limits, failure

EXPLORE = "sparseloom.explorer:explore"
LONGEST_START = 60.0  # seconds
LARGEST_ANSWER = 64 << 20  # bytes
AGAIN = "a new process was started: change the request and ask again; if this is valid, report it as a bug"


@dataclass(frozen=True)
class Work:
    """What a worker needs: a folder for its kernels, operands by name, limits, and the function that answers."""

    folder: Path
    operands: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    explore: str = EXPLORE
    log: bool = False


class _Lost(Exception):
    """A child that will not answer any more: what happened, and what to do."""

    def __init__(self, text: str, help: str) -> None:
        super().__init__(text)
        self.help = help


class Worker:
    """Answers one request at a time, each within some seconds. A child that fails is replaced at once, before the next request."""

    def __init__(self, work: Work, seconds: float) -> None:
        self._work = work
        self._seconds = seconds
        self._turn = threading.Lock()
        self._child: _Child | None = None
        self._is_closed = False

    def start(self) -> None:
        """Begin now what takes longest, loading the compiler, so that the first answer is quick."""
        if self._child is None and self._turn.acquire(blocking=False):
            with suppress(_Lost):  # the first request says why
                self._running()
            self._turn.release()

    def ask(self, request: Mapping[str, Any], is_wanted: Callable[[], bool] = lambda: True) -> bytes:
        """The answer to a request, as JSON; it is a failure with a reason where the child gave none.

        When its turn comes, a request that nobody waits for any more is not passed on.
        """
        line = json.dumps(request, allow_nan=False).encode() + b"\n"
        if not self._turn.acquire(timeout=self._seconds):
            return _failed("an earlier request is still being answered", "wait for it, then ask again")
        try:
            if not is_wanted():
                return _failed("a newer request took the place of this one", "wait for its answer")
            return self._running().answer(line, self._seconds)
        except _Lost as lost:
            self._replace()
            return _failed(f"{request.get('ask', 'this')} {lost}", lost.help)
        finally:
            self._turn.release()

    def close(self) -> None:
        """End the child, whatever it does."""
        self._is_closed = True
        if self._child is not None:
            self._child.kill()
        with self._turn:  # whoever waited for an answer has gone
            self._drop()

    def _running(self) -> _Child:
        if self._is_closed:
            raise _Lost("was not answered: the explorer was closed", "start it again")
        try:
            self._child = self._child or _Child(self._work)
        except OSError as problem:
            raise _Lost(f"was not answered: no process started: {problem.strerror}", "end other programs, then ask again") from None
        return self._child

    def _replace(self) -> None:
        self._drop()
        with suppress(_Lost):  # the next request says why
            self._running()

    def _drop(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.forget()
        self._child = None


class _Child:
    """One process, in a session of its own so that it can be ended with the compilers that it started."""

    def __init__(self, work: Work) -> None:
        command = [sys.executable, "-P", "-m", "sparseloom.explorer.child", work.explore]
        told = None if work.log else subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told, cwd=work.folder, env=_environment(work.folder),
            start_new_session=True, bufsize=0,
        )  # fmt: skip
        self._is_ready = False
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=self._feed, args=(work,), daemon=True).start()

    def answer(self, line: bytes, seconds: float) -> bytes:
        """What it says to one request."""
        if not self._is_ready:
            self._line(LONGEST_START)
            self._is_ready = True
        self._outgoing.put(line)
        return self._line(seconds)

    def kill(self) -> None:
        """End it and all that it started."""
        self._outgoing.put(None)
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):  # it has just ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def forget(self) -> None:
        """Let go of its answers, once nobody waits for one."""
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _feed(self, work: Work) -> None:
        """Write operands, then requests, apart from whoever waits for the answer: a child that does not read must hold up nobody."""
        assert self._process.stdin is not None
        try:
            with self._process.stdin as pipe:
                pickle.dump((work.limits, dict(work.operands)), _Whole(pipe), protocol=5)
                while (line := self._outgoing.get()) is not None:
                    _Whole(pipe).write(line)
        except BrokenPipeError:
            pass  # it has ended, which the reader of its answers sees

    def _line(self, seconds: float) -> bytes:
        assert self._process.stdout is not None
        pipe, size, end = self._process.stdout.fileno(), 0, time.monotonic() + seconds
        pieces: list[bytes] = []
        with selectors.DefaultSelector() as ready:
            ready.register(pipe, selectors.EVENT_READ)
            while True:
                if not ready.select(max(end - time.monotonic(), 0)):
                    help = "choose smaller sizes, or a shorter statement or schedule"
                    raise _Lost(f"took longer than {seconds:g} s, and was stopped", help)
                pieces.append(os.read(pipe, 1 << 20))
                size += len(pieces[-1])
                if not pieces[-1]:
                    raise _Lost(self._how_it_ended(), AGAIN)
                if size > LARGEST_ANSWER:
                    raise _Lost(f"has an answer of more than {LARGEST_ANSWER >> 20} MiB", "choose smaller sizes")
                if pieces[-1].endswith(b"\n"):
                    return b"".join(pieces)

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "was not answered: the process that computes closed its output"
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        return f"was not answered: the process that computes ended {how}"


class _Whole:
    """A raw pipe as ``pickle`` needs it: a write may take several."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write all of it."""
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[self._pipe.write(rest) :]
        return len(data)


def _environment(folder: Path) -> dict[str, str]:
    """As here, but with kernels and temporary files in a folder that the parent removes; this package wins over any other."""
    here = str(Path(__file__).resolve().parents[2])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    caches = {"SPARSELOOM_CACHE_DIR": str(folder / "kernels"), "CUDA_CACHE_PATH": str(folder / "cuda"), "TMPDIR": str(folder)}
    return {**os.environ, **caches, "PYTHONPATH": os.pathsep.join(paths)}


def _failed(text: str, help: str) -> bytes:
    return json.dumps(failure(text, help)).encode()
