"""MKL's inspector-executor routines, through ctypes; on one thread unless ``MKL_THREADING_LAYER`` says otherwise."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from ctypes import POINTER, byref, c_double, c_int, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from data import room
from entrants import Entrant, filling

os.environ.setdefault("MKL_THREADING_LAYER", "SEQUENTIAL")


class _Description(ctypes.Structure):
    _fields_ = [("kind", c_int), ("mode", c_int), ("diagonal", c_int)]


_GENERAL = _Description(20, 0, 0)
_AS_IT_IS, _ROW_MAJOR, _CALLS = 10, 101, 1000


def _library() -> ctypes.CDLL:
    found = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
    if not found:
        raise ImportError("there is no libmkl_rt in this environment")
    return ctypes.CDLL(str(found[0]))


_mkl = _library()


def _call(name: str, *arguments: Any) -> None:
    status = getattr(_mkl, name)(*arguments)
    if status:
        raise RuntimeError(f"{name} of MKL failed with status {status}")


class _Handle:
    """A SciPy matrix as MKL sees it; the arrays stay SciPy's."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        self.handle = c_void_p()
        starts, columns, values = (c_void_p(a.ctypes.data) for a in (matrix.indptr, matrix.indices, matrix.data))
        ends = c_void_p(matrix.indptr.ctypes.data + matrix.indptr.itemsize)
        _call("mkl_sparse_d_create_csr", byref(self.handle), 0, *matrix.shape, starts, ends, columns, values)

    def __del__(self) -> None:
        _mkl.mkl_sparse_destroy(self.handle)


def use_threads(count: int) -> None:
    _mkl.MKL_Set_Dynamic(0)  # else it may decide for fewer
    _mkl.MKL_Set_Num_Threads(count)


def spmv(A: Any, x: Any) -> Entrant:
    y, made = room(A.shape[0]), _Handle(A)
    _call("mkl_sparse_set_mv_hint", made.handle, _AS_IT_IS, _GENERAL, _CALLS)
    _call("mkl_sparse_optimize", made.handle)
    source, target = c_void_p(x.ctypes.data), c_void_p(y.ctypes.data)
    return filling(
        lambda: _call("mkl_sparse_d_mv", _AS_IT_IS, c_double(1), made.handle, _GENERAL, source, c_double(0), target),
        y,
    )


def spmm(A: Any, B: Any) -> Entrant:
    width = B.shape[1]
    C, made = room(A.shape[0], width), _Handle(A)
    _call("mkl_sparse_set_mm_hint", made.handle, _AS_IT_IS, _GENERAL, _ROW_MAJOR, width, _CALLS)
    _call("mkl_sparse_optimize", made.handle)
    source, target = c_void_p(B.ctypes.data), c_void_p(C.ctypes.data)
    ends = (_ROW_MAJOR, source, width, width, c_double(0), target, width)
    return filling(lambda: _call("mkl_sparse_d_mm", _AS_IT_IS, c_double(1), made.handle, _GENERAL, *ends), C)


def add(A: Any, B: Any) -> Entrant:
    left, right = _Handle(A), _Handle(B)
    return _making(lambda: _sum(left.handle, right.handle))


def add_three(A: Any, B: Any, C: Any) -> Entrant:
    first, second, third = _Handle(A), _Handle(B), _Handle(C)

    def compute() -> c_void_p:
        between = _sum(first.handle, second.handle)
        made = _sum(between, third.handle)
        _mkl.mkl_sparse_destroy(between)
        return made

    return _making(compute)


def product(A: Any, B: Any) -> Entrant:
    """The rows of the result are unsorted."""
    left, right = _Handle(A), _Handle(B)
    return _making(lambda: _product(left.handle, right.handle))


def sorted_product(A: Any, B: Any) -> Entrant:
    left, right = _Handle(A), _Handle(B)

    def compute() -> c_void_p:
        made = _product(left.handle, right.handle)
        _call("mkl_sparse_order", made)
        return made

    return _making(compute)


def _sum(left: c_void_p, right: c_void_p) -> c_void_p:
    made = c_void_p()
    _call("mkl_sparse_d_add", _AS_IT_IS, left, c_double(1), right, byref(made))
    return made


def _product(left: c_void_p, right: c_void_p) -> c_void_p:
    made = c_void_p()
    _call("mkl_sparse_spmm", _AS_IT_IS, left, right, byref(made))
    return made


def _making(compute: Callable[[], c_void_p]) -> Entrant:
    """An entrant that makes a matrix and gives it back."""

    def run() -> None:
        _mkl.mkl_sparse_destroy(compute())

    def answer() -> Any:
        made = compute()
        found = _exported(made)
        _mkl.mkl_sparse_destroy(made)
        return found

    return Entrant(run, answer)


def _exported(handle: c_void_p) -> Any:
    """A matrix that MKL made, copied."""
    layout, rows, columns = c_int(), c_int(), c_int()
    starts, ends, indices, values = POINTER(c_int)(), POINTER(c_int)(), POINTER(c_int)(), POINTER(c_double)()
    parts = (layout, rows, columns, starts, ends, indices, values)
    _call("mkl_sparse_d_export_csr", handle, *(byref(part) for part in parts))
    last = np.ctypeslib.as_array(ends, (rows.value,))
    pos = np.concatenate([[0], last]).astype(np.int32)
    data, crd = (np.ctypeslib.as_array(a, (int(pos[-1]),)).copy() for a in (values, indices))
    return sp.csr_array((data, crd, pos), shape=(rows.value, columns.value))
