"""Loops over one variable: counted, driven by one operand, or merging several.

    counted      for j in 0..n              nothing sparse decides; sparse operands are followed by a cursor
    driven       for p in pos[i]..pos[i+1]  one operand decides; further ones are followed
    merged       while some are left        a presence formula decides

A merge whose formula has few cases gets one loop per set of operands that are left, and one branch per set that is present, as
in a merge lattice; then each branch knows statically what is absent. A larger one is collapsed into a single loop in which flags say
what is present, so that code stays linear in the number of operands. The union of three has both: values are taken one operand after
another while all three are left, and then there are few cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Protocol

from sparseloom.core.dtypes import BOOL, INT64, DType, computed
from sparseloom.iteration.formula import ALWAYS, NEVER, Any, Formula, Stored, condition, has_flags, stored, substitute
from sparseloom.loops import nodes as ir
from sparseloom.lower.walking import Walker, bound_place, entry_count, find_run, look_up, step
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.scope.context import Runs
from sparseloom.scope.scope import ABSENT, Place, Scope, Then
from sparseloom.scope.style import SERIAL, Style
from sparseloom.scope.views import value_at

MOST_CASES = 6  # a merge with more branches is collapsed
MOST_COPIES = 64  # and so is one inside merges that already repeat its code often
FAR = ir.Literal(2**63 - 1, INT64)  # a coordinate behind all others


@dataclass(frozen=True)
class Loop:
    """One loop to be made: its variable, who walks along, and how to make the body for what is known.

    The counted form runs ``counter`` from ``begin`` to ``end`` and makes the coordinate from it (``recover``, ``guard``); the other
    forms find coordinates in the operands and keep those that pass ``filter``. ``digit`` is the variable that the user's
    loop is over, where that is only a part of ``var``.
    """

    var: IndexVar
    coordinate: ir.Var
    counter: ir.Var
    begin: ir.Expr
    end: ir.Expr
    walkers: tuple[Walker, ...]
    scope: Scope
    body: Then
    recover: tuple[ir.Stmt, ...] = ()
    guard: ir.Expr = ir.TRUE
    filter: ir.Expr = ir.TRUE
    found: tuple[tuple[IndexVar, ir.Expr], ...] = ()
    style: Style = SERIAL
    first: ir.Stmt | None = None  # what runs once if the counted form does
    counted: Scope | None = None  # what the counted form knows besides, where it recovers variables on the way

    @property
    def is_dense_step(self) -> bool:
        """Whether the counted form visits every coordinate from the first, so that cursors never fall behind."""
        return self.counter == self.coordinate and self.begin == ir.ZERO and self.guard == ir.TRUE

    def at(self, stmts: Sequence[ir.Stmt], places: dict[Access, Place], copies: int = 1, counted: bool = False) -> ir.Stmt:
        """The body at a coordinate where the operands stand at ``places``."""
        scope = self.scope.placing(places).knowing(self.var, self.coordinate)
        for var, value in self.found:
            scope = scope.knowing(var, value)
        if counted:
            scope = scope.knowing(IndexVar(self.counter.name), self.counter)
        body = ir.block(*stmts, self.body(replace(scope, copies=scope.copies * copies)))
        return ir.when(self.guard if counted else self.filter, body)

    def walker(self, access: Access) -> Walker:
        """Who walks along an operand."""
        return next(w for w in self.walkers if w.access == access)

    def others(self, accesses: Sequence[Access]) -> tuple[Walker, ...]:
        """Those who walk along further operands."""
        return tuple(w for w in self.walkers if w.access not in accesses)

    def fresh(self, name: str, dtype: DType = INT64) -> ir.Var:
        """A scalar of its own."""
        return ir.Var(self.scope.fresh(name), dtype)

    def note(self, text: str, formula: Formula, followed: Sequence[Walker]) -> None:
        """Say how the loop runs."""
        settles = self.scope.provenance.root(self.var) == self.var
        more = f"; {', '.join(w.access.tensor.name for w in followed)} followed by a cursor" if followed else ""
        renamed = self.scope.provenance.used_by(self.var)
        name = renamed.children[0] if renamed is not None and renamed.is_local else self.var
        self.scope.remark(f"{name}: {text}{more}", Runs(self.var, settles, formula))


class Form(Protocol):
    """A form of loop: which coordinates it visits, and how it comes from one to the next."""

    def make(self, loop: Loop) -> ir.Stmt:
        """The loop in this form."""


def iterate(loop: Loop, formula: Formula) -> ir.Stmt:
    """Make the loop that visits every coordinate at which the formula holds."""
    if formula == NEVER:
        return ir.block()
    if not has_flags(formula):
        return form_of(formula).make(loop)
    # What outer loops found decides whether all, some, or no coordinates are visited.
    possible = condition(formula, lambda access: ir.TRUE)
    certain = condition(formula, lambda access: ir.FALSE)
    if not stored(formula):
        return ir.If(certain, Counted().make(loop))
    merged = Merged(formula).make(loop)
    if certain != ir.FALSE:
        return ir.If(certain, Counted().make(loop), merged)
    return ir.when(possible, merged)


def form_of(formula: Formula) -> Form:
    """The form of a loop whose formula asks for nothing that only runs tell."""
    match formula:
        case Stored(access):
            return Driven(access)
    return Counted() if formula == ALWAYS else Merged(formula)


@dataclass(frozen=True)
class Counted:
    """Every coordinate, one after another; sparse operands are followed by a cursor."""

    def make(self, loop: Loop) -> ir.Stmt:
        """The loop over all coordinates."""
        loop.note("every coordinate", ALWAYS, loop.walkers)
        follow, places = _follow(loop, loop.walkers)
        counting = replace(loop, scope=loop.scope if loop.counted is None else loop.counted, guard=ir.TRUE)
        steps = [step(w, places[w.access].present) for w in loop.walkers if loop.style.in_order and w.level.ordered]
        body = ir.block(counting.at(follow, places, counted=True), *steps)
        made = loop.style.loop(loop.counter, loop.begin, loop.end, ir.block(*loop.recover, ir.when(loop.guard, body)))
        return ir.block(*(w.start() for w in loop.walkers), loop.first, made)


@dataclass(frozen=True)
class Driven:
    """The coordinates that one operand has; further ones are followed by a cursor."""

    access: Access

    def make(self, loop: Loop) -> ir.Stmt:
        """The loop over the operand's positions."""
        driver, others = loop.walker(self.access), loop.others((self.access,))
        loop.note(f"driven by {self.access.tensor.name}", Stored(self.access), others)
        follow, places = _follow(replace(loop, guard=ir.FALSE), others)
        summed, places[self.access] = bound_place(loop.scope, driver)
        here = driver.found(loop.coordinate)
        starts = [w.start() for w in others]
        if driver.is_run:
            body = ir.block(here, find_run(driver, loop.coordinate), loop.at([summed, *follow], places), step(driver))
            return ir.block(*starts, driver.start(), loop.style.repeat(driver.is_live, body))
        body = ir.when(driver.is_used, ir.block(here, loop.at(follow, places)))
        return ir.block(*starts, loop.style.loop(driver.position, driver.begin, driver.end, body, entry_count(driver, loop.scope)))


