"""Blocks of positions that meet in their first and last run: each carries its share, and the shares are joined in order."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir

BLOCKS = "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,{}) parallelize(p0,CPUThread,Temporary)"
CARRIED = (
    ("y(i) = A(i,j) * x(j)", "csr", BLOCKS.format(3)),
    ("y(i) = A(i,j) * x(j)", "coo", BLOCKS.format(1)),
    ("y(i) = A(i,j) * x(j)", "dcsr", BLOCKS.format(4)),
    ("y(i) = A(i,j) * x(j)", "csr", "fuse(i,j,f) pos(f,p,A(i,j)) parallelize(p,CPUThread,Temporary)"),
    ("Y(i,k) = A(i,j) * X(j,k)", "csr", "reorder(i,j,k) " + BLOCKS.format(5)),
    ("Y(i,k) = A(i,j) * X(j,k)", "coo", "reorder(i,j,k) " + BLOCKS.format(2)),
    ("Y(i,k) = A(i,j) * X(j,k)", "dcsr", "reorder(i,j,k) " + BLOCKS.format(7) + " parallelize(k,CPUVector,NoRaces)"),
)
COPIED = (
    ("y(j) = A(i,j) * z(i)", "csr", BLOCKS.format(3)),  # a place comes again in the middle of other blocks
    ("Y(k,i) = A(i,j) * X(j,k)", "csr", "reorder(i,j,k) " + BLOCKS.format(3)),  # what a run writes does not stand together
    ("y(i) = A(i,j) * x(j)", "csr", "parallelize(j,CPUThread,Temporary)"),
)


def arguments(statement: str, rng: np.random.Generator, columns: int = 4) -> dict[str, np.ndarray]:
    """Small whole numbers, so that sums are exact in any order."""
    shapes = {"A": (9, 6), "x": (6,), "z": (9,), "X": (6, columns)}
    made = {name: rng.integers(1, 9, shape).astype(float) for name, shape in shapes.items() if f"{name}(" in statement}
    made["A"] *= rng.random((9, 6)) < 0.4
    return made


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize(("statement", "form", "schedule"), CARRIED + COPIED)
def test_results_are_those_without_a_schedule(statement: str, form: str, schedule: str, target: str, rng: np.random.Generator) -> None:
    kernel, plain = sl.program(statement, {"A": form}, schedule, target=target), sl.program(statement, {"A": form}, target="interpret")
    for columns in (4, 1, 0):
        given = arguments(statement, rng, columns)
        assert np.array_equal(kernel(**given).to_numpy(), plain(**given).to_numpy())


@pytest.mark.parametrize("carries", (True, False))
@pytest.mark.parametrize("case", range(len(CARRIED)))
def test_only_what_has_runs_is_carried(case: int, carries: bool) -> None:
    statement, form, schedule = (CARRIED if carries else COPIED)[case % len(COPIED if not carries else CARRIED)]
    function = sl.program(statement, {"A": form}, schedule).preview().stages.lowered.function
    made = {n.array.name for n in walk(function) if isinstance(n, ir.Allocate)}
    assert any(name.endswith("_carries") for name in made) is carries
    assert not any(isinstance(n, ir.Store) and n.atomic for n in walk(function))


@pytest.mark.parametrize(("statement", "form", "schedule"), CARRIED[:2] + CARRIED[4:5])
def test_the_bits_do_not_depend_on_the_number_of_threads(
    statement: str, form: str, schedule: str, rng: np.random.Generator
) -> None:
    given = {name: value * rng.random(value.shape) for name, value in arguments(statement, rng).items()}
    kernel = sl.program(statement, {"A": form}, schedule, target="c")
    found = {kernel(**given).to_numpy().tobytes()}
    threads = ctypes.CDLL("libgomp.so.1")  # the one that the kernel runs on
    before = threads.omp_get_max_threads()
    try:
        for count in (1, 2, 3, 7):
            threads.omp_set_num_threads(count)
            found.add(kernel(**given).to_numpy().tobytes())
    finally:
        threads.omp_set_num_threads(before)
    assert len(found) == 1
