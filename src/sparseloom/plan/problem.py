"""A problem: a statement made definite. Formats, dtypes and extents are settled, and what the user asked for is with it.

y(i) = A(i,j) * x(j)     A: csr, float64     i: 1000, j: 2000     schedule: split(i,i0,i1,4)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sparseloom.core.algebra import negative_power
from sparseloom.core.dtypes import INT32, DType, computed, is_integer, promoted, widest, width_for
from sparseloom.core.errors import DTypeError, NotationError, ShapeError
from sparseloom.core.once import cached_property
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.formats.format import Format
from sparseloom.formats.storage import Storage
from sparseloom.iteration.defaults import default_format
from sparseloom.iteration.rows import RowKind
from sparseloom.notation import printer
from sparseloom.notation.contents import accesses_in, reductions_in, variables_in
from sparseloom.notation.dtyping import (
    compute_dtype_of,
    constant_of,
    dtype_of,
    reduced_dtype,
    result_fill,
    stored_dtype_of,
    with_sums_in,
)
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Fixed, IndexVar, Reduce, TensorVar
from sparseloom.targets.c import C
from sparseloom.targets.target import Target

MOST_SPARSE = 500
USUAL = 1000  # how far variables run where nothing is said


class Shaped(Protocol):
    """What must be known of an operand to pose a problem: a storage, or one that is still to be made."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its modes."""

    @property
    def index_dtype(self) -> DType | None:
        """The dtype of its index arrays, if it has any."""

    @property
    def dtype(self) -> DType:
        """The dtype of its values."""


@dataclass(frozen=True)
class Problem:
    """What is to be computed. ``statement`` is as it was given, with explicit reductions; ``assign`` has the result settled too."""

    statement: Assign
    assign: Assign
    extents: tuple[tuple[str, int], ...]
    narrowest: DType  # what holds every coordinate
    dtype: DType | None = None
    schedule: str | None = None  # the user's own; none is the planner's, an empty one leaves the loops as they are
    workspace: RowKind | None = None
    target: Target = C
    is_stored: bool = True  # whether the operands are at hand, and not only their formats

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The extent of every variable."""
        return dict(self.extents)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(self.sizes[var.name] for var in self.assign.lhs.indices)

    @cached_property
    def is_empty(self) -> bool:
        """Whether something is reduced over nothing."""
        reduced = (v for n in reductions_in(self.assign) for v in n.variables)
        return not all(self.sizes[v.name] for v in reduced)

    def without_schedule(self) -> Problem:
        """The same in plain loops."""
        return replace(self, schedule="")

    def widened(self, dtype: DType) -> Problem:
        """The same with wider positions in the result."""
        return replace(self, assign=with_index_dtype(self.assign, dtype), narrowest=dtype)


def pose(
    statement: Assign,
    operands: Mapping[str, Shaped],
    int32_limit: int,
    format: Format | None = None,
    dtype: DType | None = None,
    sizes: Mapping[str, int] | None = None,
    schedule: str | None = None,
    workspace: RowKind | None = None,
    target: Target = C,
) -> Problem:
    """The problem of a statement on real operands, with the initial value under the result's name for ``+=``."""
    found = find_extents(statement, operands, sizes or {})
    dtype = _beside_initial(statement, operands, dtype)
    narrowest = width_for(max((*found.values(), 0)), int32_limit)
    width = widest((narrowest, *(storage.index_dtype for storage in operands.values())))
    assign = with_index_dtype(resolve(statement, format, dtype), width)
    return Problem(statement, assign, tuple(found.items()), narrowest, dtype, schedule, workspace, target)


def _beside_initial(statement: Assign, operands: Mapping[str, Shaped], dtype: DType | None) -> DType | None:
    """The dtype of a result that holds what it is added to as well; as it was asked for where that is enough.

    What accumulates truth values takes the initial value as truth values.
    """
    initial = operands.get(statement.lhs.tensor.name)
    if dtype is not None or statement.op is None or initial is None or statement.op.startswith("logical"):
        return dtype
    own = own_dtype(statement)
    common = promoted((own, initial.dtype))
    return None if common == own else common


