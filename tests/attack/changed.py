"""Arrays that are changed after they entered: between two calls, while tensors and results made of them are still in use.

Every call must give what the arrays hold now, or say what is wrong with them. Results that were finished before never change.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.core.errors import SparseloomError

NAME = "changed"
COUNT = 2000

Rng = np.random.Generator
_KERNELS = {
    "spmv": sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}),
    "columns": sl.program("y(i) = A(i,j) * x(j)", {"A": "csc"}),
    "listed": sl.program("y(i) = A(i,j) * x(j)", {"A": "coo"}),
    "threads": sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, "split(i,i0,i1,7) parallelize(i0,CPUThread,NoRaces)"),
    "sum": sl.program("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csc", "C": "csr"}),
    "square": sl.program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}),
}
Use = Callable[[Any, np.ndarray[Any, Any], np.ndarray[Any, Any]], Any]
Answer = Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], Any]


_LISTED = ("dok", "lil")  # which have no arrays that a tensor could share


@dataclass
class Finished:
    """A result, and what it was worth when it was made."""

    tensor: Any
    value: np.ndarray[Any, Any]


def trial(rng: Rng) -> str:
    """Use arrays, change them, and use them again, as they are and as tensors."""
    size = int(rng.choice([3, 8, 20, 200]))
    matrix = _matrix(rng, size)
    x, out = rng.integers(-4, 5, size).astype(float), np.zeros(size)
    tensor = sl.asarray(matrix)
    held = matrix.copy() if matrix.format in _LISTED else copy.copy(matrix)  # the matrix may get new arrays; the tensor has these
    if matrix.format not in _LISTED:
        held.__dict__.update(vars(matrix))
    finished: list[Finished] = []
    said = "right"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(int(rng.integers(2, 6))):
            given, content = (matrix, _content(matrix)) if rng.random() < 0.5 else (tensor, _content(held))
            said = "refused" if _compare(rng, given, content, x, out, finished) == "refused" else said
            _change(rng, matrix)
            x[rng.integers(size)] += 1
        _compare(rng, matrix, _content(matrix), x, out, finished)
    for one in finished:
        assert np.array_equal(one.tensor.to_numpy(), one.value), "a finished result has changed"
    return said


def _matrix(rng: Rng, size: int) -> Any:
    dense = rng.integers(1, 9, (size, size)) * (rng.random((size, size)) < rng.choice([0.02, 0.2, 0.6]))
    kind = [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.dok_array, sp.lil_array][rng.integers(6)]
    made = kind(dense.astype(float))
    if made.format not in ("coo", *_LISTED) and rng.random() < 0.3:
        made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


def _compare(rng: Rng, given: Any, content: Any, x: Any, out: Any, finished: list[Finished]) -> str:
    """One use of the arrays, compared with what they hold; an array out of its bounds must be refused."""
    into = rng.random() < 0.3
    use, answer = _INTO if into else _USES[rng.integers(len(_USES))]
    try:
        made = use(given, x, out)
    except SparseloomError:
        # A matrix in no order is still a matrix; a tensor over its arrays has promised more.
        assert isinstance(given, sl.Tensor) or content is None, "valid arrays were refused"
        return "refused"
    assert content is not None, "arrays that break their bounds were accepted"
    value = made.to_numpy()
    assert np.array_equal(value, answer(content, x)), "silently wrong"
    if not into:
        finished.append(Finished(made, value.copy()))
    return "right"


def _content(matrix: Any) -> Any:
    """What a matrix of SciPy stands for, or None if its arrays break their bounds. Entries need not be sorted, and repeated ones add up."""
    rows, columns = matrix.shape
    if matrix.format in _LISTED:
        return matrix.toarray()
    dense = np.zeros(matrix.shape)
    if matrix.format == "coo":
        i, j = matrix.coords if hasattr(matrix, "coords") else (matrix.row, matrix.col)
    else:
        pos, j = matrix.indptr, matrix.indices
        if pos[0] != 0 or (np.diff(pos.astype(object)) < 0).any() or pos[-1] > len(j):
            return None
        i, j = np.repeat(np.arange(len(pos) - 1), np.diff(pos)), j[: pos[-1]]
        i, j = (i, j) if matrix.format == "csr" else (j, i)
    if len(i) and (min(i.min(), j.min()) < 0 or i.max() >= rows or j.max() >= columns):
        return None
    np.add.at(dense, (i, j), matrix.data[: len(i)])
    return dense


def _change(rng: Rng, matrix: Any) -> None:
    """One thing that a caller may do to arrays that it owns, or got from a tensor."""
    if matrix.format in _LISTED:
        matrix[tuple(rng.integers(matrix.shape[0], size=2))] = rng.integers(9)
        return
    indices = list(matrix.coords) if matrix.format == "coo" else [matrix.indices, matrix.indptr]
    array = indices[rng.integers(len(indices))]
    match rng.integers(9):
        case 0 if len(array):
            array[rng.integers(len(array))] = rng.choice([-1, 0, 1, 2, len(array), 2**31 - 1, -(2**31), 10**6])
        case 1:
            indices[0][:] = rng.permutation(max(matrix.shape))[np.clip(indices[0], 0, max(matrix.shape) - 1)]
        case 2 if len(matrix.data):
            matrix.data[rng.integers(len(matrix.data))] = 0
            if _content(matrix) is not None:
                matrix.eliminate_zeros()
        case 3:
            array[:] = np.sort(array)
        case 4:
            array[:] = array[::-1].copy()
        case 5:
            matrix.data *= 2
        case 6 if matrix.format != "coo":
            matrix.indices = matrix.indices.copy()
        case 7 if matrix.format != "coo" and len(matrix.indptr) > 2:
            matrix.indptr[1:-1] = rng.permutation(matrix.indptr[1:-1]) if rng.random() < 0.5 else np.sort(matrix.indptr[1:-1])
        case 8:
            _change_what_was_handed_out(rng)


def _change_what_was_handed_out(rng: Rng) -> None:
    """A tensor of our own gives its arrays away, which are then damaged: using it again is right or refused, and its twin stays."""
    own = sl.random((9, 9), 0.3, format=str(rng.choice(["csr", "coo", "csc"])), seed=int(rng.integers(100)))
    twin = own * 2
    before = twin.to_numpy()
    given = own.to_scipy()
    for array in vars(given).values():
        if isinstance(array, np.ndarray) and array.dtype.kind == "i" and len(array):
            array[rng.integers(len(array))] = rng.choice([-5, 0, 3, 10**6])
    with contextlib.suppress(SparseloomError):
        (own @ np.ones(9)).to_numpy()
        own.to("csr").to_numpy()
    assert np.array_equal(twin.to_numpy(), before), "a tensor changed with the arrays of another"


def _product(a: Any, x: Any) -> Any:
    return a @ x


_INTO: tuple[Use, Answer] = (lambda t, x, out: _KERNELS["spmv"](t, x, out=out), _product)
_USES: list[tuple[Use, Answer]] = [
    (lambda t, x, _: _KERNELS["spmv"](t, x), _product),
    (lambda t, x, _: _KERNELS["spmv"](A=t, x=x), _product),
    (lambda t, x, _: _KERNELS["columns"](t, x), _product),
    (lambda t, x, _: _KERNELS["listed"](t, x), _product),
    (lambda t, x, _: _KERNELS["threads"](t, x), _product),
    (lambda t, x, _: _KERNELS["sum"](t, t), lambda a, x: a + a),
    (lambda t, x, _: _KERNELS["square"](t, t), lambda a, x: a @ a),
    (lambda t, x, _: sl.evaluate("y(i) = A(i,j) * x(j)", A=t, x=x), _product),
    (lambda t, x, _: sl.evaluate("C(j,i) = A(i,j)", A=t, format="csr"), lambda a, x: a.T),
    (lambda t, x, _: sl.einsum("ij,j->i", t, x), _product),
    (lambda t, x, _: sl.asarray(t) * 10, lambda a, x: a * 10),
    (lambda t, x, _: sl.asarray(t) + sl.asarray(t), lambda a, x: a + a),
    (lambda t, x, _: np.sin(sl.asarray(t) * 0), lambda a, x: a * 0),
    (lambda t, x, _: sl.asarray(t).astype("f4"), lambda a, x: a.astype("f4")),
    (lambda t, x, _: sl.asarray(t).to("csc"), lambda a, x: a),
    (lambda t, x, _: sl.asarray(t).to("coo"), lambda a, x: a),
    (lambda t, x, _: sl.asarray(t).to("bcsr(2,2)"), lambda a, x: a),
    (lambda t, x, _: sl.asarray(t)[1:], lambda a, x: a[1:]),
    (lambda t, x, _: sl.asarray(t, copy=True), lambda a, x: a),
    (lambda t, x, _: sl.asarray(sl.asarray(t).sum(axis=0)), lambda a, x: a.sum(axis=0)),
]
