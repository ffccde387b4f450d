"""Scalar expansion and interchange: what the iterations of a loop have for themselves, side by side in an array.

    for v in 0 : 4  [unrolled 4]              allocate acc_of: float64[4] local
      k: int64 = s * 4 + v                    for v in 0 : 4  [unrolled 4]
      acc: float64 = 0.0                        acc_of[v] = 0.0
      for p in 0 : m                          for p in 0 : m
        j: int64 = crd[p]              ==>      j: int64 = crd[p]
        acc = acc + A[p] * B[j + k]             for v in 0 : 4  [unrolled 4]
      C[k] = acc                                  k: int64 = s * 4 + v
                                                  acc_of[v] += A[p] * B[j + k]
                                              for v in 0 : 4  [unrolled 4]
                                                k: int64 = s * 4 + v
                                                C[k] = acc_of[v]
                                              free acc_of

The loop goes into the loops and branches of its body that are the same for all of its iterations. What does not differ between them is
done once. A scalar that differs gets an element for each iteration, unless it is used in one place only, or is index arithmetic, which is
repeated where it is needed; so does a private array of known size. In which order things are declared, and how many statements there are,
does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sparseloom.core.dtypes import INT64
from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import SHORT, addends, depends, is_hint, keeps, meaning, trip_count, uses, varying
from sparseloom.loops.in_memory import stored
from sparseloom.loops.lanes import is_lanewise

LINE = 64  # bytes that memory hands over at once


class Declined(Exception):
    """A loop cannot go into the loops of its body: why, in words."""


@dataclass(frozen=True)
class Axis:
    """The loop that goes inside: its variable is ``base`` plus a ``counter`` below ``count``.

    The iterations of ``lanes`` are neighbours in memory, so that vector registers can do them at once. Those of an unrolled loop each have
    a row of their own.
    """

    loop: ir.For
    counter: ir.Var
    count: int
    base: ir.Expr = ir.ZERO
    lanes: bool = False

    @property
    def who(self) -> str:
        """What its iterations are called."""
        return "lanes" if self.lanes else "iterations"

    def place(self, size: ir.Expr, index: ir.Expr) -> ir.Expr:
        """Where an element of a private array is among those of all iterations."""
        if self.lanes:
            return ir.add(ir.multiply(index, ir.index(self.count)), self.counter)
        return ir.add(ir.multiply(self.counter, size), index)


class Expansion:
    """The body of a loop with the loop inside. ``kept`` are scalars from outside that have their elements already."""

    def __init__(self, axis: Axis, names: Names, kept: dict[ir.Var, ir.Array] | None = None) -> None:
        body = axis.loop.body
        self._axis, self._names, self._uses = axis, names, uses(body)
        self._arrays, self._private = dict(kept or {}), dict[ir.Array, tuple[ir.Array, ir.Expr]]()
        self._varying = varying(body, (axis.loop.var.name,))
        self._arithmetic: dict[ir.Var, ir.Declare] = {}  # what is repeated where it is needed
        self.crossed: list[str] = []  # the loops that it went into
        self.keeps_something = False  # from one step to the next
        unknown = self._uses.changed - {var.name for var in self._arrays}
        if unknown:
            raise Declined(f"each iteration goes on with {min(unknown)} where the one before it left it")
        self.body = self._spread(body)

    def _is_arithmetic(self, stmt: ir.Declare) -> bool:
        """Whether a scalar is an index that follows from others by arithmetic, and never changes."""
        plain = all(isinstance(n, ir.Var | ir.Literal | ir.Op) for n in walk(stmt.value))
        return plain and stmt.var.dtype == INT64 and self._uses.assigned.isdisjoint({stmt.var.name, *uses(stmt.value).read})

    def _differs(self, *parts: Node) -> bool:
        return depends(self._varying, *parts)

    def _spread(self, stmt: ir.Stmt) -> ir.Stmt:
        """A statement for all iterations: what differs between them in loops over them, the rest once."""
        if self._is_common(stmt):
            return stmt
        match stmt:
            case ir.Block(stmts):
                return self._in_turn(stmts)
            case _ if self._is_step(stmt) or is_asking(stmt):
                return self._in_turn((stmt,))
            case ir.For(var, begin, end, body, ir.LoopKind.SERIAL | ir.LoopKind.UNROLLED):
                if self._differs(begin, end):
                    raise Declined(f"{self._axis.who} take different ways at the loop over {stmt.origin or var.name}")
                self.crossed.append(stmt.origin or var.name)
                return replace(stmt, body=self._spread(body))
            case ir.While(condition, body):
                if self._differs(condition):
                    raise Declined(f"{self._axis.who} take different ways at {f'the loop over {stmt.origin}' if stmt.origin else 'a loop'}")
                self.crossed.append(stmt.origin)
                return replace(stmt, body=self._spread(body))
            case ir.If(condition, then, other) if not self._differs(condition):
                return replace(stmt, then=self._spread(then), other=self._spread(other))
        raise Declined(self._why(stmt))

    def _why(self, stmt: ir.Stmt) -> str:
        """Why a statement can neither be done once nor iteration by iteration."""
        who = self._axis.who
        match stmt:
            case ir.If():
                return f"{who} take different branches"
            case ir.Store(array) | ir.Fill(array):
                return f"{who} write one place of {array.name}"
            case ir.Allocate(array) | ir.Free(array):
                return f"{who} need an array {array.name} each, whose size is not known"
            case ir.For(var, kind=kind):
                return f"the {kind.value} loop over {stmt.origin or var.name} is inside"
        return f"{who} do more than compute"

    def _is_common(self, stmt: ir.Stmt) -> bool:
        """Whether all iterations do the same here, so that it is done once: nothing differs, and nothing from outside is written."""
        if self._differs(stmt):
            return False
        for n in walk(stmt, ir.Stmt):
            match n:
                case ir.Store(array) | ir.Fill(array) if array not in self._uses.allocated:
                    return False
                case ir.Stmt() if not (isinstance(n, _PLAIN) or is_hint(n)):
                    return False
        return True

    def _is_step(self, stmt: ir.Stmt) -> bool:
        """Whether a statement can run iteration by iteration: it differs, and has no loop that takes long."""
        match stmt:
            case ir.Declare(var) | ir.Assign(var):
                return var.name in self._varying
            case ir.Store(array, index):
                return self._differs(array, index) and not (stmt.atomic and self._axis.lanes)
            case ir.Fill(array):
                return self._differs(array) and not self._axis.lanes
            case ir.If(condition, then, other):
                return self._differs(condition) and all(map(self._is_step, (*ir.stmts_of(then), *ir.stmts_of(other))))
            case ir.For(body=body, kind=ir.LoopKind.LANES | ir.LoopKind.WIDE):
                return not self._axis.lanes and all(map(self._is_step, ir.stmts_of(body)))
            case ir.For(body=body, kind=ir.LoopKind.UNROLLED) if (count := trip_count(stmt)) is not None:
                inner = not self._axis.lanes and 0 < count <= SHORT
                return inner and all(self._is_step(s) or isinstance(s, ir.Declare) for s in ir.stmts_of(body))
        return is_hint(stmt) and not self._axis.lanes

    def _in_turn(self, stmts: Sequence[ir.Stmt]) -> ir.Stmt:
        """Statements in order; neighbours that differ share one loop over the iterations. What they have is allocated before them."""
        made, group, opened = list[ir.Stmt](), list[ir.Stmt](), list[ir.Array]()
        arrays, arithmetic = dict(self._arrays), dict(self._arithmetic)
        for place, stmt in enumerate(stmts):
            match stmt:
                case ir.Declare(var) if self._is_arithmetic(stmt) and self._differs(stmt.value):
                    self._arithmetic[var] = stmt
                case _ if self._is_step(stmt):
                    group.append(stmt)
                case _ if is_asking(stmt) and self._axis.lanes and self._differs(stmt):
                    made += self._asked_once(stmt, stmts[:place])
                case ir.Declare(_, value) if group and self._is_common(stmt) and keeps(value, uses(*group)):
                    made.append(stmt)
                case _:
                    made += [*self._grouped(group, stmts, opened), self._of_private(stmt) or self._spread(stmt)]
                    group = []
        made += self._grouped(group, stmts, opened)
        self._arrays, self._arithmetic = arrays, arithmetic
        rooms = [ir.Allocate(array, ir.index(self._axis.count)) for array in opened]
        return ir.block(*rooms, *made, *(ir.Free(array) for array in opened))

    def _of_private(self, stmt: ir.Stmt) -> ir.Stmt | None:
        """A private array that differs, for all iterations."""
        match stmt:
            case ir.Allocate(array, ir.Literal() as size) if array.name in self._varying and array.space is not ir.MemorySpace.SHARED:
                made = replace(array, name=self._names.fresh(f"{array.name}_of"))
                self._private[array] = made, size
                self.keeps_something = True
                return replace(stmt, array=made, size=ir.multiply(size, ir.index(self._axis.count)))
            case ir.Free(array) if array in self._private:
                return replace(stmt, array=self._private[array][0])
            case ir.Fill(array, begin, count, value) if array in self._private and not self._differs(begin, count, value):
                made, width = self._private[array][0], ir.index(self._axis.count)
                return replace(stmt, array=made, begin=ir.multiply(begin, width), count=ir.multiply(count, width))
        return None

    def _grouped(self, group: Sequence[ir.Stmt], stmts: Sequence[ir.Stmt], opened: list[ir.Array]) -> Iterator[ir.Stmt]:
        """One loop over the iterations for some statements of a block. A scalar that others need as well gets its elements."""
        if not group:
            return
        lanes, mine = self._axis.lanes, {id(stmt) for stmt in group}
        elsewhere = uses(*(stmt for stmt in stmts if id(stmt) not in mine and not (lanes and is_asking(stmt)))).read
        for stmt in group:
            if isinstance(stmt, ir.Declare) and (stmt.var.name in elsewhere or (lanes and self._is_worth_keeping(stmt, group))):
                name = f"{stmt.var.name}_{'lanes' if lanes else 'of'}"
                array = ir.Array(self._names.fresh(name), stmt.var.dtype, ir.MemorySpace.LOCAL)
                self._arrays[stmt.var] = array
                self.keeps_something = True
                opened.append(array)
        yield self._over(group)

    def _is_worth_keeping(self, stmt: ir.Declare, group: Sequence[ir.Stmt]) -> bool:
        """Whether lanes need a scalar as such: it changes, or is a value that is used again."""
        uses_of_it = sum(n == stmt.var for other in group for n in walk(other)) - 1
        return stmt.var.name in self._uses.assigned or (uses_of_it > 1 and stmt.var.dtype != INT64)

    def _over(self, group: Sequence[ir.Stmt]) -> ir.Stmt:
        """A loop over the iterations: in vector registers if they can do it."""
        axis, loop = self._axis, self._axis.loop
        if axis.lanes:
            made = self._loop(self._without_names(group), ir.LoopKind.LANES)
            return made if is_lanewise(made) else self._loop(group, ir.LoopKind.UNROLLED)
        return replace(self._loop(group, ir.LoopKind.UNROLLED), factor=loop.factor)

    def _loop(self, group: Sequence[ir.Stmt], kind: ir.LoopKind) -> ir.For:
        axis = self._axis
        repeated = self._needed(group)
        if kind is ir.LoopKind.LANES or axis.lanes:
            meant: dict[str, ir.Expr] = {}
            for stmt in repeated:
                meant[stmt.var.name] = meaning(stmt.value, meant)
            group, repeated = [_meaning_in(stmt, meant) for stmt in group], []
        body = ir.block(*(self._held(stmt) for stmt in (*repeated, *group)))
        return ir.For(axis.counter, ir.ZERO, ir.index(axis.count), body, kind, axis.count, origin=axis.loop.origin)

    def _without_names(self, group: Sequence[ir.Stmt]) -> list[ir.Stmt]:
        """Statements with the values of what they declare in the place of the names, where nothing that is read changes meanwhile."""
        whole, meant, kept = uses(*group), dict[str, ir.Expr](), list[ir.Stmt]()
        for stmt in group:
            if isinstance(stmt, ir.Declare) and stmt.var not in self._arrays and keeps(stmt.value, whole):
                meant[stmt.var.name] = meaning(stmt.value, meant)
            else:
                kept.append(_meaning_in(stmt, meant))
        return kept

    def _needed(self, group: Sequence[ir.Stmt]) -> list[ir.Declare]:
        """The index arithmetic that some statements need, in order."""
        read, found = set(uses(*group).read), list[ir.Declare]()
        for stmt in reversed(self._arithmetic.values()):
            if stmt.var.name in read:
                found.append(stmt)
                read |= uses(stmt.value).read
        return found[::-1]

    def _held(self, stmt: ir.Stmt) -> ir.Stmt:
        """A statement of one iteration, with its scalars and arrays where they are among those of all."""
        axis = self._axis

        def rule(n: Node) -> Node | None:
            match n:
                case ir.Var() if n == axis.loop.var:
                    return ir.add(axis.base, axis.counter)
                case ir.Var() if n in self._arrays:
                    return ir.Load(self._arrays[n], axis.counter)
                case ir.Declare(ir.Load() as here, value) | ir.Assign(ir.Load() as here, value):
                    return ir.Store(here.array, here.index, value, origin=n.origin) if axis.lanes else stored(value, here, n.origin)
                case ir.Load(array, index) | ir.Store(array, index) if array in self._private:
                    made, size = self._private[array]
                    return replace(n, array=made, index=axis.place(size, index))
                case ir.Fill(array, begin) if array in self._private:
                    made, size = self._private[array]
                    return replace(n, array=made, begin=axis.place(size, begin))
                case ir.For(kind=ir.LoopKind.LANES):
                    return replace(n, body=rewrite(n.body, lambda m: lane_last(m, n.var)))
            return lane_last(n, axis.counter) if axis.lanes else None

        return rewrite(stmt, rule)

    def _asked_once(self, stmt: ir.Stmt, before: Sequence[ir.Stmt]) -> Iterator[ir.Stmt]:
        """Neighbouring lanes ask for neighbouring numbers ahead, so one of each cache line asks for all."""
        meant: dict[str, ir.Expr] = {}
        for one in before:
            if isinstance(one, ir.Declare) and one.var.name not in self._uses.assigned and self._differs(one.value):
                meant[one.var.name] = meaning(one.value, meant)
        whole = _meaning_in(stmt, meant)
        sizes = [array.dtype.itemsize for n in walk(whole) if isinstance(n, ir.Stmt) and is_hint(n) for array in n.arrays]  # type: ignore[attr-defined]
        for lane in range(0, self._axis.count, max(1, LINE // max(sizes))):
            made = _meaning_in(whole, {self._axis.loop.var.name: ir.add(self._axis.base, ir.index(lane))})
            if self._differs(made):
                raise Declined("lanes ask for memory ahead at places of their own")
            yield made


_PLAIN = (ir.Block, ir.Declare, ir.Assign, ir.For, ir.While, ir.If, ir.Store, ir.Fill, ir.Allocate, ir.Free, ir.Fail)


def is_asking(stmt: ir.Stmt) -> bool:
    """Whether a statement only asks for memory ahead, perhaps if something holds."""
    match stmt:
        case ir.If(_, then, other):
            return all(is_asking(part) for branch in (then, other) for part in ir.stmts_of(branch))
    return is_hint(stmt)


def lane_last(found: object, lane: ir.Var) -> ir.Expr | None:
    """A sum of indices with the lane as its last term, so that neighbouring addresses can be seen; None if the lane is no term of it."""
    match found:
        case ir.Op("add", _, dtype) if dtype == INT64 and lane in (terms := addends(found)):
            rest: ir.Expr = ir.ZERO
            for term in terms:
                rest = rest if term == lane else ir.add(rest, term)
            return ir.add(rest, lane)
    return None


def _meaning_in(stmt: ir.Stmt, meant: Mapping[str, ir.Expr]) -> ir.Stmt:
    """A statement in terms of what scalars stand for."""
    return rewrite(stmt, lambda n: meant.get(n.name) if isinstance(n, ir.Var) else None) if meant else stmt
