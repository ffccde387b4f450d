"""Loops as text: indented pseudo code, one line per statement, for people and golden files.

    def spmv(input A2_pos: int32[], input A2_crd: int32[], ..., size A1_size, output y_vals: float64[])
      for i in 0 : A1_size
        sum: float64 = 0.0
        for p in A2_pos[i] : A2_pos[i + 1]
          sum = sum + A_vals[p] * x_vals[A2_crd[p]]
        y_vals[i] = sum

Widening an index to int64 is not shown; every other conversion is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sparseloom.core.algebra import OPERATORS
from sparseloom.core.dtypes import INT32, INT64
from sparseloom.core.errors import CompilerBug
from sparseloom.core.lines import Line, text_of
from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import Call
from sparseloom.loops.segments import Segments

_SYMBOLS = {"floor_divide": "//", "remainder": "%"} | {name: op.symbol for name, op in OPERATORS.items() if op.symbol}
_LEVELS = {
    "if": 1, "or": 2, "and": 3, "xor": 4, "==": 5, "!=": 5, "<": 5, "<=": 5, ">": 5, ">=": 5,
    "+": 6, "-": 6, "*": 7, "/": 7, "//": 7, "%": 7, "negative": 8, "**": 9,
}  # fmt: skip
_ATOM = 10


def show(root: ir.Function | ir.Stmt | ir.Expr) -> str:
    """The text of a kernel, a statement or an expression."""
    if isinstance(root, ir.Expr):
        return _text(root)
    return text_of(lines(root)) + "\n"


def lines(root: ir.Function | ir.Stmt) -> Iterator[Line]:
    """The lines of a kernel or a statement, with what they stem from. What has no origin has that of what it stands in."""
    match root:
        case ir.Function(name, params, body):
            yield Line(f"def {name}({', '.join(map(_param, params))})")
            yield from _indented(body, "")
        case _:
            yield from _lines(root, "")


def _param(param: ir.Param) -> str:
    match param.target:
        case ir.Array(name, dtype):
            return f"{param.role.value} {name}: {dtype}[]"
        case ir.Var(name):
            return f"{param.role.value} {name}"


def _indented(stmt: ir.Stmt, outside: str) -> list[Line]:
    return [Line("  " + text, origin) for text, origin in _lines(stmt, outside)] or [Line("  pass", outside)]


def _lines(stmt: ir.Stmt, outside: str) -> Iterator[Line]:
    """The lines of one statement inside of what has this origin."""
    origin = stmt.origin or outside
    line = partial(Line, origin=origin)
    match stmt:
        case ir.Block(stmts):
            for inner in stmts:
                yield from _lines(inner, origin)
        case ir.For(var, begin, end, body):
            yield line(f"for {var.name} in {_text(begin)} : {_text(end)}{_manner(stmt)}")
            yield from _indented(body, origin)
        case ir.While(condition, body, factor):
            yield line(f"while {_text(condition)}{f'  [unrolled {factor}]' if factor else ''}")
            yield from _indented(body, origin)
        case ir.If():
            yield from _branches(stmt, "if", outside)
        case ir.Launch(blocks, threads, body):
            yield line(f"launch {_text(blocks)} blocks of {_text(threads)} threads")
            yield from _indented(body, origin)
        case ir.Team(first, loop, last):
            yield line("each thread first")
            yield from _indented(first, origin)
            yield from _lines(loop, origin)
            yield line("each thread last")
            yield from _indented(last, origin)
        case _:
            yield line(_simple(stmt))


def _manner(loop: ir.For) -> str:
    """How a loop runs, where that is not one iteration after another."""
    if loop.kind is ir.LoopKind.SERIAL:
        return ""
    reduces = [f", {_SYMBOLS.get(reduction.op, reduction.op)} {reduction.var.name}" for reduction in loop.reduces]
    return f"  [{loop.kind.value}{f' {loop.factor}' if loop.factor else ''}{''.join(reduces)}]"


def _branches(stmt: ir.If, keyword: str, outside: str) -> Iterator[Line]:
    """An ``if`` with its ``elif``s and ``else``."""
    origin = stmt.origin or outside
    yield Line(f"{keyword} {_text(stmt.condition)}", origin)
    yield from _indented(stmt.then, origin)
    match stmt.other:
        case ir.Block(()):
            pass
        case ir.If() as other:
            yield from _branches(other, "elif", origin)
        case other:
            yield Line("else", origin)
            yield from _indented(other, origin)


def _simple(stmt: ir.Stmt) -> str:
    """A statement that holds no other statements."""
    match stmt:
        case ir.Declare(ir.Var(name, dtype), value, why):
            return f"{name}: {dtype} = {_text(value)}{why and f'  # {why}'}"
        case ir.Assign(ir.Var(name), value):
            return f"{name} = {_text(value)}"
        case Segments(array, place, value, op, _, scattered):
            how = "scattered segments" if scattered else "segments"
            return f"{array.name}[{_text(place)}] {_SYMBOLS.get(op or '', op)}= {how} of {_text(value)}"
        case ir.Store(array, place, value, op, atomic):
            symbol = "=" if op is None else f"{_SYMBOLS.get(op, op)}="
            return f"{'atomic ' if atomic else ''}{array.name}[{_text(place)}] {symbol} {_text(value)}"
        case ir.Allocate(array, size):
            where = "" if array.space is ir.MemorySpace.GLOBAL else f" {array.space.value}"
            return f"allocate {array.name}: {array.dtype}[{_text(size)}]{where}"
        case ir.Fill(array, begin, count, value):
            return f"{array.name}[{_text(begin)} : +{_text(count)}] = {_text(value)}"
        case Call(routine, arrays, args):
            return routine.shown([array.name for array in arrays], [_text(arg) for arg in args])
        case ir.Free(array):
            return f"free {array.name}"
        case ir.Shuffle(ir.Var(name), op, value):
            return f"{name} {_SYMBOLS.get(op, op)}= shuffle {_text(value)}"
        case ir.Barrier():
            return "barrier"
        case ir.Fail(status):
            return f"fail {status.name}"
        case ir.Poll():
            return "poll"
    raise CompilerBug(stmt, "a statement the printer knows")


def _text(expr: ir.Expr, least: int = 0) -> str:
    """An expression, in parentheses if it binds more loosely than ``least``."""
    text, level = _leveled(expr)
    return text if level >= least else f"({text})"


def _leveled(expr: ir.Expr) -> tuple[str, int]:
    match expr:
        case ir.Var(name):
            return name, _ATOM
        case ir.Thread():
            return "thread", _ATOM
        case ir.Literal(value):
            return repr(value), _ATOM
        case ir.Load(array, place):
            return f"{array.name}[{_text(place)}]", _ATOM
        case ir.Cast(operand, dtype) if dtype == INT64 and operand.dtype == INT32:
            return _leveled(operand)
        case ir.Cast(operand, dtype):
            return f"{dtype}({_text(operand)})", _ATOM
        case ir.Select(condition, then, other):
            return f"{_text(then, 2)} if {_text(condition, 2)} else {_text(other, 2)}", _LEVELS["if"]
        case ir.Search(array, begin, end, key):
            return f"search({array.name}, {_text(begin)}, {_text(end)}, {_text(key)})", _ATOM
        case ir.Op("negative", (operand,)):
            level = _LEVELS["negative"]
            return f"-{_text(operand, level)}", level
        case ir.Op(name, args):
            symbol = _SYMBOLS.get(name, name)
            level = _LEVELS.get(symbol, _ATOM)
            if level == _ATOM or len(args) < 2:
                return f"{symbol}({', '.join(map(_text, args))})", _ATOM
            first, *rest = args
            return f" {symbol} ".join([_text(first, level), *(_text(a, level + 1) for a in rest)]), level
    raise CompilerBug(expr, "an expression the printer knows")
