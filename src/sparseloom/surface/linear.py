"""Linear algebra on whole tensors: products written as index notation, diagonals and triangles, Kronecker products."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from sparseloom.core.dtypes import promoted, value_dtype
from sparseloom.core.errors import DTypeError, NotationError, ShapeError
from sparseloom.formats.format import Format
from sparseloom.formats.named import csc, csr
from sparseloom.formats.room import require_array
from sparseloom.notation.nodes import Apply, Reduce
from sparseloom.surface import structure
from sparseloom.surface.entries import (
    Entries,
    are_dense,
    by_numpy,
    entries_of,
    format_for,
    in_format,
    mode_of,
    modes_of,
    on_host,
    tensor_of,
)  # fmt: skip
from sparseloom.surface.shape import broadcast_to, expand_dims, ravel
from sparseloom.tensor import functions
from sparseloom.tensor.operators import Statement, variables
from sparseloom.tensor.table import offered, stands_for
from sparseloom.tensor.tensor import Tensor


@offered("linear algebra", methods=None, standard="")
def matmul(x: Any, y: Any, /) -> Tensor:
    """The product of matrices, or of stacks of them: ``x @ y``.

    >>> sl.matmul(sl.eye(2), [[1.0], [2.0]]).to_numpy()
    array([[1.],
           [2.]])
    """
    return tensor_of(x) @ y  # type: ignore[no-any-return]


@offered("linear algebra", methods=None)
def dot(x: Any, y: Any, /, out: Any = None) -> Any:
    """NumPy's dot: the sum over the last mode of the one and the last but one of the other.

    >>> sl.dot(sl.eye(2), [3.0, 4.0]).to_numpy()
    array([3., 4.])
    """
    return tensor_of(x).dot(y)


@offered("linear algebra", methods=None, standard="")
def tensordot(x: Any, y: Any, /, axes: Any = 2) -> Tensor:
    """The sum over pairs of modes of two tensors: so many, the last of the one and the first of the other, or those that are named.

    >>> sl.tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    left, right = tensor_of(x), tensor_of(y)
    first, second = _contracted(axes, left.ndim, right.ndim)
    if [left.shape[mode] for mode in first] != [right.shape[mode] for mode in second]:
        raise ShapeError(f"tensordot cannot sum over modes {first} of {left.shape} and {second} of {right.shape}: their sizes differ")
    outer = left.ndim + right.ndim - 2 * len(first)
    free = list(variables(outer + len(first)))
    summed = free[outer:]
    return _contraction(left, right, first, second, free[:outer], summed)


