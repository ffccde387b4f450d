"""Results in halves: float16 and bfloat16 are rounded when they are stored, once. What sums go through on the way is float32.

    y_vals[i] = float16(t_acc)              nothing to do: a register has the sum

    for j ...                               allocate y_sums: float32[n]
      y_vals[j] += ...               ==>    for j ...
                                              y_sums[j] += ...
                                            for place in 0 : n
                                              y_vals[place] = float16(y_sums[place])

A sparse result that a kernel allocates is handed out in float32 then, and rounded by who called it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparseloom.core.dtypes import FLOAT32, is_half
from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.making import CountedFirst
from sparseloom.loops import nodes as ir
from sparseloom.loops.rename import unused_names
from sparseloom.loops.segments import Segments
from sparseloom.lower.kernel import Lowered
from sparseloom.notation.nodes import TensorVar
from sparseloom.scope.context import Remark
from sparseloom.scope.views import Slot, value_at

_CHUNK = 4096  # elements that a thread takes at a time
_BLOCK = 256  # threads of a block


def rounds_early(function: ir.Function) -> bool:
    """Whether loops add to what a half holds, or read it again: it would be rounded more than once."""
    given = {param.target for param in function.params if param.role is ir.Role.INPUT}

    def reads_half(n: Node) -> bool:
        match n:
            case ir.Store(array, op=str()) | Segments(array):
                return is_half(array.dtype)
            case ir.Load(array):
                return is_half(array.dtype) and array not in given
            case ir.Var(_, dtype) | ir.Op(_, _, dtype):
                return is_half(dtype)
        return False

    return any(map(reads_half, walk(function)))


def held_in_float32(concrete: Concrete) -> Concrete:
    """The same loops with a result that is stored as it is computed."""
    name = concrete.assign.lhs.tensor.name

    def rule(n: Node) -> Node | None:
        return replace(n, stored=None) if isinstance(n, TensorVar) and n.name == name and n.stored is not None else None

    making = concrete.making
    if isinstance(making, CountedFirst) and making.counting is not None:
        making = replace(making, counting=rewrite(making.counting, rule))
    return replace(concrete, stmt=rewrite(concrete.stmt, rule), assign=rewrite(concrete.assign, rule), making=making)


def rounded_last(lowered: Lowered, wanted: Concrete) -> Lowered:
    """A kernel whose result is float32, with the rounding to the half that is ``wanted``."""
    lhs = wanted.assign.lhs
    place = lowered.parts[None, "values"]
    values = lowered.function.params[place]
    remark = Remark(0, f"{lhs.tensor}: sums are kept in {FLOAT32}, and rounded to {lhs.tensor.stored_dtype} in the end")
    lowered = replace(lowered, result=lhs, remarks=(*lowered.remarks, remark))
    if values.role is not ir.Role.OUTPUT or not isinstance(values.target, ir.Array):
        return lowered
    names = unused_names(lowered.function)
    held, sums = replace(values.target, dtype=lhs.tensor.stored_dtype), replace(values.target, name=names.fresh(f"{lhs.tensor}_sums"))
    body = rewrite(lowered.function.body, lambda n: sums if n == values.target else None)
    lowered, count = _counted(lowered, names)
    each = _Each(body, count, names)
    rounded = each.element(lambda at: ir.Store(held, at, ir.Cast(ir.Load(sums, at), held.dtype), origin=lhs.tensor.name))
    begun = each.element(lambda at: ir.Store(sums, at, value_at(held, at), origin=lhs.tensor.name)) if wanted.assign.op else None
    whole = ir.block(ir.Allocate(sums, count), begun, body, rounded, ir.Free(sums))
    params = tuple(ir.Param(held, p.role) if p == values else p for p in lowered.function.params)
    return replace(lowered, function=replace(lowered.function, params=params, body=whole))


def _counted(lowered: Lowered, names: Names) -> tuple[Lowered, ir.Expr]:
    """How many values the result has: the product of its extents, or what the caller says, who is asked for it where he is not yet."""
    params, slots, tensor = lowered.function.params, lowered.slots, lowered.result.tensor
    if tensor.format.is_dense and not tensor.format.blocks:
        count: ir.Expr = ir.ONE
        for place in lowered.extents:
            size = params[place].target
            count = ir.multiply(count, size) if isinstance(size, ir.Var) else count
        return lowered, count
    known = lowered.parts.get((None, "count"))
    if known is not None and isinstance(given := params[known].target, ir.Var):
        return lowered, given
    at, made = 1 + lowered.parts[None, "values"], ir.Var(names.fresh(f"{tensor}_count"))
    function = replace(lowered.function, params=(*params[:at], ir.Param(made, ir.Role.SIZE), *params[at:]))
    return replace(lowered, function=function, slots=(*slots[:at], Slot(tensor.name, "count"), *slots[at:])), made


class _Each:
    """Loops over all elements of an array, run by what runs the other loops of a kernel."""

    def __init__(self, body: ir.Stmt, count: ir.Expr, names: Names) -> None:
        kinds = {n.kind for n in walk(body) if isinstance(n, ir.For)}
        self._on_gpu = bool(kinds & set(ir.GPU_KINDS))
        self._in_threads = ir.LoopKind.THREADS in kinds
        self._count = count
        self._names = names

    def element(self, store: Callable[[ir.Expr], ir.Store]) -> ir.Stmt:
        """What is done for every element."""
        place = ir.Var(self._names.fresh("place"))
        if not self._on_gpu:
            kind, factor = (ir.LoopKind.THREADS, _CHUNK) if self._in_threads else (ir.LoopKind.SERIAL, 0)
            return ir.For(place, ir.ZERO, self._count, store(place), kind, factor)
        block, thread = (ir.Var(self._names.fresh(what)) for what in ("block", "thread"))
        width = ir.index(_BLOCK)
        here = ir.Declare(place, ir.add(ir.multiply(block, width), thread))
        body = ir.block(here, ir.If(ir.compare("less", place, self._count), store(place)))
        threads = ir.For(thread, ir.ZERO, width, body, ir.LoopKind.GPU_THREAD, _BLOCK)
        blocks = ir.Op("floor_divide", (ir.add(self._count, ir.index(_BLOCK - 1)), width))
        return ir.For(block, ir.ZERO, blocks, threads, ir.LoopKind.GPU_BLOCK)
