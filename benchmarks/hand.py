"""The hand-written loops of hand.c and the files behind it, compiled with the very flags that kernels get and called the same way."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.entrants import Entrant, filling
from benchmarks.threads import use_threads
from benchmarks.timing import WALL, sample
from sparseloom.core.dtypes import DType
from sparseloom.programs.calling import Pack, bind
from sparseloom.tensor.tensor import Tensor
from sparseloom.toolchain.libraries import load
from sparseloom.toolchain.loading import EntryPoint

Array = NDArray[Any]
FILES = ("hand.c", "hand_tensors.c", "hand_made.c")
NAMES = (
    "plain_spmv", "plain_spmm", "plain_mttkrp", "spmv", "spmm", "sddmm", "attend", "min_plus", "hadamard", "block_spmm", "mttkrp",
    "mttkrp4", "inner", "triad", "reading", "add_three", "product", "masked", "release",
)  # fmt: skip
MEMORY_COUNT = 8_000_000  # numbers in an array that is far beyond any cache
DOUBLE = np.dtype(np.float64)
VECTOR_BYTES = 64  # the largest; a row of a dense operand must be some of them


def hand(name: str, out: Array, *inputs: Tensor | Array | int) -> Entrant:
    """A loop that fills ``out``. A sparse tensor is handed over as its index arrays, level by level, and its values."""
    return filling(bind(_loops(out.dtype)[name], Pack([out, *_words(inputs)])), out)


def hand_made(name: str, like: Any, *inputs: Tensor | Array | int) -> Entrant:
    """A loop that makes a CSR matrix, given as one of the class and shape of ``like``."""
    pack = Pack([*_words(inputs), None, None, None])
    first = len(pack.values) - 3
    loops = _loops(like.dtype)
    compute = bind(loops[name], pack)

    def run() -> None:
        compute()
        bind(loops["release"], Pack([pack.take(first + k) for k in range(3)]))()

    def answer() -> Any:
        compute()
        pos = _copied(pack.slot(first), like.shape[0] + 1, np.dtype(np.int32))
        crd = _copied(pack.slot(first + 1), int(pos[-1]), np.dtype(np.int32))
        vals = _copied(pack.slot(first + 2), int(pos[-1]), like.dtype)
        bind(loops["release"], Pack([pack.take(first + k) for k in range(3)]))()
        return type(like)((vals, crd, pos), shape=like.shape)

    return Entrant(run, answer)


def triad_bandwidth(count: int, rounds: int, threads: int = 1) -> float:
    """Bytes a second that the triad moves, counted as STREAM does: three arrays, each once. The best round counts."""
    arrays = [np.ones(count * threads) for _ in range(3)]
    return 3 * arrays[0].nbytes / _quickest(hand("triad", *arrays, count * threads), rounds, threads)


def read_bandwidth(count: int, rounds: int, threads: int = 1) -> float:
    """Bytes a second that are read from memory, of ``count`` doubles for each thread. The best round counts."""
    source = np.ones(count * threads)
    return source.nbytes / _quickest(hand("reading", np.zeros(1), source, count * threads), rounds, threads)


def _quickest(entrant: Entrant, rounds: int, threads: int) -> float:
    use_threads(threads)
    return min(sample(entrant.run, 1, WALL) for _ in range(rounds))


def takes(width: int, dtype: DType) -> bool:
    """Whether the loops have a form for rows of so many numbers."""
    return width * dtype.itemsize in {VECTOR_BYTES * count for count in (1, 2, 4, 8, 16)}


def _copied(address: int, count: int, dtype: DType) -> Array:
    return np.frombuffer(ctypes.string_at(address, count * dtype.itemsize), dtype)


def _words(inputs: tuple[Tensor | Array | int, ...]) -> list[Array | int]:
    return [word for given in inputs for word in (arrays_of(given) if isinstance(given, Tensor) else [given])]


def arrays_of(tensor: Tensor) -> list[Array]:
    """The index arrays of a tensor, level by level, and its values."""
    return [*(array for level in tensor.storage.levels for array in level.arrays.values()), tensor.storage.values]


@cache
def _loops(dtype: DType) -> dict[str, EntryPoint]:
    texts = [Path(__file__).with_name(name).read_text() for name in FILES]
    source = "\n".join([f"#define REAL {'double' if dtype == DOUBLE else 'float'}", *texts])
    return dict(zip(NAMES, load(source, NAMES), strict=True))
