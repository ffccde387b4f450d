"""The child of the explorer: ``python -m sparseloom.explorer.child``, where everything is compiled and run that the page asks for.

    parent                                   child
      a pickle: limits and operands   --->     reads it, once
                                      <---     {"ok": true}
      one request a line, as JSON     --->
                                      <---     one answer a line, as JSON

What kernels print goes to the standard error. When the parent ends, in whatever way, the child ends too and removes their folder.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from queue import SimpleQueue
from typing import Any, BinaryIO, NoReturn

from sparseloom.explorer.limits import failure

Explore = Callable[[Any, Mapping[str, Any]], dict[str, Any]]


def main() -> None:
    """Answer until the parent has gone, which may be before anything was asked."""
    try:
        _serve(_own_output())
    except (BrokenPipeError, EOFError, pickle.UnpicklingError):
        _leave()


def _serve(answers: BinaryIO) -> NoReturn:
    explore = _named(sys.argv[1])
    limits, operands = pickle.load(sys.stdin.buffer)  # from the parent, never from a request
    limits.begin()
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, requests), daemon=True).start()
    _say(answers, {"ok": True})
    while True:
        _say(answers, _answer(explore, requests.get(), operands))


def _own_output() -> BinaryIO:
    """The standard output for answers alone: what anything else writes there goes to the standard error."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _named(place: str) -> Explore:
    """The function of ``module:name``."""
    module, _, name = place.partition(":")
    found: Explore = getattr(import_module(module), name)
    return found


def _listen(lines: BinaryIO, requests: SimpleQueue[bytes]) -> None:
    """Pass on every request, also while one is being answered, so that the end of the parent is noticed at any time."""
    for line in lines:
        requests.put(line)
    _leave()


def _leave() -> None:
    """End at once, with the compilers that were started, and leave nothing behind."""
    shutil.rmtree(os.getcwd(), ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def _answer(explore: Explore, line: bytes, operands: Mapping[str, Any]) -> dict[str, Any]:
    """What the explorer says. A request that fails in a way that nobody thought of is answered too."""
    try:
        return explore(json.loads(line), operands)
    except MemoryError:
        return failure("this needs more memory than the explorer may take", "choose smaller sizes, a lower density, or sparse formats")
    except RecursionError:
        return failure("this is nested too deeply", "write a shorter statement or schedule")
    except Exception as problem:  # noqa: BLE001 - the edge of the process: the page shows what happened
        told = f"{type(problem).__name__}: {problem}"
        return failure(f"internal error: {told}", "this is a bug in Sparseloom: report it with the statement, formats and schedule")


def _say(answers: BinaryIO, answer: dict[str, Any]) -> None:
    try:
        text = json.dumps(answer, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as problem:
        text = json.dumps(failure(f"internal error: the answer is no JSON: {problem}", "this is a bug in Sparseloom: report it"))
    answers.write(text.encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
