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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from sparseloom.core.dtypes import BOOL, INT64
from sparseloom.core.trees import walk
from sparseloom.iteration.formula import ALWAYS, NEVER, Any, Formula, Stored, condition, has_flags, stored, substitute
from sparseloom.loops import nodes as ir
from sparseloom.lower.context import Context, Runs
from sparseloom.lower.scope import ABSENT, Place, Scope
from sparseloom.lower.walking import Walker, bound_place, find_run, look_up, step
from sparseloom.notation.nodes import Access, IndexVar

MOST_CASES = 6  # a merge with more branches is collapsed
MOST_COPIES = 64  # and so is one inside merges that already repeat its code often
FAR = ir.Literal(2**63 - 1, INT64)  # a coordinate behind all others

Body = Callable[[Scope], ir.Stmt]


@dataclass(frozen=True)
class Style:
    """How a counted or driven loop runs: in order, or as its tag says."""

    kind: ir.LoopKind = ir.LoopKind.SERIAL
    factor: int = 0
    gallops: bool = field(default=False, compare=False)  # cursors that fall behind jump ahead by search
    around: Callable[[ir.Stmt], ir.Stmt] | None = field(default=None, compare=False)  # what every iteration does, guarded or not
    held: tuple[ir.Reduction, ...] = field(default=(), compare=False)  # the scalars around the loop that something reduces into

    @property
    def in_order(self) -> bool:
        """Whether iterations run one after another, so that cursors may be carried along."""
        return self.kind in (ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED)

    @property
    def is_parallel(self) -> bool:
        """Whether iterations may run at the same time."""
        return not self.in_order

    def repeat(self, condition: ir.Expr, body: ir.Stmt) -> ir.Stmt:
        """A loop without a count in this style: only unrolling is left to it."""
        return ir.While(condition, body, self.factor if self.kind is ir.LoopKind.UNROLLED else 0)

    def loop(self, var: ir.Var, begin: ir.Expr, end: ir.Expr, body: ir.Stmt) -> ir.Stmt:
        """The loop in this style. Lanes cannot allocate: what does is run one after another."""
        body = body if self.around is None else self.around(body)
        if self.kind is ir.LoopKind.VECTOR and any(isinstance(n, ir.Allocate) for n in walk(body)):
            return ir.For(var, begin, end, body)
        assigned = {n.var for n in walk(body) if isinstance(n, ir.Assign)} if self.held else set()
        return ir.For(var, begin, end, body, self.kind, self.factor, tuple(held for held in self.held if held.var in assigned))


SERIAL = Style()


@dataclass(frozen=True)
class Loop:
    """One loop to be made: its variable, who walks along, and how to make the body for what is known.

    The counted form runs ``counter`` from ``begin`` to ``end`` and makes the coordinate from it (``recover``, ``guard``); the other
    forms find coordinates in the operands and keep those that pass ``filter``. ``digit`` is the variable that the user's
    loop is over, where that is only a part of ``var``.
    """

    context: Context
    var: IndexVar
    coordinate: ir.Var
    counter: ir.Var
    begin: ir.Expr
    end: ir.Expr
    walkers: tuple[Walker, ...]
    scope: Scope
    body: Body
    recover: tuple[ir.Stmt, ...] = ()
    guard: ir.Expr = ir.TRUE
    filter: ir.Expr = ir.TRUE
    found: tuple[tuple[IndexVar, ir.Expr], ...] = ()
    style: Style = SERIAL
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
        test = self.guard if counted else self.filter
        return body if test == ir.TRUE else ir.If(test, body)


def iterate(loop: Loop, formula: Formula) -> ir.Stmt:
    """Make the loop that visits every coordinate at which the formula holds."""
    if formula == NEVER:
        return ir.block()
    if not has_flags(formula):
        return _iterate_known(loop, formula)
    # What outer loops found decides whether all, some, or no coordinates are visited.
    possible = condition(formula, lambda access: ir.TRUE)
    certain = condition(formula, lambda access: ir.FALSE)
    if not stored(formula):
        return ir.If(certain, _counted(loop))
    merged = _merged(loop, formula)
    if certain != ir.FALSE:
        return ir.If(certain, _counted(loop), merged)
    return merged if possible == ir.TRUE else ir.If(possible, merged)


def _iterate_known(loop: Loop, formula: Formula) -> ir.Stmt:
    match formula:
        case Stored(access):
            return _driven(loop, access)
    return _counted(loop) if formula == ALWAYS else _merged(loop, formula)


def _walker(loop: Loop, access: Access) -> Walker:
    return next(w for w in loop.walkers if w.access == access)


def _others(loop: Loop, accesses: Sequence[Access]) -> tuple[Walker, ...]:
    return tuple(w for w in loop.walkers if w.access not in accesses)


