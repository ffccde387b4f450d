"""What one may begin with: small things to learn from, the schedules of the paper, and kernels that people need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sparseloom.explorer.paper import MTTKRP, PAPER, SPMM, SPMV, PaperSchedule
from sparseloom.explorer.state import State, Step
from sparseloom.schedule.text import read_steps

_SDDMM = ("C(i,j) = S(i,j) * A(i,k) * B(j,k)", "S:csr C:csr")
_PAPER_TITLES = {
    "spmv_cpu": "SpMV, rows among threads",
    "spmv_cpu_positions": "SpMV, equally many entries each",
    "spmv_gpu": "SpMV on a GPU, by entries",
    "spmm_cpu": "SpMM, tiled",
    "spmm_gpu": "SpMM on a GPU",
    "mttkrp_cpu": "MTTKRP, slices among threads",
    "mttkrp_gpu": "MTTKRP on a GPU",
    "spmv_gpu_thread_per_row": "SpMV on a GPU, a thread for each row",
    "spmv_gpu_warp_per_row": "SpMV on a GPU, a warp for each row",
    "spmv_gpu_no_unrolling": "SpMV on a GPU, without unrolling",
    "spmm_cpu_tiled": "SpMM, positions in tiles",
    "spmm_cpu_untiled": "SpMM, plain loops",
}
_SIZES = {SPMV[0]: {"i": 3000, "j": 3000}, SPMM[0]: {"i": 1000, "j": 1000, "k": 32}, MTTKRP[0]: {"i": 60, "k": 40, "l": 30, "j": 32}}

_FIRST = (
    ("SpMV, plain loops", *SPMV, ""),
    ("cut, and shared among threads", *SPMV, "split(i,i0,i1,4) parallelize(i0,CPUThread,NoRaces)"),
    ("a race, which is refused", *SPMV, "parallelize(j,CPUThread,NoRaces)"),
    ("the same with atomics", *SPMV, "parallelize(j,CPUThread,Atomics)"),
    ("over entries instead of rows", *SPMV, "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,8) parallelize(p0,CPUThread,Atomics)"),
    ("pieces of equal weight", *SPMV, "divide(i,i0,i1,8,A(i,j),2) parallelize(i0,CPUThread,NoRaces)"),
    ("two sparse matrices are merged", "C(i,j) = A(i,j) + B(i,j)", "A:csr B:csr C:csr", ""),
    ("a sparse product with a workspace", "C(i,j) = A(i,k) * B(k,j)", "A:csr B:csr C:csr", "parallelize(i,CPUThread,NoRaces)"),
)
_GALLERY = (
    ("sampled product (SDDMM)", *_SDDMM, "parallelize(i,CPUThread,NoRaces)"),
    ("factors of a tensor (MTTKRP)", "M(i,r) = X(i,j,k) * B(j,r) * C(k,r)", "X:csf", ""),
    ("core of a tensor (Tucker)", "Y(i,b,c) = X(i,j,k) * B(j,b) * C(k,c)", "X:csf", ""),
    ("triangles of a graph", "count = L(i,j) * M(j,k) * L(i,k)", "L:csr M:csr", ""),
    ("similar texts", "s(q,d) = Q(q,t) * U(d,t)", "Q:csr U:csr s:csr", ""),
    ("a step of PageRank", "next(i) = 0.85 * links(i,j) * share(j) + 0.15", "links:csr", ""),
    ("scaled counts of cells", "x(c,g) = log1p(1e4 * counts(c,g) / total(c))", "counts:csr x:csr", ""),
    ("a Kronecker product and a vector", "y(i,k) = a(i,j) * b(k,l) * x(j,l)", "a:csr b:csr", ""),
)


def examples() -> list[dict[str, Any]]:
    """Groups of states, each with a title."""
    paper = [(_PAPER_TITLES[one.name], one) for one in PAPER]
    learning, gallery = ([(title, PaperSchedule("", *rest)) for title, *rest in group] for group in (_FIRST, _GALLERY))
    return [_group("First steps", learning), _group("The schedules of the paper", paper), _group("From the gallery", gallery)]


def _group(title: str, found: Iterable[tuple[str, PaperSchedule]]) -> dict[str, Any]:
    return {"title": title, "examples": [{"title": name, "state": example_state(one).as_json()} for name, one in found]}


def example_state(example: PaperSchedule) -> State:
    """A schedule as a state."""
    steps = tuple(Step(text) for text in steps_of(example.steps))
    formats: Mapping[str, str] = dict(item.split(":", 1) for item in example.formats.split())
    target = "cuda" if "GPU" in example.steps else "c"
    return State(example.statement, formats, steps, target, _SIZES.get(example.statement, _small(example.statement)), 0.01)


def _small(statement: str) -> dict[str, int]:
    size = 100 if "X(i,j,k)" in statement or "b(k,l)" in statement else 400
    return {var: size if var in "ijkl" else 40 for var in "abcdgijklqrt" if f"{var}," in statement or f"{var})" in statement}


def steps_of(text: str) -> list[str]:
    """The steps of a schedule's text, each as a text of its own."""
    return [f"{call.step.word()}({','.join(call.arguments)})" for call in read_steps(text)]
