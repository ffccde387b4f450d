"""What ``explain`` states of every loop that a schedule wants in parallel, in vectors or unrolled."""

from __future__ import annotations

import pytest

import sparseloom as sl

SPMV, PRODUCT = "y(i) = A(i,j) * x(j)", "C(i,k) = A(i,j) * B(j,k)"
ROWS = "split(i,i0,i1,4) reorder(i0,k,i1,j) unroll(i1,4) parallelize(k,CPUVector,NoRaces)"
ON_GPU = (
    "bound(k,c,32,MaxExact) split(c,t,v,4) split(i,b,w,32) pos(j,p,A(i,j)) reorder(b,w,t,v,p) unroll(v,4) unroll(p,4) "
    "parallelize(b,GPUBlock,NoRaces) parallelize(w,GPUWarp,NoRaces) parallelize(t,GPUThread,NoRaces)"
)


def stated(statement: str, formats: dict[str, str], steps: str, target: str = "c") -> list[str]:
    """The lines on tagged loops."""
    text = sl.program(statement, formats, steps, target=target).explain()
    parts = [part for part in text.split("\n\n") if part.startswith("parallel, vector and unrolled loops\n")]
    return [line.strip() for part in parts for line in part.splitlines()[1:]]


@pytest.mark.parametrize(
    ("statement", "formats", "steps", "lines"),
    [
        (SPMV, {"A": "csr"}, "", []),
        (SPMV, {"A": "csr"}, "split(i,i0,i1,32) parallelize(i0,CPUThread,NoRaces) parallelize(j,CPUVector,ParallelReduction)",
         ["i0: parallel loop, shared out among the cores", "j: vector loop, 8 lanes at a time, each with a sum of its own"]),
        (PRODUCT, {}, ROWS, ["k: vector loop, 32, 16 and 8 lanes at a time", "i1: unrolled by 4, side by side in the loop over j"]),
        (PRODUCT, {"A": "csr"}, ROWS,
         ["k: vector loop, 32, 16 and 8 lanes at a time",
          "i1: unrolled by 4, one iteration after another: iterations take different ways at the loop over j"]),
        (SPMV, {"A": "csr"}, "parallelize(i,CPUVector,NoRaces)",
         ["i: vector loop kept scalar: lanes take different ways at the loop over j"]),
        ("y(i) = A(i,j) * exp(x(j))", {"A": "csr"}, "parallelize(j,CPUVector,ParallelReduction)",
         ["j: vector loop, left to the C compiler: it is no arithmetic that vectors have"]),
        ("y(i) = a(i) * b(i)", {}, "parallelize(i,CPUVector,NoRaces)", ["i: vector loop, left to the C compiler"]),
        ("y(i) = a(i) + b(i)", {"a": "s", "b": "s"}, "unroll(i,4)", ["i: unrolled by 4"]),
        (SPMV, {}, "unroll(i,4)", ["i: unrolled by 4, side by side in the loop over j"]),
    ],
)  # fmt: skip
def test_what_became_of_tagged_loops(statement: str, formats: dict[str, str], steps: str, lines: list[str]) -> None:
    assert stated(statement, formats, steps) == lines


def test_what_became_of_loops_over_units_of_a_gpu() -> None:
    assert stated(PRODUCT, {"A": "csr"}, ON_GPU, "cuda") == [
        "b: parallel loop over blocks",
        "w: parallel loop over the warps of a block",
        "t: parallel loop over threads",
        "v: unrolled by 4, side by side in the loop over p",
        "p: unrolled by 4",
    ]
