"""The tensor that users hold: a storage, a name, and the statement that was last assigned to it."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, overload

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import DType, is_bfloat16, value_dtype
from sparseloom.core.errors import DeviceError, DTypeError, NotationError, ShapeError, SparseloomError, StorageError
from sparseloom.core.signs import printable
from sparseloom.formats.format import Format
from sparseloom.formats.pack import entries_alone, stored_count
from sparseloom.formats.storage import Seal, Storage, apart, copied, derived, is_stored_alike, lend, open_up, open_values, with_own_values
from sparseloom.formats.storage import with_values as revalued
from sparseloom.formats.text import as_format
from sparseloom.interop import dlpack
from sparseloom.interop.arrays import arrays_of
from sparseloom.interop.numpy import to_numpy
from sparseloom.interop.scipy_left import is_operand_of_scipy, object_of
from sparseloom.notation.nodes import IndexVar
from sparseloom.programs.conversion import convert
from sparseloom.programs.cuda.storages import placed, to_host
from sparseloom.programs.guard import Guard, still_valid
from sparseloom.programs.large import duplicate
from sparseloom.programs.laying import LAYS, Laid, lay
from sparseloom.tensor.alone import is_alone
from sparseloom.tensor.arithmetic import Arithmetic
from sparseloom.tensor.assignment import Assignment, TensorSchedule, assign, is_deferred
from sparseloom.tensor.expression import Expression, access, lift
from sparseloom.tensor.giving import Giving
from sparseloom.tensor.hints import missing_attribute
from sparseloom.tensor.indexing import select, transposed
from sparseloom.tensor.keys import Mask
from sparseloom.tensor.masked import pick_where
from sparseloom.tensor.operators import cast
from sparseloom.tensor.ordered import ordered_entries
from sparseloom.tensor.repr import html_of, inline_of, text_of
from sparseloom.tensor.spoken import variables_of
from sparseloom.tensor.tabled import Tabled


class Tensor(Arithmetic, Giving, Tabled):
    """A tensor of any order, in any format.

    ``A[0]``, ``A[1:3]`` and the like give parts. ``A[i, j]`` with index variables gives an expression, and ``y[i] = expression``
    computes it at once, on its operands as they are now. Tensors do not change otherwise. ``y.schedule()`` has the statement.

    >>> A = sl.asarray([[1.0, 0.0], [0.0, 2.0]], format="csr")
    >>> isinstance(A, sl.Tensor), (A @ [1.0, 1.0]).to_numpy()
    (True, array([1., 2.]))
    """

    __slots__ = ("__weakref__", "_assignment", "_guard", "_postponed", "_storage", "name", "notes")

    def __init__(self, storage: Storage, name: str | None = None, notes: tuple[str, ...] = (), guard: Guard | None = None) -> None:
        self._storage = storage
        self._assignment: Assignment | None = None  # the last one, which can be scheduled and computed again
        self._postponed: Assignment | None = None  # one that is still to be computed
        self._guard = guard  # for index arrays that a caller can change, once they were found valid
        self.name = name
        self.notes = notes

    @property
    def storage(self) -> Storage:
        """The stored form. A postponed assignment is computed first; index arrays that a caller can change are checked again."""
        postponed = self._postponed
        if postponed is not None:
            self.replace_storage(postponed.run(), postponed)
        seal = self._storage.seal
        if (seal is None or seal.broken) and self._storage.device == "cpu":
            was_alone = is_alone(self)
            if self._guard is None or not self._guard.holds():
                self._guard = still_valid(self._storage, self._guard)
            if was_alone and is_alone(self):  # what was found true stays true
                self._storage = replace(self._storage, seal=Seal())
        return self._storage

    def has(self, storage: Storage | None) -> bool:
        """Whether this is the stored form, and still valid; asked before every call that is made again."""
        if self._storage is not storage or self._postponed is not None:
            return False
        seal = self._storage.seal
        if (seal is None or seal.broken) and self._storage.device == "cpu":
            self._guard = still_valid(self._storage, self._guard)
        return True

    @property
    def assignment(self) -> Assignment | None:
        """The last assignment with index variables, if there was one."""
        return self._assignment

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of every mode."""
        return self._storage.shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._storage.dtype

    @property
    def format(self) -> Format:
        """The storage levels and mode order."""
        return self._storage.format

    @property
    def device(self) -> str:
        """Where the arrays are: ``cpu`` or ``cuda``."""
        return self._storage.values.device

    @property
    def ndim(self) -> int:
        """The order: how many modes there are."""
        return len(self._storage.shape)

    @property
    def size(self) -> int:
        """How many coordinates there are, stored or not."""
        return math.prod(self._storage.shape)

    @property
    def nnz(self) -> int:
        """How many entries are stored, zeros among them included."""
        return stored_count(self.storage)

    @property
    def nbytes(self) -> int:
        """The memory of all arrays."""
        return sum(array.nbytes for array in arrays_of(self.storage).values())

    @property
    def fill(self) -> Scalar:
        """The value of every coordinate that is not stored."""
        return self._storage.fill if self._postponed is None else self.storage.fill

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name: ``pos1``, ``crd1``, ... for level 1, and ``values``.

        They are the tensor's own: values may be changed, and so may indices as long as the format's promises hold. No other tensor
        changes with them.
        """
        return arrays_of(self.opened())

    def opened(self, device: str | None = None) -> Storage:
        """The stored form, whose arrays a caller may see and change from now on. What other tensors have too is copied first.

        On another ``device`` it is a copy.
        """
        storage = self.storage
        if device is not None and (elsewhere := placed(storage, device)) is not storage:
            return elsewhere
        self._storage = open_up(storage, duplicate)
        return self._storage

    def pinned(self) -> Storage:
        """The stored form with values that stay where they are, for a kernel that is bound to them. No other tensor has them."""
        self._storage = open_values(self.storage, duplicate)
        return self._storage

    def writable(self) -> Storage:
        """The stored form, whose values a kernel may write. Those that other tensors have too are copied first."""
        self._storage = with_own_values(self.storage, duplicate)
        return self._storage

    def _made(self, storage: Storage) -> Self:
        return type(self)(storage)

    def to(self, format: Format | str, drop_zeros: bool = False, copy: bool | None = None) -> Self:
        """The same tensor in another format. Zeros that are stored are kept unless dropped.

        Arrays are shared where the layout allows, until somebody asks for them. ``copy=False`` shares those that a caller can change
        too, ``copy=True`` shares none.
        """
        storage = self.storage
        made = convert(storage, as_format(format, self.ndim), drop_zeros)
        made = apart(made, storage, duplicate) if copy is None else derived(replace(made), storage)
        return type(self)(copied(made, duplicate) if copy else made, self.name)

    def tocsr(self) -> Self:
        """``to("csr")``."""
        return self.to("csr")

    def tocsc(self) -> Self:
        """``to("csc")``."""
        return self.to("csc")

    def tocoo(self) -> Self:
        """``to("coo")``."""
        return self.to("coo")

    def to_device(self, device: str = "cuda") -> Self:
        """The same tensor on a device: ``cuda``, ``cuda:1`` or ``cpu``. What is there already is not copied."""
        made = placed(self.storage, device)
        return self if made is self._storage else type(self)(made, self.name)

    def to_host(self) -> Self:
        """The same tensor in main memory, when the device has computed it. What is there already is not copied."""
        return self.to_device("cpu")

    def to_numpy(self) -> NDArray[Any]:
        """The whole tensor as an array: of a dense tensor in main memory a view, else a new array with the fill in the gaps."""
        return to_numpy(self.opened("cpu") if self.format.is_dense else to_host(self.storage))

    def toarray(self) -> NDArray[Any]:
        """``to_numpy()``, under SciPy's name."""
        return self.to_numpy()

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """The same tensor with values of another dtype."""
        storage = self.storage
        wanted = value_dtype(dtype)
        if wanted == storage.dtype:
            return self.copy() if copy else self
        return type(self)(cast(lend(storage), wanted), self.name)

    def copy(self) -> Self:
        """A tensor with arrays of its own."""
        return type(self)(copied(self.storage, duplicate), self.name)

    def __copy__(self) -> Self:
        storage = self.storage
        return type(self)(apart(storage, storage, duplicate), self.name, self.notes)

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self)(copied(self.storage, duplicate), self.name, self.notes)

    @property
    def T(self) -> Self:
        """The modes in reverse order: the transpose of a csr matrix is csc. Of a tensor over your arrays it is a view of them."""
        return self.transpose()

    @property
    def mT(self) -> Self:
        """The last two modes exchanged; as for ``T``, nothing is sorted."""
        if self.ndim < 2:
            raise ShapeError(f"a tensor of shape {self.shape} has no two modes to exchange")
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def transpose(self, *axes: Any) -> Self:
        """The modes in another order (reversed, if none is given); as for ``T``, nothing is sorted."""
        given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list, np.ndarray))) else axes
        named = () if given is None else tuple(int(axis) % max(self.ndim, 1) for axis in given)
        order = named or tuple(reversed(range(self.ndim)))
        if sorted(order) != list(range(self.ndim)):
            raise ShapeError(f"transpose{axes} must name each of the {self.ndim} modes once")
        storage = self.storage
        made = transposed(storage, order)
        if storage.owner is not None:
            return type(self)(apart(made, storage, duplicate))
        # The arrays are a caller's, and so is a view of them. What was found true of them is true of the view.
        return type(self)(made, guard=self._guard)

    @overload
    def __getitem__(self, key: IndexVar | tuple[IndexVar, ...]) -> Expression: ...
    @overload
    def __getitem__(self, key: Any) -> Any: ...
    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(isinstance(part, IndexVar) for part in parts):
            storage = self.storage
            if isinstance(key, Tensor) and key.dtype.kind == "b" and (chosen := pick_where(storage, key.storage)) is not None:
                return type(self)(chosen)
            part = select(storage, tuple(_plain(part) for part in parts))
            if not part.shape:
                return part.values[0]
            return type(self)(apart(part, storage, duplicate))
        variables = tuple(part for part in parts if isinstance(part, IndexVar))
        if len(variables) == len(parts):
            return access(self.storage, self.name, variables)
        if len(parts) != self.ndim:
            raise NotationError(f"the tensor has {self.ndim} modes, but {len(parts)} are indexed; name one variable per mode")
        rest = tuple(slice(None) if isinstance(part, IndexVar) else part for part in parts)
        return access(select(self.storage, rest), None, variables)

    def __setitem__(self, key: Any, value: Any) -> None:
        parts = key if isinstance(key, tuple) else (key,)
        variables = tuple(part for part in parts if isinstance(part, IndexVar))
        if len(variables) != len(parts):
            raise NotationError(
                "entries of a tensor cannot be set one by one, because each would move all that are stored\n"
                "  help: take them down with B = A.builder(), B[i, j] = value, and A = B.build(), which moves them once; "
                "or assign with index variables, as in y[i] = ..."
            )
        storage, expression = self._storage, lift(value)
        try:
            made = assign(storage, self.name, variables, expression)
            if is_deferred():
                self._assignment = self._postponed = made
            else:
                self.replace_storage(made.run(), made)
            return
        except SparseloomError as found:
            fault = found
        # Errors speak of tensors by name. Those without one are called as the user's variables are, and the error is raised again.
        spoken = variables_of(sys._getframe(1), lambda held: held._storage if isinstance(held, Tensor) else None)
        assign(storage, self.name or spoken.get(id(storage)), variables, expression, spoken).run()
        raise fault

    def schedule(self) -> TensorSchedule:
        """The schedule of the last assignment; ``compile()`` it, and call the kernel to compute the tensor again."""
        last = self._assignment
        if last is None:
            raise NotationError("there is nothing to schedule: nothing was assigned\n  help: write y[i] = A[i, j] * x[j] or the like first")
        return TensorSchedule(last.prepare().unscheduled(), assignment=last, receive=partial(self.replace_storage, assignment=last))

    def with_structure(self, structure: Storage, count: int) -> Storage:
        """The stored form with the structure that it was assembled with and so many values, for a kernel to write them.

        A caller who has its arrays may have changed them, as SciPy's ``eliminate_zeros`` does: then it gets new ones.
        """
        storage = self._storage
        if len(storage.values) != count or not (storage.levels is structure.levels or is_stored_alike(storage, structure)):
            own = lend(structure, duplicate)
            self.replace_storage(revalued(own, np.empty(count, structure.dtype)))
        return self.writable()

    def replace_storage(self, storage: Storage, assignment: Assignment | None = None) -> Self:
        """Take over a result that was computed for this tensor, by an ``assignment`` or otherwise."""
        self._guard = None
        self._storage = storage
        self._assignment = assignment or self._assignment
        self._postponed = None  # last of all: another thread that still finds it computes the same again
        return self

    def nonzero(self) -> tuple[NDArray[np.int64], ...]:
        """The coordinates of the values that are not zero, one array per mode, in the order of the first mode."""
        if not self.ndim:
            raise ShapeError("a tensor of order 0 has no coordinates; ask it with bool(), or give it a mode with reshape(1)")
        if self.fill != 0:
            raise StorageError(f"absent entries are {self.fill}, so almost all coordinates are nonzero; use to_numpy().nonzero()")
        coordinates, values = ordered_entries(self.storage, range(self.ndim))
        present = values != 0
        return tuple(coordinates if present.all() else coordinates[:, present])

    def count_nonzero(self) -> int:
        """How many values are not zero."""
        storage = self.storage
        absent = self.size - self.nnz if storage.fill != 0 else 0
        return int(np.count_nonzero(entries_alone(storage))) + absent

    def __len__(self) -> int:
        if not self.ndim:
            raise DTypeError("a tensor of order 0 has no length")
        return self.shape[0]

    def __iter__(self) -> NoReturn:
        raise DTypeError("a tensor cannot be iterated; take parts with A[0], or iterate over to_numpy()")

    def __contains__(self, value: object) -> NoReturn:
        raise DTypeError("'in' is not offered on tensors; write (A == value).any()")

    def item(self) -> Any:
        """The value of a tensor with one coordinate, as a Python number."""
        if self.size != 1:
            raise ShapeError(f"only a tensor with one coordinate is a number; this one has shape {self.shape}")
        return to_numpy(to_host(self.storage)).item()

    def __bool__(self) -> bool:
        if self.size != 1:
            several = "several entries" if self.size else "no entries"
            raise ShapeError(f"the truth of a tensor with {several} is ambiguous; use any() or all()")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim:
            raise DTypeError(f"only an integer of order 0 is an index, not a tensor of {self.dtype} with {self.ndim} modes")
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if is_operand_of_scipy():
            return object_of(self)
        if not self.format.is_dense:
            raise DTypeError("a sparse tensor does not become an array silently, because it may be huge; write to_numpy()")
        if self.device != "cpu":
            raise DeviceError("a tensor on a device does not become a NumPy array silently\n  help: copy it with to_numpy()")
        return np.array(to_numpy(self.storage) if copy else self.to_numpy(), dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        if not self.format.is_dense:
            raise DTypeError("only dense tensors can be shared by DLPack; write to_numpy(), or share the arrays one by one")
        if self.device != "cpu":
            return dlpack.capsule(self.opened(), **options)
        array = self.to_numpy()
        return dlpack.shared_by_bits(array) if is_bfloat16(array.dtype) else array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.device_of(self._storage)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device == "cpu" or not self.format.is_dense:
            raise AttributeError("only dense tensors on a CUDA device have a __cuda_array_interface__")
        return dlpack.cuda_interface(self.opened())

    if not TYPE_CHECKING:  # a checker that saw it would take every attribute for one that raises

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute("Tensor", name)

    def __repr__(self) -> str:
        return printable(text_of(self._storage, self.name, self._postponed))

    def _repr_inline_(self, max_width: int) -> str:
        """One line, as xarray shows it."""
        return printable(inline_of(self._storage, max_width))

    def _repr_html_(self) -> str:
        return html_of(self._storage, self.name, self._postponed)


def _plain(part: Any) -> Any:
    """A part of a key: a tensor as an array of positions, or as a mask that says where it is true."""
    if not isinstance(part, Tensor):
        return part
    if part.dtype.kind != "b" or not part.ndim:
        return to_numpy(to_host(part.storage))
    return Mask(part.shape, np.nonzero(to_numpy(to_host(part.storage))) if part.fill else part.nonzero())


def _lay_tensor(tensor: Tensor) -> Laid | None:
    """How a tensor is laid before a kernel: as its storage, if that is valid."""
    storage, seal, guard = tensor._storage, tensor._storage.seal, tensor._guard
    if tensor._postponed is not None or ((seal is None or seal.broken) and (guard is None or not guard.holds())):
        return lay(tensor.storage)
    try:
        return storage.laid  # type: ignore[no-any-return]
    except AttributeError:
        return lay(storage)


LAYS[Tensor] = _lay_tensor
