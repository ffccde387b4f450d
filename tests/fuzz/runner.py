"""Comparing the three oracles on batches of cases, fifty kernels to a C file."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from fuzz.cutting import cut_eagerly
from fuzz.drawing import Case, accesses
from fuzz.operands import closure, seen_densely, store
from fuzz.tolerance import difference, is_exact, magnitudes

from sparseloom.compiler import Stages, load_together
from sparseloom.core.dtypes import DType
from sparseloom.core.errors import DTypeError, NotationError, SparseloomError
from sparseloom.core.settings import settings
from sparseloom.core.trees import walk
from sparseloom.formats.format import Format
from sparseloom.formats.pack import pattern, unpack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format
from sparseloom.formats.validate import check
from sparseloom.notation.dtyping import dtype_of
from sparseloom.notation.interpret import Operand, Result, evaluate
from sparseloom.notation.nodes import Apply, Assign
from sparseloom.programs import chain
from sparseloom.programs.calling import IndexOverflow
from sparseloom.programs.execution import Specialization, specialize

BATCH = 50
TARGETS = ("interpret", "c")
FAULTS = (
    SparseloomError, AssertionError, ArithmeticError, AttributeError, LookupError, MemoryError, NameError, OSError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip


class Disagreement(AssertionError):
    """The oracles do not agree, or a promise about the result is broken."""


@dataclass
class Tally:
    """What became of the cases."""

    compared: int = 0
    invalid: int = 0
    widened: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Case, str]] = field(default_factory=list)

    @property
    def accepted(self) -> float:
        """The share of valid statements that were compiled."""
        valid = self.compared + sum(self.refused.values()) + len(self.failures)
        return self.compared / valid if valid else 1.0


@dataclass
class Job:
    """A case on its way: its operands, what is expected, and the compiled statement."""

    case: Case
    storages: dict[str, Storage]
    before: bytes
    prepared: Specialization
    assign: Assign
    cut: chain.Chain | None = None  # the same in several statements

    @cached_property
    def operands(self) -> dict[str, Operand]:
        """The operands as the dense oracle sees them."""
        return {name: seen_densely(spec, self.case.shape(name)) for name, spec in self.case.specs.items()}

    @cached_property
    def want(self) -> Result:
        """What the dense oracle says."""
        return expected(self.assign, self.operands, self.case)

    @cached_property
    def magnitude(self) -> np.ndarray:
        """How large the numbers were that were added up."""
        return magnitudes(self.assign, self.operands, self.case.sizes)

    @property
    def stages(self) -> list[Stages]:
        """Everything that is compiled for it."""
        return [self.prepared.stages, *(link.stages for link in (self.cut.links if self.cut is not None else ()))]


def refusal_kind(error: SparseloomError) -> str:
    """The refusal without names and numbers, for the table."""
    text = str(error).split("\n")[0]
    if ": " in text and text.startswith("cannot assemble"):
        why = text.split(": ", 1)[1]
        why = "the loops reduce outside the result's" if why.startswith("the loop over") else why
        why = "entries cannot be appended" if "cannot be appended to" in why else why
        return f"sparse result needs a workspace: {why}"
    return f"{type(error).__name__}: {text[:80]}"


def compare(cases: Iterator[Case], wanted: int) -> Tally:
    """Draw and compare until ``wanted`` cases were compared."""
    tally = Tally()
    while tally.compared < wanted and len(tally.failures) < 5:
        batch = list(islice(cases, min(BATCH, wanted - tally.compared)))
        with int32_limit(batch[0].int32_limit):
            _run_batch(batch, tally)
    return tally


def compare_all(cases: Sequence[Case]) -> Tally:
    """Compare every one of these cases."""
    tally = Tally()
    for first in range(0, len(cases), BATCH):
        _run_batch(cases[first : first + BATCH], tally)
    return tally


@contextmanager
def int32_limit(limit: int) -> Iterator[None]:
    """Let int32 positions end earlier."""
    before, settings.int32_limit = settings.int32_limit, limit
    try:
        yield
    finally:
        settings.int32_limit = before


def _run_batch(batch: Sequence[Case], tally: Tally) -> None:
    jobs = [job for case in batch if (job := guarded(tally, case, prepare, case, tally)) is not None]
    jobs = loaded(jobs, tally)
    wide = []
    for job in jobs:
        match guarded(tally, job.case, run, job):
            case "overflow":
                wide.append(replace(job, prepared=job.prepared.widened()))
            case "agree":
                tally.compared += 1
    for job in loaded(wide, tally):
        tally.widened += 1
        match guarded(tally, job.case, run, job):
            case "agree":
                tally.compared += 1
            case "overflow":
                tally.failures.append((job.case, "positions overflow in 64 bits"))


def loaded(jobs: list[Job], tally: Tally) -> list[Job]:
    """Compile the jobs together; if that fails, one by one, to find out which of them is to blame."""
    try:
        load_together([stages for job in jobs for stages in job.stages])
    except SparseloomError:
        return [job for job in jobs if guarded(tally, job.case, _load, job)]
    return jobs


def _load(job: Job) -> bool:
    load_together(job.stages)
    return True


def guarded(tally: Tally, case: Case, step: Any, *args: Any) -> Any:
    """Run one step; whatever goes wrong is a failure of this case, and the others go on."""
    try:
        return step(*args)
    except FAULTS:
        tally.failures.append((case, traceback.format_exc(limit=-4)))
        return None


def attempt(case: Case) -> str | None:
    """What goes wrong with one case, or None; for shrinking."""
    tally = Tally()
    with int32_limit(case.int32_limit):
        _run_batch([case], tally)
    return tally.failures[0][1] if tally.failures else None


def prepare(case: Case, tally: Tally) -> Job | None:
    """Make the operands and compile to loops, also of several statements; a refusal goes into the tally."""
    job = prepare_whole(case, tally)
    return None if job is None else replace(job, cut=_cut(job))


def prepare_whole(case: Case, tally: Tally) -> Job | None:
    """The same of one statement alone."""
    return _prepare(case, tally, lambda prepared: prepared.stages)


def prepare_unscheduled(case: Case, tally: Tally) -> Job | None:
    """The same as far as a schedule starts from: no plain loops are compiled that nobody runs."""
    return _prepare(case, tally, Specialization.unscheduled)


def _prepare(case: Case, tally: Tally, compile: Callable[[Specialization], object]) -> Job | None:
    try:
        assign = case.closed()
        dtype_of(assign.rhs)
    except DTypeError:
        tally.invalid += 1
        return None
    storages = {name: store(spec, case.shape(name)) for name, spec in case.specs.items()}
    for name, storage in storages.items():
        check(storage, name)
    form, dtype = result_of(case)
    before = contents(storages)
    try:
        prepared = specialize(assign, storages, form, dtype, case.given_sizes)
        compile(prepared)
    except NotationError as refusal:
        tally.refused[refusal_kind(refusal)] += 1
        return None
    return Job(case, storages, before, prepared, prepared.plan.assign)


def _cut(job: Job) -> chain.Chain | None:
    """The statement in several, if it can be cut. Sums of infinities depend on their order, and so are left alone."""
    case = job.case
    if any(spec.specials for spec in case.specs.values()):
        return None
    form, dtype = result_of(case)
    with cut_eagerly():
        made = chain.specialize(case.closed(), job.storages, form, dtype, case.given_sizes)
    return made if isinstance(made, chain.Chain) else None


def result_of(case: Case) -> tuple[Format | None, DType | None]:
    """The format and the dtype that a case asks of its result."""
    form = None if case.format is None else as_format(case.format, len(case.assign.lhs.indices))
    return form, None if case.dtype is None else np.dtype(case.dtype)


def expected(assign: Assign, operands: dict[str, Operand], case: Case) -> Result:
    """What the dense oracle says."""
    initial = operands[assign.lhs.tensor.name] if assign.op is not None else None
    with np.errstate(all="ignore"):
        return evaluate(assign, operands, case.sizes, None, initial)


def contents(storages: dict[str, Storage]) -> bytes:
    """All bytes of the operands."""
    parts = [a.tobytes() for s in storages.values() for level in s.levels for a in level.arrays.values()]
    return b"".join(parts + [s.values.tobytes() for s in storages.values()])


def run(job: Job) -> str:
    """Run the loops in Python and in C: whether the positions overflow, or else that all agree."""
    results: list[Storage | None] = []
    for target in TARGETS:
        call = job.prepared.bind(job.storages, target)
        try:
            results.append(call.run())
        except IndexOverflow:
            results.append(None)
    cut = [] if job.cut is None else [(target, job.cut.run(job.storages, target)) for target in TARGETS]
    if contents(job.storages) != job.before:
        raise Disagreement("an operand was modified")
    for target, made in cut:
        examine(job, f"{target}, in several statements", made)
    if any(result is None for result in results):
        if any(result is not None for result in results):
            raise Disagreement(f"only one of {TARGETS} overflows")
        return "overflow"
    for target, result in zip(TARGETS, results, strict=True):
        if result is not None:
            examine(job, target, result)
    return "agree"


def examine(job: Job, target: str, result: Storage) -> None:
    """Check one result against the dense oracle: promises of the format, dtype, fill, values, pattern."""
    check(result, job.case.assign.lhs.tensor.name)
    want = job.want
    got = densely(result)
    terms = int(np.prod([max(size, 1) for size in job.case.sizes.values()]))
    problem = difference(got, want.values, job.magnitude, is_exact(job.assign), coarsest(job.assign), terms)
    if problem is not None:
        raise Disagreement(f"{target}: {problem}")
    if result.format.is_dense:
        return
    if not same(result.fill, want.fill):
        raise Disagreement(f"{target}: the fill is {result.fill}, not {want.fill}")
    present = closure(result.format, want.present)
    if not np.array_equal(pattern(result), present):
        raise Disagreement(f"{target}: stored are\n{pattern(result).astype(int)}\n  not\n{present.astype(int)}")


def same(left: Any, right: Any) -> bool:
    """Equality in which nan equals nan."""
    return bool(left == right or (left != left and right != right))


def densely(storage: Storage) -> np.ndarray:
    """The result as an array, entry by entry."""
    coordinates, values = unpack(storage)
    dense = np.full(storage.shape, storage.fill, storage.dtype)
    stored = np.zeros(storage.shape, bool)
    for place, value in zip(map(tuple, coordinates.T.tolist()), values, strict=True):
        if stored[place]:
            raise Disagreement(f"{place} is stored twice")
        dense[place] = value
        stored[place] = True
    return dense


def coarsest(assign: Assign) -> np.dtype:
    """The dtype with the fewest digits that takes part."""
    kinds = [a.tensor.dtype for a in accesses(assign)] + [dtype_of(n) for n in walk(assign.rhs) if isinstance(n, Apply)]
    single = any(kind.name in ("float32", "complex64") for kind in kinds)
    return np.dtype(np.float32 if single else np.float64)
