"""Loops over coordinates: cut to what outer loops leave, merged in parallel part by part, and results initialised as late as they allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from lower.conditions import Conditions, conditions, drawn, note, valued, visiting
from primitives.statements import schedule

from sparseloom.core.dtypes import FLOAT64
from sparseloom.loops import nodes as ir
from sparseloom.lower.coordinates import over_coordinates
from sparseloom.lower.kernel import lower
from sparseloom.notation.nodes import Forall, IndexVar
from sparseloom.scope.scope import Asked, Scope
from sparseloom.scope.style import SERIAL, Style
from sparseloom.targets.c import C

i = IndexVar("i")
MERGES = (
    ("b(i) * c(i)", "s s", lambda b, c: b & c),
    ("b(i) + c(i)", "s s", lambda b, c: b | c),
    ("b(i) + c(i)", "u b", lambda b, c: b | c),
    ("b(i) * c(i)", "s d", lambda b, c: b),
    ("b(i) + c(i)", "s d", lambda b, c: c),
)
Sets = Callable[[set[int], set[int]], set[int]]


def merging(text: str, formats: str) -> tuple[Conditions, Forall]:
    kinds = dict(zip("bc", formats.split(), strict=True))
    given = conditions(f"a(i) = {text}", " ".join(f"{name}:{form}" for name, form in kinds.items()), loops="i")
    stmt = given.stmt
    assert isinstance(stmt, Forall)
    return given, stmt


@pytest.mark.parametrize(("text", "formats", "sets"), MERGES)
def test_a_part_of_the_range_is_merged_alone(text: str, formats: str, sets: Sets, rng: np.random.Generator) -> None:
    """For every part of the range that outer code leaves: those of its coordinates at which there is something to do."""
    given, stmt = merging(text, formats)
    low, high, size = ir.Var("low"), ir.Var("high"), given.scope.context.sizes.of(i)
    asked = Asked(stmt, i, SERIAL, lambda s: note(low, high, s.coordinates[i], *(valued(given.access(name), s) for name in "bc")))
    confined = over_coordinates(asked, i, given.scope.limiting(i, low, high))
    behind = ir.add(size, ir.ONE)
    notes = given.notes(ir.For(low, ir.ZERO, behind, ir.For(high, ir.ZERO, behind, confined)), 5)
    for n in (1, 4, 6):
        made = {name: drawn(rng, form, (n,), "u" in form) for name, form in zip("bc", formats.split(), strict=True)}
        (_, b), (_, c) = made.values()
        inside = sorted(sets({k for (k,) in b}, {k for (k,) in c}))
        pairs = [(first, last) for first in range(n + 1) for last in range(n + 1)]
        expected = [(*pair, k, b.get((k,)), c.get((k,))) for pair in pairs for k in inside if pair[0] <= k < pair[1]]
        assert notes.on({name: storage for name, (storage, _) in made.items()}) == expected


@pytest.mark.parametrize("parts", [1, 3, 64])
@pytest.mark.parametrize(("text", "formats", "sets"), MERGES)
def test_threads_merge_parts_of_the_range(text: str, formats: str, sets: Sets, parts: int, rng: np.random.Generator) -> None:
    """Each part begins where its coordinates do; every coordinate is somebody's, and nobody meets another."""
    given, stmt = merging(text, formats)
    found, size, at = ir.Array("found", FLOAT64), given.scope.context.sizes.of(i), ir.Var("at")
    scope = replace(given.scope, context=replace(given.scope.context, target=replace(C, parts=parts)))

    def body(inner: Scope) -> ir.Stmt:
        place = ir.multiply(inner.coordinates[i], ir.index(2))
        values = [valued(given.access(name), inner) for name in "bc"]
        return ir.block(*(ir.Store(found, ir.add(place, ir.index(k)), value) for k, value in enumerate(values)))

    loops = over_coordinates(Asked(stmt, i, Style(ir.LoopKind.THREADS), body), i, scope)
    room = ir.multiply(size, ir.index(2))
    nothing = ir.Fill(found, ir.ZERO, room, ir.Literal(-1.0, FLOAT64))
    read = ir.For(at, ir.ZERO, room, note(ir.Load(found, at)))
    notes = given.notes(ir.block(ir.Allocate(found, room), nothing, loops, read, ir.Free(found)), 1)
    for n in (0, 1, 5, 9):
        made = {name: drawn(rng, form, (n,), "u" in form) for name, form in zip("bc", formats.split(), strict=True)}
        (_, b), (_, c) = made.values()
        inside = sets({k for (k,) in b}, {k for (k,) in c})
        expected = [held.get((k,)) if k in inside else -1 for k in range(n) for held in (b, c)]
        assert [value for (value,) in notes.on({name: storage for name, (storage, _) in made.items()})] == expected