def _contracted(axes: Any, left: int, right: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The modes that are summed over, of the one and of the other."""
    if isinstance(axes, (tuple, list)):
        first, second = modes_of(axes[0], left), modes_of(axes[1], right)
    else:
        count = operator.index(axes)
        if not 0 <= count <= min(left, right):
            raise ShapeError(f"tensordot cannot sum over {count} modes of tensors that have {left} and {right}")
        first, second = tuple(range(left - count, left)), tuple(range(count))
    if len(first) != len(second):
        raise ShapeError(f"tensordot sums over pairs of modes, not over {len(first)} and {len(second)}")
    return first, second


def _contraction(
    left: Tensor, right: Tensor, first: Sequence[int], second: Sequence[int], free: Sequence[Any], summed: Sequence[Any]
) -> Tensor:
    """The statement of a tensordot, computed."""
    statement, names = Statement(), iter(free)
    mine = [summed[first.index(mode)] if mode in first else next(names) for mode in range(left.ndim)]
    theirs = [summed[second.index(mode)] if mode in second else next(names) for mode in range(right.ndim)]
    factors = statement.access(left.storage, mine), statement.access(right.storage, theirs)
    product = Apply("multiply", factors)
    sizes = dict(zip((*mine, *theirs), (*left.shape, *right.shape), strict=True))
    return Tensor(statement.run(free, Reduce("add", tuple(summed), product) if summed else product, [sizes[var] for var in free]))


@offered("linear algebra", methods=None)
def outer(x: Any, y: Any, /, out: Any = None) -> Tensor:
    """All products of a value of the one and a value of the other, as a matrix.

    >>> sl.outer([1, 2], [3, 4]).to_numpy()
    array([[3, 4],
           [6, 8]])
    """
    return tensordot(ravel(x), ravel(y), 0)


@offered("linear algebra", methods=None)
def inner(x: Any, y: Any, /) -> Any:
    """The sum over the last modes of both.

    >>> float(sl.inner([1.0, 2.0], [3.0, 4.0]))
    11.0
    """
    left, right = tensor_of(x), tensor_of(y)
    return left * right if not left.ndim or not right.ndim else tensordot(left, right, (-1, -1))


@offered("linear algebra", methods=None)
def vdot(x: Any, y: Any, /) -> Any:
    """The sum of the products of all values, the first ones conjugated.

    >>> complex(sl.vdot([1j], [2j]))
    (2+0j)
    """
    return tensordot(ravel(tensor_of(x).conj()), ravel(y), 1).to_numpy()[()]


@offered("linear algebra", methods=None, standard="")
def vecdot(x: Any, y: Any, /, axis: int = -1) -> Tensor:
    """The sum of products along a mode, the first ones conjugated; the other modes broadcast.

    >>> sl.vecdot([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).to_numpy()
    array([3., 7.])
    """
    left, right = tensor_of(x), tensor_of(y)
    if left.shape[mode_of(axis, left.ndim)] != right.shape[mode_of(axis, right.ndim)]:
        raise ShapeError(f"vecdot cannot sum over mode {axis} of {left.shape} and {right.shape}: their sizes differ")
    product = functions.multiply(left.conj(), right)
    return product.sum(axis, product.dtype)  # type: ignore[no-any-return]


@offered("linear algebra", methods=None)
def kron(x: Any, y: Any, /, format: Format | str | None = None) -> Tensor:
    """The Kronecker product: a copy of the second tensor, scaled, for every value of the first.

    >>> sl.kron(sl.eye(2), [[1.0, 2.0]]).to_numpy()
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.]])
    """
    left, right = tensor_of(x), tensor_of(y)
    common = value_dtype(promoted([left.dtype, right.dtype]))
    left, right = left.astype(common, copy=False), right.astype(common, copy=False)
    order = max(left.ndim, right.ndim)
    left, right = (expand_dims(t, tuple(range(order - t.ndim))) if t.ndim < order else t for t in (left, right))
    shape = tuple(m * n for m, n in zip(left.shape, right.shape, strict=True))
    if are_dense(left, right) or left.fill != 0 or right.fill != 0:
        require_array(shape, common.itemsize)
        return in_format(by_numpy(np.kron, left, right), format)
    if order == 2 and left.format == csc:
        return in_format(kron(left.T, right.T).T, format)
    if order == 2:
        rowwise = [on_host(t if t.format == csr else t.to("csr")) for t in (left, right)]
        like = right.format if left.format.is_dense else left.format
        if (made := structure.kron(*rowwise)) is not None:
            return in_format(Tensor(made), format_for(shape, len(made.values), like) if format is None else format)
    a, b = entries_of(left), entries_of(right)
    rows, columns = np.repeat(np.arange(a.count), b.count), np.tile(np.arange(b.count), a.count)
    values = a.values[rows] * b.values[columns]
    coordinates = a.coordinates[:, rows] * np.array(right.shape, np.int64)[:, None] + b.coordinates[:, columns]
    like = a.like if not left.format.is_dense else b.like
    return in_format(Entries(shape, coordinates, values, 0, like).tensor(), format)


@offered("linear algebra")
def diagonal(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The values whose coordinates in two modes differ by ``offset``, in a last mode of their own.

    >>> sl.diagonal([[1, 2], [3, 4]]).to_numpy()
    array([1, 4])
    """
    tensor = tensor_of(x)
    if tensor.ndim < 2:
        raise ShapeError(f"a tensor of shape {tensor.shape} has no diagonal: two modes are needed")
    one, other = mode_of(axis1, tensor.ndim), mode_of(axis2, tensor.ndim)
    if one == other:
        raise ShapeError("a diagonal runs through two different modes")
    if are_dense(tensor):
        return by_numpy(np.diagonal, tensor, offset, one, other)  # type: ignore[no-any-return]
    if (found := structure.on_diagonal(on_host(tensor), offset, one, other)) is not None:
        return Tensor(found)
    entries = entries_of(tensor)
    kept = entries.chosen(entries.coordinates[other] - entries.coordinates[one] == offset)
    rest = [mode for mode in range(tensor.ndim) if mode not in (one, other)]
    length = max(0, min(tensor.shape[one] + min(offset, 0), tensor.shape[other] - max(offset, 0)))
    along = kept.coordinates[one] + min(offset, 0)
    return kept.moved([*(tensor.shape[m] for m in rest), length], [*(kept.coordinates[m] for m in rest), along]).tensor()


