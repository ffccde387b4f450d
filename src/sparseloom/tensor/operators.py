"""NumPy's operators on whole tensors, written as index notation.

A + x        R(i,j) = A(i,j) + x(j)                 modes are matched from the right, as NumPy broadcasts
A @ B        R(i,j) = sum(k, A(i,k) * B(k,j))
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import DType, is_half, is_integer, is_value_dtype, value_dtype
from sparseloom.core.errors import DeviceError, ShapeError
from sparseloom.formats.format import Format
from sparseloom.formats.named import csc, csr
from sparseloom.formats.pack import stored_count, unpack
from sparseloom.formats.parts import is_tree, where
from sparseloom.formats.storage import Storage, derived, with_values
from sparseloom.interop.intake import enter_aloud
from sparseloom.interop.numpy import dense_storage, to_numpy
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, IndexVar, Literal, Reduce
from sparseloom.notation.text import placeholder
from sparseloom.plan.problem import declared
from sparseloom.programs.conversion import convert
from sparseloom.programs.dispatch import doors, specialized
from sparseloom.programs.execution import Specialization
from sparseloom.tensor.by_columns import by_columns
from sparseloom.tensor.by_values import OFFERED, by_values
from sparseloom.tensor.complex_order import compares_complex, in_order
from sparseloom.tensor.indexing import by_rows, select

_MIXED = ((csr, csc), (csc, csr))  # a product of these is stored by rows, and needs both of them by rows
Argument = Storage | Scalar | np.generic
Array = Storage | NDArray[Any]
Given = Argument | NDArray[Any]
"""What operators take: an array is made a storage only where nothing is known of its like."""


class Statement:
    """Collects the operands of one statement, each under one name."""

    def __init__(self) -> None:
        self.operands: dict[str, Storage] = {}
        self.special: Specialization | None = None

    def access(self, storage: Storage, variables: Sequence[IndexVar]) -> Access:
        """An access to ``storage``, which gets a name at its first use."""
        known = (name for name, operand in self.operands.items() if operand is storage)
        name = next(known, f"T{len(self.operands)}")
        self.operands[name] = storage
        return Access(declared(name, storage), tuple(variables))

    def run(self, variables: Sequence[IndexVar], rhs: Expr, sizes: Sequence[int], format: Format | None = None) -> Storage:
        """Compute ``R(variables) = rhs``; without a format, in the one that follows from the operands."""
        self._require_host()
        lhs = Access(placeholder("R", len(variables)), tuple(variables))
        extents = {variable.name: size for variable, size in zip(variables, sizes, strict=True)}
        self.special = specialized(Assign(lhs, rhs), self.operands, format, extents)
        return self.special.run(self.operands)

    def _require_host(self) -> None:
        """Refuse operands on a device."""
        for place, storage in enumerate(self.operands.values(), 1):
            if storage.device != "cpu":
                raise DeviceError(
                    f"operand {place} of the operator is on {storage.device}, and operators compute in main memory\n"
                    "  help: copy it with to_host(), or write sl.evaluate or sl.einsum, which compute on the device"
                )

    def learn(self, door: Hashable, given: Sequence[Given], stored: Sequence[Storage | Scalar], by_value: bool = False) -> None:
        """Let a door remember what it ran on ``given``, which are ``stored`` so; nothing, where something else was computed with."""
        at = {id(storage): place for place, storage in reversed(list(enumerate(stored)))}
        if self.special is None or not all(id(storage) in at for storage in self.operands.values()):
            return
        places = {name: at[id(storage)] for name, storage in self.operands.items()}
        numbers = {
            places[name]: storage.dtype
            for name, storage in self.operands.items()
            if not isinstance(given[places[name]], Storage | np.ndarray)
        }
        doors.learn(door, given, self.special, places, numbers, by_value)

    def product(self, factors: Sequence[Access]) -> Expr:
        """The product of some operands."""
        return Apply("multiply", tuple(factors))

    def run_product(self, variables: Sequence[IndexVar], summed: IndexVar, factors: Sequence[Access], sizes: Sequence[int]) -> Storage:
        """Compute the sum of a product."""
        return self.run(variables, Reduce("add", (summed,), self.product(factors)), sizes)


def variables(count: int) -> tuple[IndexVar, ...]:
    """Fresh index variables: i, j, k, l, m, n, then i6, i7, ..."""
    return tuple(IndexVar("ijklmn"[number] if number < 6 else f"i{number}") for number in range(count))


def elementwise(op: str, *given: Given) -> Storage:
    """An operator of ``core.algebra`` on tensors, arrays and numbers, broadcast as NumPy does."""
    if op == "power":
        _require_powers(*given)
    made = by_values(op, given[0]) if op in OFFERED and isinstance(given[0], Storage) else None
    made = doors.through(op, *given) if made is None else made
    found = _elementwise(op, given) if made is None else made
    return found if found.values.dtype.kind != "b" or found.format.is_dense else _without_falsehoods(found)


def _require_powers(base: Given, exponent: Given) -> None:
    """Reject integers to powers some of which are negative integers, as NumPy does."""
    kinds = [each.dtype if isinstance(each, (Storage, np.generic, np.ndarray)) else each for each in (base, exponent)]
    if any(is_half(kind) or not is_value_dtype(kind) for kind in kinds if isinstance(kind, np.dtype)):
        return
    if not is_integer(algebra.compute_dtype("multiply", kinds)) or not _has_negative(exponent):
        return
    shape = broadcast_shape("power", [each.shape for each in (base, exponent) if isinstance(each, (Storage, np.ndarray))])
    if math.prod(shape):
        help = "floats as exponents, or convert one of them with astype('float64')"
        raise algebra.negative_power(f"power of {' and '.join(map(str, kinds))}", help)


def _has_negative(exponent: Given) -> bool:
    """Whether some value is below 0."""
    if not isinstance(exponent, Storage):
        return bool(np.any(np.asarray(exponent) < 0))
    has_absent = exponent.fill < 0 and stored_count(exponent) < math.prod(exponent.shape)  # type: ignore[operator]
    return has_absent or bool((unpack(exponent)[1] < 0).any())


def _without_falsehoods(made: Storage) -> Storage:
    """Truth values that are stored only where they are true, so that ``(A != A).nnz`` is 0."""
    if made.fill or made.format.blocks or not all(level.compact for level in made.format.levels) or made.values.all():
        return made
    return derived(where(made, made.values), made) if is_tree(made.format) else convert(made, made.format, drop_zeros=True)


def _elementwise(op: str, given: Sequence[Given]) -> Storage:
    """As ``elementwise``, where nothing like it was computed before."""
    arguments = [_entered(value) for value in given]
    shape = broadcast_shape(op, [argument.shape for argument in arguments if isinstance(argument, Storage)])
    loops = variables(len(shape))
    statement = Statement()
    settled = _settled(op, arguments)
    nodes: list[Expr] = [
        _broadcast(statement, argument, loops, shape) if isinstance(argument, Storage) else Literal(argument) for argument in settled
    ]
    rhs = in_order(op, nodes[0], nodes[1]) if compares_complex(op, _weak(arguments)) else Apply(op, tuple(nodes))
    made = statement.run(loops, rhs, shape)
    if op == "where" and made.dtype != (common := algebra.compute_dtype(op, _weak(arguments))):
        return cast(made, common)  # numbers of NumPy's promote by their dtype, and stand in the statement without it
    # An operand that was converted first is none that a door has seen, and neither is a number that stands in the statement.
    stored = [argument if isinstance(argument, Storage) else became for argument, became in zip(arguments, settled, strict=True)]
    statement.learn(op, given, stored, by_value=not all(isinstance(became, Storage) for became in settled))
    return made


def matmul(left: Array, right: Array) -> Storage:
    """``left @ right`` as NumPy's matmul: vectors are rows or columns, and modes before the last two broadcast."""
    if isinstance(left, Storage) and isinstance(right, Storage) and (left.format, right.format) in _MIXED:
        left, right = (by_rows(left), by_rows(right)) if left.device == right.device == "cpu" else (left, right)
    made = by_columns(left, right, matmul) if isinstance(right, Storage) and len(left.shape) == 2 else None
    made = doors.through("@", left, right) if made is None else made
    return _matmul(left, right) if made is None else made


