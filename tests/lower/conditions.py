"""The conditions under which one piece of lowering runs alone: a scope before the first loop, operands, and a body that takes notes.

    given = conditions("a(i) = b(i) + c(i)", "b:s c:s")          what is known before the first loop
    loop = ... note(coordinate, value)                            what is tested, with notes for a body
    given.notes(loop, 2).on({"b": storage, "c": storage})         the rows that were noted, in the order of the loops
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from fuzz.operands import Spec, seen_densely, store
from primitives.statements import concrete as concrete_of

from sparseloom.core.dtypes import FLOAT64, INT64
from sparseloom.formats.pack import pack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import parse_format
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.making import choose_making
from sparseloom.loops import interpret
from sparseloom.loops import nodes as ir
from sparseloom.loops.verify import verify
from sparseloom.lower.forall import forall, over_digit
from sparseloom.lower.kernel import _inputs, _start
from sparseloom.lower.walking import settle
from sparseloom.notation.nodes import Access, Forall, IndexVar, Stmt, SuchThat
from sparseloom.notation.terms import tensors_of
from sparseloom.notation.text import declare, parse
from sparseloom.schedule.schedule import Schedule
from sparseloom.scope.expression import cast, lower_expression
from sparseloom.scope.scope import Scope, Ways
from sparseloom.scope.views import Slot
from sparseloom.targets.c import C

NOTES, NOTED = ir.Array("notes", FLOAT64), ir.Var("noted")
ROOM = 1 << 13  # numbers that one run can note
NOTHING = ir.Literal(float("nan"), FLOAT64)  # noted where there is no value; it is read as None

Row = tuple[int | None, ...]


def note(*values: ir.Expr) -> ir.Stmt:
    """Note some numbers, one row."""
    stored = (ir.Store(NOTES, ir.add(NOTED, ir.index(k)), cast(value, FLOAT64)) for k, value in enumerate(values))
    return ir.block(*stored, ir.Assign(NOTED, ir.add(NOTED, ir.index(len(values)))))


def valued(access: Access, scope: Scope) -> ir.Expr:
    """What an operand holds at a point; nothing where it is absent."""
    found = lower_expression(access, scope)
    return ir.Select(found.present, cast(found.computed, FLOAT64), NOTHING)


@dataclass(frozen=True)
class Conditions:
    """A statement about to be lowered, and what is known before its first loop."""

    concrete: Concrete
    scope: Scope

    @property
    def stmt(self) -> Stmt:
        """The loops of the statement, without the relations that they carry."""
        stmt = self.concrete.stmt
        return stmt.body if isinstance(stmt, SuchThat) else stmt

    @property
    def lhs(self) -> Access:
        """The result."""
        return self.concrete.assign.lhs

    def access(self, name: str) -> Access:
        """The access to an operand."""
        return next(access for access in self.scope.operands if access.tensor.name == name)

    def in_ways(self, what: Callable[[Scope], Sequence[ir.Expr]]) -> Scope:
        """The scope with ways of the test's own: loops all the way down, and a note where the assignment stands."""

        def statement(stmt: Stmt, scope: Scope) -> ir.Stmt:
            match stmt:
                case Forall():
                    return forall(stmt, scope)
                case SuchThat(body, _):
                    return statement(body, scope)
            return note(*what(scope))

        return replace(self.scope, ways=Ways(statement, lambda stmt, scope, go: go(scope), over_digit))

    def sizes(self, operands: Mapping[str, Storage], more: Mapping[str, int]) -> dict[str, int]:
        """The extent of every variable that an operand has, and those given."""
        accesses = [access for access in self.scope.operands if access.tensor.name in operands]
        found = {var.name: size for a in accesses for var, size in zip(a.indices, operands[a.tensor.name].shape, strict=True)}
        return found | {name: int(size) for name, size in more.items()}

    def notes(self, loops: ir.Stmt, width: int) -> Notes:
        """Loops whose body takes notes of so many numbers, ready to run."""
        own = [(ir.Param(NOTES, ir.Role.GROWN), Slot("notes", "values")), (ir.Param(NOTED, ir.Role.COUNT), Slot("notes", "count"))]
        params, home = [*own, *_inputs(self.scope)], self.scope.home
        body = ir.block(ir.Assign(NOTED, ir.ZERO), ir.Allocate(NOTES, ir.index(ROOM)), *home.first, loops, *home.last)
        function = ir.Function("notes", tuple(param for param, _ in params), body)
        verify(function)
        return Notes(self, function, tuple(slot for _, slot in params), width)


@dataclass(frozen=True)
class Notes:
    """A kernel that hands out notes."""

    given: Conditions
    function: ir.Function
    slots: tuple[Slot, ...]
    width: int

    def on(self, operands: Mapping[str, Storage] | None = None, **sizes: int) -> list[Row]:
        """The rows that are noted when the kernel runs on these operands; ``sizes`` are extents that no operand tells."""
        operands = operands or {}
        extents = self.given.sizes(operands, sizes)
        arguments = [None, None, *(_argument(slot, operands, extents) for slot in self.slots[2:])]
        notes, count, *_ = interpret.run(self.function, arguments)
        rows = notes[:count].reshape(-1, self.width).tolist()
        return [tuple(None if number != number else int(number) for number in row) for row in rows]


