"""The dense oracle: what a statement of index notation means, point by point.

It shares no code with concretisation or lowering. Every index variable of the statement has an axis of its own; a
sub-expression is an array with size one along the axes it does not depend on, so NumPy's broadcasting does the loops.

Beside each value stands whether the point is *absent*: stored by no sparse operand that could tell. The rules are few.

* An operand is absent where it stores nothing; its value there is its fill.
* A number is never absent, but it is *constant*: it does not make a result present. One that stands alone is the fill of the result.
* An absent argument whose value annihilates the operation decides the result, which is absent too: 0 * inf is 0 there.
* Any other result is absent if all arguments are absent or constant, and one is absent.
* A reduction is absent as its operator is on two arguments: where one absent term annihilates, which then is the value; or where all
  terms are absent and two of them make the same value as one. Over nothing it is its identity, which is present unless it is the fill.
* In the end, whatever is not the fill of the result is present.

Operands in halves are float32 from the first, and a result in a half is rounded last of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import DType, computed
from sparseloom.core.errors import CompilerBug, ShapeError
from sparseloom.core.trees import walk
from sparseloom.notation.contents import holds_padding
from sparseloom.notation.dtyping import cast, fill_of
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Fixed, IndexVar, Literal, Reduce
from sparseloom.notation.terms import free_variables


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor as a dense array, with the places that are stored and the value of the others."""

    values: NDArray[Any]
    present: NDArray[np.bool_]
    fill: Scalar = 0

    @classmethod
    def full(cls, values: Any) -> Operand:
        """An operand that stores every place."""
        array = np.asarray(values)
        return cls(array, np.ones(array.shape, bool))


@dataclass(frozen=True, eq=False)
class Result:
    """The values of the left side, which of them were computed rather than left out, and what the others are."""

    values: NDArray[Any]
    present: NDArray[np.bool_]
    fill: Scalar


def evaluate(
    assign: Assign,
    operands: Mapping[str, Operand],
    sizes: Mapping[str, int],
    dtype: DType | None = None,
    initial: Operand | None = None,
) -> Result:
    """Run a statement whose reductions are explicit.

    ``sizes`` gives the extent of every variable by name. The result has ``dtype``, or else the stored dtype of the left side's
    tensor. A statement that accumulates starts from ``initial``, or else from nothing stored.
    """
    unbound = [str(var) for var in free_variables(assign.rhs) if var not in assign.lhs.indices]
    if unbound:
        raise CompilerBug(assign, f"every reduction must be explicit, also that over {', '.join(unbound)}")
    stored_dtype = assign.lhs.tensor.stored_dtype if dtype is None else dtype
    result_dtype = computed(stored_dtype)
    space = _Space(assign, operands, sizes)
    value = space.value(assign.rhs)
    fill = fill_of(assign.rhs)
    reaches_all = len(set(assign.lhs.indices)) == len(assign.lhs.indices)
    if assign.op is None:
        # A repeated variable leaves places to which nothing is assigned; they are no more than the tensor's own fill.
        known = cast(fill if fill is not None and reaches_all else assign.lhs.tensor.fill, result_dtype)
        return _stored(_place(assign.lhs.indices, space, value, result_dtype, known), stored_dtype)
    addend = _place(assign.lhs.indices, space, value, result_dtype, algebra.identity(assign.op, result_dtype))
    return _stored(_accumulate(assign.op, initial or _nothing(addend), addend, fill if reaches_all else None), stored_dtype)


@dataclass(frozen=True, eq=False)
class _Value:
    """The values of a sub-expression. ``kind`` is their dtype, or for a constant the number itself, which promotes weakly."""

    values: NDArray[Any]
    absent: NDArray[np.bool_]
    kind: DType | Scalar

    @property
    def is_constant(self) -> bool:
        return not isinstance(self.kind, np.dtype)


def _extent(var: IndexVar, sizes: Mapping[str, int]) -> int:
    if var.name not in sizes:
        raise ShapeError(f"the extent of {var} is not known; give it as sizes={{{var.name!r}: ...}}")
    return sizes[var.name]


