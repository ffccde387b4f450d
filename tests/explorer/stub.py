"""A stand-in for ``explore`` that does, in the child, whatever could go wrong there: the state says what."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def explore(request: Any, operands: Mapping[str, Any]) -> dict[str, Any]:
    """Do what the request's state says."""
    match request["state"]:
        case ["sleep", seconds]:
            time.sleep(seconds)
        case ["signal", number]:
            os.kill(os.getpid(), number)
        case ["exit", status]:
            os._exit(status)
        case ["take", megabytes]:
            return {"ok": True, "taken": len(bytearray(megabytes << 20))}
        case ["print", text]:
            os.write(1, text.encode())
            print(text, flush=True)
        case ["raise", text]:
            raise KeyError(text)
        case ["nest", depth]:
            return explore({"state": ["nest", depth - 1]}, operands) if depth else {"ok": True}
        case "not a number":
            return {"ok": True, "value": float("nan")}
        case "where":
            return {"ok": True, "folder": os.getcwd(), "process": os.getpid(), "temporary": os.environ["TMPDIR"]}
        case "operands":
            return {"ok": True, "operands": {name: [list(value.shape), str(value.format)] for name, value in operands.items()}}
        case ["write", bytes_]:
            return _written(bytes_)
        case ["blind", seconds]:  # as a kernel that cannot be interrupted, and prints
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            sys.stdout.write("printed by a kernel\n")
            time.sleep(seconds)
    return {"ok": True}


def _written(size: int) -> dict[str, Any]:
    """How much of a file of this size may be written."""
    file = Path("large")
    try:
        with file.open("wb") as opened:
            opened.truncate(size)
    except OSError as problem:
        return {"ok": False, "error": {"text": str(problem.strerror), "help": ""}}
    finally:
        file.unlink()
    return {"ok": True}
