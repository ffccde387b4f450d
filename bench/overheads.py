"""What a user waits for besides the kernel: importing, compiling, loading from the cache, and calling."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import scipy.sparse as sp

import sparseloom as sl
from timing import race

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
    yield _overhead("import sparseloom, after NumPy", 0.1, [_fresh("-c", _IMPORT) for _ in range(rounds)])
    for name, statement in STATEMENTS.items():
        compiled, cached = _first_calls(statement, rounds)
        yield _overhead(f"first call of {name}, nothing cached", 0.12, compiled)
        yield _overhead(f"first call of {name} in a new process, from the disk cache", 0.02, cached)
    yield from _calls(budget)


def _overhead(what: str, target: float, samples: list[float]) -> Overhead:
    return Overhead(what, target, tuple(samples))


def _first_calls(statement: str, rounds: int) -> tuple[list[float], list[float]]:
    """Times of the first call, each in a process of its own: with an empty kernel cache, then with what that one left."""
    compiled, cached = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            compiled.append(_fresh(str(_FIRST_CALL), statement, cache=folder))
            cached.append(_fresh(str(_FIRST_CALL), statement, cache=folder))
    return compiled, cached


def _fresh(*arguments: str, cache: str | None = None) -> float:
    """Run Python anew and read the seconds that it prints."""
    environment = {**os.environ, **({"SPARSELOOM_CACHE_DIR": cache} if cache else {})}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def _calls(budget: float) -> Iterator[Overhead]:
    """Calls on a matrix so small that the kernel itself takes next to nothing."""
    A, x = sp.csr_array(np.eye(3)), np.ones(3)
    kernel = sl.program(STATEMENTS["SpMV"], formats={"A": "csr"})
    tensors = sl.asarray(A), sl.asarray(x)
    out = kernel(*tensors)
    bound = kernel.bind(A, x)
    times = race({"bound": bound, "tensors": lambda: kernel(*tensors, out=out), "raw": lambda: kernel(A, x), "scipy": lambda: A @ x}, budget)
    yield _overhead("bound call", 1e-6, times.samples["bound"])
    yield _overhead("k(A, x, out=y) with tensors", 3e-6, times.samples["tensors"])
    yield _overhead("k(A, x) with SciPy and NumPy arrays", 25e-6, times.samples["raw"])