def product(left: Array, right: Array) -> NDArray[Any]:
    """``left @ right`` as an array, for a matrix and a vector or the other way round, one of which is an array."""
    values = doors.values("@", left, right)
    return to_numpy(matmul(left, right)) if values is None else values


def _matmul(*given: Array) -> Storage:
    """As ``matmul``, where nothing like it was computed before."""
    left, right = map(as_storage, given)
    if not left.shape or not right.shape:
        raise ShapeError("@ needs tensors with at least one mode; multiply by a number with *")
    inner = _common_size(left, right, f"{left.shape} @ {right.shape}")
    rows, columns = left.shape[:-1][-1:], right.shape[-1:] if len(right.shape) > 1 else ()
    batch = broadcast_shape("@", [left.shape[:-2], right.shape[:-2]])
    *outer, summed = variables(len(batch) + len(rows) + len(columns) + 1)
    batches = tuple(outer[: len(batch)])
    free = tuple(outer[len(batch) :])
    statement = Statement()
    first = _broadcast(statement, left, (*batches, *free[: len(rows)], summed), (*batch, *rows, inner))
    second = _broadcast(statement, right, (*batches, summed, *free[len(rows) :]), (*batch, inner, *columns))
    made = statement.run_product(outer, summed, (first, second), (*batch, *rows, *columns))
    statement.learn("@", given, (left, right))
    return made


def sum_of_squares(storage: Storage) -> Storage:
    """The sum of the squares of all values, as one statement."""
    made = doors.through("sum of squares", storage)
    if made is None:
        statement, loops = Statement(), variables(len(storage.shape))
        access = statement.access(storage, loops)
        made = statement.run((), Reduce("add", loops, statement.product((access, access))), ())
        statement.learn("sum of squares", (storage,), (storage,))
    return made


