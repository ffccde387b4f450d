"""A schedule: a concrete statement and the steps that made it what it is.

    s = Schedule(concrete).split("i", "i0", "i1", 32).parallelize("i0", "CPUThread", "NoRaces")
    print(s)

Every step gives a new schedule and is checked when it is taken; what cannot be done is a ``ScheduleError`` that says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from random import Random
from typing import TYPE_CHECKING, NoReturn, Self

from sparseloom.core.errors import ScheduleError
from sparseloom.core.signs import printable
from sparseloom.core.trees import field_names
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.making import CountedFirst
from sparseloom.notation.nodes import Access, Assembly, Expr, IndexVar, Merge, Races, Stmt, TensorVar, Unit
from sparseloom.relations.bound import BoundType
from sparseloom.schedule import primitives
from sparseloom.schedule.arguments import build
from sparseloom.schedule.laws import appended_result, breach, own_rows
from sparseloom.schedule.own_names import renamed, renamings
from sparseloom.schedule.picture import bare, full
from sparseloom.schedule.primitive import PRIMITIVES, Primitive, spell
from sparseloom.schedule.races import Conflict, analyse
from sparseloom.schedule.refusal import Refusal, listed
from sparseloom.schedule.text import WrittenStep, instead_of, read_steps, unreadable
from sparseloom.show.iteration_graph import IterationGraph
from sparseloom.show.iteration_space import IterationSpace, draw
from sparseloom.show.provenance_graph import ProvenanceGraph
from sparseloom.targets.interpret import INTERPRET
from sparseloom.targets.target import Target

Variable = IndexVar | str
Variables = Variable | Iterable[Variable]


@dataclass(frozen=True)
class RejectedStep:
    """Why a step cannot be done, and the statement that it was to change."""

    refusal: Refusal
    stmt: Stmt


@dataclass(frozen=True, eq=False)
class Schedule:
    """Immutable; equal steps on equal statements give equal schedules.

    >>> i, i0, i1 = sl.indices("i i0 i1")
    >>> y = sl.zeros(8, name="y")
    >>> y[i] = 2 * sl.ones(8, name="x")[i]
    >>> s = y.schedule().split(i, i0, i1, 4)
    >>> isinstance(s, sl.Schedule), s.concrete == y.schedule().split(i, i0, i1, 4).concrete
    (True, True)
    """

    concrete: Concrete
    trace: tuple[Primitive, ...] = ()
    target: Target = INTERPRET

    def split(self, i: Variable, outer: Variable, inner: Variable, size: int) -> Self:
        """Strip-mine ``i`` into blocks of constant size."""
        return self._do(primitives.Split, i, outer, inner, size)

    def divide(
        self, i: Variable, outer: Variable, inner: Variable, count: int, access: Access | str | None = None, rows: int | None = None
    ) -> Self:
        """Cut ``i`` into a constant number of blocks: of equal size, or with equally many entries of ``access`` and ``rows`` for each i."""
        given = (i, outer, inner, count) if access is None and rows is None else (i, outer, inner, count, access)
        return self._do(primitives.Divide, *given, *(() if rows is None else (rows,)))

    def fuse(self, i: Variable, j: Variable, fused: Variable) -> Self:
        """Collapse two directly nested loops into one."""
        return self._do(primitives.Fuse, i, j, fused)

    def reorder(self, *order: Variables) -> Self:
        """Put directly nested loops into this order, the outermost first."""
        return self._do(primitives.Reorder, *order)

    def pos(self, i: Variable, p: Variable, access: Access | str) -> Self:
        """Run over the stored entries of ``access`` instead of coordinates."""
        return self._do(primitives.Pos, i, p, access)

    def coord(self, p: Variable, i: Variable) -> Self:
        """Run over coordinates again instead of positions."""
        return self._do(primitives.Coord, p, i)

    def precompute(self, e: Expr | str, i: Variables, iw: Variables, w: str) -> Self:
        """Compute a part of the expression ahead, into a workspace."""
        return self._do(primitives.Precompute, e, i, iw, w)

    def parallelize(self, i: Variable, unit: Unit | str, races: Races | str) -> Self:
        """Run the iterations of a loop at the same time."""
        return self._do(primitives.Parallelize, i, unit, races)

    def unroll(self, i: Variable, factor: int) -> Self:
        """Repeat the body of a loop in the code."""
        return self._do(primitives.Unroll, i, factor)

    def bound(self, i: Variable, bounded: Variable, value: int, type: BoundType | str) -> Self:
        """Promise something about the limits of a loop."""
        return self._do(primitives.Bound, i, bounded, value, type)

    def mergeby(self, i: Variable, way: Merge | str) -> Self:
        """Choose how a loop that intersects sparse operands finds equal coordinates."""
        return self._do(primitives.MergeBy, i, way)

    def assemble(self, tensor: TensorVar | str, way: Assembly | str) -> Self:
        """Choose how the entries of a sparse result are put together."""
        return self._do(primitives.Assemble, tensor, way)

    def prefetch(self, access: Access | str, i: Variable, distance: int) -> Self:
        """Ask for what a later iteration of a loop will read of an operand."""
        return self._do(primitives.Prefetch, access, i, distance)

    def then(self, *steps: Primitive) -> Self:
        """Take steps that are ready-made, as in ``Schedule(concrete).then(*other.trace)``."""
        made = self
        for step in steps:
            made = made._take(step)
        return made

    def _do(self, step: type[Primitive], *given: object) -> Self:
        built = build(step, given, self.concrete)
        if isinstance(built, Refusal):
            raise self._refused(f"{step.word()}({', '.join(map(spell, given))})", built, self.stmt)
        return self._take(built)

    def _take(self, step: Primitive) -> Self:
        made = self.attempt(step)
        if isinstance(made, RejectedStep):
            raise self._refused(str(step), made.refusal, made.stmt)
        broken = breach(made.concrete, self.target)
        if broken is not None:
            raise self._refused(str(step), broken, made.stmt)
        return made

    def attempt(self, step: Primitive) -> Self | RejectedStep:
        """The schedule after one more step, before the laws are checked; or why the step cannot be done."""
        names = renamings(self.concrete, step.new_names())
        before, now = (renamed(self.concrete, names), step.reading(names)) if names else (self.concrete, step)
        refusal = now.check_all(before)
        if refusal is not None:
            return RejectedStep(refusal, before.stmt)
        return replace(self, concrete=now.apply_all(before), trace=(*self.trace, step))

    def _refused(self, step: str, refusal: Refusal, stmt: Stmt) -> ScheduleError:
        """What was asked, why not, where, and what to do."""
        nest = (f"  {line}" for line in bare(stmt, refusal.at).split("\n"))
        return refusal.error(step, f"at step {len(self.trace) + 1} of the schedule, in", *nest)

    @property
    def stmt(self) -> Stmt:
        """The scheduled statement."""
        return self.concrete.stmt

    @property
    def provenance(self) -> ProvenanceGraph:
        """How the variables come from each other, as text and as a picture."""
        return ProvenanceGraph(self.stmt)

    @property
    def iteration_graph(self) -> IterationGraph:
        """The loops and the path of every operand through them, as text and as a picture."""
        return IterationGraph(self.stmt)

    def picture(self, matrix: object) -> IterationSpace:
        """In which order the loops visit the entries of a small matrix, and into which tiles they are cut."""
        return draw(self.stmt, matrix)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The places that several iterations of a parallel loop write, and what resolves each."""
        return analyse(self.stmt, appended_result(self.concrete), own_rows(self.concrete))

    if not TYPE_CHECKING:  # a checker that saw it would take every attribute for one that raises

        def __getattr__(self, name: str) -> NoReturn:
            help = "" if name.startswith("_") else f"\n  help: {instead_of(name)}"
            raise AttributeError(f"a schedule has no {name!r}{help}", name=name, obj=self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>{self.iteration_graph._repr_svg_()}"

    def __str__(self) -> str:
        counts = isinstance(self.concrete.making, CountedFirst)
        return printable(full(self.stmt) + (f"\n{self.concrete.assign.lhs.tensor} is counted first, then filled in" if counts else ""))

    @property
    def text(self) -> str:
        """The steps, one a line, as ``from_text`` reads them."""
        return "\n".join(map(str, self.trace))

    @staticmethod
    def from_text(concrete: Concrete, text: str, target: Target = INTERPRET) -> Schedule:
        """Take the steps of a text such as ``split(i,i0,i1,32) parallelize(i0,CPUThread,NoRaces)``, as a target can run them."""
        return Schedule(concrete, target=target).then_text(text)

    def then_text(self, text: str) -> Self:
        """Go on with the steps of a text."""
        made = self
        for call in read_steps(text):
            made = made._take(made._read(call, text))
        return made

    def _read(self, call: WrittenStep, text: str) -> Primitive:
        """A step of a text, for the statement as it is now."""
        built = build(call.step, call.arguments, self.concrete)
        if isinstance(built, Refusal):
            raise unreadable(text, call.fault_place(built), built)
        return built

    def to_json(self) -> str:
        """The steps as a JSON list of objects, one key per argument."""
        return json.dumps([_as_object(step) for step in self.trace])

    @staticmethod
    def from_json(concrete: Concrete, text: str) -> Schedule:
        """Take the steps that ``to_json`` wrote."""
        return Schedule(concrete).then_json(text)

    def then_json(self, text: str) -> Self:
        """Go on with the steps that ``to_json`` wrote."""
        made = self
        for step, given in _from_objects(text):
            made = made._do(step, *given)
        return made


def candidates(stmt: Stmt, rng: Random) -> Iterable[Primitive]:
    """Steps that make sense for a statement, of every kind, in random order."""
    for word in rng.sample(sorted(PRIMITIVES), len(PRIMITIVES)):
        yield from PRIMITIVES[word].candidates(stmt, rng)


def _as_object(step: Primitive) -> dict[str, object]:
    return {"step": step.word()} | {_key(name): _as_value(getattr(step, name)) for name in field_names(type(step))}


def _key(name: str) -> str:
    """What an argument is called in JSON, where ``step`` is the name of the primitive."""
    return f"{name}_" if name == "step" else name


def _as_value(value: object) -> object:
    match value:
        case int() | str() | None:
            return value
        case tuple():
            return [spell(item) for item in value]
    return spell(value)


def _from_objects(text: str) -> Iterable[tuple[type[Primitive], tuple[object, ...]]]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as fault:
        raise ScheduleError(f"[S008] cannot read the schedule: it is not JSON: {fault}") from None
    for item in found if isinstance(found, list) else [found]:
        step = PRIMITIVES.get(str(item.get("step"))) if isinstance(item, dict) else None
        if step is None or set(item) != {"step", *map(_key, field_names(step))}:
            wanted = listed(("step", *map(_key, field_names(step)))) if step else f"step, one of {listed(sorted(PRIMITIVES))}"
            raise ScheduleError(f"[S009] cannot read the schedule: {json.dumps(item)} is not a step\n  help: its keys must be {wanted}")
        yield step, tuple(item[_key(name)] for name in field_names(step))
