"""How long a statement is planned for operands that were not seen before: from operands to schedules, and no compiler.

What is known of operands, and of loops that are alike, is forgotten before every round. The process itself is warm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.overheads import Overhead
from sparseloom.formats.storage import Storage
from sparseloom.notation.nodes import Assign
from sparseloom.notation.terms import close_over, tensors_of
from sparseloom.notation.text import declare, parse
from sparseloom.plan import compose, plan, statistics
from sparseloom.plan.problem import declared
from sparseloom.programs.chain import Chain, specialize
from sparseloom.tensor.creation import asarray, random

AT_MOST, AT_MOST_FOR_MORE = 1e-3, 3e-3  # seconds
STATEMENTS = {
    "SpMV": "y(i) = A(i,j) * x(j)",
    "SpMM": "Y(i,k) = A(i,j) * X(j,k)",
    "SDDMM": "Y(i,j) = A(i,j) * X(i,k) * X(j,k)",
    "A + B": "C(i,j) = A(i,j) + B(i,j)",
    "SpGEMM": "C(i,j) = A(i,k) * B(k,j)",
}


def measure(rounds: int, rows: int = 10**5, more: int = 10**6) -> Iterator[Overhead]:
    """Plan every statement for matrices of so many rows this often, and SpMV for one of more."""
    for name, text in STATEMENTS.items():
        yield Overhead(f"planning {name} of {rows:,} rows", AT_MOST, _samples(text, _operands(rows), rounds))
    yield Overhead(f"planning SpMV of {more:,} rows", AT_MOST_FOR_MORE, _samples(STATEMENTS["SpMV"], _operands(more), rounds))


def _operands(rows: int) -> dict[str, Storage]:
    """Matrices with ten entries in a row, and what they are multiplied by."""
    matrices = {name: random((rows, rows), 10 / rows, "csr", seed=seed) for seed, name in enumerate("AB")}
    given: dict[str, Any] = {**matrices, "x": np.ones(rows), "X": np.ones((rows, 32))}
    return {name: asarray(value).storage for name, value in given.items()}


def _samples(text: str, known: Mapping[str, Storage], rounds: int) -> tuple[float, ...]:
    written = parse(text).assign
    operands = {tensor.name: known[tensor.name] for tensor in tensors_of(written.rhs)}
    closed = close_over(declare(written, {name: declared(name, storage) for name, storage in operands.items()}))
    _planned(closed, operands)
    return tuple(_timed(lambda: _planned(closed, operands)) for _ in range(rounds))


def _planned(statement: Assign, operands: Mapping[str, Storage]) -> None:
    made = specialize(statement, operands)
    for link in made.links if isinstance(made, Chain) else (made,):
        link.plan  # noqa: B018 the planner works when it is asked


def _timed(work: Callable[[], None]) -> float:
    for remembered in (plan.choose_loops, compose.composed, compose.after):
        remembered.cache_clear()
    statistics.forget()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