def dot(left: Storage, right: Storage) -> Storage:
    """NumPy's dot: the sum over the last mode of the left and the last but one of the right, for all pairs of their other modes."""
    if len(left.shape) <= 2 and len(right.shape) <= 2:
        return matmul(left, right)
    _common_size(left, right, f"dot of {left.shape} and {right.shape}")
    *outer, summed = variables(len(left.shape) + len(right.shape) - 1)
    rows, columns = outer[: len(left.shape) - 1], outer[len(left.shape) - 1 :]
    place = max(len(right.shape) - 2, 0)
    statement = Statement()
    first = statement.access(left, (*rows, summed))
    second = statement.access(right, (*columns[:place], summed, *columns[place:]))
    return statement.run_product(outer, summed, (first, second), (*left.shape[:-1], *right.shape[:place], *right.shape[place + 1 :]))


def as_storage(array: Array) -> Storage:
    """A storage, or the storage of an array."""
    return enter_aloud(array) if isinstance(array, np.ndarray) else array


def _entered(value: Given) -> Argument:
    """What an operator computes with: arrays as storages."""
    return enter_aloud(value) if isinstance(value, np.ndarray) else value


def _common_size(left: Storage, right: Storage, what: str) -> int:
    """The size of the mode that a product sums over: the last one of the left, and the last but one of the right."""
    inner = right.shape[-2] if len(right.shape) > 1 else right.shape[0]
    if left.shape[-1] != inner:
        raise ShapeError(f"{what}: the last mode of the left has size {left.shape[-1]}, but {inner} is needed")
    return inner


def broadcast_shape(op: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape, as NumPy broadcasts. NumPy's own function refuses shapes that no dense array can have."""
    order = max(map(len, shapes), default=0)
    modes = list(zip(*((1,) * (order - len(shape)) + shape for shape in shapes), strict=True))
    if any(len(set(sizes) - {1}) > 1 for sizes in modes):
        raise ShapeError(f"{op} cannot combine the shapes {' and '.join(map(str, shapes))}: sizes must agree or be 1")
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in modes)


def cast(storage: Storage, dtype: DType) -> Storage:
    """The same tensor with values of another dtype; the structure is shared."""
    if storage.dtype == dtype:
        return storage
    with np.errstate(invalid="ignore"):
        fill = np.asarray(storage.fill).astype(dtype).item()
        return with_values(storage, storage.values.astype(dtype), fill)


def _broadcast(statement: Statement, storage: Storage, loops: Sequence[IndexVar], shape: Sequence[int]) -> Access:
    """An access by the last variables; a mode of size 1 that must stretch is selected away."""
    skipped = len(shape) - len(storage.shape)
    stretched = [size == 1 and shape[skipped + mode] != 1 for mode, size in enumerate(storage.shape)]
    used = [loops[skipped + mode] for mode, stretches in enumerate(stretched) if not stretches]
    if any(stretched):
        storage = select(storage, tuple(0 if stretches else slice(None) for stretches in stretched))
    return statement.access(storage, used)


def _settled(op: str, arguments: Sequence[Argument]) -> list[Storage | Scalar]:
    """Decide what each number becomes.

    A number is an operand of order 0 where its value does not matter to the result's format, so that one kernel serves all
    numbers. Beside a sparse tensor that it does not scale it is a literal: only then is the result's fill known.
    """
    storages = [argument for argument in arguments if isinstance(argument, Storage)]
    as_literals = op in ("power", "where") or (not all(storage.format.is_dense for storage in storages) and not _scales(op, arguments))
    weak = _weak(arguments)
    common = algebra.compute_dtype("add" if compares_complex(op, weak) else op, weak)
    # Whole numbers are compared as they are: the dtype to which they promote may not hold them.
    exact = op in algebra.COMPARISONS and all(np.result_type(kind).kind in "biu" for kind in weak)
    settled: list[Storage | Scalar] = []
    for argument in arguments:
        match argument:
            case Storage():
                promotes = any(isinstance(other, np.generic) for other in arguments) and as_literals and op != "where" and not exact
                settled.append(cast(argument, common) if promotes and argument.dtype != common else argument)
            case np.generic():
                value_dtype(argument.dtype)
                settled.append(argument.item() if as_literals else dense_storage(np.asarray(argument)))
            case _:
                settled.append(argument if as_literals else dense_storage(np.asarray(argument, None if exact else common)))
    return settled


def _weak(arguments: Sequence[Argument]) -> list[DType | Scalar]:
    """What promotes: dtypes, and Python's numbers as they are."""
    return [argument.dtype if isinstance(argument, (Storage, np.generic)) else argument for argument in arguments]


def _scales(op: str, arguments: Sequence[Argument]) -> bool:
    """Whether the absent entries of the one tensor decide the result, whatever the number is."""
    return any(
        isinstance(argument, Storage) and algebra.annihilates(op, position, argument.fill) for position, argument in enumerate(arguments)
    )
