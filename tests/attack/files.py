"""Files of every kind, damaged in every way: a read gives what a slow reader finds in the file, or a SparseloomError."""

from __future__ import annotations

import cmath
import gzip
import math
import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from attack.file_archives import bytes_damaged, damage, draw_arrays, lying, packed, slow_entries
from attack.file_bombs import ALLOWED, EMPTY, SPECIAL, archive_bomb, npy, peak, text_bomb
from attack.file_texts import Entries, Expected, Malformed, draw_matrix, draw_tensor, mutate, slow_matrix, slow_tensor

import sparseloom as sl
from sparseloom.formats.pack import unpack

NAME = "files"
COUNT = 4000
SHORT = 120
SUFFIXES = (".mtx", ".mtx.gz", ".tns", ".tns.gz", ".npz", ".npy")
NEEDED = ("shape", "fill", "pos1", "crd1", "values", "indptr", "indices", "data", "row", "col", "offsets")
# Words of refusals that a valid file may meet.
TOO_LARGE = ("GB of memory", "not enough memory", "there is no array of the shape")


def trial(rng: np.random.Generator) -> str:
    """One file, read or written."""
    doors = list(DOORS)
    weights = np.array([DOORS[door] for door in doors], float)
    with tempfile.TemporaryDirectory(prefix="sparseloom-files-") as folder:
        return doors[int(rng.choice(len(doors), p=weights / weights.sum()))](rng, Path(folder))


def text_file(rng: np.random.Generator, folder: Path) -> str:
    """A text, damaged up to three times, plain or gzipped."""
    is_matrix = bool(rng.integers(2))
    text = (draw_matrix if is_matrix else draw_tensor)(rng)
    for _ in range(int(rng.integers(0, 4))):
        text = mutate(rng, text)
    path = folder / f"a{'.mtx' if is_matrix else '.tns'}{'.gz' if rng.integers(2) else ''}"
    path.write_bytes(_gzipped(rng, text) if path.suffix == ".gz" else text)
    try:
        expected = (slow_matrix if is_matrix else slow_tensor)(text)
    except Malformed:
        expected = None
    try:
        tensor = sl.read(path)
    except sl.SparseloomError as problem:
        assert expected is None or any(word in str(problem) for word in TOO_LARGE), f"refused {text!r}: {problem}"
        return "refused"
    assert expected is not None, f"accepted {text!r} as {tensor!r}"
    _require_equal(tensor, expected, text)
    return "right"


def _gzipped(rng: np.random.Generator, text: bytes) -> bytes:
    """One member or several, perhaps empty ones, perhaps with zeros behind: all of that is gzip."""
    cuts = sorted(int(cut) for cut in rng.integers(0, len(text) + 1, int(rng.integers(0, 3))))
    members = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return b"".join(gzip.compress(member) for member in members) + bytes(int(rng.choice([0, 0, 1, 100])))


def damaged_gzip(rng: np.random.Generator, folder: Path) -> str:
    """The bytes of a gzip file damaged: its checksums tell, so what is accepted is what was packed."""
    text = b"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 5\n2 3 4\n"
    path = folder / "a.mtx.gz"
    data = bytes_damaged(rng, gzip.compress(text))
    if rng.integers(8) == 0:
        data = [b"", text, EMPTY, EMPTY * 1000 + data, b"\x1f", b"\x1f\x8b", data * 2][int(rng.integers(7))]
    path.write_bytes(data)
    _require_equal(sl.read(path), slow_matrix(text), text)
    return "right"


def archive(rng: np.random.Generator, folder: Path) -> str:
    """An archive with damaged arrays, headers or bytes."""
    layout, arrays = draw_arrays(rng)
    for _ in range(int(rng.integers(0, 3))):
        arrays = damage(rng, arrays) if arrays else arrays
    data = packed(rng, arrays)
    if rng.integers(4) == 0:
        data = bytes_damaged(rng, data)
    path = folder / "a.npz"
    path.write_bytes(data)
    tensor = sl.read(path)
    with np.load(path, allow_pickle=False) as loaded:
        shape, entries, fill = slow_entries(layout, {name: loaded[name] for name in NEEDED if name in loaded.files})
    assert tensor.shape == shape and _is_equal(tensor.fill, fill), f"{tensor!r} for {shape} filled with {fill}"
    _require_entries(tensor, entries, fill, f"{layout} {arrays}")
    return "right"


def array(rng: np.random.Generator, folder: Path) -> str:
    """An .npy file with a lying header or damaged bytes."""
    shape = tuple(int(size) for size in rng.integers(0, 4, int(rng.integers(0, 4))))
    data = npy(rng.integers(-9, 9, shape).astype(str(rng.choice(["f8", "f4", ">f8", ">i2", "i1", "?", "c8", "f2", "U2"]))))
    damaged = [data, lying(rng, data), bytes_damaged(rng, data)][int(rng.integers(3))]
    path = folder / "a.npy"
    path.write_bytes(damaged)
    tensor = sl.read(path)
    found = np.load(path, allow_pickle=False)
    np.testing.assert_array_equal(tensor.to_numpy(), found)
    return "right"