@dataclass(frozen=True)
class Merged:
    """The coordinates at which a formula of several operands holds, found by walking them together."""

    formula: Formula

    def make(self, loop: Loop) -> ir.Stmt:
        """The loops over what is left: one for each set of operands, or one with flags where these would be too many."""
        formula, members = self.formula, stored(self.formula)
        lattice = None if has_flags(formula) else lattice_points(formula, members)
        start = [w.start() for w in loop.walkers]
        names, others = ", ".join(a.tensor.name for a in members), loop.others(members)
        if lattice is None and _is_union_of_three(loop, formula):
            loop.note(f"merges {names}", formula, others)
            pairs = [(live, tuple(_subsets(live))) for live in _subsets(members) if len(live) < len(members)]
            return ir.block(*start, _taking(loop, members), *(_point(loop, members, live, cases) for live, cases in pairs))
        if lattice is None or loop.scope.copies * sum(len(cases) for _, cases in lattice) > MOST_COPIES:
            loop.note(f"merges {names} in one loop with flags", formula, others)
            return ir.block(*start, _collapsed(loop, formula, members))
        meets = "intersects" if [cases for _, cases in lattice] == [(members,)] else "merges"
        loop.note(f"{meets} {names}", formula, others)
        return ir.block(*start, *(_point(loop, members, live, cases) for live, cases in lattice))


