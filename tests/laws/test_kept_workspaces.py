"""Workspaces are made once for each thread, where their size is known, and cleared or masked only where that can be seen."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.toolchain.teams import threads

MTTKRP = "A(i,j) = B(i,k,l) * C(k,j) * D(l,j)"
FIBRES = "reorder(i,k,j,l) precompute(B(i,k,l)*D(l,j),j,jw,w) reorder(l,jw)"


def made(statement: str, formats: dict[str, str], schedule: str) -> ir.Function:
    """The loops of a program."""
    return sl.program(statement, formats, schedule).preview().stages.lowered.function


def inside(function: ir.Function) -> set[object]:
    """Everything that runs in a loop; what a thread does before and after its loops does not."""
    return {n for loop in walk(function) if isinstance(loop, ir.For | ir.While) for n in walk(loop.body)}


@pytest.mark.parametrize(
    ("statement", "formats", "schedule", "masked", "cleared"),
    [
        (MTTKRP, {"B": "csf"}, FIBRES, False, True),
        (MTTKRP, {"B": "csf"}, FIBRES + " parallelize(i,CPUThread,NoRaces)", False, True),
        (MTTKRP, {"B": "csf"}, FIBRES + " parallelize(jw,CPUVector,NoRaces)", False, True),
        ("y(i) = b(i,j) * c(i,j)", {}, "precompute(b(i,j) * c(i,j), j, jw, w)", False, False),
        ("y(i) = A(i,j) * x(j)", {"A": "csr"}, "precompute(A(i,j) * x(j), j, jw, w)", False, True),
        ("y(i) = A(i,j) * x(j) * z(j)", {"A": "csr"}, "precompute(A(i,j) * x(j), j, jw, w)", True, True),
    ],
)  # fmt: skip
def test_memory_is_made_outside_of_the_loops(statement: str, formats: dict[str, str], schedule: str, masked: bool, cleared: bool) -> None:
    function = made(statement, formats, schedule)
    assert not any(isinstance(n, ir.Allocate | ir.Free) for n in inside(function))
    arrays = {n.array.name for n in walk(function) if isinstance(n, ir.Allocate)}
    assert arrays == ({"w_vals", "w_set"} if masked else {"w_vals"})
    assert any(isinstance(n, ir.Fill) and n.array.name == "w_vals" for n in inside(function)) is cleared


def test_each_thread_has_its_own() -> None:
    function = made(MTTKRP, {"B": "csf"}, FIBRES + " parallelize(i,CPUThread,NoRaces)")
    (team,) = [n for n in walk(function) if isinstance(n, ir.Team)]
    assert any(isinstance(n, ir.Allocate) and n.array.name == "w_vals" for n in walk(team.first))


def test_a_size_that_the_loops_decide_is_made_in_them() -> None:
    schedule = "pos(j,p,A(i,j)) precompute(A(i,j) * x(j), p, pw, w)"
    function = made("y(i) = A(i,j) * x(j)", {"A": "csr"}, schedule)
    assert any(isinstance(n, ir.Allocate) for n in inside(function))


@pytest.mark.parametrize("units", ("", " parallelize(i,CPUThread,NoRaces)", " parallelize(jw,CPUVector,NoRaces)"))
@pytest.mark.parametrize("target", ("interpret", "c"))
def test_an_empty_fibre_is_absent(units: str, target: str) -> None:
    """Nothing is written to the workspace of such a fibre, so that what it meets does not count: neither infinity nor nan."""
    pos, crd = [np.array(a, np.int32) for a in ([0, 1], [0, 2], [0, 0, 1])], [np.array(a, np.int32) for a in ([1], [0, 1], [2])]
    arrays = {"pos0": pos[0], "crd0": crd[0], "pos1": pos[1], "crd1": crd[1], "pos2": pos[2], "crd2": crd[2], "values": np.array([2.0])}
    B = sl.from_arrays("csf", (2, 2, 3), arrays)
    C, D = np.array([[np.inf, np.nan], [3.0, 4.0]]), np.ones((3, 2))
    kernel = sl.program(MTTKRP, {"B": "csf"}, FIBRES + units, target=target)
    assert kernel(B, C, D).to_numpy().tolist() == [[0.0, 0.0], [6.0, 8.0]]


MATRIX = np.where(np.arange(42).reshape(6, 7) % 3 > 0, np.arange(42).reshape(6, 7) % 5, 0).astype(float)
SHARED = (
    ("R = A(j,i) * B(l)", "parallelize(i,CPUThread,ParallelReduction) precompute(A(j,i) * B(l),l,wl,ws)", None, "+"),
    ("R = A(j,i) * B(l)", "parallelize(i,CPUThread,Atomics) precompute(A(j,i) * B(l),l,wl,ws)", None, "+"),
    (
        "R = A(j,i) * B(l)",
        "parallelize(i,CPUThread,ParallelReduction) precompute(A(j,i) + B(l),l,wl,ws)",
        "min_plus",
        "reduce_minimum",
    ),
    ("y(j) = A(j,i) * B(l)", "parallelize(i,CPUThread,Atomics) precompute(A(j,i) * B(l),l,wl,ws)", None, "+"),
    ("y(j) += A(j,i) * B(l)", "pos(i,p,A(j,i)) parallelize(p,CPUThread,Atomics) precompute(A(j,i) * B(l),l,wl,ws)", None, "+"),
    (
        "R = max({j,i,l}, A(j,i) * B(l))",
        "parallelize(j,CPUThread,Atomics) precompute(A(j,i) * B(l),l,wl,ws)",
        None,
        "reduce_maximum",
    ),
    ("R = all({j,i,l}, A(j,i) * B(l))", "parallelize(j,CPUThread,ParallelReduction) precompute(A(j,i) * B(l),l,wl,ws)", None, "&&"),
)


@pytest.mark.parametrize(("statement", "schedule", "semiring", "symbol"), SHARED)
def test_threads_that_keep_one_also_reduce(statement: str, schedule: str, semiring: str | None, symbol: str) -> None:
    """The loop of a team combines what its threads have."""
    plain, kernel = (sl.program(statement, {"A": "csr"}, steps, semiring=semiring) for steps in ("", schedule))
    operands = {"A": MATRIX, "B": np.arange(1.0, 6)} | ({"y": np.ones(6)} if "+=" in statement else {})
    wanted = plain(operands).to_numpy()
    with threads(3):
        assert all(np.array_equal(kernel(operands).to_numpy(), wanted) for _ in range(50))
    (line,) = [line for line in kernel.source.split("\n") if "#pragma omp for" in line]
    assert f"reduction({symbol}" in line
