"""Loop statements as C, two spaces per level.

What can fail sets ``status`` and jumps to ``fail``, where everything allocated is freed. Out of a threads loop one may not jump:
there the iteration is skipped, the others are skipped as they begin, and the jump is made after the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sparseloom.core.dtypes import INT64, DType, is_half
from sparseloom.core.errors import CompilerBug
from sparseloom.core.lines import Line
from sparseloom.core.trees import Node, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.lanes import gathers, lane_dtype
from sparseloom.loops.routines import KEEP, Call, allocated_in, may_end
from sparseloom.targets.c_calls import C_CALLS, Spelled
from sparseloom.targets.c_clauses import Clause, of_iterations, of_region
from sparseloom.targets.c_expr import PLUS, TIMES, UNARY, Expressions, Piece, c_type, is_zero_bits, operate, update_symbol
from sparseloom.targets.c_names import remark
from sparseloom.targets.c_prelude import atomic_way
from sparseloom.targets.c_vectors import SMALLEST_REGISTER, VECTOR_BYTES, LaneExpressions, infix_symbol
from sparseloom.targets.loop_properties import ATOMIC, FACTOR, THREADS, WrittenProperties, private, private_arrays, reduction
from sparseloom.targets.target import Atomic


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
    """Whether a kernel can end with another status than OK, or looks whether it will: the threads of a team do."""
    return any(may_end(n) or isinstance(n, ir.Team) or (isinstance(n, ir.Allocate) and not is_on_stack(n)) for n in walk(root))


def _gives_away(stmt: ir.Stmt) -> bool:
    """Whether a statement may also run where an array could not be had."""
    return isinstance(stmt, ir.Free) or (isinstance(stmt, Call) and stmt.routine is KEEP)


def _locks(n: Node) -> bool:
    return isinstance(n, ir.Store) and n.atomic and n.op is not None and atomic_way(n.op, n.array.dtype) is Atomic.LOCK


def pieces_of(stmt: ir.Stmt) -> list[ir.Array]:
    """The arrays of arrays that a kernel makes."""
    return [array for array in allocated_in(walk(stmt, ir.Stmt)) if array.space is ir.MemorySpace.PIECES]


def heap_arrays(stmt: ir.Stmt) -> list[ir.Array]:
    """The arrays a statement allocates on the heap, outside threads loops, which keep their own."""
    stacked = {n.array for n in walk(stmt) if isinstance(n, ir.Allocate) and is_on_stack(n)}
    return [array for array in private_arrays(stmt) if array not in stacked]


class Statements:
    """Prints the statements of one kernel into ``lines``, each with its origin, or with that of the enclosing statement."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.names = expressions.names
        self.lines: list[Line] = []
        self.depth = 1
        self.origin = ""
        self.exit = Exit("status = {};", "fail")
        self.stacked: set[ir.Array] = set()
        self.written = WrittenProperties()
        self.region: ir.Stmt | None = None  # the team or threads loop in which each thread has memory of its own

    def line(self, *texts: str) -> None:
        """Append lines at the current depth."""
        self.lines += [Line("  " * self.depth + text, self.origin) for text in texts]

    def _label(self, text: str) -> None:
        """A label, indented less than the statements around it."""
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
                    self._unroll(stmt, f"#pragma GCC unroll {factor}")
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
        self.line(f"{c_type(stmt.var.dtype)} {self.names.scalar(stmt.var.name)} = {value};{remark(stmt.why) if stmt.why else ''}")

    def _call(self, call: Call) -> None:
        """The text of a call, line by line."""
        if call.routine.name not in C_CALLS:
            raise CompilerBug(call, f"there is text for a call of {call.routine.name}")
        dtypes = [array.dtype for array in call.arrays]
        arrays, args = list(map(self.names.array, call.arrays)), list(map(self.expressions.index, call.args))
        spelled = Spelled(arrays, list(map(c_type, dtypes)), list(map(str, dtypes)), args, self._failing("OUT_OF_MEMORY"))
        self.line(*C_CALLS[call.routine.name](spelled).split("\n"))

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
        if way is not None:
            self.written.note(store, ATOMIC)
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
            self.written.note(loop, FACTOR)
            return
        lane, scalars = self.names.scalar(loop.var.name), self.expressions
        short = size == SMALLEST_REGISTER
        count = None if loop.end == ir.index(loop.factor) else f"{scalars.index_piece(loop.end).at(PLUS)} - {lane}"
        lanes = self.expressions = LaneExpressions(scalars, loop.var, dtype, short, count)
        self._unroll(loop, f"#pragma GCC unroll {size // SMALLEST_REGISTER}")
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
        self._pragma(loop)
        skips = loop.kind is ir.LoopKind.THREADS and may_fail(loop.body)
        with self._braces(self._head(loop)), self._in_region(loop if loop.kind is ir.LoopKind.THREADS else self.region):
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

        A thread that fails at the beginning enters the loop, because all threads must, and skips every iteration. After the loop, where
        reductions are combined, it only frees its memory.
        """
        outside, loop = self.exit, team.loop
        own, computes = heap_arrays(team.first), not all(map(_gives_away, ir.stmts_of(team.last)))
        self._clauses(team, "#pragma omp parallel", of_region(team))
        with self._braces(), self._in_region(team):
            self._leaving_to("ready", own)
            self.emit(team.first)
            if may_fail(team.first):
                self._label(f"{self.exit.label}:;")
            self._clauses(loop, "#pragma omp for", of_iterations(loop, self.names, "schedule(guided)"))
            with self._braces(self._head(loop)), self._in_region(loop):
                self._skippable(loop)
            if computes:
                self._leaving_to("over")
                self.line(f"if (__atomic_load_n(&status, __ATOMIC_RELAXED)) goto {self.exit.label};")
            self.emit(team.last)
            if computes:
                self._label(f"{self.exit.label}:" + ("" if own else ";"))
                self.line(*(f"release({self.names.array(array)});" for array in own))
        self.exit = outside
        self.written.note(team, THREADS)
        self.written.note(loop, THREADS)
        self.line(f"if (status) goto {self.exit.label};")

    @contextmanager
    def _in_region(self, region: ir.Stmt | None) -> Iterator[None]:
        """What is declared here is the own of each thread that runs this region."""
        outside, self.region = self.region, region
        yield
        self.region = outside

    def _leaving_to(self, label: str, own: Sequence[ir.Array] = ()) -> None:
        """From here on a failure of a thread goes to a label, and these arrays are its own."""
        self.exit = Exit("__atomic_store_n(&status, {}, __ATOMIC_RELAXED);", self.names.fresh(label), is_shared=True)
        for array in own:
            self._declare_array(array, f"*{self.names.array(array)} = NULL;")

    def _declare_array(self, array: ir.Array, text: str) -> None:
        """Declare an array; inside a parallel region each thread has its own."""
        self.line(f"{c_type(array.dtype)} {text}")
        if self.region is not None:
            self.written.note(self.region, private(array))

    def _skippable(self, loop: ir.For) -> None:
        """The body of a threads loop in which something can fail; each iteration owns what it allocates."""
        self.line("if (__atomic_load_n(&status, __ATOMIC_RELAXED)) continue;")
        outside, own = self.exit, heap_arrays(loop.body)
        self._leaving_to(f"next_{loop.var.name}", own)
        self.emit(loop.body)
        if may_fail(loop.body):
            self._label(f"{self.exit.label}:" + ("" if own else ";"))
        self.line(*(f"release({self.names.array(array)});" for array in own))
        self.exit = outside

    def _pragma(self, loop: ir.For) -> None:
        """The line before a loop that says how it runs, if it says anything."""
        match loop.kind:
            case ir.LoopKind.SERIAL:
                pass
            case ir.LoopKind.UNROLLED | ir.LoopKind.LANES:
                self._unroll(loop, f"#pragma GCC unroll {loop.factor}")
            case ir.LoopKind.VECTOR if any(map(_locks, walk(loop.body))):
                # A lock has no place among lanes. One iteration after another, nothing is left to combine.
                self.written.note(loop, FACTOR, *map(reduction, loop.reduces))
            case ir.LoopKind.VECTOR:
                self._clauses(loop, "#pragma omp simd", of_iterations(loop, self.names))
            case ir.LoopKind.THREADS:
                self._clauses(loop, "#pragma omp parallel for", [*of_iterations(loop, self.names), *of_region(loop)])
                self.written.note(loop, THREADS)
            case _:
                raise CompilerBug(loop, f"a {loop.kind.value} loop runs on a device, not in C")

    def _clauses(self, n: ir.Stmt, head: str, clauses: Sequence[Clause]) -> None:
        """A pragma with all clauses of a loop or a team, which are written then."""
        self.line(" ".join([head, *(clause.text for clause in clauses)]))
        self.written.note(n, *(clause.says for clause in clauses))

    def _unroll(self, n: ir.Stmt, pragma: str) -> None:
        self.line(pragma)
        self.written.note(n, FACTOR)

    def _fail(self, status: str, condition: str | None = None) -> None:
        """Leave the kernel with a status, if the condition holds."""
        if condition is not None:
            self.line(f"if ({condition}) {self._failing(status)}")
            return
        self.line(self.exit.status.format(status), f"goto {self.exit.label};")

    def _failing(self, status: str) -> str:
        return f"{{ {self.exit.status.format(status)} goto {self.exit.label}; }}"

    def _poll(self) -> None:
        """Ask whether to continue. In a threads loop, each thread also checks whether another one was cancelled."""
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
                self._declare_array(array, f"{self.names.array(array)}[{self.expressions.index(size)}];")
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