def _follow(loop: Loop, walkers: Sequence[Walker]) -> tuple[list[ir.Stmt], dict[Access, Place]]:
    """Move cursors up to the loop's coordinate and flag which operands have it.

    Where iterations do not run in order, or entries do not stand in order, there is no cursor to move: each iteration looks its entry up.
    """
    stmts: list[ir.Stmt] = []
    places: dict[Access, Place] = {}
    for w in walkers:
        here = loop.fresh(f"{w.access.tensor.name}_here", BOOL)
        if not (loop.style.in_order and w.level.ordered):
            position = loop.fresh(f"{w.position.name}_found")
            w = replace(w, position=position, begin=w.position, run_end=loop.fresh(f"{position.name}_run"))
            stmts.append(look_up(w, loop.coordinate))
        elif loop.style.gallops:
            stmts.append(jump(w, loop.coordinate))
        elif not loop.is_dense_step:
            behind = ir.both(w.is_live, ir.compare("less", w.coordinate(), loop.coordinate))
            stmts += [ir.While(behind, ir.Assign(w.position, ir.add(w.position, ir.ONE))), w.skip()]
        stmts.append(ir.Declare(here, w.is_at(loop.coordinate)))
        stmts.append(find_run(w, loop.coordinate, here))
        summed, places[w.access] = bound_place(loop.scope, w, here)
        stmts.append(summed)
    return stmts, places


def _is_union_of_three(loop: Loop, formula: Formula) -> bool:
    """Whether a loop visits what any of three operands has at their last levels."""
    if not isinstance(formula, Any) or len(formula.parts) != 3 or loop.scope.copies > MOST_COPIES // 16:
        return False
    walkers = [loop.walker(part.access) for part in formula.parts if isinstance(part, Stored)]
    return len(walkers) == 3 and all(w.is_last and not w.is_run for w in walkers)


def _taking(loop: Loop, members: tuple[Access, ...]) -> ir.Stmt:
    """While all are left: each operand that is at the least coordinate gives its value and steps, with a branch of its own.

    That was 1.3 to 2.5 times as fast as selecting between values and fills.
    """
    walkers = [loop.walker(access) for access in members]
    heads = [loop.fresh(f"{loop.var}{w.access.tensor.name}") for w in walkers]
    stmts: list[ir.Stmt] = [w.found(head) for head, w in zip(heads, walkers, strict=True)]
    stmts.append(ir.Declare(loop.coordinate, _least(heads)))
    follow, places = _follow(replace(loop, guard=ir.FALSE), loop.others(members))
    for head, w in zip(heads, walkers, strict=True):
        values = loop.scope.view(w.access).values
        value = loop.fresh(f"{w.access.tensor.name}_val", computed(values.dtype))
        here = loop.fresh(f"{w.access.tensor.name}_here", BOOL)
        stmts.append(ir.Declare(here, ir.compare("equal", head, loop.coordinate)))
        stmts.append(ir.Declare(value, ir.constant(w.access.tensor.fill, value.dtype)))
        taken = ir.Assign(value, value_at(values, w.slot))
        stmts.append(ir.If(here, ir.block(taken, step(w))))
        placed = w.parent.below(w.parent.depth + 1, w.position, present=here, value=value)
        places[w.access] = replace(placed, filled=True)
    return loop.style.repeat(ir.both(*(w.is_live for w in walkers)), ir.block(*stmts, loop.at(follow, places)))


