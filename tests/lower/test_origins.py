"""Every loop says which variable or tensor it stems from, after lowering and after each pass; so does every line of text."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz.schedules import Drawn, with_a_step
from primitives.statements import MANY, concrete, schedule

import sparseloom as sl
from sparseloom.compiler import Stages, build, concrete_passes, loop_passes
from sparseloom.core.dtypes import INT64
from sparseloom.core.lines import text_of
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.explorer.paper import PAPER, PaperSchedule
from sparseloom.iteration.concretize import Concrete
from sparseloom.loops import nodes as ir
from sparseloom.loops.origins import stamped
from sparseloom.loops.printer import lines
from sparseloom.loops.rename import alpha_rename
from sparseloom.lower.kernel import lower
from sparseloom.lower.made_names import origins_of
from sparseloom.notation.nodes import IndexVar, TensorVar
from sparseloom.notation.printer import show
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.c import C
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.interpret import INTERPRET
from sparseloom.targets.target import Target

Loops = list[ir.For | ir.While]


def functions(start: Concrete, target: Target) -> Iterator[ir.Function]:
    """The loops of a statement as they are lowered, and as each pass leaves them."""
    settled = start
    for settle in concrete_passes(target, False):
        settled = settle.run(settled)
    lowered = lower(settled, target, origins=origins_of(start, settled))
    yield lowered.function
    for improve in loop_passes(target, lowered.indices):
        lowered = improve.run(lowered)
        yield lowered.function


def loops_of(function: ir.Function) -> Loops:
    return [n for n in walk(function) if isinstance(n, ir.For | ir.While)]


def names_of(start: Concrete) -> set[str]:
    """What a user may point at: variables, whatever became of them, and tensors."""
    return {n.name for n in walk(start.stmt) if isinstance(n, IndexVar | TensorVar)}


def by_variable(loops: Loops) -> dict[str, list[str]]:
    """The origins of the loops over each variable."""
    found: dict[str, list[str]] = {}
    for loop in loops:
        found.setdefault(loop.var.name if isinstance(loop, ir.For) else "", []).append(loop.origin)
    return found


def check(start: Concrete, target: Target) -> list[ir.Function]:
    """Every loop has an origin, after every pass; one that is still there has the one that it had."""
    known, before = names_of(start), dict[str, list[str]]()
    made = list(functions(start, target))
    for function in made:
        found = by_variable(loops_of(function))
        unknown = {origin for several in found.values() for origin in several} - known
        assert not unknown, f"{unknown} are no names in\n{show(start.stmt)}"
        for name in found.keys() & before.keys():
            had, have = before[name], found[name]
            assert {*have} == {*had} if len(have) >= len(had) else {*have} <= {*had}, f"{name} stems from {have}, and stemmed from {had}"
        before = found
    return made


def check_lines(stages: Stages) -> None:
    """The lines of every stage are its text, and say where they come from."""
    known = names_of(stages.concrete)
    for stage in ("notation", "concrete", "loops", stages.target.name):
        assert text_of(stages.lines(stage)) == stages.show(stage).removesuffix("\n"), stage
        assert {line.origin for line in stages.lines(stage)} <= known | {""}, stage
    head, *loops = stages.lines("loops")
    assert not head.origin
    assert all(line.origin for line in loops), "what stands in the loops stems from something"
    in_text = {line.origin for line in stages.lines(stages.target.name)} - {""}
    in_loops = {line.origin for line in loops}
    launched = {n.origin for n in walk(stages.lowered.function) if isinstance(n, ir.Launch)}
    assert in_text == in_loops if stages.target is C else launched <= in_text <= in_loops


@pytest.mark.parametrize("paper", PAPER, ids=lambda paper: paper.name)
def test_every_pass_keeps_the_origins_of_a_schedule_of_the_paper(paper: PaperSchedule) -> None:
    target = CUDA if "_gpu" in paper.name else C
    start = schedule(paper.statement, paper.formats, paper.steps).concrete
    check(start, target)
    formats = dict(item.split(":", 1) for item in paper.formats.split())
    check_lines(sl.program(paper.statement, formats, paper.steps, target=target.name).preview().stages)


SPMM = "C(i,k) = A(i,j) * B(j,k)"
ON_GPU = "parallelize(b,GPUBlock,{0}) parallelize(w,GPUWarp,{0}) parallelize(t,GPUThread,{1})"
CHANGED = (
    (SPMM, "", "split(i,i0,i1,4) reorder(i0,k,i1,j) unroll(i1,4) unroll(k,8) parallelize(k,CPUVector,NoRaces)", C),
    ("y(i) = A(i,j) * x(j)", "A:csr", "parallelize(j,CPUVector,ParallelReduction)", C),
    ("C(i,j) = 2 * A(i,j)", "A:csr C:csr", "fuse(i,j,f) pos(f,p,A(i,j)) parallelize(p,CPUVector,NoRaces)", C),
    ("s = A(i,j) * x(j)", "A:csr", "", CUDA),
    (
        SPMM,
        "A:csr",
        "bound(k,c,32,MaxExact) split(c,t,v,4) split(i,b,w,32) pos(j,p,A(i,j)) reorder(b,w,t,v,p) unroll(v,4) unroll(p,4) "
        + ON_GPU.format("NoRaces", "NoRaces"),
        CUDA,
    ),
    (
        SPMM,
        "A:csr",
        "reorder(i,j,k) fuse(i,j,f) pos(f,p,A(i,j)) bound(k,c,32,MaxExact) split(c,t,v,4) split(p,b,p1,2048) split(p1,w,n,64) "
        "reorder(b,w,t,n,v) unroll(v,4) " + ON_GPU.format("IgnoreRaces", "Atomics"),
        CUDA,
    ),
    (
        "y(j) = A(i,j) * x(i)",
        "A:csr",
        "reorder(i,j) divide(j,j0,j1,2) reorder(j1,j0) parallelize(i,GPUBlock,Atomics) parallelize(j0,GPUThread,Atomics)",
        CUDA,
    ),
    ("R(i,j) = A(i) * B(i,j)", "B:do", "fuse(i,j,f) pos(f,p,B(i,j)) split(p,b,q,256) parallelize(b,GPUBlock,Atomics)", CUDA),
    (
        "y(i) = A(i,j) * x(j)",
        "A:csr",
        "pos(j,p,A(i,j)) bound(p,q,100,MaxConstraint) split(q,n,t,8) reorder(i,t,n) parallelize(i,GPUBlock,NoRaces) "
        "parallelize(t,GPUThread,Temporary)",
        CUDA,
    ),
)


def test_every_pass_keeps_origins_where_it_changes_something() -> None:
    changed: set[int] = set()
    for statement, formats, steps, target in CHANGED:
        made = check(schedule(statement, formats, steps).concrete, target)
        changed |= {k for k, (before, after) in enumerate(pairwise(made)) if after != before}
    again = {k for k, one in enumerate(loop_passes(C)) if one.name == "simplify"}
    assert changed | again == {*range(len(loop_passes(C)))}, "every pass is tried on loops that it changes"


USUAL = {
    "y(i) = A(i,j) * x(j)": "",
    "y(j) = A(i,j) * v(i)": "",
    "Y(i,k) = A(i,j) * X(j,k)": "",
    "Y(i,j) = A(i,j) * X(i,k) * X(j,k)": "csr",
    "C(i,j) = A(i,j) + B(i,j)": "csr",
    "C(i,j) = A(i,k) * B(k,j)": "csr",
    "C(i,j) = A(j,i)": "csr",
    "C(i,j) = sqrt(A(i,j))": "csr",
    "s = A(i,j) * A(i,j)": "",
}


@pytest.mark.parametrize("target", [C, CUDA], ids=lambda target: target.name)
def test_what_the_planner_chooses_for_usual_kernels(target: Target) -> None:
    rng = np.random.default_rng(5)
    n = 30_000
    A = sp.csr_array((np.ones(20 * n), (rng.integers(0, n, 20 * n), rng.integers(0, n, 20 * n))), shape=(n, n))
    given = {"A": A, "B": A.T.tocsr(), "x": np.ones(n), "v": np.ones(n), "X": np.ones((n, 32))}
    planned = 0
    for text, form in USUAL.items():
        operands = {name: sl.asarray(value).storage for name, value in given.items() if f"{name}(" in text.split("=")[1]}
        formats = {name: storage.format for name, storage in operands.items()} | ({text[0]: form} if form and target is C else {})
        made = sl.program(text, formats, target=target.name, threads=4).specialized(operands)
        for link in getattr(made, "links", (made,)):
            planned += bool(link.plan.decisions)
            stages = build(link.plan)
            check(stages.concrete, link.plan.target)
            check_lines(stages)
    assert planned >= len(USUAL) - 1


def test_random_candidates() -> None:
    """Schedules drawn from the primitives' own candidates, for a target that has every unit."""
    random, drawn = Random(11), Drawn()
    for case in MANY:
        made = Schedule(concrete(*case))
        for _ in range(4):
            made = with_a_step(made, random, drawn)
        check(made.concrete, INTERPRET)
    assert drawn.taken.total() > 2 * len(MANY)


