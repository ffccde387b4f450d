"""Coordinates that are found again for a block of positions: the operand stays inside its block, and others are merged with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from levels.slow_reader import entries_of
from lower.conditions import conditions, drawn, number, numbered, visiting

from sparseloom.formats.storage import Storage
from sparseloom.loops import nodes as ir
from sparseloom.lower.again import blocks_again, blocks_of, confined, named
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.coord import CoordRelation
from sparseloom.relations.pos import PosRelation


@dataclass(frozen=True)
class Entry:
    """An entry of A: its coordinates, its position, and where the row and the rows begin and end."""

    place: tuple[int, int]
    at: int
    row: int  # where its row begins
    shape: tuple[int, int]

    @property
    def fused(self) -> int:
        return self.place[0] * self.shape[1] + self.place[1]


def entries(storage: Storage) -> list[tuple[Entry, int]]:
    """The entries of A in their order, with their values."""
    found: list[tuple[Entry, int]] = []
    for at, (place, value) in enumerate(entries_of(storage)):
        row = next((entry.row for entry, _ in found if entry.place[0] == place[0]), at)
        found.append((Entry((place[0], place[1]), at, row, (storage.shape[0], storage.shape[1])), int(value)))
    return found


Derive = Callable[[Entry], tuple[int, ...]]
STEPS: tuple[tuple[str, str, Derive], ...] = (
    ("pos(j,p,A(i,j)) coord(p,c)", "c", lambda e: (e.place[1],)),
    ("pos(j,p,A(i,j)) split(p,a,b,2) coord(b,c)", "p a b c", lambda e: (e.at, *divmod(e.at - e.row, 2), e.place[1])),
    ("fuse(i,j,f) pos(f,p,A(i,j)) coord(p,c)", "c f", lambda e: (e.fused, e.fused)),
    ("fuse(i,j,f) pos(f,p,A(i,j)) split(p,a,b,3) coord(b,c)", "p a b c f", lambda e: (e.at, *divmod(e.at, 3), e.fused, e.fused)),
    ("fuse(i,j,f) pos(f,p,A(i,j)) split(p,a,b,4) split(b,d,e,2) coord(e,c)", "a b d e", lambda e: (*divmod(e.at, 4), *divmod(e.at % 4, 2))),
    ("pos(j,p,A(i,j)) split(p,a,b,2) coord(b,c) pos(c,q,A(i,j))", "a b c q", lambda e: (*divmod(e.at - e.row, 2), e.place[1], e.at)),
    ("fuse(i,j,f) pos(f,p,A(i,j)) split(p,a,b,3) coord(b,c) pos(c,q,A(i,j))", "a c q", lambda e: (e.at // 3, e.fused, e.at)),
    ("pos(j,p,A(i,j)) split(p,a,b,3) coord(b,c) split(c,d,e,2)", "a d e", lambda e: ((e.at - e.row) // 3, *divmod(e.place[1], 2))),
)


@pytest.mark.parametrize(("steps", "names", "derive"), STEPS)
@pytest.mark.parametrize("forms", ["A:csr B:csr", "A:dcsr B:csr", "A:csr", "A:dcsr B:db"])
def test_found_again_is_the_block_merged_with_others(forms: str, steps: str, names: str, derive: Derive, rng: np.random.Generator) -> None:
    """Every entry that A has in common with B comes once, with the digits of its position. Positions of A may find nothing in B."""
    form = dict(item.split(":") for item in forms.split())
    notes = visiting(conditions("y(i,j) = A(i,j) * B(i,j)", forms, steps), f"i j {names}")
    for shape in ((3, 6), (1, 4), (4, 1), (2, 0)):
        first = numbered(rng, form["A"], shape)
        second, held = drawn(rng, form.get("B", "dd"), shape)
        expected = [(*entry.place, *derive(entry), value, held[entry.place]) for entry, value in entries(first) if entry.place in held]
        found = notes.on({"A": first, "B": second})
        assert sorted(row for row in found if row[-1] is not None) == sorted(expected)


def test_positions_of_another_operand_stay_in_the_block(rng: np.random.Generator) -> None:
    """Coordinates of a block of A, counted by the positions of B: the block is tested at each."""
    steps = "pos(j,p,A(i,j)) split(p,a,b,2) coord(b,c) pos(c,q,B(i,j))"
    notes = visiting(conditions("y(i,j) = A(i,j) * B(i,j)", "A:csr B:csr", steps), "i j a q")
    for shape in ((3, 6), (2, 3), (1, 7)):
        first, second = numbered(rng, "csr", shape), numbered(rng, "csr", shape)
        there = {entry.place: (entry.at, value) for entry, value in entries(second)}
        expected = [
            (*entry.place, (entry.at - entry.row) // 2, there[entry.place][0], value, there[entry.place][1])
            for entry, value in entries(first)
            if entry.place in there
        ]
        assert sorted(notes.on({"A": first, "B": second})) == sorted(expected)


def _relations(steps: str) -> tuple[list[PosRelation], list[CoordRelation]]:
    graph = conditions("y(i,j) = A(i,j) * B(i,j)", "A:csr B:csr", steps).scope.provenance
    relations = graph.relations
    return [r for r in relations if isinstance(r, PosRelation)], [r for r in relations if isinstance(r, CoordRelation)]


def test_blocks_are_told_with_the_positions_that_they_were_found_for() -> None:
    steps = "pos(j,p,A(i,j)) split(p,a,b,2) coord(b,c) pos(c,q,B(i,j)) split(q,d,e,2) coord(e,g)"
    graph = conditions("y(i,j) = A(i,j) * B(i,j)", "A:csr B:csr", steps).scope.provenance
    (first, second), (again, twice) = _relations(steps)
    assert blocks_again(first, graph) == []
    assert blocks_again(second, graph) == [(again, first)]
    assert blocks_of(again, graph) == [(again, first)]
    assert blocks_of(twice, graph) == [(twice, second), (again, first)]


def test_an_operand_drives_inside_its_block() -> None:
    given = conditions("y(i,j) = A(i,j) * B(i,j)", "A:csr B:csr", "pos(j,p,A(i,j)) split(p,a,b,2) coord(b,c)")
    _, (again,) = _relations("pos(j,p,A(i,j)) split(p,a,b,2) coord(b,c)")
    graph, p = given.scope.provenance, IndexVar("p")
    scope = given.scope.limiting(p, ir.Var("first"), ir.Var("last")).knowing(IndexVar("a"), ir.Var("a"))
    inside = confined(blocks_of(again, graph), scope)
    assert inside.drivers == {given.access("A")}
    begin, end = inside.cuts[given.access("A"), 1]
    for first, last, a in ((10, 15, 0), (10, 15, 1), (10, 15, 2), (10, 15, 3), (4, 4, 0)):
        values = {"first": first, "last": last, "a": a}
        positions = [at for at in range(first, last) if (at - first) // 2 == a]
        assert list(range(number(begin, values), number(end, values))) == positions


def test_what_positions_replaced_is_known_with_its_coordinates() -> None:
    given = conditions("y(i,j) = A(i,j) * x(j)", "A:csr", "fuse(i,j,f) pos(f,p,A(i,j))")
    (relation,) = [r for r in given.scope.provenance.relations if isinstance(r, PosRelation)]
    row = given.scope.knowing(IndexVar("i"), ir.Var("i"))
    assert named(relation, row) is row
    f = named(relation, row.knowing(IndexVar("j"), ir.Var("j"))).coordinates[IndexVar("f")]
    assert number(f, {"i": 2, "j": 3, "j_size": 10}) == 23
