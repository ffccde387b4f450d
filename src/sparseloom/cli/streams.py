"""Files by name, and ``-``: the standard input, whose kind is seen from how it begins, and the standard output.

sparseloom convert - a.npz < a.mtx          zcat a.mtx.gz | sparseloom run ... -i A=- -o y=-
sparseloom convert a.mtx npz:- > a.npz      the kind may stand before the dash; what is written is text otherwise, .mtx or .tns
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sparseloom.cli.arguments import OptionError
from sparseloom.core.errors import StorageError
from sparseloom.io.files import read, require_writable, write
from sparseloom.tensor.tensor import Tensor

_BEGINNINGS = (
    (b"%%MatrixMarket", ".mtx"), (b"\x1f\x8b", ".gz"), (b"PK", ".npz"), (b"\x93NUMPY", ".npy"), (b"\x89HDF", ".h5"), (b"MATLAB", ".mat"),
)  # fmt: skip


def is_stream(name: str) -> bool:
    """Whether a name stands for the standard input or output."""
    return name == "-" or name.endswith(":-")


def _told(name: str) -> str:
    """The suffix of the kind that stands before a dash, if one does."""
    return f".{name[:-2].lstrip('.')}" if name != "-" else ""


def read_named(name: str) -> Tensor:
    """Read a file, or the standard input to its end."""
    if not is_stream(name):
        return read(name)
    with _own_folder() as folder:
        path = folder / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        named = path.rename(path.with_suffix(_told(name) or _suffix(path)))
        try:
            return read(named)
        except StorageError as problem:
            raise StorageError(str(problem).replace(str(named), "the standard input")) from None


def _suffix(path: Path) -> str:
    """The kind of a file that has no telling name."""
    with path.open("rb") as file:
        head = file.read(16)
    found = next((suffix for beginning, suffix in _BEGINNINGS if head.startswith(beginning)), ".tns")
    if found != ".gz":
        return found
    import gzip

    with gzip.open(path) as packed:
        return ".mtx.gz" if packed.read(14) == b"%%MatrixMarket" else ".tns.gz"


def write_named(name: str, tensor: Tensor) -> None:
    """Write a file, or to the standard output."""
    if not is_stream(name):
        write(name, tensor)
        return
    with _own_folder() as folder:
        path = folder / f"stdout{written_suffix(name, tensor.ndim)}"
        write(path, tensor)
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def written_suffix(name: str, order: int) -> str:
    """The kind of file that is written: of a dash alone, text."""
    return _told(name) or (".mtx" if order == 2 else ".tns") if is_stream(name) else "".join(Path(name).suffixes[-2:])


def require_output(name: str) -> None:
    """Refuse what cannot be written to, before there is anything to write."""
    if not is_stream(name):
        require_writable(name)
        return
    with _own_folder() as folder:
        require_writable(folder / f"stdout{written_suffix(name, 2)}")
    if sys.stdout.isatty() and _told(name) not in ("", ".mtx", ".tns"):
        raise OptionError(f"{name} would write bytes to the terminal\n  help: send them to a file or a pipe, or write - for text")


@contextmanager
def _own_folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="sparseloom-") as folder:
        yield Path(folder)
