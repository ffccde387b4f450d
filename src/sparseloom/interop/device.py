"""Arrays on a CUDA device, whoever made them: dense ones are shared in any order of modes, sparse ones are validated there once.

What was found valid is known by the object it belongs to, as long as that lives and has the same arrays.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparseloom.core.dtypes import INDEX_DTYPES, KNOWN_DTYPES, DType, is_value_dtype
from sparseloom.core.errors import DeviceError, DTypeError, StorageError
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.named import coo
from sparseloom.formats.storage import NO_INDICES, Seal, Storage
from sparseloom.interop.entry import NO_ARRAYS, Intake
from sparseloom.interop.numpy import dense_format
from sparseloom.programs.cuda.arrays import DeviceArray, copied_in, foreign
from sparseloom.programs.cuda.checks import check_on_device
from sparseloom.programs.cuda.device import device, ordinal_of
from sparseloom.programs.cuda.dlpack import CUDA_KINDS, Read, read_capsule
from sparseloom.programs.cuda.streams import DEFAULT_STREAM, LEGACY_STREAM, OWN

_CONTIGUOUS = "make it contiguous first, as by x.contiguous() in PyTorch or cupy.ascontiguousarray(x)"


def is_on_device(value: Any) -> bool:
    """Whether an array-like is on a CUDA device; asked before every call, so that most answers are known from its type."""
    kind = type(value)
    asks = _ASKS.get(kind)
    if asks is None:
        asks = _ASKS[kind] = _asked(kind)
    return bool(asks(value))


def _asked(kind: type) -> Callable[[Any], bool]:
    """How objects of a class are asked whether they are on a device."""
    if kind.__module__.partition(".")[0] == "cupyx":
        return lambda value: True
    if issubclass(kind, np.ndarray | np.generic | int | float | complex | list | tuple):
        return lambda value: False
    if hasattr(kind, "__dlpack_device__"):
        return lambda value: int(value.__dlpack_device__()[0]) in CUDA_KINDS
    return (lambda value: hasattr(value, "__cuda_array_interface__")) if hasattr(kind, "__cuda_array_interface__") else lambda value: False


_ASKS: dict[type, Callable[[Any], bool]] = {}


def from_device(value: Any, source: str = OWN) -> Intake:
    """A dense tensor over the memory of anything that is on a device."""
    found = read(value)
    told = getattr(value, "__cuda_array_interface__", None) if source == OWN else None
    if told is not None and told.get("stream"):
        device(found.ordinal).follow(DEFAULT_STREAM, told["stream"] if told["stream"] != LEGACY_STREAM else DEFAULT_STREAM)
    return Intake(dense_on_device(found, source))


def read(value: Any) -> Read:
    """Where the values of an object are, and in which shape. Work on them may be under way on the current stream of its library."""
    # The interface has no word for bfloat16, which DLPack has.
    found = None if str(getattr(value, "dtype", "")).endswith("bfloat16") else getattr(value, "__cuda_array_interface__", None)
    if found is None:
        return _taken_over(value)
    address, shape, dtype = int(found["data"][0]), tuple(found["shape"]), np.dtype(found["typestr"])
    strides = found.get("strides")
    counted = None if strides is None else tuple(int(step) // max(dtype.itemsize, 1) for step in strides)
    where = getattr(value, "device", None)
    number = getattr(where, "id", getattr(where, "index", None))
    return Read(address, dtype, shape, counted, CUDA_KINDS[0], ordinal_of(address) if number is None else int(number), value)


def _taken_over(value: Any) -> Read:
    try:
        return read_capsule(value.__dlpack__(stream=1))
    except (AttributeError, BufferError, RuntimeError) as problem:
        raise DTypeError(f"cannot share the memory of this {type(value).__name__}: {problem}") from problem


def dense_on_device(found: Read, source: str) -> Storage:
    """A dense storage over memory that is contiguous in some order of modes."""
    order = len(found.shape)
    if not is_value_dtype(found.dtype):
        raise StorageError(f"values of type {found.dtype} are not supported; there are {KNOWN_DTYPES}")
    modes = tuple(range(order))
    if found.strides is not None and not _is_packed(found, modes):
        steps = found.strides
        modes = tuple(sorted(modes, key=lambda mode: -abs(steps[mode])))
        if not _is_packed(found, modes):
            raise DeviceError(f"the array on the device has gaps in memory, and is not copied there\n  help: {_CONTIGUOUS}")
    values = foreign(found.address, found.shape, found.dtype, found.owner, found.ordinal, source)
    return Storage(dense_format(modes), found.shape, (NO_ARRAYS,) * order, _array(values), seal=NO_INDICES)


def _is_packed(found: Read, modes: Sequence[int]) -> bool:
    """Whether values follow each other without gaps, the last of these modes being the closest."""
    step, steps = 1, found.strides or ()
    if 0 in found.shape:
        return True
    for mode in reversed(modes):
        if found.shape[mode] != 1 and steps[mode] != step:
            return False
        step *= found.shape[mode]
    return True


def _array(values: DeviceArray) -> Any:
    """An array of a device where a storage has NumPy's."""
    return values


