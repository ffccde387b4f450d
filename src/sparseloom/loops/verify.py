"""What must hold of loops before they are run or printed as C. Whatever does not hold is a bug of the stage before.

Names live to the end of the loop body or branch that declares them; a block inside a block opens no scope of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparseloom.core import algebra
from sparseloom.core.dtypes import BOOL, INDEX_DTYPES, INT64, DType, is_integer, largest, smallest
from sparseloom.core.errors import CompilerBug, SparseloomError
from sparseloom.core.trees import Node, walk
from sparseloom.loops.lanes import is_lanewise
from sparseloom.loops.nodes import (
    Allocate,
    Array,
    Assign,
    Block,
    Cast,
    Comment,
    Declare,
    Expr,
    Fail,
    Fill,
    For,
    Free,
    Function,
    Grow,
    If,
    Literal,
    Load,
    LoopKind,
    Op,
    Param,
    Poll,
    Role,
    Search,
    Select,
    Sort,
    SortEntries,
    Stmt,
    Store,
    Var,
    While,
)
from sparseloom.loops.reductions import accumulated


def verify(function: Function) -> None:
    """Raise ``CompilerBug`` at the first statement or expression that breaks a promise of the loop IR."""
    scope = _Scope()
    for param in function.params:
        _bind_param(param, scope)
    _check(function.body, scope)


@dataclass
class _Scope:
    """The names that are live: scalars and arrays, and which of them may not be written."""

    scalars: dict[str, DType] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    grown: frozenset[str] = frozenset()

    def inner(self) -> _Scope:
        """A scope for a loop body or branch."""
        return _Scope(dict(self.scalars), dict(self.arrays), self.fixed, self.grown)

    def bind(self, target: Var | Array, where: Node) -> None:
        """Make a name live."""
        name = target.name
        _hold(name not in self.scalars and name not in self.arrays, where, f"{name} is declared once while it lives")
        match target:
            case Var():
                self.scalars[name] = target.dtype
            case Array():
                self.arrays[name] = target

    def fix(self, name: str) -> None:
        """Forbid writing to a name."""
        self.fixed |= {name}


def _hold(claim: bool, where: Node, what: str) -> None:
    if not claim:
        raise CompilerBug(where, what)


def _bind_param(param: Param, scope: _Scope) -> None:
    scalar = param.role in (Role.SIZE, Role.COUNT)
    match param.target:
        case Var(_, dtype):
            _hold(scalar and dtype == INT64, param, "a scalar parameter is an int64 size or count")
        case Array():
            _hold(not scalar, param, "an array parameter is an input, an output or grown")
    scope.bind(param.target, param)
    if param.role in (Role.INPUT, Role.SIZE):
        scope.fix(param.target.name)
    if param.role is Role.GROWN:
        scope.grown |= {param.target.name}


def _check(stmt: Stmt, scope: _Scope) -> None:
    """Check one statement; names it declares are added to ``scope``."""
    match stmt:
        case Block(stmts):
            for inner in stmts:
                _check(inner, scope)
        case Comment() | Fail() | Poll():
            pass
        case Declare(var, value):
            _typed(value, var.dtype, scope, stmt)
            scope.bind(var, stmt)
        case Assign(var, value):
            _scalar(var, scope, stmt)
            _hold(var.name not in scope.fixed, stmt, f"{var.name} is not a size or a loop variable, which are never assigned")
            _typed(value, var.dtype, scope, stmt)
        case If(condition, then, other):
            _typed(condition, BOOL, scope, stmt)
            _check(then, scope.inner())
            _check(other, scope.inner())
        case While(condition, body):
            _typed(condition, BOOL, scope, stmt)
            _check(body, scope.inner())
        case For():
            _check_for(stmt, scope)
        case _:
            _check_memory(stmt, scope)


def _check_for(loop: For, scope: _Scope) -> None:
    _typed(loop.begin, INT64, scope, loop)
    _typed(loop.end, INT64, scope, loop)
    _hold(loop.var.dtype == INT64, loop, "a loop variable is int64")
    _hold(loop.factor >= (1 if loop.kind is LoopKind.UNROLLED else 0), loop, "an unrolled loop says how often, and no factor is negative")
    if loop.kind is LoopKind.LANES:
        _hold(is_lanewise(loop), loop, "lanes only combine neighbouring numbers of one float dtype")
    if loop.kind in (LoopKind.VECTOR, LoopKind.THREADS):
        accumulated(loop)
    if loop.kind is LoopKind.VECTOR:
        _hold(not any(isinstance(n, Grow | Fail | Poll) for n in walk(loop.body)), loop, "nothing in a vector loop ends the kernel")
    body = scope.inner()
    body.bind(loop.var, loop)
    body.fix(loop.var.name)
    _check(loop.body, body)


def _check_memory(stmt: Stmt, scope: _Scope) -> None:
    """Statements that allocate, free or write arrays."""
    match stmt:
        case Store(array, place, value, op):
            _written(array, scope, stmt)
            _typed(place, INT64, scope, stmt)
            _typed(value, array.dtype, scope, stmt)
            if op is not None:
                _hold(_op_dtype(op, (array.dtype, value.dtype), stmt) == array.dtype, stmt, f"{op} of the array's dtype gives that dtype")
        case Fill(array, begin, count, value):
            _written(array, scope, stmt)
            _typed(begin, INT64, scope, stmt)
            _typed(count, INT64, scope, stmt)
            _typed(value, array.dtype, scope, stmt)
        case Sort(array, scratch, count):
            _written(array, scope, stmt)
            _written(scratch, scope, stmt)
            _typed(count, INT64, scope, stmt)
            _hold(array.dtype == scratch.dtype and array.dtype.kind == "i", stmt, "index arrays are sorted")
        case SortEntries(columns, values, room, count, keys):
            for array in (*columns, values, *room):
                _written(array, scope, stmt)
            _typed(count, INT64, scope, stmt)
            _hold({c.dtype for c in columns} <= {*INDEX_DTYPES} and len({c.dtype for c in columns}) == 1, stmt, "columns are indices alike")
            _hold(all(array.dtype.itemsize == 1 for array in room), stmt, "entries are moved in arrays of bytes")
            _hold(0 < keys <= len(columns), stmt, "entries are sorted by at least one column")
        case Allocate(array, size):
            _typed(size, INT64, scope, stmt)
            if array.name in scope.grown:
                _array(array, scope, stmt)
            else:
                scope.bind(array, stmt)
        case Grow(array, capacity, needed):
            _written(array, scope, stmt)
            _scalar(capacity, scope, stmt)
            _hold(capacity.dtype == INT64 and capacity.name not in scope.fixed, stmt, "a capacity is an int64 that can be assigned")
            _typed(needed, INT64, scope, stmt)
        case Free(array):
            _written(array, scope, stmt)
            _hold(array.name not in scope.grown, stmt, "a grown array belongs to the caller and is not freed")
            del scope.arrays[array.name]
        case _:
            raise CompilerBug(stmt, "a statement that verify knows")


def _typed(expr: Expr, dtype: DType, scope: _Scope, where: Node) -> None:
    """Check an expression and that it has this dtype."""
    _expr(expr, scope)
    _hold(expr.dtype == dtype, where, f"{expr} has dtype {dtype}, not {expr.dtype}")


def _scalar(var: Var, scope: _Scope, where: Node) -> None:
    _hold(var.name in scope.scalars, where, f"{var.name} is declared where it is used")
    _hold(scope.scalars[var.name] == var.dtype, where, f"{var.name} keeps its dtype {scope.scalars[var.name]}, not {var.dtype}")


def _array(array: Array, scope: _Scope, where: Node) -> None:
    _hold(array.name in scope.arrays, where, f"the array {array.name} is a parameter or allocated where it is used")
    _hold(scope.arrays[array.name] == array, where, f"the array {array.name} is the one declared: {scope.arrays[array.name]}")


def _written(array: Array, scope: _Scope, where: Node) -> None:
    _array(array, scope, where)
    _hold(array.name not in scope.fixed, where, f"the input {array.name} is never written")


def _expr(expr: Expr, scope: _Scope) -> None:
    """Check an expression and everything below it."""
    match expr:
        case Var():
            _scalar(expr, scope, expr)
        case Literal(value, dtype):
            _hold(_fits(value, dtype), expr, f"the constant {value!r} is a {dtype}")
        case Load(array, place):
            _array(array, scope, expr)
            _typed(place, INT64, scope, expr)
        case Cast(operand):
            _expr(operand, scope)
        case Select(condition, then, other):
            _typed(condition, BOOL, scope, expr)
            _expr(then, scope)
            _typed(other, then.dtype, scope, expr)
        case Search(array, begin, end, key):
            _array(array, scope, expr)
            _hold(array.dtype in INDEX_DTYPES, expr, f"{array.name} holds int32 or int64 coordinates, not {array.dtype}")
            for bound in (begin, end, key):
                _typed(bound, INT64, scope, expr)
        case Op(name, args, dtype):
            for arg in args:
                _expr(arg, scope)
            _hold(dtype == _op_dtype(name, tuple(a.dtype for a in args), expr), expr, f"{name} of its arguments has dtype {dtype}")
        case _:
            raise CompilerBug(expr, "an expression that verify knows")


def _op_dtype(name: str, arguments: tuple[DType, ...], where: Node) -> DType:
    """The dtype an operator gives; its arguments must already have the compute dtype."""
    if name in ("floor_divide", "remainder"):
        _hold(arguments == (INT64, INT64), where, f"{name} takes two int64")
        return INT64
    _hold(name in algebra.OPERATORS, where, f"there is an operator {name}")
    op = algebra.OPERATORS[name]
    _hold(len(arguments) == op.arity or (op.associative and len(arguments) > op.arity), where, f"{name} takes {op.arity} arguments")
    try:
        compute, result = algebra.compute_dtype(name, arguments), algebra.result_dtype(name, arguments)
    except SparseloomError as refused:
        raise CompilerBug(where, str(refused)) from refused
    expected = (BOOL, compute, compute) if op.rule == "select" else (compute,) * len(arguments)
    _hold(arguments == expected, where, f"the arguments of {name} have dtype {compute}, not {', '.join(map(str, arguments))}")
    return result


_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "c": (int, float, complex)}


def _fits(value: algebra.Scalar, dtype: DType) -> bool:
    """Whether a constant is a Python number that the dtype can hold."""
    if not isinstance(value, _PYTHON_TYPES[dtype.kind]) or (isinstance(value, bool) and dtype.kind != "b"):
        return False
    return not is_integer(dtype) or (isinstance(value, int) and smallest(dtype) <= value <= largest(dtype))
