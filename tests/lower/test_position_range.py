"""Where the positions of a position variable begin and end, and what stands above one of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from levels.slow_reader import entries_of
from lower.conditions import conditions, note, numbered

from sparseloom.core.errors import CompilerBug
from sparseloom.formats.storage import Storage
from sparseloom.loops import nodes as ir
from sparseloom.lower.lexicographic import first_position
from sparseloom.lower.position_range import parent_of, position_range
from sparseloom.lower.walking import settle
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.pos import PosRelation
from sparseloom.scope.scope import Scope

p = IndexVar("p")
SHAPES = ((4, 5), (1, 4), (5, 1), (3, 0), (0, 3))


def positions(storage: Storage) -> dict[tuple[int, ...], int]:
    """Where every entry stands."""
    places = {value: place for place, value in enumerate(storage.values.tolist())}
    return {place: places[float(value)] for place, value in entries_of(storage)}


def relation_of(scope: Scope) -> PosRelation:
    relation = scope.provenance.made_by(p)
    assert isinstance(relation, PosRelation)
    return relation


Inside = Callable[[int, tuple[int, ...], tuple[int, ...]], bool]  # whether a place of a shape is what an outer variable leaves

FUSED = "fuse(i,j,f) pos(f,p,A(i,j))"
RANGES: tuple[tuple[str, str, str, Inside], ...] = (
    ("csr dcsr dd sd coo", "pos(j,p,A(i,j))", "i", lambda at, place, shape: place[0] == at),
    ("csr dcsr coo dd", "split(i,a,b,2) fuse(b,j,f) pos(f,p,A(i,j))", "a", lambda at, place, shape: place[0] // 2 == at),
    ("csr dcsr coo dd", "divide(i,a,b,3) fuse(b,j,f) pos(f,p,A(i,j))", "a", lambda at, place, shape: place[0] // -(-shape[0] // 3) == at),
    ("csr dcsr coo dd", "fuse(i,j,f) split(f,a,b,3) pos(b,p,A(i,j))", "a", lambda at, p, shape: (p[0] * shape[1] + p[1]) // 3 == at),
    ("csr dcsr dd", "fuse(i,j,f) split(f,a,b,7) pos(b,p,A(i,j))", "a", lambda at, p, shape: (p[0] * shape[1] + p[1]) // 7 == at),
)


@pytest.mark.parametrize(("forms", "steps", "outer", "inside"), RANGES)
def test_positions_are_those_that_outer_loops_leave(forms: str, steps: str, outer: str, inside: Inside, rng: np.random.Generator) -> None:
    for form in forms.split():
        given = conditions("y(i,j) = A(i,j)", f"A:{form}", steps)
        around, scope = IndexVar(outer), given.scope
        begin, end = scope.ranges.range_of(around)
        settled, inner = settle(scope.knowing(around, ir.Var(outer)))
        code, inner = position_range(relation_of(inner), inner)
        loops = ir.For(ir.Var(outer), begin, end, ir.block(settled, code, note(ir.Var(outer), *inner.limits[p])))
        notes = given.notes(loops, 3)
        for shape in SHAPES:
            storage = numbered(rng, form, shape)
            where = positions(storage)
            for at, first, last in notes.on({"A": storage}):
                wanted = [position for place, position in where.items() if inside(at, place, shape)]
                assert list(range(first, last)) == sorted(wanted), (form, shape, at)


@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "ell", "db", "dd"])
def test_all_positions_are_counted_where_nothing_is_outside(form: str, rng: np.random.Generator) -> None:
    given = conditions("y(i,j) = A(i,j)", f"A:{form}", FUSED)
    code, inner = position_range(relation_of(given.scope), given.scope)
    notes = given.notes(ir.block(code, note(*inner.limits[p])), 2)
    for shape in SHAPES:
        storage = numbered(rng, form, shape)
        assert notes.on({"A": storage}) == [(0, len(storage.values))]


def test_the_level_below_must_be_next() -> None:
    given = conditions("y(i,j) = A(i,j)", "A:csr", "pos(j,p,A(i,j))")
    with pytest.raises(CompilerBug, match="level 1 of A must be next when its positions are walked"):
        position_range(relation_of(given.scope), given.scope)


PARENTS = (("csr", 2), ("dcsr", 2), ("coo", 2), ("dd", 2), ("sd", 2), ("ell", 2), ("db", 2), ("csf", 3), ("dss", 3), ("ssd", 3), ("suq", 3))


@pytest.mark.parametrize(("form", "order"), PARENTS)
def test_every_position_knows_what_is_above_it(form: str, order: int, rng: np.random.Generator) -> None:
    """By way of the parents, from the last level to the first: the coordinates on the way are those of the entry."""
    names = "ijk"[:order]
    inside = ",".join(names)
    fused = "fuse(i,j,f)" if order == 2 else "fuse(i,j,e) fuse(e,k,f)"
    given = conditions(f"y({inside}) = A({inside})", f"A:{form}", f"{fused} pos(f,p,A({inside}))")
    code, scope = position_range(relation_of(given.scope), given.scope)
    access = given.access("A")
    levels, views = access.tensor.format.levels, scope.view(access).levels
    at: ir.Expr = ir.Var("p")
    found: list[ir.Expr] = []
    body: list[ir.Stmt] = []
    for k in reversed(range(order)):
        above = parent_of(relation_of(scope), k, at, scope, body) if k else ir.ZERO
        found.append(levels[k].coordinate(views[k], above, at))
        at = above
    loops = ir.block(code, ir.For(ir.Var("p"), *scope.limits[p], ir.block(*body, note(ir.Var("p"), *reversed(found)))))
    for shape in ((3, 4), (1, 3)) if order == 2 else ((2, 3, 2), (3, 1, 2)):
        storage = numbered(rng, form, shape)
        noted = {row[0]: row[1:] for row in given.notes(loops, 1 + order).on({"A": storage})}
        assert {position: place for place, position in positions(storage).items()}.items() <= noted.items()


@pytest.mark.parametrize(("form", "order"), [("csr", 2), ("dcsr", 2), ("dd", 2), ("coo", 2), ("bs", 2), ("csf", 3), ("dss", 3), ("sds", 3)])
def test_a_tuple_of_coordinates_is_searched(form: str, order: int, rng: np.random.Generator) -> None:
    """The first position whose coordinates are not before the given ones, for every tuple of them; one that is behind the end too."""
    inside = ",".join("ijk"[:order])
    given = conditions(f"y({inside}) = A({inside})", f"A:{form}")
    access, scope = given.access("A"), given.scope
    form_of, views = access.tensor.format, scope.view(access).levels
    keys = [ir.Var(f"key{k}") for k in range(order)]
    whole = form_of.levels[0].bounds(views[0], ir.ZERO)
    code, found = first_position(access, range(order), whole, ir.ZERO, keys, scope)
    loops: ir.Stmt = ir.block(*code, note(*keys, found))
    for key, var in reversed(list(zip(keys, access.indices, strict=True))):
        loops = ir.For(key, ir.ZERO, scope.context.sizes.of(var), loops)
    notes = given.notes(loops, order + 1)
    for shape in ((3, 4), (1, 3), (4, 1)) if order == 2 else ((2, 3, 2), (1, 2, 3)):
        storage = numbered(rng, form, shape)
        where = positions(storage)
        behind = len(storage.values)
        for *key, position in notes.on({"A": storage}):
            assert position == min((at for place, at in where.items() if place >= tuple(key)), default=behind)
