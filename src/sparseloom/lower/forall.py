"""Loops: what a ``forall`` over an original or derived variable becomes.

Every loop binds one variable. If other digits of what it stands for are still open, it simply counts. The loop that binds the last digit
*determines* a variable, and there its operands are walked, inside the interval that the outer digits leave:

    coordinates     count, or walk and merge the operands stored along the variable
    a fuse          a nest over both variables, cut in the first and the last row
    positions       count positions of one operand; upper coordinates by a nest cut to the block, or by search
    coord           walk coordinates again, the driven operand cut to the block of positions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.lower.again import at_found_again, blocks_of, confined
from sparseloom.lower.ahead import asking_ahead
from sparseloom.lower.coordinates import over_coordinates
from sparseloom.lower.fused import over_fused
from sparseloom.lower.pieces import cut_piece
from sparseloom.lower.position_range import among_rows, position_range
from sparseloom.lower.positions import over_positions
from sparseloom.notation.nodes import Forall, IndexVar, Unit
from sparseloom.relations.relation import FoundAgain, Pieces
from sparseloom.scope.context import Home
from sparseloom.scope.device import awaited
from sparseloom.scope.ranges import most
from sparseloom.scope.scope import Asked, Scope, Then
from sparseloom.scope.style import Turns, style_of
from sparseloom.targets.target import FACTS

FEW_PIECES = 4096
_NAMES = {Unit.GPUBlock: "block", Unit.GPUWarp: "warp", Unit.GPUThread: "thread"}


def forall(stmt: Forall, scope: Scope) -> ir.Stmt:
    """The loop over the variable of ``stmt``."""
    shared = {(tensor, scope.provenance.root(var)) for var, tensor in scope.conflicts.atomic if var == stmt.var}
    if shared:
        scope = replace(scope, atomic=scope.atomic | shared, edge=None)
    return over(stmt, scope, lambda inner: inner.ways.statement(stmt.body, inner))


def over(stmt: Forall, scope: Scope, then: Then, around: Callable[[ir.Stmt], ir.Stmt] | None = None) -> ir.Stmt:
    """The loop over the variable of ``stmt``, with this body. Threads have memory of their own."""
    if stmt.tag.unit is not Unit.CPUThread:
        return over_here(stmt, scope, then, around)
    home = Home()
    made = over_here(stmt, replace(scope, home=home), then, around)
    return with_team(made, home) if home.first else made


def over_here(stmt: Forall, scope: Scope, then: Then, around: Callable[[ir.Stmt], ir.Stmt] | None = None) -> ir.Stmt:
    """The same, in the memory of whoever runs it. Lanes cannot end the kernel, so they note what breaks a bound."""
    held = scope.reductions() if stmt.tag.unit in (Unit.CPUThread, Unit.CPUVector) else ()
    style = replace(style_of(stmt.tag), around=around, held=held)
    if stmt.tag.unit is Unit.CPUThread:
        style = replace(style, factor=_at_a_time(scope.provenance.extent(stmt.var)), turns=_turns(stmt, scope))
    elif stmt.tag.unit is not None and FACTS[stmt.tag.unit].needs_constant:
        style = replace(style, factor=scope.provenance.extent(stmt.var) or 0)
    if stmt.tag.unroll and stmt.tag.unit in _NAMES:
        scope.remark(f"{stmt.var}: not unrolled, for each {_NAMES[stmt.tag.unit]} runs one iteration")
    asked = Asked(stmt, stmt.var, style, asking_ahead(stmt, scope, _run_by(stmt.tag.unit, then)))
    if stmt.tag.unit is not Unit.CPUVector or scope.broken is not None:
        return awaited(stmt, over_digit(asked, scope), scope)
    broken = ir.Var(scope.fresh("broken"), BOOL)
    asked = replace(asked, style=replace(style, held=(*held, ir.Reduction(broken, "logical_or"))))
    made = over_digit(asked, replace(scope, broken=broken))
    if broken not in walk(made):
        return made
    return ir.block(ir.Declare(broken, ir.FALSE), made, ir.If(broken, ir.Fail(ir.Status.BOUND_VIOLATED)))


def _turns(stmt: Forall, scope: Scope) -> Turns | None:
    """How many iterations of an unrolled loop a thread takes in one turn."""
    if stmt.tag.unroll <= 1:
        return None
    turn, first, last = (ir.Var(scope.fresh(f"{stmt.var}_{what}")) for what in ("turn", "first", "last"))
    return Turns(stmt.tag.unroll, turn, first, last)


def _at_a_time(extent: int | None) -> int:
    """How many iterations a thread takes at a time: of few pieces, one, since some may take longer; 0 leaves it to OpenMP."""
    return 1 if extent is not None and extent <= FEW_PIECES else 0


def with_team(made: ir.Stmt, home: Home, at_a_time: int = 0) -> ir.Stmt:
    """The threads loop among these statements, with what each thread runs before and after it."""
    first, last = ir.block(*home.first), ir.block(*home.last)
    return with_threads(made, lambda loop: ir.Team(first, replace(loop, factor=at_a_time or loop.factor), last))


def with_threads(made: ir.Stmt, change: Callable[[ir.For], ir.Stmt]) -> ir.Stmt:
    """The same statements with another threads loop."""

    def rule(found: object) -> ir.Stmt | None:
        match found:
            case ir.For(kind=ir.LoopKind.THREADS) as loop:
                return change(loop)
        return None

    return rewrite(made, rule)


def _run_by(unit: Unit | None, then: Then) -> Then:
    """The body of a loop, which knows the unit that runs it."""
    return then if unit is None else lambda inner: then(replace(inner, units=(*inner.units, unit)))


def over_digit(asked: Asked, scope: Scope) -> ir.Stmt:
    """A loop over one variable, original or derived, between what must be known before it and what ends behind it."""
    graph, digit = scope.provenance, asked.digit
    root = graph.root(digit)
    if is_gone(root, scope):
        return ir.block(scope.sink.initialise(scope), scope.sink.after(graph.covered(root)[0], scope))
    before, scope = find_ranges(digit, scope)
    wrong = _breaks_bound(digit, scope)
    made = ir.block(_loop(asked, root, scope), *(scope.sink.after(var, scope) for var in _ended(root, digit, scope)))
    if wrong is None:
        return ir.block(before, made)
    if scope.broken is not None:
        return ir.block(before, ir.If(wrong, ir.Assign(scope.broken, ir.TRUE), made))
    return ir.block(before, ir.If(wrong, ir.Fail(ir.Status.BOUND_VIOLATED)), made)


def _loop(asked: Asked, root: IndexVar, scope: Scope) -> ir.Stmt:
    """The loop itself: it only counts, or determines what its variable is a digit of."""
    relation = scope.provenance.made_by(root)
    positions = None if relation is None else relation.positions
    if root not in scope.provenance.known({*scope.coordinates, asked.digit}):
        if positions is not None and asked.style.kind is ir.LoopKind.GPU_BLOCK:
            asked = replace(asked, then=among_rows(positions, asked.then))
        return over_coordinates(asked, asked.digit, scope)
    if positions is not None:
        return over_positions(asked, positions, scope)
    if relation is not None and relation.found_again is not None:
        return _over_found_again(asked, relation.found_again, scope)
    return over_fused(asked, relation, scope) if relation is not None and relation.nest else over_coordinates(asked, root, scope)


def _over_found_again(asked: Asked, relation: FoundAgain, scope: Scope) -> ir.Stmt:
    """Coordinates of a block of positions: the operand stays inside the block, others are merged with it.

    Where these positions were themselves counted for coordinates found again, the operands of those blocks stay inside theirs too.
    """
    graph = scope.provenance
    blocks = blocks_of(relation, graph)
    positions = blocks[0][1]
    driven = confined(blocks, scope)
    scope.remark(f"{asked.stmt.var}: coordinates of {positions.access.tensor.name} again")
    asked = replace(asked, then=at_found_again(blocks, scope, asked.then))
    covered = graph.walked(positions)
    if len(covered) == 1:
        return over_coordinates(asked, covered[0], driven, tree=relation.coordinate)
    fused = graph.made_by(graph.found_again(relation))
    while fused is not None and fused.found_again is not None:
        fused = graph.made_by(graph.found_again(fused.found_again))
    if fused is None or not fused.nest:
        raise CompilerBug(relation, "several levels are walked by a fuse")
    return over_fused(asked, fused, driven, tree=relation.coordinate)


def _ended(root: IndexVar, digit: IndexVar, scope: Scope) -> list[IndexVar]:
    """The variables of the result's levels that are done when the loop over a digit has ended."""
    graph = scope.provenance
    is_first = not any(graph.root(var) == root for var in scope.coordinates)
    ended = ([graph.covered(root)[0]] if is_first else []) + [v for v in (digit,) if v != root]
    return ended + [v for v in scope.sink.variables if v not in ended and _begins_block(v, digit, scope)]


