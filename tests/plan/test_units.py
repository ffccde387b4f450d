"""A plan uses only the units that its target has, and as many lanes as a warp of it has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plan.test_golden_plans import USUAL, space_of

from sparseloom.notation.nodes import Unit
from sparseloom.plan.choose import choices, variants
from sparseloom.plan.machine import Machine
from sparseloom.schedule.primitives import Parallelize
from sparseloom.targets.c import C
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.target import CPU_UNITS, Target

HEADINGS = (
    "y(i) = A(i,j) * x(j) | A:csr | i=20000 j=20000 | A: uneven, fans 20000 100, longest 4096, imbalance 2",
    "y(i) = A(i,j) * x(j) | A:csr | i=500 j=500 | A: even, fans 500 3000, longest 4096",
    "C(i,k) = A(i,j) * B(j,k) | A:csr | i=20000 j=20000 k=32 | A: even, fans 20000 16, longest 32",
    "C(i,k) = A(i,j) * B(j,k) | | i=512 j=512 k=512 |",
    "C(i,j) = A(i,j) * b(i) | A:csr C:csr | i=400000 j=400000 | A: heavy, fans 400000 100, longest 65536",
    "Y(i,l) = A(i,j) * C(i,k) * D(j,k) * E(j,l) | A:csr | i=20000 j=20000 k=32 l=32 | A: even, fans 20000 16, longest 32",
)
NO_UNITS = replace(C, name="plain", units=())
NO_THREADS = replace(C, name="lanes", units=CPU_UNITS[1:])
NO_LANES = replace(C, name="threads", units=CPU_UNITS[:1])


def units(heading: str, target: Target, machine: Machine = USUAL) -> set[Unit]:
    """The units of all schedules that may be chosen."""
    loops, space = space_of(heading, machine, target)
    found = [*choices(loops, space), *variants(loops, space)]
    return {step.unit for choice in found for step in choice.steps if isinstance(step, Parallelize)}


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize(
    ("target", "allowed"),
    [(NO_UNITS, set()), (NO_THREADS, {Unit.CPUVector}), (NO_LANES, {Unit.CPUThread}), (C, {Unit.CPUThread, Unit.CPUVector})],
    ids=lambda found: found.name if isinstance(found, Target) else "",
)
def test_no_schedule_asks_for_a_unit_that_the_target_lacks(heading: str, target: Target, allowed: set[Unit]) -> None:
    assert units(heading, target) <= allowed


def test_all_units_of_a_target_are_used() -> None:
    assert set().union(*(units(heading, C) for heading in HEADINGS)) == {Unit.CPUThread, Unit.CPUVector}
    assert set().union(*(units(heading, CUDA) for heading in HEADINGS)) == {Unit.GPUBlock, Unit.GPUWarp, Unit.GPUThread}


def test_a_compiler_without_threads_gets_no_loop_for_threads() -> None:
    assert units(HEADINGS[0], C, Machine(has_threads=lambda: False)) == {Unit.CPUVector}


def test_vectors_are_chosen_where_there_are_no_threads() -> None:
    loops, space = space_of(HEADINGS[3], target=NO_THREADS)
    first = next(choices(loops, space))
    assert [step.compact for step in first.steps if isinstance(step, Parallelize)] == ["parallelize(k1,CPUVector,NoRaces)"]


@pytest.mark.parametrize("lanes", [32, 64])
def test_a_row_is_given_to_as_many_lanes_as_a_warp_has(lanes: int) -> None:
    loops, space = space_of(HEADINGS[0], target=replace(CUDA, lanes=lanes))
    found = [decision.what for choice in choices(loops, space) for decision in choice.decisions]
    assert f"{lanes} lanes for every row" in found
