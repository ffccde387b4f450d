"""Setting entries of a sparse tensor: a builder takes them down one by one and stores them all at once.

B = A.builder()
B[2, 3] = 5.0            taken down
B[rows, columns] += x    what was stored or set before is read once
A = B.build()            one merge: the entries of A and those that were set are sorted together
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType, computed, kind_of
from sparseloom.core.errors import DTypeError, NotationError, ShapeError
from sparseloom.formats.pack import unpack
from sparseloom.formats.room import require_array
from sparseloom.formats.storage import Storage, apart
from sparseloom.interop.numpy import to_numpy
from sparseloom.programs.conversion import store
from sparseloom.programs.cuda.storages import to_host
from sparseloom.tensor.keys import parts_of, picked, run_of
from sparseloom.tensor.tensor import Tensor


class Builder:
    """Takes down entries for a tensor; ``build()`` makes it. To set an entry costs a note; to read one, or to build, a merge of all.

    >>> B = sl.Builder(sl.eye(2))
    >>> B[0, 1] = 5.0
    >>> B.build().to_numpy()
    array([[1., 5.],
           [0., 1.]])
    """

    __slots__ = ("_notes", "_storage")

    def __init__(self, start: Tensor) -> None:
        self._storage = apart(start.storage, start.storage)
        self._notes: list[tuple[NDArray[np.int64], NDArray[Any]]] = []

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of every mode."""
        return self._storage.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._storage.dtype

    @property
    def cost(self) -> str:
        """What the next ``build()``, or the next reading, has to do."""
        noted = sum(len(values) for _, values in self._notes)
        return f"sorts {noted} entries that were set into {len(self._storage.values)} that are stored" if noted else "nothing"

    def __repr__(self) -> str:
        sizes = " x ".join(map(str, self.shape)) or "scalar"
        return f"<Builder: {sizes}, {self._storage.format}, {self.dtype}; build() {self.cost if self._notes else 'has nothing to do'}>"

    def __setitem__(self, key: Any, value: Any) -> None:
        columns, shape = self._places(key)
        given = to_numpy(to_host(value.storage)) if isinstance(value, Tensor) else np.asarray(value)
        if kind_of(given.dtype) not in "biufc" or not np.can_cast(computed(given.dtype), computed(self.dtype), "same_kind"):
            raise DTypeError(f"a value of type {given.dtype} cannot be set in a tensor of {self.dtype}; convert it with astype")
        try:
            values = np.broadcast_to(given, shape).astype(self.dtype).reshape(-1)
        except ValueError:
            raise ShapeError(f"values of shape {given.shape} cannot be set where {shape} are wanted") from None
        self._notes.append((columns, values))

    def __getitem__(self, key: Any) -> Any:
        return self.build()[key]

    def _places(self, key: Any) -> tuple[NDArray[np.int64], tuple[int, ...]]:
        """The coordinates that a key names, one column each, and in which shape."""
        parts = parts_of(key, self.shape)
        if any(part is None for part in parts):
            raise NotationError("None makes a new mode, and cannot be set; name places with integers, slices, arrays and masks")
        modes = [part for part in parts if part is not Ellipsis]
        slices = {mode: run_of(part, self.shape[mode]) for mode, part in enumerate(modes) if isinstance(part, slice)}
        arrays = picked(parts) if len(slices) < len(modes) else None
        inner, at = (arrays.shape, sum(mode < arrays.at for mode in slices)) if arrays is not None else ((), 0)
        kept = [len(wanted) for wanted in slices.values()]
        shape = (*kept[:at], *inner, *kept[at:])
        require_array((len(shape) + 1, math.prod(shape)), 8)
        grid = np.indices(shape, np.int64).reshape(len(shape), math.prod(shape))
        columns = np.empty((len(self.shape), math.prod(shape)), np.int64)
        for k, (mode, wanted) in enumerate(slices.items()):
            columns[mode] = wanted.start + wanted.step * grid[k if k < at else k + len(inner)]
        for group in arrays.groups if arrays is not None and grid.shape[1] else ():
            own = [inner[axis] for axis in group.axes]
            number = np.ravel_multi_index(tuple(grid[at + axis] for axis in group.axes), own) if own else 0
            columns[list(group.modes)] = np.stack(group.positions)[:, number].reshape(len(group.modes), -1)
        return columns, shape

    def build(self) -> Tensor:
        """The tensor with all entries that were set; of those at one place, the last."""
        if self._notes:
            self._storage = _merged(self._storage, self._notes)
            self._notes = []
        return Tensor(apart(self._storage, self._storage))


def _merged(storage: Storage, notes: list[tuple[NDArray[np.int64], NDArray[Any]]]) -> Storage:
    """A storage with entries set in it, later ones instead of earlier ones."""
    coordinates, values = unpack(storage if storage.format.is_unique else Tensor(storage).to("coo").storage)
    columns = np.concatenate([coordinates, *(places for places, _ in notes)], axis=1)
    given = np.concatenate([values, *(new for _, new in notes)])
    if not len(storage.shape):
        return store(storage.format, (), columns[:, -1:], given[-1:], storage.fill)
    order = np.lexsort((np.arange(len(given)), *columns[::-1]))
    ranked = columns[:, order]
    last = np.append((ranked[:, 1:] != ranked[:, :-1]).any(axis=0), True)[: len(given)]
    return store(storage.format, storage.shape, ranked[:, last], given[order][last], storage.fill)
