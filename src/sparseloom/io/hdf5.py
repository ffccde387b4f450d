"""Binsparse's HDF5 files, read by a process of their own: the library loops or crashes on some damaged files.

The process gets the open file, and says what is in it through a pipe: a line of JSON, then the bytes of the arrays, one after another.
Its time is limited, first for finding out what there is, then for as many bytes as that says.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.io.room import require_array, require_free
from sparseloom.io.source import PIECE, fault

_CHILD = """
import json, os, sys, time
sys.path[:] = json.loads(sys.argv[1])
import h5py, resource
def allow(seconds):
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, resource.RLIM_INFINITY))
out = os.fdopen(1, "wb")
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
allow(2)
try:
    with h5py.File(os.fdopen(int(sys.argv[2]), "rb", buffering=0), "r") as held:
        if sys.argv[3] not in held.attrs:
            answer = {"wrong": f"it has no attribute {sys.argv[3]!r} that describes a tensor"}
        else:
            about = held.attrs[sys.argv[3]]
            arrays = [(name, held[name]) for name in held]
            answer = {"about": about if isinstance(about, str) else bytes(about).decode(), "arrays": [
                (name, array.dtype.str, list(map(int, array.shape))) for name, array in arrays]}
            allow(5 + sum(array.nbytes for _, array in arrays) / 1e7)
        out.write(json.dumps(answer).encode() + b"\\n")
        out.flush()
        if sys.stdin.buffer.read(1):
            for name, array in arrays:
                out.write(array[...].tobytes())
    out.flush()
except BaseException as wrong:
    if "answer" not in globals():
        out.write(json.dumps({"wrong": f"it is damaged, or no tensor: {wrong}"}).encode() + b"\\n")
        out.flush()
os._exit(0)
"""
_DAMAGED = "it is damaged, or no tensor: the HDF5 library ended"
_LONGEST = 1 << 20  # bytes of the description


def read_described(path: Path, file: IO[bytes], key: str) -> tuple[str, dict[str, NDArray[Any]]]:
    """The text of the attribute ``key``, and the arrays at the top of an HDF5 file."""
    descriptor = file.fileno()
    command = [sys.executable, "-c", _CHILD, json.dumps([str(place) for place in sys.path]), str(descriptor), key]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, pass_fds=[descriptor], **pipes) as child:
        try:
            return _received(path, child)
        finally:
            child.kill()


def _received(path: Path, child: subprocess.Popen[bytes]) -> tuple[str, dict[str, NDArray[Any]]]:
    if child.stdin is None or child.stdout is None:
        raise fault(path, _DAMAGED)
    line = child.stdout.readline(_LONGEST)
    if not line.endswith(b"\n"):
        raise fault(path, _DAMAGED)
    answer = json.loads(line)
    if "wrong" in answer:
        raise fault(path, answer["wrong"])
    kinds = [(name, np.dtype(code), tuple(shape)) for name, code, shape in answer["arrays"]]
    for name, kind, shape in kinds:
        if kind.kind not in "biufc":
            raise fault(path, f"it is damaged, or no tensor: array {name!r} is of type {kind}")
        require_array(path, shape, kind.itemsize)
    require_free(path, sum(kind.itemsize * int(np.prod(shape, dtype=object)) for _, kind, shape in kinds), "what it holds")
    child.stdin.write(b"+")
    child.stdin.close()
    return answer["about"], {name: _filled(path, child.stdout, np.empty(shape, kind)) for name, kind, shape in kinds}


def _filled(path: Path, pipe: IO[bytes], array: NDArray[Any]) -> NDArray[Any]:
    """Read all of an array, in native byte order."""
    room = array.reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
    while len(room):
        piece = pipe.read(min(PIECE, len(room)))
        if not piece:
            raise fault(path, _DAMAGED)
        room[: len(piece)] = np.frombuffer(piece, np.uint8)
        room = room[len(piece) :]
    return array if array.dtype.isnative else array.byteswap(inplace=True).view(array.dtype.newbyteorder("="))