def test_threads_that_make_parts_stem_from_the_loop_that_was_cut() -> None:
    start = schedule("C(i,j) = A(i,j) + B(i,j)", "A:csr B:csr C:csr", "parallelize(i,CPUThread,NoRaces)").concrete
    made = {n.var.name: n.origin for n in loops_of(check(start, C)[-1]) if isinstance(n, ir.For)}
    assert made == {"i_part": "i", "i_within": "i", "place": "C", "place1_chunk": "C", "place1": "C"}


def test_the_lines_of_a_product() -> None:
    stages = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, "split(j,j0,j1,8)").preview().stages
    assert [line.origin for line in stages.lines("concrete")] == ["i", "j0", "j1", "y", "", "j0"]
    stages = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}).preview().stages
    assert [(line.text.split()[0], line.origin) for line in stages.lines("loops")] == [
        ("def", ""), ("for", "i"), ("poll", "i"), ("y_acc:", "y"), ("for", "j"), ("j:", "j"), ("y_acc", "y"), ("y_vals[i]", "y"),
    ]  # fmt: skip
    with pytest.raises(sl.NotationError, match="there is no stage 'cuda'; there are notation, concrete, passes, loops, c"):
        stages.lines("cuda")


def test_an_origin_is_a_note_that_makes_no_other_node() -> None:
    i, y = ir.Var("i"), ir.Array("y", INT64)
    loop = ir.For(i, ir.ZERO, ir.ONE, ir.Store(y, i, i), origin="i")
    plain = replace(loop, origin="")
    assert (loop == plain, hash(loop), repr(loop)) == (True, hash(plain), repr(plain))
    assert {loop: 1}[plain] == 1
    assert "origin" not in ir.For.__match_args__
    assert pickle.loads(pickle.dumps(loop)).origin == "i"
    assert pickle.loads(pickle.dumps(plain)).origin == ""

    def one_further(n: Node) -> Node | None:
        return replace(n, index=ir.ONE) if isinstance(n, ir.Store) else None

    assert rewrite(loop, one_further).origin == replace(loop, end=i).origin == "i"
    assert not any(n.origin for n in walk(alpha_rename(ir.Function("f", (ir.Param(y, ir.Role.OUTPUT),), loop))) if isinstance(n, ir.Stmt))
    with pytest.raises(TypeError):
        ir.Barrier("i")  # type: ignore[misc]


def test_what_has_an_origin_keeps_it_and_what_has_none_has_that_around_it() -> None:
    i, y = ir.Var("i"), ir.Array("y", INT64)
    inner = ir.If(ir.TRUE, ir.Store(y, i, i), origin="A")
    made = stamped(ir.block(ir.Allocate(y, ir.ONE), ir.For(i, ir.ZERO, ir.ONE, ir.block(inner, ir.Poll())), ir.Free(y)), "y")
    assert [line.origin for line in lines(made)] == ["y", "y", "A", "A", "y", "y"]
