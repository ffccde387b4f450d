"""Making tensors: from other arrays, from coordinates, from the arrays of a format, or filled with one value."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import known_fill, value_dtype
from sparseloom.core.errors import ShapeError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.named import entries
from sparseloom.formats.pack import from_dense, pack
from sparseloom.formats.room import require_array
from sparseloom.formats.storage import Storage, apart, copied, derived, sealed
from sparseloom.formats.text import as_format
from sparseloom.interop.arrays import plain_array, storage_of
from sparseloom.interop.entry import Intake, warn
from sparseloom.interop.intake import enter
from sparseloom.interop.numpy import dense_storage
from sparseloom.programs.conversion import convert, store
from sparseloom.programs.large import duplicate
from sparseloom.tensor.operators import cast
from sparseloom.tensor.tensor import Tensor

Shape = int | tuple[int, ...] | list[int]


def asarray(
    x: Any,
    format: Format | str | None = None,
    dtype: Any = None,
    name: str | None = None,
    copy: bool | None = None,
    fill: Scalar | None = None,
) -> Tensor:
    """A tensor of anything array-like, over its own memory where the layout can be used.

    NumPy arrays become dense, SciPy's CSR, CSC, COO and BSR keep their format. A copy that the user may not expect
    (unsorted or repeated coordinates, foreign byte order, gaps in memory) is a ``ConversionWarning`` and stands in ``notes``.
    ``copy=True`` always copies and ``copy=False`` refuses to. ``fill`` is what absent entries are worth.

    >>> sl.asarray([[1.0, 0.0], [0.0, 2.0]], format="csr").nnz
    2
    """
    if isinstance(x, Tensor):
        if format is None and dtype is None and fill is None and not copy and name in (None, x.name):
            return x
        entry = Intake(x.storage, x.notes)
    else:
        entry = enter(x)
        if entry.storage.owner is not None:  # what was made just now, or a tensor that a wrapper such as xarray's holds
            entry = entry._replace(storage=apart(entry.storage, entry.storage, duplicate))
        if entry.unexpected and copy is None:
            warn(entry)
    if format is None and dtype is None and fill is None and copy is None and not isinstance(x, Tensor):
        return Tensor(entry.storage, name, entry.notes, entry.guard)
    return _adapted(x, entry, format, dtype, name, copy, fill)


def _adapted(
    x: Any, entry: Intake, format: Format | str | None, dtype: Any, name: str | None, copy: bool | None, fill: Scalar | None
) -> Tensor:
    """The rest of ``asarray``: another format, dtype or fill, and what the user said about copies."""
    storage = entry.storage
    wanted = None if format is None else as_format(format, len(storage.shape))
    if dtype is not None:
        storage = cast(storage, value_dtype(dtype))
    if fill is not None:
        storage = _refilled(storage, fill)
    if wanted is not None:
        storage = convert(storage, wanted)
    shares = storage.values is entry.storage.values or np.may_share_memory(storage.values, entry.storage.values)
    if copy is False and (entry.notes or not shares):
        raise StorageError(
            f"copy=False, but this needs a copy: {'; '.join(entry.notes) or 'another format or dtype was asked for'}"
        )
    if copy and shares:
        storage = copied(storage, duplicate)
    elif copy or (copy is None and isinstance(x, Tensor)):
        storage = apart(storage, entry.storage, duplicate)
    else:
        storage = derived(replace(storage) if isinstance(x, Tensor) else storage, entry.storage)
    return Tensor(storage, name or (x.name if isinstance(x, Tensor) else None), entry.notes)


def _refilled(storage: Storage, fill: Scalar) -> Storage:
    """Say what absent entries are worth; the stored ones stay."""
    return replace(storage, fill=known_fill(fill, storage.dtype))


def zeros(shape: Shape, format: Format | str | None = None, dtype: Any = float, name: str | None = None) -> Tensor:
    """A tensor of zeros: dense, unless a format is given; a sparse one stores nothing.

    >>> sl.zeros((1000, 1000), format="csr").nnz
    0
    """
    sizes = _sizes(shape)
    kind = value_dtype(dtype)
    wanted = None if format is None else as_format(format, len(sizes))
    if wanted is None or wanted.is_dense:
        require_array(sizes, kind.itemsize)
        array = np.zeros(sizes, kind)
        return Tensor(sealed(dense_storage(array) if wanted is None else from_dense(array, wanted, 0)), name)
    return Tensor(sealed(pack(wanted, sizes, np.empty((len(sizes), 0), np.int64), np.empty(0, kind))), name)


def full(shape: Shape, fill_value: Scalar, format: Format | str | None = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor of one value: a dense one stores it everywhere, a sparse one stores nothing and has it as its fill.

    As in NumPy, 9.5 is 9 if integers are asked for, and true as a truth value. What no integer is near to, such as infinity, is refused.

    >>> sl.full(3, 7.0).to_numpy()
    array([7., 7., 7.])
    """
    given = np.asarray(fill_value)
    kind = value_dtype(given.dtype if dtype is None else dtype)
    empty = zeros(shape, format, kind)
    cuts = {"i": int, "u": int, "b": bool}.get(kind.kind) if not given.ndim and given.dtype.kind in "iuf" and np.isfinite(given) else None
    value: Scalar = fill_value if cuts is None else cuts(given)
    filled = _refilled(empty.storage, value)
    if filled.format.is_dense:
        filled = replace(filled, values=np.full(filled.values.shape, value, kind), fill=0)
    return Tensor(filled, name)


