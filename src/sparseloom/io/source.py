"""Files as bytes: reading plain files piece by piece, gzipped or not, and replacing them in one step.

What is no plain file is refused: a pipe would wait for a writer, a device may never end.
"""

from __future__ import annotations

import errno
import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Protocol

from sparseloom.core.errors import StorageError
from sparseloom.core.system import TO_READ

PIECE = 1 << 18  # bytes that are held at a time; what is made of them should fit into a cache
_PACKED = 1 << 16  # compressed bytes that are held at a time
_SHOWN = 80
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


WATCHER: ContextVar[Callable[[int, int], None] | None] = ContextVar("WATCHER", default=None)
"""Who wants to know how many bytes of how many are read, while a text file is."""


class Sink(Protocol):
    """Something bytes can be written to."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Take some more bytes."""


def open_plain(path: Path) -> IO[bytes]:
    """Open a plain file to read it, without waiting for anything."""
    _require_plain(path, _status(path, "read"), "read")  # to open a device may already change something
    descriptor = os.open(path, TO_READ)
    try:
        _require_plain(path, os.fstat(descriptor), "read")  # something else may stand there by now
        return open(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def _status(path: Path, verb: str) -> os.stat_result:
    """What stands under this name, links followed."""
    try:
        return os.stat(path)
    except ValueError:
        raise StorageError(f"cannot {verb} {str(path)!r}: no file can have this name") from None
    except OSError as problem:
        if problem.errno != errno.ELOOP:
            raise
        raise StorageError(f"cannot {verb} {path}: its symbolic links lead in a circle; name the file itself") from None


def _require_plain(path: Path, status: os.stat_result, verb: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "something else")
        raise StorageError(f"cannot {verb} {path}: it is {kind}, not a plain file; give the name of a file")


def pieces(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """The bytes of an open file, decompressed if its name ends in ``.gz``, at most ``PIECE`` at a time."""
    tell = WATCHER.get()
    size = os.fstat(file.fileno()).st_size if tell is not None else 0
    for piece in _decompressed(path, file) if is_gzipped(path) else iter(lambda: file.read(PIECE), b""):
        if tell is not None:
            tell(file.tell(), size)
        yield piece


def is_gzipped(path: Path) -> bool:
    """Whether the name says so."""
    return path.suffix.lower() == ".gz"


def _decompressed(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    """The contents of a gzip file: members one after another, perhaps with zeros behind."""
    packed = file.read(_PACKED)
    if packed[:2] != b"\x1f\x8b":
        raise fault(path, "its name ends in .gz, but it is not a gzip file; rename it, or compress it")
    while packed:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)  # 16: with gzip's header, length and checksum, which zlib checks
        while not member.eof:
            packed = packed or file.read(_PACKED)
            is_over = not packed
            try:
                piece = member.decompress(packed, PIECE)
            except zlib.error:
                raise _damaged(path) from None
            packed = member.unconsumed_tail
            if piece:
                yield piece
            elif is_over and not member.eof:
                raise _damaged(path)
        packed = member.unused_data.lstrip(b"\0")
        while not packed and (packed := file.read(_PACKED)):
            packed = packed.lstrip(b"\0")


def _damaged(path: Path) -> StorageError:
    return fault(path, "the gzip data are damaged or end too soon; fetch or write the file again")


@contextmanager
def replacing(path: Path, is_tried: bool = False) -> Iterator[IO[bytes]]:
    """Write beside ``path``, then move into place: a failed write leaves the old file as it was. Trying it leaves it so, too."""
    try:
        before = _status(path, "write")
        _require_plain(path, before, "write")
        mode = stat.S_IMODE(before.st_mode) & 0o777
    except FileNotFoundError:
        mode = None
    target = Path(os.path.realpath(path))
    # A short name of its own: with that of the target it could be longer than a name may be.
    part = target.with_name(f".sparseloom-{os.getpid()}-{os.urandom(6).hex()}.part")
    try:
        with _made(part, path) as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)  # what only its owner could read stays so
            yield file
        if not is_tried:
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _made(part: Path, path: Path) -> IO[bytes]:
    """A new file; where there can be none, the error names the file that was asked for."""
    try:
        return part.open("xb")
    except OSError as problem:
        raise type(problem)(problem.errno, problem.strerror, str(path)) from None


def write_text(path: Path, write: Callable[[Sink], None]) -> None:
    """Call ``write`` with a file that replaces ``path`` at the end, gzipped if its name ends in ``.gz``."""
    with replacing(path) as file:
        if not is_gzipped(path):
            write(file)
            return
        # No time stamp and no file name: equal tensors give equal files.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
            write(packed)


def fault(path: Path, what: str, line: int | None = None, text: bytes = b"") -> StorageError:
    """The error for a file that cannot be read: which file, which line, what is wrong, and the line itself."""
    place = f"{path}" if line is None else f"{path}, line {line}"
    shown = shortened(text)
    return StorageError(f"cannot read {place}: {what}" + (f"\n    {shown}" if shown else ""))


def shortened(text: bytes) -> str:
    """Text of a file that an error can show."""
    shown = text.strip()[: 4 * _SHOWN].decode("ascii", "backslashreplace")
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
