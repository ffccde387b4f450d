"""The natural loops in Python, compiled by Numba: on one thread as they stand, on several with rows in parallel."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.entrants import Entrant, filling
from benchmarks.hand import arrays_of
from benchmarks.stand_ins import room
from sparseloom.tensor.tensor import Tensor

prange = range  # Numba's own, once it is loaded: the loops below are plain Python
_threads = [1]
# The loops below have no types: Numba finds them.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False, disallow-untyped-calls=False


@cache
def load() -> Any:
    """Import Numba."""
    import numba

    globals()["prange"] = numba.prange
    return numba


def use_threads(count: int) -> None:
    """Compute on so many threads, if the machine has them."""
    _threads[0] = count
    load().set_num_threads(min(count, load().config.NUMBA_NUM_THREADS))


@cache
def _compiled(loop: Any, parallel: bool) -> Any:
    return load().njit(parallel=parallel)(loop)


def _loop(loop: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = _compiled(loop, _threads[0] > 1)
    return made


def _spmv(pos, crd, vals, x, y):
    for i in prange(len(y)):
        total = 0.0
        for p in range(pos[i], pos[i + 1]):
            total += vals[p] * x[crd[p]]
        y[i] = total


def _min_plus(pos, crd, vals, x, y):
    for i in prange(len(y)):
        least = np.inf
        for p in range(pos[i], pos[i + 1]):
            least = min(least, vals[p] + x[crd[p]])
        y[i] = least


def _spmm(pos, crd, vals, B, C):
    for i in prange(C.shape[0]):
        C[i, :] = 0
        for p in range(pos[i], pos[i + 1]):
            a, j = vals[p], crd[p]
            for k in range(C.shape[1]):
                C[i, k] += a * B[j, k]


def _fused(pos, crd, vals, pos2, crd2, vals2, x, y):
    for i in prange(len(y)):
        total = 0.0
        for p in range(pos[i], pos[i + 1]):
            total += vals[p] * x[crd[p]]
        for p in range(pos2[i], pos2[i + 1]):
            total += vals2[p] * x[crd2[p]]
        y[i] = total


def _hadamard(pos, crd, vals, pos2, crd2, vals2, x, y):
    for i in prange(len(y)):
        total = 0.0
        p, q = pos[i], pos2[i]
        while p < pos[i + 1] and q < pos2[i + 1]:
            if crd[p] == crd2[q]:
                total += vals[p] * vals2[q] * x[crd[p]]
                p += 1
                q += 1
            elif crd[p] < crd2[q]:
                p += 1
            else:
                q += 1
        y[i] = total


def _sddmm(pos, crd, vals, C, D, out):
    for i in prange(len(pos) - 1):
        for p in range(pos[i], pos[i + 1]):
            j = crd[p]
            total = 0.0
            for k in range(C.shape[1]):
                total += C[i, k] * D[j, k]
            out[p] = vals[p] * total


def _attention(pos, crd, vals, C, D, E, out):
    for i in prange(len(pos) - 1):
        out[i, :] = 0
        for p in range(pos[i], pos[i + 1]):
            j = crd[p]
            total = 0.0
            for k in range(C.shape[1]):
                total += C[i, k] * D[j, k]
            for l in range(E.shape[1]):  # noqa: E741
                out[i, l] += vals[p] * total * E[j, l]


def _add(pos, crd, vals, pos2, crd2, vals2):
    rows, most = len(pos) - 1, len(crd) + len(crd2)
    out_pos, out_crd, out_vals = np.zeros(rows + 1, np.int32), np.empty(most, np.int32), np.empty(most, vals.dtype)
    n = 0
    for i in range(rows):
        p, q = pos[i], pos2[i]
        while p < pos[i + 1] or q < pos2[i + 1]:
            left = crd[p] if p < pos[i + 1] else 2**31 - 1
            right = crd2[q] if q < pos2[i + 1] else 2**31 - 1
            total = 0.0
            if left <= right:
                total += vals[p]
                p += 1
            if right <= left:
                total += vals2[q]
                q += 1
            out_crd[n] = min(left, right)
            out_vals[n] = total
            n += 1
        out_pos[i + 1] = n
    return out_vals[:n], out_crd[:n], out_pos


def _mttkrp(pos1, crd1, pos2, crd2, pos3, crd3, vals, C, D, A):
    A[:, :] = 0
    for p in prange(len(crd1)):
        i = crd1[p]
        for q in range(pos2[p], pos2[p + 1]):
            k = crd2[q]
            for s in range(pos3[q], pos3[q + 1]):
                l = crd3[s]  # noqa: E741
                v = vals[s]
                for r in range(A.shape[1]):
                    A[i, r] += v * C[k, r] * D[l, r]


def _mttkrp4(pos1, crd1, pos2, crd2, pos3, crd3, pos4, crd4, vals, C, D, E, A):
    A[:, :] = 0
    for p in prange(len(crd1)):
        i = crd1[p]
        for q in range(pos2[p], pos2[p + 1]):
            for s in range(pos3[q], pos3[q + 1]):
                for t in range(pos4[s], pos4[s + 1]):
                    v = vals[t]
                    for r in range(A.shape[1]):
                        A[i, r] += v * C[crd2[q], r] * D[crd3[s], r] * E[crd4[t], r]


def _inner(pos1, crd1, pos2, crd2, pos3, crd3, vals, a, b, c, out):
    total = 0.0
    for p in prange(len(crd1)):
        for q in range(pos2[p], pos2[p + 1]):
            for s in range(pos3[q], pos3[q + 1]):
                total += vals[s] * a[crd1[p]] * b[crd2[q]] * c[crd3[s]]
    out[0] = total


def _parts(A: Any) -> tuple[Any, ...]:
    return A.indptr, A.indices, A.data


def spmv(A: Any, x: Any) -> Entrant:
    """A x."""
    y = room(A.shape[0], dtype=A.dtype)
    return filling(lambda: _loop(_spmv)(*_parts(A), x, y), y)


def min_plus(A: Any, x: Any) -> Entrant:
    """A x where + means min and * means +."""
    y = room(A.shape[0], dtype=A.dtype)
    return filling(lambda: _loop(_min_plus)(*_parts(A), x, y), y)


def spmm(A: Any, B: Any) -> Entrant:
    """A B, B dense."""
    C = room(A.shape[0], B.shape[1], dtype=A.dtype)
    return filling(lambda: _loop(_spmm)(*_parts(A), B, C), C)


def add(A: Any, B: Any) -> Entrant:
    """A + B, on one thread: it is not known where a row of the result begins."""
    loop = _compiled(_add, False)
    return Entrant(lambda: loop(*_parts(A), *_parts(B)), lambda: type(A)(loop(*_parts(A), *_parts(B)), shape=A.shape))


def fused(A: Any, B: Any, x: Any) -> Entrant:
    """(A + B) x."""
    y = room(A.shape[0], dtype=A.dtype)
    return filling(lambda: _loop(_fused)(*_parts(A), *_parts(B), x, y), y)


def hadamard(A: Any, B: Any, x: Any) -> Entrant:
    """(A * B) x, element by element."""
    y = room(A.shape[0], dtype=A.dtype)
    return filling(lambda: _loop(_hadamard)(*_parts(A), *_parts(B), x, y), y)


def sddmm(S: Any, C: Any, D: Any) -> Entrant:
    """A sampled product; the answer is the values."""
    out = room(S.nnz, dtype=S.dtype)
    return filling(lambda: _loop(_sddmm)(*_parts(S), C, D, out), out)


def attention(S: Any, C: Any, D: Any, E: Any) -> Entrant:
    """A sampled product times a dense matrix."""
    out = room(S.shape[0], E.shape[1], dtype=S.dtype)
    return filling(lambda: _loop(_attention)(*_parts(S), C, D, E, out), out)


def mttkrp(B: Tensor, C: Any, D: Any) -> Entrant:
    """A tensor in CSF times two factors."""
    A = room(B.shape[0], C.shape[1], dtype=B.dtype)
    return filling(lambda: _loop(_mttkrp)(*arrays_of(B), C, D, A), A)


def mttkrp4(B: Tensor, C: Any, D: Any, E: Any) -> Entrant:
    """A tensor of order four in CSF times three factors."""
    A = room(B.shape[0], C.shape[1], dtype=B.dtype)
    return filling(lambda: _loop(_mttkrp4)(*arrays_of(B), C, D, E, A), A)


def ttv(B: Tensor, c: Any) -> Entrant:
    """A tensor times a vector; the answer is the values, fibre by fibre."""
    *_, pos, crd, vals = arrays_of(B)
    y = room(len(pos) - 1, dtype=B.dtype)
    return filling(lambda: _loop(_spmv)(pos, crd, vals, c, y), y)


def ttm(B: Tensor, C: Any) -> Entrant:
    """A tensor times a matrix; the answer is the values, fibre by fibre."""
    *_, pos, crd, vals = arrays_of(B)
    out = room(len(pos) - 1, C.shape[1], dtype=B.dtype)
    return filling(lambda: _loop(_spmm)(pos, crd, vals, C, out), out)


def inner(B: Tensor, a: Any, b: Any, c: Any) -> Entrant:
    """The sum of a tensor's entries times an entry of each vector."""
    out = room(1, dtype=B.dtype)
    return filling(lambda: _loop(_inner)(*arrays_of(B), a, b, c, out), out)
