"""Small files that unpack to much, or say that they do, and names under which no plain file stands."""

from __future__ import annotations

import gzip
import io
import os
import resource
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

HEAD = b"%%MatrixMarket matrix coordinate real general\n"
MEBIBYTE = 1 << 20
UNPACKED = 48 * MEBIBYTE
# What a bomb may take: some pieces, and what the process had not yet touched.
ALLOWED = 40 * MEBIBYTE
TEXT_BOMBS: dict[str, tuple[str, bytes, bytes]] = {
    "declares less": (".mtx.gz", HEAD + b"3 3 5\n", b"1 1 1\n"),
    "comments": (".mtx.gz", HEAD + b"% \n", b"% comment\n"),
    "blank lines": (".mtx.gz", HEAD + b"3 3 0\n", b"        \n"),
    "endless line": (".mtx.gz", HEAD + b"3 3 1\n", b"1"),
    "endless first line": (".mtx.gz", b"", b"%"),
    "endless blank": (".tns.gz", b"1 1 1\n", b" "),
    "remarks": (".tns.gz", b"1 1 1\n", b"# 1 1 1\n"),
    "nothing": (".tns.gz", b"", b"\n"),
    "zeros": (".mtx.gz", b"", b"\0"),
}


def text_bomb(rng: np.random.Generator, folder: Path) -> Path:
    """A gzipped text of a few kilobytes that unpacks to much."""
    suffix, head, unit = TEXT_BOMBS[str(rng.choice(list(TEXT_BOMBS)))]
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    part = unit * (MEBIBYTE // len(unit))
    data = packer.compress(head) + b"".join(packer.compress(part) for _ in range(UNPACKED // MEBIBYTE)) + packer.flush()
    path = folder / f"bomb{suffix}"
    path.write_bytes(data)
    return path


def archive_bomb(rng: np.random.Generator, folder: Path) -> Path:
    """An archive with a member that is huge, or says so."""
    stream = io.BytesIO()
    count = UNPACKED // 8
    lie = int(rng.choice([10**9, 10**12, 10**18]))
    member = str(rng.choice(["data", "values", "strange"]))
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in {"format": np.array(b"csr"), "shape": np.array([2, 2]), "indices": np.arange(2), "indptr": np.arange(3)}.items():
            archive.writestr(f"{name}.npy", npy(array))
        if member != "data":
            archive.writestr("data.npy", npy(np.ones(2)))
        header = npy(np.zeros(0)).replace(b"(0,)", b"(%d,)" % (count if member == "strange" else lie))
        archive.writestr(f"{member}.npy", header + bytes(UNPACKED if member == "strange" else int(rng.integers(100))))
    data = bytearray(stream.getvalue())
    if rng.integers(2) and member != "strange":  # the directory tells the same lie
        place = data.rindex(f"{member}.npy".encode()) - 22
        data[place : place + 4] = struct.pack("<I", min(8 * lie, 2**32 - 2))
    path = folder / "bomb.npz"
    path.write_bytes(data)
    return path


def npy(array: np.ndarray) -> bytes:  # type: ignore[type-arg]
    """The bytes of an .npy file."""
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def peak() -> int:
    """The most bytes that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _socket(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # the whole name may be too long for a socket
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(before)


def _loop(path: Path) -> None:
    path.symlink_to(path.with_name("other"))
    path.with_name("other").symlink_to(path)


# What is no plain file, and must be refused without waiting for anything.
SPECIAL: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": os.mkdir,
    "socket": _socket,
    "loop": _loop,
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "null": lambda path: path.symlink_to("/dev/null"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "link to a pipe": lambda path: (os.mkfifo(path.with_name("pipe")), path.symlink_to(path.with_name("pipe")))[1],  # type: ignore[func-returns-value]
}
EMPTY = gzip.compress(b"")
