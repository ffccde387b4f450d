"""The kernels that are measured on one matrix or tensor: what each computes, by whom, and what the true answer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.entrants import Entrant
from benchmarks.hand import arrays_of, hand, hand_made, takes
from benchmarks.stand_ins import another, lower, numbers, room
from benchmarks.task import HAND, SAME, Array, Task
from sparseloom.core.dtypes import DType
from sparseloom.tensor.tensor import Tensor

BLOCK = 4  # as in hand.c
PART = 1 << 16  # entries that are looked at together for a reference
Loops = dict[str, Callable[[], Entrant]]


def spmv(matrix: Tensor, width: int) -> Task:
    """y = A x."""
    A, x, y = matrix.to_scipy(), numbers("x", matrix.shape[1], dtype=matrix.dtype), room(matrix.shape[0], dtype=matrix.dtype)
    loops: Loops = {
        SAME: lambda: hand("plain_spmv", y, matrix, x, len(y)),
        HAND: lambda: hand("spmv", y, matrix, x, len(y)),
    }
    return Task("y(i) = A(i,j) * x(j)", {"A": matrix, "x": x}, y, "spmv", (A, x), lambda: double(A) @ double(x), loops)


def spmm(matrix: Tensor, width: int) -> Task:
    """C = A B, B dense."""
    A, B, C = matrix.to_scipy(), _factor("B", matrix, 1, width), room(matrix.shape[0], width, dtype=matrix.dtype)
    loops: Loops = {SAME: lambda: hand("plain_spmm", C, matrix, B, *C.shape)}
    loops |= _if_taken(width, matrix.dtype, lambda: hand("spmm", C, matrix, B, *C.shape))
    return Task("C(i,k) = A(i,j) * B(j,k)", {"A": matrix, "B": B}, C, "spmm", (A, B), lambda: double(A) @ double(B), loops)


def sddmm(matrix: Tensor, width: int) -> Task:
    """A dense product sampled where a sparse matrix has entries."""
    S, C, D, out = matrix.to_scipy(), _factor("C", matrix, 0, width), _factor("D", matrix, 1, width), room(matrix.nnz, dtype=matrix.dtype)
    loops = _if_taken(width, matrix.dtype, lambda: hand("sddmm", out, matrix, C, D, len(C), width))
    statement, operands = "Y(i,j) = S(i,j) * C(i,k) * D(j,k)", {"S": matrix, "C": C, "D": D}
    return Task(statement, operands, "csr", "sddmm", (S, C, D), lambda: _sampled(S, C, D), loops)


def mttkrp(tensor: Tensor, width: int) -> Task:
    """A tensor times two factors, as decompositions need it."""
    C, D, A = _factor("C", tensor, 1, width), _factor("D", tensor, 2, width), room(tensor.shape[0], width, dtype=tensor.dtype)
    loops: Loops = {SAME: lambda: hand("plain_mttkrp", A, tensor, C, D, *A.shape)}
    loops |= _if_taken(width, tensor.dtype, lambda: hand("mttkrp", A, tensor, C, D, *A.shape))

    def reference() -> Array:
        (i, k, l), vals = entries_of(tensor)  # noqa: E741
        return _gathered(A.shape, i, lambda p: vals[p, None] * double(C)[k[p]] * double(D)[l[p]])

    statement, operands = "A(i,r) = B(i,k,l) * C(k,r) * D(l,r)", {"B": tensor, "C": C, "D": D}
    return Task(statement, operands, A, "mttkrp", (tensor, C, D), reference, loops)


def mttkrp4(tensor: Tensor, width: int) -> Task:
    """The same with a tensor of order four."""
    C, D, E = (_factor(name, tensor, mode, width) for mode, name in enumerate("CDE", 1))
    A = room(tensor.shape[0], width, dtype=tensor.dtype)
    loops = _if_taken(width, tensor.dtype, lambda: hand("mttkrp4", A, tensor, C, D, E, *A.shape))

    def reference() -> Array:
        (i, j, k, l), vals = entries_of(tensor)  # noqa: E741
        return _gathered(A.shape, i, lambda p: vals[p, None] * double(C)[j[p]] * double(D)[k[p]] * double(E)[l[p]])

    statement, operands = "A(i,r) = B(i,j,k,l) * C(j,r) * D(k,r) * E(l,r)", {"B": tensor, "C": C, "D": D, "E": E}
    return Task(statement, operands, A, "mttkrp4", (tensor, C, D, E), reference, loops)


def ttv(tensor: Tensor, width: int) -> Task:
    """A tensor times a vector along its last mode; the result has a number for every fibre."""
    c, (pos, crd, vals) = numbers("c", tensor.shape[2], dtype=tensor.dtype), arrays_of(tensor)[-3:]
    out = room(len(pos) - 1, dtype=tensor.dtype)
    loops: Loops = {HAND: lambda: hand("spmv", out, pos, crd, vals, c, len(out))}
    operands = {"B": tensor, "c": c}
    return Task("A(i,j) = B(i,j,k) * c(k)", operands, "ss", "ttv", (tensor, c), lambda: _fibre_sums(tensor, double(c)), loops)


def ttm(tensor: Tensor, width: int) -> Task:
    """A tensor times a matrix along its last mode; the result has a row for every fibre."""
    C, (pos, crd, vals) = _factor("C", tensor, 2, width), arrays_of(tensor)[-3:]
    out = room(len(pos) - 1, width, dtype=tensor.dtype)
    loops = _if_taken(width, tensor.dtype, lambda: hand("spmm", out, pos, crd, vals, C, *out.shape))
    operands = {"B": tensor, "C": C}
    return Task("A(i,j,r) = B(i,j,k) * C(k,r)", operands, "ssd", "ttm", (tensor, C), lambda: _fibre_sums(tensor, double(C)), loops)


def inner(tensor: Tensor, width: int) -> Task:
    """A tensor times a vector along every mode."""
    a, b, c = (numbers(name, size, dtype=tensor.dtype) for name, size in zip("abc", tensor.shape, strict=True))
    s, one = room(dtype=tensor.dtype), room(1, dtype=tensor.dtype)

    def reference() -> Array:
        (i, j, k), vals = entries_of(tensor)
        return np.asarray((vals * double(a)[i] * double(b)[j] * double(c)[k]).sum())

    operands = {"B": tensor, "a": a, "b": b, "c": c}
    loops: Loops = {HAND: lambda: hand("inner", one, tensor, a, b, c)}
    return Task("s = B(i,j,k) * a(i) * b(j) * c(k)", operands, s, "inner", (tensor, a, b, c), reference, loops)


def product(matrix: Tensor, width: int) -> Task:
    """A A, both sparse, its rows sorted."""
    A = matrix.to_scipy()
    loops: Loops = {HAND: lambda: hand_made("product", A, matrix, matrix, *A.shape)}
    expected = A @ A
    return Task("C(i,k) = A(i,j) * B(j,k)", {"A": matrix, "B": matrix}, "csr", "product", (A, A), lambda: expected, loops)


def masked(matrix: Tensor, width: int) -> Task:
    """(L L) * L with the entries below the diagonal: triangles are counted so."""
    below = lower(matrix)
    L = below.to_scipy()
    loops: Loops = {HAND: lambda: hand_made("masked", L, below, below, below, *L.shape)}
    expected = (L @ L) * L
    statement, operands = "C(i,j) = M(i,j) * A(i,k) * B(k,j)", {"M": below, "A": below, "B": below}
    return Task(statement, operands, "csr", "masked", (L, L, L), lambda: expected, loops)


def add(matrix: Tensor, width: int) -> Task:
    """A + B."""
    other = another(matrix)
    A, B = matrix.to_scipy(), other.to_scipy()
    return Task("C(i,j) = A(i,j) + B(i,j)", {"A": matrix, "B": other}, "csr", "add", (A, B), lambda: A + B)


def add_three(matrix: Tensor, width: int) -> Task:
    """A + B + C."""
    tensors = {"A": matrix, "B": another(matrix), "C": another(matrix, "a third")}
    A, B, C = (tensor.to_scipy() for tensor in tensors.values())
    loops: Loops = {HAND: lambda: hand_made("add_three", A, *tensors.values(), A.shape[0])}
    return Task("D(i,j) = A(i,j) + B(i,j) + C(i,j)", tensors, "csr", "add_three", (A, B, C), lambda: A + B + C, loops)


def fused(matrix: Tensor, width: int) -> Task:
    """(A + B) x in one loop."""
    other, x, y = another(matrix), numbers("x", matrix.shape[1], dtype=matrix.dtype), room(matrix.shape[0], dtype=matrix.dtype)
    A, B = matrix.to_scipy(), other.to_scipy()
    operands = {"A": matrix, "B": other, "x": x}
    return Task("y(i) = (A(i,j) + B(i,j)) * x(j)", operands, y, "fused", (A, B, x), lambda: (double(A) + double(B)) @ double(x))


def hadamard(matrix: Tensor, width: int) -> Task:
    """(A * B) x, element by element, in one loop."""
    other, x, y = another(matrix), numbers("x", matrix.shape[1], dtype=matrix.dtype), room(matrix.shape[0], dtype=matrix.dtype)
    A, B = matrix.to_scipy(), other.to_scipy()
    loops: Loops = {HAND: lambda: hand("hadamard", y, matrix, other, x, len(y))}
    statement, operands = "y(i) = A(i,j) * B(i,j) * x(j)", {"A": matrix, "B": other, "x": x}
    return Task(statement, operands, y, "hadamard", (A, B, x), lambda: double(A).multiply(double(B)) @ double(x), loops)


def min_plus(matrix: Tensor, width: int) -> Task:
    """One step of shortest paths."""
    A, x, y = matrix.to_scipy(), numbers("x", matrix.shape[1], dtype=matrix.dtype), room(matrix.shape[0], dtype=matrix.dtype)
    loops: Loops = {HAND: lambda: hand("min_plus", y, matrix, x, len(y))}

    def reference() -> Array:
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        least = np.full(A.shape[0], np.inf)
        np.minimum.at(least, rows, double(A).data + double(x)[A.indices])
        return least

    return Task("y(i) = A(i,j) * x(j)", {"A": matrix, "x": x}, y, "min_plus", (A, x), reference, loops, semiring="min_plus")


def block_spmm(matrix: Tensor, width: int) -> Task:
    """C = A B with A in blocks of 4 x 4, where blocks fit."""
    A, B, C = matrix.to_scipy(), _factor("B", matrix, 1, width), room(matrix.shape[0], width, dtype=matrix.dtype)
    blocked = matrix.to(f"bcsr({BLOCK},{BLOCK})")
    sizes = (-(-matrix.shape[0] // BLOCK), width, matrix.shape[1])
    fits = matrix.shape[0] % BLOCK == 0 and takes(width, matrix.dtype)
    loops: Loops = {HAND: lambda: hand("block_spmm", C, blocked, B, *sizes)} if fits else {}
    operands = {"A": blocked, "B": B}
    return Task("C(i,k) = A(i,j) * B(j,k)", operands, C, "block_spmm", (A, B), lambda: double(A) @ double(B), loops)


def attention(matrix: Tensor, width: int) -> Task:
    """Masked attention through einsum, which may choose an order."""
    return replace(sampled_product(matrix, width), subscripts="ij,ik,jk,jl->il")


def sampled_product(matrix: Tensor, width: int) -> Task:
    """A sampled product that goes on into a dense one, as a statement."""
    S = matrix.to_scipy()
    C, D, E = (_factor(name, matrix, mode, width) for name, mode in (("C", 0), ("D", 1), ("E", 1)))
    Y = room(matrix.shape[0], width, dtype=matrix.dtype)
    loops = _if_taken(width, matrix.dtype, lambda: hand("attend", Y, matrix, C, D, E, *Y.shape))

    def reference() -> Array:
        return type(S)((_sampled(S, C, D), S.indices, S.indptr), shape=S.shape) @ double(E)  # type: ignore[no-any-return]

    statement, operands = "Y(i,l) = S(i,j) * C(i,k) * D(j,k) * E(j,l)", {"S": matrix, "C": C, "D": D, "E": E}
    return Task(statement, operands, Y, "attention", (S, C, D, E), reference, loops)


def double(given: Any) -> Any:
    """A SciPy matrix or an array with numbers of double precision."""
    return given.astype(np.float64, copy=False)


def _factor(name: str, tensor: Tensor, mode: int, width: int) -> Array:
    return numbers(name, tensor.shape[mode], width, dtype=tensor.dtype)


def _if_taken(width: int, dtype: DType, make: Callable[[], Entrant]) -> Loops:
    """The tuned loop, if it has a form for this width."""
    return {HAND: make} if takes(width, dtype) else {}


def entries_of(tensor: Tensor) -> tuple[list[Array], Array]:
    """The coordinates of every entry, mode by mode, and the values."""
    entries = tensor.to(f"coo({tensor.ndim})").storage
    return [level.arrays["crd"] for level in entries.levels], double(entries.values)


def _gathered(shape: tuple[int, ...], rows: Array, terms: Callable[[slice], Array]) -> Array:
    """Rows of terms added up, some entries at a time; they come in order."""
    made = np.zeros(shape)
    for part in _parts(len(rows)):
        starts = np.flatnonzero(np.diff(rows[part], prepend=-1))
        made[rows[part][starts]] += np.add.reduceat(terms(part), starts)
    return made


def _parts(count: int) -> list[slice]:
    """Slices that are short enough for temporary arrays."""
    return [slice(start, start + PART) for start in range(0, count, PART)]


def _fibre_sums(tensor: Tensor, factor: Array) -> Array:
    pos, crd, vals = arrays_of(tensor)[-3:]
    weights = double(vals) if factor.ndim == 1 else double(vals)[:, None]
    return np.add.reduceat(weights * factor[crd], pos[:-1])


def _sampled(S: Any, C: Array, D: Array) -> Array:
    rows, left, right = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr)), double(C), double(D)
    sums = [np.einsum("pk,pk->p", left[rows[part]], right[S.indices[part]]) for part in _parts(len(rows))]
    return double(S.data) * np.concatenate([np.zeros(0), *sums])  # type: ignore[no-any-return]
