"""SciPy's sparse arrays and matrices: CSR, CSC, COO, BSR and DIA share their arrays; LIL and DOK are converted.

SciPy's own sort_indices, sum_duplicates and has_sorted_indices change the object they are called on, so they are never called
on the user's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import INDEX_DTYPES, VALUE_DTYPES, refuse_half, value_dtype
from sparseloom.core.errors import FormatError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.offset import FURTHEST
from sparseloom.formats.named import bcsr, coo, csc, csr, dia
from sparseloom.formats.storage import Storage, apart, open_up
from sparseloom.interop.arrays import plain_array
from sparseloom.interop.entry import (
    NO_ARRAYS,
    Intake,
    as_sorted,
    record_of,
    remember,
    seen_before,
    shared_or_sorted,
    sorted_before,
    usable_indices,
    usable_values,
    warn,
)
from sparseloom.plan.statistics import LARGE
from sparseloom.programs.calling import address_of
from sparseloom.programs.conversion import convert
from sparseloom.programs.cuda.storages import to_host
from sparseloom.programs.guard import are_rows
from sparseloom.programs.laying import LAYS, MOST_KINDS, Kind, Laid, kind_of, lay

VECTOR = Format((Compressed(),), (0,))
_coo = lru_cache(maxsize=16)(coo)
_bcsr = lru_cache(maxsize=64)(bcsr)


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if it is one of SciPy's sparse classes (which are recognised by name)."""
    for parent in kind.__mro__:
        if parent.__module__.partition(".")[0] == "scipy" and ".sparse." in f".{parent.__module__}.":
            name = parent.__name__.partition("_")[0]
            if name in _READERS:
                return _READERS[name]
    return None


def from_compressed(format: Format, shape: tuple[int, ...], indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any]) -> Intake:
    """The three arrays of a CSR, CSC or BSR matrix, or of a one-dimensional CSR array."""

    def build(count: int) -> Storage:
        pattern = LevelData({"pos": indptr, "crd": indices if len(indices) == count else indices[:count]})
        return Storage(format, shape, _levels(format, pattern), data if data.shape == (count,) else data[:count].reshape(-1))

    return seen_before((indptr, indices, data), format, shape, build) or _examined(format, shape, indptr, indices, data)


def _examined(format: Format, shape: tuple[int, ...], indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any]) -> Intake:
    """As ``from_compressed``, for arrays that were not seen before."""
    notes: list[str] = []
    indptr, indices, data = map(plain_array, (indptr, indices, data))
    if data.ndim != (3 if format.blocks else 1):
        raise StorageError(f"the data array has {data.ndim} dimensions, which does not fit {format}")
    if indptr.ndim != 1 or indices.ndim != 1:
        raise StorageError(f"indptr and indices have {indptr.ndim} and {indices.ndim} dimensions; they must have one")
    pos, crd = usable_indices((indptr, indices), notes)
    # SciPy lets the arrays be longer than what is used.
    count = max(0, min(int(pos[-1]) if len(pos) else 0, len(crd)))
    values = usable_values(data if len(data) == count else data[:count], notes)
    pattern = LevelData({"pos": pos, "crd": crd if len(crd) == count else crd[:count]})
    return _entered(Storage(format, shape, _levels(format, pattern), values), notes, (indptr, indices, data), count)


def _entered(storage: Storage, notes: list[str], given: tuple[NDArray[Any], ...], count: int) -> Intake:
    """Check a storage. If it shares all of the arrays that were given, they are known when they come again."""
    known = None if notes else sorted_before(given, storage.format, storage.shape)
    if known is not None:
        return as_sorted(known)
    intake = shared_or_sorted(storage, notes, given)
    if intake.guard is not None and not notes:
        remember(given, storage, count, intake.guard)
    return intake


def _levels(format: Format, pattern: LevelData) -> tuple[LevelData, ...]:
    return tuple(pattern if level.coordinate_array else NO_ARRAYS for level in format.levels)


