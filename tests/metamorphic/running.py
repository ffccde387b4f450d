"""Batches of programs: each with its variants, whose kernels are compiled together, run, and compared with the first result."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from metamorphic.dense import computed
from metamorphic.generation import draw_program
from metamorphic.grammar import Program
from metamorphic.relations import draw_changes
from metamorphic.storing import store
from metamorphic.ways import Way, a_schedule, draw_way, kernel_of, run, values_of
from together import compile_together

import sparseloom as sl

VARIANTS = 3
COMPILED = 0.25


@dataclass
class Variant:
    """A program that must give what the first one gives, and how it is run."""

    program: Program
    axes: tuple[int, ...]
    relations: tuple[str, ...]
    way: Way
    dtype_holds: bool
    kernel: sl.Kernel | None = None
    tensors: dict[str, sl.Tensor] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{', '.join(self.relations) or 'no relation'}; {self.way}\n{self.program}"


@dataclass
class Trial:
    """One drawn program: its variants, the first of which is the program itself, and what became of them."""

    number: int
    program: Program
    variants: list[Variant]
    compared: int = 0
    words: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)


def draw_trial(seed: int, number: int, compiled: float = COMPILED, count: int = VARIANTS) -> Trial:
    """The program of this number, and its variants; schedules and kernels follow in ``prepare``."""
    random = Random(f"metamorphic {seed} {number}")
    program = draw_program(random)
    axes = tuple(range(len(program.result.indices)))
    variants = [Variant(program, axes, (), Way("program", "interpret"), True)]
    for _ in range(count):
        changed, names = draw_changes(random, program)
        variants.append(Variant(changed.program, changed.axes, names, draw_way(random, changed.program, compiled), changed.dtype_holds))
    return Trial(number, program, variants)


def run_batch(
    seed: int, numbers: Sequence[int], begin: Callable[[int | None], None], compiled: float = COMPILED, variants: int = VARIANTS
) -> Iterator[Trial]:
    """Draw, prepare, compile together and run; ``begin`` hears of which program is in hand, for the case that it ends this process."""
    trials = []
    for number in numbers:
        begin(number)
        trial = draw_trial(seed, number, compiled, variants)
        prepare(trial, Random(f"schedules {seed} {number}"))
        trials.append(trial)
    begin(None if len(numbers) > 1 else numbers[0])
    load(trials)
    for trial in trials:
        begin(trial.number)
        compare(trial)
        yield trial


def prepare(trial: Trial, random: Random) -> None:
    """Make operands and kernels, and draw schedules. What cannot be prepared is counted and left out."""
    kept = []
    for variant in trial.variants:
        if guarded(trial, variant, lambda variant=variant: _prepare(variant, random)) is not None:
            kept.append(variant)
    trial.variants = kept


def _prepare(variant: Variant, random: Random) -> bool:
    way = variant.way
    if way.schedule == "random":
        variant.way = way = Way(way.entry, way.target, a_schedule(random, variant.program))
    variant.tensors = {name: store(operand) for name, operand in variant.program.operands.items()}
    if way.entry == "program":
        variant.kernel = kernel_of(variant.program, way)
    return True


def load(trials: Sequence[Trial]) -> None:
    """Compile what is to be compiled as one file, or trial by trial if that fails: running it says then what is wrong."""
    calls = [(one.kernel, (one.tensors,)) for trial in trials for one in trial.variants if one.kernel is not None and one.way.target == "c"]
    good = []
    for kernel, operands in calls:
        with suppress(Exception):  # said when the kernel is called
            kernel.specialized(kernel._operands(operands, {}, None))
            good.append((kernel, operands))
    with suppress(Exception):
        compile_together(good)


def compare(trial: Trial) -> None:
    """Run every variant and compare it with the first, and the first with NumPy."""
    expected = computed(trial.program)
    first: np.ndarray | None = None
    for variant in trial.variants:
        results = guarded(trial, variant, lambda variant=variant: run(variant.program, variant.way, variant.kernel, variant.tensors))
        if results is None:
            continue
        arrays = guarded(trial, variant, lambda results=results, variant=variant: [values_of(one, variant.axes) for one in results])
        if arrays is None:
            continue
        if first is None:
            first = arrays[0]
            if not agrees(first, expected):
                trial.faults.append(("wrong", f"{variant}\ngives\n{first}\nbut NumPy\n{expected}"))
        for array in arrays:
            if not agrees(array, first) or not agrees(array, expected):
                trial.faults.append(("wrong", f"{variant}\ngives\n{array}\nbut the program\n{trial.program}\ngives\n{first}"))
                break
        else:
            if variant.dtype_holds and variant.way.entry in ("program", "evaluate") and arrays[0].dtype != first.dtype:
                trial.faults.append(("wrong", f"{variant}\ngives {arrays[0].dtype}, but the program\n{trial.program}\ngives {first.dtype}"))
        guarded(trial, variant, lambda variant=variant, results=results: _unharmed(variant, results))
        trial.compared += 1
        _count(trial, variant)


def _unharmed(variant: Variant, results: list[sl.Tensor]) -> bool:
    """The operands are as they were, and the result's arrays are those of its format."""
    for name, tensor in variant.tensors.items():
        if not np.array_equal(np.asarray(tensor.to_numpy()), variant.program.operands[name].dense):
            raise Harmed(f"{name} was changed")
    made = results[0]
    if made.shape and not made.format.is_dense:
        sl.from_arrays(made.format, made.shape, dict(made.arrays), fill=made.fill)
    return True


class Harmed(AssertionError):
    """An operand was changed."""


def _count(trial: Trial, variant: Variant) -> None:
    trial.words.update(f"relation: {name}" for name in variant.relations)
    trial.words[f"entry: {variant.way.entry}"] += 1
    trial.words[f"target: {variant.way.target}"] += 1
    kind = "planned" if variant.way.schedule is None else "drawn" if variant.way.schedule else "plain loops"
    trial.words[f"schedule: {kind}"] += 1


def agrees(array: np.ndarray, expected: np.ndarray) -> bool:
    """Whether two results are equal: whole numbers, so that equal means equal."""
    return array.shape == expected.shape and bool(np.array_equal(array, expected))


def guarded(trial: Trial, variant: Variant, work: Callable[[], Any]) -> Any:
    """What some work gives; None if it is rejected or fails, which is counted."""
    try:
        return work()
    except Harmed as harmed:
        trial.faults.append(("wrong", f"{variant}\n{harmed}"))
    except sl.CompilerBug:
        trial.faults.append(("internal", f"{variant}\n{traceback.format_exc(limit=-8)}"))
    except sl.StorageError:
        trial.faults.append(("wrong", f"{variant}\n{traceback.format_exc(limit=-4)}"))
    except sl.SparseloomError as error:
        trial.words[f"rejected: {type(error).__name__}: {str(error).splitlines()[0][:100]}"] += 1
    except Exception:  # noqa: BLE001 -- whatever else leaves the compiler is what is looked for
        trial.faults.append(("exception", f"{variant}\n{traceback.format_exc(limit=-8)}"))
    return None