Point = tuple[tuple[Access, ...], tuple[tuple[Access, ...], ...]]


def lattice_points(formula: Formula, members: Sequence[Access]) -> list[Point] | None:
    """The merge lattice: for every set of operands that may be left, the sets that may be present there.

    None if there are too many cases to write down.
    """
    if len(members) > MOST_CASES:
        return None
    sets = [s for s in _subsets(members) if holds(formula, s)]
    points = [(live, tuple(case for case in sets if set(case) <= set(live))) for live in sets]
    return points if sum(len(cases) for _, cases in points) <= MOST_CASES else None


def _subsets(members: Sequence[Access]) -> Iterator[tuple[Access, ...]]:
    for size in range(len(members), 0, -1):
        yield from combinations(members, size)


def holds(formula: Formula, present: Sequence[Access]) -> bool:
    """Whether the formula holds when exactly these operands are present."""
    return substitute(formula, lambda leaf: (ALWAYS if leaf.access in present else NEVER) if isinstance(leaf, Stored) else None) == ALWAYS


def _point(loop: Loop, members: tuple[Access, ...], live: tuple[Access, ...], cases: tuple[tuple[Access, ...], ...]) -> ir.Stmt:
    """The loop that runs while all of ``live`` have positions left."""
    walkers = [loop.walker(access) for access in live]
    if len(live) == 1 and not walkers[0].is_run:
        body = _case(loop, members, live, 1)
        here = walkers[0].found(loop.coordinate)
        return loop.style.repeat(walkers[0].is_live, ir.block(here, body, step(walkers[0])))
    if loop.style.gallops and cases == (live,):
        return _galloping(loop, members, walkers)
    heads = {w.access: loop.fresh(f"{loop.var}{w.access.tensor.name}") for w in walkers}
    stmts: list[ir.Stmt] = [w.found(heads[w.access]) for w in walkers]
    stmts.append(ir.Declare(loop.coordinate, _least([heads[w.access] for w in walkers])))
    here_at = {a: ir.TRUE if len(live) == 1 else ir.compare("equal", heads[a], loop.coordinate) for a in live}
    stmts += [find_run(w, loop.coordinate, here_at[w.access]) for w in walkers]
    # Where every set is a case, a branch knows who steps: the processor then need not wait for the comparisons (1.4x on A + B).
    is_union = len(cases) == 2 ** len(live) - 1
    branch: ir.Stmt = ir.block()
    for case in reversed(cases):
        body = _case(loop, members, case, len(cases))
        if is_union:
            body = ir.block(body, *(step(loop.walker(access)) for access in case))
        certain = branch == ir.block() and _is_certain(case, cases, live)
        branch = body if certain else ir.If(_all_here(case, live, heads, here_at), body, branch)
    steps = [] if is_union else [step(w, here_at[w.access]) for w in walkers]
    return loop.style.repeat(ir.both(*(w.is_live for w in walkers)), ir.block(*stmts, branch, *steps))


def _all_here(
    case: tuple[Access, ...], live: tuple[Access, ...], heads: Mapping[Access, ir.Var], here_at: Mapping[Access, ir.Expr]
) -> ir.Expr:
    """Whether the members of a case are at the coordinate. If all that are left must be, they are at the same one, whichever that is."""
    if case == live and len(live) > 1:
        return ir.both(*(ir.compare("equal", heads[a], heads[b]) for a, b in pairwise(live)))
    return ir.both(*(here_at[a] for a in case))


