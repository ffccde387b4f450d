"""Run the cases of the campaign: many times with more threads than cores, and as programs of their own under ThreadSanitizer."""

from __future__ import annotations

import re
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
from races.shapes import DTYPES, Cell, Shape, operands
from sanitize.kernels import kernel_of
from sanitize.standalone import Kernel, program
from sanitize.tools import Tool, reports

import sparseloom as sl
from sparseloom.compiler import load_together
from sparseloom.core.errors import CompilerBug, ScheduleError, SparseloomWarning
from sparseloom.formats.storage import Storage
from sparseloom.programs.execution import Specialization
from sparseloom.toolchain import teams

THREADS = (3, 8)
BATCH = 20
REPEATS = 200
UNDER_TSAN = 10  # times each kernel is called
_SCHEDULE = re.compile(r"schedule\((?:guided|dynamic(, \d+)?)\)")


@dataclass
class Found:
    """What became of some cells: how many were run, which rules rejected the others, and what was wrong."""

    ran: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    checked: int = 0  # under ThreadSanitizer
    faults: list[str] = field(default_factory=list)

    def add(self, other: Found) -> None:
        """Count what another process found."""
        self.ran += other.ran
        self.rejected += other.rejected
        self.calls += other.calls
        self.checked += other.checked
        self.faults += other.faults


@dataclass(frozen=True)
class Case:
    """A kernel on its operands, and what it should give."""

    label: str
    prepared: Specialization
    storages: Mapping[str, Storage]
    want: np.ndarray


def drawn(cell: Cell, seed: int, number: int, found: Found) -> Case | None:
    """A legal case of a cell; None if the rules of schedules reject it whatever is drawn."""
    random = Random(f"{seed}/{number}")
    dtype, code = random.choice(DTYPES[cell.reduction]), ""
    for shape in cell.shapes(random):
        try:
            return _prepared(shape, dtype, seed + number)
        except ScheduleError as rejection:
            code = str(rejection)[1:5]
    found.rejected[code] += 1
    return None


def _prepared(shape: Shape, dtype: str, seed: int) -> Case:
    kernel = shape.kernel()
    given = operands(kernel.operand_names, dtype, shape.cell.reduction, seed)
    storages = kernel._operands(given, {}, None)
    prepared = kernel.specialized(storages)
    if not isinstance(prepared, Specialization):
        raise CompilerBug(str(shape), "one statement is one kernel")
    _ = prepared.stages  # dtypes without an atomic operation are rejected only here
    plainly = shape.kernel("interpret", scheduled=False)(*given).to_numpy()
    return Case(f"{shape}, {dtype}, operands of seed {seed}", prepared, storages, plainly)


def run(
    cells: Sequence[Cell], seed: int, first: int, repeats: int = REPEATS, tsan: Tool | None = None, folder: Path | None = None
) -> Found:
    """Run some cells, of which the first has this number."""
    found = Found()
    cases = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparseloomWarning)
        for number, cell in enumerate(cells, first):
            try:
                case = drawn(cell, seed, number, found)
            except Exception:  # noqa: BLE001 -- whatever compiling a legal schedule raises is a fault
                found.faults.append(f"cell {number}: {cell}\n{traceback.format_exc(limit=-3)}")
                continue
            if case is not None:
                found.ran[cell.result] += 1
                cases.append(case)
    load_together([case.prepared.stages for case in cases])
    for case in cases:
        _repeat(case, repeats, found)
    if tsan is not None and folder is not None:
        sanitize(cases, tsan, folder, found)
    return found


def _repeat(case: Case, repeats: int, found: Found) -> None:
    """Call a kernel again and again: the interpreter finds no race, and every call gives the same."""
    try:
        _same(case, case.prepared.bind(case.storages, "interpret").run(), "the interpreter")
        for threads in THREADS:
            with teams.threads(threads):
                call = case.prepared.bind(case.storages)
                for number in range(repeats):
                    found.calls += 1
                    _same(case, call.run(), f"call {number} on {threads} threads")
    except Exception:  # noqa: BLE001 -- so is whatever a call raises
        found.faults.append(f"{case.label}\n{traceback.format_exc(limit=-2)}")


def _same(case: Case, made: Storage, who: str) -> None:
    got = sl.Tensor(made).to_numpy()
    if got.dtype != case.want.dtype or not np.array_equal(got, case.want):
        raise AssertionError(f"{who} gives\n{got}\n  not\n{case.want}")


def sanitize(cases: Sequence[Case], tool: Tool, folder: Path, found: Found) -> None:
    """All cases in one program, in which each loop is dealt out evenly: a thread that comes late has its share all the same."""
    kernels = [kernel for case in cases if (kernel := kernel_of(case.label, case.prepared, case.storages)) is not None]
    source = folder / "races.c"
    source.write_text(evenly(program(kernels, UNDER_TSAN)), encoding="utf-8")
    built = tool.build(source)
    if built.returncode:
        found.faults.append(f"it cannot be compiled:\n{built.stderr[:3000]}")
        return
    found.checked += len(kernels)
    for k, text in reports(tool, source, len(kernels)).items():
        found.faults.append(f"{_label(kernels, k)}\n{text}")


def evenly(text: str) -> str:
    """The same kernels, of which every thread takes its share."""
    return _SCHEDULE.sub(lambda match: f"schedule(static{match[1] or ', 1'})", text)


def _label(kernels: Sequence[Kernel], number: int) -> str:
    return kernels[number].label if number >= 0 else "all of them together"
