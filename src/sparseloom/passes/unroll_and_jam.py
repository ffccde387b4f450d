"""Unroll-and-jam: the iterations of an unrolled loop go through the loops inside it together, so that what they share is read once.

    for r in 0 : min(4, n - 4*i)  [unrolled by 4]        if n - 4*i >= 4
      acc[lane] = 0                 for every lane          acc_of[r, lane] = 0               for 4 rows, for every lane
      for j                                         ==>     for j
        acc[lane] += A[r, j] * B[j, lane]                     acc_of[r, lane] += A[r, j] * B[j, lane]
      C[r, lane] = acc[lane]                                C[r, lane] = acc_of[r, lane]
                                                          else what is left, as it was

What is kept, a sum or a vector of them, is in registers then. Whether that may and can be done is asked of ``loops.facts`` and tried by
``expand``. If not, the loop is unrolled as it is, and its outcome says why.
"""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import at_most, long_loops_in, order_of, trip_count
from sparseloom.loops.outcomes import Outcome, of
from sparseloom.loops.rename import unused_names
from sparseloom.passes.expand import Axis, Declined, Expansion

_MOST = 16  # iterations that a CPU does together
_MOST_OF_THREAD = 32  # numbers that a thread of a GPU keeps in one array


def unroll_and_jam(function: ir.Function) -> tuple[ir.Function, tuple[Outcome, ...]]:
    """Let the iterations of unrolled loops go through the loops inside them together."""
    names, outcomes = unused_names(function), list[Outcome]()
    most = _MOST_OF_THREAD if any(isinstance(n, ir.For) and n.kind in ir.GPU_KINDS for n in walk(function, ir.Stmt)) else _MOST

    def rule(n: Node) -> Node | None:
        if not isinstance(n, ir.For) or n.kind is not ir.LoopKind.UNROLLED or not long_loops_in(n.body):
            return None
        try:
            made, crossed = _jammed(n, names, most)
        except Declined as why:
            outcomes.append(of(n, f"unrolled by {n.factor}, one iteration after another: {why}", False))
            return None
        outcomes.append(of(n, f"unrolled by {n.factor}, side by side in the loop over {', '.join(dict.fromkeys(crossed))}"))
        return made

    def of_threads(n: Node) -> Node | None:
        if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_THREAD:
            return replace(n, body=rewrite(n.body, rule, ir.Stmt))
        return None

    return rewrite(function, rule if most == _MOST else of_threads, ir.Stmt), tuple(outcomes)


def _jammed(loop: ir.For, names: Names, most: int) -> tuple[ir.Stmt, list[str]]:
    """The iterations side by side where there are as many as the loop is unrolled by, and one after another where there are fewer."""
    known = trip_count(loop)
    count = known if known is not None and loop.begin == ir.ZERO and known <= most else loop.factor
    if not 1 < count <= most:
        raise Declined(f"{count} are not done at once")
    if (why := order_of(loop)) is not None:
        raise Declined(why)
    whole = loop.begin == ir.ZERO and (at_most(loop.end) or count + 1) <= count
    counter, base = (loop.var, ir.ZERO) if whole else (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("turn", "base"))
    found = Expansion(Axis(loop, counter, count, base), names)
    if not found.crossed:
        raise Declined("no loop inside is the same for all of them")
    if not found.keeps_something:
        raise Declined("they keep nothing from one step to the next")
    sizes = [int(n.size.value.real) for n in walk(found.body) if isinstance(n, ir.Allocate) and isinstance(n.size, ir.Literal)]
    if most == _MOST_OF_THREAD and max(sizes, default=0) > most:
        raise Declined(f"a thread keeps no more than {most} numbers")
    if loop.end == ir.index(count):
        return found.body, found.crossed
    if not whole:
        return _in_blocks(loop, base, count, found.body, names), found.crossed
    return ir.If(ir.compare("equal", loop.end, ir.index(count)), found.body, loop, origin=loop.origin), found.crossed


def _in_blocks(loop: ir.For, base: ir.Expr, count: int, body: ir.Stmt, names: Names) -> ir.Stmt:
    """A loop of any number of iterations, so many of them side by side, and then what is left over."""
    if not isinstance(base, ir.Var):
        raise Declined("nothing says where they begin")
    start, blocks, block = (ir.Var(names.fresh(f"{loop.var.name}_{what}")) for what in ("start", "blocks", "block"))
    size = ir.index(count)
    number = ir.Op("floor_divide", (ir.Op("maximum", (ir.ZERO, ir.Op("subtract", (loop.end, start)))), size))
    here = ir.Declare(base, ir.add(start, ir.multiply(block, size)))
    return ir.block(
        ir.Declare(start, loop.begin),
        ir.Declare(blocks, number),
        ir.For(block, ir.ZERO, blocks, ir.block(here, body), origin=loop.origin),
        replace(loop, begin=ir.add(start, ir.multiply(blocks, size))),
    )
