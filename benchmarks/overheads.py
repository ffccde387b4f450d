"""What a user waits for besides the kernel: importing, compiling, and loading from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

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


def measure(rounds: int) -> Iterator[Overhead]:
    """Measure every overhead; each fresh process runs ``rounds`` times."""
    with tempfile.TemporaryDirectory() as bytecode:
        fresh = _Fresh(bytecode)
        yield _overhead("import sparseloom, after NumPy", 0.06, [fresh.seconds("-c", _IMPORT) for _ in range(rounds)])
        for name, statement in STATEMENTS.items():
            compiled, cached = _first_calls(fresh, statement, rounds)
            yield _overhead(f"first call of {name}, nothing cached", 0.12, compiled)
            yield _overhead(f"first call of {name} in a new process, from the disk cache", 0.02, cached)


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
