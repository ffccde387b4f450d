"""Loops as text: indented pseudo code, one line per statement, for people and golden files.

    def spmv(input A2_pos: int32[], input A2_crd: int32[], ..., size A1_size, output y_vals: float64[])
      for i in 0 : A1_size
        sum: float64 = 0.0
        for p in A2_pos[i] : A2_pos[i + 1]
          sum = sum + A_vals[p] * x_vals[A2_crd[p]]
        y_vals[i] = sum

The text says everything: ``reader.read`` makes the same kernel of it. Only what an expression's place decides is left out
(``loops/contexts.py``), widening an index to int64 above all; and ``a + b + c`` is one sum, which is computed from the left in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sparseloom.core.algebra import OPERATORS
from sparseloom.core.dtypes import BOOL, INT64, DType
from sparseloom.core.errors import CompilerBug
from sparseloom.core.lines import Line, text_of
from sparseloom.loops import nodes as ir
from sparseloom.loops.contexts import compared, is_widened, literal_dtype, natural, operand_dtype
from sparseloom.loops.routines import Call, Use
from sparseloom.loops.segments import Segments
from sparseloom.loops.together import FindTogether

_OF_INDICES = {"floor_divide": "//", "remainder": "%"}  # the operators on values that a user writes so are shown as functions
SYMBOLS = {name: op.symbol for name, op in OPERATORS.items() if op.symbol not in ("", *_OF_INDICES.values())} | _OF_INDICES
LEVELS = {
    "if": 1, "or": 2, "and": 3, "xor": 4, "==": 5, "!=": 5, "<": 5, "<=": 5, ">": 5, ">=": 5,
    "+": 6, "-": 6, "*": 7, "/": 7, "//": 7, "%": 7, "negative": 8, "**": 9,
}  # fmt: skip
JOINED = ("add", "multiply", "logical_and", "logical_or", "logical_xor")  # any number of operands is written with one symbol between them
KEYWORDS = frozenset(
    "allocate atomic barrier each elif else fail for free if in launch pass poll search shuffle segments scattered while "
    "and or xor nan inf True False".split()
)
_ATOM = 10


def show(root: ir.Function | ir.Stmt | ir.Expr) -> str:
    """The text of a kernel, a statement or an expression."""
    if isinstance(root, ir.Expr):
        return _text(root, root.dtype)
    return text_of(lines(root)) + "\n"


def lines(root: ir.Function | ir.Stmt) -> Iterator[Line]:
    """The lines of a kernel or a statement, each with its origin. A line without an origin has that of the enclosing statement."""
    match root:
        case ir.Function(name, params, body):
            yield Line(f"def {_name(name)}({', '.join(map(_param, params))})")
            yield from _indented(body, "")
        case _:
            yield from _lines(root, "")


def _name(name: str) -> str:
    """A name, quoted if the text uses the word for something else."""
    return f"`{name}`" if name in KEYWORDS else name


def _param(param: ir.Param) -> str:
    match param.target:
        case ir.Array(name, dtype):
            return f"{param.role.value} {_name(name)}: {dtype}[]"
        case ir.Var(name):
            return f"{param.role.value} {_name(name)}"


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
            yield line(f"for {_name(var.name)} in {_index(begin)} : {_index(end)}{_manner(stmt)}")
            yield from _indented(body, origin)
        case ir.While(condition, body, factor):
            yield line(f"while {_text(condition, BOOL)}{f'  [unrolled {factor}]' if factor else ''}")
            yield from _indented(body, origin)
        case ir.If():
            yield from _branches(stmt, "if", outside)
        case ir.Launch(blocks, threads, body, lanes, warp):
            parts, settled = "" if lanes == warp else f" groups of {lanes} and", ", settled" if stmt.settled else ""
            yield line(f"launch {_index(blocks)} blocks of {_index(threads)} threads, in{parts} warps of {warp}{settled}")
            yield from _indented(body, origin)
        case FindTogether(found):
            yield line("find together")
            yield from _indented(ir.Block(found), origin)
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
    if loop.kind is ir.LoopKind.SERIAL and not (loop.factor or loop.reduces or loop.room is not None):
        return ""
    reduces = [f", {_updating(reduction.op)} {_name(reduction.var.name)}" for reduction in loop.reduces]
    room = "" if loop.room is None else f", room {_index(loop.room)}"
    return f"  [{loop.kind.value}{f' {loop.factor}' if loop.factor else ''}{''.join(reduces)}{room}]"


def _updating(op: str | None) -> str:
    """The sign of an operator that updates something; nothing if there is none."""
    return "" if op is None else SYMBOLS.get(op, op)


def _branches(stmt: ir.If, keyword: str, outside: str) -> Iterator[Line]:
    """An ``if`` with its ``elif``s and ``else``."""
    origin = stmt.origin or outside
    yield Line(f"{keyword} {_text(stmt.condition, BOOL)}", origin)
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
            return f"{_name(name)}: {dtype} = {_text(value, dtype)}{why and f'  # {why}'}"
        case ir.Assign(ir.Var(name, dtype), value):
            return f"{_name(name)} = {_text(value, dtype)}"
        case ir.Store(array, place, value, op, atomic):
            words = _text(value, array.dtype)
            if isinstance(stmt, Segments):
                words = f"{'scattered ' if stmt.scattered else ''}segments of {words}"
            return f"{'atomic ' if atomic else ''}{_name(array.name)}[{_index(place)}] {_updating(op)}= {words}"
        case ir.Allocate(array, size):
            return f"allocate {_name(array.name)}: {array.dtype}[{_index(size)}]{_space(array)}"
        case ir.Fill(array, begin, count, value):
            return f"{_name(array.name)}[{_index(begin)} : +{_index(count)}] = {_text(value, array.dtype)}"
        case Call(routine, arrays, args):
            made = stmt.using(Use.ALLOCATES)
            first = [f"{_name(a.name)}: {a.dtype}[]{_space(a)}" if a in made else _name(a.name) for a in arrays]
            return f"{routine.name}({', '.join([*first, *map(_index, args)])})"
        case ir.Free(array):
            return f"free {_name(array.name)}"
        case ir.Shuffle(ir.Var(name, dtype), op, value):
            return f"{_name(name)} {_updating(op)}= shuffle {_text(value, dtype)}"
        case ir.Barrier():
            return "barrier"
        case ir.Fail(status):
            return f"fail {status.name}"
        case ir.Poll():
            return "poll"
    raise CompilerBug(stmt, "a statement the printer knows")


def _space(array: ir.Array) -> str:
    return "" if array.space is ir.MemorySpace.GLOBAL else f" {array.space.value}"


def _index(expr: ir.Expr) -> str:
    return _text(expr, INT64)


def _text(expr: ir.Expr, expected: DType | None, least: int = 0) -> str:
    """An expression where this dtype is expected, in parentheses if it binds more loosely than ``least``."""
    text, level = _leveled(expr, expected)
    return text if level >= least else f"({text})"


def _leveled(expr: ir.Expr, expected: DType | None) -> tuple[str, int]:
    match expr:
        case ir.Var(name):
            return _name(name), _ATOM
        case ir.Thread():
            return "thread()", _ATOM
        case ir.Literal(value, dtype):
            return (repr(value) if literal_dtype(value, expected) == dtype else f"{value!r}:{dtype}"), _ATOM
        case ir.Load(array, place):
            return f"{_name(array.name)}[{_index(place)}]", _ATOM
        case ir.Cast(operand) if expected == INT64 and is_widened(expr):
            return _leveled(operand, None)
        case ir.Cast(operand, dtype):
            return f"{dtype}({_text(operand, None)})", _ATOM
        case ir.Select(condition, then, other):
            inside = _inside("where", (then, other), expected)
            return f"{_text(then, inside, 2)} if {_text(condition, BOOL, 2)} else {_text(other, inside, 2)}", LEVELS["if"]
        case ir.Search(array, begin, end, key, _, lanes):
            together = "" if lanes == 1 else f", {lanes}"
            return f"search({_name(array.name)}, {_index(begin)}, {_index(end)}, {_index(key)}{together})", _ATOM
        case ir.Op(name, args):
            return _operated(name, args, expected)
    raise CompilerBug(expr, "an expression the printer knows")


def _operated(name: str, args: tuple[ir.Expr, ...], expected: DType | None) -> tuple[str, int]:
    """An operator with a sign between or before its operands, or as a function."""
    symbol = SYMBOLS.get(name, name)
    level = LEVELS.get(symbol, _ATOM)
    operands = compared(name, args)
    inside = _inside(name, operands, expected)
    if name == "negative":
        text = _text(args[0], inside, level)
        return (f"-({text})" if isinstance(args[0], ir.Literal) or text[0] in "0123456789-" else f"-{text}"), level
    if level == _ATOM or len(args) < 2 or (len(args) > 2 and name not in JOINED):
        conditions = [_text(one, BOOL) for one in args[: len(args) - len(operands)]]
        return f"{symbol}({', '.join([*conditions, *(_text(one, inside) for one in operands)])})", _ATOM
    first, *rest = args
    return f" {symbol} ".join([_text(first, inside, level), *(_text(a, inside, level + 1) for a in rest)]), level


def _inside(name: str, operands: tuple[ir.Expr, ...], expected: DType | None) -> DType | None:
    """The dtype that a reader expects of operands; None if it would be wrong, so that conversions are written out."""
    found = operand_dtype(name, [natural(one, written=False) for one in operands], expected)
    return found if found == operands[0].dtype else None
