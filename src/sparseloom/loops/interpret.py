"""Run loops in Python: the oracle that checks what C cannot.

A kernel is turned into Python text once and executed. Values are computed as NumPy scalars of their dtype; bool, int64 and float64
are Python numbers, which is faster, and int64 wraps by hand. Every access is checked (see ``memory``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from sparseloom.core.algebra import OPERATORS, integer_power, ufunc
from sparseloom.core.dtypes import BOOL, FLOAT16, FLOAT64, INT64, VALUE_DTYPES, DType, bfloat16, real_part
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.hashing import HASH_FACTOR
from sparseloom.loops.memory import Cells, OutOfMemory
from sparseloom.loops.outside import walk_outside
from sparseloom.loops.racing import RaceFound, Settled, Tracker, WatchedCells
from sparseloom.loops.routines import Call, Routine
from sparseloom.loops.segments import Segments, update_in_segments
from sparseloom.loops.together import FindTogether

__all__ = ["KernelStatus", "RaceFound", "run"]

_ONE_BY_ONE = (ir.LoopKind.SERIAL, ir.LoopKind.VECTOR, ir.LoopKind.UNROLLED, ir.LoopKind.LANES, ir.LoopKind.WIDE)


class KernelStatus(Exception):
    """A kernel ended with a status other than OK."""

    def __init__(self, status: ir.Status) -> None:
        super().__init__(f"the kernel ended with status {status.name}")
        self.status = status


def run(function: ir.Function, arguments: Sequence[Any], outputs_initialised: bool = False) -> list[Any]:
    """Run a kernel on arguments that align with its parameters; GROWN and COUNT parameters get ``None``.

    Returns the arguments with GROWN arrays and COUNT numbers filled in. Unless ``outputs_initialised``, reading an element of an
    OUTPUT array before it is written is a bug.
    """
    text, arrays, routines = _Writer(function).written()
    tracker = Tracker() if _is_parallel(function) else None
    given = {
        p.target: (a, p.role is ir.Role.INPUT or outputs_initialised, p.role is not ir.Role.INPUT)
        for p, a in zip(function.params, arguments, strict=True)
        if p.role in (ir.Role.INPUT, ir.Role.OUTPUT)
    }
    cells = {a: Cells(a, *given.get(a, ())) if tracker is None else WatchedCells(a, tracker, *given.get(a, ())) for a in arrays}
    sizes = [int(a) for p, a in zip(function.params, arguments, strict=True) if p.role is ir.Role.SIZE]
    try:
        with np.errstate(all="ignore"):
            counts = iter(_compiled(text)(list(cells.values()), sizes, tracker, [routine.run for routine in routines]))
    except OutOfMemory:
        raise KernelStatus(ir.Status.OUT_OF_MEMORY) from None
    except ZeroDivisionError:
        raise CompilerBug(function.name, "no index is divided by zero") from None
    _check_freed(function, cells)
    return [_answer(p, a, cells, counts) for p, a in zip(function.params, arguments, strict=True)]


def _answer(param: ir.Param, argument: Any, cells: dict[ir.Array, Cells], counts: Any) -> Any:
    match param:
        case ir.Param(ir.Array() as array, ir.Role.GROWN):
            return cells[array].data
        case ir.Param(_, ir.Role.COUNT):
            return next(counts)
    return argument


def _check_freed(function: ir.Function, cells: dict[ir.Array, Cells]) -> None:
    """On success, whatever the kernel allocated is freed or handed out."""
    owned = {p.target for p in function.params}
    for array, one in cells.items():
        if one.live and array not in owned:
            raise CompilerBug(function.name, f"{array.name} is freed before the kernel ends")


def _is_parallel(function: ir.Function) -> bool:
    return any(isinstance(n, ir.For) and n.kind not in _ONE_BY_ONE for n in walk(function))


def _fail(status: str) -> None:
    raise KernelStatus(ir.Status[status])


def _convert(value: Any, source: DType, target: DType) -> Any:
    """NumPy's ``astype`` on one number."""
    return np.asarray(value, source).astype(target)[()]


