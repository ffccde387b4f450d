"""What each part of the planner decides, on its own: leaves, vectors, blocks, sums, threads and units of a GPU."""

from __future__ import annotations

import pytest
from plan.test_golden_plans import space_of
from primitives.statements import schedule

from sparseloom.core.names import Names
from sparseloom.iteration.foralls import taken_names
from sparseloom.notation.nodes import IndexVar, Races, Unit
from sparseloom.plan.blocks import block_of, choose_blocks
from sparseloom.plan.compose import Steps, after, composed
from sparseloom.plan.flat import choose_flat, flat_operand
from sparseloom.plan.gpu import choose_on_gpu
from sparseloom.plan.space import Space
from sparseloom.plan.sums import sum_inside
from sparseloom.plan.threads import choose_threads, every_way
from sparseloom.plan.vectors import LeafKind, choose_rows, choose_vectors, leaf_of
from sparseloom.schedule.schedule import Schedule
from sparseloom.targets.cuda import CUDA

EVEN = "A: even, fans 20000 16, longest 32"
SPMV = f"y(i) = A(i,j) * x(j) | A:csr | i=20000 j=20000 | {EVEN}"
SPMM = f"C(i,k) = A(i,j) * B(j,k) | A:csr | i=20000 j=20000 k=32 | {EVEN}"
GEMM = "C(i,k) = A(i,j) * B(j,k) | | i=512 j=512 k=512 |"
i, j, k = map(IndexVar, "ijk")


def names_of(space: Space) -> Names:
    return Names(taken_names(space.stmt))


@pytest.mark.parametrize(
    ("heading", "kind", "driver"),
    [
        (SPMV, LeafKind.GATHER, "A"),
        ("y(i) = A(i,j) * x(j) | | i=500 j=500 |", LeafKind.DOT, None),
        ("C(i,j) = A(i,j) + B(i,j) | | i=500 j=500 |", LeafKind.ROW, None),
    ],
)
def test_an_innermost_loop_is_a_row_a_dot_product_or_a_gather(heading: str, kind: LeafKind, driver: str | None) -> None:
    _, space = space_of(heading)
    leaf = leaf_of(space, space.paths[0])
    assert leaf is not None and leaf.kind is kind and leaf.var == j
    assert (None if leaf.driver is None else leaf.driver.tensor.name) == driver


def test_a_loop_that_reads_in_strides_has_no_leaf() -> None:
    _, space = space_of("C(i,j) = A(j,i) | | i=500 j=500 |")
    assert leaf_of(space, space.paths[0]) is None


def test_rows_of_results_move_outside_of_sums_and_become_vectors() -> None:
    loops, space = space_of(SPMM)
    found = [decision for decision in choose_vectors(space, names_of(space)) if "registers" in decision.what]
    assert [str(step) for step in found[0].steps] == [
        "bound(k, kb, 32, MaxExact)", "reorder(i, kb, j)", "parallelize(kb, CPUVector, NoRaces)",
    ]  # fmt: skip
    assert composed(loops, found[0].steps) == Schedule(loops).then(*found[0].steps).concrete


def test_a_loop_over_neighbours_moves_inside_a_sum_that_strides() -> None:
    _, plain = space_of("y(k) = B(j,k) * x(j) | | j=500 k=500 |")
    space = Space(schedule("y(k) = B(j,k) * x(j)", "", "reorder(k,j)").stmt, plain.sizes, plain.statistics, plain.machine)
    (decision,) = choose_rows(space, names_of(space))
    assert decision.what == "k runs inside j" and decision.why == "values of B stand side by side along k, and apart along j"
    assert choose_rows(space_of(SPMV)[1], Names([])) == []


def test_blocks_need_an_operand_that_all_rows_share() -> None:
    _, space = space_of(GEMM)
    block = block_of(space)
    assert block is not None and (block.row, block.sums, block.lane) == (i, (j,), k) and block.shared.tensor.name == "B"
    decisions = choose_blocks(space, names_of(space), in_threads=True)
    assert [decision.steps[-1].word() for decision in decisions][-1] == "parallelize"
    assert block_of(space_of(SPMM)[1]) is None and choose_blocks(space_of(SPMV)[1], Names([]), in_threads=False) == []


def test_a_sum_that_only_some_factors_need_goes_inside() -> None:
    loops, space = space_of(
        "Y(i,l) = A(i,j) * C(i,k) * D(j,k) * E(j,l) | A:csr | i=20000 j=20000 k=32 l=32 | A: even, fans 20000 16, longest 32"
    )
    inside = sum_inside(loops, space)
    assert inside is not None and inside.space.runs < space.runs / 10
    assert inside.decision.what.startswith("C(i,k) * D(j,k) is summed over k first")
    assert sum_inside(*space_of(SPMM)) is None


def test_threads_share_rows_or_make_copies() -> None:
    _, space = space_of(SPMV)
    (by_rows,) = choose_threads(space, space.paths[0].assign.lhs)
    shared = by_rows(names_of(space))
    assert shared.decision.steps[-1].races is Races.NoRaces and not shared.in_one_loop  # type: ignore[attr-defined]
    _, summed = space_of("s = b(i) * c(i) | | i=4000000 |")
    (copies,) = choose_threads(summed, summed.paths[0].assign.lhs)
    assert copies(names_of(summed)).decision.steps[-1].races is Races.Temporary  # type: ignore[attr-defined]
    assert len(every_way(space, space.paths[0].assign.lhs)) > 2


def test_ways_on_a_gpu_end_with_a_thread_for_every_row() -> None:
    loops, space = space_of(SPMV, target=CUDA)
    ways = list(choose_on_gpu(loops, space))
    assert "lanes for every row" in ways[0].what and ways[-1].what == "a thread for every i"
    ordered = list(choose_on_gpu(*space_of("s = A(i,j) | A:csr | i=20000 j=20000 | " + EVEN, target=CUDA), ordered=True))
    assert Races.Temporary in {getattr(step, "races", None) for step in ordered[0].steps}


def test_only_values_are_walked_in_one_loop() -> None:
    loops, space = space_of("s = A(i,j) * A(i,j) | A:csr | i=20000 j=20000 | " + EVEN)
    access = flat_operand(loops, space)
    assert access is not None and access.tensor.name == "A"
    (choice,) = choose_flat(loops, space)
    assert choice.decisions[0].what.startswith("one loop over the entries of A")
    assert composed(loops, choice.steps) is not None
    assert flat_operand(*space_of(SPMV)) is None, "x is read at coordinates"


def test_steps_take_names_that_are_free_and_are_done_once() -> None:
    loops, space = space_of(SPMV)
    steps = Steps(names_of(space))
    outer, inner = steps.split(i, 32, "i", "j")
    steps.parallelize(outer, Unit.CPUThread, Races.NoRaces)
    assert {outer, inner}.isdisjoint({i, j})
    made = composed(loops, steps.all())
    assert made is not None and made is composed(loops, steps.all())
    assert after(loops, steps.all()[:1]) is after(loops, steps.all()[:1])
    refused = Steps(names_of(space))
    refused.parallelize(j, Unit.CPUThread, Races.NoRaces)
    assert composed(loops, refused.all()) is None
