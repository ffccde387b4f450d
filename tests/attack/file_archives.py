"""Archives and arrays of NumPy, damaged in their arrays, their headers or their bytes, and a slow reader of their arrays."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

import numpy as np
import scipy.sparse as sp
from attack.file_texts import Entries

Arrays = dict[str, Any]
LAYOUTS = ("csr", "csc", "coo", "bsr", "dia", "own", "own")
STRANGE_DTYPES = (">f8", ">i4", ">i8", "f2", "O", "U3", "S3", "M8[s]", "c16", "?", "u8", "i1", "i4,f4", "g", "V4")
STRANGE_NUMBERS = (-1, 1, 7, 2**31 - 1, -(2**31), 2**62, -(2**63))


def draw_arrays(rng: np.random.Generator) -> tuple[str, Arrays]:
    """The arrays of a valid archive."""
    layout = str(rng.choice(LAYOUTS))
    rows, columns = (int(size) * 2 for size in rng.integers(1, 4, 2))
    dense = rng.integers(-3, 4, (rows, columns)) * (rng.random((rows, columns)) < 0.5)
    dense = dense.astype(rng.choice(["f8", "f4", "i8", "i1", "c16"]))
    if layout == "own":
        matrix = sp.csr_array(dense)
        fill = np.array(rng.integers(0, 2), dense.dtype)
        index = {"pos1": matrix.indptr, "crd1": matrix.indices, "values": matrix.data}
        return layout, {"sparseloom_format": np.array("ds"), "shape": np.array(dense.shape), "fill": fill, **index}
    matrix = {"bsr": lambda: sp.bsr_array(dense, blocksize=(2, 2))}.get(layout, lambda: getattr(sp, f"{layout}_array")(dense))()
    stream = io.BytesIO()
    sp.save_npz(stream, matrix, compressed=False)
    stream.seek(0)
    with np.load(stream) as loaded:
        return layout, {name: loaded[name] for name in loaded.files}


def damage(rng: np.random.Generator, arrays: Arrays) -> Arrays:
    """Change one array."""
    arrays = dict(arrays)
    name = str(rng.choice(list(arrays)))
    array = np.asarray(arrays[name])
    match int(rng.integers(8)):
        case 0:
            del arrays[name]
        case 1:
            arrays["strange"] = array
        case 2:
            dtype = np.dtype(str(rng.choice(STRANGE_DTYPES)))
            arrays[name] = np.zeros(array.shape, dtype) if array.dtype.kind in "SU" or dtype.kind in "MV" else _cast(array, dtype)
        case 3:
            arrays[name] = array.reshape([(-1,), (1, -1), (*array.shape, 1)][int(rng.integers(3))])
        case 4:
            arrays[name] = array.reshape(-1)[: int(rng.integers(array.size + 1))]
        case 5:
            arrays[name] = np.concatenate((array.reshape(-1), array.reshape(-1)[:1]))
        case 6 if array.dtype.kind in "iu" and array.size:
            changed = array.astype(np.int64).reshape(-1).copy()
            changed[int(rng.integers(changed.size))] = STRANGE_NUMBERS[int(rng.integers(len(STRANGE_NUMBERS)))]
            arrays[name] = changed.reshape(array.shape)
        case _:
            arrays[name] = np.asfortranarray(array) if rng.integers(2) else array[..., ::-1] if array.ndim else array
    return arrays


def _cast(array: Any, dtype: np.dtype[Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return array.astype(dtype)
    except (TypeError, ValueError):
        return np.zeros(array.shape, dtype)


def packed(rng: np.random.Generator, arrays: Arrays) -> bytes:
    """The archive of some arrays; perhaps packed, with a lying header, or with an array twice."""
    stream = io.BytesIO()
    method = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2][int(rng.integers(4))]
    liar = str(rng.choice(list(arrays))) if arrays and rng.integers(6) == 0 else ""
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=True)
            archive.writestr(f"{name}.npy", lying(rng, member.getvalue()) if name == liar else member.getvalue())
    return stream.getvalue()


def lying(rng: np.random.Generator, data: bytes) -> bytes:
    """An .npy file with another header than it should have."""
    (length,) = struct.unpack("<H", data[8:10])
    header, body = data[10 : 10 + length].rstrip(), data[10 + length :]
    shape = header[header.index(b"(") : header.index(b")") + 1]
    other = [
        header.replace(shape, b"(%d,)" % 10 ** int(rng.integers(1, 25))),
        header.replace(shape, b"(%s)" % (b"1," * int(rng.integers(30, 90)))),
        header.replace(shape, b"(0, 1000000000000000000)"),
        header.replace(shape, b"(-1,)"),
        header.replace(shape, b"(" * 3000),
        header.replace(b"'descr': '<", b"'descr': '>"),
        header.replace(b"False", b"True"),
        header.replace(b"False", b"[].append"),
        header[: int(rng.integers(len(header)))],
        b"{" + b"-" * 5000,
        header + b" " * 20000,
        b"",
    ][int(rng.integers(12))] + b"\n"
    if rng.integers(4) == 0:
        return data[:6] + b"\x02\x00" + struct.pack("<I", int(rng.choice([len(other), 2**32 - 1, 0]))) + other + body
    return data[:6] + bytes([int(rng.choice([1, 1, 1, 0, 9])), 0]) + struct.pack("<H", min(len(other), 65535)) + other + body


def bytes_damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes of a file flipped, cut off, left out or put in."""
    place = int(rng.integers(len(data) + 1))
    # Half of the places are in the directory at the end, where few bytes say much.
    place = max(0, len(data) - int(rng.integers(200))) if rng.integers(2) else place
    match int(rng.integers(5)):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + data[place + int(rng.integers(1, 9)) :]
        case 2:
            return data[:place] + rng.bytes(int(rng.integers(1, 9))) + data[place:]
    return data[:place] + bytes([int(rng.choice([0, 1, 127, 255, int(rng.integers(256))]))]) + data[place + 1 :]


def slow_entries(layout: str, arrays: Arrays) -> tuple[tuple[int, ...], Entries, complex]:
    """What arrays hold, entry by entry: shape, entries and fill. What is out of bounds is an IndexError."""
    shape = tuple(int(size) for size in arrays["shape"].reshape(-1))
    found: Entries = {}

    def add(i: int, j: int, value: Any) -> None:
        if not (0 <= i < shape[0] and 0 <= j < shape[1]):
            raise IndexError
        found[i, j] = found[i, j] + value if (i, j) in found else value

    match layout:
        case "coo":
            for i, j, value in zip(arrays["row"], arrays["col"], arrays["data"], strict=True):
                add(int(i), int(j), value)
        case "dia":
            for offset, row in zip(arrays["offsets"], arrays["data"], strict=True):
                for j in range(min(len(row), shape[1])):
                    if 0 <= j - int(offset) < shape[0] and row[j] != 0:
                        add(j - int(offset), j, row[j])
        case _:
            pos, crd, values = (arrays[name] for name in (("pos1", "crd1", "values") if layout == "own" else ("indptr", "indices", "data")))
            for line in range(len(pos) - 1):
                for p in range(int(pos[line]), int(pos[line + 1])):
                    _add_entry(add, layout, line, int(crd[p]), values[p])
    return shape, found, arrays["fill"].item() if layout == "own" else 0


def _add_entry(add: Any, layout: str, line: int, coordinate: int, value: Any) -> None:
    if layout == "csc":
        add(coordinate, line, value)
    elif layout == "bsr":
        for (i, j), one in np.ndenumerate(value):
            add(line * value.shape[0] + i, coordinate * value.shape[1] + j, one)
    else:
        add(line, coordinate, value)