def flat(value: Any, source: str, what: str) -> DeviceArray:
    """A one-dimensional array of a sparse matrix, without gaps."""
    found = read(value)
    if len(found.shape) != 1 or not _is_packed(found if found.strides else _with_steps(found), (0,)):
        raise StorageError(f"{what} has shape {found.shape}; it must be one row of values without gaps")
    return foreign(found.address, found.shape, found.dtype, found.owner, found.ordinal, source)


def _with_steps(found: Read) -> Read:
    return Read(found.address, found.dtype, found.shape, (1,) * len(found.shape), found.kind, found.ordinal, found.owner)


def device_glimpse(value: Any) -> Callable[[Any], bool] | None:
    """How to tell that an object with arrays on a device is the same again; None if that cannot be told quickly."""
    watch = next((watch for package, watch in _WATCHES.items() if type(value).__module__.partition(".")[0] == package), None)
    try:
        known: Any = weakref.ref(value)
        seen = None if watch is None else watch(value)
    except (AttributeError, RuntimeError, TypeError):
        return None
    if watch is None or seen is None:
        return None
    return lambda given: known() is given and watch(given) == seen


def _watch_cupy(array: Any) -> Any:
    return array.data.ptr, array.shape, array.strides, array.dtype


def _watch_cupyx(matrix: Any) -> Any:
    return matrix.indptr.data.ptr, matrix.indices.data.ptr, matrix.data.data.ptr, matrix.shape, matrix.data.dtype


def wants_gradient(tensor: Any) -> bool:
    """Whether PyTorch would record what is computed with this tensor of its, to find a gradient or a derivative."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if getattr(tensor, "requires_grad", False) and torch.is_grad_enabled():
        return True
    return isinstance(tensor, torch.Tensor) and torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None


def _watch_torch(tensor: Any) -> Any:
    if wants_gradient(tensor):
        return object()  # unlike anything seen before, so that it is looked at, and refused
    if tensor.is_sparse_csr:
        return tensor.crow_indices().data_ptr(), tensor.col_indices().data_ptr(), tensor.values().data_ptr(), tensor.shape
    if tensor.is_sparse:
        return tensor._indices().data_ptr(), tensor._values().data_ptr(), tensor.shape
    return tensor.data_ptr(), tensor.shape, tensor.stride()  # one by columns has none of these, and is an error


_WATCHES: dict[str, Callable[[Any], Any]] = {"cupy": _watch_cupy, "cupyx": _watch_cupyx, "torch": _watch_torch}


def compressed_on_device(owner: Any, format: Format, shape: tuple[int, ...], arrays: Sequence[DeviceArray], help: str) -> Intake:
    """The three arrays of a CSR or CSC matrix: where rows begin, coordinates, values."""
    indptr, indices, data = arrays

    def build() -> Storage:
        _require_indices(indptr, indices)
        level = LevelData({"pos": _array(indptr), "crd": _array(indices)})
        return Storage(format, shape, (NO_ARRAYS, level), _array(data), seal=Seal())

    return _known(owner, arrays, build, help)


def coordinates_on_device(owner: Any, shape: tuple[int, ...], coordinates: Sequence[DeviceArray], data: DeviceArray, help: str) -> Intake:
    """One array of coordinates per mode, and the values."""

    def build() -> Storage:
        _require_indices(*coordinates)
        first, *rest = coordinates
        positions = copied_in(np.array((0, len(data)), first.dtype), first.ordinal, first.source, is_positions=True)
        levels = (LevelData({"pos": _array(positions), "crd": _array(first)}), *(LevelData({"crd": _array(each)}) for each in rest))
        return Storage(coo(len(shape)), shape, levels, _array(data), seal=Seal())

    return _known(owner, (*coordinates, data), build, help)


def _require_indices(*arrays: DeviceArray) -> None:
    dtypes: set[DType] = {array.dtype for array in arrays}
    if len(dtypes) != 1 or not dtypes <= set(INDEX_DTYPES):
        raise StorageError(f"index arrays on a device are all int32 or all int64, not {', '.join(sorted(map(str, dtypes)))}")


_valid: dict[int, tuple[weakref.ref[Any], tuple[int, ...], Storage]] = {}
"""What was found valid: the object by its number, where its arrays were, and the storage over them."""


def _known(owner: Any, arrays: Sequence[DeviceArray], build: Callable[[], Storage], help: str) -> Intake:
    """The storage of an object that was valid before; else it is built and validated, on the device."""
    key, places = id(owner), tuple(part for array in arrays for part in (array.address, array.count))
    known = _valid.get(key)
    if known is not None and known[0]() is owner and known[1] == places:
        return Intake(known[2])
    storage = build()
    try:
        check_on_device(storage)
    except StorageError as fault:
        raise StorageError(f"{fault}\n  help: {help}") from None

    def forget(_: object) -> None:
        _valid.pop(key, None)

    _valid[key] = weakref.ref(owner, forget), places, storage
    return Intake(storage)