def from_coo(
    coordinates: ArrayLike,
    values: ArrayLike,
    shape: Shape | None = None,
    format: Format | str | None = None,
    fill: Scalar = 0,
    name: str | None = None,
) -> Tensor:
    """A tensor from entries in any order: one row of coordinates per mode. Repeated coordinates are summed.

    Without ``shape``, each size is the largest coordinate plus one. Without ``format``, a matrix is csr, other orders are csf.

    >>> sl.from_coo([[0, 1], [1, 0]], [2.0, 5.0], shape=(2, 2)).to_numpy()
    array([[0., 2.],
           [5., 0.]])
    """
    columns = np.atleast_2d(plain_array(coordinates))
    if shape is None and columns.size == 0:
        raise ShapeError("without entries the sizes are unknown; give shape=")
    if columns.size and columns.dtype.kind not in "iu":
        raise StorageError(f"coordinates must be integers, not {columns.dtype}")
    sizes = _sizes(tuple(int(row.max()) + 1 for row in columns) if shape is None else shape)
    wanted = entries(len(sizes)) if format is None else as_format(format, len(sizes))
    values = plain_array(values)
    if values.ndim == 0:
        values = np.full(columns.shape[1], values)
    return Tensor(store(wanted, sizes, columns, values, known_fill(fill, value_dtype(values.dtype))), name)


def from_arrays(format: Format | str, shape: Shape, arrays: Mapping[str, Any], fill: Scalar = 0, name: str | None = None) -> Tensor:
    """A tensor over the arrays of its format, which are checked: ``{"pos1": ..., "crd1": ..., "values": ...}`` for csr.

    >>> sl.from_arrays("csr", (2, 3), {"pos1": [0, 1, 2], "crd1": [2, 0], "values": [1.0, 5.0]}).to_numpy()
    array([[0., 0., 1.],
           [5., 0., 0.]])
    """
    sizes = _sizes(shape)
    return Tensor(storage_of(as_format(format, len(sizes)), sizes, arrays, fill), name)


def random(
    shape: Shape,
    density: float = 0.01,
    format: Format | str | None = None,
    seed: int | None = None,
    dtype: Any = float,
    name: str | None = None,
) -> Tensor:
    """A tensor with ``density * size`` entries at random places: floats in [0, 1), integers in [1, 100), truths.

    The same seed gives the same tensor.

    >>> sl.random((1000, 1000), density=0.01, format="csr", seed=1).nnz
    10000
    """
    sizes = _sizes(shape)
    if not 0 <= density <= 1:
        raise ShapeError(f"the density is a fraction from 0 to 1, not {density}")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
        raise ShapeError(f"the seed is an integer of at least 0, or None for a new one each time, not {seed!r}")
    generator = np.random.default_rng(seed)
    size = int(np.prod(sizes, dtype=object)) if sizes else 1
    if size >= 2**63:
        raise ShapeError(f"a random tensor needs fewer than 2**63 coordinates, not {size}")
    kind = value_dtype(dtype)
    wanted = entries(len(sizes)) if format is None else as_format(format, len(sizes))
    if wanted.is_dense and density == 1:
        return Tensor(sealed(from_dense(_random_values(generator, size, kind).reshape(sizes), wanted, 0)), name)
    places = _distinct(generator, size, round(density * size))
    coordinates = np.stack(np.unravel_index(places, sizes)) if sizes and size else np.empty((len(sizes), len(places)), np.int64)
    return Tensor(sealed(pack(wanted, sizes, coordinates, _random_values(generator, len(places), kind))), name)


def _distinct(generator: np.random.Generator, size: int, count: int) -> np.ndarray[Any, Any]:
    """``count`` different numbers below ``size``, ascending."""
    if 3 * count > size:
        return np.sort(generator.permutation(size)[:count])
    places = np.empty(0, np.int64)
    while len(places) < count:
        places = np.unique(np.concatenate((places, generator.integers(0, size, 2 * (count - len(places)) + 8))))
    return np.sort(generator.choice(places, count, replace=False))


def _random_values(generator: np.random.Generator, count: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    match dtype.kind:
        case "b":
            return np.ones(count, dtype)
        case "i" | "u":
            return generator.integers(1, 100, count).astype(dtype)
        case "c":
            return (generator.random(count) + 1j * generator.random(count)).astype(dtype)
    return generator.random(count).astype(dtype)


def _sizes(shape: Shape) -> tuple[int, ...]:
    """A shape as a tuple of sizes."""
    try:
        sizes = tuple(operator.index(size) for size in shape) if isinstance(shape, (tuple, list)) else (operator.index(shape),)
    except TypeError:
        raise ShapeError(f"a shape is an integer or a tuple of integers, not {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise ShapeError(f"the shape {sizes} has a negative size")
    if any(size >= 2**63 for size in sizes):
        raise ShapeError(f"the shape {sizes} has a size that does not fit in 64 bits")
    return sizes