def _across(lanes: list[Any], count: int, most: int | None, combine: Callable[[Any, Any], Any]) -> list[Any]:
    """The total of the values of all lanes: adjacent lanes first, then pairs of pairs, as shuffles do. A warp has ``most`` lanes."""
    if len(lanes) != count:
        raise CompilerBug("shuffle", f"a shuffle is reached by all {count} lanes in lock step, not by {len(lanes)} of them")
    if most is not None and count > most:
        raise CompilerBug("shuffle", f"a warp has {most} lanes, not {count}")
    while len(lanes) > 1:
        lanes = [combine(*lanes[k : k + 2]) if k + 1 < len(lanes) else lanes[k] for k in range(0, len(lanes), 2)]
    return lanes


def _power(base: Any, exponent: Any, dtype: DType) -> Any:
    """C's ``pow``. Two of each, because NumPy takes the square root for one exponent of 0.5, and the root of -inf is nan."""
    return np.power(np.full(2, base, dtype), np.full(2, exponent, dtype))[0]


_NAMESPACE: dict[str, Any] = {
    "LoopKind": ir.LoopKind,
    "Settled": Settled,
    "inf": np.inf,
    "nan": np.nan,
    "convert": _convert,
    "integer_power": integer_power,
    "fail": _fail,
    "across": _across,
    "segments": update_in_segments,
    "power": _power,
    "reduce": reduce,
    **{f"np_{d}": d.type for d in (*VALUE_DTYPES, FLOAT16)},
    **{f"np_{name}": ufunc(name) for name, op in OPERATORS.items() if op.rule != "cast"},
}


@lru_cache(maxsize=512)
def _compiled(text: str) -> Callable[..., Any]:
    namespace = dict(_NAMESPACE)
    if "np_bfloat16" in text:
        namespace["np_bfloat16"] = bfloat16().type
    exec(compile(text, "<loops>", "exec"), namespace)
    kernel: Callable[..., Any] = namespace["kernel"]
    return kernel


def _number(dtype: DType) -> str:
    """What makes a number of this dtype as the interpreter holds it."""
    return {BOOL: "bool", INT64: "int", FLOAT64: "float"}.get(dtype, f"np_{dtype}")


