"""The loop IR that each level contributes."""

from __future__ import annotations

import pytest

from sparseloom.core.dtypes import INT32, INT64
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import Level, LevelView
from sparseloom.formats.levels import LEVELS, Compressed, Dense, Padded, Singleton
from sparseloom.loops.nodes import ONE, ZERO, Array, Cast, Load, Op, Store, Var, add, multiply

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
    assert level.locate(view, p, i) == add(begin, i)
    assert level.locate(view, ZERO, i) == i


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
    assert level.append(view, q, i) == Store(Array("crd", INT32), q, Cast(i, INT32))


@pytest.mark.parametrize("level", LEVELS.values(), ids=LEVELS)
def test_a_level_refuses_what_it_cannot_do(level):
    if not level.can_locate:
        with pytest.raises(CompilerBug, match="cannot locate"):
            level.locate(view_of(level), p, i)
    if not level.can_append:
        with pytest.raises(CompilerBug, match="cannot append"):
            level.append(view_of(level), q, i)


@pytest.mark.parametrize(
    ("letter", "claims"),
    {
        "d": "full ordered unique compact can_locate",
        "s": "ordered unique compact can_append",
        "u": "ordered compact can_append",
        "q": "ordered unique branchless compact can_append",
        "p": "ordered unique can_append",
    }.items(),
)
def test_what_levels_claim(letter, claims):
    names = "full ordered unique branchless compact can_locate can_append".split()
    assert " ".join(name for name in names if getattr(LEVELS[letter], name)) == claims
    assert LEVELS[letter].letter == letter
