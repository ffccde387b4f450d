"""Reading and writing tensors by file name."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sparseloom.core.errors import FormatError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.storage import Storage, sealed
from sparseloom.io.source import fault, replacing
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.tensor import Tensor

Reader = Callable[[Path, Format | str | None], Storage]
Writer = Callable[[Path, Storage], None]

_SUFFIXES = (".mtx", ".mtx.gz", ".tns", ".tns.gz", ".npz", ".npy", ".mat", ".h5", ".bsp.npz")


def read(path: str | os.PathLike[str], format: Format | str | None = None, name: str | None = None) -> Tensor:
    """Read a tensor from an .mtx, .tns (each also .gz), .npz, .npy, .mat or .h5 (binsparse) file.

    Without ``format``, a matrix comes as csr, a tensor of other order as csf, and an array or an archive as it was stored. Of several
    arrays in a .mat file, ``name`` says which. The file is not trusted: it is read in pieces, and a file that is damaged, holds other
    than it declares, asks for more memory than there is, or is no plain file is a ``StorageError``. A missing or unreadable one is the
    system's ``OSError``.

    >>> sl.write("a.mtx", sl.eye(2))
    >>> sl.read("a.mtx").nnz
    2
    """
    path = _named(path)
    reader, _ = _kind_of(path, name)
    try:
        # The reader stores what it reads in this format at once: another one may have a place for every row of a huge matrix.
        storage = reader(path, format)
    except MemoryError as problem:
        # The file says how much is asked for, so it is refused as any other that cannot be read.
        raise fault(path, f"there is not enough memory for what it holds\n  help: ask for another format; {problem}") from None
    return Tensor(sealed(storage), name)


def write(path: str | os.PathLike[str], tensor: object) -> None:
    """Write a tensor, or anything ``asarray`` takes: .mtx, .tns (each also .gz), .npz, .npy, .mat, or binsparse's .h5 and .bsp.npz.

    The file appears whole or not at all: what stood there before stays until the new one is complete. Only a plain file is replaced.

    >>> sl.write("a.npz", sl.eye(2))
    >>> sl.read("a.npz").nnz
    2
    """
    path = _named(path)
    given = asarray(tensor)
    _, writer = _kind_of(path, given.name)
    writer(path, given.storage)


def require_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a name under which nothing could be written, before there is anything to write."""
    named = _named(path)
    _kind_of(named)
    with replacing(named, is_tried=True):
        pass


def _named(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise StorageError(f"a file is given by its name, a str or os.PathLike, not by {type(path).__name__}")
    name = os.fspath(path)
    return Path(os.fsdecode(name) if isinstance(name, bytes) else name)


def _kind_of(path: Path, variable: str | None = None) -> tuple[Reader, Writer]:
    """Who reads and writes this kind of file. They are loaded when a file is at hand: most programs have none."""
    name = path.name.lower()
    match next((suffix for suffix in sorted(_SUFFIXES, key=len, reverse=True) if name.endswith(suffix)), None):
        case ".mtx" | ".mtx.gz":
            from sparseloom.io.mtx import read_mtx, write_mtx

            return read_mtx, write_mtx
        case ".tns" | ".tns.gz":
            from sparseloom.io.tns import read_tns, write_tns

            return read_tns, write_tns
        case ".bsp.npz":
            from sparseloom.io.binsparse import write_bsp_npz
            from sparseloom.io.npz import read_npz

            return read_npz, write_bsp_npz
        case ".h5":
            from sparseloom.io.binsparse import read_h5, write_h5

            return read_h5, write_h5
        case ".mat":
            from sparseloom.io.mat import read_mat, write_mat

            return partial(read_mat, name=variable), partial(write_mat, name=variable)
        case ".npz":
            from sparseloom.io.npz import read_npz, write_npz

            return read_npz, write_npz
        case ".npy":
            from sparseloom.io.npy import read_npy, write_npy

            return read_npy, write_npy
    raise FormatError(f"the name {path.name!r} does not say what kind of file it is; names end in {', '.join(_SUFFIXES)}")
