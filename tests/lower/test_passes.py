"""Passes over scheduled notation: what each makes of a statement (``tests/golden/passes``), and that none changes what is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from lower.conditions import Entries, drawn
from primitives.golden import GOLDEN, WRITES, read_cases, write_cases
from primitives.statements import schedule

from sparseloom.compiler import concrete_passes, lower_concrete
from sparseloom.core.trees import walk
from sparseloom.formats.pack import to_dense
from sparseloom.formats.storage import Storage
from sparseloom.iteration.concretize import Concrete, refilled
from sparseloom.iteration.inside import put_inside
from sparseloom.iteration.making import CountedFirst, Inserted, Making
from sparseloom.loops import interpret
from sparseloom.lower.count_first import count_first
from sparseloom.lower.cuts import cut_into_parts, cut_into_slots
from sparseloom.lower.kernel import Lowered
from sparseloom.notation.interpret import Operand, evaluate
from sparseloom.notation.nodes import Access, Assign
from sparseloom.notation.verify import verify
from sparseloom.programs.binding import gather, grown_lengths, read_result
from sparseloom.schedule.picture import full
from sparseloom.targets.interpret import INTERPRET

FOLDER = GOLDEN / "passes"
PASSES: dict[str, Callable[[Concrete], Concrete]] = {
    "cut_into_parts": partial(cut_into_parts, count=64),
    "cut_into_slots": partial(cut_into_slots, count=16),
    "count_first": count_first,
    "put_inside": put_inside,
    "refilled": refilled,
}


def told(concrete: Concrete) -> str:
    """How the result is made; where other loops count its entries, these too."""
    making: Making = concrete.making
    text = f"{concrete.assign.lhs.tensor}: {type(making).__name__}"
    if isinstance(making, Inserted) and making.driver is not None:
        text += f", and the entries of {making.driver.tensor} tell their rows"
    if not isinstance(making, CountedFirst) or making.counting is None:
        return text
    return f"{text}, counted by the same loops" if making.counting is concrete.stmt else f"{text}, counted by\n{full(making.counting)}"


def passed(name: str, heading: str) -> str:
    """A statement before and after a pass: ``statement | formats | steps``."""
    before = schedule(*(part.strip() for part in heading.split("|"))).concrete
    after = PASSES[name](before)
    verify(after.stmt)
    first = f"{full(before.stmt)}\n{told(before)}\n-->"
    if after is before:
        return f"{first} is left as it is"
    return f"{first} the same loops\n{told(after)}" if after.stmt is before.stmt else f"{first}\n{full(after.stmt)}\n{told(after)}"


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_makes_these_loops(name: str) -> None:
    file = FOLDER / f"{name}.txt"
    found = {heading: passed(name, heading) for heading in read_cases(file)}
    if WRITES:
        write_cases(file, found)
    assert found == read_cases(file)


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_something_that_it_leaves_as_it_is(name: str) -> None:
    texts = read_cases(FOLDER / f"{name}.txt").values()
    assert {text.endswith("--> is left as it is") for text in texts} == {True, False}


ADD, MULTIPLY, SPMV = "C(i,j) = A(i,j) + B(i,j)", "C(i,k) = A(i,j) * B(j,k)", "y(i) = A(i,j) * x(j)"
ROWS = "parallelize(i,CPUThread,NoRaces)"
SHARED, ONE = "y(j) = x(i) * B(i,k) * C(i,j)", "precompute(B(i,k),{},{},t)"  # what is summed over k is the same for every j

STATEMENTS = (
    (SPMV, "A:csr", ""),
    (SPMV, "A:csr", ROWS),
    (SPMV, "A:csr", "parallelize(j,CPUThread,Temporary)"),
    (SPMV, "A:dcsr", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3) parallelize(p0,CPUThread,Temporary)"),
    (SPMV, "A:coo", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3) parallelize(p0,CPUThread,Atomics)"),
    ("y(j) = A(i,j) * x(i)", "A:dcsr", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3) parallelize(p0,CPUThread,Temporary)"),
    (SPMV, "A:csr", "precompute(A(i,j)*x(j),j,jw,w) parallelize(jw,CPUThread,NoRaces)"),
    ("y(j) = A(i,j) * x(i)", "A:csr", "parallelize(i,CPUThread,Temporary)"),
    ("y(j) = A(i,j) * x(i)", "A:csr", "split(i,i0,i1,2) parallelize(i0,CPUThread,Temporary) unroll(i1,2)"),
    ("a = A(i,j) * B(i,j)", "A:csr B:dcsr", "parallelize(i,CPUThread,Temporary)"),
    ("a = A(i,j) * B(i,j)", "A:csr B:csr", "parallelize(i,CPUThread,ParallelReduction)"),
    ("a = sum(i, b(i)) * sum(i, c(i))", "b:s c:s", "parallelize(i,CPUThread,Temporary)"),
    ("a = sum(i, b(i)) * sum(i, A(i,j) * x(j))", "b:s A:dcsr", "parallelize(i,CPUThread,Temporary)"),
    (SHARED, "x:s", f"reorder(j,i,k) {ONE} parallelize(j,CPUVector,NoRaces) parallelize(k,CPUVector,ParallelReduction)"),
    (SHARED, "x:s", f"bound(j,jb,4,MaxExact) reorder(jb,i,k) {ONE} parallelize(jb,CPUVector,NoRaces)"),
    (ADD, "A:csr B:csr C:csr", ""),
    (ADD, "A:csr B:csr C:csr", ROWS),
    (ADD, "A:dcsr B:csr C:coo", ROWS),
    (ADD, "A:csr B:csr C:ell", ROWS),
    (ADD, "A:dcsr B:dcsr C:dcsr", f"assemble(C,Insert) {ROWS}"),
    (ADD, "A:csr B:csr C:csr", f"assemble(C,Insert) {ROWS}"),
    (ADD, "A:csr B:csr C:csr", "divide(i,i0,i1,3,A(i,j)) parallelize(i0,CPUThread,NoRaces)"),
    (ADD, "A:csr B:csr C:coo", "assemble(C,Insert)"),
    (MULTIPLY, "A:csr B:csr C:csr", ""),
    (MULTIPLY, "A:csr B:csr C:csr", ROWS),
    (MULTIPLY, "A:csr B:csr C:dcsr", "split(i,i0,i1,2) parallelize(i0,CPUThread,NoRaces) assemble(C,Insert)"),
    ("C(i,j) = A(i,j)", "A:csr C:csc", ""),
    ("C(i,j) = 2 * A(j,i)", "A:dcsr C:csr", ""),
    ("C(i,j) = A(i,j) * B(i,j)", "A:csr C:csr", ROWS),
    ("C(i,j) = A(i,j,k) * x(k)", "A:csf C:csr", ROWS),
)


def run(lowered: Lowered, operands: Mapping[str, Storage], sizes: Mapping[str, int], room: int | None) -> Storage:
    """The result of a kernel, by the interpreter."""
    values = None if room is None else np.empty(room, lowered.result.tensor.dtype)
    found = interpret.run(lowered.function, gather(lowered, operands, sizes, values, guess=64))
    for k, length in (grown_lengths(lowered, found) if lowered.grown else {}).items():
        found[k] = found[k][:length]
    return read_result(lowered, tuple(sizes[var.name] for var in lowered.result.indices), operands, found)


def seen(shape: tuple[int, ...], held: Entries) -> Operand:
    """An operand as the dense oracle sees it."""
    dense = Operand(np.zeros(shape), np.zeros(shape, bool))
    for place, value in held.items():
        dense.values[place], dense.present[place] = value, True
    return dense


def operands_of(assign: Assign, sizes: Mapping[str, int], rng: np.random.Generator) -> tuple[dict[str, Storage], dict[str, Operand]]:
    """Random operands of a statement, stored and as the oracle sees them."""
    found, dense = {}, {}
    for tensor, indices in dict.fromkeys((n.tensor, n.indices) for n in walk(assign.rhs) if isinstance(n, Access)):
        shape = tuple(sizes[var.name] for var in indices)
        found[tensor.name], held = drawn(rng, str(tensor.format), shape)
        dense[tensor.name] = seen(shape, held)
    return found, dense


@pytest.mark.parametrize(("parts", "slots"), [(1, 1), (3, 2)])
@pytest.mark.parametrize(("text", "formats", "steps"), STATEMENTS)
def test_passes_change_no_result(text: str, formats: str, steps: str, parts: int, slots: int, rng: np.random.Generator) -> None:
    """In any number of parts and slots; and once more into the structure that came out."""
    concrete, target = schedule(text, formats, steps).concrete, replace(INTERPRET, parts=parts, slots=slots)
    assign, sizes = concrete.assign, {"i": 5, "j": 4, "k": 3}
    operands, dense = operands_of(assign, sizes, rng)
    wanted = evaluate(assign, dense, sizes).values
    structure: Storage | None = None
    for refill in (False, True):
        settled = concrete
        for settle in (one.run for one in concrete_passes(target, refill)):
            settled = settle(settled)
            verify(settled.stmt)
        lowered = lower_concrete(assign, concrete, 2**31 - 1, refill, target).lowered
        like = structure if concrete.shared is None else operands[concrete.shared.tensor.name]
        room = None if lowered.hands_out else wanted.size if like is None else len(like.values)
        known = operands if structure is None else {**operands, assign.lhs.tensor.name: structure}
        structure = run(lowered, known, sizes, room)
        np.testing.assert_array_equal(to_dense(structure), wanted)
