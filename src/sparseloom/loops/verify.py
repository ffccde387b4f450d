"""What must hold of loops before they are run or printed as C. Whatever does not hold is a bug of the stage before.

Names live to the end of the loop body or branch that declares them; a block inside a block opens no scope of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL, FLOAT32, INDEX_DTYPES, INT64, DType, is_half, is_integer, kind_of, largest, smallest
from sparseloom.core.errors import CompilerBug, SparseloomError
from sparseloom.core.trees import Node, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.lanes import is_lanewise
from sparseloom.loops.outside import walk_outside
from sparseloom.loops.reductions import check_own, check_reductions
from sparseloom.loops.routines import Call, Use, indices_of, may_end
from sparseloom.loops.segments import Segments
from sparseloom.loops.together import FindTogether


def verify(function: ir.Function) -> None:
    """Raise ``CompilerBug`` at the first statement or expression that breaks a promise of the loop IR."""
    scope = _Scope()
    for param in function.params:
        _bind_param(param, scope)
    _check(function.body, scope)


_MEETING = ((ir.LoopKind.GPU_BLOCK,), (ir.LoopKind.GPU_WARP,))  # units whose threads can wait for each other


@dataclass
class _Scope:
    """The names that are live: scalars and arrays, which of them may not be written, and the GPU loops around.

    ``shared`` has the names from outside the innermost of these: its iterations read such scalars, but have no such private memory.
    """

    scalars: dict[str, DType] = field(default_factory=dict)
    arrays: dict[str, ir.Array] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    grown: frozenset[str] = frozenset()
    units: tuple[ir.LoopKind, ...] = ()
    shared: frozenset[str] = frozenset()

    def inner(self) -> _Scope:
        """A scope for a loop body or branch."""
        return replace(self, scalars=dict(self.scalars), arrays=dict(self.arrays))

    def launch(self, kind: ir.LoopKind) -> None:
        """Enter a GPU loop."""
        self.units, self.shared = (*self.units, kind), frozenset({*self.scalars, *self.arrays})

    def bind(self, target: ir.Var | ir.Array, where: Node) -> None:
        """Make a name live."""
        name = target.name
        _hold(name not in self.scalars and name not in self.arrays, where, lambda: f"{name} is declared once while it lives")
        match target:
            case ir.Var():
                _hold(not is_half(target.dtype), where, lambda: f"{name} is a float32: {target.dtype} is for arrays alone")
                self.scalars[name] = target.dtype
            case ir.Array():
                self.arrays[name] = target

    def fix(self, name: str) -> None:
        """Forbid writing to a name."""
        self.fixed |= {name}


def _hold(claim: bool, where: Node, what: str | Callable[[], str]) -> None:
    """Raise unless a claim holds. Words that take long to find are found only then: most claims hold, and there are many."""
    if not claim:
        raise CompilerBug(where, what if isinstance(what, str) else what())


def _bind_param(param: ir.Param, scope: _Scope) -> None:
    scalar = param.role in (ir.Role.SIZE, ir.Role.COUNT)
    match param.target:
        case ir.Var(_, dtype):
            _hold(scalar and dtype == INT64, param, "a scalar parameter is an int64 size or count")
        case ir.Array():
            _hold(not scalar, param, "an array parameter is an input, an output or grown")
    scope.bind(param.target, param)
    if param.role in (ir.Role.INPUT, ir.Role.SIZE):
        scope.fix(param.target.name)
    if param.role is ir.Role.GROWN:
        scope.grown |= {param.target.name}


def _check(stmt: ir.Stmt, scope: _Scope, own: Set[str] = frozenset()) -> None:
    """Check one statement; names it declares are added to ``scope``. ``own`` are the scalars of each thread around a team's loop."""
    _check_indices(stmt, scope)
    match stmt:
        case ir.Block(stmts):
            for inner in stmts:
                _check(inner, scope)
        case ir.Fail() | ir.Poll():
            pass
        case ir.Declare(var, value):
            _typed(value, var.dtype, scope, stmt)
            scope.bind(var, stmt)
        case ir.Assign(var, value):
            _assigned(var, scope, stmt)
            _typed(value, var.dtype, scope, stmt)
        case ir.If(condition, then, other):
            _typed(condition, BOOL, scope, stmt)
            _check(then, scope.inner())
            _check(other, scope.inner())
        case ir.While(condition, body):
            _typed(condition, BOOL, scope, stmt)
            _check(body, scope.inner())
        case ir.For():
            _check_for(stmt, scope, own)
        case ir.Team(first, loop, last):
            _hold(loop.kind is ir.LoopKind.THREADS, stmt, "the loop of a team is a threads loop")
            inside = scope.inner()
            _check(first, inside)
            _check(loop, inside, check_own(stmt))
            _check(last, inside)
        case ir.Launch() | FindTogether() | ir.Shuffle() | Segments() | ir.Barrier():
            _check_units(stmt, scope)
        case _:
            _check_memory(stmt, scope)


