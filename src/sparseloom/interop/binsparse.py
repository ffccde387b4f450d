"""Binsparse in memory: a description, and plain arrays beside it, as ``__binsparse_descriptor__`` and ``__binsparse__`` give them.

    {"binsparse": {"version": "0.1", "format": "CSR", "shape": [2, 3], "number_of_stored_values": 3,
                   "data_types": {"pointers_to_1": "int64", "indices_1": "int64", "values": "float64"}}}

Truths are stored as ``bint8``, complex numbers as pairs of floats. Level k of a format here is dimension k of its description there.
The two methods are those of the proposal to the array API (data-apis/array-api, issue 840).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import is_bfloat16, known_fill, value_dtype
from sparseloom.core.errors import DTypeError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.named import coo, csc, csf, csr, dcsc, dcsr, dense
from sparseloom.formats.storage import Storage
from sparseloom.interop.arrays import storage_of
from sparseloom.interop.entry import Intake
from sparseloom.programs.guard import Guard

Arrays = Mapping[str, Any]
KEY = "binsparse"
_FORMATS = {
    "CSR": csr, "CSC": csc, "DCSR": dcsr, "DCSC": dcsc, "COO": coo(2), "COOR": coo(2), "DMAT": dense(2), "DMATR": dense(2),
    "DMATC": Format((Dense(), Dense()), (1, 0)), "DVEC": dense(1), "CVEC": csf(1),
}  # fmt: skip
_NAMES = {format: name for name, format in reversed(_FORMATS.items())} | {coo(2): "COOR", dense(2): "DMATR"}


def described(storage: Storage) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description of a storage, and its arrays by their names there."""
    name = _NAMES.get(storage.format)
    if name is None:
        known = ", ".join(dict.fromkeys(str(format) for format in _NAMES))
        raise StorageError(f"binsparse has no word for {storage.format}; convert it to one of {known}, or write .npz")
    arrays: dict[str, NDArray[Any]] = {}
    for k, data in enumerate(storage.levels):
        if "pos" in data.arrays and k:  # the first level has all of its positions
            arrays[f"pointers_to_{k}"] = data.arrays["pos"]
        if "crd" in data.arrays:
            arrays[f"indices_{k}"] = data.arrays["crd"]
    values, kind = _encoded(storage.values)
    types = {key: array.dtype.name for key, array in arrays.items()} | {"values": kind}
    about = {"version": "0.1", "format": name, "shape": list(storage.shape), "number_of_stored_values": len(storage.values)}
    arrays["values"] = values
    if storage.fill != 0 and not storage.format.is_dense:
        about["fill"] = True
        arrays["fill_value"], types["fill_value"] = _encoded(np.array([storage.fill], storage.dtype))
    return {KEY: {**about, "data_types": types}}, arrays


def _encoded(values: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """Values as they are stored, and the name of their type."""
    if is_bfloat16(values.dtype):
        raise DTypeError("binsparse has no bfloat16\n  help: convert with astype('float32'), which loses nothing, or write .npz")
    match values.dtype.kind:
        case "b":
            return values.view(np.int8), "bint8"
        case "c":
            part = np.dtype(f"f{values.dtype.itemsize // 2}")
            return values.view(part), f"complex[{part.name}]"
    return values, values.dtype.name


def from_described(description: Any, arrays: Arrays) -> Storage:
    """The storage that a description, as it is or in JSON, and its arrays stand for."""
    about = _about(description)
    format = _FORMATS.get(str(about.get("format")).upper())
    shape = tuple(int(size) for size in about["shape"])
    if format is None or format.order != len(shape):
        raise StorageError(f"the format {about.get('format')} of shape {shape} is not known; there are {', '.join(_FORMATS)}")
    types, count = about.get("data_types", {}), int(about["number_of_stored_values"])
    values = _decoded(np.asarray(arrays["values"]), str(types.get("values", "")), count)
    named: dict[str, Any] = {"values": values}
    for k, level in enumerate(format.levels):
        for name in level.array_names:
            if name == "pos" and k == 0:
                named["pos0"] = np.array([0, len(arrays["indices_0"])], np.int32)
            else:
                named[f"{name}{k}"] = _index(arrays[f"pointers_to_{k}" if name == "pos" else f"indices_{k}"])
    widest = np.result_type(*(array.dtype for key, array in named.items() if key != "values")) if len(named) > 1 else None
    named = {key: array if key == "values" else array.astype(widest, copy=False) for key, array in named.items()}
    fill = _decoded(np.asarray(arrays["fill_value"]), str(types.get("fill_value", "")), 1)[0] if about.get("fill") else 0
    return storage_of(format, shape, named, known_fill(fill, values.dtype))


def _about(description: Any) -> dict[str, Any]:
    """The description, which must be one that we read."""
    try:
        about: dict[str, Any] = (description if isinstance(description, dict) else json.loads(description))[KEY]
        about["shape"], about["number_of_stored_values"], about["format"]
    except (ValueError, KeyError, TypeError) as problem:
        raise StorageError(f"its description in JSON is malformed: {problem}") from None
    if not str(about.get("version", "")).startswith(("0.", "1.")):
        raise StorageError(f"it is of version {about.get('version')} of binsparse; 0.1 is read")
    return about


def _decoded(stored: NDArray[Any], kind: str, count: int) -> NDArray[Any]:
    """Values of the type that the description names."""
    if kind.startswith("iso[") and kind.endswith("]"):
        return np.repeat(_decoded(stored, kind[4:-1], 1)[:1], count)
    if kind == "bint8":
        return stored.astype(np.bool_)
    if kind.startswith("complex["):
        part = value_dtype(kind[8:-1])
        return np.ascontiguousarray(stored, part).view(np.result_type(part, np.complex64))
    return stored.astype(value_dtype(stored.dtype), copy=False)


def _index(given: Any) -> NDArray[Any]:
    """Indices as int32 or int64."""
    array = np.asarray(given)
    if array.dtype.kind not in "iu":
        raise DTypeError(f"indices are integers, not {array.dtype}")
    return array.astype(np.int32 if array.dtype == np.int32 else np.int64, copy=False)


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if they describe themselves."""
    return _from_object if hasattr(kind, "__binsparse__") and hasattr(kind, "__binsparse_descriptor__") else None


def _from_object(given: Any) -> Intake:
    """What an object describes, over the same memory where its arrays allow."""
    held = given.__binsparse__().items()
    arrays = {name: array if isinstance(array, np.ndarray) else np.from_dlpack(array) for name, array in held}
    try:
        storage = from_described(given.__binsparse_descriptor__(), arrays)
    except KeyError as problem:
        raise StorageError(f"the {type(given).__name__} describes an array {problem} and does not give it") from None
    return Intake(storage, guard=Guard(storage))


def give(tensor: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The description of a tensor and its arrays, over the same memory; a format that has no word there is refused."""
    return described(tensor.opened("cpu"))