def from_coordinates(shape: tuple[int, ...], coordinates: tuple[NDArray[Any], ...], data: NDArray[Any]) -> Intake:
    """One coordinate array per mode, and the values."""
    if len(coordinates) != len(shape):
        raise StorageError(f"{len(coordinates)} coordinate arrays do not fit the shape {shape}")
    format = _coo(len(shape))

    def build(count: int) -> Storage:
        return Storage(format, shape, _coo_levels(coordinates, count), data)

    known = seen_before((*coordinates, data), format, shape, build)
    if known is not None:
        return known
    notes: list[str] = []
    coordinates, data = tuple(map(plain_array, coordinates)), plain_array(data)
    if any(array.shape != data.shape or array.ndim != 1 for array in coordinates):
        lengths = ", ".join(str(array.size) for array in coordinates)
        raise StorageError(f"the coordinate arrays have {lengths} elements beside {data.size} values; they must be as long as each other")
    arrays = usable_indices(coordinates, notes)
    storage = Storage(format, shape, _coo_levels(arrays, len(data)), usable_values(data, notes))
    intake = _entered(storage, notes, (*coordinates, data), len(data))
    if intake.guard is not None:
        intake.guard.keep(storage.levels[0].arrays["pos"])  # the one array that is not the caller's
    return intake


def _coo_levels(coordinates: tuple[NDArray[Any], ...], count: int) -> tuple[LevelData, ...]:
    first, *rest = coordinates
    pos = np.array((0, count), first.dtype)
    return (LevelData({"pos": pos, "crd": first}), *(LevelData({"crd": crd}) for crd in rest))


def from_diagonals(shape: tuple[int, ...], offsets: NDArray[Any], data: NDArray[Any]) -> Intake:
    """The two arrays of a DIA matrix: ``data[k, j]`` stands in column j, ``offsets[k]`` to the right of the main diagonal."""

    def build(count: int) -> Storage:
        return Storage(dia, shape, (NO_ARRAYS, _diagonals(offsets, data.shape)), data.reshape(-1))

    return seen_before((offsets, data), dia, shape, build) or _examined_diagonals(shape, plain_array(offsets), plain_array(data))


def _examined_diagonals(shape: tuple[int, ...], offsets: NDArray[Any], data: NDArray[Any]) -> Intake:
    """As ``from_diagonals``, for arrays that were not seen before."""
    notes: list[str] = []
    if data.ndim != 2 or offsets.shape != data.shape[:1] or len(shape) != 2:
        raise StorageError(f"{offsets.size} diagonals need a data array with as many rows, not one of shape {data.shape}")
    if offsets.dtype.kind not in "iu" or offsets.dtype == np.uint64:
        raise StorageError(f"the offsets of diagonals must be integers, not {offsets.dtype}")
    value_dtype(data.dtype)
    if len(np.unique(offsets)) != len(offsets):
        raise StorageError("the offsets of diagonals must differ from each other")
    if (offsets[1:] < offsets[:-1]).any() or (len(offsets) and max(-int(offsets.min()), int(offsets.max())) > FURTHEST):
        notes.append("the tensor was copied: its diagonals are not sorted, or too far away")
        order = np.argsort(offsets)
        order = order[(offsets[order] > -shape[0]) & (offsets[order] < shape[1])]
        offsets, data = offsets[order], data[order]
    (near,) = usable_indices((offsets,), notes)
    storage = Storage(dia, shape, (NO_ARRAYS, _diagonals(near, data.shape)), usable_values(data, notes))
    return _entered(storage, notes, (offsets, data), len(offsets))


def _diagonals(offsets: NDArray[Any], shape: tuple[int, ...]) -> LevelData:
    return LevelData({"offsets": offsets}, {"diagonals": int(shape[0]), "width": int(shape[1])})


def _from_dia(matrix: Any) -> Intake:
    return from_diagonals(matrix.shape, matrix.offsets, matrix.data)


def _from_csr(matrix: Any) -> Intake:
    MATRICES[type(matrix)], LAYS[type(matrix)] = csr, lay_matrix
    shape = matrix.shape
    return from_compressed(csr if len(shape) == 2 else VECTOR, shape, matrix.indptr, matrix.indices, matrix.data)