@pytest.mark.parametrize("steps", ["split(i,x,y,3)", "divide(i,x,y,3)", "split(i,x,y,3) reorder(y,x)", "divide(i,x,y,3) reorder(y,x)"])
@pytest.mark.parametrize(("text", "formats", "sets"), [case for case in MERGES if "d" not in case[1]])
def test_digits_are_merged_too(text: str, formats: str, sets: Sets, steps: str, rng: np.random.Generator) -> None:
    kinds = dict(zip("bc", formats.split(), strict=True))
    told = " ".join(f"{name}:{form}" for name, form in kinds.items())
    notes = visiting(conditions(f"a(i) = {text}", told, steps), "i x y")
    for n in (0, 1, 7, 9):
        made = {name: drawn(rng, form, (n,), "u" in form) for name, form in kinds.items()}
        (_, b), (_, c) = made.values()
        size = 3 if "split" in steps else max(1, (n + 2) // 3)
        rows = [(k, *divmod(k, size), b.get((k,)), c.get((k,))) for k in sets({k for (k,) in b}, {k for (k,) in c})]
        found = notes.on({name: storage for name, (storage, _) in made.items()})
        assert found == sorted(rows, key=lambda row: (row[2], row[1]) if "reorder" in steps else row[1:3])


# Where a dense result gets its first values: at which depth of the loops.
INITIALISED = (
    ("y(i) = A(i,j) * x(j)", "A:csr", "", []),
    ("y(i) = A(i,j) * x(j)", "A:dcsr", "", [0]),
    ("y(i) = A(i,j) * x(j)", "A:csr", "split(i,i0,i1,4)", []),
    ("y(i) = A(i,j) * x(j)", "A:dcsr", "split(i,i0,i1,4)", [0]),
    ("y(i) = A(i,j) * x(j)", "A:csr", "reorder(j,i)", [0]),
    ("y(i) = A(i,j) * x(j)", "A:csr", "fuse(i,j,f) pos(f,p,A(i,j))", [0]),
    ("y(j) = A(i,j) * x(i)", "A:csr", "", [0]),
    ("Y(i,k) = A(i,j) * X(j,k)", "A:csr", "", [1]),
    ("Y(i,k) = A(i,j) * X(j,k)", "A:dcsr", "", [0]),
    ("Y(i,k) = A(i,j) * X(j,k)", "A:csr", "split(i,i0,i1,4)", [2]),
    ("Y(i,k) = A(i,j) * X(j,k)", "A:csr", "reorder(i,k,j)", []),
    ("Y(i,j) = A(i,j)", "A:csr", "", [1]),
    ("Y(i,j) = A(i,j)", "A:csr", "fuse(i,j,f)", [0]),
    ("Y(i,j) = A(i,j) + 1", "A:csr", "", [1]),
    ("Y(i,j) = A(i,j) + B(i,j)", "A:csr", "", []),
    ("Y(i,i) = x(i)", "", "", [0]),
    ("a = A(i,j)", "A:csr", "", []),
)


@pytest.mark.parametrize(("text", "formats", "steps", "depths"), INITIALISED)
def test_a_dense_result_is_initialised_as_late_as_the_loops_allow(text: str, formats: str, steps: str, depths: list[int]) -> None:
    made = lower(schedule(text, formats, steps).concrete, C)
    assert list(fills(made.function.body)) == depths


def fills(stmt: ir.Stmt, depth: int = 0) -> Iterator[int]:
    """How deep in the loops arrays are filled."""
    match stmt:
        case ir.Fill():
            yield depth
        case ir.For(body=body) | ir.While(body=body):
            yield from fills(body, depth + 1)
        case ir.If(_, then, other):
            yield from fills(then, depth)
            yield from fills(other, depth)
        case ir.Block(stmts):
            for inner in stmts:
                yield from fills(inner, depth)
