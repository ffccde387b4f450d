"""Vector loops: strip-mined, with the lanes innermost, and a sum for each lane where iterations sum.

    for k in 0 : 8  [vector 4]                    for k_block in 0 : 2
      acc: float64 = 0.0                            k_base: int64 = k_block * 4
      for p in 0 : m                                allocate acc_lanes: float64[4] local
        acc = acc + A[p] * B[p * 8 + k]    ==>      for k_lane in 0 : 4  [lanes 4]
      C[k] = acc                                      acc_lanes[k_lane] = 0.0
                                                    for p in 0 : m
                                                      for k_lane in 0 : 4  [lanes 4]
                                                        acc_lanes[k_lane] = acc_lanes[k_lane] + A[p] * B[p * 8 + k_base + k_lane]
                                                    for k_lane in 0 : 4  [lanes 4]
                                                      C[k_base + k_lane] = acc_lanes[k_lane]
                                                    free acc_lanes

    for p in begin : end  [vector, + sum]        for block                      as many whole blocks as fit
      sum = sum + A[p] * x[crd[p]]        ==>      sums[lane] += A[.. + lane] * x[crd[.. + lane]]     for every lane
                                                 and what is left: for as many lanes, or one p after another
                                                 sum = sum + all of sums                        the first half and the second, and so on

How many lanes sum does not depend on the processor, so neither does the order in which numbers are added. What is left of a row is
done at once where entries follow it in the arrays (``room``): all lanes read, and some are not taken. A loop of one step that sums
nothing is left to the C compiler; so is one in which lanes take different ways, and its outcome says where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sparseloom.core import algebra
from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import loops_in, trip_count, uses
from sparseloom.loops.lanes import has_vectors
from sparseloom.loops.origins import stamped
from sparseloom.loops.outcomes import Outcome, of
from sparseloom.loops.rename import unused_names
from sparseloom.passes.expand import Axis, Declined, Expansion, is_asking

BLOCKS = (4, 2, 1)  # how many vectors a block has: first four, for as long as that fits, then two, then one
SMALLEST = 16  # bytes of a register that every processor has
COMBINED = ("add", "multiply", "minimum", "maximum")  # what lanes can have a result of their own of


def vectorize(function: ir.Function, vector_bytes: int) -> tuple[ir.Function, tuple[Outcome, ...]]:
    """Strip-mine every vector loop that sums, or has loops inside, for vectors of so many bytes."""
    names, outcomes = unused_names(function), list[Outcome]()

    def rule(n: Node) -> Node | None:
        if not isinstance(n, ir.For) or n.kind is not ir.LoopKind.VECTOR or not (n.reduces or loops_in(n.body)):
            return None
        try:
            made, widths = (_summed if n.reduces else _strip_mined)(n, vector_bytes, names)
        except Declined as why:
            is_step = not loops_in(n.body)
            outcomes.append(of(n, f"vector loop{', left to the C compiler' if is_step else ' kept scalar'}: {why}", is_step))
            body = without_asking(n.body) if n.reduces else n.body
            return None if body is n.body else replace(n, body=body)
        sums = ", each with a sum of its own" if n.reduces else ""
        outcomes.append(of(n, f"vector loop, {_listed(widths)} lanes at a time{sums}"))
        return stamped(made, n.origin)

    return rewrite(function, rule), tuple(outcomes)


def _listed(widths: Sequence[int]) -> str:
    *first, last = map(str, widths)
    return f"{', '.join(first)} and {last}" if first else last


def _strip_mined(loop: ir.For, vector_bytes: int, names: Names) -> tuple[ir.Stmt, Sequence[int]]:
    """A loop with loops inside, in blocks of lanes."""
    stored = [n.array.dtype.itemsize for n in walk(loop.body) if isinstance(n, ir.Store)]
    if not stored:
        raise Declined("it writes no array")
    width = loop.factor or vector_bytes // max(stored)
    widths = [width * vectors for vectors in (BLOCKS if not loop.factor else (1,))]
    return ir.block(*_blocks(loop, widths, names)), widths


def _blocks(loop: ir.For, widths: Sequence[int], names: Names) -> Iterator[ir.Stmt]:
    """As many whole blocks as fit, the largest first; then what is left, one after another. Between constants only what there is."""
    count, done = trip_count(loop), 0
    if count is not None:
        for width in widths:
            if blocks := (count - done) // width:
                yield _block(loop, ir.add(loop.begin, ir.index(done)), ir.index(blocks), width, names)
            done += blocks * width
        if done < count:
            yield ir.For(loop.var, ir.add(loop.begin, ir.index(done)), loop.end, loop.body)
        return
    start = ir.Var(names.fresh(f"{loop.var.name}_start"))
    yield ir.Declare(start, loop.begin)
    for width in widths:
        number, size = ir.Var(names.fresh(f"{loop.var.name}_blocks")), ir.index(width)
        left = ir.Op("maximum", (ir.ZERO, ir.Op("subtract", (loop.end, start))))
        yield ir.Declare(number, ir.Op("floor_divide", (left, size)))
        yield _block(loop, start, number, width, names)
        yield ir.Assign(start, ir.add(start, ir.multiply(number, size)))
    yield ir.For(loop.var, start, loop.end, loop.body)


def _block(loop: ir.For, start: ir.Expr, count: ir.Expr, width: int, names: Names) -> ir.Stmt:
    """Some whole blocks, the first of which begins at ``start``."""
    base, block, lane = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("base", "block", "lane"))
    body = Expansion(Axis(loop, lane, width, base, True), names).body
    return ir.For(block, ir.ZERO, count, ir.block(ir.Declare(base, ir.add(start, ir.multiply(block, ir.index(width)))), body))


def without_asking(body: ir.Stmt) -> ir.Stmt:
    """A body that asks for nothing ahead, without names that only served to ask."""
    stmts = ir.stmts_of(body)
    kept = [stmt for stmt in stmts if not is_asking(stmt)]
    for stmt in reversed(kept[:] if len(kept) < len(stmts) else []):
        if isinstance(stmt, ir.Declare) and stmt.var.name not in uses(*(other for other in kept if other is not stmt)).read:
            kept.remove(stmt)
    return body if len(kept) == len(stmts) else ir.block(*kept)


def _summed(loop: ir.For, vector_bytes: int, names: Names) -> tuple[ir.Stmt, Sequence[int]]:
    """A loop that sums, in blocks of lanes that each have a sum."""
    if not all(reduction.op in COMBINED and has_vectors(reduction.var.dtype) for reduction in loop.reduces):
        raise Declined("vectors have no such sums")
    least = vector_bytes // max(reduction.var.dtype.itemsize for reduction in loop.reduces)
    width = loop.factor or least  # several vectors, whose sums do not wait for each other, if as many lanes are asked for
    if width < least or width.bit_count() > 1:
        raise Declined(f"{width} lanes are no whole vectors of {least}")
    count = trip_count(loop)
    if count is not None and count < width:
        raise Declined(f"it is shorter than the {width} lanes of a vector")
    return _Sums(loop, width, names).made(count), (width,)


@dataclass
class _Sums:
    """A loop whose lanes have a sum each."""

    loop: ir.For
    width: int
    names: Names

    def made(self, count: int | None) -> ir.Stmt:
        """The sums of whole blocks, and of what is left over."""
        loop, width = self.loop, ir.index(self.width)
        base, lane = (ir.Var(self.names.fresh(f"{loop.var.name}_{what}")) for what in ("base", "lane"))
        self.lane = lane
        self.sums = {r.var: ir.Array(self.names.fresh(f"{r.var.name}_lanes"), r.var.dtype, ir.MemorySpace.LOCAL) for r in loop.reduces}
        body = Expansion(Axis(loop, lane, self.width, base, True), self.names, self.sums).body
        if not loops_in(loop.body) and any(isinstance(n, ir.For) and n.kind is not ir.LoopKind.LANES for n in walk(body)):
            raise Declined("it is no arithmetic that vectors have")
        plain = replace(loop, kind=ir.LoopKind.SERIAL, factor=0, reduces=(), room=None, body=without_asking(loop.body))
        if count is not None:
            rest = count % self.width
            begin = ir.Op("subtract", (loop.end, ir.index(rest))) if rest else loop.end
            summed = self._all(self._blocks(base, loop.begin, ir.index(count // self.width), body))
            return ir.block(summed, replace(plain, begin=begin) if rest else None)
        start, number, left = (ir.Var(self.names.fresh(f"{loop.var.name}_{what}")) for what in ("start", "blocks", "left"))
        extent = ir.Op("maximum", (ir.ZERO, ir.Op("subtract", (loop.end, start))))
        declared = ir.Declare(start, loop.begin), ir.Declare(left, extent)
        counted = ir.Declare(number, ir.Op("floor_divide", (left, width)))
        behind = ir.add(start, ir.multiply(number, width))
        blocks = self._blocks(base, start, number, body)
        if loop.room is None or not self._is_one_step(body):
            summed = ir.If(ir.compare("less", ir.ZERO, number), self._all(blocks))
            return ir.block(*declared, counted, summed, replace(plain, begin=behind))
        over = ir.Op("subtract", (left, ir.multiply(number, width)))
        summed = self._all(blocks, self._rest(base, behind, over, loop.room, body))
        return ir.block(*declared, ir.If(ir.compare("less", ir.ZERO, left), ir.block(counted, summed)))

    def _blocks(self, base: ir.Var, start: ir.Expr, count: ir.Expr, body: ir.Stmt) -> ir.Stmt:
        """Some whole blocks."""
        block = ir.Var(self.names.fresh(f"{self.lane.name}_block"))
        here = ir.Declare(base, ir.add(start, ir.multiply(block, ir.index(self.width))))
        return ir.For(block, ir.ZERO, count, ir.block(here, body))

    def _is_one_step(self, body: ir.Stmt) -> bool:
        """Whether all that lanes do is to add one term each."""
        *asked, last = ir.stmts_of(body)
        return all(map(is_asking, asked)) and isinstance(last, ir.For) and isinstance(last.body, ir.Store)

    def _rest(self, base: ir.Var, start: ir.Expr, count: ir.Expr, room: ir.Expr, body: ir.Stmt) -> ir.Stmt:
        """Less than a block, which may be nothing. All lanes read, if the arrays have as many; else each term is first put aside."""
        *asked, step = ir.stmts_of(body)
        if not isinstance(step, ir.For) or not isinstance(step.body, ir.Store) or not isinstance(step.body.value, ir.Op):
            raise Declined("lanes do more than sum")
        store, value = step.body, step.body.value
        total, term = value.args
        rest = ir.Var(self.names.fresh(f"{self.lane.name}_rest"))
        aside = ir.Array(self.names.fresh(f"{store.array.name}_aside"), store.array.dtype, ir.MemorySpace.LOCAL)
        fits = ir.compare("less_equal", ir.add(base, ir.index(self.width)), room)
        cleared = replace(step, body=self._put(aside, ir.constant(0, aside.dtype)))
        put = ir.For(self.lane, ir.ZERO, rest, self._put(aside, term))
        taken = replace(step, end=rest, body=replace(store, value=replace(value, args=(total, ir.Load(aside, self.lane)))))
        apart = ir.block(ir.Allocate(aside, ir.index(self.width)), cleared, put, taken, ir.Free(aside))
        body = ir.block(ir.Declare(base, start), *asked, ir.If(fits, replace(step, end=rest), apart))
        return ir.block(ir.Declare(rest, count), ir.If(ir.compare("less", ir.ZERO, rest), body))

    def _put(self, array: ir.Array, value: ir.Expr) -> ir.Stmt:
        return ir.Store(array, self.lane, value)

    def _all(self, *stmts: ir.Stmt) -> ir.Stmt:
        """What fills the sums, and all of them added in the end."""
        opened, ended = list[ir.Stmt](), list[ir.Stmt]()
        for reduction in self.loop.reduces:
            array = self.sums[reduction.var]
            nothing = ir.constant(algebra.identity(reduction.op, array.dtype), array.dtype)
            cleared = ir.For(self.lane, ir.ZERO, ir.index(self.width), self._put(array, nothing), ir.LoopKind.LANES, self.width)
            opened += [ir.Allocate(array, ir.index(self.width)), cleared]
            ended += [self._added(reduction, array), ir.Free(array)]
        return ir.block(*opened, *stmts, *ended)

    def _added(self, reduction: ir.Reduction, sums: ir.Array) -> ir.Stmt:
        """Add the sums of all lanes: first as many at once as the smallest registers hold, then one by one."""
        total, op, few = reduction.var, reduction.op, SMALLEST // reduction.var.dtype.itemsize
        part = ir.Array(self.names.fresh(f"{total.name}_part"), total.dtype, ir.MemorySpace.LOCAL)
        loaded: list[ir.Expr] = [ir.Load(sums, ir.add(self.lane, ir.index(first))) for first in range(0, self.width, few)]
        whole = _in_halves(op, [ir.Load(part, ir.index(k)) for k in range(few)])
        return ir.block(
            ir.Allocate(part, ir.index(few)),
            ir.For(self.lane, ir.ZERO, ir.index(few), self._put(part, _in_halves(op, loaded)), ir.LoopKind.LANES, few),
            ir.Assign(total, ir.Op(op, (total, whole), total.dtype)),
            ir.Free(part),
        )


def _in_halves(op: str, terms: list[ir.Expr]) -> ir.Expr:
    """A sum: the first half and the second, term by term, then the halves of that."""
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [ir.Op(op, pair, pair[0].dtype) for pair in zip(terms[:half], terms[half:], strict=True)]
    return terms[0]
