"""``y[i] = A[i, j] * x[j]``: a statement with its operands, which is computed at once or postponed, and can be scheduled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Self

import sparseloom.programs.chain as chain
from sparseloom.formats.storage import Storage
from sparseloom.notation.nodes import Access, Assign, Expr, IndexVar
from sparseloom.notation.printer import show
from sparseloom.notation.terms import close_over
from sparseloom.plan.problem import declared, find_extents, resolve
from sparseloom.programs.execution import Specialization, specialize
from sparseloom.programs.guard import Guard, still_valid
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.c import C
from sparseloom.targets.registry import DEFAULT, find_target
from sparseloom.targets.target import Target
from sparseloom.tensor.expression import Expression, numbered, rename, wrong_count
from sparseloom.tensor.spoken import as_spoken


@dataclass(frozen=True, eq=False)
class Assignment:
    """An assignment with explicit reductions, the storages of its operands, and the extents of its variables."""

    statement: Assign
    operands: Mapping[str, Storage]
    sizes: Mapping[str, int]
    guards: dict[str, Guard] = field(default_factory=dict)

    def prepare(self, schedule: str | None = None, target: Target = C) -> Specialization:
        """The statement made definite, under a schedule, with a result in the format and dtype of the tensor it was assigned to."""
        result = self.statement.lhs.tensor
        return specialize(self.statement, self.operands, result.format, result.stored_dtype, self.sizes, schedule, target=target)

    def run(self) -> Storage:
        """Compute the result, from what the operands hold now."""
        self.check_operands()
        result = self.statement.lhs.tensor
        return chain.specialize(self.statement, self.operands, result.format, result.stored_dtype, self.sizes).run(self.operands)

    def check_operands(self) -> None:
        """Look again at operands that a caller may have changed since the assignment was written down."""
        for name, storage in self.operands.items():
            if not storage.is_sealed and storage.device == "cpu":
                self.guards[name] = still_valid(storage, self.guards.get(name))

    def __str__(self) -> str:
        return show(self.statement)


_DEFERRED: ContextVar[bool] = ContextVar("deferred", default=False)


@contextmanager
def deferred() -> Iterator[None]:
    """Postpone the assignments of a ``with`` block: each is computed when its tensor is first read, or by a kernel of its schedule.

    What is postponed is checked at once, and reads its operands when it is computed. Each thread defers for itself.

    >>> i, i0, i1 = sl.indices("i i0 i1")
    >>> x, y = sl.asarray(np.arange(3.0), name="x"), sl.zeros(3, name="y")
    >>> with sl.deferred():
    ...     y[i] = 2 * x[i]
    >>> y
    <Tensor 'y': 3, dense(1), float64>
      assigned, not computed yet: y(i) = 2 * x(i)
    >>> y.schedule().split(i, i0, i1, 2).compile()().to_numpy()
    array([0., 2., 4.])
    """
    before = _DEFERRED.set(True)
    try:
        yield
    finally:
        _DEFERRED.reset(before)


def is_deferred() -> bool:
    """Whether assignments are postponed here."""
    return _DEFERRED.get()


def assign(
    storage: Storage,
    name: str | None,
    variables: tuple[IndexVar, ...],
    value: Expression,
    spoken: Mapping[int, str] | None = None,
) -> Assignment:
    """Write down ``tensor[variables] = value``; a value that came from ``+=`` on the same access accumulates.

    Tensors without a name are T0, T1, ...; those that errors are to speak of have the names of the user's variables, ``spoken``.
    """
    accumulates = value.increment is not None and _is_access_to(value.increment[0], storage, variables)
    if value.increment is not None and accumulates:
        value = value.increment[1]
    if len(variables) != len(storage.shape):
        raise wrong_count(name, storage, variables)
    if spoken is not None:
        value = as_spoken(value, spoken)
    known = name or numbered("T", 0, value.operands)
    # What is made anew does not depend on what the tensor was worth where it stored nothing.
    result = declared(known, storage) if accumulates else replace(declared(known, storage), fill=0)
    lhs = Access(result, variables)
    operands = {other: operand.storage for other, operand in value.operands.items()}
    node = value.node
    if known in operands:
        # The right side reads what the tensor held before.
        old = numbered(known, 0, operands)
        node = rename(node, {known: old})
        operands[old] = operands.pop(known)
    statement = close_over(Assign(lhs, node, "add" if accumulates else None))
    sizes = find_extents(statement, {**operands, known: storage}, {})
    if is_deferred():
        resolve(statement, storage.format, storage.dtype)  # which finds dtypes that do not fit
    return Assignment(statement, {**operands, known: storage} if accumulates else operands, sizes)


def _is_access_to(written: Expression, storage: Storage, variables: tuple[IndexVar, ...]) -> bool:
    match written.node:
        case Access(tensor, indices):
            return indices == variables and written.operands[tensor.name].storage is storage
    return False


@dataclass(frozen=True, eq=False, repr=False)
class TensorSchedule(Schedule):
    """A schedule whose statement has tensors: it can be compiled and run.

    >>> import numpy as np, sparseloom as sl
    >>> i, i0, i1 = sl.indices("i i0 i1")
    >>> x, y = sl.asarray(np.arange(5.0), name="x"), sl.zeros(5, name="y")
    >>> with sl.deferred():                     # the kernel below is the first to compute it
    ...     y[i] = 2 * x[i]
    >>> kernel = y.schedule().split(i, i0, i1, 2).compile()
    >>> kernel() is y
    True
    >>> y.to_numpy()
    array([0., 2., 4., 6., 8.])
    """

    assignment: Assignment = field(kw_only=True)
    receive: Callable[[Storage], Any] = field(kw_only=True)

    def compile(self, target: str = DEFAULT) -> Any:
        """The ``Kernel`` of the schedule. Called on nothing it fills the tensor; called on operands it is as any other."""
        (make,) = _COMPILERS
        return make(self, find_target(target))

    def explore(self, port: int = 0, browser: bool = True) -> Any:
        """Open a page on which the schedule can be seen, changed and measured on its tensors; see ``Kernel.explore``."""
        return self.compile().explore(port=port, browser=browser)

    def _do(self, step: type[Primitive], *given: object) -> Self:
        return super()._do(step, *(self._as_written(value) if isinstance(value, Expression) else value for value in given))

    def _as_written(self, expression: Expression) -> Expr:
        """An expression of tensors, under the names that they have in the statement."""
        own = {id(storage): name for name, storage in self.assignment.operands.items()}
        names = {name: own.get(id(operand.storage), name) for name, operand in expression.operands.items()}
        return rename(expression.node, names)


_COMPILERS: list[Callable[[TensorSchedule, Target], Any]] = []


def compile_with(make: Callable[[TensorSchedule, Target], Any]) -> None:
    """Say how kernels are made of schedules: that is known further up."""
    _COMPILERS[:] = [make]
