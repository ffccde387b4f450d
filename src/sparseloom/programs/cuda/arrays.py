"""Arrays on a device: one-dimensional, contiguous, and never looked into unless somebody asks for a copy.

They stand where NumPy arrays stand in a storage. What the host may know without asking the device is kept with them: the positions of a
level begin at 0 and end with the number of its entries (``ends``).
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import INDEX_DTYPES, DType
from sparseloom.core.errors import DeviceError
from sparseloom.programs.calling import address_of
from sparseloom.programs.cuda.device import device
from sparseloom.programs.cuda.dlpack import capsule_of
from sparseloom.programs.cuda.streams import DEFAULT_STREAM, LEGACY_STREAM, OWN, current_stream

WORD = 16  # bytes that one instruction moves
_UPDATED = 4  # bytes that are updated at once, at least
ELSEWHERE = "the array is on a CUDA device, where NumPy cannot read it"
HELP = "copy it to main memory first, with to_host() or to_numpy()"


class Owned:
    """Memory that we allocated. It is freed with the last array that refers to it, behind the work on its stream."""

    __slots__ = ("_device", "_stream", "address")

    def __init__(self, nbytes: int, ordinal: int, stream: int) -> None:
        self.address: int = 0  # there is nothing to free where no device is found
        self._device = device(ordinal)
        self._stream = stream
        self.address = self._device.allocate(nbytes, stream)

    def __del__(self) -> None:
        if self.address:
            self._device.free(self.address, self._stream)


class DeviceArray:
    """``count`` elements of a dtype from an address on. The ``owner`` keeps the memory alive.

    ``source`` names the library that it came from, if it did, or that its operands came from: work on it goes to that one's current stream.
    """

    __slots__ = ("__weakref__", "address", "count", "dtype", "ends", "is_writable", "ordinal", "owner", "source")

    device = "cuda"
    ndim = 1
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(
        self,
        address: int,
        count: int,
        dtype: DType,
        owner: object,
        ordinal: int = 0,
        source: str = OWN,
        ends: tuple[int, int] | None = None,
        is_writable: bool = True,
    ) -> None:
        self.address = address
        self.count = count
        self.dtype = dtype
        self.owner = owner
        self.ordinal = ordinal
        self.source = source
        self.ends = ends
        self.is_writable = is_writable

    def __len__(self) -> int:
        return self.count

    @property
    def size(self) -> int:
        """How many elements there are."""
        return self.count

    @property
    def shape(self) -> tuple[int, ...]:
        """The same as a shape."""
        return (self.count,)

    @property
    def itemsize(self) -> int:
        """How many bytes an element takes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """How many bytes all of them take."""
        return self.count * self.dtype.itemsize

    def stream(self) -> int:
        """The stream that work on the array goes to now."""
        return current_stream(self.source, self.ordinal)

    def overlaps(self, other: DeviceArray) -> bool:
        """Whether some memory belongs to both."""
        same = self.ordinal == other.ordinal and self.nbytes and other.nbytes
        return bool(same) and self.address < other.address + other.nbytes and other.address < self.address + self.nbytes

    def to_host(self) -> NDArray[Any]:
        """A copy in main memory, when all work on the stream is done."""
        made = np.empty(self.count, self.dtype)
        device(self.ordinal).copy_out(address_of(made), self.address, self.nbytes, self.stream())
        return made

    def copy(self) -> DeviceArray:
        """A copy on the device."""
        made = empty(self.count, self.dtype, self.ordinal, self.source)
        made.ends = self.ends
        made[:] = self
        return made

    def __getitem__(self, place: Any) -> Any:
        """One element; those at the ends of positions are known, any other is copied, which waits for the device."""
        if isinstance(place, slice):
            raise DeviceError(f"{ELSEWHERE}\n  help: {HELP}")
        at = range(self.count)[operator.index(place)]
        if self.ends is not None and at in (0, self.count - 1):
            return self.ends[at != 0]
        made = np.empty(1, self.dtype)
        device(self.ordinal).copy_out(address_of(made), self.address + at * self.dtype.itemsize, self.dtype.itemsize, self.stream())
        return made[0]

    def __setitem__(self, place: slice, values: Any) -> None:
        """Copy a whole array into this one: ``a[:] = b``, from the device or from main memory."""
        is_alike = isinstance(values, DeviceArray | np.ndarray) and values.dtype == self.dtype and values.shape == self.shape
        if place != slice(None) or not is_alike:
            raise DeviceError(f"{ELSEWHERE}: it can be filled as a whole only, with an array of the same dtype and length")
        if isinstance(values, DeviceArray):
            device(self.ordinal).copy(self.address, values.address, self.nbytes, self.stream())
        else:
            given = np.ascontiguousarray(values)
            device(self.ordinal).copy_in(self.address, address_of(given), self.nbytes, self.stream())

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return interface(self, (self.count,), None)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        return shared_by_dlpack(self, (self.count,), (1,), stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.ordinal)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise DeviceError(f"{ELSEWHERE}\n  help: {HELP}")

    if not TYPE_CHECKING:  # a checker that saw it would take every attribute for one that raises

        def __getattr__(self, name: str) -> NoReturn:
            if hasattr(np.ndarray, name) and not name.startswith("__"):
                raise DeviceError(f"{ELSEWHERE}\n  help: {HELP}")
            raise AttributeError(f"'DeviceArray' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{self.count} {self.dtype} on cuda:{self.ordinal}>"


def interface(array: DeviceArray, shape: tuple[int, ...], strides: tuple[int, ...] | None) -> dict[str, Any]:
    """The array as ``__cuda_array_interface__`` tells it, in a shape; ``strides`` count bytes. Work on its stream may be under way."""
    data = (array.address if array.count else 0, not array.is_writable)
    stream = array.stream() or LEGACY_STREAM
    return {"shape": shape, "typestr": array.dtype.str, "data": data, "strides": strides, "version": 3, "stream": stream}


def shared_by_dlpack(array: DeviceArray, shape: tuple[int, ...], strides: tuple[int, ...], stream: Any) -> Any:
    """The array as a capsule of DLPack, in a shape; ``strides`` count elements.

    The consumer says on which stream it will work. If that is another than ours, ours is waited for; -1 asks for nothing of that.
    """
    theirs = LEGACY_STREAM if stream in (None, 0) else stream
    if theirs not in (-1, array.stream() or LEGACY_STREAM):
        device(array.ordinal).wait(array.stream())
    return capsule_of(array.address, array.dtype, shape, strides, array.ordinal, array)


def empty(count: int, dtype: DType, ordinal: int = 0, source: str = OWN) -> DeviceArray:
    """Room for so many elements; what is in it is not defined."""
    used = count * dtype.itemsize
    room = -(-used // WORD) * WORD
    owned = Owned(room, ordinal, current_stream(source, ordinal) if source else DEFAULT_STREAM)
    made = DeviceArray(owned.address, count, dtype, owned, ordinal, source)
    if used % _UPDATED:  # bytes are updated as words, of which the last is not all theirs
        device(ordinal).clear(owned.address + used, _UPDATED - used % _UPDATED, made.stream())
    return made


def copied_in(array: NDArray[Any], ordinal: int = 0, source: str = OWN, is_positions: bool = False) -> DeviceArray:
    """A copy of a NumPy array; of positions the first and the last are kept in mind."""
    made = empty(len(array), array.dtype, ordinal, source)
    made[:] = array
    if is_positions and len(array) and array.dtype in INDEX_DTYPES:
        made.ends = int(array[0]), int(array[-1])
    return made


def foreign(
    address: int, shape: tuple[int, ...], dtype: DType, owner: object, ordinal: int, source: str = OWN, is_writable: bool = True
) -> DeviceArray:
    """Memory of somebody else, who is kept alive."""
    return DeviceArray(address, math.prod(shape), dtype, owner, ordinal, source, None, is_writable)
