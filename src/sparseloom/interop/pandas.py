"""pandas: frames and series of numbers; sparse columns stay sparse, and keep the value that they leave out. Labels are left behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import is_bfloat16, known_fill, refuse_half, value_dtype
from sparseloom.core.errors import FormatError, StorageError
from sparseloom.formats.named import csc
from sparseloom.interop.entry import Intake, converted
from sparseloom.interop.numpy import from_numpy, to_numpy
from sparseloom.interop.pydata_sparse import listed
from sparseloom.interop.scipy import from_compressed, from_coordinates
from sparseloom.programs.conversion import convert
from sparseloom.programs.cuda.storages import to_host

Column = tuple[NDArray[Any], NDArray[Any]]


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if it is pandas' frame, series or sparse array."""
    names = [parent.__name__ for parent in kind.__mro__ if parent.__module__.partition(".")[0] == "pandas"]
    return next((_READERS[name] for name in names if name in _READERS), None)


def _from_frame(frame: Any) -> Intake:
    columns = [frame.iloc[:, place].array for place in range(frame.shape[1])]
    sparse = [column for column in columns if _is_sparse(column)]
    if not sparse:
        return from_numpy(_numbers(frame))
    dtype = value_dtype(np.result_type(*(getattr(dtype, "subtype", dtype) for dtype in frame.dtypes)))
    fill = _common_fill(sparse)
    entries = [_column(column, fill) for column in columns]
    pos = np.concatenate(([0], np.cumsum([len(places) for places, _ in entries])))
    crd = np.concatenate([places for places, _ in entries]).astype(np.int64)
    values = np.concatenate([values for _, values in entries]).astype(dtype)
    intake = from_compressed(csc, tuple(map(int, frame.shape)), pos, crd, values)
    note = f"copied from pandas, {len(sparse)} of whose {len(columns)} columns are sparse"
    return converted(_with_fill(intake, fill), note)


def _from_series(series: Any) -> Intake:
    return _from_sparse(series.array) if _is_sparse(series.array) else from_numpy(_numbers(series))


def _from_sparse(array: Any) -> Intake:
    places, values = _column(array, array.fill_value)
    intake = from_coordinates((len(array),), (places.astype(np.int64),), values)
    return converted(_with_fill(intake, array.fill_value), "copied from pandas")


def _is_sparse(array: Any) -> bool:
    return hasattr(array, "sp_values")


def _numbers(given: Any) -> NDArray[Any]:
    """A frame or series as an array; one that is not all numbers has no dtype here."""
    array: NDArray[Any] = given.to_numpy()
    value_dtype(array.dtype)
    return array


def _common_fill(columns: Sequence[Any]) -> Any:
    """What all sparse columns leave out."""
    first = columns[0].fill_value
    other = next((column.fill_value for column in columns if not _is_same(column.fill_value, first)), first)
    if not _is_same(other, first):
        raise StorageError(f"the columns leave out different values, {first} and {other}; make them one, as by astype('Sparse[float]')")
    return first


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


def _column(column: Any, fill: Any) -> Column:
    """Where a column has entries, and which; a dense one has them wherever it differs from the fill."""
    if _is_sparse(column):
        return column.sp_index.indices, column.sp_values
    values = np.asarray(column)
    places = np.flatnonzero((values != fill) & ~((values != values) & (fill != fill)))
    return places, values[places]


def _with_fill(intake: Intake, fill: Any) -> Intake:
    storage = intake.storage
    return intake._replace(storage=replace(storage, fill=known_fill(np.asarray(fill)[()], storage.dtype)))


_READERS: dict[str, Callable[[Any], Intake]] = {"DataFrame": _from_frame, "Series": _from_series, "SparseArray": _from_sparse}


def give(tensor: Any, **options: Any) -> Any:
    """A frame of a matrix or a series of a vector, with sparse columns unless the tensor is dense; options name index and columns."""
    import pandas

    storage = tensor.opened("cpu") if tensor.format.is_dense else to_host(tensor.storage)
    order = len(storage.shape)
    if order not in (1, 2):
        raise FormatError(f"pandas has frames and series, and this tensor has {order} modes")
    if storage.format.is_dense:
        made: Any = pandas.DataFrame if order == 2 else pandas.Series
        return made(to_numpy(storage), **options)
    if is_bfloat16(storage.dtype):
        refuse_half(storage.dtype, "pandas' sparse columns")
    fill = storage.dtype.type(storage.fill)
    if order == 1:
        (places,), values = listed(storage)
        return pandas.Series(_sparse(pandas, storage.shape[0], places, values, fill), **options)
    stored = convert(storage, csc)
    pos, crd = stored.levels[1].arrays["pos"], stored.levels[1].arrays["crd"]
    parts = [slice(pos[k], pos[k + 1]) for k in range(storage.shape[1])]
    columns = {k: _sparse(pandas, storage.shape[0], crd[part], stored.values[part], fill) for k, part in enumerate(parts)}
    frame = pandas.DataFrame(columns, index=options.get("index", range(storage.shape[0])))
    return frame if options.get("columns") is None else frame.set_axis(options["columns"], axis=1)


def _sparse(pandas: Any, length: int, places: NDArray[Any], values: NDArray[Any], fill: Any) -> Any:
    """One sparse column."""
    made = pandas.arrays.SparseArray
    if hasattr(made, "from_indices"):
        return made.from_indices(values.copy(), places.copy(), length, fill_value=fill)
    from pandas._libs.sparse import IntIndex  # before pandas 3.1

    return made(values.copy(), sparse_index=IntIndex(length, places.astype(np.int32)), fill_value=fill)