def pose_without_data(
    statement: Assign,
    int32_limit: int,
    format: Format | None,
    dtype: DType | None,
    schedule: str | None,
    workspace: RowKind | None,
    target: Target = C,
) -> Problem:
    """The problem as it would be for operands of usual size."""
    usual = {var.name: USUAL for var in variables_in(statement)}
    return replace(pose(statement, {}, int32_limit, format, dtype, usual, schedule, workspace, target), is_stored=False)


def declared(name: str, storage: Storage) -> TensorVar:
    """A storage as the compiler sees it: everything but its sizes and its data."""
    return TensorVar(name, len(storage.shape), storage.format, storage.dtype, storage.index_dtype, storage.fill)


def usually_stored(name: str, format: Format, dtype: DType) -> TensorVar:
    """An operand without data, as most are stored: with index arrays of 32 bits, if it has any."""
    is_indexed = any(level.array_names for level in format.levels)
    return TensorVar(name, format.order, format, dtype, INT32 if is_indexed else None)


def find_extents(assign: Assign, operands: Mapping[str, Shaped], sizes: Mapping[str, int]) -> dict[str, int]:
    """The extent of every variable; operands that disagree are rejected."""
    _check_sizes(assign, sizes)
    found = dict(sizes)
    origin = dict.fromkeys(sizes, "sizes")
    for access in accesses_in(assign):
        storage = operands.get(access.tensor.name)
        if storage is None:
            continue
        for mode, (var, size) in enumerate(zip(access.indices, storage.shape, strict=True)):
            here = f"mode {mode} of {access.tensor.name}"
            if found.setdefault(var.name, size) != size:
                raise ShapeError(
                    f"{var} runs to {found[var.name]} in {origin[var.name]}, but to {size} in {here}\n  in {printer.show(assign)}"
                )
            if isinstance(var, Fixed) and var.value >= size:
                where = f"{printer.show(access)} is outside of {access.tensor.name}, whose mode {mode} has {size} coordinates"
                raise ShapeError(f"{where}\n  in {printer.show(assign)}\n  help: they are counted from 0")
            origin.setdefault(var.name, here)
    for var in variables_in(assign):
        if var.name not in found:
            raise ShapeError(f"nothing says how far {var} runs\n  in {printer.show(assign)}\n  help: give it with sizes={{'{var}': n}}")
    return found


def _check_sizes(assign: Assign, sizes: Mapping[str, int]) -> None:
    """Refuse extents of variables that the statement does not have, and those that are no numbers of places."""
    known = {var.name: not isinstance(var, Fixed) for var in variables_in(assign)}
    for name, size in sizes.items():
        if name not in known:
            variables = ", ".join(sorted(name for name, is_variable in known.items() if is_variable))
            raise ShapeError(f"sizes names {name!r}, but the variables are {variables}\n  in {printer.show(assign)}")
        if not isinstance(size, int) or size < 0:
            raise ShapeError(f"sizes says that {name} runs to {size!r}; a size is a whole number, at least 0\n  in {printer.show(assign)}")
        if size >= 2**63:
            raise ShapeError(f"sizes says that {name} runs to 2**63 or further, and coordinates have 64 bits\n  in {printer.show(assign)}")


def known_sizes(sizes: Mapping[str, int] | None) -> dict[str, int]:
    """Extents by variable, as Python's own numbers; anything but numbers is rejected."""
    if sizes is None:
        return {}
    if not isinstance(sizes, Mapping):
        raise ShapeError(f"sizes is a mapping from variables to extents, such as {{'i': 10}}, not a {type(sizes).__name__}")
    found: dict[str, Any] = {}
    for name, size in sizes.items():
        if not isinstance(name, str | IndexVar):
            raise ShapeError(f"sizes names variables, and {name!r} is a {type(name).__name__}\n  help: write sizes={{'i': 10}}")
        given: Any = size
        if not isinstance(given, int | float | np.number):
            raise ShapeError(f"sizes says that {name} runs to a {type(size).__name__}; a size is a whole number, at least 0")
        found[str(name)] = int(given) if isinstance(given, np.integer) else given
    return found


