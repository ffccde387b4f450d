"""``python -m sparseloom.cli.demo``: compile and run three kernels, check and time them against SciPy, and show how they run."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from sparseloom.calls.evaluation import program
from sparseloom.calls.kernel import Kernel
from sparseloom.cli.folded import folded
from sparseloom.cli.terminal import seconds
from sparseloom.core.errors import SparseloomError
from sparseloom.core.signs import spell_signs
from sparseloom.tensor.creation import asarray, random
from sparseloom.toolchain.compilers import find_compiler

SIZE, DENSITY = 20_000, 1e-3
SMALL, SMALL_DENSITY, RANK = 4_000, 5e-3, 64  # SciPy's way to the third result builds a dense SMALL x SMALL matrix
ROUNDS, LONGEST = 200, 2.0
SCHEDULE = "fuse(i,j,f) pos(f,p,A(i,j))\nsplit(p,p0,p1,65536) parallelize(p0,CPUThread,Atomics)"

Work = Callable[[], Any]


@dataclass(frozen=True)
class Example:
    """A statement, its operands, and how SciPy computes the same."""

    title: str
    label: str
    kernel: Kernel
    operands: tuple[Any, ...]
    theirs: Work


def main() -> int:
    """Show everything; return 1 if a result is wrong, 2 if it cannot run."""
    spell_signs(sys.stdout, sys.stderr)
    console = Console(highlight=False, soft_wrap=True)
    try:
        find_compiler()
        return _show(console, _examples())
    except SparseloomError as mistake:
        print(f"sparseloom: {mistake}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _examples() -> tuple[Example, ...]:
    """The one that gains most first."""
    A, B = (random((SIZE, SIZE), DENSITY, "csr", seed=seed).to_scipy() for seed in (1, 2))
    S = random((SMALL, SMALL), SMALL_DENSITY, "csr", seed=3).to_scipy()
    generator = np.random.default_rng(4)
    x, D, E = generator.random(SIZE), generator.random((SMALL, RANK)), generator.random((SMALL, RANK))
    return (
        Example(
            f"A dense product, sampled at the {S.nnz} entries of a sparse matrix ({SMALL} x {SMALL}, rank {RANK})",
            "C = S * (D E')",
            program("C(i,j) = S(i,j) * D(i,k) * E(j,k)", formats={"S": "csr", "C": "csr"}),
            (S, D, E),
            lambda: S.multiply(D @ E.T),
        ),
        Example(
            "Two sparse matrices added, times a vector: one fused loop, A + B is never built",
            "y = (A + B) x",
            program("y(i) = (A(i,j) + B(i,j)) * x(j)", formats={"A": "csr", "B": "csr"}),
            (A, B, x),
            lambda: (A + B) @ x,
        ),
        Example(
            f"A sparse matrix times a vector ({SIZE} x {SIZE}, {A.nnz} entries)",
            "y = A x",
            program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}),
            (A, x),
            lambda: A @ x,
        ),
    )


def _show(console: Console, examples: Sequence[Example]) -> int:
    right = True
    table = Table("", "SciPy", "Sparseloom", "SciPy / Sparseloom")
    for number, example in enumerate(examples, 1):
        console.print(f"\n{number}. {example.title}", style="bold")
        right &= _compute(console, example)
        bound = example.kernel.bind(*(asarray(operand) for operand in example.operands))
        ours, theirs = interleaved(bound.start, example.theirs)
        console.print(f"SciPy takes {seconds(theirs)}, Sparseloom {seconds(ours)}: {theirs / ours:.1f} times the speed")
        table.add_row(example.label, seconds(theirs), seconds(ours), f"{theirs / ours:.1f}")
        match number:
            case 2:
                console.print(f"\nHow it runs:\n{textwrap.indent(example.kernel.explain(), '  ')}")
            case 3:
                right &= _under_a_schedule(console, example)
    console.print("\nTimes compared with SciPy's", style="bold")
    console.print(table)
    console.print(f"Medians of up to {ROUNDS} runs each, taken in turns. Next: README.md, docs/tour.md, sparseloom --help.")
    return 0 if right else 1


def _under_a_schedule(console: Console, example: Example) -> bool:
    """The same under a schedule of the user's own, and the C that ran."""
    own = replace(example, kernel=program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule=SCHEDULE))
    console.print("\nThe same under a schedule of one's own: every thread takes equally many entries", style="bold")
    right = _compute(console, own)
    console.print("\nThe C that ran, without the frame that every kernel has and the checks for Ctrl-C:")
    console.print(Syntax(folded(own.kernel.source), "c", background_color="default"))
    return right


def _compute(console: Console, example: Example) -> bool:
    """Run a kernel for the first time and compare with SciPy."""
    console.print(f"{example.kernel!r}")
    began = time.perf_counter()
    result = example.kernel(*example.operands)
    took = time.perf_counter() - began
    expected = example.theirs()
    expected = expected if isinstance(expected, np.ndarray) else expected.toarray()
    error = float(np.max(np.abs(result.to_numpy() - expected) / np.maximum(np.abs(expected), 1.0)))
    right = error < 1e-12
    console.print(f"first call: {seconds(took)} (compiled, or found in the kernel cache)")
    console.print(f"compared with SciPy: {'the same' if right else 'WRONG'} (largest relative difference {error:.0e})")
    return right


def interleaved(ours: Work, theirs: Work) -> tuple[float, float]:
    """The median times of two pieces of work that take turns, so that a busy machine slows both."""
    times: tuple[list[float], list[float]] = ([], [])
    began = time.perf_counter()
    while len(times[0]) < ROUNDS and time.perf_counter() - began < LONGEST:
        for work, found in zip((ours, theirs), times, strict=True):
            before = time.perf_counter()
            work()
            found.append(time.perf_counter() - before)
    return median(times[0]), median(times[1])


if __name__ == "__main__":
    sys.exit(main())