def _check_units(stmt: ir.Stmt, scope: _Scope) -> None:
    """What units of a GPU do together."""
    match stmt:
        case ir.Launch(_, _, body, lanes, warp):
            _hold(1 <= lanes <= warp and warp % lanes == 0, stmt, "a warp is cut into equal groups of lanes")
            _hold(body.kind in ir.GPU_KINDS and not scope.units, stmt, "what is launched is an outermost loop over units of a GPU")
            _check(body, scope.inner())
        case FindTogether(found):
            _hold(scope.units == (ir.LoopKind.GPU_BLOCK,), stmt, "all threads of a block find scalars together")
            names = {one.var.name for one in found}
            read = {n.name for one in found for n in walk(one.value) if isinstance(n, ir.Var)}
            _hold(names.isdisjoint(read), stmt, "what is found together does not depend on each other")
            for one in found:
                _check(one, scope)
        case ir.Shuffle(var, op, value):
            _scalar(var, scope, stmt)
            _hold(scope.units[-1:] in ((ir.LoopKind.GPU_WARP,), (ir.LoopKind.GPU_THREAD,)), stmt, "lanes, threads and warps shuffle")
            _hold(var.name in scope.shared, stmt, f"{var.name} is declared outside the loop over lanes")
            _typed(value, var.dtype, scope, stmt)
            _hold(_op_dtype(op, (var.dtype, value.dtype), stmt) == var.dtype, stmt, f"{op} of {var.dtype} gives that dtype")
        case Segments():
            _hold(scope.units[-2:] == (ir.LoopKind.GPU_WARP, ir.LoopKind.GPU_THREAD), stmt, "the lanes of a warp have segments")
            _hold(stmt.atomic and stmt.op is not None, stmt, "segments reduce, and their ends are atomic")
            _check_memory(stmt, scope)
        case ir.Barrier():
            _hold(scope.units[-1:] in _MEETING, stmt, "a barrier stands in a block, where all of its threads reach it")


def _check_for(loop: ir.For, scope: _Scope, own: Set[str]) -> None:
    _hold(loop.var.dtype == INT64, loop, "a loop variable is int64")
    least = 1 if loop.kind is ir.LoopKind.UNROLLED else 0
    _hold(loop.factor >= least, loop, "an unrolled loop says how often, and no factor is negative")
    _hold(not loop.factor or loop.kind is not ir.LoopKind.GPU_BLOCK, loop, "a loop over blocks says how many there are by its ends alone")
    if loop.kind is ir.LoopKind.LANES:
        _hold(is_lanewise(loop), loop, "lanes only combine neighbouring numbers of one float dtype")
    if loop.kind is ir.LoopKind.WIDE:
        _hold(isinstance(loop.body, ir.Store) and isinstance(loop.body.value, ir.Load), loop, "a wide loop moves numbers")
    for reduction in loop.reduces:
        _assigned(reduction.var, scope, loop)
    if loop.kind in (ir.LoopKind.VECTOR, ir.LoopKind.THREADS):
        check_reductions(loop, own)
    if loop.kind is ir.LoopKind.VECTOR:
        _hold(not any(map(may_end, walk(loop.body))), loop, "nothing in a vector loop ends the kernel")
    body = scope.inner()
    if loop.kind in ir.GPU_KINDS:
        around = scope.units[-1:]
        _hold(not around or ir.GPU_KINDS.index(around[0]) < ir.GPU_KINDS.index(loop.kind), loop, "blocks hold warps, and both hold threads")
        _hold(_shuffles_last(loop.body), loop, "shuffles stand at the end of a loop over lanes, where all of them arrive")
        body.launch(loop.kind)
    body.bind(loop.var, loop)
    body.fix(loop.var.name)
    _check(loop.body, body)


