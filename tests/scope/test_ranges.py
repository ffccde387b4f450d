"""Ranges in loop IR, interpreted over small integers: what known digits leave of a range, and what values stand for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations

import pytest
from lower.conditions import Conditions, conditions, note, number
from lower.digits import LINES, SIZES, Derive, share

from sparseloom.core.errors import CompilerBug
from sparseloom.loops import nodes as ir
from sparseloom.lower.recovery import recover
from sparseloom.notation.nodes import IndexVar
from sparseloom.scope.ranges import Ranges, ceil_divide, least, most, subtract
from sparseloom.scope.scope import Scope

i, k = IndexVar("i"), ir.Var("k")
DIGITS: tuple[tuple[str, str, Derive], ...] = (
    *LINES,
    ("split(i,a,b,3) fuse(a,b,f)", "f", lambda i, n: (i,)),
    ("divide(i,a,b,3) fuse(a,b,f) split(f,c,d,2)", "c d", lambda i, n: divmod(i, 2)),
)


def knowing(given: Conditions, names: tuple[str, ...]) -> Scope:
    """The scope in which these variables are known."""
    scope = given.scope
    for name in names:
        scope = scope.knowing(IndexVar(name), ir.Var(name))
    return scope


def over(given: Conditions, names: tuple[str, ...], body: ir.Stmt) -> ir.Stmt:
    """Loops over all values of some variables."""
    for name in reversed(names):
        body = ir.For(ir.Var(name), *given.scope.ranges.range_of(IndexVar(name)), body)
    return body


def subsets(names: str) -> list[tuple[str, ...]]:
    digits = names.split()
    return list(chain.from_iterable(combinations(digits, count) for count in range(len(digits) + 1)))


@pytest.mark.parametrize(("steps", "digits", "derive"), DIGITS)
def test_what_known_digits_leave_is_an_interval_and_a_filter(steps: str, digits: str, derive: Derive) -> None:
    """For every set of digits that may be known, and all their values: the values of i that pass are those with these digits."""
    for names in subsets(digits):
        given = conditions("y(i) = 1", "", steps)
        ranges = knowing(given, names).ranges
        passes = ir.both(*ranges.filters(i, k))
        body = ir.For(k, *ranges.interval(i), ir.when(passes, note(*map(ir.Var, names), k)))
        notes = given.notes(over(given, names, body), len(names) + 1)
        for n in SIZES:
            wanted = [(dict(zip(digits.split(), derive(value, n), strict=True)), value) for value in range(n)]
            assert sorted(notes.on(i=n)) == sorted((*(worth[name] for name in names), value) for worth, value in wanted)


@pytest.mark.parametrize(("steps", "digits", "derive"), DIGITS)
def test_leading_digits_need_no_filter(steps: str, digits: str, derive: Derive) -> None:
    *above, last = digits.split()
    for count in range(len(above) + 1):
        _, _, scope = recover(knowing(conditions("y(i) = 1", "", steps), tuple(above[:count])))
        assert scope.ranges.filters(i, k) == []
        assert scope.ranges.is_narrowed(i) == (count > 0)
        assert scope.ranges.is_leading(i, IndexVar(last)) == (count == len(above))


@pytest.mark.parametrize(("steps", "digits", "derive"), DIGITS)
def test_a_value_has_these_digits(steps: str, digits: str, derive: Derive) -> None:
    given = conditions("y(i) = 1", "", steps)
    found = [given.scope.ranges.digit_of(i, k, IndexVar(name)) for name in digits.split()]
    assert None not in found
    body = note(k, *(part for part in found if part is not None))
    notes = given.notes(ir.For(k, ir.ZERO, given.scope.context.sizes.of(i), body), 1 + len(found))
    for n in SIZES:
        assert notes.on(i=n) == [(value, *derive(value, n)) for value in range(n)]


def test_what_is_no_digit_has_no_value() -> None:
    ranges = conditions("y(i,j) = 1", "", "split(i,a,b,4)").scope.ranges
    assert ranges.digit_of(i, k, IndexVar("j")) is None
    assert ranges.digit_of(IndexVar("j"), k, IndexVar("j")) == k


def test_what_outer_code_left_of_a_digit_is_a_filter_where_nothing_leads_to_it() -> None:
    """The inner digit is confined to [1, 3): a filter while its block is open, an interval once that is known."""
    given = conditions("y(i) = 1", "", "split(i,a,b,4)")
    confined = given.scope.limiting(IndexVar("b"), ir.ONE, ir.index(3))
    passes = ir.both(*confined.ranges.filters(i, k))
    notes = given.notes(ir.For(k, *confined.ranges.interval(i), ir.when(passes, note(k))), 1)
    assert notes.on(i=10) == [(value,) for value in (1, 2, 5, 6, 9)]
    leading = confined.knowing(IndexVar("a"), ir.Var("a")).ranges
    assert leading.filters(i, k) == []
    notes = given.notes(over(given, ("a",), ir.For(k, *leading.interval(i), note(k))), 1)
    assert notes.on(i=10) == [(value,) for value in (1, 2, 5, 6, 9)]


EXTENTS: tuple[tuple[str, str, Callable[[int, int], tuple[int, int]]], ...] = (
    ("split(i,a,b,4)", "a", lambda n, m: (0, (n + 3) // 4)),
    ("split(i,a,b,4)", "b", lambda n, m: (0, 4)),
    ("divide(i,a,b,4)", "a", lambda n, m: (0, 4)),
    ("divide(i,a,b,4)", "b", lambda n, m: (0, share(n, 4))),
    ("fuse(i,j,f)", "f", lambda n, m: (0, n * m)),
    ("fuse(i,j,f) split(f,a,b,5)", "a", lambda n, m: (0, (n * m + 4) // 5)),
    ("bound(i,a,7,MaxExact)", "a", lambda n, m: (0, 7)),
    ("bound(i,a,7,MaxConstraint)", "a", lambda n, m: (0, n)),
    ("bound(i,a,0,MinExact)", "a", lambda n, m: (0, n)),
    ("bound(i,a,0,MinConstraint) split(a,c,d,3)", "c", lambda n, m: (0, (n + 2) // 3)),
)


@pytest.mark.parametrize(("steps", "name", "wanted"), EXTENTS)
def test_variables_run_so_far(steps: str, name: str, wanted: Callable[[int, int], tuple[int, int]]) -> None:
    ranges = conditions("y(i,j) = 1", "", steps).scope.ranges
    for n, m in ((0, 3), (3, 0), (5, 4), (8, 1), (7, 7)):
        values = {"i_size": n, "j_size": m}
        low, high = (number(limit, values) for limit in ranges.range_of(IndexVar(name)))
        assert (low, high) == wanted(n, m)
        assert number(ranges.extent(IndexVar(name)), values) == high - low


def test_limits_take_the_place_of_a_range() -> None:
    scope = conditions("y(i) = 1", "", "").scope
    confined = scope.limiting(i, ir.index(2), ir.index(5)).ranges
    assert confined.range_of(i) == (ir.index(2), ir.index(5))
    assert confined.whole_range(i) == scope.ranges.range_of(i)
    assert scope.knowing(i, k).ranges.interval(i) == (k, ir.add(k, ir.ONE))


Members = Callable[..., tuple[int, ...]]
MEMBERS: tuple[tuple[str, str, tuple[str, ...], Members], ...] = (
    ("fuse(i,j,f)", "f", (), lambda value, n, m: divmod(value, m)),
    ("split(i,a,b,4)", "b", ("a",), lambda value, n, m, a: (min(a * 4 + value, n),)),
    ("split(i,a,b,4) fuse(b,j,f)", "f", ("a",), lambda value, n, m, a: (min(a * 4 + value // m, n), value % m)),
    ("fuse(i,j,f) split(f,a,b,5)", "b", ("a",), lambda value, n, m, a: divmod(min(a * 5 + value, n * m), m)),
    ("split(i,a,b,4) fuse(a,b,f)", "f", (), lambda value, n, m: (min(value, n),)),
    ("split(i,a,b,4) fuse(a,b,f) fuse(f,j,g)", "g", (), lambda value, n, m: (min(value // m, n), value % m)),
    ("bound(i,a,99,MaxConstraint) fuse(a,j,f)", "f", (), lambda value, n, m: divmod(value, m)),
)


@pytest.mark.parametrize(("steps", "name", "outer", "wanted"), MEMBERS)
def test_a_value_stands_for_these_coordinates(steps: str, name: str, outer: tuple[str, ...], wanted: Members) -> None:
    """Outermost first; one beyond the end of a range is moved to the end."""
    given = conditions("y(i,j) = 1", "", steps)
    var = IndexVar(name)
    ranges: Ranges = knowing(given, outer).ranges
    members = ranges.members_at(var, ir.Var(name))
    notes = given.notes(over(given, (*outer, name), note(ir.Var(name), *map(ir.Var, outer), *members)), 1 + len(outer) + len(members))
    for n, m in ((5, 3), (4, 1), (1, 7), (6, 2)):
        found = notes.on(i=n, j=m)
        assert found
        for value, *rest in found:
            assert tuple(rest[len(outer) :]) == wanted(value, n, m, *rest[: len(outer)])


def test_levels_that_are_derived_stop_the_way_up() -> None:
    ranges = conditions("y(i,j) = 1", "", "split(i,a,b,4) fuse(b,j,f)").scope.knowing(IndexVar("a"), ir.Var("a")).ranges
    members = ranges.members_at(IndexVar("f"), k, (IndexVar("b"), IndexVar("j")))
    assert [number(member, {"k": 7, "j_size": 5}) for member in members] == [1, 2]


def test_the_range_of_positions_must_be_known() -> None:
    scope = conditions("y(i,j) = A(i,j)", "A:csr", "pos(j,p,A(i,j))").scope
    with pytest.raises(CompilerBug, match="the range of p must be known before its loops"):
        scope.ranges.range_of(IndexVar("p"))


x, y = ir.Var("x"), ir.Var("y")
FOLDED = (
    (subtract(ir.index(7), ir.index(3)), ir.index(4)),
    (subtract(x, ir.ZERO), x),
    (subtract(x, x), ir.ZERO),
    (subtract(ir.add(x, y), x), y),
    (subtract(x, y), ir.Op("subtract", (x, y))),
    (least(ir.index(7), ir.index(3)), ir.index(3)),
    (least(x, x), x),
    (most(ir.index(7), ir.index(3)), ir.index(7)),
    (most(y, y), y),
    (ceil_divide(x, ir.ONE), x),
    (ceil_divide(x, ir.index(4)), ir.Op("floor_divide", (ir.add(x, ir.index(3)), ir.index(4)))),
)


@pytest.mark.parametrize(("made", "wanted"), FOLDED)
def test_what_is_known_is_folded(made: ir.Expr, wanted: ir.Expr) -> None:
    assert made == wanted


@pytest.mark.parametrize("left", [0, 1, 5, 8, 9])
@pytest.mark.parametrize("right", [1, 2, 4])
def test_arithmetic_is_that_of_integers(left: int, right: int) -> None:
    values = {"x": left, "y": right}
    found = [number(made, values) for made in (subtract(x, y), least(x, y), most(x, y), ceil_divide(x, y), ceil_divide(x, ir.index(right)))]
    assert found == [left - right, min(left, right), max(left, right), -(-left // right), -(-left // right)]
