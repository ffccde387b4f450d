"""Rust as a target, in one file: a sequential language with a compiler, calling convention and memory of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparseloom.core.dtypes import BOOL, INT64, DType
from sparseloom.core.errors import DeviceError
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.hashing import HASH_FACTOR
from sparseloom.loops.routines import Call, allocated_in
from sparseloom.targets.target import Target
from sparseloom.targets.toolchain import Allocator, Toolchain

PRELUDE = """\
#![allow(warnings)]
use std::os::raw::c_void;
use std::ptr::null_mut;
extern "C" { fn malloc(n: usize) -> *mut u8; fn realloc(p: *mut u8, n: usize) -> *mut u8; fn free(p: *mut u8); }
static LIVE: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
unsafe fn take(count: i64, size: usize) -> *mut u8 {
  if count < 0 || count as u128 * size as u128 > 1 << 62 { return null_mut(); }
  let made = malloc(count as usize * size + 16);
  if made.is_null() { return made; }
  LIVE.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
  *(made as *mut u64) = 0x5e9e2716a1;
  made.add(16)
}
unsafe fn larger(array: *mut u8, count: i64, size: usize) -> *mut u8 {
  let made = realloc(array.sub(16), count as usize * size + 16);
  if made.is_null() { made } else { made.add(16) }
}
#[no_mangle] pub unsafe extern "C" fn rust_free(array: *mut u8) {
  if array.is_null() { return; }
  if *(array.sub(16) as *mut u64) != 0x5e9e2716a1 { std::process::abort(); }
  LIVE.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
  free(array.sub(16));
}
#[no_mangle] pub unsafe extern "C" fn count_live(args: *mut *mut c_void) -> i32 { LIVE.load(std::sync::atomic::Ordering::SeqCst) }
unsafe fn search<T: Copy + Into<i64>>(array: *const T, begin: i64, end: i64, key: i64) -> i64 {
  let (mut low, mut high) = (begin, end);
  while low < high {
    let middle = (low + high) / 2;
    if (*array.offset(middle as isize)).into() < key { low = middle + 1; } else { high = middle; }
  }
  low
}
fn floor_divide(a: i64, b: i64) -> i64 { a.wrapping_div(b) - (a % b != 0 && (a < 0) != (b < 0)) as i64 }
fn remainder(a: i64, b: i64) -> i64 { a - floor_divide(a, b) * b }
fn least<T: PartialOrd + Copy>(a: T, b: T) -> T { if a < b || a != a { a } else { b } }
fn most<T: PartialOrd + Copy>(a: T, b: T) -> T { if a > b || a != a { a } else { b } }
"""
_INFIX = {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_LOGIC = {"logical_and": "&&", "logical_or": "||", "logical_xor": "!="}
_ON_BOOL = _LOGIC | {"add": "||", "multiply": "&&", "maximum": "||", "minimum": "&&"}
_ON_FLOAT = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_WRAPPING = {"add": "wrapping_add", "subtract": "wrapping_sub", "multiply": "wrapping_mul"}
_METHODS = {"absolute": "abs", "sqrt": "sqrt", "exp": "exp", "log": "ln", "sin": "sin", "cos": "cos", "floor": "floor", "ceil": "ceil"}


def rust_type(dtype: DType) -> str:
    """The type of an element."""
    return {"b": "bool", "f": "f", "i": "i", "u": "u"}[dtype.kind] + (str(8 * dtype.itemsize) if dtype.kind != "b" else "")


def has_dtype(dtype: DType) -> bool:
    """Rust has no complex numbers, and no float16."""
    return dtype.kind in "biu" or dtype in (np.float32, np.float64)


class Writer:
    """Writes one kernel."""

    def __init__(self, function: ir.Function, entry: str) -> None:
        self.names: dict[object, str] = {}
        self.lines: list[str] = []
        self.function, self.entry = function, entry

    def name(self, target: ir.Var | ir.Array) -> str:
        key = target.name if isinstance(target, ir.Var) else target
        kept = "".join(c for c in target.name if c.isascii() and c.isalnum())
        return self.names.setdefault(key, f"{'s' if isinstance(target, ir.Var) else 'a'}{len(self.names)}_{kept}")

    def text(self) -> str:
        """The entry: parameters are read, the body leaves a status, and what was allocated is handed out or freed."""
        params = list(enumerate(self.function.params, 1))
        grown = [p.target for _, p in params if p.role is ir.Role.GROWN]
        handed = [array for array in grown if isinstance(array, ir.Array)]
        made = [*handed, *(one for one in allocated_in(walk(self.function.body, ir.Stmt)) if one not in handed)]
        self.lines.append(f'#[no_mangle] pub unsafe extern "C" fn {self.entry}(args: *mut *mut c_void) -> i32 {{')
        for k, param in params:
            target = param.target
            match param.role:
                case ir.Role.INPUT | ir.Role.OUTPUT:
                    self.lines.append(f"let {self.name(target)} = *args.add({k}) as *mut {rust_type(target.dtype)};")
                case ir.Role.SIZE:
                    self.lines.append(f"let {self.name(target)} = *args.add({k}) as i64;")
                case ir.Role.COUNT:
                    self.lines.append(f"let mut {self.name(target)}: i64 = 0;")
        self.lines += [f"let mut {self.name(array)}: *mut {rust_type(array.dtype)} = null_mut();" for array in made]
        self.lines.append("let status: i32 = 'run: {")
        self.stmt(self.function.body)
        self.lines += ["0 };", "if status != 0 {", *(f"rust_free({self.name(array)} as *mut u8);" for array in made), "return status; }"]
        for k, param in params:
            if param.role in (ir.Role.GROWN, ir.Role.COUNT):
                kind = "i64" if param.role is ir.Role.COUNT else f"*mut {rust_type(param.target.dtype)}"
                self.lines.append(f"*(args.add({k}) as *mut {kind}) = {self.name(param.target)};")
        return "\n".join([*self.lines, "0 }"])

    def stmt(self, stmt: ir.Stmt) -> None:
        """Append a statement."""
        match stmt:
            case ir.Block(stmts):
                for inner in stmts:
                    self.stmt(inner)
            case ir.Declare(var, value):
                self.lines.append(f"let mut {self.name(var)}: {rust_type(var.dtype)} = {self.expr(value)};")
            case ir.Assign(var, value):
                self.lines.append(f"{self.name(var)} = {self.expr(value)};")
            case ir.Store(array, index, value, op):
                self.lines.append(f"{{ let place = {self.name(array)}.offset(({self.expr(index)}) as isize);")
                made = self.expr(value) if op is None else operate(op, ["(*place)", self.expr(value)], array.dtype, array.dtype)
                self.lines.append(f"*place = {made}; }}")
            case ir.For(var, begin, end, body, kind) if kind in (ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED):
                self.body(f"for {self.name(var)} in ({self.expr(begin)})..({self.expr(end)})", body)
            case ir.While(condition, body):
                self.body(f"while {self.expr(condition)}", body)
            case ir.If(condition, then, other):
                self.body(f"if {self.expr(condition)}", then)
                self.body("else", other)
            case ir.Fill(array, begin, count, value):
                first = f"{self.name(array)}.offset(({self.expr(begin)}) as isize)"
                self.lines.append(f"{{ let value = {self.expr(value)}; let first = {first};")
                self.lines.append(f"for k in 0..({self.expr(count)}) {{ *first.offset(k as isize) = value; }} }}")
            case ir.Allocate(array, size):
                name, kind = self.name(array), rust_type(array.dtype)
                self.lines.append(f"{name} = take({self.expr(size)}, std::mem::size_of::<{kind}>()) as *mut {kind};")
                self.lines.append(f"if {name}.is_null() {{ break 'run 1; }}")
            case ir.Free(array):
                self.lines.append(f"rust_free({self.name(array)} as *mut u8); {self.name(array)} = null_mut();")
            case ir.Fail(status):
                self.lines.append(f"break 'run {status.value};")
            case ir.Poll():
                pass
            case Call():
                self.lines += self.call(stmt)
            case _:
                raise DeviceError(f"Rust has no {type(stmt).__name__}")

    def body(self, head: str, stmt: ir.Stmt) -> None:
        self.lines.append(f"{head} {{")
        self.stmt(stmt)
        self.lines.append("}")

    def call(self, call: Call) -> list[str]:
        """A function of the library, written out."""
        arrays, args = list(map(self.name, call.arrays)), list(map(self.expr, call.args))
        match call.routine.name:
            case "prefetch" | "prefetch_read":
                return []
            case "grow":
                kind = rust_type(call.arrays[0].dtype)
                bigger = f"let more = larger({arrays[0]} as *mut u8, {args[0]}, std::mem::size_of::<{kind}>()) as *mut {kind};"
                size = f"{args[0]} = std::cmp::max(2 * {args[0]}, {args[1]});"
                return [f"if {args[0]} < {args[1]} {{ {size} {bigger} if more.is_null() {{ break 'run 1; }} {arrays[0]} = more; }}"]
            case "sort":
                return [f"std::slice::from_raw_parts_mut({arrays[0]}, ({args[0]}) as usize).sort_unstable();"]
            case "sort_entries":
                *moved, _, _ = arrays
                count, keys = args[0], int(call.args[1].value.real)  # type: ignore[attr-defined]
                key = ", ".join(f"*{column}.add(k)" for column in moved[:keys])
                lines = [f"{{ let count = ({count}) as usize; let mut order: Vec<usize> = (0..count).collect();"]
                lines.append(f"order.sort_by_key(|&k| ({key},));")
                for array in moved:
                    lines.append(f"let old = std::slice::from_raw_parts({array}, count).to_vec();")
                    lines.append(f"for (place, &k) in order.iter().enumerate() {{ *{array}.add(place) = old[k]; }}")
                return [*lines, "}"]
        raise DeviceError(f"Rust has no {call.routine.name}")

    def expr(self, expr: ir.Expr) -> str:
        """An expression."""
        match expr:
            case ir.Var():
                return self.name(expr)
            case ir.Literal(value, dtype) if dtype.kind == "f":
                bits = np.array(value, dtype).view(f"u{dtype.itemsize}").item()
                return f"{rust_type(dtype)}::from_bits({bits})"
            case ir.Literal(value, dtype):
                return ("true" if value else "false") if dtype == BOOL else f"({int(value.real)}{rust_type(dtype)})"
            case ir.Load(array, index):
                return f"(*{self.name(array)}.offset(({self.expr(index)}) as isize))"
            case ir.Cast(operand, dtype):
                text, source = self.expr(operand), operand.dtype
                if source == dtype:
                    return text
                if dtype == BOOL:
                    return f"({text} != (0 as {rust_type(source)}))"
                return f"({text}{' as u8' if source == BOOL else ''} as {rust_type(dtype)})"
            case ir.Select(condition, then, other) | ir.Op("where", (condition, then, other)):
                return f"(if {self.expr(condition)} {{ {self.expr(then)} }} else {{ {self.expr(other)} }})"
            case ir.Search(array, begin, end, key):
                return f"search({self.name(array)}, {', '.join(map(self.expr, (begin, end, key)))})"
            case ir.Op(name, args, dtype):
                return operate(name, list(map(self.expr, args)), args[0].dtype, dtype)
        raise DeviceError(f"Rust has no {type(expr).__name__}")


def operate(name: str, args: list[str], dtype: DType, result: DType) -> str:
    """An operator on numbers of a dtype."""
    if len(args) > 2:
        return operate(name, [operate(name, args[:2], dtype, result), *args[2:]], dtype, result)
    if dtype == BOOL and name in _ON_BOOL:
        return f"({f' {_ON_BOOL[name]} '.join(args)})"
    match name:
        case "logical_not":
            return f"(!{args[0]})"
        case "negative":
            return f"(-{args[0]})" if dtype.kind == "f" else f"{args[0]}.wrapping_neg()"
        case "minimum" | "maximum":
            return f"{'least' if name == 'minimum' else 'most'}({', '.join(args)})"
        case "floor_divide" | "remainder" if dtype == INT64:
            return f"{name}({', '.join(args)})"
        case "hash":
            return f"((({args[0]} as u64).wrapping_mul({HASH_FACTOR}u64) >> {args[1]}) as i64)"
        case "square":
            return operate("multiply", args * 2, dtype, result)
    if name in _INFIX:
        return f"({f' {_INFIX[name]} '.join(args)})"
    if name in _WRAPPING and dtype.kind in "iu":
        return f"({args[0]}).{_WRAPPING[name]}({args[1]})"
    if name in _ON_FLOAT and dtype.kind == "f":
        return f"({f' {_ON_FLOAT[name]} '.join(args)})"
    if name in _METHODS and dtype.kind == "f":
        return f"({args[0]}).{_METHODS[name]}()"
    raise DeviceError(f"Rust has no {name} of {dtype}")


def emit(kernels: Sequence[tuple[ir.Function, str]]) -> str:
    """One text for many kernels."""
    return PRELUDE + "\n".join(Writer(function, entry).text() for function, entry in kernels) + "\n"


RUST = Target(
    name="rust",
    title="Rust",
    units=(),
    spaces=frozenset({ir.MemorySpace.GLOBAL, ir.MemorySpace.LOCAL}),
    emit=emit,
    atomic=lambda op, dtype: None,
    has_dtype=has_dtype,
    toolchain=Toolchain(
        language="Rust",
        programs=("rustc",),
        variable="RUSTC",
        flags=("--crate-type=cdylib", "--crate-name=kernel", "-Copt-level=1", "-Cpanic=abort"),
        essential=("--crate-type=cdylib", "--crate-name=kernel"),
        suffix=".rs",
        probe="#![allow(warnings)]\n",
        install="  help: install rustc",
    ),
    allocator=Allocator("rust_free"),
)
