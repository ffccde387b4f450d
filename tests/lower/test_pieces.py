"""Pieces of equal weight: where each begins and ends, by the definition, for operands of many levels."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np
import pytest
from levels.slow_reader import entries_of
from lower.conditions import Notes, conditions, note, numbered, visiting

from sparseloom.formats.storage import Storage
from sparseloom.loops import nodes as ir
from sparseloom.lower.pieces import cut_piece
from sparseloom.lower.walking import settle
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations.weighted import WeightedRelation

SHAPES = ((6, 5), (1, 4), (9, 2), (3, 0), (0, 3))
COUNTS = (1, 2, 3, 5)


def pieces(held: list[int], extent: int, count: int, weighed: Collection[int] = (), rows: int = 0) -> list[tuple[int, int]]:
    """The pieces of a range, by the coordinates of its entries: one begins at the first value before which its share of them stands.

    Values that are ``weighed`` count for as many entries more as ``rows`` says.
    """
    before = [sum(at < value for at in held) + rows * sum(at < value for at in weighed) for value in range(extent + 1)]
    cuts = [next(value for value in range(extent + 1) if before[value] >= b * before[-1] // count) for b in range(1, count)]
    return list(pairwise([0, *cuts, extent]))


def within(held: list[int], piece: tuple[int | None, ...]) -> list[int]:
    """The coordinates of the entries in a piece. Where values without entries stand between two pieces, either may have them."""
    return [at for at in held if piece[0] <= at < piece[1]]  # type: ignore[operator]


def cut(form: str, var: str, count: int, weight: str = "") -> Notes:
    """Notes of where every piece of i begins and ends, or for each i those of j."""
    given = conditions("y(i,j) = A(i,j)", f"A:{form}", f"divide({var},a,b,{count},A(i,j){weight})", loops="i j")
    rows = () if var == "i" else (ir.Var("i"),)
    known = given.scope.knowing(IndexVar("a"), ir.Var("a"))
    for row in rows:
        known = known.knowing(IndexVar("i"), row)
    settled, known = settle(known)
    relation = known.provenance.made_by(IndexVar("b"))
    assert isinstance(relation, WeightedRelation)
    code, after = cut_piece(relation, known)
    loops: ir.Stmt = ir.For(ir.Var("a"), ir.ZERO, ir.index(count), ir.block(code, note(*rows, *after.limits[IndexVar("b")])))
    for row in rows:
        loops = ir.For(row, ir.ZERO, known.context.sizes.of(IndexVar("i")), ir.block(settled, loops))
    return given.notes(loops, 2 + len(rows))


def rows(storage: Storage) -> list[int]:
    """The first coordinate of every entry."""
    return [place[0] for place, _ in entries_of(storage)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("form", ["csr", "dcsr", "coo", "dd", "uq+", "ell"])
def test_pieces_hold_their_share_of_the_entries(form: str, count: int, rng: np.random.Generator) -> None:
    notes = cut(form, "i", count)
    for shape in SHAPES:
        storage = numbered(rng, form, shape, repeats=3 if "+" in form else 0)
        held, found = rows(storage), notes.on({"A": storage})
        weighed = held if form != "ell" else [row for row in range(shape[0]) for _ in range(storage.levels[1].scalars["width"])]
        assert (found[0][0], found[-1][1]) == (0, shape[0])
        assert all(a[1] == b[0] for a, b in pairwise(found))
        assert [within(held, piece) for piece in found] == [within(held, piece) for piece in pieces(weighed, shape[0], count)]


@pytest.mark.parametrize("form", ["csr", "dcsr", "ell", "coo"])
def test_rows_have_a_weight_of_their_own(form: str, rng: np.random.Generator) -> None:
    """Each that is stored, that is: in coo every row is its entries."""
    for count, rows_weigh in ((2, 1), (3, 2), (5, 7)):
        notes = cut(form, "i", count, f",{rows_weigh}")
        for shape in SHAPES:
            storage = numbered(rng, form, shape)
            held, found = rows(storage), notes.on({"A": storage})
            stored = {"dcsr": sorted({*held}), "coo": []}.get(form, list(range(shape[0])))
            entries = held if form != "ell" else [row for row in range(shape[0]) for _ in range(storage.levels[1].scalars["width"])]
            wanted = pieces(entries, shape[0], count, stored, rows_weigh)
            assert [within(held, piece) for piece in found] == [within(held, piece) for piece in wanted]
            assert form == "dcsr" or form == "coo" or found == wanted


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("form", ["csr", "dcsr", "dd", "coo", "du"])
def test_pieces_of_a_row_hold_their_share_of_it(form: str, count: int, rng: np.random.Generator) -> None:
    notes = cut(form, "j", count)
    for shape in SHAPES:
        storage = numbered(rng, form, shape, repeats=3 if form == "du" else 0)
        found = notes.on({"A": storage})
        for row in range(shape[0]):
            held = [place[1] for place, _ in entries_of(storage) if place[0] == row]
            mine = [(low, high) for at, low, high in found if at == row]
            assert [within(held, piece) for piece in mine] == [within(held, piece) for piece in pieces(held, shape[1], count)]


@pytest.mark.parametrize("form", ["csf", "dss", "sds", "ssd", "coo"])
def test_entries_are_weighed_at_the_last_level(form: str, rng: np.random.Generator) -> None:
    given = conditions("y(i,j,k) = A(i,j,k)", f"A:{form}", "divide(i,a,b,3,A(i,j,k))", loops="i j k")
    notes = visiting(given, "i j k a b")
    for shape in ((5, 3, 2), (1, 4, 2), (7, 2, 1)):
        storage = numbered(rng, form, shape)
        cuts = pieces(rows(storage), shape[0], 3)
        piece = {row: [row in range(*limits) for limits in cuts].index(True) for row in rows(storage)}
        expected = [(*place, piece[place[0]], place[0], int(value)) for place, value in entries_of(storage)]
        assert notes.on({"A": storage}) == expected
