"""What a call costs on a matrix so small that computing takes next to nothing: every way in, beside SciPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.outcome import Door
from benchmarks.peers.scipy import solvers
from benchmarks.stand_ins import banded, numbers, uniform
from benchmarks.timing import race
from sparseloom.calls.evaluation import einsum, evaluate, program
from sparseloom.core.errors import CompilerBug
from sparseloom.tensor.creation import asarray
from sparseloom.tensor.tensor import Tensor

SIZE, ENTRIES = 100, 500
SOLVED, WIDTH = 500, 9  # rows of the matrix that solvers get, and entries in each
MICROSECOND = 1e-6
AS_SCIPY = 0.0  # the target is what SciPy takes
SPMV = "y(i) = A(i,j) * x(j)"
Run = Callable[[], object]


def doors(budget: float) -> Iterator[Door]:
    """The time of every way in."""
    a = uniform(SIZE, SIZE, ENTRIES)
    A, x = a.to_scipy(), numbers("x", SIZE)
    pairs = _pairs(a, A, x) | _solvers()
    _check(pairs)
    for name, (ours, theirs, target) in pairs.items():
        found = race({"ours": ours, "SciPy": theirs}, budget)
        seconds, scipy = found.seconds("ours"), found.seconds("SciPy")
        yield Door(name, seconds, scipy, scipy if target == AS_SCIPY else None if target is None else target * MICROSECOND)


def _pairs(a: Tensor, A: Any, x: Any) -> dict[str, tuple[Run, Run, float | None]]:
    """For every door: what we do, what a SciPy user does, and the most that ours should take in microseconds."""
    kernel = program(SPMV, formats={"A": "csr"})
    bound, v, out = kernel.bind(A, x), asarray(x), kernel(a, asarray(x))
    product: Run = lambda: A @ x  # noqa: E731
    return {
        "bound kernel": (bound.start, product, 1.0),
        "k(a, v, out=y) on tensors": (lambda: kernel(a, v, out=out), product, 3.0),
        "k(A, x), the same arrays": (lambda: kernel(A, x), product, 12.0),
        "k(A, x), new arrays": (lambda: kernel(_again(A), x), product, 12.0),
        'evaluate("y(i) = A(i,j) * x(j)")': (lambda: evaluate(SPMV, A=a, x=v), product, None),
        'einsum("ij,j->i")': (lambda: einsum("ij,j->i", a, v), product, 10.0),
        "a @ x": (lambda: a @ v, product, 10.0),
        "a @ a": (lambda: a @ a, lambda: A @ A, AS_SCIPY),
        "a + a": (lambda: a + a, lambda: A + A, AS_SCIPY),
        "a * 2": (lambda: a * 2, lambda: A * 2, AS_SCIPY),
        "a.sum(axis=0)": (lambda: a.sum(axis=0), lambda: A.sum(axis=0), AS_SCIPY),
        "a.sum(axis=1)": (lambda: a.sum(axis=1), lambda: A.sum(axis=1), AS_SCIPY),
    }


def _solvers() -> dict[str, tuple[Run, Run, float | None]]:
    """Solvers of SciPy on our tensor and on its own array: a symmetric matrix with a heavy diagonal."""
    band = banded(SOLVED, WIDTH).to_scipy()
    A = band + band.T
    A.setdiag(4.0 * WIDTH)
    a, b = asarray(A.copy()), numbers("b", SOLVED)
    return {name: (partial(solve, a), partial(solve, A), AS_SCIPY) for name, solve in solvers(A, b).items()}


def _again(A: Any) -> Any:
    """The same matrix as a new object, made as cheaply as SciPy can."""
    made = object.__new__(type(A))
    made.__dict__.update(A.__dict__)
    return made


def _check(pairs: dict[str, tuple[Run, Run, float | None]]) -> None:
    """All ways must give what SciPy gives."""
    for name, (ours, theirs, _) in pairs.items():
        made = ours()  # a bound kernel that is only started gives nothing to look at
        if made is not None and not np.allclose(_dense(made), _dense(theirs())):
            raise CompilerBug(name, "it should give what SciPy gives")


def _dense(made: Any) -> Any:
    if isinstance(made, Tensor):
        return made.to_numpy()
    return made.toarray() if hasattr(made, "toarray") else made