_MOST_NESTED = 16  # Python reads no more than 200 parentheses in one another
_NATIVE = (BOOL, INT64, FLOAT64)
_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*",
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_ON_BOOL = {
    "add": "or", "multiply": "and", "minimum": "and", "maximum": "or",
    "logical_and": "and", "logical_or": "or", "logical_xor": "!=",
}  # fmt: skip
# Python's integers do not wrap by themselves.
_WRAPPED = {"add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "negative": "(-{})"}
_ON_INT64 = {name: f"(({text} + {2**63} & {2**64 - 1}) - {2**63})" for name, text in _WRAPPED.items()} | {
    "floor_divide": "({} // {})", "remainder": "({} % {})", "minimum": "min({}, {})", "maximum": "max({}, {})",
    "hash": f"(({{}} * {HASH_FACTOR} & {2**64 - 1}) >> {{}})",
}  # fmt: skip
_SAME_ON_INTEGERS = ("floor", "ceil", "trunc", "conjugate")


class _Writer:
    """Writes one kernel as Python text. Names are numbered, for they may be anything."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.scalars: dict[str, str] = {}
        self.arrays: dict[ir.Array, str] = {}
        self.routines: dict[Routine, str] = {}
        self.constants: list[str] = []
        self.lines: list[str] = []
        self.thread = ir.Var("")  # counts the threads of the team being written
        self.in_warp = False  # whether a loop over warps is being written
        self.launch: ir.Launch | None = None  # the one that is being written

    def written(self) -> tuple[str, list[ir.Array], list[Routine]]:
        """The text, and the arrays and functions of the library that it takes, in order."""
        params = self.function.params
        sizes = [self._scalar(p.target.name) for p in params if p.role is ir.Role.SIZE]
        counts = [self._scalar(p.target.name) for p in params if p.role is ir.Role.COUNT]
        for n in (n for part in (*params, self.function.body) for n in walk(part)):
            if isinstance(n, ir.Array):
                self.arrays.setdefault(n, f"a{len(self.arrays)}")
        self._stmt(self.function.body, "  ")
        head = ["def kernel(arrays, sizes, tracker, routines):"]
        head += [f"  {name} = arrays[{k}]" for k, name in enumerate(self.arrays.values())]
        head += [f"  {name} = routines[{k}]" for k, name in enumerate(self.routines.values())]
        head += [f"  {name} = sizes[{k}]" for k, name in enumerate(sizes)]
        head += [f"  {name} = 0" for name in counts]
        head += [f"  c{k} = {text}" for k, text in enumerate(self.constants)]
        return "\n".join([*head, *self.lines, f"  return [{', '.join(counts)}]"]), list(self.arrays), list(self.routines)

    def _scalar(self, name: str) -> str:
        return self.scalars.setdefault(name, f"v{len(self.scalars)}")

    def _body(self, stmt: ir.Stmt, indent: str) -> None:
        before = len(self.lines)
        self._stmt(stmt, indent + "  ")
        if len(self.lines) == before:
            self.lines.append(f"{indent}  pass")

    def _stmt(self, stmt: ir.Stmt, indent: str) -> None:
        """Append the lines of one statement."""
        match stmt:
            case ir.Block(stmts):
                for inner in stmts:
                    self._stmt(inner, indent)
            case ir.Poll():
                pass
            case ir.While(condition, body):
                self.lines.append(f"{indent}while {self._expr(condition)}:")
                self._body(body, indent)
            case ir.If(condition, then, other):
                self.lines.append(f"{indent}if {self._expr(condition)}:")
                self._body(then, indent)
                if other != ir.Block(()):
                    self.lines.append(f"{indent}else:")
                    self._body(other, indent)
            case ir.For():
                self._loop(stmt, indent)
            case ir.Launch(_, threads, body, lanes, warp, settled):
                self.launch = stmt
                together = f"Settled({self._expr(threads)}, {lanes}, {warp})" if settled else "None"
                self.lines.append(f"{indent}tracker.settled = {together}")
                self._loop(body, indent)
                self.launch = None
            case FindTogether(found):
                self.lines.append(f"{indent}tracker.find({len(found)})")
                self._stmt(ir.Block(found), indent)
            case ir.Team(first, loop, last):
                # As if every iteration had a thread of its own.
                outside, self.thread = self.thread, loop.var
                self._loop(replace(loop, body=ir.block(first, loop.body, last)), indent)
                self.thread = outside
            case _:
                self.lines.append(indent + self._simple(stmt))

    def _loop(self, loop: ir.For, indent: str) -> None:
        var = self._scalar(loop.var.name)
        run = f"range({self._expr(loop.begin)}, {self._expr(loop.end)})"
        if loop.kind in _ONE_BY_ONE:
            self.lines.append(f"{indent}for {var} in {run}:")
            self._body(loop.body, indent)
            return
        shuffles = [n for n in walk_outside(loop.body, ir.GPU_KINDS) if isinstance(n, ir.Shuffle)]
        segments = [n for n in walk_outside(loop.body, ir.GPU_KINDS) if isinstance(n, Segments)]
        self.lines += [f"{indent}{name} = []" for name in (*map(self._lanes, shuffles), *map(self._lanes, segments))]
        entered = f"tracker.enter({loop.var.name!r}, LoopKind.{loop.kind.name}, r{var})"
        self.lines += [f"{indent}r{var} = {run}", f"{indent}w{var} = {entered}"]
        self.lines += [f"{indent}for {var} in r{var}:", f"{indent}  w{var}.begin({var})"]
        around, self.in_warp = self.in_warp, self.in_warp or loop.kind is ir.LoopKind.GPU_WARP
        self._body(loop.body, indent)
        self.in_warp = around
        self.lines.append(f"{indent}tracker.leave(w{var})")
        for n in shuffles:
            dtype, held = n.var.dtype, self._scalar(n.var.name)
            combined, most = self._operator(n.op, ["a", "b"], dtype, dtype), self._lanes_of_warp if around else None
            self.lines.append(f"{indent}for t in across({self._lanes(n)}, len(r{var}), {most}, lambda a, b: {combined}):")
            self.lines.append(f"{indent}  {held} = {self._operator(n.op, [held, 't'], dtype, dtype)}")
        self.lines += [f"{indent}{self._updated(n, f'len(r{var})', self._lanes_of_warp)}" for n in segments]

    @property
    def _lanes_of_warp(self) -> int | None:
        return None if self.launch is None else self.launch.lanes

    def _lanes(self, shuffle: ir.Shuffle | Segments) -> str:
        """The list of what the lanes bring to a shuffle."""
        return f"s{self._scalar(shuffle.var.name)}" if isinstance(shuffle, ir.Shuffle) else f"s{self.arrays[shuffle.array]}"

    def _updated(self, stmt: Segments, count: str, most: int | None) -> str:
        """What becomes of the segments that so many lanes brought."""
        name, dtype = self.arrays[stmt.array], stmt.array.dtype
        combined = self._operator(stmt.op or "", ["a", "b"], dtype, dtype)
        peek = f"{name}.peek_number" if dtype in _NATIVE else f"{name}.peek"
        return f"segments({name}, {self._lanes(stmt)}, {count}, {most}, {stmt.scattered}, lambda a, b: {combined}, {peek})"

    def _simple(self, stmt: ir.Stmt) -> str:
        """A statement that holds no others."""
        match stmt:
            case ir.Declare(var, value) | ir.Assign(var, value):
                return f"{self._scalar(var.name)} = {self._expr(value)}"
            case Segments(_, place, value):
                return f"{self._lanes(stmt)}.append(({self._expr(place)}, {self._expr(value)}))"
            case ir.Store(array, place, value, None):
                return f"{self.arrays[array]}.store({self._expr(place)}, {self._expr(value)})"
            case ir.Store(array, place, value, str(op), atomic):
                name = self.arrays[array]
                peeked = f"{name}.peek_number(t)" if array.dtype in _NATIVE else f"{name}.peek(t)"
                combined = self._operator(op, [peeked, self._expr(value)], array.dtype, array.dtype)
                return f"t = {self._expr(place)}; {name}.{'store_atomic' if atomic else 'store'}(t, {combined})"
            case ir.Allocate(array, size):
                return f"{self.arrays[array]}.allocate({self._size(size)})"
            case ir.Fill(array, begin, count, value):
                return f"{self.arrays[array]}.fill({self._expr(begin)}, {self._expr(count)}, {self._expr(value)})"
            case Call(routine, arrays, args):
                taken = (", ".join(self.arrays[array] for array in arrays), ", ".join(map(self._expr, args)))
                assigned = "" if stmt.assigned is None else f"{self._scalar(stmt.assigned.name)} = "
                return f"{assigned}{self.routines.setdefault(routine, f'f{len(self.routines)}')}([{taken[0]}], [{taken[1]}])"
            case ir.Free(array):
                return f"{self.arrays[array]}.free()"
            case ir.Shuffle(_, _, value):
                return f"{self._lanes(stmt)}.append({self._expr(value)})"
            case ir.Barrier():
                return "tracker.barrier()"
            case ir.Fail(status):
                return f"fail({status.name!r})"
        raise CompilerBug(stmt, "a statement that the interpreter knows")

    def _expr(self, expr: ir.Expr) -> str:
        """An expression, in parentheses where it needs them."""
        match expr:
            case ir.Var(name):
                return self._scalar(name)
            case ir.Thread():
                return self._scalar(self.thread.name)
            case ir.Literal(value, dtype):
                return self._literal(value, dtype)
            case ir.Load(array, place):
                return f"{self.arrays[array]}.{'load_number' if array.dtype in _NATIVE else 'load'}({self._expr(place)})"
            case ir.Cast(ir.Load(array, place), dtype) if dtype == INT64 and array.dtype.kind == "i":
                return f"{self.arrays[array]}.load_number({self._expr(place)})"
            case ir.Cast(operand, dtype):
                return _cast(self._expr(operand), operand.dtype, dtype)
            case ir.Select(condition, then, other) | ir.Op("where", (condition, then, other)):
                return f"({self._expr(then)} if {self._expr(condition)} else {self._expr(other)})"
            case ir.Search(array, begin, end, key, _, lanes):
                found = f"{self.arrays[array]}.search({self._expr(begin)}, {self._expr(end)}, {self._expr(key)})"
                return found if lanes == 1 else f"tracker.reached({lanes}, {found})"
            case ir.Op(name, args, dtype):
                return self._operator(name, [self._expr(a) for a in args], args[0].dtype, dtype)
        raise CompilerBug(expr, "an expression that the interpreter knows")

    def _size(self, expr: ir.Expr) -> str:
        """The size of an allocation: a product does not wrap here, so that a size that is too large is rejected."""
        match expr:
            case ir.Op("multiply", args, dtype) if dtype == INT64:
                return " * ".join(map(self._size, args))
        return self._expr(expr)

    def _literal(self, value: Any, dtype: DType) -> str:
        if dtype in (BOOL, INT64):
            return f"({value!r})"
        if dtype == FLOAT64:
            return f"({float(value)!r})"
        number = complex(value) if dtype.kind == "c" else value
        text = f"np_{dtype}(complex({number.real!r}, {number.imag!r}))" if dtype.kind == "c" else f"np_{dtype}({number!r})"
        if text not in self.constants:
            self.constants.append(text)
        return f"c{self.constants.index(text)}"

    def _operator(self, name: str, args: list[str], dtype: DType, result: DType) -> str:
        """An operator on arguments of ``dtype``; more than two arguments combine from the left."""
        if dtype == BOOL and _ON_BOOL.get(name) in ("and", "or"):
            return f"({f' {_ON_BOOL[name]} '.join(args)})"
        if len(args) > _MOST_NESTED:
            step = self._operator(name, ["left", "right"], dtype, result)
            return f"reduce(lambda left, right: {step}, ({', '.join(args)}))"
        if len(args) > 2:
            first = self._operator(name, args[:2], dtype, result)
            return self._operator(name, [first, *args[2:]], dtype, result)
        if dtype == BOOL and name in _ON_BOOL:
            return f"({args[0]} {_ON_BOOL[name]} {args[1]})"
        if name in ("real", "imag"):
            return f"{_number(result)}({args[0]}.{name})"
        if (name in _SAME_ON_INTEGERS and dtype.kind in "biu") or name.startswith("as_"):
            return args[0]
        return _numeric(name, args, dtype, result)


def _numeric(name: str, args: list[str], dtype: DType, result: DType) -> str:
    """Arithmetic, comparisons and functions of numbers."""
    if dtype == INT64 and name in _ON_INT64:
        return _ON_INT64[name].format(*args)
    if name in _INFIX:
        return f"({args[0]} {_INFIX[name]} {args[1]})"
    match name, args:
        case ("logical_not", [a]):
            return f"(not {a})"
        case ("negative", [a]):
            return f"(-{a})"
        case ("power", [a, b]) if dtype.kind in "iu":
            return f"{_number(result)}(integer_power(np_{dtype}({a}), np_{dtype}({b})))"
        case ("power", [a, b]):
            return f"{_number(result)}(power({a}, {b}, np_{dtype}))"
        case ("divide", [a, b]):
            return f"{_number(result)}(np_{dtype}({a}) / {b})"
    return f"{_number(result)}(np_{name}({', '.join(args)}))"


def _cast(text: str, source: DType, target: DType) -> str:
    """A conversion as NumPy's ``astype``; a complex number gives its real part to real dtypes."""
    if source == target:
        return text
    if target == BOOL:
        return f"({text} != 0)"
    if source.kind == "c" and target.kind != "c":
        text, source = f"{text}.real", real_part(source)
    if (target == INT64 and source.kind in "bi") or (target == FLOAT64 and source.kind in "biuf"):
        return f"{_number(target)}({text})"
    return f"{_number(target)}(convert({text}, np_{source}, np_{target}))"