def _shuffles_last(body: ir.Stmt) -> bool:
    """Whether the shuffles of a loop are the last statements of its body. Loops inside are checked on their own."""
    kept = list(ir.stmts_of(body))
    while kept and isinstance(kept[-1], ir.Shuffle | Segments):
        kept.pop()
    return not any(isinstance(n, ir.Shuffle | Segments) for stmt in kept for n in walk_outside(stmt, ir.GPU_KINDS))


def _check_memory(stmt: ir.Stmt, scope: _Scope) -> None:
    """Statements that allocate, free or write arrays."""
    match stmt:
        case ir.Store(array, _, value, op):
            _written(array, scope, stmt)
            _typed(value, array.dtype, scope, stmt)
            if op is not None:
                _hold(_op_dtype(op, (array.dtype, value.dtype), stmt) == array.dtype, stmt, f"{op} of the array's dtype gives that dtype")
        case ir.Fill(array, _, _, value):
            _written(array, scope, stmt)
            _typed(value, array.dtype, scope, stmt)
        case ir.Allocate(array):
            alone = not scope.units or scope.units[-1] is ir.LoopKind.GPU_THREAD
            _hold(array.space is not ir.MemorySpace.SHARED or not alone, stmt, f"{array.name} is shared by the threads of a block or warp")
            _allocated(array, scope, stmt)
        case Call():
            _check_call(stmt, scope)
        case ir.Free(array):
            _written(array, scope, stmt)
            _hold(array.name not in scope.grown, stmt, "a grown array belongs to the caller and is not freed")
            del scope.arrays[array.name]
        case _:
            raise CompilerBug(stmt, "a statement that verify knows")


def _check_call(call: Call, scope: _Scope) -> None:
    """A call keeps what its function declares."""
    if call.assigned is not None:
        _assigned(call.assigned, scope, call)
    for array in call.using(Use.READS):
        _array(array, scope, call)
    for array in call.using(Use.WRITES, Use.REALLOCATES, Use.FREES):
        _written(array, scope, call)
    for claim, words in call.routine.claims(call.arrays, call.args):
        _hold(claim, call, words)
    for array in call.using(Use.ALLOCATES):
        _allocated(array, scope, call)
    for array in call.using(Use.FREES):
        del scope.arrays[array.name]


def _check_indices(n: ir.Stmt | ir.Expr, scope: _Scope) -> None:
    for expr in indices_of(n):
        _typed(expr, INT64, scope, n)


def _typed(expr: ir.Expr, dtype: DType, scope: _Scope, where: Node) -> None:
    """Check an expression and that it has this dtype."""
    _expr(expr, scope)
    _hold(expr.dtype == dtype, where, lambda: f"{expr} has dtype {dtype}, not {expr.dtype}")


def _scalar(var: ir.Var, scope: _Scope, where: Node) -> None:
    _hold(var.name in scope.scalars, where, lambda: f"{var.name} is declared where it is used")
    declared = scope.scalars[var.name]
    _hold(declared == var.dtype, where, lambda: f"{var.name} keeps its dtype {declared}, not {var.dtype}")


def _assigned(var: ir.Var, scope: _Scope, where: Node) -> None:
    _scalar(var, scope, where)
    _hold(var.name not in scope.fixed, where, f"{var.name} is not a size or a loop variable, which are never assigned")
    _hold(var.name not in scope.shared, where, f"a GPU loop changes {var.name}, declared outside it, only by a shuffle")


