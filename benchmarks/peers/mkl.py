"""MKL's inspector-executor routines, through ctypes."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from ctypes import POINTER, byref, c_double, c_float, c_int, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.entrants import Entrant, filling
from benchmarks.stand_ins import room


class _Description(ctypes.Structure):
    _fields_ = [("kind", c_int), ("mode", c_int), ("diagonal", c_int)]


_GENERAL = _Description(20, 0, 0)
_AS_IT_IS, _ROW_MAJOR, _CALLS = 10, 101, 1000


@cache
def load() -> ctypes.CDLL:
    """Load MKL from this environment, with GNU's threads, which our kernels use too."""
    found = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
    if not found:
        raise ImportError("there is no libmkl_rt in this environment")
    os.environ.setdefault("MKL_THREADING_LAYER", "GNU")
    return ctypes.CDLL(str(found[0]))


def use_threads(count: int) -> None:
    """Let MKL compute on so many threads, and not on fewer as it likes."""
    load().MKL_Set_Dynamic(0)
    load().MKL_Set_Num_Threads(count)


def _call(name: str, *arguments: Any) -> None:
    status = getattr(load(), name)(*arguments)
    if status:
        raise RuntimeError(f"{name} of MKL failed with status {status}")


def _letter(matrix: Any) -> str:
    return "d" if matrix.dtype == np.float64 else "s"


def _number(value: float, like: Any) -> Any:
    return (c_double if like.dtype == np.float64 else c_float)(value)


class _Handle:
    """A SciPy matrix as MKL sees it; the arrays stay SciPy's."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        self.handle = c_void_p()
        starts, columns, values = (c_void_p(a.ctypes.data) for a in (matrix.indptr, matrix.indices, matrix.data))
        ends = c_void_p(matrix.indptr.ctypes.data + matrix.indptr.itemsize)
        self.letter = _letter(matrix)
        self.one, self.zero = _number(1, matrix), _number(0, matrix)
        _call(f"mkl_sparse_{self.letter}_create_csr", byref(self.handle), 0, *matrix.shape, starts, ends, columns, values)

    def __del__(self) -> None:
        load().mkl_sparse_destroy(self.handle)


def spmv(A: Any, x: Any) -> Entrant:
    """A x."""
    y, made = room(A.shape[0], dtype=A.dtype), _Handle(A)
    _call("mkl_sparse_set_mv_hint", made.handle, _AS_IT_IS, _GENERAL, _CALLS)
    _call("mkl_sparse_optimize", made.handle)
    source, target = c_void_p(x.ctypes.data), c_void_p(y.ctypes.data)
    routine = f"mkl_sparse_{made.letter}_mv"
    return filling(lambda: _call(routine, _AS_IT_IS, made.one, made.handle, _GENERAL, source, made.zero, target), y)


def spmm(A: Any, B: Any) -> Entrant:
    """A B, B dense."""
    width = B.shape[1]
    C, made = room(A.shape[0], width, dtype=A.dtype), _Handle(A)
    _call("mkl_sparse_set_mm_hint", made.handle, _AS_IT_IS, _GENERAL, _ROW_MAJOR, width, _CALLS)
    _call("mkl_sparse_optimize", made.handle)
    source, target = c_void_p(B.ctypes.data), c_void_p(C.ctypes.data)
    ends = (_ROW_MAJOR, source, width, width, made.zero, target, width)
    return filling(lambda: _call(f"mkl_sparse_{made.letter}_mm", _AS_IT_IS, made.one, made.handle, _GENERAL, *ends), C)


def add(A: Any, B: Any) -> Entrant:
    """A + B."""
    left, right = _Handle(A), _Handle(B)
    return _making(lambda: _sum(left, left.handle, right.handle), A)


def add_three(A: Any, B: Any, C: Any) -> Entrant:
    """A + B + C, one sum after the other."""
    first, second, third = _Handle(A), _Handle(B), _Handle(C)

    def compute() -> c_void_p:
        between = _sum(first, first.handle, second.handle)
        made = _sum(first, between, third.handle)
        load().mkl_sparse_destroy(between)
        return made

    return _making(compute, A)


def product(A: Any, B: Any) -> Entrant:
    """A B, both sparse. The rows of the result are unsorted."""
    left, right = _Handle(A), _Handle(B)
    return _making(lambda: _product(left.handle, right.handle), A)


def sorted_product(A: Any, B: Any) -> Entrant:
    """A B, both sparse, and its rows sorted."""
    left, right = _Handle(A), _Handle(B)

    def compute() -> c_void_p:
        made = _product(left.handle, right.handle)
        _call("mkl_sparse_order", made)
        return made

    return _making(compute, A)


def _sum(like: _Handle, left: c_void_p, right: c_void_p) -> c_void_p:
    made = c_void_p()
    _call(f"mkl_sparse_{like.letter}_add", _AS_IT_IS, left, like.one, right, byref(made))
    return made


def _product(left: c_void_p, right: c_void_p) -> c_void_p:
    made = c_void_p()
    _call("mkl_sparse_spmm", _AS_IT_IS, left, right, byref(made))
    return made


def _making(compute: Callable[[], c_void_p], like: Any) -> Entrant:
    """An entrant that makes a matrix and gives it back."""

    def run() -> None:
        load().mkl_sparse_destroy(compute())

    def answer() -> Any:
        made = compute()
        found = _exported(made, like)
        load().mkl_sparse_destroy(made)
        return found

    return Entrant(run, answer)


def _exported(handle: c_void_p, like: Any) -> Any:
    """A matrix that MKL made, copied."""
    layout, rows, columns = c_int(), c_int(), c_int()
    number = c_double if like.dtype == np.float64 else c_float
    starts, ends, indices, values = POINTER(c_int)(), POINTER(c_int)(), POINTER(c_int)(), POINTER(number)()
    parts = (layout, rows, columns, starts, ends, indices, values)
    _call(f"mkl_sparse_{_letter(like)}_export_csr", handle, *(byref(part) for part in parts))
    last = np.ctypeslib.as_array(ends, (rows.value,))
    pos = np.concatenate([[0], last]).astype(np.int32)
    data, crd = (np.ctypeslib.as_array(array, (int(pos[-1]),)).copy() for array in (values, indices))
    return type(like)((data, crd, pos), shape=(rows.value, columns.value))
