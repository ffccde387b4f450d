"""Schedules on which a fuzzer found a fault, each mended where it came from."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl

_LANES = "divide(l,l0,l1,2) parallelize(l0,GPUThread,Temporary)"
CASES = (
    # what a vector loop reduces was folded to a number, or to a difference
    ("R = logical_not(all({i}, 0))", {}, "split(i,i0,i1,4) parallelize(i0,CPUVector,Temporary)", {"i": 5}),
    ("R = sum({i}, -(2))", {}, "split(i,i0,i1,2) parallelize(i1,CPUVector,ParallelReduction)", {"i": 5}),
    # pieces of a variable that is cut elsewhere in the statement, into blocks of the result
    ("y(i) = A(i,j) * x(j)", {"A": "dcsc", "y": "sd:0,0/2"}, "pos(j,jp,A(i,j)) divide(i,i0,i1,4,A(i,j))", {}),
    # two sums over one variable, each in slots
    ("a = sum(i, b(i)) * sum(i, c(i))", {"b": "s", "c": "s"}, "parallelize(i,CPUThread,Temporary)", {}),
    # loops of threads that are unrolled: counted, with slots, with a workspace, over positions, in pieces, with a bound
    ("y(i) = A(i,j) * x(j)", {"A": "csr"}, "parallelize(i,CPUThread,NoRaces) unroll(i,4)", {}),
    ("y(i) = A(i,j) * x(j)", {"A": "csr"}, "split(i,i0,i1,4) unroll(i1,3) parallelize(i1,CPUThread,NoRaces)", {}),
    ("y(i) = A(i,j) * x(j)", {"A": "csr"}, "parallelize(i,CPUThread,NoRaces) precompute(A(i,j)*x(j),j,jw,w) unroll(i,4)", {}),
    ("y(i) = A(i,j) * x(j)", {"A": "dcsr"}, "pos(i,p,A(i,j)) parallelize(p,CPUThread,NoRaces) unroll(p,2) unroll(j,3)", {}),
    ("y(i) = A(i,j) + B(i,j) * x(j)", {"A": "csr", "B": "csr"}, "parallelize(j,CPUThread,Atomics) unroll(j,5)", {}),
    ("y(j) = A(i,j) * b(i)", {"A": "csr"}, "parallelize(i,CPUThread,Temporary) unroll(i,4)", {}),
    ("y(j) = A(i,j) * b(i)", {"A": "csr"}, "bound(i,ib,6,MaxExact) unroll(ib,4) parallelize(ib,CPUThread,Atomics)", {}),
    ("a = A(i,j)", {"A": "csr"}, "fuse(i,j,f) pos(f,p,A(i,j)) unroll(p,3) parallelize(p,CPUThread,ParallelReduction)", {}),
)
ON_A_GPU = (
    # copies of what a block writes, some of whose places are other blocks'
    ("R(j,i) = A(l,j) * B(i,l)", {}, f"reorder(i,l,j) parallelize(i,GPUBlock,NoRaces) {_LANES}", {}),
    # blocks, warps and threads with a workspace of their own, whose loops are also unrolled
    (
        "R(j,i) = A(i,j) * b(i) * B(i,j)",
        {"A": "uq+", "B": "csr"},
        "reorder(j,i) parallelize(j,GPUBlock,NoRaces) unroll(i,2) precompute(A(i,j),i,iw,w) unroll(iw,4) bound(j,jb,0,MinConstraint) "
        "unroll(jb,3)",
        {},
    ),
    ("R(j,i) = A(i,j) * b(i)", {"A": "csr"}, "reorder(j,i) unroll(j,2) precompute(A(i,j),i,iw,w) parallelize(j,GPUBlock,NoRaces)", {}),
    (
        "R(j,i) = A(i,j) * b(i)",
        {"A": "csr"},
        "reorder(j,i) split(j,j0,q,4) split(q,j1,j2,2) precompute(A(i,j),i,iw,w) unroll(j1,3) unroll(j2,5) "
        "parallelize(j0,GPUBlock,NoRaces) parallelize(j1,GPUWarp,NoRaces) parallelize(j2,GPUThread,NoRaces) unroll(j0,2)",
        {},
    ),
)


def test_explain_says_that_units_of_a_gpu_have_nothing_to_unroll() -> None:
    kernel = sl.program("y(i) = b(i)", schedule="parallelize(i,GPUBlock,NoRaces) unroll(i,4)", target="interpret")
    assert "i: not unrolled, for each block runs one iteration" in kernel.explain()
    kernel = sl.program("y(i) = b(i)", schedule="parallelize(i,CPUThread,NoRaces) unroll(i,4)")
    assert "#pragma GCC unroll 4" in kernel.source


def operands(statement: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Small whole numbers for whatever a statement reads."""
    shapes = {"A": (6, 6), "B": (6, 6), "x": (6,), "b": (6,), "c": (6,)}
    read = {name: shape for name, shape in shapes.items() if f"{name}(" in statement.split("=", 1)[1]}
    return {name: rng.integers(1, 5, shape) * (rng.random(shape) < 0.6) for name, shape in read.items()}


@pytest.mark.parametrize(("statement", "formats", "schedule", "sizes"), CASES + ON_A_GPU)
@pytest.mark.parametrize("target", ("interpret", "c"))
def test_the_result_is_that_without_a_schedule(
    statement: str, formats: dict[str, str], schedule: str, sizes: dict[str, int], target: str, rng: np.random.Generator
) -> None:
    if "GPU" in schedule and target == "c":
        target = "interpret"  # which stands in for a GPU, and finds races
    given = operands(statement, rng)
    made = [sl.program(statement, formats, text, target=target, sizes=sizes)(**given).to_numpy() for text in ("", schedule)]
    assert np.array_equal(*made)


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize("form", ("dcsc", "ss:1,0", "sd:1,0"))
def test_a_row_at_a_number_does_not_have_the_columns_of_all_rows(form: str, target: str) -> None:
    B = np.zeros((4, 3))
    B[1, 0], B[2, 1], B[3, 2] = 5, 4, 7
    made = sl.program("A(k) = B(2,k)", {"B": form, "A": "s"}, target=target)(sl.asarray(B, format=form))
    assert made.to_numpy().tolist() == [0, 4, 0]
    assert made.nnz == (3 if form == "sd:1,0" else 1)  # the places of a full level are all stored