@offered("linear algebra")
def trace(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of a diagonal.

    >>> float(sl.trace(sl.eye(3)))
    3.0
    """
    found = diagonal(x, offset, axis1, axis2)
    return found.sum(None if found.ndim == 1 else -1, dtype)


@offered("linear algebra", methods=None)
def diag(x: Any, /, k: int = 0) -> Tensor:
    """The matrix that has a vector on its diagonal, or the diagonal of a matrix. Of a dense vector, too, it is sparse.

    >>> sl.diag([1, 2]).to_numpy()
    array([[1, 0],
           [0, 2]])
    """
    tensor = tensor_of(x)
    if tensor.ndim != 1:
        if tensor.ndim != 2:
            raise ShapeError(f"diag takes a vector or a matrix, not a tensor of shape {tensor.shape}")
        return diagonal(tensor, k)
    entries = entries_of(tensor)
    size = tensor.shape[0] + abs(k)
    if entries.fill != 0:
        require_array((size, size), tensor.dtype.itemsize)
        return by_numpy(np.diag, tensor, k)  # type: ignore[no-any-return]
    return entries.moved((size, size), (entries.coordinates[0] - min(k, 0), entries.coordinates[0] + max(k, 0))).tensor()


def _triangle(x: Any, k: int, lower: bool) -> Tensor:
    tensor = tensor_of(x)
    name = "tril" if lower else "triu"
    if not tensor.ndim:
        raise DTypeError(f"{name} needs a tensor of at least one mode, not a number")
    if tensor.ndim == 1:
        tensor = broadcast_to(tensor, tensor.shape * 2)  # in every row the same, as in NumPy
    if are_dense(tensor) or tensor.fill != 0:
        require_array(tensor.shape, tensor.dtype.itemsize)
        return by_numpy(getattr(np, name), tensor, k)  # type: ignore[no-any-return]
    if (made := structure.triangle(on_host(tensor), k, lower)) is not None:
        return Tensor(made)
    entries = entries_of(tensor)
    apart = entries.coordinates[-1] - entries.coordinates[-2]
    return entries.chosen(apart <= k if lower else apart >= k).tensor()


@offered("linear algebra", methods=None, standard="")
def tril(x: Any, /, k: int = 0, format: Format | str | None = None) -> Tensor:
    """The lower triangle: what is not above the ``k``-th diagonal of the last two modes.

    >>> sl.tril([[1, 2], [3, 4]]).to_numpy()
    array([[1, 0],
           [3, 4]])
    """
    return in_format(_triangle(x, k, True), format)


@offered("linear algebra", methods=None, standard="")
def triu(x: Any, /, k: int = 0, format: Format | str | None = None) -> Tensor:
    """The upper triangle: what is not below the ``k``-th diagonal of the last two modes.

    >>> sl.triu([[1, 2], [3, 4]]).to_numpy()
    array([[1, 2],
           [0, 4]])
    """
    return in_format(_triangle(x, k, False), format)


@offered("linear algebra", methods=None)
def matrix_power(x: Any, n: int, /) -> Tensor:
    """A square matrix, or a stack of them, multiplied by itself so many times, by repeated squaring.

    >>> sl.matrix_power(2 * sl.eye(2), 3).to_numpy()
    array([[8., 0.],
           [0., 8.]])
    """
    tensor = tensor_of(x)
    if tensor.ndim < 2 or tensor.shape[-2] != tensor.shape[-1] or n < 0:
        raise ShapeError(f"matrix_power needs square matrices and a power of at least 0, not shape {tensor.shape} and {n}")
    if n == 0:
        return broadcast_to(diag(np.ones(tensor.shape[-1], tensor.dtype)), tensor.shape)
    if n == 1:
        return +tensor
    made: Tensor | None = None
    while n:
        if n % 2:
            made = tensor if made is None else made @ tensor
        tensor, n = (tensor @ tensor, n // 2) if n > 1 else (tensor, 0)
    return made if made is not None else tensor


def _require_whole_path(optimize: Any, count: int) -> None:
    """Refuse a path of contractions, as ``np.einsum_path`` gives it, that does not end with one tensor."""
    if not isinstance(optimize, (list, tuple)) or not optimize or optimize[0] != "einsum_path":
        return
    left = count - sum(len(step) - 1 for step in optimize[1:])
    if left != 1:
        raise NotationError(f"the path {list(optimize[1:])} leaves {left} of {count} operands, and one must be left")


_ORDERS = ("C", "F", "A", "K")
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


@stands_for("einsum")
def einsum_for_numpy(
    *operands: Any, out: Any = None, dtype: Any = None, order: str = "K", casting: Any = "safe", optimize: Any = False
) -> Any:
    """``np.einsum`` where an operand is a tensor: ``sl.einsum`` with NumPy's casting rule. ``order`` says nothing about tensors."""
    if casting not in _CASTINGS or str(order).upper() not in _ORDERS:
        wrong, known = (f"casting={casting!r}", _CASTINGS) if casting not in _CASTINGS else (f"order={order!r}", _ORDERS)
        raise NotationError(f"einsum has no {wrong}; there are {', '.join(known)}")
    _require_whole_path(optimize, len(operands) - 1 if isinstance(operands[0], str) else len(operands) // 2)
    for operand in operands if dtype is not None else ():
        if hasattr(operand, "dtype") and not np.can_cast(operand.dtype, dtype, casting):
            raise DTypeError(f"einsum cannot cast {operand.dtype} to {np.dtype(dtype)} by the rule {casting!r}")
    ours = import_module("sparseloom.calls.evaluation").einsum  # which stands on tensors, and is loaded when NumPy asks for it
    if not isinstance(out, np.ndarray) or dtype is None:
        made = ours(*operands, out=out, dtype=dtype, optimize=optimize or True)
        return made if out is None else out
    made = ours(*operands, dtype=dtype, format="dense", optimize=optimize or True).to_numpy()
    try:
        np.copyto(out, made, casting)
    except TypeError as problem:
        raise DTypeError(f"out cannot hold the result of einsum: {problem}") from None
    return out