def _from_csc(matrix: Any) -> Intake:
    MATRICES[type(matrix)], LAYS[type(matrix)] = csc, lay_matrix
    return from_compressed(csc, matrix.shape, matrix.indptr, matrix.indices, matrix.data)


def _from_bsr(matrix: Any) -> Intake:
    return from_compressed(_bcsr(matrix.data.shape[1:]), matrix.shape, matrix.indptr, matrix.indices, matrix.data)


def _from_coo(matrix: Any) -> Intake:
    coordinates = matrix.coords if hasattr(matrix, "coords") else (matrix.row, matrix.col)
    return from_coordinates(matrix.shape, tuple(coordinates), matrix.data)


def _converted(matrix: Any) -> Intake:
    """Classes without a counterpart here go through a COO copy, which is sorted and stored by rows."""
    storage = _from_coo(matrix.tocoo(copy=True)).storage
    rows = csr if len(storage.shape) == 2 else _coo(len(storage.shape))
    return Intake(convert(storage, rows), (f"converted from SciPy's {matrix.format} layout, which has no counterpart here",))


def arrays_of_scipy(matrix: Any) -> tuple[NDArray[Any], ...] | None:
    """The three arrays of a CSR or CSC matrix, and nothing for whatever else it may be."""
    return (matrix.indptr, matrix.indices, matrix.data) if reader_for(type(matrix)) in (_from_csr, _from_csc) else None


MATRICES: dict[type, Format] = {}
"""SciPy's classes with three arrays, of which objects were seen, and their formats."""

_KINDS: dict[tuple[Any, ...], Kind] = {}
_USABLE = 0x1 | 0x100  # NumPy's flags: in C order, and aligned


def lay_matrix(matrix: Any) -> Laid | None:
    """How a CSR or CSC matrix is laid before a kernel, if its arrays can be used as they are. Nothing is kept of it.

    All of it is looked at each time. A larger one is known by its arrays once it was seen: it has a guard, and how its entries are spread
    was found out.
    """
    format, shape, pos, crd, values = MATRICES[type(matrix)], matrix.shape, matrix.indptr, matrix.indices, matrix.data
    if not (type(pos) is type(crd) is type(values) is np.ndarray) or len(shape) != 2:
        return None
    (rows, size), count = shape if format is csr else (shape[1], shape[0]), values.size
    if pos.flags.num & crd.flags.num & values.flags.num & _USABLE != _USABLE:
        return None
    if pos.shape != (rows + 1,) or not crd.shape == values.shape == (count,):
        return None
    key = (format is csr, shape, pos.dtype, crd.dtype, values.dtype, count.bit_length())
    words = (address_of(pos), address_of(crd), address_of(values))
    if count >= LARGE:
        seen = record_of((pos, crd, values))
        known = seen is not None and seen.format is format and seen.shape == shape and seen.still_holds((pos, crd, values))
        if seen is None or not known:
            return _laid_in_order((pos, crd, values), format, shape)
        if seen.kind is None or seen.kind[0] != key:
            seen.kind = key, kind_of(_as_stored(format, shape, pos, crd, values))
        return seen.kind[1], count, count, words, None
    kind = _KINDS.get(key) or _matrix_kind(key, _as_stored(format, shape, pos, crd, values))
    if kind is not None and are_rows(pos.itemsize, rows, words[0], words[1], count, size):
        return kind, count, count, words, None
    return _laid_in_order((pos, crd, values), format, shape)


def _laid_in_order(arrays: tuple[NDArray[Any], ...], format: Format, shape: tuple[int, ...]) -> Laid | None:
    """How a matrix is laid whose entries come in no order, if it was put in order before."""
    known = sorted_before(arrays, format, shape)
    if known is not None:
        warn(as_sorted(known))
    laid = None if known is None else lay(known)
    return None if laid is None else (*laid[:4], known)