class _Space:
    """All points of a statement: one axis per variable."""

    def __init__(self, assign: Assign, operands: Mapping[str, Operand], sizes: Mapping[str, int]) -> None:
        variables = tuple(dict.fromkeys(found for found in walk(assign) if isinstance(found, IndexVar)))
        self.operands = operands
        self.axis = {var: axis for axis, var in enumerate(var for var in variables if not isinstance(var, Fixed))}
        self.extent = {var: _extent(var, sizes) for var in variables}

    def coordinates(self, var: IndexVar) -> NDArray[np.int64]:
        """All values of a variable, along its axis; or the one of a number."""
        shape = [1] * len(self.axis)
        if isinstance(var, Fixed):
            return np.full(shape, var.value)
        shape[self.axis[var]] = -1
        return np.arange(self.extent[var]).reshape(shape)

    def value(self, expr: Expr) -> _Value:
        match expr:
            case Access():
                return self.access(expr)
            case Literal(value):
                return self.constant(value)
            case Apply():
                return self.apply(expr)
            case Reduce():
                return self.reduce(expr)
        raise CompilerBug(expr, "an expression is an Access, a Literal, an Apply or a Reduce")

    def access(self, access: Access) -> _Value:
        tensor, operand = access.tensor, self.operands[access.tensor.name]
        expected = tuple(self.extent[var] for var in access.indices)
        if operand.values.shape != expected or operand.present.shape != expected:
            raise ShapeError(f"{tensor.name} has shape {operand.values.shape}, but its indices have extents {expected}")
        present = operand.present if tensor.may_be_absent else np.ones(expected, bool)
        values = np.where(present, operand.values, np.asarray(operand.fill).astype(operand.values.dtype)).astype(tensor.dtype)
        place = tuple(self.coordinates(var) for var in access.indices)
        return _Value(np.asarray(values[place]), np.asarray(~present[place]), tensor.dtype)

    def constant(self, value: Scalar) -> _Value:
        return _Value(np.asarray(value), np.asarray(False), value)

    def apply(self, apply: Apply) -> _Value:
        args = [self.value(arg) for arg in apply.args]
        kinds = [arg.kind for arg in args]
        numbers = [kind for kind in kinds if not isinstance(kind, np.dtype)]
        if len(numbers) == len(kinds):
            return self.constant(algebra.constant(apply.op, numbers))
        dtype = algebra.result_dtype(apply.op, kinds)
        computed = algebra.compute(apply.op, [arg.values for arg in args], algebra.compute_dtype(apply.op, kinds))
        values = np.asarray(computed).astype(dtype)
        absent = np.logical_and.reduce(np.broadcast_arrays(*(arg.absent | arg.is_constant for arg in args)))
        for position, arg in reversed(list(enumerate(args))):  # the first argument that decides is written last
            decided = _annihilating(apply, position, arg)
            if decided.any():
                values = np.where(decided, arg.values.astype(dtype), values)
                absent = absent | decided
        if apply.zero is not None:
            for arg, part in zip(args, apply.args, strict=True):
                if not arg.is_constant and holds_padding(part):  # which is not multiplied, entry or not
                    values = np.where(_same(arg.values, apply.zero), np.asarray(apply.zero).astype(dtype), values)
        return _Value(values, absent, dtype)

    def reduce(self, reduce: Reduce) -> _Value:
        body = self.value(reduce.body)
        own = body.values.dtype
        dtype = algebra.compute_dtype(reduce.op, (own, own))
        identity = algebra.identity(reduce.op, dtype)
        axes = tuple(self.axis[var] for var in reduce.variables)
        shape = list(body.values.shape) or [1] * len(self.axis)
        for var in reduce.variables:
            shape[self.axis[var]] = self.extent[var]
        values = np.broadcast_to(body.values.astype(dtype), shape)
        absent = np.broadcast_to(body.absent, shape)
        function: np.ufunc = getattr(np, reduce.op)
        with np.errstate(all="ignore"):
            folded = function.reduce(values, axis=axes, dtype=dtype, keepdims=True, initial=identity)
        decided = np.broadcast_to(_annihilating(Apply(reduce.op, ()), 0, _Value(values, absent, dtype)), shape)
        if decided.any():
            (decider,) = np.unique(values[decided])
            one = np.asarray(decided.any(axis=axes, keepdims=True))
            return _Value(np.where(one, decider, folded), one, dtype)
        fill = fill_of(reduce)
        has_terms = all(self.extent[var] > 0 for var in reduce.variables)
        may_be_absent = fill is not None and (has_terms or bool(_same(np.asarray(identity), fill)))
        return _Value(folded, np.asarray(absent.all(axis=axes, keepdims=True) & may_be_absent), dtype)


def _annihilating(apply: Apply, position: int, arg: _Value) -> NDArray[np.bool_]:
    """Where an argument is absent and decides the result alone."""
    decided = np.zeros(arg.values.shape, bool)
    for value in np.unique(arg.values[np.broadcast_to(arg.absent, arg.values.shape)]):
        if algebra.annihilates(apply.op, position, value.item(), apply.zero):
            decided |= arg.absent & _same(arg.values, value)
    return decided


def _same(values: NDArray[Any], value: Any) -> NDArray[np.bool_]:
    """Equality in which nan equals nan."""
    same: NDArray[np.bool_] = values == value if value == value else values != values
    return same


def _place(indices: tuple[IndexVar, ...], space: _Space, value: _Value, dtype: DType, fill: Scalar) -> Result:
    """Put the values of the right side where the left side's indices say; ``B(i,i)`` writes the diagonal."""
    points = tuple(space.extent[var] if var in indices else 1 for var in space.axis)
    with np.errstate(all="ignore"):
        computed = value.values.astype(dtype)
    shape = tuple(space.extent[var] for var in indices)
    values, present = np.full(shape, fill, dtype), np.zeros(shape, bool)
    place = tuple(np.broadcast_to(space.coordinates(var), points) for var in indices)
    values[place] = computed if indices else computed.reshape(())
    stored = ~value.absent & (not value.is_constant)
    present[place] = stored if indices else stored.reshape(())
    return Result(values, present, fill)


def _nothing(like: Result) -> Operand:
    """A tensor that stores nothing, and whose entries are all the fill of ``like``."""
    return Operand(np.full_like(like.values, like.fill), np.zeros(like.values.shape, bool), like.fill)


def _accumulate(op: str, initial: Operand, addend: Result, fill: Scalar | None) -> Result:
    """``initial op addend``, in the dtype of the result. ``fill`` is that of the right side, if it is known and reaches every place."""
    dtype = addend.values.dtype
    if initial.values.shape != addend.values.shape:
        raise ShapeError(f"the initial value has shape {initial.values.shape}, but the result has {addend.values.shape}")
    before = np.where(initial.present, initial.values, np.asarray(initial.fill).astype(initial.values.dtype))
    values = np.asarray(algebra.compute(op, (before, addend.values), dtype))
    after = initial.fill if fill is None else algebra.compute(op, (initial.fill, fill), dtype)
    return Result(values, initial.present | addend.present, cast(after, dtype))


def _stored(result: Result, dtype: DType) -> Result:
    """The result as it is stored, in which whatever is not the fill must be present."""
    with np.errstate(all="ignore"):
        values, fill = result.values.astype(dtype, copy=False), cast(result.fill, dtype)
    return Result(values, result.present | ~_same(values, fill), fill)
