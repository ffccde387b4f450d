"""A block of positions as a nest over the levels above: each level is cut to the block in its first and last run.

forall p in [low, high)            pA1_first, pA1_last: the rows of the first and the last entry, searched once
  y(i) += A(i,j) * x(j)            for pA1 in pA1_first ..= pA1_last
                                     for p from (first row: low, else its begin) to (last row: high, else its end)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparseloom.core.trees import walk
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import written
from sparseloom.loops import nodes as ir
from sparseloom.lower.accumulation import Own, own_of
from sparseloom.lower.again import blocks_again, inside_blocks, recover_all
from sparseloom.lower.position_range import parent_of
from sparseloom.lower.recovery import around_all, recover
from sparseloom.lower.runs import edge_of, in_run
from sparseloom.lower.walking import cut, segment, settle
from sparseloom.notation.nodes import Access, Forall, Stmt
from sparseloom.relations.relation import Positions
from sparseloom.scope.ranges import Range, subtract
from sparseloom.scope.scope import Asked, Scope
from sparseloom.scope.style import SERIAL


@dataclass(frozen=True)
class PositionNest:
    """The positions that the loops outside leave, as loops over the levels that are fused in them; in between, rows simply follow."""

    asked: Asked
    relation: Positions

    def make(self, scope: Scope) -> ir.Stmt:
        """The nest, and before it the searches for its first and its last run."""
        relation, access = self.relation, self.relation.access
        levels = scope.provenance.position_levels(relation)
        low, high = (ir.Var(scope.fresh(f"{relation.position.name}_{which}")) for which in ("low", "high"))
        begin, end = scope.ranges.interval(relation.position)
        code: list[ir.Stmt] = []
        cuts: dict[int, Range] = {levels[-1]: (low, high)}
        first: ir.Expr = low
        last = subtract(high, ir.ONE)
        is_found = scope.found.get(relation.position) == (begin, end)
        for k in reversed(levels[1:]):
            if is_found:
                cuts[k - 1] = scope.cuts[access, k - 1]
                continue
            first = parent_of(relation, k, first, scope, code, "_first")
            last = parent_of(relation, k, last, scope, code, "_last")
            cuts[k - 1] = (first, ir.add(last, ir.ONE))
        for k, (a, b) in cuts.items():
            scope = scope.cutting(access, k, a, b)
        heads = [k for k in levels if not access.tensor.format.levels[k].branchless or k == levels[0]]
        ends = [*heads[1:], levels[-1] + 1]
        nest = self._level([range(k, end) for k, end in zip(heads, ends, strict=True)], low, scope)
        declared = ir.block(ir.Declare(low, begin), ir.Declare(high, end))
        return ir.block(declared, ir.If(ir.compare("less", low, high), ir.block(*code, nest)))

    def _level(self, chains: list[range], low: ir.Expr, scope: Scope) -> ir.Stmt:
        """One loop of the nest: a level and the singletons that share its positions, and then those below."""
        relation, access, asked = self.relation, self.relation.access, self.asked
        chain, *rest = chains
        k, levels, covered = chain[0], scope.provenance.position_levels(relation), scope.provenance.walked(relation)
        level, view, place = access.tensor.format.levels[k], scope.view(access).levels[k], scope.at(access)
        position = ir.Var(scope.fresh(f"p{access.tensor.name}{k + 1}") if rest else relation.position.name)
        begin, end = cut(segment(level, view, place), scope.cuts[access, k])
        code, inner = self._placed(chain, position, self._at_edge(chain, position, scope))
        if rest:
            recovered, guard, inner = recover(inner)
        else:
            recovered, guard, inner = recover_all(relation, self._determined(position, low, inner))
        settled, inner = settle(inner)
        spread, parts = asked.style.spread, list[Own]()
        if spread is not None and not rest:
            parts, own = own_of(inner.accumulators[written(asked.stmt)], scope)
            inner = inner.accumulating(written(asked.stmt), own)
        below = self._in_run(rest, low, inner, scope) if rest else inside_blocks(relation, inner, asked.then)
        body = ir.block(settled, around_all(covered[k - levels[0] : chain.stop - levels[0]], below, inner))
        body = ir.block(*code, *recovered, ir.when(guard, body))
        if level.has_holes:
            body = ir.If(level.used(view, place.position, position), body)
        loop = self._repeated(position, begin, end, body, parts, scope, k == levels[0], not rest)
        return loop if k == levels[0] else ir.block(loop, scope.sink.after(covered[k - levels[0]], scope))

    def _repeated(
        self, position: ir.Var, begin: ir.Expr, end: ir.Expr, body: ir.Stmt, own: list[Own], scope: Scope, is_first: bool, is_last: bool
    ) -> ir.Stmt:
        """The loop over the positions of one level."""
        spread = self.asked.style.spread
        if spread is None or not (is_first or is_last):
            return (self.asked.style if is_last else SERIAL).loop(position, begin, end, body)
        turn, first, last = (ir.Var(scope.fresh(name)) for name in ("turn", f"{position.name}_begin", f"{position.name}_end"))
        declared = ir.block(ir.Declare(first, begin), ir.Declare(last, end))
        if is_first:
            return ir.block(declared, spread.rows(turn, position, (first, last), body))
        begun = ir.block(*(ir.Declare(part.var, part.identity) for part in own))
        ended = ir.block(*(ir.Shuffle(part.held, part.op, part.var) for part in own))
        return ir.block(declared, spread.entries(turn, position, (first, last), body, (begun, ended)))

    def _in_run(self, rest: list[range], low: ir.Expr, inner: Scope, outer: Scope) -> ir.Stmt:
        """The levels below a position; below the one that fixes the written place, they are one run."""
        fixing = fixing_level(self.asked.stmt, self.relation, outer.provenance)
        run = in_run if fixing is not None and rest[0].start > fixing else inner.ways.reduced
        return run(self.asked.stmt, inner, lambda s: self._level(rest, low, s))

    def _determined(self, position: ir.Var, low: ir.Expr, scope: Scope) -> Scope:
        """The position is known, and so is the digit of it that the loop is over."""
        variable, digit = self.relation.position, self.asked.digit
        start = scope.ranges.range_of(digit)[0] if digit != variable else None
        scope = scope.knowing(variable, position)
        return scope if start is None else scope.knowing(digit, ir.add(subtract(position, low), start))

    def _at_edge(self, chain: range, position: ir.Var, scope: Scope) -> Scope:
        """Where the first and the last run of the block may be another's too, they are told apart here."""
        fixing = fixing_level(self.asked.stmt, self.relation, scope.provenance)
        shared = {root for _, root in scope.atomic}.union(() if scope.carry is None else (scope.carry.position,))
        if fixing is None or chain[0] > fixing or shared != {self.relation.position}:
            return scope
        access, edge = self.relation.access, edge_of(self.relation.access, chain[: fixing + 1 - chain[0]], position, scope)
        if chain[0] > scope.provenance.position_levels(self.relation)[0] and not access.tensor.format.levels[chain[0]].unique:
            # Told by coordinates, which come again below other parents.
            edge = None if edge is None or scope.edge is None else edge.below(scope.edge)
        if edge is not None and access.tensor.format.levels[chain[0]].unique:
            edge = replace(edge, position=self.relation.position)  # one that repeats coordinates comes to a place again and again
        return replace(scope, edge=edge)

    def _placed(self, chain: range, position: ir.Expr, scope: Scope) -> tuple[list[ir.Stmt], Scope]:
        """The coordinates at a position of some levels that share it, and the operand at that place."""
        access, place = self.relation.access, scope.at(self.relation.access)
        form, views = access.tensor.format, scope.view(access).levels
        variables, first = scope.provenance.walked(self.relation), scope.provenance.position_levels(self.relation)[0]
        code: list[ir.Stmt] = []
        for k in chain:
            var = variables[k - first]
            value = form.levels[k].coordinate(views[k], place.position if k == chain[0] else position, position)
            code.append(ir.Declare(ir.Var(var.name), value, f"coordinate of {access.tensor}"))
            scope = scope.knowing(var, ir.Var(var.name))
        slot = form.levels[chain[0]].slot(views[chain[0]], place.position, position)
        return code, scope.placing({access: place.below(chain[-1] + 1, position, slot=slot)})