def _begins_block(level: IndexVar, digit: IndexVar, scope: Scope) -> bool:
    """Whether a loop is the outermost of those into which a variable of a blocked result was cut."""
    graph = scope.provenance
    if graph.made_by(level) is None or level not in graph.ancestors(digit):
        return False
    return not any(level in graph.line(var) for var in scope.coordinates)


def is_gone(root: IndexVar, scope: Scope) -> bool:
    """Whether the operand whose positions are to be walked is known to have none here."""
    graph = scope.provenance
    relation = graph.made_by(root)
    if relation is None:
        return False
    if relation.positions is not None and scope.at(relation.positions.access).is_absent:
        return True
    return any(is_gone(graph.root(var), scope) for var in relation.parents)


def find_extents(variables: Iterable[IndexVar], scope: Scope) -> tuple[ir.Stmt, Scope]:
    """Work out the ranges on which the extents of several variables rest, those that are no constants."""
    code = []
    for var in variables:
        if scope.provenance.extent(var) is None:
            found, scope = find_ranges(var, scope, extents_only=True)
            code.append(found)
    return ir.block(*code), scope


def find_ranges(var: IndexVar, scope: Scope, extents_only: bool = False) -> tuple[ir.Stmt, Scope]:
    """Work out the ranges of positions, and of coordinates found again, on which the range of a variable rests.

    How far coordinates run that are found again does not depend on their positions, but the loop over them does.
    """
    relation = scope.provenance.made_by(var)
    if relation is None or (relation.positions is not None and var in scope.limits):
        return ir.block(), scope
    if relation.positions is not None and is_gone(var, scope):
        return ir.block(), scope.limiting(var, ir.ZERO, ir.ZERO)
    code, sources, again, pieces = list[ir.Stmt](), relation.parents, relation.found_again, relation.pieces
    if again is not None and extents_only:
        sources = (scope.provenance.found_again(again),)
    for source in sources:
        found, scope = find_ranges(source, scope, extents_only and relation.positions is None)
        code.append(found)
    if relation.positions is not None:
        found, scope = position_range(relation.positions, scope)
        code.append(found)
    if again is not None and var not in scope.limits:
        # All coordinates that its positions may have.
        low, high = scope.ranges.interval(scope.provenance.found_again(again))
        scope = scope.limiting(var, low, most(low, high))
    if pieces is not None and var == pieces.inner and not _is_begun(pieces, scope):
        found, scope = cut_piece(pieces, scope)
        code.append(found)
    return ir.block(*code), scope


def _is_begun(relation: Pieces, scope: Scope) -> bool:
    """Whether a piece cannot be cut here: a digit of what runs through it is bound already, or it is not known which piece."""
    return relation.outer not in scope.coordinates or any(relation.inner in scope.provenance.line(known) for known in scope.coordinates)


def _breaks_bound(digit: IndexVar, scope: Scope) -> ir.Expr | None:
    """When a promise about a variable is wrong; None if there is none. It is checked where the first loop over the variable begins."""
    graph, ranges = scope.provenance, scope.ranges
    begun = {above for var in scope.coordinates for above in graph.ancestors(var)}
    made = [relation for var in sorted(graph.ancestors(digit) - begun, key=str) if (relation := graph.made_by(var)) is not None]
    broken = [ir.compare(*wrong) for relation in made if (wrong := relation.broken(ranges)) is not None]
    return ir.either(*broken) if broken else None