def _note(loop: Loop, text: str, formula: Formula, followed: Sequence[Walker]) -> None:
    settles = loop.context.provenance.root(loop.var) == loop.var
    more = f"; {', '.join(w.access.tensor.name for w in followed)} followed by a cursor" if followed else ""
    loop.context.remark(f"{loop.var}: {text}{more}", Runs(loop.var, settles, formula))


def _counted(loop: Loop) -> ir.Stmt:
    _note(loop, "every coordinate", ALWAYS, loop.walkers)
    follow, places = _follow(loop, loop.walkers)
    counting = replace(loop, scope=loop.scope if loop.counted is None else loop.counted, guard=ir.TRUE)
    steps = [step(w, places[w.access].present) for w in loop.walkers if loop.style.in_order and w.level.ordered]
    body = ir.block(counting.at(follow, places, counted=True), *steps)
    guarded = body if loop.guard == ir.TRUE else ir.If(loop.guard, body)
    made = loop.style.loop(loop.counter, loop.begin, loop.end, ir.block(*loop.recover, guarded))
    return ir.block(*(w.start() for w in loop.walkers), made)


def _follow(loop: Loop, walkers: Sequence[Walker]) -> tuple[list[ir.Stmt], dict[Access, Place]]:
    """Move cursors up to the loop's coordinate and flag which operands have it.

    Where iterations do not run in order, or entries do not stand in order, there is no cursor to move: each iteration looks its entry up.
    """
    stmts: list[ir.Stmt] = []
    places: dict[Access, Place] = {}
    for w in walkers:
        here = ir.Var(loop.context.names.fresh(f"{w.access.tensor.name}_here"), BOOL)
        if not (loop.style.in_order and w.level.ordered):
            fresh = loop.context.names.fresh
            position = ir.Var(fresh(f"{w.position.name}_found"))
            w = replace(w, position=position, begin=w.position, run_end=ir.Var(fresh(f"{position.name}_run")))
            stmts.append(look_up(w, loop.coordinate))
        elif loop.style.gallops:
            stmts.append(jump(w, loop.coordinate))
        elif not loop.is_dense_step:
            behind = ir.both(w.is_live, ir.compare("less", w.coordinate(), loop.coordinate))
            stmts += [ir.While(behind, ir.Assign(w.position, ir.add(w.position, ir.ONE))), w.skip()]
        stmts.append(ir.Declare(here, w.is_at(loop.coordinate)))
        stmts.append(find_run(w, loop.coordinate, here))
        summed, places[w.access] = bound_place(loop.context, w, here)
        stmts.append(summed)
    return stmts, places


def _driven(loop: Loop, access: Access) -> ir.Stmt:
    driver, others = _walker(loop, access), _others(loop, (access,))
    _note(loop, f"driven by {access.tensor.name}", Stored(access), others)
    follow, places = _follow(replace(loop, guard=ir.FALSE), others)
    summed, places[access] = bound_place(loop.context, driver)
    here = driver.found(loop.coordinate)
    starts = [w.start() for w in others]
    if driver.is_run:
        body = ir.block(here, find_run(driver, loop.coordinate), loop.at([summed, *follow], places), step(driver))
        return ir.block(*starts, driver.start(), loop.style.repeat(driver.is_live, body))
    body = ir.block(here, loop.at(follow, places))
    body = body if driver.is_used == ir.TRUE else ir.If(driver.is_used, body)
    return ir.block(*starts, loop.style.loop(driver.position, driver.begin, driver.end, body))


def _merged(loop: Loop, formula: Formula) -> ir.Stmt:
    members = stored(formula)
    lattice = None if has_flags(formula) else lattice_points(formula, members)
    start = [w.start() for w in loop.walkers]
    names = ", ".join(a.tensor.name for a in members)
    if lattice is None and _is_union_of_three(loop, formula):
        _note(loop, f"merges {names}", formula, _others(loop, members))
        pairs = [(live, tuple(_subsets(live))) for live in _subsets(members) if len(live) < len(members)]
        return ir.block(*start, _taking(loop, members), *(_point(loop, members, live, cases) for live, cases in pairs))
    if lattice is None or loop.scope.copies * sum(len(cases) for _, cases in lattice) > MOST_COPIES:
        _note(loop, f"merges {names} in one loop with flags", formula, _others(loop, members))
        return ir.block(*start, _collapsed(loop, formula, members))
    meets = "intersects" if [cases for _, cases in lattice] == [(members,)] else "merges"
    _note(loop, f"{meets} {names}", formula, _others(loop, members))
    return ir.block(*start, *(_point(loop, members, live, cases) for live, cases in lattice))