def fixing_level(stmt: Stmt, relation: Positions, graph: Provenance) -> int | None:
    """The deepest level at which the written place changes: equal coordinates there are one run, whatever lies below.

    A place that no level decides on is the same in the whole block. None if a level above is summed over: the place comes again
    in the middle of other blocks.
    """
    levels = graph.position_levels(relation)
    indices = {original for var in written(stmt).indices for original in graph.originals(var)}
    walked = zip(levels, graph.walked(relation), strict=True)
    deciding = [k for k, var in walked if indices.intersection(graph.originals(var))]
    if deciding != [k for k in levels if k <= max(deciding, default=-1)]:
        return None
    return max(deciding, default=levels[-1])


def needed_above(stmt: Forall, relation: Positions, graph: Provenance) -> bool:
    """Whether something inside a loop over positions needs coordinates above their last level.

    The block of a blocked format is a digit: with the coordinate within the block it settles a variable, whose end guards the loop
    over that digit whoever reads the variable.
    """
    uppers = graph.walked(relation)[:-1]
    others = (n for n in walk(stmt.body) if isinstance(n, Access) and n != relation.access)
    used = {v for n in others for v in (*n.indices, *graph.stored(n))}
    needed = {x for v in used for x in (v, *graph.originals(v))}
    tested = bool(uppers) and any(block.access != relation.access for _, block in blocks_again(relation, graph))
    return tested or any(graph.made_by(var) is not None or needed & graph.ancestors(var) for var in uppers)
