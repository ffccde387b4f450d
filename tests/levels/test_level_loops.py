"""The loop IR that each level contributes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparseloom.core.dtypes import BOOL, INT32, INT64
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import Level, LevelView
from sparseloom.formats.levels import LEVELS, Bitmap, Compressed, Dense, Offset, Padded, Singleton
from sparseloom.loops.nodes import ONE, TRUE, ZERO, Array, Cast, Load, Op, Search, Store, Var, add, both, compare, multiply

p, q, i, n = Var("p"), Var("q"), Var("i"), Var("n")


def view_of(level: Level) -> LevelView:
    """A view whose arrays and scalars are called as the level calls them."""
    return LevelView(n, {name: Array(name, INT32) for name in level.array_names}, {name: Var(name) for name in level.scalar_names})


def stored(name: str, position):
    return Cast(Load(Array(name, INT32), position), INT64)


def test_dense_positions_are_computed():
    level, view = Dense(), view_of(Dense())
    begin = multiply(p, n)
    assert level.bounds(view, p) == (begin, add(begin, n))
    assert level.bounds(view, ZERO) == (ZERO, n)
    assert level.coordinate(view, p, q) == Op("subtract", (q, begin))
    assert level.coordinate(view, ZERO, q) == q
    assert level.locate(view, p, i) == (add(begin, i), TRUE)
    assert level.locate(view, ZERO, i) == (i, TRUE)


def test_compressed_positions_are_loaded():
    level, view = Compressed(), view_of(Compressed())
    assert level.bounds(view, p) == (stored("pos", p), stored("pos", add(p, ONE)))
    assert level.coordinate(view, p, q) == stored("crd", q)
    assert level.append(view, q, i) == Store(Array("crd", INT32), q, Cast(i, INT32))


def test_singleton_has_its_parents_position():
    level, view = Singleton(), view_of(Singleton())
    assert level.bounds(view, p) == (p, add(p, ONE))
    assert level.coordinate(view, p, q) == stored("crd", q)
    assert level.append(view, q, i) == Store(Array("crd", INT32), q, Cast(i, INT32))


def test_padded_positions_start_at_multiples_of_the_width():
    level, view = Padded(), view_of(Padded())
    begin = multiply(p, Var("width"))
    assert level.bounds(view, p) == (begin, add(begin, stored("len", p)))
    assert level.coordinate(view, p, q) == stored("crd", q)
    assert level.insert(view, q, i) == Store(Array("crd", INT32), q, Cast(i, INT32))


def test_bitmap_positions_are_computed_and_looked_at():
    level, view = Bitmap(), replace(view_of(Bitmap()), arrays={"present": Array("present", BOOL)})
    begin, here = multiply(p, n), add(multiply(p, n), i)
    assert level.bounds(view, p) == (begin, add(begin, n))
    assert level.coordinate(view, p, q) == Op("subtract", (q, begin))
    assert level.locate(view, p, i) == (here, Load(Array("present", BOOL), here))
    assert level.used(view, p, q) == Load(Array("present", BOOL), q)
    assert level.insert(view, q, i) == Store(Array("present", BOOL), q, TRUE)


def test_offset_positions_are_diagonals_of_a_row():
    level, view = Offset(), view_of(Offset())
    offsets, first = Array("offsets", INT32), multiply(p, Var("diagonals"))
    inside = Op("minimum", (n, Var("width")))
    every = (ZERO, Var("diagonals"))
    assert level.bounds(view, p) == (
        add(first, Search(offsets, *every, Op("subtract", (ZERO, p)))),
        add(first, Search(offsets, *every, Op("subtract", (inside, p)))),
    )
    diagonal = Op("subtract", (q, first))
    column = add(p, stored("offsets", diagonal))
    assert level.coordinate(view, p, q) == column
    assert level.slot(view, p, q) == add(multiply(diagonal, Var("width")), column)
    assert level.used(view, p, q) == both(compare("less_equal", ZERO, column), compare("less", column, inside))


def test_coordinates_are_searched_or_computed():
    begin, end = Var("begin"), Var("end")
    for level in (Compressed(), Singleton(), Padded()):
        assert level.search(view_of(level), p, begin, end, i) == Search(Array("crd", INT32), begin, end, i)
    place = add(multiply(p, n), i)
    assert Dense().search(view_of(Dense()), p, begin, end, i) == Op("maximum", (begin, Op("minimum", (end, place))))


def test_a_position_knows_its_parent():
    begin, end = Var("begin"), Var("end")
    after = Search(Array("pos", INT32), add(begin, ONE), add(end, ONE), add(q, ONE))
    assert Compressed().parent(view_of(Compressed()), q, begin, end) == Op("subtract", (after, ONE))
    assert Singleton().parent(view_of(Singleton()), q, begin, end) == q
    assert Padded().parent(view_of(Padded()), q, begin, end) == Op("floor_divide", (q, Var("width")))
    assert Dense().parent(view_of(Dense()), q, begin, end) == Op("floor_divide", (q, n))


def test_promises_are_changed_where_they_can_be_chosen():
    assert Compressed().promising(False, False) == Compressed(False, False)
    assert Singleton(False, False).promising(True, False) == Singleton(True, False)
    assert (Dense().promising(False, False), Padded().promising(False, False)) == (Dense(), Padded())


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_a_level_refuses_what_it_cannot_do(level):
    if not level.can_locate:
        with pytest.raises(CompilerBug, match="cannot locate"):
            level.locate(view_of(level), p, i)
    if not level.can_append:
        with pytest.raises(CompilerBug, match="cannot append"):
            level.append(view_of(level), q, i)
    if not level.can_insert:
        with pytest.raises(CompilerBug, match="cannot insert"):
            level.insert(view_of(level), q, i)


@pytest.mark.parametrize(
    ("letter", "claims"),
    {
        "d": "full ordered unique compact can_locate",
        "s": "ordered unique compact can_append can_insert",
        "u": "ordered compact can_append can_insert",
        "q": "ordered unique branchless compact can_append",
        "p": "ordered unique can_insert",
        "b": "ordered unique can_locate can_insert",
        "o": "ordered unique",
    }.items(),
)
def test_what_levels_claim(letter, claims):
    names = "full ordered unique branchless compact can_locate can_append can_insert".split()
    assert " ".join(name for name in names if getattr(LEVELS[letter], name)) == claims
    assert LEVELS[letter].letter == letter