def _galloping(loop: Loop, members: tuple[Access, ...], walkers: Sequence[Walker]) -> ir.Stmt:
    """An intersection in which those behind search for the coordinate of the one ahead: good where one operand is much shorter."""
    heads = [loop.fresh(f"{loop.var}{w.access.tensor.name}") for w in walkers]
    furthest: ir.Expr = heads[0]
    for head in heads[1:]:
        furthest = ir.Op("maximum", (furthest, head), INT64)
    found = [find_run(w, loop.coordinate) for w in walkers]
    met = ir.block(*found, _case(loop, members, tuple(w.access for w in walkers), 1), *(step(w) for w in walkers))
    jumps = [ir.If(ir.compare("less", head, loop.coordinate), jump(w, loop.coordinate)) for w, head in zip(walkers, heads, strict=True)]
    everyone = ir.both(*(ir.compare("equal", head, loop.coordinate) for head in heads))
    declared = [w.found(head) for w, head in zip(walkers, heads, strict=True)]
    body = ir.block(*declared, ir.Declare(loop.coordinate, furthest), ir.If(everyone, met, ir.block(*jumps)))
    return loop.style.repeat(ir.both(*(w.is_live for w in walkers)), body)


def jump(walker: Walker, coordinate: ir.Expr) -> ir.Stmt:
    """Move a cursor to the first position whose coordinate is not behind."""
    return ir.block(ir.Assign(walker.position, walker.search(walker.position, walker.stop, coordinate)), walker.skip())


def _is_certain(case: tuple[Access, ...], cases: tuple[tuple[Access, ...], ...], live: tuple[Access, ...]) -> bool:
    """Whether a case must hold once all larger ones failed: in a union, the least coordinate belongs to someone."""
    return len(case) == 1 and all((access,) in cases for access in live)


def _case(loop: Loop, members: tuple[Access, ...], case: tuple[Access, ...], copies: int) -> ir.Stmt:
    """The body where exactly the members of ``case`` are present; operands outside the merge are followed."""
    follow, followed = _follow(replace(loop, guard=ir.FALSE), loop.others(members))
    places = dict.fromkeys(members, ABSENT) | followed
    sums: list[ir.Stmt] = []
    for access in case:
        summed, places[access] = bound_place(loop.scope, loop.walker(access))
        sums.append(summed)
    return loop.at([*sums, *follow], places, copies)


def _least(coordinates: Sequence[ir.Expr]) -> ir.Expr:
    """The least of some coordinates, in pairs: of many, no expression becomes deep."""
    found = list(coordinates)
    while len(found) > 1:
        pairs = [found[k : k + 2] for k in range(0, len(found), 2)]
        found = [ir.Op("minimum", tuple(pair), INT64) if len(pair) > 1 else pair[0] for pair in pairs]
    return found[0]


def _collapsed(loop: Loop, formula: Formula, members: tuple[Access, ...]) -> ir.Stmt:
    """One loop over the least coordinate of all members, with a flag for each."""
    walkers = [loop.walker(access) for access in members]
    heads = {w.access: loop.fresh(f"{loop.var}{w.access.tensor.name}") for w in walkers}
    here = {w.access: loop.fresh(f"{w.access.tensor.name}_here", BOOL) for w in walkers}
    stmts: list[ir.Stmt] = [ir.Declare(heads[w.access], ir.Select(w.is_live, w.coordinate(), FAR)) for w in walkers]
    stmts.append(ir.Declare(loop.coordinate, _least([heads[w.access] for w in walkers])))
    places: dict[Access, Place] = {}
    sums: list[ir.Stmt] = []
    for w in walkers:
        flag = here[w.access]
        stmts += [ir.Declare(flag, ir.compare("equal", heads[w.access], loop.coordinate)), find_run(w, loop.coordinate, flag)]
        summed, places[w.access] = bound_place(loop.scope, w, flag)
        sums.append(summed)
    follow, followed = _follow(replace(loop, guard=ir.FALSE), loop.others(members))
    body = loop.at([*sums, *follow], places | followed)
    if not (isinstance(formula, Any) and all(isinstance(part, Stored) for part in formula.parts)):
        body = ir.If(condition(formula, lambda access: here[access]), body)
    live = condition(formula, lambda access: loop.walker(access).is_live)
    return loop.style.repeat(live, ir.block(*stmts, body, *(step(w, here[w.access]) for w in walkers)))
