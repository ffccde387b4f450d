"""Ways to run a program: entry points, targets, schedules and threads, which may not change its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from metamorphic.grammar import Access, Factor, Program, Term, Total, accesses
from metamorphic.scheduling import draw_schedule
from numpy.typing import NDArray

import sparseloom as sl
from sparseloom.programs.chain import Chain
from sparseloom.schedule.schedule import Schedule

ENTRIES = {"program": 60, "evaluate": 24, "einsum": 10, "python": 3, "operators": 3}
THREADS = (1, 2, 3, 8)
REPEATS = 3


@dataclass(frozen=True)
class Way:
    """How a program is run: by what entry point, for which target, under which schedule (``None``: planned)."""

    entry: str
    target: str
    schedule: str | None = ""

    def __str__(self) -> str:
        return f"{self.entry}, target {self.target}, schedule {self.schedule!r}"


def draw_way(random: Random, program: Program, compiled: float) -> Way:
    """A way that fits the program. The schedule follows later, from the program itself."""
    (entry,) = random.choices(list(ENTRIES), list(ENTRIES.values()))
    fits = {"einsum": as_subscripts(program) is not None, "python": len(program.statements) == 1 and not program.statements[0].adds,
            "operators": with_operators(program, None) is not None}  # fmt: skip
    if not fits.get(entry, True):
        entry = "program"
    target = "c" if entry in ("python", "operators") or random.random() < compiled else "interpret"
    chosen = random.choices((None, "", "random"), (20, 30, 50))[0] if entry == "program" else None
    if chosen == "random" and len(program.statements) > 1:
        chosen = None
    return Way(entry, target, chosen)


def kernel_of(program: Program, way: Way) -> sl.Kernel:
    """The kernel of a program with declared formats."""
    formats = {name: operand.format for name, operand in program.operands.items() if operand.shape} | program.formats
    return sl.program(program.text, formats, way.schedule, sizes=program.unknown or None, target=way.target)


def a_schedule(random: Random, program: Program) -> str:
    """A random schedule of a program of one statement."""
    plain = kernel_of(program, Way("program", "interpret"))
    found = plain.preview({name: operand.values.dtype for name, operand in program.operands.items() if name in plain.operand_names})
    if isinstance(found, Chain):
        return ""
    (one,) = program.statements
    reads = [*map(str, accesses(one.terms)), *map(str, one.terms)]
    return draw_schedule(random, Schedule(found.unscheduled()), reads, one.result.name)


def run(program: Program, way: Way, kernel: sl.Kernel | None, tensors: Mapping[str, sl.Tensor]) -> list[sl.Tensor]:
    """All results: one for each number of threads and repetition where a kernel is compiled, else a single one."""
    form = program.formats.get(program.result.name)
    match way.entry:
        case "evaluate":
            return [sl.evaluate(program.text, dict(tensors), format=form, sizes=program.unknown or None, target=way.target)]
        case "einsum":
            subscripts = as_subscripts(program)
            names = [access.name for access in accesses(program.statements[0].terms)]
            return [sl.einsum(subscripts, *(tensors[name] for name in names), format=form, target=way.target)]
        case "python":
            return [in_python(program, tensors)]
        case "operators":
            return [sl.asarray(with_operators(program, tensors))]
    assert kernel is not None
    if way.target == "interpret":
        return [kernel(dict(tensors))]
    made = []
    for count in THREADS if "CPUThread" in (way.schedule or "CPUThread") else (1,):
        sl.set_threads(count)
        made += [kernel(dict(tensors)) for _ in range(REPEATS if count > 1 else 1)]
    sl.set_threads(None)
    return made


def as_subscripts(program: Program) -> str | None:
    """A program as NumPy spells it; None if it is no single product of tensors."""
    one = program.statements[0]
    if len(program.statements) > 1 or one.adds or len(one.terms) > 1 or one.terms[0].negative:
        return None
    factors = one.terms[0].factors
    read = {i for factor in factors if isinstance(factor, Access) for i in factor.indices}
    indices = one.result.indices
    if len(set(indices)) < len(indices) or not {*indices} <= read or any(isinstance(i, int) or len(i) > 1 or not i.isalpha() for i in read):
        return None
    if not all(isinstance(factor, Access) for factor in factors):
        return None
    inputs = ["".join(map(str, factor.indices)) for factor in factors if isinstance(factor, Access)]
    return f"{','.join(inputs)}->{''.join(map(str, indices))}"


def in_python(program: Program, tensors: Mapping[str, sl.Tensor]) -> sl.Tensor:
    """The statement as index notation in Python: ``y[i] = A[i, j] * x[j]``."""
    (one,) = program.statements
    variables = {name: sl.indices(name)[0] if isinstance(sl.indices(name), tuple) else sl.indices(name) for name in program.extents}
    dtype = np.result_type(*(operand.values.dtype for operand in program.operands.values()), np.int8)

    def at(indices: tuple[str | int, ...]) -> Any:
        return tuple(i if isinstance(i, int) else variables[i] for i in indices)

    def factor(found: Factor) -> Any:
        match found:
            case Access(name, indices):
                return tensors[name][at(indices)]
            case Total(terms):
                return total(terms)
        return found

    def product(term: Term) -> Any:
        first, *rest = map(factor, term.factors)
        for other in rest:
            first = first * other
        return first

    def total(terms: tuple[Term, ...]) -> Any:
        made = -product(terms[0]) if terms[0].negative else product(terms[0])
        for term in terms[1:]:
            made = made - product(term) if term.negative else made + product(term)
        return made

    shape = tuple(program.extents[str(i)] for i in one.result.indices)
    y = sl.zeros(shape, program.formats.get(one.result.name), dtype)
    y[at(one.result.indices)] = total(one.terms)
    return y


def with_operators(program: Program, tensors: Mapping[str, sl.Tensor] | None) -> Any:
    """The program by operators on whole tensors: element by element, and ``@``. None if it is not of that kind; True without tensors."""
    one = program.statements[0]
    indices = one.result.indices
    if len(program.statements) > 1 or one.adds or not indices or len(set(indices)) < len(indices):
        return None
    made: Any = None
    for term in one.terms:
        value = _by_operators(term, indices, tensors)
        if value is None:
            return None
        if tensors is not None:
            value = -value if term.negative else value
            made = value if made is None else made + value
    return True if tensors is None else made


def _by_operators(term: Term, indices: tuple[str | int, ...], tensors: Mapping[str, sl.Tensor] | None) -> Any:
    """A product of the same modes as the result, or of two matrices."""
    read = [factor for factor in term.factors if isinstance(factor, Access)]
    if any(isinstance(factor, Total) for factor in term.factors) or not read:
        return None
    numbers = [factor for factor in term.factors if isinstance(factor, int)]
    if all(sorted(map(str, one.indices)) == sorted(map(str, indices)) and len(set(one.indices)) == len(indices) for one in read):
        if tensors is None:
            return True
        made: Any = None
        for one in read:
            turned = sl.permute_dims(tensors[one.name], tuple(one.indices.index(i) for i in indices))
            made = turned if made is None else made * turned
    elif len(read) == 2 and _is_matrix_product(read, indices):
        if tensors is None:
            return True
        made = tensors[read[0].name] @ tensors[read[1].name]
    else:
        return None
    for number in numbers:
        made = number * made
    return made


def _is_matrix_product(read: list[Access], indices: tuple[str | int, ...]) -> bool:
    first, second = (one.indices for one in read)
    return (
        len(first) == len(second) == 2
        and first[1] == second[0]
        and isinstance(first[1], str)
        and len({*first, *second}) == 3
        and indices == (first[0], second[1])
    )


def values_of(result: sl.Tensor, axes: tuple[int, ...]) -> NDArray[Any]:
    """A result as a dense array, its axes as the old program has them."""
    array = np.asarray(result.to_numpy())
    return array.transpose(axes) if array.ndim else array
