"""What a state stands for: operands, loops, and the schedule as far as it is legal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from weakref import WeakKeyDictionary

from sparseloom.calls.supplied import Wanted
from sparseloom.compiler import Stages, build, build_plainly
from sparseloom.core.algebra import SEMIRINGS, Semiring
from sparseloom.core.errors import DeviceError, NotationError, ScheduleError, SparseloomError
from sparseloom.core.once import cached_property
from sparseloom.core.settings import settings
from sparseloom.core.trees import field_names, walk
from sparseloom.explorer.state import USUAL, RequestError, State
from sparseloom.formats.format import Format
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format
from sparseloom.iteration.concretize import Concrete
from sparseloom.notation.dtyping import promoted_dtype
from sparseloom.notation.nodes import Assign, Expr, IndexVar, TensorVar
from sparseloom.notation.script import read_script
from sparseloom.notation.terms import close_over, semiring_zero, zero_in
from sparseloom.notation.text import declare
from sparseloom.plan.plan import Plan, plan_as_asked
from sparseloom.plan.problem import declared
from sparseloom.programs.conversion import convert
from sparseloom.programs.execution import Specialization, specialize
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.registry import find_target
from sparseloom.targets.target import Target
from sparseloom.tensor.creation import random
from sparseloom.tensor.ring_operands import under_semiring
from sparseloom.tensor.tensor import Tensor

MOST_VALUES = 2 * 10**7  # of one random operand or dense result
MOST_DRAWN = 2 * 10**6  # entries of one random sparse operand: drawing as many takes seconds


@dataclass(frozen=True)
class Taken:
    """One row of the schedule and what became of it: legal, refused, waiting behind a refused one, or off."""

    text: str
    status: str
    error: SparseloomError | None = None
    steps: tuple[Primitive, ...] = ()

    @property
    def makes(self) -> tuple[str, ...]:
        """The names that it gives."""
        return tuple(name for step in self.steps for name in step.new_names())

    @property
    def names(self) -> tuple[str, ...]:
        """The variables and tensors that it speaks of."""
        values = [getattr(step, name) for step in self.steps for name in field_names(type(step))]
        return tuple(dict.fromkeys((*self.makes, *(name for value in values for name in _names(value)))))


@lru_cache(maxsize=16)
def _random(shape: tuple[int, ...], density: float, format: Format, seed: int) -> Storage:
    """A tensor that nobody has: full if it is dense."""
    return random(shape, 1.0 if format.is_dense else density, format, seed).storage


def _names(value: object) -> Iterator[str]:
    match value:
        case IndexVar(name) | TensorVar(name):
            yield name
        case Expr():
            yield from (n.name for n in walk(value) if isinstance(n, IndexVar | TensorVar))
        case tuple():
            for item in value:
                yield from _names(item)


_KNOWN: WeakKeyDictionary[Schedule, dict[str, Schedule]] = WeakKeyDictionary()


@lru_cache(maxsize=64)
def _started(loops: Concrete) -> Schedule:
    """The schedule of loops to which nothing was done; the same one again while they are looked at."""
    return Schedule(loops)


def _after(schedule: Schedule, text: str) -> Schedule:
    """A schedule with the steps of a text; whoever edits the last step asks for those before it again and again."""
    known = _KNOWN.setdefault(schedule, {})
    if text not in known:
        if len(known) > 32:
            known.clear()
        known[text] = schedule.then_text(text)
    return known[text]


@dataclass(frozen=True, eq=False)
class Subject:
    """A state, and the operands that somebody has."""

    state: State
    given: Mapping[str, Tensor]

    @cached_property
    def wanted(self) -> Wanted:
        """The statement as it was read."""
        script = read_script(self.state.statement, (*self.state.formats, *self.given))
        if len(script.steps) > 1 or script.last.schedule is not None:
            raise NotationError("one statement is shown at a time\n  help: write its schedule as steps, and look at the others one by one")
        wanted = Wanted(self.state.statement, script, self.state.formats)
        unknown = next((name for name in self.state.formats if name not in script.orders), None)
        if unknown is not None:
            raise RequestError(f"there is a format for {unknown!r}, but the statement has {', '.join(script.orders)}", where="formats")
        return wanted

    @cached_property
    def formats(self) -> dict[str, Format]:
        """How every tensor is stored: as the state says, as an operand is at hand, or dense."""
        found: dict[str, Format] = {}
        for name, order in self.wanted.script.orders.items():
            text, own = self.state.formats.get(name), self.given.get(name)
            try:
                found[name] = as_format(text or "dense", order) if text or own is None else own.format
            except SparseloomError as fault:
                raise RequestError(f"{name}: {fault}", where="formats") from None
        return found

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How far every variable runs."""
        known = {var: size for var, size in self.state.sizes.items() if var in self.wanted.variables}
        sizes = self.wanted.extents(self._own, known)
        for name, indices in self.wanted.accesses:
            full = prod(sizes[var] for var in indices)
            stored, most = (full, MOST_VALUES) if self.formats[name].is_dense else (full * self.state.density, MOST_DRAWN)
            if name not in self._own and stored > most:
                help = "make it smaller, or bring your own: sparseloom explore -i, kernel.explore()"
                raise RequestError(f"{name} would hold {stored:,.0f} values, and {most:,} is the limit here", help, "sizes")
        return sizes

    @cached_property
    def _own(self) -> dict[str, Tensor]:
        """The operands at hand that the statement reads."""
        own = {name: tensor for name, tensor in self.given.items() if name in self.wanted.operands}
        for name, tensor in own.items():
            if tensor.ndim != self.wanted.order(name):
                raise RequestError(
                    f"{name} at hand has the shape {tensor.shape}, but {self.wanted.order(name)} modes here", where="statement"
                )
        return own

    @cached_property
    def operands(self) -> dict[str, Storage]:
        """The storages of all operands: those at hand, in the formats asked for, and random ones."""
        sizes = self.sizes
        found: dict[str, Storage] = {}
        for name in self.wanted.operands:
            own, shape = self._own.get(name), tuple(sizes[var] for var in dict(self.wanted.accesses)[name])
            seed = self.state.seed + len(found)
            found[name] = _random(shape, self.state.density, self.formats[name], seed) if own is None else own.storage
        if self.ring is not None and found:
            common = promoted_dtype([storage.dtype for storage in found.values()])
            found = under_semiring(found, self.formats, zero_in(common, self.ring), common)
        return {name: convert(storage, self.formats[name]) for name, storage in found.items()}

    @cached_property
    def ring(self) -> Semiring | None:
        """What + and * mean, if not what they usually do."""
        return None if self.state.semiring == USUAL else SEMIRINGS[self.state.semiring]

    @cached_property
    def target(self) -> Target:
        """What the kernel is for."""
        return find_target(self.state.target)

    @cached_property
    def special(self) -> Specialization:
        """The problem, before any schedule."""
        return self.on(self.operands)

    def on(self, operands: Mapping[str, Storage], schedule: str = "") -> Specialization:
        """The problem on some operands, under a schedule."""
        typed = declare(self.wanted.script.last.assign, {name: declared(name, storage) for name, storage in operands.items()})
        if self.ring is not None and typed.op is None:
            typed = declare(typed, {self.wanted.result: replace(typed.lhs.tensor, fill=semiring_zero(typed, self.ring))})
        form = self.formats[self.wanted.result]
        free = {var: self.sizes[var] for var in self.wanted.free_extents}
        made = specialize(close_over(typed, self.ring), operands, form, None, free, schedule, None, self.target)
        return replace(made, pinned=replace(plan_as_asked(made.problem), asked=schedule))

    @property
    def statement(self) -> Assign:
        """The statement with explicit reductions, and the result settled."""
        return self.special.problem.assign

    @cached_property
    def loops(self) -> Concrete:
        """The loops that the schedule starts from."""
        return self.special.unscheduled()

    @cached_property
    def _progress(self) -> tuple[Schedule, tuple[Taken, ...]]:
        made, rows, refused = _started(self.loops), [], False
        for step in self.state.steps:
            if refused or not step.on:
                rows.append(Taken(step.text, "waiting" if step.on else "off"))
                continue
            try:
                after = _after(made, step.text)
            except ScheduleError as refusal:
                refused = True
                rows.append(Taken(step.text, "refused", refusal))
                continue
            rows.append(Taken(step.text, "legal", None, after.trace[len(made.trace) :]))
            made = after
        return made, tuple(rows)

    @property
    def schedule(self) -> Schedule:
        """The schedule up to the first step that is refused."""
        return self._progress[0]

    @property
    def rows(self) -> tuple[Taken, ...]:
        """Every row of the schedule, and what became of it."""
        return self._progress[1]

    @property
    def plan(self) -> Plan:
        """The plan under the schedule."""
        return replace(plan_as_asked(self.special.problem), asked=self.schedule.text)

    @cached_property
    def _made(self) -> tuple[Stages, DeviceError | None]:
        try:
            made = build(self.plan, settings.int32_limit)
            made.require_target()
        except DeviceError as fault:
            return build_plainly(self.plan, settings.int32_limit), fault
        return made, None

    @property
    def stages(self) -> Stages:
        """Everything that the compiler makes of it; where the target cannot run it, loops as they are before any pass."""
        return self._made[0]

    @property
    def lack(self) -> DeviceError | None:
        """Why the target cannot run it, if it cannot."""
        return self._made[1]