def check_length(assign: Assign) -> None:
    """Refuse so many sparse operands that compiling the loop which merges them would take minutes."""
    sparse = sum(not access.tensor.format.is_dense for access in accesses_in(assign.rhs))
    if sparse > MOST_SPARSE:
        raise NotationError(
            f"the statement reads sparse operands {sparse} times, and {MOST_SPARSE} is the limit\n"
            "  help: compute it in several statements, and add to the result with +="
        )


def check_powers(assign: Assign) -> None:
    """Reject integers to a power that is a negative whole number, as NumPy does. Among numbers alone it is Python's: 2**-1 is 0.5."""
    for found in walk(assign.rhs):
        match found:
            case Apply("power", (_, exponent)) if type(number := constant_of(exponent)) is int and number < 0:
                if constant_of(found) is None and is_integer(compute_dtype_of(found)):
                    raise negative_power(printer.show(found), f"a float as the exponent, {float(number)}")


def resolve(assign: Assign, format: Format | None, dtype: DType | None) -> Assign:
    """Settle the result's format, dtype and fill."""
    check_length(assign)
    if dtype is not None and any(dtype_of(part) != computed(dtype) for part in _partial_results(assign.rhs)):
        assign = Assign(assign.lhs, _with_room(assign.rhs, dtype), assign.op)
    check_powers(assign)
    form = default_format(assign) if format is None else format
    own = own_dtype(assign)
    if dtype is not None and assign.op is not None and own.kind == "b" != dtype.kind and assign.op.startswith("logical"):
        raise DTypeError(f"{assign.op} accumulates truth values, so the result cannot be {dtype}\n  help: leave dtype= away")
    tensor = TensorVar(assign.lhs.tensor.name, len(assign.lhs.indices), form, dtype or own, fill=result_fill(assign, dtype or own))
    return Assign(Access(tensor, assign.lhs.indices), assign.rhs, assign.op)


def own_dtype(assign: Assign) -> DType:
    """The default dtype of a result: that to which its operands promote, as they are stored."""
    if assign.op is None:
        return stored_dtype_of(assign.rhs)
    reduced = reduced_dtype(assign.op, assign.rhs)
    stored = stored_dtype_of(assign.rhs)
    return stored if computed(stored) == reduced else reduced


def _partial_results(rhs: Expr) -> Iterator[Expr]:
    """The right side, and what is computed on the way to it."""
    yield rhs
    yield from (found for found in walk(rhs) if isinstance(found, Apply | Reduce))


def _with_room(rhs: Expr, dtype: DType) -> Expr:
    """The right side with its operands converted first, where that loses nothing: sums then have the room that was asked for.

    Where an operator is not defined on that dtype (max, on complex numbers), only the result is converted.
    """
    room = computed(dtype)

    def rule(found: Node) -> Node | None:
        if isinstance(found, Access) and found.tensor.dtype != room and np.can_cast(found.tensor.dtype, room):
            return Apply(f"as_{room.name}", (found,))
        return None

    converted: Expr = rewrite(with_sums_in(room, rhs), rule)
    try:
        dtype_of(converted)
    except DTypeError:
        return rhs
    return converted


def with_index_dtype(assign: Assign, dtype: DType) -> Assign:
    """The statement with the result's index arrays in this width."""
    tensor = replace(assign.lhs.tensor, index_dtype=dtype)
    return Assign(Access(tensor, assign.lhs.indices), assign.rhs, assign.op)
