"""Schedules of operands stored in blocks: the variables of their levels are cut, fused and counted in any order of steps."""

from __future__ import annotations

from itertools import islice
from random import Random

import numpy as np
import pytest
from fuzz.blocked import blocked_cases, blocked_format
from fuzz.operands import closure
from fuzz.runner import Job
from fuzz.scheduled_runner import attempt, compare, shrink
from fuzz.schedules import COUNTING, Drawn, draw_steps

import sparseloom as sl
from sparseloom.formats.text import as_format
from sparseloom.iteration.layout import plain
from sparseloom.schedule.primitive import Primitive

CHUNKS = 4
# Blocks of several levels are counted in one loop, and the loops inside settle the variables of the statement, which nothing reads.
SUMS = (
    ("bcsr(2,2)", "fuse(i_block,j_block,f) pos(f,p,A(i,j))"),
    ("bcsr(2,2)", "fuse(i_block,j_block,f) split(f,f0,f1,2) pos(f1,p,A(i,j)) reorder(j_within,i_within)"),
    ("bcsr(2,2)", "fuse(i_block,j_block,f) pos(f,p,A(i,j)) split(p,p0,p1,2) reorder(p1,p0)"),
    ("bcsr(2,2)", "fuse(i_block,j_block,f) pos(f,p,A(i,j)) reorder(i_within,p)"),
    (
        "bcsr(2,2)",
        "split(j_within,jo1,ji1,5) divide(i_block,io2,ii2,3) fuse(ii2,j_block,f4) parallelize(ji1,CPUThread,Temporary) "
        "divide(io2,io6,ii6,8) pos(f4,p8,A(i,j))",
    ),
    ("ssdd:0,1,0,1/1,2", "reorder(j_within,i_within) fuse(i_block,j_block,f2) bound(f2,b5,0,MinConstraint) pos(b5,p8,A(i,j))"),
    ("bcsr(3,2)", "split(i_within,io,ii,2) fuse(i_block,j_block,f) pos(f,p,A(i,j)) split(p,p0,p1,3) coord(p1,c)"),
    ("ddss:1,0,1,0/2,3", "fuse(j_block,i_block,f) pos(f,p,A(i,j)) fuse(j_within,i_within,g) pos(g,q,A(i,j))"),
)
NEAREST = (
    ("bcsr(2,2)", "csr"), ("sd:0,0/2", "s"), ("ds:0,0/2", "s"), ("sdss:0,1,0,1/2,1", "dcsr"), ("sddd:0,1,0,1/2,1", "sd"),
    ("ddds:0,1,0,1/2,2", "csr"),
)  # fmt: skip


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize("shape", ((8, 9), (5, 7), (1, 0)))
@pytest.mark.parametrize("statement", ("R = A(i,j) * 1.5", "R = sum(i, sum(j, exp(A(i,j)) * A(i,j)))"))
@pytest.mark.parametrize(("form", "schedule"), SUMS)
def test_positions_of_blocks_settle_the_variables_of_a_sum(
    form: str, schedule: str, statement: str, shape: tuple[int, int], target: str, rng: np.random.Generator
) -> None:
    A = sl.asarray(rng.integers(1, 5, shape) * (rng.random(shape) < 0.4) * 1.0).to(form)
    made, expected = (sl.program(statement, {"A": form}, text, target=target)(A).to_numpy() for text in (schedule, ""))
    np.testing.assert_allclose(made, expected, rtol=1e-13)


def _counting(job: Job, drawn: Drawn) -> tuple[Primitive, ...]:
    return draw_steps(job.case, job.prepared.unscheduled(), drawn, COUNTING)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_schedule_of_blocks_never_changes_the_result(chunk: int, seed: int, case_count: int) -> None:
    tally = compare(blocked_cases(seed, 5000 + chunk), max(case_count // 10, 200) // CHUNKS, choose=_counting)
    texts = [f"{scheduled}\n{problem}" for scheduled, problem in tally.failures]
    texts += [f"the first, made small:\n{small}\n{attempt(small)}" for small in map(shrink, [one for one, _ in tally.failures[:1]])]
    assert not texts, "\n\n".join(texts)


@pytest.mark.parametrize(("form", "nearest"), NEAREST)
def test_the_nearest_format_without_blocks_is_sparse_where_levels_within_blocks_are(form: str, nearest: str) -> None:
    order = max(as_format(form).modes) + 1
    assert plain(as_format(form)) == as_format(nearest, order)


def test_a_format_without_blocks_stores_what_the_blocks_stored(seed: int) -> None:
    random, rng = Random(seed), np.random.default_rng(seed)
    for order in islice(iter(lambda: random.randint(1, 3), 0), 300):
        form = as_format(blocked_format(order, random), order)
        stored = closure(form, rng.random(tuple(rng.integers(0, 6, order))) < 0.2)
        near = plain(form)
        assert not near.blocks
        assert np.array_equal(closure(near, stored), stored), (form, near)


@pytest.mark.parametrize("target", ("interpret", "c"))
def test_entries_that_blocks_do_not_store_stay_absent_when_they_are_converted(target: str) -> None:
    a, b = np.array([0.0, 3.0, 0.0, 0.0]), np.array([1.0, 0.0, 2.0, 0.0])
    made = sl.program("R(i) = A(i) + B(i)", {"A": "ds:0,0/2", "B": "s", "R": "s"}, target=target)(a, b)
    assert made.nnz == 3
    assert made.to_numpy().tolist() == [1, 3, 2, 0]