def _as_stored(format: Format, shape: tuple[int, ...], pos: NDArray[Any], crd: NDArray[Any], values: NDArray[Any]) -> Storage:
    return Storage(format, shape, _levels(format, LevelData({"pos": pos, "crd": crd})), values)


def _matrix_kind(key: tuple[Any, ...], stored: Storage) -> Kind | None:
    """The kind of a matrix that was not seen before; None if its arrays must be converted first."""
    pos, crd = stored.indices
    if pos.dtype != crd.dtype or pos.dtype not in INDEX_DTYPES or stored.dtype not in VALUE_DTYPES:
        return None
    if len(_KINDS) >= MOST_KINDS:
        _KINDS.clear()
    kind = _KINDS[key] = kind_of(stored)
    return kind


_READERS: dict[str, Callable[[Any], Intake]] = {
    "csr": _from_csr, "csc": _from_csc, "coo": _from_coo, "bsr": _from_bsr,
    "dia": _from_dia, "lil": _converted, "dok": _converted,
}  # fmt: skip


def is_bsr(storage: Storage) -> bool:
    """Whether SciPy's BSR stores the same: its blocks must not reach over the edge."""
    match storage.format.blocks:
        case (rows, columns) if storage.format == _bcsr((rows, columns)):
            return storage.shape[0] % rows == 0 and storage.shape[1] % columns == 0
    return False


def as_scipy(storage: Storage) -> tuple[str, dict[str, Any]] | None:
    """The class of SciPy that stores the same, and its arrays by their names there; None if there is no such class."""
    format, order, values = storage.format, len(storage.shape), storage.values
    if format in (csr, csc, VECTOR):
        return ("csc" if format == csc else "csr"), _compressed(storage.levels[-1], values)
    if is_bsr(storage):
        return "bsr", _compressed(storage.levels[1], values.reshape(-1, *format.blocks))
    if format == dia:
        diagonals, width = storage.levels[1].scalars["diagonals"], storage.levels[1].scalars["width"]
        data = values[: diagonals * width].reshape(diagonals, width)
        return "dia", {"offsets": storage.levels[1].arrays["offsets"], "data": data}
    if order and format == _coo(order):
        count = int(storage.levels[0].arrays["pos"][-1])
        return "coo", {"coords": tuple(level.arrays["crd"][:count] for level in storage.levels), "data": values[:count]}
    return None


def _compressed(level: LevelData, values: NDArray[Any]) -> dict[str, Any]:
    return {"indptr": level.arrays["pos"], "indices": level.arrays["crd"], "data": values}


def give(tensor: Any) -> Any:
    """A SciPy sparse array over the memory of a tensor, which is copied to main memory if it is on a device."""
    return to_scipy(tensor.opened("cpu") if as_scipy(tensor.storage) is not None else to_host(tensor.storage))


def to_scipy(storage: Storage) -> Any:
    """A SciPy sparse array over the same memory for CSR, CSC, COO, BCSR and DIA; other formats are converted to CSR or COO first."""
    import scipy.sparse

    refuse_half(storage.dtype, "SciPy's sparse arrays")
    if storage.fill != 0:
        raise StorageError(f"SciPy's sparse arrays can only leave out zeros, and absent entries are {storage.fill}; use to_numpy()")
    if not storage.shape:
        raise FormatError("SciPy has no sparse array of order 0; use item() or to_numpy()")
    found = as_scipy(storage)
    if found is None:
        order = len(storage.shape)
        # What both have in common is copied: SciPy moves entries in place, and the tensor has other index arrays for them.
        return to_scipy(open_up(apart(convert(storage, csr if order == 2 else _coo(order)), storage)))
    kind, arrays = found
    blocks = {"blocksize": storage.format.blocks} if kind == "bsr" else {}
    result = getattr(scipy.sparse, f"{kind}_array")(storage.shape, dtype=storage.dtype, **blocks)
    for name, array in arrays.items():
        setattr(result, name, array)  # one by one: SciPy's constructor would copy index arrays that could be narrower
    return result
