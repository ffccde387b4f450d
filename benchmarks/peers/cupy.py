"""CuPy: the clock of measurements on a GPU, and cuSPARSE with every algorithm, through CuPy's bindings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from ctypes import CDLL, byref, c_size_t, c_void_p
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.entrants import Entrant

FLUSHED = 128 << 20  # bytes that are written before every run, more than the L2 cache holds
REAL = {"float32": 0, "float64": 1}  # CUDA_R_32F, CUDA_R_64F
INDEX_32, INDEX_64, ROW_MAJOR = 2, 3, 2  # CUSPARSE_INDEX_32I, CUSPARSE_INDEX_64I, CUSPARSE_ORDER_ROW
NOT_TURNED, TURNED = 0, 1  # CUSPARSE_OPERATION_NON_TRANSPOSE, ..._TRANSPOSE
SPMV = {"default": 0, "ALG1": 2, "ALG2": 3}  # CUSPARSE_SPMV_...
SPMM = {"default": 0, "ALG1": 4, "ALG2": 6, "ALG3": 12}  # CUSPARSE_SPMM_...


@cache
def load() -> Any:
    """Import CuPy, and look whether it finds a device."""
    import cupy

    cupy.cuda.runtime.getDeviceCount()
    return cupy


class Clock:
    """Times by CuPy's events, with a cold L2 cache, and arrays on the device as measurements need them."""

    name = "CuPy"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._flushed = cupy.empty(FLUSHED // 4, np.int32)
        self._events = cupy.cuda.Event(), cupy.cuda.Event()

    def seconds(self, run: Callable[[], object]) -> float:
        """How long one run takes on the device, after other data have filled the cache."""
        before, after = self._events
        self._flushed.fill(1)
        before.record()
        run()
        after.record()
        after.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(before, after)) * 1e-3

    def array(self, given: Any) -> Any:
        """A copy on the device."""
        return self._cupy.asarray(given)

    def outer(self, left: Any, right: Any) -> Any:
        """The outer product of two vectors, made on the device."""
        return self._cupy.outer(self._cupy.asarray(left), self._cupy.asarray(right))

    def empty(self, *shape: int, dtype: str) -> Any:
        """Room on the device."""
        return self._cupy.empty(shape, dtype)

    def spoil(self, array: Any) -> None:
        """Fill an array with what is no number."""
        array.fill(np.nan)

    def seen(self, array: Any, onto: Any = None) -> Any:
        """An array in main memory; of a matrix, its product with another one, which is made on the device."""
        found = self._cupy.asarray(array)
        return self._cupy.asnumpy(found if onto is None else found @ self._cupy.asarray(onto, found.dtype))

    def values(self, tensor: Any) -> Any:
        """The values of a tensor, in its own memory: all of a dense one, and the stored ones of a sparse one."""
        found = tensor.to_cupy()
        return found if tensor.format.is_dense else found.data

    def copying(self, nbytes: int) -> Callable[[], object]:
        """Something to run that copies so many bytes."""
        source, to = self._cupy.zeros(nbytes // 8), self._cupy.empty(nbytes // 8)
        return lambda: self._cupy.copyto(to, source)

    def captured(self, start: Callable[[], object]) -> Callable[[], object]:
        """A CUDA graph of what ``start`` launches; running it launches the graph."""
        stream = self._cupy.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            start()
            graph = stream.end_capture()
        return lambda: graph.launch(stream)

    def wait(self) -> None:
        """Wait until all work is done."""
        self._cupy.cuda.Device().synchronize()

    def let_go(self) -> None:
        """Give back memory that is kept for later."""
        self._cupy.get_default_memory_pool().free_all_blocks()


class CuSparse:
    """A matrix as cuSPARSE describes it. Descriptors and buffers stay alive with what runs on them."""

    def __init__(self, matrix: Any, library: Any = None) -> None:
        self._library = library if library is not None else _bindings()
        self._matrix = matrix
        self._type = REAL[str(matrix.data.dtype)]
        index = INDEX_32 if matrix.indices.dtype.itemsize == 4 else INDEX_64
        parts = (matrix.indptr.data.ptr, matrix.indices.data.ptr, matrix.data.data.ptr)
        self._described = self._library.createCsr(*matrix.shape, matrix.data.size, *parts, index, index, 0, self._type)
        self._one, self._zero = (np.array(number, str(matrix.data.dtype)) for number in (1, 0))

    def spmv(self, x: Any, y: Any, algorithm: int) -> Callable[[], object]:
        """A x into y."""
        left, right = (self._library.createDnVec(v.size, v.data.ptr, self._type) for v in (x, y))
        given = (_handle(), 0, self._one.ctypes.data, self._described, left, self._zero.ctypes.data, right, self._type, algorithm)
        buffer = _room(self._library.spMV_bufferSize(*given))
        return self._kept(lambda: self._library.spMV(*given, buffer.ptr), buffer, x, y)

    def spmm(self, B: Any, C: Any, algorithm: int) -> Callable[[], object]:
        """A B into C, both by rows."""
        left, right = (self._library.createDnMat(*m.shape, m.shape[1], m.data.ptr, self._type, ROW_MAJOR) for m in (B, C))
        given = (_handle(), 0, 0, self._one.ctypes.data, self._described, left, self._zero.ctypes.data, right, self._type, algorithm)
        buffer = _room(self._library.spMM_bufferSize(*given))
        return self._kept(lambda: self._library.spMM(*given, buffer.ptr), buffer, B, C)

    def sddmm(self, C: Any, D: Any, way: int) -> Callable[[], object]:
        """C times the transpose of D where the matrix has entries, into its values. CuPy has no binding for it."""
        left, right = (self._library.createDnMat(*m.shape, m.shape[1], m.data.ptr, self._type, ROW_MAJOR) for m in (C, D))
        numbers = self._one.ctypes.data, left, right, self._zero.ctypes.data
        given = [c_void_p(_handle()), NOT_TURNED, TURNED, *map(c_void_p, (*numbers, self._described)), self._type, way]
        size, library = c_size_t(), _cusparse()
        _check(library.cusparseSDDMM_bufferSize(*given, byref(size)))
        buffer = _room(size.value)
        _check(library.cusparseSDDMM_preprocess(*given, c_void_p(buffer.ptr)))
        return self._kept(lambda: _check(library.cusparseSDDMM(*given, c_void_p(buffer.ptr))), buffer, C, D)

    def _kept(self, run: Callable[[], object], *alive: Any) -> Callable[[], object]:
        return lambda *_, kept=(self, alive): run()


def spmv(A: Any, x: Any, y: Any) -> dict[str, Callable[[], Entrant]]:
    """A x by every algorithm, each to be prepared."""
    return {f"cuSPARSE {name}": partial(_filling, A, "spmv", (x, y), way) for name, way in SPMV.items()}


def spmm(A: Any, B: Any, C: Any) -> dict[str, Callable[[], Entrant]]:
    """A B, B dense, by every algorithm, each to be prepared."""
    return {f"cuSPARSE {name}": partial(_filling, A, "spmm", (B, C), way) for name, way in SPMM.items()}


def sddmm(S: Any, C: Any, D: Any) -> dict[str, Callable[[], Entrant]]:
    """The sampled product, without the values of the pattern: these are multiplied in only to compare."""
    return {"cuSPARSE SDDMM": lambda: _sampled(S, C, D)}


def _sampled(S: Any, C: Any, D: Any) -> Entrant:
    given = S.to_cupy()
    pattern = given.copy()
    pattern.data.fill(np.nan)
    run = CuSparse(pattern).sddmm(C, D, 0)

    def answer() -> Any:
        run()
        return pattern.data * given.data

    return Entrant(run, answer)


def _filling(A: Any, kernel: str, given: tuple[Any, Any], way: int) -> Entrant:
    """One algorithm, prepared; what it fills is spoilt before it is looked at."""
    run, out = getattr(CuSparse(A.to_cupy()), kernel)(*given, way), given[1]

    def answer() -> Any:
        out.fill(np.nan)
        run()
        return out

    return Entrant(run, answer)


def _bindings() -> Any:
    from importlib import import_module

    return import_module("cupy_backends.cuda.libs.cusparse")


def _cusparse() -> Any:
    """The library behind the bindings, which CuPy has loaded."""
    for name in ("libcusparse.so.12", "libcusparse.so"):
        with suppress(OSError):
            return CDLL(name)
    raise ImportError("libcusparse.so.12 is not found")


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"cuSPARSE returned status {status}")


def _handle() -> Any:
    from cupy.cuda import device

    return device.get_cusparse_handle()


def _room(nbytes: int) -> Any:
    from cupy import cuda

    return cuda.alloc(max(nbytes, 1))
