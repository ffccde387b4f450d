"""The natural loops in Python, compiled by Numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from data import room
from entrants import Entrant, filling


@numba.njit
def _spmv(pos, crd, vals, x, y):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        total = 0.0
        for p in range(pos[i], pos[i + 1]):
            total += vals[p] * x[crd[p]]
        y[i] = total


@numba.njit
def _spmm(pos, crd, vals, B, C):  # type: ignore[no-untyped-def]
    for i in range(C.shape[0]):
        C[i, :] = 0.0
        for p in range(pos[i], pos[i + 1]):
            a, j = vals[p], crd[p]
            for k in range(C.shape[1]):
                C[i, k] += a * B[j, k]


@numba.njit
def _fused(pos, crd, vals, pos2, crd2, vals2, x, y):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        total = 0.0
        for p in range(pos[i], pos[i + 1]):
            total += vals[p] * x[crd[p]]
        for p in range(pos2[i], pos2[i + 1]):
            total += vals2[p] * x[crd2[p]]
        y[i] = total


@numba.njit
def _sddmm(pos, crd, vals, C, D, out):  # type: ignore[no-untyped-def]
    for i in range(len(pos) - 1):
        for p in range(pos[i], pos[i + 1]):
            j = crd[p]
            total = 0.0
            for k in range(C.shape[1]):
                total += C[i, k] * D[j, k]
            out[p] = vals[p] * total


@numba.njit
def _add(pos, crd, vals, pos2, crd2, vals2):  # type: ignore[no-untyped-def]
    rows, most = len(pos) - 1, len(crd) + len(crd2)
    out_pos, out_crd, out_vals = np.zeros(rows + 1, np.int32), np.empty(most, np.int32), np.empty(most)
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


@numba.njit
def _mttkrp(pos1, crd1, pos2, crd2, pos3, crd3, vals, C, D, A):  # type: ignore[no-untyped-def]
    A[:, :] = 0.0
    for p in range(pos1[0], pos1[1]):
        i = crd1[p]
        for q in range(pos2[p], pos2[p + 1]):
            k = crd2[q]
            for s in range(pos3[q], pos3[q + 1]):
                l = crd3[s]  # noqa: E741
                v = vals[s]
                for r in range(A.shape[1]):
                    A[i, r] += v * C[k, r] * D[l, r]


def _parts(A: Any) -> tuple[Any, ...]:
    return A.indptr, A.indices, A.data


def spmv(A: Any, x: Any) -> Entrant:
    y = room(A.shape[0])
    return filling(lambda: _spmv(*_parts(A), x, y), y)


def spmm(A: Any, B: Any) -> Entrant:
    C = room(A.shape[0], B.shape[1])
    return filling(lambda: _spmm(*_parts(A), B, C), C)


def add(A: Any, B: Any) -> Entrant:
    def answer() -> Any:
        return type(A)(_add(*_parts(A), *_parts(B)), shape=A.shape)

    return Entrant(lambda: _add(*_parts(A), *_parts(B)), answer)


def fused(A: Any, B: Any, x: Any) -> Entrant:
    y = room(A.shape[0])
    return filling(lambda: _fused(*_parts(A), *_parts(B), x, y), y)


def sddmm(S: Any, C: Any, D: Any) -> Entrant:
    out = room(S.nnz)
    return filling(lambda: _sddmm(*_parts(S), C, D, out), out)


def mttkrp(levels: list[Any], vals: Any, C: Any, D: Any, rows: int) -> Entrant:
    A = room(rows, C.shape[1])
    return filling(lambda: _mttkrp(*levels, vals, C, D, A), A)
