"""The statements of one kernel of a GPU as CUDA C++.

All threads of a block, or all lanes of a warp, run the code outside the loops over them, so scalars have the same value in each.
One thread stores for all. The barriers are in the loops already (``passes/barriers.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sparseloom.core.algebra import identity
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import rewrite
from sparseloom.loops import nodes as ir
from sparseloom.loops.segments import Segments
from sparseloom.loops.simplify import simplify
from sparseloom.loops.together import FindTogether
from sparseloom.loops.units import UnitLevel
from sparseloom.targets.c_expr import PLUS, TIMES, Expressions, Piece, c_type, literal, operate, update_symbol
from sparseloom.targets.c_stmt import Statements
from sparseloom.targets.loop_properties import ATOMIC, TOTAL


class KernelExpressions(Expressions):
    """Prints the expressions of one kernel."""

    def __init__(self, plain: Expressions, statements: KernelStatements) -> None:
        super().__init__(plain.names, plain.indices, plain.nonnegative)
        self.statements = statements

    def piece(self, expr: ir.Expr, index: bool) -> Piece:
        """An expression; a search of several lanes has a function of its own."""
        if isinstance(expr, ir.Search) and expr.lanes > 1:
            operands = ", ".join(map(self.index, (expr.begin, expr.end, expr.key)))
            mask = self.statements.mask_of(expr.lanes)
            return Piece(f"search_{expr.array.dtype}<{expr.lanes}>({self.names.array(expr.array)}, {operands}, {mask})")
        return super().piece(expr, index)


class KernelStatements(Statements):
    """Prints the statements of one kernel into ``lines``."""

    def __init__(self, expressions: Expressions, launch: ir.Launch) -> None:
        super().__init__(KernelExpressions(expressions, self))
        self.threads, self.lanes, self.warp = int(launch.threads.value.real), launch.lanes, launch.warp  # type: ignore[attr-defined]
        if not launch.settled:
            raise CompilerBug(launch, "a launch is settled before its text is made: its barriers are placed")
        self.level = UnitLevel.BLOCK

    # What runs where

    @contextmanager
    def _at(self, level: UnitLevel) -> Iterator[None]:
        outside, self.level = self.level, level
        yield
        self.level = outside

    @property
    def _alone(self) -> bool:
        """Whether a single thread runs this."""
        return self.level is UnitLevel.THREAD or (self.lanes if self.level is UnitLevel.WARP else self.threads) == 1

    @property
    def _number(self) -> str:
        """Which thread of the block, or which lane of the warp, this is."""
        return f"threadIdx.x % {self.lanes}" if self.level is UnitLevel.WARP and self.lanes < self.threads else "threadIdx.x"

    @property
    def _mask(self) -> str:
        """The mask of the lanes of this group."""
        return self.mask_of(self.lanes)

    def mask_of(self, lanes: int) -> str:
        """The lanes of this group of so many."""
        if lanes == self.warp:
            return self._first_lanes(self.warp)
        return f"{self._first_lanes(lanes)} << (threadIdx.x % {self.warp} / {lanes} * {lanes})"

    def _first_lanes(self, count: int) -> str:
        """The mask of so many lanes, which has a bit for each lane of a warp."""
        return f"{(1 << count) - 1:#x}{'u' if self.warp <= 32 else 'ull'}"

    def _wait(self) -> None:
        """A barrier for all threads that run this."""
        if not self._alone:
            self.line("__syncthreads();" if self.level is UnitLevel.BLOCK else f"__syncwarp({self._mask});")

    # Statements

    def _statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Barrier():
                self._wait()
            case FindTogether(found):
                self._search(found)
            case ir.While(condition, body, factor):
                if factor:
                    self._unroll(stmt, f"#pragma unroll {factor}")
                with self._braces(f"while ({self.expressions.value(condition)})"):
                    self.emit(body)
            case ir.Fail(status):
                self.line(f"*status = {status.name};")
            case _:
                super()._statement(stmt)

    def _search(self, found: Sequence[ir.Declare]) -> None:
        """Each of these is found by a warp of its own, and then known to all."""
        places = self.names.fresh("found")
        self.line(f"__shared__ int64_t {places}[{len(found)}];")
        self._wait()
        for k, stmt in enumerate(found):
            with self._stemming(stmt), self._braces(f"if (threadIdx.x / {self.warp} == {k})"):
                self.line(f"const int64_t here = {self.expressions.assigned(stmt.var, stmt.value)};")
                self.line(f"if (threadIdx.x % {self.warp} == 0) {places}[{k}] = here;")
        self._wait()
        for k, stmt in enumerate(found):
            with self._stemming(stmt):
                self._declare(stmt, f"{places}[{k}]")

    def _loop(self, loop: ir.For) -> None:
        match loop.kind:
            case ir.LoopKind.GPU_BLOCK:
                self.line(f"{self._iteration(loop, 'blockIdx.x')};")
                self.emit(loop.body)
            case ir.LoopKind.GPU_WARP:
                self._warps_loop(loop)
            case ir.LoopKind.GPU_THREAD:
                self._threads_loop(loop)
            case ir.LoopKind.WIDE:
                self._move(loop)
            case _:
                super()._loop(loop)

    def _move(self, loop: ir.For) -> None:
        """Neighbours that are read or written at once."""
        match loop.body:
            case ir.Store(kept, there, ir.Load(array, index)) if kept.space is ir.MemorySpace.LOCAL:
                name = "read_wide"
            case ir.Store(array, index, ir.Load(kept, there)):
                name = "write_wide"
            case _:
                raise CompilerBug(loop, "a wide loop moves numbers")
        places = (self._first(one, at, loop) for one, at in ((kept, there), (array, index)))
        self.line(f"{name}<{self.expressions.index(loop.end)}>({', '.join(places)});")

    def _first(self, array: ir.Array, index: ir.Expr, loop: ir.For) -> str:
        """The place in an array at which a loop begins."""
        first = simplify(rewrite(index, lambda n: loop.begin if n == loop.var else None))
        name = self.names.array(array)
        return name if first == ir.ZERO else f"{name} + {self.expressions.index_piece(first).at(PLUS)}"

    def _pragma(self, loop: ir.For) -> None:
        if loop.kind in (ir.LoopKind.UNROLLED, ir.LoopKind.LANES):
            self._unroll(loop, f"#pragma unroll {loop.factor}")
        elif loop.kind is not ir.LoopKind.SERIAL:
            raise CompilerBug(loop, f"a {loop.kind.value} loop runs on a CPU, not in a kernel of a GPU")

    @contextmanager
    def _unit(self, loop: ir.For, number: str, count: int, level: UnitLevel) -> Iterator[None]:
        """What one of so many units runs of a loop: the iteration with its number, if there is one."""
        here, name = self._iteration(loop, number), self.names.scalar(loop.var.name)
        is_whole = loop.begin == ir.ZERO and loop.end == ir.index(count)
        guard = f"{name} < {self.expressions.index_piece(loop.end).at(PLUS)}"
        with self._braces("" if is_whole else f"if ({here}; {guard})"), self._at(level):
            if is_whole:
                self.line(f"{here};")
            yield

    def _iteration(self, loop: ir.For, number: str) -> str:
        first = number if loop.begin == ir.ZERO else f"{self.expressions.index_piece(loop.begin).at(PLUS)} + {number}"
        return f"const int64_t {self.names.scalar(loop.var.name)} = {first}"

    def _warps_loop(self, loop: ir.For) -> None:
        """A loop over the warps of a block."""
        number = "threadIdx.x" if self.lanes == 1 else f"threadIdx.x / {self.lanes}"
        brought = self._brought(loop)
        with self._unit(loop, number, self.threads // self.lanes, UnitLevel.WARP):
            self._bring(loop, brought)
        self._add_up(brought, self.lanes)

    def _threads_loop(self, loop: ir.For) -> None:
        """A loop over threads or lanes. Those that it leaves idle take part in its shuffles all the same."""
        count = self.lanes if self.level is UnitLevel.WARP else self.threads
        brought, segments = self._brought(loop), [stmt for stmt in ir.stmts_of(loop.body) if isinstance(stmt, Segments)]
        places = [self._place_brought(stmt) for stmt in segments]
        with self._unit(loop, self._number if count > 1 else "0", count, UnitLevel.THREAD):
            self._bring(loop, brought)
            for stmt, (place, value) in zip(segments, places, strict=True):
                self.line(f"{place} = {self.expressions.index(stmt.index)};", f"{value} = {self.expressions.value(stmt.value)};")
        self._add_up(brought, 1)
        for stmt, (place, value) in zip(segments, places, strict=True):
            self._update(stmt, place, value)

    # Shuffles

    def _brought(self, loop: ir.For) -> dict[ir.Shuffle, str]:
        """What each iteration brings to the shuffles at the end of a loop, to begin with nothing."""
        brought = {n: self.names.fresh(f"{n.var.name}_brought") for n in ir.stmts_of(loop.body) if isinstance(n, ir.Shuffle)}
        for stmt, name in brought.items():
            self.line(f"{c_type(stmt.var.dtype)} {name} = {_nothing(stmt)};")
        return brought

    def _bring(self, loop: ir.For, brought: dict[ir.Shuffle, str]) -> None:
        """What one iteration does, and what it brings."""
        self.emit(ir.Block(tuple(stmt for stmt in ir.stmts_of(loop.body) if not isinstance(stmt, ir.Shuffle | Segments))))
        for stmt, name in brought.items():
            self.line(f"{name} = {self.expressions.piece(stmt.value, False).text};")

    def _add_up(self, brought: dict[ir.Shuffle, str], each: int) -> None:
        """Reduce the values of all threads, of which ``each`` consecutive ones have the same; every thread gets the total."""
        for stmt, name in brought.items():
            if self.level is UnitLevel.WARP:
                self._shuffle(stmt, name, 1, self.lanes, self._mask)
            else:
                near = min(self.threads, self.warp)
                self._shuffle(stmt, name, each, near, self._first_lanes(near))
                self._shuffle_warps(stmt, name, self.threads // self.warp)
            self.written.note(stmt, TOTAL)
            held, symbol = self.names.scalar(stmt.var.name), update_symbol(stmt.op, stmt.var.dtype)
            combined = operate(stmt.op, [Piece(held), Piece(name)], stmt.var.dtype).text
            self.line(f"{held} {symbol} {name};" if symbol else f"{held} = {combined};")

    def _shuffle(self, stmt: ir.Shuffle, name: str, first: int, end: int, mask: str) -> None:
        """Neighbours first, then pairs of pairs."""
        if first >= end:
            return
        dtype, step = stmt.var.dtype, self.names.fresh("step")
        handed = self.names.fresh("handed")  # first of all, for all lanes take part whatever they have
        self.line("#pragma unroll")
        with self._braces(f"for (int {step} = {first}; {step} < {end}; {step} *= 2)"):
            self.line(f"const {c_type(dtype)} {handed} = across_{dtype}({mask}, {name}, {step});")
            self.line(f"{name} = {operate(stmt.op, [Piece(name), Piece(handed)], dtype).text};")

    def _shuffle_warps(self, stmt: ir.Shuffle, name: str, count: int) -> None:
        """One value of each warp goes through shared memory. Every warp adds them up itself, which saves a barrier."""
        if count <= 1:
            return
        places, lane = self.names.fresh(f"{stmt.var.name}_of_warps"), f"threadIdx.x % {self.warp}"
        self.line(f"__shared__ {c_type(stmt.var.dtype)} {places}[{count}];")
        self._wait()  # who came here before has read
        self.line(f"if ({lane} == 0) {places}[threadIdx.x / {self.warp}] = {name};")
        self._wait()
        self.line(f"{name} = {lane} < {count} ? {places}[{lane}] : {_nothing(stmt)};")
        self._shuffle(stmt, name, 1, count, self._first_lanes(self.warp))

    def _place_brought(self, stmt: Segments) -> tuple[str, str]:
        """Where a lane adds something to, and what: to begin with nothing, nowhere."""
        place, value = (self.names.fresh(f"{stmt.array.name}_{what}") for what in ("where", "brought"))
        self.line(f"int64_t {place} = -1;", f"{c_type(stmt.array.dtype)} {value} = {_nothing(stmt)};")
        return place, value

    def _update(self, stmt: Segments, place: str, value: str) -> None:
        """Lanes add what those before them in their segment have, and the last of each updates the place (Hillis and Steele's scan)."""
        dtype, lanes, op = stmt.array.dtype, self.lanes, stmt.op or ""
        heads, active, lane, begin, step, handed = map(self.names.fresh, ("heads", "active", "lane", "begin", "step", "handed"))
        self.line(f"const lane_mask {heads} = segment_heads<{lanes}>({self._mask}, {place});")
        before = f"{heads} & ({self._first_lanes(self.warp)} >> ({self.warp - 1} - {lane}))"
        self.line(f"const int {lane} = threadIdx.x % {lanes}, {begin} = last_lane({before});")
        self.line("#pragma unroll")
        with self._braces(f"for (int {step} = 1; {step} < {lanes}; {step} *= 2)"):
            self.line(f"const {c_type(dtype)} {handed} = before_{dtype}({self._mask}, {value}, {step});")
            self.line(f"if ({lane} - {step} >= {begin}) {value} = {operate(op, [Piece(handed), Piece(value)], dtype).text};")
        where = f"{self.names.array(stmt.array)}[{place}]"
        atomic = f"atomic_{op}_{dtype}(&{where}, {value});"
        self.written.note(stmt, ATOMIC)
        ends = f"{place} >= 0 && ({lane} == {lanes - 1} || {heads} >> ({lane} + 1) & 1)"
        if stmt.scattered:
            self.line(f"if ({ends}) {atomic}")
            return
        symbol = update_symbol(op, dtype)
        plain = f"{where} {symbol} {value};" if symbol else f"{where} = {operate(op, [Piece(where), Piece(value)], dtype).text};"
        self.line(f"const lane_mask {active} = active_lanes<{lanes}>({self._mask}, {place});")
        with self._braces(f"if ({ends})"):
            self.line(f"if ({begin} == first_lane({active}) || {lane} == last_lane({active})) {atomic}", f"else {plain}")

    # Memory

    def _store(self, store: ir.Store) -> None:
        """A store; outside the loops over threads one of them makes it."""
        shared = not self._alone and store.array.space is not ir.MemorySpace.LOCAL
        if not shared:
            self._stored(store)
            return
        with self._braces(f"if ({self._number} == 0)"):
            self._stored(store)

    def _stored(self, store: ir.Store) -> None:
        if not store.atomic:
            super()._store(store)
            return
        if store.op is None:
            raise CompilerBug(store, "what is stored atomically is combined with what is there")
        place = f"{self.names.array(store.array)}[{self.expressions.index(store.index)}]"
        self.line(f"atomic_{store.op}_{store.array.dtype}(&{place}, {self.expressions.value(store.value)});")
        self.written.note(store, ATOMIC)

    def _fill(self, fill: ir.Fill) -> None:
        """Fill an array; each of the threads that run this fills a part."""
        array, k = self.names.array(fill.array), self.names.fresh("k")
        private = self._alone or fill.array.space is ir.MemorySpace.LOCAL
        step = "1" if private else str(self.lanes if self.level is UnitLevel.WARP else self.threads)
        offset = "" if fill.begin == ir.ZERO else f"{self.expressions.index_piece(fill.begin).at(TIMES)} + "
        value = self.names.fresh("filling")
        self.line(f"const {c_type(fill.array.dtype)} {value} = {self.expressions.value(fill.value)};")
        head = f"int64_t {k} = {'0' if private else self._number}; {k} < {self.expressions.index_piece(fill.count).at(PLUS)}; {k} += {step}"
        with self._braces(f"for ({head})"):
            self.line(f"{array}[{offset}{k}] = {value};")

    def _memory(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Allocate(array, ir.Literal(size)):
                self._allocate(array, int(size.real))
            case ir.Free():
                pass
            case _:
                raise CompilerBug(stmt, "a statement that a kernel knows")

    def _allocate(self, array: ir.Array, size: int) -> None:
        """Memory of a thread, of a warp or of a block."""
        kind, name = c_type(array.dtype), self.names.array(array)
        if array.space is ir.MemorySpace.LOCAL:
            self.line(f"{kind} {name}[{max(size, 1)}];")
        elif array.space is not ir.MemorySpace.SHARED:
            raise CompilerBug(array, "memory of all is made before a kernel")
        elif self.level is UnitLevel.WARP and self.threads > self.lanes:
            every = self.names.fresh(f"{name}_of_warps")
            self.line(f"__shared__ {kind} {every}[{self.threads // self.lanes * max(size, 1)}];")
            self.line(f"{kind} *const {name} = {every} + threadIdx.x / {self.lanes} * {max(size, 1)};")
        else:
            self.line(f"__shared__ {kind} {name}[{max(size, 1)}];")

    def _poll(self) -> None:
        raise CompilerBug("poll", "a kernel of a GPU is not cancelled")


def _nothing(stmt: ir.Shuffle | Segments) -> str:
    """What changes no total."""
    dtype = stmt.array.dtype if isinstance(stmt, Segments) else stmt.var.dtype
    return literal(identity(stmt.op or "", dtype), dtype).text
