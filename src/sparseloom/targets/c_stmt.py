"""Loop statements as C, two spaces per level.

What can fail sets ``status`` and jumps to ``fail``, where everything allocated is freed. Out of a threads loop one may not jump:
there the iteration is skipped, the others are skipped as they begin, and the jump is made after the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sparseloom.core.dtypes import BOOL, INT64, DType, is_half
from sparseloom.core.errors import CompilerBug
from sparseloom.core.lines import Line
from sparseloom.core.trees import Node, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.lanes import gathers, lane_dtype
from sparseloom.loops.routines import Call, Spelled, allocated, may_end
from sparseloom.targets.c_expr import PLUS, TIMES, UNARY, Expressions, Piece, c_type, is_zero_bits, operate, update_symbol
from sparseloom.targets.c_prelude import atomic_way
from sparseloom.targets.c_vectors import SMALLEST_REGISTER, VECTOR_BYTES, LaneExpressions, infix_symbol
from sparseloom.targets.target import Atomic

_CLAUSES = {"add": "+", "multiply": "*", "minimum": "min", "maximum": "max", "logical_or": "||", "logical_and": "&&"}
_CLAUSES_ON_BOOL = {
    "add": "||", "maximum": "||", "logical_or": "||", "multiply": "&&", "minimum": "&&", "logical_and": "&&", "logical_xor": "^",
}  # fmt: skip


@dataclass(frozen=True)
class Exit:
    """Where a failure goes: how the status is set, the label, and whether several threads share the status."""

    status: str
    label: str
    is_shared: bool = False


def is_on_stack(allocation: ir.Allocate) -> bool:
    """A private array of constant size needs no heap."""
    return allocation.array.space is ir.MemorySpace.LOCAL and isinstance(allocation.size, ir.Literal)


def may_fail(root: Node) -> bool:
    """Whether a kernel can end with another status than OK."""
    return any(may_end(n) or (isinstance(n, ir.Allocate) and not is_on_stack(n)) for n in walk(root))


def _locks(n: Node) -> bool:
    return isinstance(n, ir.Store) and n.atomic and n.op is not None and atomic_way(n.op, n.array.dtype) is Atomic.LOCK


def _copied(loop: ir.For) -> list[str]:
    """The clause for what each thread begins with a copy of: where the kernel may be cancelled, the count to its next look."""
    return ["firstprivate(poll, countdown)"] if any(isinstance(n, ir.Poll) for n in walk(loop.body)) else []


def pieces_of(stmt: ir.Stmt) -> list[ir.Array]:
    """The arrays of arrays that a kernel makes."""
    return list(dict.fromkeys(array for n in walk(stmt) for array in allocated(n) if array.space is ir.MemorySpace.PIECES))


def heap_arrays(stmt: ir.Stmt) -> list[ir.Array]:
    """The arrays a statement allocates on the heap, outside threads loops, which keep their own."""
    made = (n for n in ir.walk_outside(stmt, (ir.LoopKind.THREADS,)) if not (isinstance(n, ir.Allocate) and is_on_stack(n)))
    return list(dict.fromkeys(array for n in made for array in allocated(n) if array.space is not ir.MemorySpace.PIECES))


class Statements:
    """Prints the statements of one kernel into ``lines``, each with its origin, or with that of the statement in which it stands."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.names = expressions.names
        self.lines: list[Line] = []
        self.depth = 1
        self.origin = ""
        self.exit = Exit("status = {};", "fail")
        self.stacked: set[ir.Array] = set()

    def line(self, *texts: str) -> None:
        """Append lines at the current depth."""
        self.lines += [Line("  " * self.depth + text, self.origin) for text in texts]

    def _label(self, text: str) -> None:
        """A place to jump to, which stands out."""
        self.lines.append(Line("  " * (self.depth - 1) + text, self.origin))

    @contextmanager
    def _stemming(self, stmt: ir.Stmt) -> Iterator[None]:
        """Lines that stem from what a statement does."""
        outside, self.origin = self.origin, stmt.origin or self.origin
        yield
        self.origin = outside

    @contextmanager
    def _braces(self, head: str = "") -> Iterator[None]:
        self.line(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def emit(self, stmt: ir.Stmt) -> None:
        """Print one statement."""
        outside, self.origin = self.origin, stmt.origin or self.origin
        self._statement(stmt)
        self.origin = outside

    def _statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Block(stmts):
                for inner in stmts:
                    self.emit(inner)
            case ir.Declare(var, value):
                self._declare(stmt, self.expressions.assigned(var, value))
            case ir.Assign(var, value):
                self._assign(var, value)
            case ir.While(condition, body, factor):
                if factor:
                    self.line(f"#pragma GCC unroll {factor}")
                with self._braces(f"while ({self.expressions.value(condition)})"):
                    self.emit(body)
            case ir.If():
                self._branches(stmt)
            case ir.For():
                self._loop(stmt)
            case ir.Launch(body=loop):
                raise CompilerBug(stmt, f"a {loop.kind.value} loop runs on a device, not in C")
            case ir.Team():
                self._team(stmt)
            case ir.Store():
                self._store(stmt)
            case ir.Fill():
                self._fill(stmt)
            case Call():
                self._call(stmt)
            case ir.Fail(status):
                self._fail(status.name)
            case ir.Poll():
                self._poll()
            case _:
                self._memory(stmt)

    def _declare(self, stmt: ir.Declare, value: str) -> None:
        """A scalar and what it begins with, and where that comes from."""
        remark = f"  // {' '.join(stmt.why.split())}".rstrip(" \\") if stmt.why else ""  # a backslash would go on with the next line
        self.line(f"{c_type(stmt.var.dtype)} {self.names.scalar(stmt.var.name)} = {value};{remark}")

    def _call(self, call: Call) -> None:
        """What the function's declaration says, line by line."""
        dtypes = [array.dtype for array in call.arrays]
        arrays, args = list(map(self.names.array, call.arrays)), list(map(self.expressions.index, call.args))
        spelled = Spelled(arrays, list(map(c_type, dtypes)), list(map(str, dtypes)), args, self._failing("OUT_OF_MEMORY"))
        self.line(*call.routine.c(spelled).split("\n"))

    def _branches(self, stmt: ir.If, keyword: str = "if") -> None:
        """An ``if`` with its ``else if``s and ``else``."""
        self.line(f"{keyword} ({self.expressions.value(stmt.condition)}) {{")
        self._indented(stmt.then)
        if isinstance(stmt.other, ir.If):
            self._branches(stmt.other, "} else if")
            return
        if stmt.other != ir.Block(()):
            self.line("} else {")
            self._indented(stmt.other)
        self.line("}")

    def _indented(self, stmt: ir.Stmt) -> None:
        self.depth += 1
        self.emit(stmt)
        self.depth -= 1

    def _assign(self, var: ir.Var, value: ir.Expr) -> None:
        target = self.names.scalar(var.name)
        index = var.dtype == INT64 and var.name in self.expressions.indices
        match value:
            case ir.Op("add", (ir.Var(first), ir.Literal(1))) if first == var.name and index:
                self.line(f"{target}++;")
            case ir.Op(name, (ir.Var(first), other)) if first == var.name and (symbol := update_symbol(name, var.dtype, index)):
                self.line(f"{target} {symbol} {self.expressions.assigned(var, other)};")
            case _:
                self.line(f"{target} = {self.expressions.assigned(var, value)};")

    def _store(self, store: ir.Store) -> None:
        """A plain, combining or atomic store."""
        place = f"{self.names.array(store.array)}[{self.expressions.index(store.index)}]"
        op, dtype, value = store.op, store.array.dtype, self.expressions.piece(store.value, False)
        if op is None:
            self.line(f"{place} = {value.text};")
            return
        way = atomic_way(op, dtype) if store.atomic else None
        if way is Atomic.SWAP:
            self.line(f"atomic_{op}_{dtype}(&{place}, {value.text});")
            return
        if way is not None:
            self.line("#pragma omp atomic" if way is Atomic.UPDATE else "#pragma omp critical(sparseloom)")
        symbol = "+=" if way is Atomic.UPDATE else update_symbol(op, dtype) if way is None else None
        combined = f"{symbol} {value.text}" if symbol else f"= {operate(op, [Piece(place), value], dtype).text}"
        self.line(f"{place} {combined};")

    def _fill(self, fill: ir.Fill) -> None:
        """Bytes where the value is all zero bits, else a loop."""
        array, element = self.names.array(fill.array), c_type(fill.array.dtype)
        offset = None if fill.begin == ir.Literal(0) else self.expressions.index_piece(fill.begin).at(TIMES)
        match fill.value:
            case ir.Literal(value, dtype) if is_zero_bits(value, dtype):
                start = array if offset is None else f"{array} + {offset}"
                count = self.expressions.index_piece(fill.count).at(UNARY)
                self.line(f"memset({start}, 0, (size_t){count} * sizeof({element}));")
                return
            case ir.Literal() | ir.Var():
                filling = self.expressions.value(fill.value)
            case _:
                filling = self.names.fresh("filling")
                self.line(f"const {element} {filling} = {self.expressions.value(fill.value)};")
        k = self.names.fresh("k")
        end = self.expressions.index_piece(fill.count).at(PLUS)
        with self._braces(f"for (int64_t {k} = 0; {k} < {end}; {k}++)"):
            self.line(f"{array}[{k if offset is None else f'{offset} + {k}'}] = {filling};")

    def _lanes(self, loop: ir.For, dtype: DType) -> None:
        """A loop over lanes, a register of them at a time. What counts up with the lane is read and written as a vector."""
        size = loop.factor * dtype.itemsize
        if size % VECTOR_BYTES and (size != SMALLEST_REGISTER or gathers(loop)):
            self._loop(replace(loop, kind=ir.LoopKind.UNROLLED))
            return
        lane, scalars = self.names.scalar(loop.var.name), self.expressions
        short = size == SMALLEST_REGISTER
        count = None if loop.end == ir.index(loop.factor) else f"{scalars.index_piece(loop.end).at(PLUS)} - {lane}"
        lanes = self.expressions = LaneExpressions(scalars, loop.var, dtype, short, count)
        self.line(f"#pragma GCC unroll {size // SMALLEST_REGISTER}")
        with self._braces(f"for (int64_t {lane} = 0; {lane} < {loop.factor}; {lane} += {loop.factor if short else f'lanes_{dtype}'})"):
            for stmt in ir.stmts_of(loop.body):
                if isinstance(stmt, ir.Store) and isinstance(stmt.value, ir.Cast) and is_half(stmt.array.dtype):
                    with self._stemming(stmt):
                        self.line(f"{lanes.rounding(stmt.array, stmt.index, stmt.value.operand)};")
                elif isinstance(stmt, ir.Store):
                    place, value = lanes.value(ir.Load(stmt.array, stmt.index)), lanes.broadcast(stmt.value)
                    symbol = "" if stmt.op is None else infix_symbol(stmt.op)
                    if count is not None:  # the lanes behind the last keep what they have
                        combined = f"{place} {symbol} ({value})" if symbol else value
                        symbol, value = "", f"first_{dtype}({combined}, {place}, {count})"
                    with self._stemming(stmt):
                        self.line(f"{place} {symbol}= {value};")
        self.expressions = scalars

    def _loop(self, loop: ir.For) -> None:
        dtype = lane_dtype(loop) if loop.kind is ir.LoopKind.LANES else None
        if dtype is not None:
            self._lanes(loop, dtype)
            return
        self.line(*self._pragmas(loop))
        skips = loop.kind is ir.LoopKind.THREADS and may_fail(loop.body)
        with self._braces(self._head(loop)):
            if skips:
                self._skippable(loop)
            else:
                self.emit(loop.body)
        if skips:
            self.line(f"if (status) goto {self.exit.label};")

    def _head(self, loop: ir.For) -> str:
        var, end = self.names.scalar(loop.var.name), self.expressions.index_piece(loop.end).at(PLUS)
        return f"for (int64_t {var} = {self.expressions.index(loop.begin)}; {var} < {end}; {var}++)"

    def _team(self, team: ir.Team) -> None:
        """A parallel region: each thread has memory of its own around its share of the iterations.

        A thread that fails at the beginning comes to the loop all the same, for all threads must; there every iteration is skipped.
        """
        outside, loop = self.exit, team.loop
        self.line(" ".join(["#pragma omp parallel", *_copied(loop)]))
        with self._braces():
            self._leaving_to("ready", heap_arrays(team.first))
            self.emit(team.first)
            self._label(f"{self.exit.label}:;")
            self.line(f"#pragma omp for schedule({f'dynamic, {loop.factor}' if loop.factor else 'guided'})")
            with self._braces(self._head(loop)):
                self._skippable(loop)
            self.emit(team.last)
        self.exit = outside
        self.line(f"if (status) goto {self.exit.label};")

    def _leaving_to(self, label: str, own: Sequence[ir.Array]) -> None:
        """From here on a failure of a thread goes to a label, and these arrays are its own."""
        self.exit = Exit("__atomic_store_n(&status, {}, __ATOMIC_RELAXED);", self.names.fresh(label), is_shared=True)
        self.line(*(f"{c_type(array.dtype)} *{self.names.array(array)} = NULL;" for array in own))

    def _skippable(self, loop: ir.For) -> None:
        """The body of a threads loop in which something can fail; each iteration owns what it allocates."""
        self.line("if (__atomic_load_n(&status, __ATOMIC_RELAXED)) continue;")
        outside, own = self.exit, heap_arrays(loop.body)
        self._leaving_to(f"next_{loop.var.name}", own)
        self.emit(loop.body)
        self._label(f"{self.exit.label}:" + ("" if own else ";"))
        self.line(*(f"release({self.names.array(array)});" for array in own))
        self.exit = outside

    def _pragmas(self, loop: ir.For) -> list[str]:
        match loop.kind:
            case ir.LoopKind.SERIAL:
                return []
            case ir.LoopKind.UNROLLED | ir.LoopKind.LANES:
                return [f"#pragma GCC unroll {loop.factor}"]
            case ir.LoopKind.VECTOR if any(map(_locks, walk(loop.body))):
                return []  # a lock has no place among lanes
            case ir.LoopKind.VECTOR:
                words = ["#pragma omp simd", *([f"simdlen({loop.factor})"] if loop.factor else [])]
            case ir.LoopKind.THREADS:
                words = ["#pragma omp parallel for", *([f"schedule(dynamic, {loop.factor})"] if loop.factor else []), *_copied(loop)]
            case _:
                raise CompilerBug(loop, f"a {loop.kind.value} loop runs on a device, not in C")
        return [" ".join([*words, *(self._clause(one.var, one.op, loop) for one in loop.reduces)])]

    def _clause(self, var: ir.Var, op: str, loop: ir.For) -> str:
        """How copies of a scalar are combined; OpenMP's own minimum would lose nan."""
        clause = (_CLAUSES_ON_BOOL if var.dtype == BOOL else _CLAUSES).get(op)
        if var.dtype.kind == "f" and op in ("minimum", "maximum"):
            clause = f"reduce_{op}_{var.dtype}"
        if clause is None:
            raise CompilerBug(loop, f"{op} of {var.dtype} has no reduction in a {loop.kind.value} loop")
        return f"reduction({clause}:{self.names.scalar(var.name)})"

    def _fail(self, status: str, condition: str | None = None) -> None:
        """Leave the kernel with a status, if the condition holds."""
        if condition is not None:
            self.line(f"if ({condition}) {self._failing(status)}")
            return
        self.line(self.exit.status.format(status), f"goto {self.exit.label};")

    def _failing(self, status: str) -> str:
        return f"{{ {self.exit.status.format(status)} goto {self.exit.label}; }}"

    def _poll(self) -> None:
        """Ask whether to go on. In a threads loop, each thread also looks whether another was told to stop."""
        stopped = "!(countdown = next_countdown(&poll, caller))"
        if not self.exit.is_shared:
            self._fail("CANCELLED", f"--countdown == 0 && {stopped}")
            return
        with self._braces("if (--countdown == 0)"):
            self.line(f"if ({stopped}) {self.exit.status.format('CANCELLED')}")
            self.line(f"if (__atomic_load_n(&status, __ATOMIC_RELAXED)) goto {self.exit.label};")

    def _memory(self, stmt: ir.Stmt) -> None:
        """Statements that take memory or give it back."""
        match stmt:
            case ir.Allocate(array, size) if is_on_stack(stmt):
                self.stacked.add(array)
                self.line(f"{c_type(array.dtype)} {self.names.array(array)}[{self.expressions.index(size)}];")
            case ir.Allocate(array, size):
                name = self.names.array(array)
                self.line(f"{name} = allocate({self.expressions.sized(size)}, sizeof({c_type(array.dtype)}));")
                self._fail("OUT_OF_MEMORY", f"!{name}")
            case ir.Free(array) if array not in self.stacked:
                self.line(f"release({self.names.array(array)});", f"{self.names.array(array)} = NULL;")
            case ir.Free():
                pass
            case _:
                raise CompilerBug(stmt, "a statement that C knows")
