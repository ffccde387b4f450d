"""What a call costs in Python: from the door, bound, and as a CUDA graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np

from benchmarks.gpu.clock import Clock
from benchmarks.gpu.outcome import Call
from benchmarks.stand_ins import numbers, uniform
from sparseloom.calls.evaluation import program
from sparseloom.calls.kernel import Kernel
from sparseloom.core.errors import CompilerBug
from sparseloom.tensor.creation import asarray

SIZE, ENTRIES = 100, 500
CALLS, BATCHES = 100, 15  # a batch is short enough that the device keeps up
DOOR, BOUND = 15e-6, 6e-6  # seconds
ROWS = "split(i,b,t,32) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)"


def calls(clock: Clock) -> Iterator[Call]:
    """What each way to call a small kernel costs."""
    matrix, vector = uniform(SIZE, SIZE, ENTRIES), numbers("x", SIZE)
    A, x = matrix.to_device(), asarray(vector).to_device()
    theirs = clock.array(vector)
    kernel = program("y(i) = A(i,j) * x(j)", {"A": "csr"}, ROWS, target="cuda")
    yield Call("kernel(A, x), tensors on the device", _each(clock, lambda: kernel(A, x)), DOOR)
    yield Call(f"kernel(A, x), x of {clock.name}", _each(clock, lambda: kernel(A, theirs)), DOOR)
    run = kernel.bind(A, x)
    run()
    yield Call("bound: run()", _each(clock, run), BOUND)
    yield Call("bound: run.start()", _each(clock, run.start), BOUND)
    yield Call("a CUDA graph of run.start()", _each(clock, _graph(clock, kernel, matrix.to_numpy(), vector)), None)


def _graph(clock: Clock, kernel: Kernel, matrix: np.ndarray, vector: np.ndarray) -> Callable[[], object]:
    """A graph of a bound kernel, which must compute again when it is launched."""
    A, x, y = asarray(matrix, format="csr").to_device(), clock.array(vector), clock.empty(SIZE, dtype="float64")
    run = kernel.bind(A, x, out=y)
    run()
    clock.wait()
    launch = clock.captured(run.start)
    clock.spoil(y)
    clock.wait()
    launch()
    clock.wait()
    if not np.allclose(clock.seen(y), matrix @ vector):
        raise CompilerBug(kernel, "a captured kernel should compute what it computes when it is called")
    return launch


def _each(clock: Clock, call: Callable[[], object]) -> float:
    """Seconds of one call on the side of Python."""
    found = []
    for _ in range(BATCHES):
        clock.wait()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - start) / CALLS)
    clock.wait()
    return median(found)
