"""DLPack by ctypes: capsules over memory of a device, and the memory of other libraries' capsules.

    DLManagedTensor   data, device, dtype, shape, strides, offset | context | deleter

A capsule called ``dltensor`` owns what it points at, until a consumer takes it over and renames it ``used_dltensor``; the consumer then
calls the deleter.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparseloom.core.dtypes import DType, bfloat16, is_bfloat16
from sparseloom.core.errors import DTypeError

CUDA_KINDS = (2, 13)  # memory of a device, and managed memory
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_KINDS = {code: kind for kind, code in _CODES.items()}
_BFLOAT = 4
_NAME, _USED = b"dltensor", b"used_dltensor"


class _Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


_Deleter = CFUNCTYPE(None, c_void_p)


class _Managed(Structure):
    _fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p))


_Destructor = PYFUNCTYPE(None, c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes, _new.restype = (c_void_p, c_char_p, c_void_p), py_object
_is_valid = PYFUNCTYPE(ctypes.c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.argtypes, _set_name.restype = (py_object, c_char_p), ctypes.c_int

_alive: dict[int, tuple[Any, ...]] = {}  # what capsules point at, by its address


def _delete(address: int) -> None:
    """Let go of what a capsule pointed at."""
    _alive.pop(address, None)


def _destroy(capsule: int) -> None:
    """A capsule goes; if nobody took its memory over, that goes with it."""
    if _is_valid(capsule, _NAME):
        _alive.pop(_pointer(capsule, _NAME), None)


_deleter, _destructor = _Deleter(_delete), _Destructor(_destroy)


def capsule_of(
    address: int, dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], ordinal: int, owner: object, kind: int = CUDA_KINDS[0]
) -> Any:
    """A capsule over memory of a CUDA device, or of another kind. ``strides`` count elements; the owner is kept alive by it."""
    order = len(shape)
    extents = (c_int64 * (2 * order))(*shape, *strides)
    at = ctypes.cast(extents, POINTER(c_int64))
    after = ctypes.cast(ctypes.addressof(extents) + 8 * order, POINTER(c_int64))
    code = _BFLOAT if is_bfloat16(dtype) else _CODES[dtype.kind]
    tensor = _Tensor(address or None, kind, ordinal, order, code, 8 * dtype.itemsize, 1, at, after, 0)
    managed = _Managed(tensor, None, ctypes.cast(_deleter, c_void_p).value)
    place = ctypes.addressof(managed)
    _alive[place] = managed, extents, owner
    return _new(place, _NAME, ctypes.cast(_destructor, c_void_p).value)


@dataclass(frozen=True)
class Read:
    """Memory that a capsule pointed at; ``strides`` count elements. The owner keeps it alive."""

    address: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    kind: int
    ordinal: int
    owner: object


class _Taken:
    """What was taken over from a capsule; its deleter is called at the end."""

    __slots__ = ("_delete", "_place")

    def __init__(self, place: int, deleter: int | None) -> None:
        self._place = place
        self._delete = _Deleter(deleter) if deleter else None

    def __del__(self) -> None:
        if self._delete is not None:
            self._delete(self._place)


def _dtype_of(code: int, bits: int) -> DType:
    """The dtype that DLPack names by its kind and its bits."""
    if code == _BFLOAT:
        return bfloat16()
    return np.dtype(np.bool_) if _KINDS[code] == "b" else np.dtype(f"{_KINDS[code]}{bits // 8}")


def read_capsule(capsule: Any) -> Read:
    """Take over what a capsule points at."""
    if not _is_valid(id(capsule), _NAME):
        raise DTypeError("the object gave no DLPack capsule that can be used, or one that was used before")
    place = _pointer(id(capsule), _NAME)
    managed = _Managed.from_address(place)
    _set_name(capsule, _USED)
    owner, tensor = _Taken(place, managed.deleter), managed.tensor
    if (tensor.code not in _KINDS and (tensor.code, tensor.bits) != (_BFLOAT, 16)) or tensor.lanes != 1:
        raise DTypeError(f"DLPack values of kind {tensor.code} with {tensor.bits} bits are not supported")
    dtype = _dtype_of(tensor.code, tensor.bits)
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    strides = tuple(tensor.strides[k] for k in range(tensor.ndim)) if tensor.strides else None
    return Read((tensor.data or 0) + tensor.byte_offset, dtype, shape, strides, tensor.device_type, tensor.device_id, owner)
