"""Vector loops that sum into a scalar: each lane has a sum of its own, and these are added in the end, in a fixed order.

Products, and the least and the largest of some numbers, are made the same way.

    for p in begin : end  [vector, + sum]        for block                      as many whole blocks as fit
      sum = sum + A[p] * x[crd[p]]        ==>      sums[lane] += A[.. + lane] * x[crd[.. + lane]]     for every lane
                                                 and what is left: for as many lanes, or one p after another
                                                 sum = sum + all of sums                        the first half and the second, and so on

How many lanes there are does not depend on the processor, so neither does the order in which numbers are added. What is left of a row is
done at once where entries follow it in the arrays (``room``): all lanes read, and some are not taken. What is asked for ahead is asked for
once in a block, whose entries are neighbours. A loop that does anything else is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparseloom.core import algebra
from sparseloom.core.names import Names
from sparseloom.core.trees import rewrite
from sparseloom.loops import nodes as ir
from sparseloom.loops.lanes import has_vectors, is_lanewise
from sparseloom.loops.origins import stamped
from sparseloom.loops.rename import unused_names
from sparseloom.passes.in_lanes import asking_of, in_lane, without_asking, without_declarations

SMALLEST = 16  # bytes of a register that every processor has
COMBINED = ("add", "multiply", "minimum", "maximum")  # what lanes can have a result of their own of


def sum_in_lanes(function: ir.Function, vector_bytes: int) -> ir.Function:
    """Give every lane of a vector loop that only sums a sum of its own, for vectors of so many bytes."""
    names = unused_names(function)

    def rule(found: object) -> ir.Stmt | None:
        match found:
            case ir.For(kind=ir.LoopKind.VECTOR, reduces=(ir.Reduction(var, op),)) if op in COMBINED and has_vectors(var.dtype):
                width = _width(found.factor, vector_bytes // var.dtype.itemsize)
                made = _spread(found, var, op, width, names) if width else None
                return None if made is None else stamped(made, found.origin)
        return None

    return rewrite(rewrite(function, rule), _not_asking)


def _width(asked: int, least: int) -> int:
    """How many lanes there are: one vector, or the several that were asked for, whose sums do not wait for each other; 0 for others."""
    return asked or least if not asked or (asked >= least and asked.bit_count() == 1) else 0


def _not_asking(found: object) -> ir.Stmt | None:
    """A vector loop that was left as it is asks for nothing: every lane would."""
    match found:
        case ir.For(kind=ir.LoopKind.VECTOR, reduces=(_, *_)) if (body := without_asking(found.body)) != found.body:
            return replace(found, body=body)
    return None


def _spread(loop: ir.For, total: ir.Var, op: str, width: int, names: Names) -> ir.Stmt | None:
    """The loop in blocks of lanes; None if it does more than sum, or is known to have no whole block."""
    lanes = _lanes_of(loop, total, op, width, names)
    if lanes is None:
        return None
    plain = replace(loop, kind=ir.LoopKind.SERIAL, factor=0, reduces=(), room=None, body=without_asking(loop.body))
    match loop.begin, loop.end:
        case ir.Literal(int(first)), ir.Literal(int(last)):
            rest = (last - first) % width
            made = lanes.summed(lanes.blocks(loop.begin, ir.index((last - first) // width)))
            return ir.block(made, replace(plain, begin=ir.index(last - rest)) if rest else None) if last - first >= width else None
    start, count, left = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("start", "blocks", "left"))
    declared = ir.Declare(start, loop.begin), ir.Declare(left, ir.Op("maximum", (ir.ZERO, ir.Op("subtract", (loop.end, start)))))
    counted = ir.Declare(count, ir.Op("floor_divide", (left, ir.index(width))))
    behind = ir.add(start, ir.multiply(count, ir.index(width)))
    if loop.room is None:
        made = ir.If(ir.compare("less", ir.ZERO, count), lanes.summed(lanes.blocks(start, count)))
        return ir.block(*declared, counted, made, replace(plain, begin=behind))
    over = ir.Op("subtract", (left, ir.multiply(count, ir.index(width))))
    made = lanes.summed(lanes.blocks(start, count), lanes.rest(behind, over, loop.room))
    return ir.block(*declared, ir.If(ir.compare("less", ir.ZERO, left), ir.block(counted, made)))


@dataclass(frozen=True)
class _Lanes:
    """What every lane does from ``base`` on: its own of the ``sums`` is combined with a ``term`` by ``op``, and all sums by ``joined``.

    ``origin`` is what the loop sums for.
    """

    total: ir.Var
    sums: ir.Array
    width: int
    base: ir.Var
    lane: ir.Var
    op: str
    joined: str
    term: ir.Expr
    asked: ir.Stmt
    names: Names
    origin: str

    def over(self, term: ir.Expr, end: ir.Expr) -> ir.For:
        """A loop over the first lanes that adds a term to the sum of each."""
        value = ir.Op(self.op, (ir.Load(self.sums, self.lane), term), self.total.dtype)
        return ir.For(self.lane, ir.ZERO, end, self._put(self.sums, value), ir.LoopKind.LANES, self.width)

    def _put(self, array: ir.Array, value: ir.Expr) -> ir.Stmt:
        return ir.Store(array, self.lane, value, origin=self.origin)

    def blocks(self, start: ir.Expr, count: ir.Expr) -> ir.Stmt:
        """Some whole blocks."""
        block = ir.Var(self.names.fresh(f"{self.lane.name}_block"))
        here = ir.Declare(self.base, ir.add(start, ir.multiply(block, ir.index(self.width))))
        return ir.For(block, ir.ZERO, count, ir.block(here, self.asked, self.over(self.term, ir.index(self.width))))

    def rest(self, start: ir.Expr, count: ir.Expr, room: ir.Expr) -> ir.Stmt:
        """Less than a block, which may be nothing. All lanes read, if the arrays have as many; else each term is first put aside."""
        rest = ir.Var(self.names.fresh(f"{self.lane.name}_rest"))
        aside = ir.Array(self.names.fresh(f"{self.sums.name}_aside"), self.total.dtype, ir.MemorySpace.LOCAL)
        zero = ir.constant(0, self.total.dtype)
        fits = ir.compare("less_equal", ir.add(self.base, ir.index(self.width)), room)
        put = ir.For(self.lane, ir.ZERO, rest, self._put(aside, self.term))
        cleared = replace(self.over(self.term, ir.index(self.width)), body=self._put(aside, zero))
        apart = ir.block(ir.Allocate(aside, ir.index(self.width)), cleared, put, self.over(ir.Load(aside, self.lane), rest), ir.Free(aside))
        body = ir.block(ir.Declare(self.base, start), self.asked, ir.If(fits, self.over(self.term, rest), apart))
        return ir.block(ir.Declare(rest, count), ir.If(ir.compare("less", ir.ZERO, rest), body))

    def summed(self, *stmts: ir.Stmt) -> ir.Stmt:
        """What fills the sums, and all of them added in the end."""
        nothing = ir.constant(algebra.identity(self.joined, self.total.dtype), self.total.dtype)
        cleared = replace(self.over(self.term, ir.index(self.width)), body=self._put(self.sums, nothing))
        added = self._added()
        return ir.block(ir.Allocate(self.sums, ir.index(self.width)), cleared, *stmts, added, ir.Free(self.sums))

    def _added(self) -> ir.Stmt:
        """Add the sums of all lanes: first as many at once as the smallest registers hold, then one by one."""
        total, op, few = self.total, self.joined, SMALLEST // self.total.dtype.itemsize
        part = ir.Array(self.names.fresh(f"{total.name}_part"), total.dtype, ir.MemorySpace.LOCAL)
        loaded: list[ir.Expr] = [ir.Load(self.sums, ir.add(self.lane, ir.index(first))) for first in range(0, self.width, few)]
        whole = _in_halves(op, [ir.Load(part, ir.index(k)) for k in range(few)])
        return ir.block(
            ir.Allocate(part, ir.index(few)),
            ir.For(self.lane, ir.ZERO, ir.index(few), self._put(part, _in_halves(op, loaded)), ir.LoopKind.LANES, few),
            ir.Assign(total, ir.Op(op, (total, whole), total.dtype), origin=self.origin),
            ir.Free(part),
        )


def _lanes_of(loop: ir.For, total: ir.Var, joined: str, width: int, names: Names) -> _Lanes | None:
    """The lanes of a loop; None if it does more than sum."""
    base, lane = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("base", "lane"))
    sums = ir.Array(names.fresh(f"{total.name}_lanes"), total.dtype, ir.MemorySpace.LOCAL)
    asked = rewrite(asking_of(loop.body), lambda n: base if n == loop.var else None)
    body = without_declarations(without_asking(loop.body))
    match body:
        case ir.Assign(var, ir.Op(op, (first, term))) if first == var == total and (op == joined or (op, joined) == ("subtract", "add")):
            term = in_lane(term, loop.var, ir.add(base, lane), lane)
            lanes = _Lanes(total, sums, width, base, lane, op, joined, term, asked, names, body.origin)
            return lanes if is_lanewise(lanes.over(lanes.term, ir.index(width))) else None
    return None


def _in_halves(op: str, terms: list[ir.Expr]) -> ir.Expr:
    """A sum: the first half and the second, term by term, then the halves of that."""
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [ir.Op(op, pair, pair[0].dtype) for pair in zip(terms[:half], terms[half:], strict=True)]
    return terms[0]
