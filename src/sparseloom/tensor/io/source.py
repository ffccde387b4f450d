"""Files as bytes: reading them whole, plain or gzipped, and replacing them in one step."""

from __future__ import annotations

import errno
import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from sparseloom.core.errors import StorageError

_SHOWN = 80


class Sink(Protocol):
    """Something bytes can be written to."""

    def write(self, data: bytes, /) -> int:
        """Take some more bytes."""


def read_bytes(path: Path) -> bytes:
    """The whole file, decompressed if its name ends in ``.gz``."""
    raw = path.read_bytes()
    if path.suffix != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except gzip.BadGzipFile:
        raise fault(path, "its name ends in .gz, but it is not a gzip file; rename it, or compress it") from None
    except (EOFError, zlib.error):
        raise fault(path, "the gzip data are damaged or end too soon; fetch or write the file again") from None


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write beside ``path``, then move into place: a failed write leaves the old file as it was."""
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    try:
        with part.open("xb") as file:
            yield file
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, write: Callable[[Sink], None]) -> None:
    """Call ``write`` with a file that replaces ``path`` at the end, gzipped if its name ends in ``.gz``."""
    with replacing(path) as file:
        if path.suffix != ".gz":
            write(file)
            return
        # No time stamp and no file name: equal tensors give equal files.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
            write(packed)


def fault(path: Path, what: str, line: int | None = None, text: bytes = b"") -> StorageError:
    """The error for a file that cannot be read: which file, which line, what is wrong, and the line itself."""
    place = f"{path}" if line is None else f"{path}, line {line}"
    shown = text.decode("ascii", "backslashreplace").strip()
    if len(shown) > _SHOWN:
        shown = shown[: _SHOWN - 3] + "..."
    return StorageError(f"cannot read {place}: {what}" + (f"\n    {shown}" if shown else ""))
