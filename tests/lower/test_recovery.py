"""Recovery: variables that follow from those known are found again, and what lies beyond the end of a range is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from lower.conditions import conditions, drawn, note, valued, visiting
from lower.digits import LINES, SIZES, Derive, share

from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.interpret import KernelStatus
from sparseloom.lower.recovery import around_all, go_on, recover
from sparseloom.notation.nodes import Assign, IndexVar, Where
from sparseloom.scope.scope import NOBODY, Scope, Sink, Value


@pytest.mark.parametrize(("steps", "digits", "derive"), LINES)
def test_known_digits_recover_their_variable(steps: str, digits: str, derive: Derive) -> None:
    """Plain loops over all values of the digits, in any order: i is found at each, and those beyond the end are left out."""
    for names in (digits.split(), digits.split()[::-1]):
        given = conditions("y(i) = x(i)", "", steps)
        i, known = IndexVar("i"), given.scope
        for name in names:
            known = known.knowing(IndexVar(name), ir.Var(name))
        code, guard, after = recover(known)
        loops = ir.block(*code, ir.when(guard, note(after.coordinates[i], *(ir.Var(name) for name in digits.split()))))
        for name in reversed(names):
            begin, end = given.scope.ranges.range_of(IndexVar(name))
            loops = ir.For(ir.Var(name), begin, end, loops)
        notes = given.notes(loops, 1 + len(names))
        for n in SIZES:
            x = drawn(np.random.default_rng(n), "d", (n,))[0]
            assert sorted(notes.on({"x": x})) == sorted((k, *derive(k, n)) for k in range(n))


def test_nothing_is_recovered_before_all_digits_are_known() -> None:
    given = conditions("y(i) = x(i)", "", "split(i,a,b,4)")
    known = given.scope.knowing(IndexVar("a"), ir.Var("a"))
    assert recover(known) == ([], ir.TRUE, known)


def test_another_name_takes_no_code() -> None:
    given = conditions("y(i) = x(i)", "", "bound(i,a,99,MaxConstraint)")
    code, guard, after = recover(given.scope.knowing(IndexVar("a"), ir.Var("a")))
    assert (code, guard, after.coordinates[IndexVar("i")]) == ([], ir.TRUE, ir.Var("a"))


def test_in_a_producer_a_renamed_variable_stands_for_the_consumers() -> None:
    given = conditions("y(i) = A(i,j) * x(j)", "A:csr", "precompute(A(i,j) * x(j), j, jw, w)")
    (where,) = [n for n in walk(given.concrete.stmt) if isinstance(n, Where)]
    scope = given.scope.knowing(IndexVar("i"), ir.Var("i")).knowing(IndexVar("jw"), ir.Var("jw"))
    inside = replace(scope, provenance=scope.provenance.within(where.producer, [IndexVar("i")]))
    code, guard, after = recover(inside)
    assert (code, guard, after.coordinates[IndexVar("j")]) == ([], ir.TRUE, ir.Var("jw"))
    assert recover(scope)[2] is scope


def test_what_cannot_overrun_is_not_guarded() -> None:
    given = conditions("y(i) = x(i)", "", "split(i,a,b,4)")
    scope = given.scope.knowing(IndexVar("a"), ir.Var("a")).knowing(IndexVar("b"), ir.Var("b"))
    _, guard, _ = recover(scope)
    assert guard == ir.compare("less", ir.Var("i"), scope.context.sizes.of(IndexVar("i")))
    weighted = conditions("y(i) = A(i,j) * x(j)", "A:csr", "divide(i,a,b,4,A(i,j))").scope
    _, guard, after = recover(weighted.knowing(IndexVar("a"), ir.Var("a")).knowing(IndexVar("b"), ir.Var("b")))
    assert guard == ir.TRUE
    assert after.coordinates[IndexVar("i")] == ir.Var("i")


@pytest.mark.parametrize("steps", ["split(i,a,b,3) fuse(a,b,f)", "divide(i,a,b,3) fuse(a,b,f)"])
def test_digits_that_are_fused_again_are_the_whole(steps: str) -> None:
    """The fused variable counts what its digits came from; it runs on to the end of the last block."""
    given = conditions("y(i) = x(i)", "", steps)
    names = [IndexVar(name) for name in "iab"]
    known = given.scope.knowing(IndexVar("f"), ir.Var("f"))
    code, guard, after = recover(known)
    begin, end = given.scope.ranges.range_of(IndexVar("f"))
    loops = ir.For(ir.Var("f"), begin, end, ir.block(*code, ir.when(guard, note(*(after.coordinates[var] for var in names)))))
    notes = given.notes(loops, 3)
    for n in SIZES:
        size = 3 if "split" in steps else share(n, 3)
        assert notes.on({"x": drawn(np.random.default_rng(n), "d", (n,))[0]}) == [(k, *divmod(k, size)) for k in range(n)]


@pytest.mark.parametrize(("steps", "digits", "derive"), LINES)
@pytest.mark.parametrize("form", ["d", "s", "u", "b"])
def test_loops_over_digits_visit_every_entry_once(form: str, steps: str, digits: str, derive: Derive, rng: np.random.Generator) -> None:
    notes = visiting(conditions("y(i) = x(i)", f"x:{form}", steps), f"i {digits}")
    for n in SIZES:
        storage, held = drawn(rng, form, (n,), repeats=form == "u")
        assert notes.on({"x": storage}) == [(k, *derive(k, n), value) for (k,), value in sorted(held.items())]


@pytest.mark.parametrize("form", ["d", "s", "b"])
@pytest.mark.parametrize("steps", ["split(i,a,b,4) reorder(b,a)", "divide(i,a,b,4) reorder(b,a)"])
def test_digits_in_the_other_order_visit_every_entry_once(form: str, steps: str, rng: np.random.Generator) -> None:
    notes = visiting(conditions("y(i) = x(i)", f"x:{form}", steps), "i a b")
    for n in SIZES:
        size = 4 if "split" in steps else share(n, 4)
        storage, held = drawn(rng, form, (n,))
        rows = [(k, *divmod(k, size), value) for (k,), value in held.items()]
        assert notes.on({"x": storage}) == sorted(rows, key=lambda row: (row[2], row[1]))


@pytest.mark.parametrize(("kind", "value", "holds"), [
    ("MaxExact", 6, lambda n: n == 6),
    ("MaxConstraint", 6, lambda n: n <= 6),
    ("MinExact", 0, lambda n: True),
    ("MinConstraint", 0, lambda n: True),
])  # fmt: skip
def test_a_bound_that_is_wrong_ends_the_kernel(kind: str, value: int, holds: Callable[[int], bool]) -> None:
    notes = visiting(conditions("y(i) = x(i)", "", f"bound(i,a,{value},{kind}) split(a,b,c,4)"), "i")
    for n in (0, 5, 6, 7):
        x = drawn(np.random.default_rng(n), "d", (n,))[0]
        if holds(n):
            assert [row[0] for row in notes.on({"x": x})] == list(range(n))
        else:
            with pytest.raises(KernelStatus, match="BOUND_VIOLATED"):
                notes.on({"x": x})


def test_going_on_recovers_locates_and_guards() -> None:
    """At a point where both digits are known, a dense operand stands where it belongs; what is not inside is left out."""
    given = conditions("y(i) = x(i)", "", "split(i,a,b,3)")
    scope = given.scope
    for name in "ab":
        scope = scope.knowing(IndexVar(name), ir.Var(name))
    odd = ir.compare("equal", ir.Op("remainder", (ir.Var("i"), ir.index(2))), ir.ONE)
    loops = go_on(scope, lambda s: note(s.coordinates[IndexVar("i")], valued(given.access("x"), s)), odd)
    for name in "ba":
        loops = ir.For(ir.Var(name), *given.scope.ranges.range_of(IndexVar(name)), loops)
    x, held = drawn(np.random.default_rng(3), "d", (8,))
    assert given.notes(loops, 2).on({"x": x}) == [(k, held[k,]) for k in (1, 3, 5, 7)]


class Nested(Sink):
    """A sink that notes where coordinates begin and rows end."""

    def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        return ir.block(note(ir.index(ord(var.name))), body, note(ir.index(-ord(var.name))))

    def after(self, var: IndexVar, scope: Scope) -> ir.Stmt:
        return note(ir.index(1000 + ord(var.name)))

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        return NOBODY.write(assign, value, scope)


def test_several_levels_at_once_are_appended_around_each_other() -> None:
    given = conditions("y(i,j,k) = A(i,j,k)", "A:csf")
    variables = tuple(IndexVar(name) for name in "ijk")
    loops = around_all(variables, note(ir.ZERO), replace(given.scope, sink=Nested()))
    storage = drawn(np.random.default_rng(0), "csf", (2, 2, 2))[0]
    told = {0: "body"}
    for name in "ijk":
        told |= {ord(name): f"{name}(", -ord(name): f"){name}", 1000 + ord(name): f"end {name}"}
    noted = [told[number or 0] for (number,) in given.notes(loops, 1).on({"A": storage})]
    assert noted == ["i(", "j(", "k(", "body", ")k", "end k", ")j", "end j", ")i"]