def _allocated(array: ir.Array, scope: _Scope, where: Node) -> None:
    if array.name in scope.grown:
        _array(array, scope, where)
    else:
        scope.bind(array, where)


def _array(array: ir.Array, scope: _Scope, where: Node) -> None:
    _hold(array.name in scope.arrays, where, lambda: f"the array {array.name} is a parameter or allocated where it is used")
    _hold(scope.arrays[array.name] == array, where, lambda: f"the array {array.name} is the one declared: {scope.arrays[array.name]}")
    whole = array.space is not ir.MemorySpace.PIECES or isinstance(where, Call)
    _hold(whole, where, lambda: f"{array.name} has an array of each thread, and no elements before they are joined")
    own = array.space is not ir.MemorySpace.LOCAL or array.name not in scope.shared
    _hold(own, where, lambda: f"{array.name} is private to one thread, and the iterations of a GPU loop are several")


def _written(array: ir.Array, scope: _Scope, where: Node) -> None:
    _array(array, scope, where)
    _hold(array.name not in scope.fixed, where, f"the input {array.name} is never written")


def _expr(expr: ir.Expr, scope: _Scope) -> None:
    """Check an expression and everything below it."""
    _check_indices(expr, scope)
    match expr:
        case ir.Var():
            _scalar(expr, scope, expr)
        case ir.Thread():
            pass
        case ir.Literal(value, dtype):
            _hold(_fits(value, dtype), expr, lambda: f"the constant {value!r} is a {dtype}")
        case ir.Load(array):
            _array(array, scope, expr)
        case ir.Cast(operand, dtype):
            _expr(operand, scope)
            halves = [one for one in (operand.dtype, dtype) if is_half(one)]
            _hold(not halves or FLOAT32 in (operand.dtype, dtype), expr, lambda: f"a {halves[0]} is converted from and to float32 only")
        case ir.Select(condition, then, other):
            _typed(condition, BOOL, scope, expr)
            _expr(then, scope)
            _typed(other, then.dtype, scope, expr)
        case ir.Search(array):
            _array(array, scope, expr)
            _hold(array.dtype in INDEX_DTYPES, expr, f"{array.name} holds int32 or int64 coordinates, not {array.dtype}")
        case ir.Op(name, args, dtype):
            for arg in args:
                _expr(arg, scope)
            _hold(dtype == _op_dtype(name, tuple(a.dtype for a in args), expr), expr, lambda: f"{name} of its arguments has dtype {dtype}")
        case _:
            raise CompilerBug(expr, "an expression that verify knows")


def _op_dtype(name: str, arguments: tuple[DType, ...], where: Node) -> DType:
    """The dtype an operator gives; its arguments must already have the compute dtype."""
    _hold(not any(map(is_half, arguments)), where, lambda: f"{name} is computed in float32, not in {', '.join(map(str, arguments))}")
    if name in ("floor_divide", "remainder", "hash"):
        _hold(arguments == (INT64, INT64), where, f"{name} takes two int64")
        return INT64
    _hold(name in algebra.OPERATORS, where, lambda: f"there is an operator {name}")
    op = algebra.OPERATORS[name]
    _hold(len(arguments) == op.arity or (op.associative and len(arguments) > op.arity), where, lambda: f"{name} takes {op.arity} arguments")
    try:
        compute, result = algebra.compute_dtype(name, arguments), algebra.result_dtype(name, arguments)
    except SparseloomError as refused:
        raise CompilerBug(where, str(refused)) from refused
    expected = (BOOL, compute, compute) if op.rule == "select" else (compute,) * len(arguments)
    _hold(arguments == expected, where, lambda: f"the arguments of {name} have dtype {compute}, not {', '.join(map(str, arguments))}")
    return result


_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "c": (int, float, complex)}


def _fits(value: algebra.Scalar, dtype: DType) -> bool:
    """Whether a constant is a Python number that the dtype can hold."""
    if not isinstance(value, _PYTHON_TYPES[kind_of(dtype)]) or (isinstance(value, bool) and dtype.kind != "b"):
        return False
    return not is_integer(dtype) or (isinstance(value, int) and smallest(dtype) <= value <= largest(dtype))
