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


LANES = "reorder(b,w,t,n) parallelize(b,GPUBlock,NoRaces) parallelize(w,GPUWarp,NoRaces) parallelize(t,GPUThread,Temporary)"
POSITIONS = "fuse(i,j,f) pos(f,p,A(i,j)) "


@pytest.mark.parametrize(
    ("statement", "steps", "target", "shared"),
    [
        ("s = b(i) * c(i)", "parallelize(i,CPUThread,Temporary)", "c",
         {"i": "s is kept in a slot for each part of the loop and combined in order"}),
        ("s = b(i) * c(i)", "parallelize(i,CPUThread,ParallelReduction)", "c",
         {"i": "s is kept in registers and combined as the target reduces"}),
        ("y(j) = A(i,j) * x(i)", "reorder(i,j) parallelize(i,CPUThread,Atomics)", "c",
         {"i": "y is kept where it is and combined by atomic updates"}),
        ("y(j) = A(i,j) * x(i)", "reorder(i,j) parallelize(i,CPUThread,Temporary)", "c",
         {"i": "y is kept in a copy for each part of the loop and combined in order"}),
        (SPMV, f"{POSITIONS} split(p,b,p1,64) parallelize(b,CPUThread,Temporary)", "c",
         {"b": "y is kept in places for the first and the last run of each block and combined in order"}),
        (SPMV, "split(i,i0,i1,32) parallelize(i0,CPUThread,NoRaces)", "c", {}),
        (SPMV, f"split(i,b,w,8) pos(j,p,A(i,j)) split(p,n,t,4) {LANES}", "cuda", {"t": "y is kept in registers and combined by shuffles"}),
        (SPMV, f"{POSITIONS} split(p,b,p1,512) split(p1,w,t,32) parallelize(b,GPUBlock,Atomics) parallelize(w,GPUWarp,Atomics) "
         "parallelize(t,GPUThread,ParallelReduction)", "cuda",
         {"b": "y is kept where it is and combined by atomic updates", "w": "y is kept where it is and combined by atomic updates",
          "t": "y is kept in registers and combined by shuffles among those that have one place"}),
        (SPMV, f"{POSITIONS} split(p,b,p1,64) split(p1,w,c,16) split(c,n,t,4) reorder(b,w,t,n) parallelize(b,GPUBlock,Atomics) "
         "parallelize(w,GPUWarp,ParallelReduction) parallelize(t,GPUThread,ParallelReduction)", "cuda",
         {"b": "y is kept where it is and combined by atomic updates",
          "w": "y is kept in registers, row by row, and combined by shuffles"}),
    ],
)  # fmt: skip
def test_how_a_reduction_is_split(statement: str, steps: str, target: str, shared: dict[str, str]) -> None:
    lines = stated(statement, {"A": "csr"} if "A(" in statement else {}, steps, target)
    assert {line.split(":")[0]: line.split("what goes into ")[1] for line in lines if "what goes into" in line} == shared


def test_what_became_of_loops_over_units_of_a_gpu() -> None:
    assert stated(PRODUCT, {"A": "csr"}, ON_GPU, "cuda") == [
        "b: parallel loop over blocks",
        "w: parallel loop over the warps of a block",
        "t: parallel loop over threads",
        "v: unrolled by 4, side by side in the loop over p",
        "p: unrolled by 4",
    ]
