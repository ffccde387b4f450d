"""What a user waits for besides the kernel: importing, compiling, loading from the cache, and calling.

What is called first is measured beside SciPy, on matrices so small that the way to the kernel takes longer than the kernel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

import sparseloom as sl
from timing import Race, race

STATEMENTS = {"SpMV": "y(i) = A(i,j) * x(j)", "(A + B) x": "y(i) = (A(i,j) + B(i,j)) * x(j)", "A + B": "C(i,j) = A(i,j) + B(i,j)"}
_FIRST_CALL = Path(__file__).with_name("first_call.py")
_IMPORT = "import numpy, time; start = time.perf_counter(); import sparseloom; print(time.perf_counter() - start)"


@dataclass(frozen=True)
class Overhead:
    """One wait in seconds: the most it should be, and every time it was measured."""

    what: str
    target: float
    samples: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """The median wait."""
        return median(self.samples)

    @property
    def meets(self) -> bool:
        """Whether the median keeps the target."""
        return self.seconds <= self.target


def measure(rounds: int, budget: float) -> Iterator[Overhead]:
    """Measure every overhead; each fresh process runs ``rounds`` times."""
    with tempfile.TemporaryDirectory() as bytecode:
        fresh = _Fresh(bytecode)
        yield _overhead("import sparseloom, after NumPy", 0.1, [fresh.seconds("-c", _IMPORT) for _ in range(rounds)])
        for name, statement in STATEMENTS.items():
            compiled, cached = _first_calls(fresh, statement, rounds)
            yield _overhead(f"first call of {name}, nothing cached", 0.12, compiled)
            yield _overhead(f"first call of {name} in a new process, from the disk cache", 0.02, cached)
    yield from _calls(budget)


def _overhead(what: str, target: float, samples: list[float]) -> Overhead:
    return Overhead(what, target, tuple(samples))


class _Fresh:
    """Runs of Python in processes of their own. Bytecode is kept between them, as for an installed package."""

    def __init__(self, bytecode: str) -> None:
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.seconds("-c", _IMPORT)

    def seconds(self, *arguments: str, cache: str = "") -> float:
        """Run with this folder as the kernel cache and read the seconds that are printed."""
        environment = {**self._environment, "SPARSELOOM_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout)


def _first_calls(fresh: _Fresh, statement: str, rounds: int) -> tuple[list[float], list[float]]:
    """Times of the first call, each in a process of its own: with an empty kernel cache, then with what that one left."""
    compiled: list[float] = []
    cached: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for times in (compiled, cached):
                times.append(fresh.seconds(str(_FIRST_CALL), statement, cache=folder))
    return compiled, cached


def _calls(budget: float) -> Iterator[Overhead]:
    """Calls on a matrix so small that the kernel itself takes next to nothing."""
    A, x = sp.csr_array(np.eye(3)), np.ones(3)
    kernel = sl.program(STATEMENTS["SpMV"], formats={"A": "csr"})
    tensors = sl.asarray(A), sl.asarray(x)
    out = kernel(*tensors)
    bound = kernel.bind(A, x)
    times = race({"bound": bound, "tensors": lambda: kernel(*tensors, out=out), "raw": lambda: kernel(A, x)}, budget)
    yield _overhead("bound call", 1e-6, times.samples["bound"])
    yield _overhead("k(A, x, out=y) with tensors", 3e-6, times.samples["tensors"])
    yield _overhead("k(A, x) with SciPy and NumPy arrays", 25e-6, times.samples["raw"])


@dataclass(frozen=True)
class Door:
    """One thing that users write, done by us and by SciPy in turn."""

    what: str
    race: Race

    @property
    def seconds(self) -> tuple[float, float]:
        """Our median time, and theirs."""
        return self.race.seconds("ours"), self.race.seconds("theirs")

    @property
    def ratio(self) -> float:
        """Our time over theirs."""
        return self.race.ratio("ours", "theirs")

    def as_json(self) -> dict[str, Any]:
        """The times by side."""
        ours, theirs = self.seconds
        return {"what": self.what, "ours": ours, "theirs": theirs, "ratio": self.ratio}


def doors(budget: float) -> Iterator[Door]:
    """Measure what is written first: operators, reductions, einsum, kernels, parts and linear operators."""
    for what, (ours, theirs) in {**_operators(), **_kernels(), **_solvers()}.items():
        yield Door(what, race({"ours": ours, "theirs": theirs}, budget))


Pair = tuple[Callable[[], object], Callable[[], object]]


def _matrices(size: int, density: float) -> tuple[sp.csr_array, sp.csr_array]:
    draw = np.random.default_rng(7)
    first, second = (sp.random_array((size, size), density=density, format="csr", rng=draw) for _ in range(2))
    return first, second


def _operators() -> dict[str, Pair]:
    """Operators and parts of two matrices of 100 x 100 with 500 entries each."""
    A, B = _matrices(100, 0.05)
    a, b, x, dense = sl.asarray(A, copy=True), sl.asarray(B, copy=True), np.ones(100), A.toarray()
    return {
        "a @ x": (lambda: a @ x, lambda: A @ x),
        "a.T @ x": (lambda: a.T @ x, lambda: A.T @ x),
        "a @ b": (lambda: a @ b, lambda: A @ B),
        "a + b": (lambda: a + b, lambda: A + B),
        "a * b": (lambda: a * b, lambda: A * B),
        "a * 2": (lambda: a * 2, lambda: A * 2),
        "-a": (lambda: -a, lambda: -A),
        "a.sum()": (lambda: a.sum(), lambda: A.sum()),
        "a.sum(axis=0)": (lambda: a.sum(axis=0), lambda: A.sum(axis=0)),
        "a.sum(axis=1)": (lambda: a.sum(axis=1), lambda: A.sum(axis=1)),
        "a.max(axis=1)": (lambda: a.max(axis=1), lambda: A.max(axis=1)),
        "a.T": (lambda: a.T, lambda: A.T),
        "a[3]": (lambda: a[3], lambda: A[3]),
        "a[3, 4]": (lambda: a[3, 4], lambda: A[3, 4]),
        'einsum("ij,j->i", a, x), NumPy\'s on a dense a': (
            lambda: sl.einsum("ij,j->i", a, x),
            lambda: np.einsum("ij,j->i", dense, x),
        ),
        'evaluate("y(i) = A(i,j) * x(j)", A=a, x=x)': (lambda: sl.evaluate("y(i) = A(i,j) * x(j)", A=a, x=x), lambda: A @ x),
    }


def _kernels() -> dict[str, Pair]:
    """A kernel on SciPy's own arrays: the same each time, new ones over the same memory, and new ones throughout."""
    A, _ = _matrices(100, 0.05)
    x = np.ones(100)
    kernel = sl.program(STATEMENTS["SpMV"], formats={"A": "csr"})

    def wrapped(*arrays: Any) -> sp.csr_array:
        made = sp.csr_array.__new__(sp.csr_array)  # its constructor takes longer than the product
        made.__dict__.update(A.__dict__)
        made.data, made.indices, made.indptr = arrays
        return made

    def shared() -> sp.csr_array:
        return wrapped(A.data, A.indices, A.indptr)

    def copied() -> sp.csr_array:
        return wrapped(A.data.copy(), A.indices.copy(), A.indptr.copy())

    return {
        "k(A, x)": (lambda: kernel(A, x), lambda: A @ x),
        "k(A, x), A a new object": (lambda: kernel(shared(), x), lambda: shared() @ x),
        "k(A, x), all arrays new": (lambda: kernel(copied(), x), lambda: copied() @ x),
    }


def _solvers() -> dict[str, Pair]:
    """Solvers of SciPy on a matrix of 500 x 500, of theirs and of ours."""
    A, _ = _matrices(500, 0.01)
    A = (A + A.T + 20 * sp.eye_array(500)).tocsr()
    a, b = sl.asarray(A), np.ones(500)
    operator = scipy.sparse.linalg.aslinearoperator(a)
    return {
        "eigsh(a)": (lambda: scipy.sparse.linalg.eigsh(a, k=4, v0=b), lambda: scipy.sparse.linalg.eigsh(A, k=4, v0=b)),
        "cg(a, b)": (lambda: scipy.sparse.linalg.cg(a, b, rtol=1e-10), lambda: scipy.sparse.linalg.cg(A, b, rtol=1e-10)),
        "cg(aslinearoperator(a), b)": (
            lambda: scipy.sparse.linalg.cg(operator, b, rtol=1e-10),
            lambda: scipy.sparse.linalg.cg(A, b, rtol=1e-10),
        ),
    }