def _is_union_of_three(loop: Loop, formula: Formula) -> bool:
    """Whether a loop visits what any of three operands has at their last levels."""
    if not isinstance(formula, Any) or len(formula.parts) != 3 or loop.scope.copies > MOST_COPIES // 16:
        return False
    walkers = [_walker(loop, part.access) for part in formula.parts if isinstance(part, Stored)]
    return len(walkers) == 3 and all(w.is_last and not w.is_run for w in walkers)


def _taking(loop: Loop, members: tuple[Access, ...]) -> ir.Stmt:
    """While all are left: each operand that is at the least coordinate gives its value and steps, with a branch of its own.

    That was 1.3 to 2.5 times as fast as selecting between values and fills.
    """
    walkers = [_walker(loop, access) for access in members]
    heads = [ir.Var(loop.context.names.fresh(f"{loop.var}{w.access.tensor.name}")) for w in walkers]
    stmts: list[ir.Stmt] = [w.found(head) for head, w in zip(heads, walkers, strict=True)]
    stmts.append(ir.Declare(loop.coordinate, _least(heads)))
    follow, places = _follow(replace(loop, guard=ir.FALSE), _others(loop, members))
    for head, w in zip(heads, walkers, strict=True):
        values = loop.context.view(w.access).values
        value = ir.Var(loop.context.names.fresh(f"{w.access.tensor.name}_val"), values.dtype)
        here = ir.Var(loop.context.names.fresh(f"{w.access.tensor.name}_here"), BOOL)
        stmts.append(ir.Declare(here, ir.compare("equal", head, loop.coordinate)))
        stmts.append(ir.Declare(value, ir.constant(w.access.tensor.fill, values.dtype)))
        taken = ir.Assign(value, ir.Load(values, w.slot))
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
    walkers = [_walker(loop, access) for access in live]
    if len(live) == 1 and not walkers[0].is_run:
        body = _case(loop, members, live, 1)
        here = walkers[0].found(loop.coordinate)
        return loop.style.repeat(walkers[0].is_live, ir.block(here, body, step(walkers[0])))
    if loop.style.gallops and cases == (live,):
        return _galloping(loop, members, walkers)
    heads = {w.access: ir.Var(loop.context.names.fresh(f"{loop.var}{w.access.tensor.name}")) for w in walkers}
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
            body = ir.block(body, *(step(_walker(loop, access)) for access in case))
        certain = branch == ir.block() and _is_certain(case, cases, live)
        branch = body if certain else ir.If(ir.both(*(here_at[a] for a in case)), body, branch)
    steps = [] if is_union else [step(w, here_at[w.access]) for w in walkers]
    return loop.style.repeat(ir.both(*(w.is_live for w in walkers)), ir.block(*stmts, branch, *steps))


def _galloping(loop: Loop, members: tuple[Access, ...], walkers: Sequence[Walker]) -> ir.Stmt:
    """An intersection in which those behind search for the coordinate of the one ahead: good where one operand is much shorter."""
    heads = [ir.Var(loop.context.names.fresh(f"{loop.var}{w.access.tensor.name}")) for w in walkers]
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
    follow, followed = _follow(replace(loop, guard=ir.FALSE), _others(loop, members))
    places = dict.fromkeys(members, ABSENT) | followed
    sums: list[ir.Stmt] = []
    for access in case:
        summed, places[access] = bound_place(loop.context, _walker(loop, access))
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
    walkers = [_walker(loop, access) for access in members]
    heads = {w.access: ir.Var(loop.context.names.fresh(f"{loop.var}{w.access.tensor.name}")) for w in walkers}
    here = {w.access: ir.Var(loop.context.names.fresh(f"{w.access.tensor.name}_here"), BOOL) for w in walkers}
    stmts: list[ir.Stmt] = [ir.Declare(heads[w.access], ir.Select(w.is_live, w.coordinate(), FAR)) for w in walkers]
    stmts.append(ir.Declare(loop.coordinate, _least([heads[w.access] for w in walkers])))
    places: dict[Access, Place] = {}
    sums: list[ir.Stmt] = []
    for w in walkers:
        flag = here[w.access]
        stmts += [ir.Declare(flag, ir.compare("equal", heads[w.access], loop.coordinate)), find_run(w, loop.coordinate, flag)]
        summed, places[w.access] = bound_place(loop.context, w, flag)
        sums.append(summed)
    follow, followed = _follow(replace(loop, guard=ir.FALSE), _others(loop, members))
    body = loop.at([*sums, *follow], places | followed)
    if not (isinstance(formula, Any) and all(isinstance(part, Stored) for part in formula.parts)):
        body = ir.If(condition(formula, lambda access: here[access]), body)
    live = condition(formula, lambda access: _walker(loop, access).is_live)
    return loop.style.repeat(live, ir.block(*stmts, body, *(step(w, here[w.access]) for w in walkers)))
