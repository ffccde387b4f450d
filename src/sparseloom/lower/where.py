"""Temporaries: a producer fills one, and then a consumer reads it.

    where                                 w_vals = 0
      y(i) = w(i) * b(i)                  ... w_vals[i] += A(i,j)          the producer, in its own loops
    with                            ==>   ... y[i] = w_vals[i] * b[i]      the consumer
      forall i forall j
        w(i) += A(i,j)

A temporary without indices is a scalar. In the producer, renamed variables stand for the consumer's.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.assemble.accumulated import Accumulated, takes_whole_row
from sparseloom.assemble.appended import AppendedResult
from sparseloom.assemble.block_row import block_row
from sparseloom.assemble.hashed import HashRow
from sparseloom.assemble.listing import ListWorkspace
from sparseloom.assemble.make_result import first_value, reduces_outside
from sparseloom.assemble.row_list import RowList, scattered_row, spread_row
from sparseloom.assemble.workspace import Workspace
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node, walk
from sparseloom.formats.level import Collector
from sparseloom.iteration.foralls import paths
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import annihilating, innermost, written
from sparseloom.iteration.rows import why_listed
from sparseloom.loops import nodes as ir
from sparseloom.lower.accumulation import decides_value, declared, fresh_accumulator
from sparseloom.lower.forall import find_extents
from sparseloom.lower.walking import settle
from sparseloom.notation.dtyping import Absence, absence_of
from sparseloom.notation.nodes import Access, Apply, Forall, Stmt
from sparseloom.scope.scope import NOBODY, Place, Scope

_Collects = RowList | HashRow | ListWorkspace
FIRST_LIST = 63  # how many entries a list has room for at first, where it is one of many


def lower_where(consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
    """Fill a temporary, then read it."""
    temporary, made = written(producer), innermost(producer)
    collectors = {level.collector for level in temporary.tensor.format.levels} - {None}
    if Collector.LIST in collectors:
        return _listed(consumer, producer, scope)
    if collectors:
        if takes_whole_row(consumer, temporary, scope.result):
            return _accumulated(producer, scope)
        return _scattered(consumer, producer, scope)
    if temporary.indices or made.op is None:
        return _with_workspace(consumer, producer, scope)
    return _with_scalar(consumer, producer, scope)


def _with_scalar(consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
    """Reduce into a scalar, then read it."""
    temporary, made = written(producer), innermost(producer)
    if made.op is None:
        raise CompilerBug(producer, "a scalar is reduced into")
    absence = absence_of(made.op, made.rhs)
    takers = [path.assign.lhs.tensor for path in paths(consumer) if temporary in walk(path.assign.rhs)]
    matters = scope.result.needs_presence or any(taker.partial for taker in takers) or decides(consumer, temporary)
    tracked = temporary.tensor.partial and absence is not None and (matters or decides_value(absence, made))
    accumulator = fresh_accumulator(temporary.tensor, made.op, tracked, scope, absence or Absence.LEFT_OUT)
    first = declared(accumulator, _is_empty(producer, scope) if absence is Absence.ALL_ABSENT else ir.FALSE)
    inner = scope.accumulating(temporary, accumulator)
    return ir.block(first, _filled(producer, inner), _lower_part(consumer, inner))


def _is_empty(producer: Stmt, scope: Scope) -> ir.Expr:
    """Whether a reduction runs over nothing, so that its identity is all there is."""
    graph, sizes = scope.context.everything, scope.context.sizes
    (path,) = [path for path in paths(producer) if path.assign is innermost(producer)]
    variables = dict.fromkeys(var for loop in path.loops for var in graph.originals(loop.var))
    return ir.either(*(ir.compare("equal", sizes.of(var), ir.ZERO) for var in variables))


def _lower_part(stmt: Stmt, scope: Scope) -> ir.Stmt:
    """A producer or a consumer: only the operands that it reads, or walks along, are followed in it."""
    inside: set[Node] = set(walk(stmt))
    driving = _driving(inside, scope.context.everything)
    if scope.context.follows is not None and scope.context.lhs in inside:
        inside.add(scope.context.follows)
    followed = tuple(access for access in scope.operands if access in inside or access in driving)
    reach = {access: depth for access, depth in driving.items() if access not in inside}
    settled, scope = settle(replace(scope, operands=followed, reach=reach))
    return ir.block(settled, scope.ways.statement(stmt, scope))


def _driving(inside: set[Node], graph: Provenance) -> dict[Access, int]:
    """The operands whose positions some loops walk, and how many of their levels that takes; producers further in count too."""
    walked = {above for n in inside if isinstance(n, Forall) for above in graph.ancestors(n.var)}
    found: dict[Access, int] = {}
    for relation in graph.relations:
        counted, pieces = relation.positions, relation.pieces
        if counted is not None and counted.position in walked:
            found[counted.access] = max(found.get(counted.access, 0), graph.position_levels(counted)[-1] + 1)
        if pieces is not None and pieces.inner in walked:
            found[pieces.access] = max(found.get(pieces.access, 0), graph.stored(pieces.access).index(pieces.parent))
    return found


def _filled(producer: Stmt, scope: Scope) -> ir.Stmt:
    """The loops that fill a workspace: they make nothing of the result."""
    inside = scope.provenance.within(producer, scope.coordinates)
    return _lower_part(producer, replace(scope, sink=NOBODY, provenance=inside, uninitialised=None))


def _scattered(consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
    """Build a row in any order, then read it in order."""
    temporary = written(producer)
    if temporary.tensor.format.blocks:
        blocks = block_row(scope, temporary, first_value(producer, temporary))
        return _collected(consumer, producer, scope, blocks, "the only kind for blocks")
    match temporary.tensor.format.levels[0].collector:
        case Collector.SPREAD:
            return _collected(consumer, producer, scope, spread_row(scope, temporary), "not to be walked again for each of the rows below")
        case Collector.HASH:
            return _collected(consumer, producer, scope, HashRow(scope, temporary), scope.context.rows.reason)
    scattered = scattered_row(scope, temporary, innermost(producer).op)
    return _collected(consumer, producer, scope, scattered, scope.context.rows.reason)


def _listed(consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
    """List entries in any order, then read them in order."""
    made = written(producer)
    guess = (None if scope.coordinates else scope.result.expected()) or ir.index(FIRST_LIST)
    ordered = all(level.ordered for n in walk(producer) if isinstance(n, Access) for level in n.tensor.format.levels)
    inside = scope.provenance.within(producer, scope.coordinates)
    repeats = innermost(producer).op is not None and (not ordered or reduces_outside(producer, made, inside))
    entries = ListWorkspace(scope, producer, guess, repeats, ordered)
    return _collected(consumer, producer, scope, entries, why_listed(made.tensor.format.levels, scope.context.rows))


def _collected(consumer: Stmt, producer: Stmt, scope: Scope, row: _Collects, why: str) -> ir.Stmt:
    """Fill a workspace that keeps a list, put it in order, and read it. ``why`` tells why it is of its kind."""
    temporary = written(producer)
    scope.remark(f"{temporary.tensor.name}: {row.story}, {why}")
    scope = scope.holding(row.view, row)
    filled = _filled(producer, scope)
    reads = [n for n in walk(consumer) if isinstance(n, Access) and n.tensor == temporary.tensor]
    reading = replace(scope, operands=tuple(dict.fromkeys([*scope.operands, *reads])))
    return ir.block(row.begin(), filled, row.ready(), _lower_part(consumer, reading), row.finish())


def _accumulated(producer: Stmt, scope: Scope) -> ir.Stmt:
    """Add up a row of a result whose coordinates are known, and move it there."""
    temporary, result = written(producer), scope.result
    if not isinstance(result, AppendedResult):
        raise CompilerBug(producer, "a row is moved into a structure that is known")
    row = Accumulated(scope, temporary, innermost(producer))
    scope.remark(f"{temporary.tensor.name}: a row in a dense workspace, read at the coordinates that {result.lhs.tensor} has")
    return ir.block(_filled(producer, scope.holding(row.view, row)), row.take(result, scope))


def _with_workspace(consumer: Stmt, producer: Stmt, scope: Scope) -> ir.Stmt:
    """Fill an array, then read it. In the producer, renamed variables stand for the consumer's."""
    temporary = written(producer)
    reads = [n for n in walk(consumer) if isinstance(n, Access) and n.tensor == temporary.tensor]
    readers = [path for path in paths(consumer) if not set(reads).isdisjoint(walk(path.assign.rhs))]
    needed = any(path.assign.lhs.tensor.may_be_absent for path in readers) or any(decides(consumer, read) for read in reads)
    masked = temporary.tensor.partial and needed
    reader = replace(scope, provenance=scope.provenance.along({*scope.coordinates, *readers[0].variables}))
    ranges, reader = find_extents(reads[0].indices, reader)
    workspace = Workspace(reads[0], reader, masked, consumer, producer)
    scope = replace(reader, provenance=scope.provenance).holding(workspace.view, workspace)
    scope = replace(scope, operands=tuple(dict.fromkeys([*scope.operands, temporary, *reads])))
    filled, reading = _filled(producer, replace(scope, mark=workspace.mark)), scope
    if workspace.mark is not None:
        reading = scope.placing({read: Place(present=workspace.mark[1]) for read in reads})
    return ir.block(ranges, workspace.begin(), filled, workspace.ready(), _lower_part(consumer, reading), workspace.finish())


def decides(stmt: Stmt, temporary: Access) -> bool:
    """Whether the absence of a temporary annihilates something that reads it."""
    applied = (n for n in walk(stmt) if isinstance(n, Apply))
    return any(temporary in (n for n in walk(apply.args[k])) for apply in applied for k in annihilating(apply))
