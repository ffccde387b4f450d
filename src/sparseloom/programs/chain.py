"""Statements that run one after another: what each makes is a temporary for those behind it, the last makes the result.

    t1(k) = A(k,l) * x(l)     a specialization, as for one statement
    y(i) = A(i,k) * t1(k)     another, to which t1 is an operand like A

A chain has the face of a ``Specialization``. Its steps are the user's, or those into which the planner cut one statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Semiring
from sparseloom.core.dtypes import INT64, DType, kind_of
from sparseloom.core.errors import FormatError, ScheduleError, ShapeError
from sparseloom.core.settings import settings
from sparseloom.core.trees import walk
from sparseloom.formats.format import Format
from sparseloom.formats.lending import built_beside, is_filled_below, lent_room
from sparseloom.formats.level import LevelData
from sparseloom.formats.storage import NO_INDICES, Owner, Storage
from sparseloom.iteration.rows import RowKind
from sparseloom.notation import printer
from sparseloom.notation.contents import variables_in
from sparseloom.notation.nodes import Assign, IndexVar, TensorVar
from sparseloom.notation.terms import close_over, semiring_zero, tensors_of
from sparseloom.notation.text import declare
from sparseloom.plan.contraction import Contraction, Path, Step, contract, contract_along, density
from sparseloom.plan.problem import Problem, Shaped, declared, pose, pose_without_data
from sparseloom.plan.statistics import OperandFacts, Statistics
from sparseloom.programs.binding import Call, aligned
from sparseloom.programs.calling import IndexOverflow
from sparseloom.programs.conversion import with_indices_as
from sparseloom.programs.cuda.checks import has_nan as has_nan_there
from sparseloom.programs.cuda.storages import Place, room_for
from sparseloom.programs.execution import Specialization
from sparseloom.targets.c import C
from sparseloom.targets.target import Calling, Target


@dataclass(frozen=True)
class Setting:
    """What all statements of a program are run with."""

    ring: Semiring | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    workspace: RowKind | None = None
    target: Target = C
    wide: bool = False  # whether sparse temporaries have positions of 64 bits


def specialize(
    assign: Assign,
    operands: Mapping[str, Storage],
    format: Format | None = None,
    dtype: DType | None = None,
    sizes: Mapping[str, int] | None = None,
    schedule: str | None = None,
    workspace: RowKind | None = None,
    target: Target = C,
    path: Path | None = None,
) -> Specialization | Chain:
    """A statement, with explicit reductions, made definite by the operands it is run on, and cut into several where that pays.

    The arguments are those of ``execution.specialize``. A ``path`` says how to cut a product.
    """
    problem = pose(assign, operands, settings.int32_limit, format, dtype, sizes, schedule, workspace, target)
    statistics = Statistics.of(operands, target.calling is Calling.LAUNCHED)
    cut = contract(problem, statistics) if path is None else contract_along(problem, statistics, path)
    whole = Specialization(problem, statistics)
    is_sparse = any(step.format is not None and not step.format.is_dense for step in cut.steps[:-1])
    if len(cut.steps) == 1 or (is_sparse and target.calling is Calling.LAUNCHED):
        return whole  # kernels of a GPU make no sparse temporaries yet
    *before, last = cut.steps
    steps = (*before, replace(last, dtype=dtype or problem.assign.lhs.tensor.stored))
    return _chained(steps, operands, Setting(None, problem.sizes, workspace, target), cut, whole)


def specialize_all(steps: Sequence[Step], operands: Mapping[str, Storage], setting: Setting) -> Chain:
    """Statements as they were written, made definite by the operands they are run on."""
    known = {n.name for step in steps for n in walk(step.statement) if isinstance(n, IndexVar)}
    for name in setting.sizes:
        if name not in known:
            raise ShapeError(f"sizes names {name!r}, but the variables are {', '.join(sorted(known))}")
    return _chained(steps, operands, setting)


def _chained(
    steps: Sequence[Step],
    operands: Mapping[str, Storage],
    setting: Setting,
    cut: Contraction | None = None,
    whole: Specialization | None = None,
) -> Chain:
    """A chain of steps; it can be made again with wider positions."""
    # The operands themselves are not kept: what is known of them is enough.
    known = {name: declared(name, storage) for name, storage in operands.items()}
    shapes = {name: _Expected(storage.shape, storage.index_dtype, storage.dtype) for name, storage in operands.items()}
    counts = {name: len(storage.values) for name, storage in operands.items()}
    large = dict(Statistics.of(operands, setting.target.calling is Calling.LAUNCHED).operands)

    def widened() -> Chain:
        return Chain(_linked(steps, known, shapes, counts, large, replace(setting, wide=True)), cut, whole)

    return Chain(_linked(steps, known, shapes, counts, large, setting), cut, whole, widened)


def _linked(
    steps: Sequence[Step],
    known: Mapping[str, TensorVar],
    shapes: Mapping[str, Shaped],
    counts: Mapping[str, int],
    large: Mapping[str, OperandFacts],
    setting: Setting,
) -> tuple[Specialization, ...]:
    """Each step made definite, with what the steps before it make among its operands."""
    links = []
    known, shapes, counts = dict(known), dict(shapes), dict(counts)  # to which what the steps make is added
    for step in steps:
        closed = _closed(step.statement, known, setting.ring)
        own = {var.name for var in variables_in(closed)}
        sizes = {name: size for name, size in setting.sizes.items() if name in own}
        options = (step.format, step.dtype, sizes, step.schedule, setting.workspace, setting.target)
        problem = pose(closed, shapes, settings.int32_limit, *options)
        if setting.wide and step is not steps[-1]:
            problem = problem.widened(INT64)
        read = [tensor.name for tensor in tensors_of(closed) if tensor.name in counts]
        sparse = [name for name in read if not known[name].format.is_dense]
        statistics = Statistics.counted({name: counts[name] for name in read}, sparse)
        told = tuple((name, large[name]) for name in sparse if name in large)
        links.append(Specialization(problem, replace(statistics, operands=told)))
        tensor, size = temporary(problem), prod(problem.shape)
        share = 1.0 if tensor.format.is_dense else density(closed.rhs, problem.sizes, counts)
        known[step.name], counts[step.name] = tensor, int(size * share)
        shapes[step.name] = _Expected(problem.shape, tensor.index_dtype, tensor.stored_dtype)
    return tuple(links)


def preview(steps: Sequence[Step], known: Mapping[str, TensorVar], setting: Setting) -> Chain:
    """What would run on operands that are stored like these, of usual size."""
    tensors, links = dict(known), []
    for step in steps:
        closed = _closed(step.statement, tensors, setting.ring)
        options = (step.format, step.dtype, step.schedule, setting.workspace, setting.target)
        problem = pose_without_data(closed, settings.int32_limit, *options)
        links.append(Specialization(problem))
        tensors[step.name] = temporary(problem)
    return Chain(tuple(links))


def _closed(statement: Assign, known: Mapping[str, TensorVar], ring: Semiring | None) -> Assign:
    """A statement with its tensors as they are known, and its reductions explicit."""
    typed = declare(statement, {t.name: known[t.name] for t in tensors_of(statement) if t.name in known})
    if ring is not None and statement.op is None:
        result = replace(typed.lhs.tensor, fill=semiring_zero(typed, ring))
        typed = declare(typed, {result.name: result})
    return close_over(typed, ring)


def temporary(problem: Problem) -> TensorVar:
    """What a problem makes, as the operand of another."""
    tensor = problem.assign.lhs.tensor
    is_indexed = any(set(level.array_names) - set(level.truth_names) for level in tensor.format.levels)
    return tensor if is_indexed else replace(tensor, index_dtype=None)


@dataclass(frozen=True)
class _Expected:
    """An operand that is still to be made."""

    shape: tuple[int, ...]
    index_dtype: DType | None
    dtype: DType


class _Past:
    """What earlier calls taught: that positions outgrew 32 bits."""

    def __init__(self) -> None:
        self.wide: Chain | None = None


@dataclass(frozen=True, eq=False)
class Chain:
    """Specializations that run in order. ``cut`` tells of a statement that was cut, and ``whole`` is that statement in one nest.

    It is computed so where the result has a NaN, which a zero in place of an absent entry may have made, and where there is no room
    for a temporary.
    """

    links: tuple[Specialization, ...]
    cut: Contraction | None = None
    whole: Specialization | None = None
    again: Callable[[], Chain] | None = None
    past: _Past = field(default_factory=_Past)

    @property
    def last(self) -> Specialization:
        """What makes the result."""
        return self.links[-1]

    @property
    def current(self) -> Chain:
        """What runs now: this, or the same with wider positions."""
        return self.past.wide or self

    def widened(self) -> Chain:
        """The same with positions of temporaries in 64 bits, which is what runs from now on."""
        if self.again is None:
            raise IndexOverflow("a temporary needs more than 64 bits for its positions")
        self.past.wide = self.again()
        return self.past.wide

    @property
    def fills_values(self) -> bool:
        """Whether an output can be filled in place."""
        return self.last.fills_values

    def check_output(self, out: Storage) -> None:
        """Refuse an output that does not fit the result."""
        self.last.check_output(out)

    def check_schedule(self, deterministic: bool) -> None:
        """Refuse a schedule now that would be refused when the kernel is called."""
        for place, link in enumerate(self.links, 1):
            try:
                link.check_schedule(deterministic)
            except ScheduleError as refusal:
                shown = printer.show(link.problem.statement)
                raise ScheduleError(f"{refusal}\n  in statement {place} of {len(self.links)}: {shown}") from None

    # Looking inside

    @property
    def source(self) -> str:
        """The C of all kernels, one after another."""
        return self._each(lambda link: link.source, "// {}")

    def show(self, stage: str) -> str:
        """All kernels at one stage."""
        return self._each(lambda link: link.show(stage), "// {}")

    def explain(self, timing: bool = False) -> str:
        """What each step does, and why there are several."""
        told = self._each(lambda link: link.explain(timing), "{}")
        if self.cut is None:
            return told
        why = f"in {len(self.links)} steps of about {self.cut.work:,.0f} operations, where one nest would do about {self.cut.one_nest:,.0f}"
        again = "\n  a NaN in the result is looked into by one nest: zeros stand for absent entries of a dense temporary"
        return f"{why}{again if self.cut.may_hide else ''}\n\n{told}"

    def _each(self, tell: Callable[[Specialization], str], heading: str) -> str:
        """What is told of each step, below a heading."""
        heads = (heading.format(f"step {place} of {len(self.links)}") for place in range(1, len(self.links) + 1))
        return "\n\n".join(f"{head}\n{tell(link).rstrip()}" for head, link in zip(heads, self.links, strict=True))

    # Running

    def run(self, operands: Mapping[str, Storage], target: str | None = None) -> Storage:
        """Compute the result."""
        if self.past.wide is not None:
            return self.past.wide.run(operands, target)
        try:
            made = self.last.run(self._with_temporaries(operands, target), target)
        except IndexOverflow:
            return self.widened().run(operands, target)
        except FormatError:
            if self.whole is None:
                raise
            return self.whole.run(operands, target)
        if self.whole is not None and self.is_doubtful(made.values):
            return self.whole.run(operands, target)
        return made

    def is_doubtful(self, values: NDArray[Any]) -> bool:
        """Whether values of the result may be others than those of one nest."""
        return self.cut is not None and self.cut.may_hide and has_nan(values)

    def _with_temporaries(self, operands: Mapping[str, Storage], target: str | None) -> dict[str, Storage]:
        """The operands, and what the steps before the last make of them."""
        storages = dict(operands)
        for link in self.links[:-1]:
            tensor = temporary(link.problem)
            made = link.run(storages, target)
            storages[tensor.name] = replace(with_indices_as(made, tensor.index_dtype), fill=tensor.fill)
        return storages

    def compute(self, operands: Mapping[str, Storage], out: Storage, target: str | None = None) -> None:
        """Compute the values of a result whose structure is known."""
        if self.past.wide is not None:
            return self.past.wide.compute(operands, out, target)
        try:
            self.last.compute(self._with_temporaries(operands, target), out, target)
        except IndexOverflow:
            return self.widened().compute(operands, out, target)
        if self.whole is not None and self.is_doubtful(out.values):
            self.whole.compute(operands, out, target)

    def bind(self, operands: Mapping[str, Storage], target: str | None = None, values: NDArray[Any] | None = None) -> Call:
        """One call that runs all steps. Temporaries that are dense, or have the structure of an operand, are kept; what comes behind
        another one is bound anew with every call.

        A sparse result is new every time, and several threads may ask for one, so that nothing is kept for it.
        """
        if self.past.wide is not None:
            return self.past.wide.bind(operands, target, values)
        if not self.fills_values:
            return Call(lambda: _drop(self.run(operands, target)), lambda: self.run(operands, target))
        try:
            ready = _Ready(self, dict(operands), target, values)
        except FormatError:
            if self.whole is None:
                raise
            return self.whole.bind(operands, target, values)
        return Call(ready.start, ready.run)


class _Ready:
    """A chain that was bound: the calls of its steps as far as they can be known before, and the memory of temporaries."""

    def __init__(self, chain: Chain, operands: dict[str, Storage], target: str | None, values: NDArray[Any] | None) -> None:
        self.chain = chain
        self.target = target
        self.operands = operands
        self.storages = dict(operands)
        tensor, shape = chain.last.problem.assign.lhs.tensor, chain.last.problem.shape
        self.place = Place.of(operands) if chain.last.problem.target.calling is Calling.LAUNCHED else None
        self.values = room_for(tensor, shape, self.place) if values is None else values
        self.calls: list[Call] = []
        self.one_nest: Call | None = None
        for link in chain.links[:-1]:
            call = self._bind_dense(link) if link.fills_values else self._bind_alike(link)
            if call is None:
                break
            self.calls.append(call)
        if len(self.calls) == len(chain.links) - 1:
            self.calls.append(chain.last.bind(self.storages, target, self.values))

    def _bind_dense(self, link: Specialization) -> Call:
        """A step that makes a dense temporary, which is then among the operands."""
        tensor, shape = temporary(link.problem), link.problem.shape
        values = room_for(tensor, shape, self.place)
        call = link.bind(self.storages, self.target, values)
        self.storages[tensor.name] = _dense(tensor, shape, values)
        return call

    def _bind_alike(self, link: Specialization) -> Call | None:
        """A step that makes a temporary with the structure of an operand, whose arrays it has, too; None if its structure is its own."""
        tensor, shape, lender = temporary(link.problem), link.problem.shape, link.shares
        like = None if lender is None else self.storages.get(lender.name)
        if lender is None or like is None or like.index_dtype != tensor.index_dtype:
            return None
        if any(other.converts(tensor.name) for other in self.chain.links):
            return None  # how its entries are stored then must be worked out with every call
        if not is_filled_below(like, lender.depth):
            return None
        count = lent_room(like, lender.depth, tensor.format, shape)
        values = aligned(count, tensor.stored_dtype) if self.place is None else self.place.room(count, tensor.stored_dtype)
        call = link.bind(self.storages, self.target, values)
        self.storages[tensor.name] = built_beside(like, lender.depth, tensor.format, shape, values, tensor.fill)
        return call

    def start(self) -> None:
        """Compute."""
        for call in self.calls:
            call.start()
        if len(self.calls) < len(self.chain.links):
            self._go_on()
        if self.chain.whole is not None and self.chain.is_doubtful(self.values):
            if self.one_nest is None:
                self.one_nest = self.chain.whole.bind(self.operands, self.target, self.values)
            self.one_nest.start()

    def _go_on(self) -> None:
        """Run the steps from the first sparse temporary on."""
        rest = replace(self.chain, links=self.chain.links[len(self.calls) :], whole=None)
        try:
            storages = rest._with_temporaries(self.storages, self.target)
            rest.last.bind(storages, self.target, self.values).start()
        except IndexOverflow:
            self.chain.widened().bind(self.operands, self.target, self.values).start()

    def run(self) -> Storage:
        """Compute the result."""
        self.start()
        tensor = replace(self.chain.last.executable.plan.assign.lhs.tensor, fill=self.chain.last.executable.stages.lowered.fill)
        return _dense(tensor, self.chain.last.problem.shape, self.values)


def _dense(tensor: TensorVar, shape: tuple[int, ...], values: NDArray[Any]) -> Storage:
    """A dense tensor of these values."""
    return Storage(tensor.format, shape, (LevelData(),) * len(tensor.format.levels), values, tensor.fill, NO_INDICES, Owner())


def _drop(_: Storage) -> None:
    """Nobody asked for it."""


def has_nan(values: Any) -> bool:
    """Whether some value is no number. It waits for a device on which they are."""
    if values.device != "cpu":
        return has_nan_there(values)
    if kind_of(values.dtype) not in "fc" or not len(values):
        return False
    parts = values.view(values.real.dtype) if values.dtype.kind == "c" else values
    if len(parts) <= _FEW:
        return bool(np.count_nonzero(parts != parts))  # a third of the time of isnan and any
    with np.errstate(invalid="ignore"):
        return bool(np.isnan(parts.min()))


_FEW = 1 << 14  # values; more are better looked at without another array
