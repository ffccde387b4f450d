"""PyTorch on a GPU: what its users write, cuSPARSE's sampled product behind it, and a clock where there is no CuPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks.entrants import Entrant
from benchmarks.peers.cupy import FLUSHED
from benchmarks.peers.torch import load as load_torch

PYTORCH, SAMPLED = "PyTorch", "cuSPARSE by PyTorch"


@cache
def load() -> Any:
    """Import PyTorch, if it was built for CUDA and finds a device."""
    torch = load_torch()
    if not torch.cuda.is_available():
        raise ImportError(f"PyTorch {torch.__version__} finds no CUDA device")
    return torch


class Clock:
    """Times by PyTorch's events, as CuPy's clock takes them."""

    name = "PyTorch"

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._flushed = torch.empty(FLUSHED // 4, dtype=torch.int32, device="cuda")
        self._events = tuple(torch.cuda.Event(enable_timing=True) for _ in range(2))

    def seconds(self, run: Callable[[], object]) -> float:
        """How long one run takes on the device, after other data have filled the cache."""
        before, after = self._events
        self._flushed.fill_(1)
        before.record()
        run()
        after.record()
        after.synchronize()
        return float(before.elapsed_time(after)) * 1e-3

    def array(self, given: Any) -> Any:
        """A copy on the device."""
        return self._torch.as_tensor(given, device="cuda")

    def outer(self, left: Any, right: Any) -> Any:
        """The outer product of two vectors, made on the device."""
        return self._torch.outer(self.array(left), self.array(right))

    def empty(self, *shape: int, dtype: str) -> Any:
        """Room on the device."""
        return self._torch.empty(shape, dtype=getattr(self._torch, dtype), device="cuda")

    def spoil(self, array: Any) -> None:
        """Fill an array with what is no number."""
        array.fill_(self._torch.nan)

    def seen(self, array: Any, onto: Any = None) -> Any:
        """An array in main memory; of a matrix, its product with another one, which is made on the device."""
        found = array if onto is None else array @ self._torch.as_tensor(onto, dtype=array.dtype, device="cuda")
        return found.cpu().numpy()

    def values(self, tensor: Any) -> Any:
        """The values of a tensor, in its own memory: all of a dense one, and the stored ones of a sparse one."""
        found = tensor.to_torch()
        return found if tensor.format.is_dense else found.values()

    def copying(self, nbytes: int) -> Callable[[], object]:
        """Something to run that copies so many bytes."""
        source = self._torch.zeros(nbytes // 8, dtype=self._torch.float64, device="cuda")
        to = self._torch.empty_like(source)
        return lambda: to.copy_(source)

    def captured(self, start: Callable[[], object]) -> Callable[[], object]:
        """A CUDA graph of what ``start`` launches; running it launches the graph."""
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph):
            start()
        return lambda: graph.replay()

    def wait(self) -> None:
        """Wait until all work is done."""
        self._torch.cuda.synchronize()

    def let_go(self) -> None:
        """Give back memory that is kept for later."""
        self._torch.cuda.empty_cache()


def spmv(A: Any, x: Any, y: Any) -> dict[str, Callable[[], Entrant]]:
    """A x."""
    return {PYTORCH: lambda: _product(A, x)}


def spmm(A: Any, B: Any, C: Any) -> dict[str, Callable[[], Entrant]]:
    """A B, B dense."""
    return {PYTORCH: lambda: _product(A, B)}


def sddmm(S: Any, C: Any, D: Any) -> dict[str, Callable[[], Entrant]]:
    """cuSPARSE's sampled product, into values that are there already; and what a user writes.

    It leaves out the values of the pattern. A user multiplies them in; cuSPARSE's time is without that.
    """
    return {SAMPLED: lambda: _sampled_in_place(S, C, D), PYTORCH: lambda: _sampled(S, C, D)}


def _product(A: Any, x: Any) -> Entrant:
    left, right = A.to_torch(), _dense(x)
    return Entrant(lambda: left @ right, lambda: left @ right)


def _sampled_in_place(S: Any, C: Any, D: Any) -> Entrant:
    torch, given = load(), S.to_torch()
    left, right, out = _dense(C), _dense(D).t(), given.clone()

    def run() -> Any:
        return torch.sparse.sampled_addmm(out, left, right, beta=0.0, out=out)

    return Entrant(run, lambda: run().values() * given.values())


def _sampled(S: Any, C: Any, D: Any) -> Entrant:
    torch, given = load(), S.to_torch()
    left, right = _dense(C), _dense(D).t()

    def run() -> Any:
        return torch.sparse.sampled_addmm(given, left, right, beta=0.0).values() * given.values()

    return Entrant(run, run)


def _dense(array: Any) -> Any:
    torch = load()
    return array if isinstance(array, torch.Tensor) else torch.from_dlpack(array)