def _argument(slot: Slot, operands: Mapping[str, Storage], sizes: Mapping[str, int]) -> Any:
    """What a parameter through which an operand or an extent comes in is given."""
    if slot.tensor is None:
        return sizes[slot.part]
    if slot.level is None:
        return operands[slot.tensor].values
    data = operands[slot.tensor].levels[slot.level]
    return data.scalars[slot.part] if slot.part in data.scalars else data.arrays[slot.part]


def conditions(text: str, formats: str = "", steps: str = "", loops: str | None = None) -> Conditions:
    """What is known before the first loop of a statement; ``formats`` reads ``A:csr x:s``.

    The compiler chooses its loops, which ``steps`` schedule; or they stand in the order of ``loops``, and no operand is converted.
    """
    chosen = concrete_of(text, formats) if loops is None else _in_loops(text, formats, loops)
    if steps:
        chosen = Schedule.from_text(chosen, steps).concrete
    scope = _start(chosen, C, 2**31 - 1)
    for name in (NOTES.name, NOTED.name):
        scope.context.names.take(name)
    return Conditions(chosen, scope)


def _in_loops(text: str, formats: str, loops: str) -> Concrete:
    """A statement without reductions, in these loops."""
    assign, stored = parse(text).assign, dict(item.split(":", 1) for item in formats.split())
    tensors = {t.name: replace(t, format=parse_format(stored[t.name], t.order)) for t in tensors_of(assign) if t.name in stored}
    assign = declare(assign, tensors)
    stmt: Stmt = assign
    for name in reversed(loops.split()):
        stmt = Forall(IndexVar(name), stmt)
    return Concrete(stmt, assign, choose_making(assign.lhs.tensor.format))


Entries = dict[tuple[int, ...], int]


def drawn(rng: np.random.Generator, form: str, shape: tuple[int, ...], repeats: bool = False) -> tuple[Storage, Entries]:
    """A random operand in a format, and what it holds: values from 1 to 3 at some coordinates, those of repeated ones summed.

    Whatever has a position counts as held: beside an entry of a block, all of the block.
    """
    density = float(rng.choice([0.0, 0.3, 0.6, 1.0], p=[0.1, 0.4, 0.4, 0.1]))
    spec = Spec(form, "float64", int(rng.integers(2**31)), smallest=1, density=density, repeats=repeats)
    dense = seen_densely(spec, shape)
    return store(spec, shape), {place: int(dense.values[place]) for place in map(tuple, np.argwhere(dense.present).tolist())}


def numbered(rng: np.random.Generator, form: str, shape: tuple[int, ...], repeats: int = 0) -> Storage:
    """A random operand in which every position has another value, which tells it from all others; ``repeats`` entries are there again."""
    places = np.argwhere(rng.random(shape) < float(rng.choice([0.2, 0.5, 0.9])))
    if repeats and len(places):
        places = np.concatenate([places, places[rng.integers(len(places), size=repeats)]])
    storage = pack(parse_format(form, len(shape)), shape, places.T, np.ones(len(places)), duplicates="keep" if repeats else "sum")
    return replace(storage, values=1.0 + rng.permutation(len(storage.values)))


def stored_at(form: str, shape: tuple[int, ...], held: Mapping[tuple[int, ...], float]) -> Storage:
    """An operand that holds these values."""
    coordinates = np.array(list(held), np.int64).reshape(len(held), len(shape)).T
    return pack(parse_format(form, len(shape)), shape, coordinates, np.array(list(held.values()), np.float64))


def visiting(given: Conditions, what: str = "") -> Notes:
    """The loops of a statement, with notes of where they come by: the coordinates of its variables, and then what each operand holds there.

    ``what`` names the variables, if not all that operands have are meant, by name.
    """
    names = what.split() or sorted({var.name for access in given.scope.operands for var in access.indices})

    def here(scope: Scope) -> list[ir.Expr]:
        return [*(scope.coordinates[IndexVar(name)] for name in names), *(valued(access, scope) for access in given.scope.operands)]

    settled, scope = settle(given.in_ways(here))
    loops = ir.block(settled, scope.ways.statement(given.concrete.stmt, scope))
    return given.notes(loops, len(names) + len(given.scope.operands))


def number(expr: ir.Expr, values: Mapping[str, int]) -> int:
    """What an index expression is worth, where its scalars are worth these."""
    made = ir.Var("made")
    params = (ir.Param(made, ir.Role.COUNT), *(ir.Param(ir.Var(name), ir.Role.SIZE) for name in values))
    function = ir.Function("number", params, ir.Assign(made, cast(expr, INT64)))
    verify(function)
    return int(interpret.run(function, [None, *values.values()])[0])
