"""Vector loops that sum into a scalar: each lane has a sum of its own, and these are added in the end, in a fixed order.

    for p in begin : end  [vector, + sum]        for block                      as many whole blocks as fit
      sum = sum + A[p] * x[crd[p]]        ==>      sums[lane] += A[.. + lane] * x[crd[.. + lane]]     for every lane
                                                 sum = sum + all of sums                        the first half and the second, and so on
                                                 and what is left, one p after another

How many lanes there are does not depend on the processor, so neither does the order in which numbers are added. A loop that does anything
else is left as it is.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core import algebra
from sparseloom.core.names import Names
from sparseloom.core.trees import rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.lanes import has_vectors, is_lanewise
from sparseloom.lower.in_lanes import in_lane, without_declarations

SMALLEST = 16  # bytes of a register that every processor has


def sum_in_lanes(function: ir.Function, vector_bytes: int) -> ir.Function:
    """Give every lane of a vector loop that only sums a sum of its own, for vectors of so many bytes."""
    names = Names(n.name for n in walk(function) if isinstance(n, ir.Var | ir.Array))

    def rule(found: object) -> ir.Stmt | None:
        match found:
            case ir.For(kind=ir.LoopKind.VECTOR, factor=0, reduces=(ir.Reduction(var, "add"),)) if has_vectors(var.dtype):
                return _spread(found, var, vector_bytes // var.dtype.itemsize, names)
        return None

    return rewrite(function, rule)


def _spread(loop: ir.For, total: ir.Var, width: int, names: Names) -> ir.Stmt | None:
    """The loop in blocks of lanes; None if it does more than sum, or is known to have no whole block."""
    start, count = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("start", "blocks"))
    match loop.begin, loop.end:
        case ir.Literal(int(first)), ir.Literal(int(last)):
            made = _blocks(loop, total, loop.begin, ir.index((last - first) // width), width, names) if last - first >= width else None
            behind = ir.index(last - (last - first) % width)
            return made and ir.block(made, ir.For(loop.var, behind, loop.end, loop.body) if behind != loop.end else None)
    made, size = _blocks(loop, total, start, count, width, names), ir.index(width)
    left = ir.Op("maximum", (ir.ZERO, ir.Op("subtract", (loop.end, start))))
    return made and ir.block(
        ir.Declare(start, loop.begin),
        ir.Declare(count, ir.Op("floor_divide", (left, size))),
        ir.If(ir.compare("less", ir.ZERO, count), made),
        ir.For(loop.var, ir.add(start, ir.multiply(count, size)), loop.end, loop.body),
    )


def _blocks(loop: ir.For, total: ir.Var, start: ir.Expr, count: ir.Expr, width: int, names: Names) -> ir.Stmt | None:
    """Some whole blocks, from ``start`` on, and all lanes added in the end; None if the loop does more than sum."""
    base, block, lane = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("base", "block", "lane"))
    sums = ir.Array(names.fresh(f"{total.name}_lanes"), total.dtype, ir.MemorySpace.LOCAL)
    match without_declarations(loop.body):
        case ir.Assign(var, ir.Op("add" | "subtract", (first, *_)) as value) if first == var == total:
            added = rewrite(in_lane(value, loop.var, ir.add(base, lane), lane), lambda n: ir.Load(sums, lane) if n == total else None)
        case _:
            return None
    lanes = ir.For(lane, ir.ZERO, ir.index(width), ir.Store(sums, lane, added), ir.LoopKind.LANES, width)
    if not is_lanewise(lanes):
        return None
    nothing = ir.constant(algebra.identity("add", total.dtype), total.dtype)
    here = ir.Declare(base, ir.add(start, ir.multiply(block, ir.index(width))))
    return ir.block(
        ir.Allocate(sums, ir.index(width)),
        replace(lanes, body=ir.Store(sums, lane, nothing)),
        ir.For(block, ir.ZERO, count, ir.block(here, lanes)),
        _added(total, sums, width, lane, names),
        ir.Free(sums),
    )


def _added(total: ir.Var, sums: ir.Array, width: int, lane: ir.Var, names: Names) -> ir.Stmt:
    """Add the sums of all lanes: first as many at once as the smallest registers hold, then one by one."""
    few = SMALLEST // total.dtype.itemsize
    part = ir.Array(names.fresh(f"{total.name}_part"), total.dtype, ir.MemorySpace.LOCAL)
    loaded: list[ir.Expr] = [ir.Load(sums, ir.add(lane, ir.index(first))) for first in range(0, width, few)]
    return ir.block(
        ir.Allocate(part, ir.index(few)),
        ir.For(lane, ir.ZERO, ir.index(few), ir.Store(part, lane, _in_halves(loaded)), ir.LoopKind.LANES, few),
        ir.Assign(total, ir.Op("add", (total, _in_halves([ir.Load(part, ir.index(k)) for k in range(few)])), total.dtype)),
        ir.Free(part),
    )


def _in_halves(terms: list[ir.Expr]) -> ir.Expr:
    """A sum: the first half and the second, term by term, then the halves of that."""
    while len(terms) > 1:
        half = len(terms) // 2
        terms = [ir.Op("add", pair, pair[0].dtype) for pair in zip(terms[:half], terms[half:], strict=True)]
    return terms[0]