def bomb(rng: np.random.Generator, folder: Path) -> str:
    """A file that unpacks to much takes little."""
    path = (text_bomb if rng.integers(2) else archive_bomb)(rng, folder)
    before = peak()
    try:
        sl.read(path)
        return "right"
    finally:
        assert peak() - before <= ALLOWED, f"{path.name} took {(peak() - before) >> 20} MiB"


def special(rng: np.random.Generator, folder: Path) -> str:
    """What is no plain file is refused, and stays as it is."""
    kind = str(rng.choice(list(SPECIAL)))
    path = folder / f"a{rng.choice(SUFFIXES)}"
    SPECIAL[kind](path)
    before = sorted(os.listdir(folder)), os.lstat(path).st_ino
    try:
        sl.read(path) if rng.integers(2) else sl.write(path, np.eye(3))
    except FileNotFoundError:
        assert kind == "terminal"  # there may be none
    except sl.SparseloomError:
        assert (sorted(os.listdir(folder)), os.lstat(path).st_ino) == before
        return "refused"
    raise AssertionError(f"{kind} was accepted")


def name(rng: np.random.Generator, folder: Path) -> str:
    """Names under which nothing stands, or nothing can stand: OSErrors of the system, or refusals."""
    suffix = str(rng.choice(SUFFIXES))
    names: list[Any] = [
        folder / f"none{suffix}", folder / "none" / f"a{suffix}", f"a\0{suffix}", f"\ud800{suffix}", folder / ("x" * 300 + suffix),
        "", suffix, 5, None, b"a.mtx", folder / f"dangling{suffix}", folder, folder / "a.txt",
    ]  # fmt: skip
    (folder / f"dangling{suffix}").symlink_to("nowhere")
    try:
        sl.read(names[int(rng.integers(len(names)))])
    except OSError:
        return "refused"
    raise AssertionError("there is nothing to read")


def written(rng: np.random.Generator, folder: Path) -> str:
    """A written file is whole, or what stood there before is: also where the disk is full."""
    path = folder / f"{'x' * int(rng.choice([1, 240]))}{rng.choice(SUFFIXES)}"
    tensor = sl.random((40, 30), 0.2, str(rng.choice(["csr", "coo", "dense", "bcsr(2,2)", "dcsr"])), int(rng.integers(1000)))
    before = None
    if rng.integers(2):
        path.write_bytes(b"before")
        path.chmod(0o600)
        before = b"before"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    is_full = bool(rng.integers(2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(rng.integers(0, 1500)) if is_full else soft, hard))
    try:
        sl.write(path, tensor)
    except OSError:
        assert is_full, "the disk is not full"
        assert (path.read_bytes() if path.exists() else None) == before
        assert len(os.listdir(folder)) == (before is not None)
        return "refused"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert before is None or path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(folder) == [path.name]
    np.testing.assert_array_equal(sl.read(path).to_numpy(), tensor.to_numpy())
    return "right"


def _require_equal(tensor: sl.Tensor, expected: Expected, text: bytes) -> None:
    """The tensor holds the same entries, each once; what it does not store is zero."""
    assert (tensor.shape, tensor.dtype) == (expected.shape, expected.dtype), f"{tensor!r} for {expected.shape} {expected.dtype} in {text!r}"
    _require_entries(tensor, expected.entries, 0, repr(text))


def _require_entries(tensor: sl.Tensor, entries: Entries, fill: Any, origin: str) -> None:
    coordinates, values = unpack(tensor.storage)
    found = dict(zip(map(tuple, coordinates.T.tolist()), values.tolist(), strict=True))
    is_unique = tensor.format.is_unique
    assert len(found) == len(values) or not is_unique, f"repeated entries from {origin}"
    for place in {*found, *entries}:
        have, want = found.get(place, fill), entries.get(place, fill)
        with np.errstate(over="ignore"):
            want = np.float32(want) if tensor.dtype == np.float32 else want
        assert _is_equal(have, want), f"{have} for {want} at {place} of {origin}"


def _is_equal(have: Any, want: Any) -> bool:
    """Equal up to the order of a sum; integers exactly."""
    if isinstance(have, int) and isinstance(want, int | np.integer):
        return have == want
    have, want = complex(have), complex(want)
    if cmath.isnan(have) or cmath.isnan(want) or cmath.isinf(have) or cmath.isinf(want):
        return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in ((have.real, want.real), (have.imag, want.imag)))
    return abs(have - want) <= 1e-12 * max(abs(have), abs(want))


DOORS: dict[Callable[[np.random.Generator, Path], str], int] = {
    text_file: 45, damaged_gzip: 6, archive: 24, array: 8, bomb: 3, special: 5, name: 3, written: 6,
}  # fmt: skip
