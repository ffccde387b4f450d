"""Schedules on which the public implementation of the paper is wrong, crashes or gives up: the right values, or a refusal with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from paper.tensors import matrix

import sparseloom as sl
from sparseloom.core.trees import walk
from sparseloom.notation.nodes import Access

SIZES = {"i": 11, "j": 13, "k": 7, "l": 5, "i0": 3, "i1": 2, "p0": 4, "p1": 2}
Wanted = Callable[..., Any]


class Case(NamedTuple):
    """A statement, the formats of its tensors, a schedule, and the result from the operands in order of appearance."""

    name: str
    statement: str
    formats: str
    steps: str
    wanted: Wanted


def einsum(subscripts: str) -> Wanted:
    """A product, summed."""
    return lambda *operands: np.einsum(subscripts, *operands)


SPMV = ("y(i) = A(i,j) * x(j)", "A:ds")
SPGEMM = ("A(i,j) = B(i,k) * C(k,j)", "B:ds C:ds")
SPMV_WANTED, SPGEMM_WANTED = einsum("ij,j->i"), einsum("ik,kj->ij")

CASES = (
    Case("a_workspace_of_the_right_size", "A(i) = B(i) * 1", "B:s", "precompute(B(i)*1,i,iw,w)", einsum("i->i")),
    Case("a_sum_through_a_workspace", "a = B(k)", "B:s", "precompute(B(k),k,kw,w)", einsum("k->")),
    Case("a_workspace_between_reductions", "A(i) = B(i,k,j)", "B:dss", "precompute(B(i,k,j),k,kw,w)", einsum("ikj->i")),
    Case(
        "a_workspace_below_a_permuted_level",
        "A(i0,i1,j) = B(i0,i1,p0,p1) * C(p0,p1,j)",
        "B:dsdd:0,2,1,3",
        "precompute(B(i0,i1,p0,p1)*C(p0,p1,j),j,jw,w)",
        einsum("abpq,pqj->abj"),
    ),
    Case("blocks_of_a_row_inside_out", *SPMV, "split(j,j0,j1,16) reorder(j1,j0)", SPMV_WANTED),
    Case("short_blocks_of_a_row_inside_out", *SPMV, "split(j,j0,j1,3) reorder(j1,j0)", SPMV_WANTED),
    Case("a_row_shared_by_threads", *SPMV, "parallelize(j,CPUThread,Temporary)", SPMV_WANTED),
    Case("a_dense_operand_copied_first", *SPMV, "precompute(x(j),j,j,w)", SPMV_WANTED),
    Case("a_dense_operand_copied_once", *SPMV, "reorder(j,i) precompute(x(j),j,jw,w)", SPMV_WANTED),
    Case("unrolled_with_no_split", *SPMV, "unroll(j,4)", SPMV_WANTED),
    Case("vectors_with_no_split", *SPMV, "parallelize(j,CPUVector,ParallelReduction)", SPMV_WANTED),
    Case("compressed_rows_fused", "y(i) = A(i,j) * B(i,j)", "A:sd B:ss", "fuse(i,j,f)", einsum("ij,ij->i")),
    Case("compressed_rows_fused_by_positions", "y(i) = A(i,j) * B(i,j)", "A:sd B:ss", "fuse(i,j,f) pos(f,p,B(i,j))", einsum("ij,ij->i")),
    Case("columns_of_a_matrix_by_rows", *SPMV, "reorder(j,i)", SPMV_WANTED),
    Case("a_sparse_coordinate_loop_divided", *SPMV, "divide(j,j0,j1,3)", SPMV_WANTED),
    Case("sparse_loops_fused_without_positions", *SPMV, "fuse(i,j,f) split(f,f0,f1,8)", SPMV_WANTED),
    Case("positions_turned_back", *SPMV, "pos(j,p,A(i,j)) split(p,p0,p1,4) coord(p1,jc)", SPMV_WANTED),
    Case("all_positions_turned_back", *SPMV, "fuse(i,j,f) pos(f,p,A(i,j)) coord(p,g)", SPMV_WANTED),
    Case("a_lower_limit_that_is_known", *SPMV, "bound(i,ib,0,MinExact)", SPMV_WANTED),
    Case("a_lower_limit_that_is_bounded", *SPMV, "bound(i,ib,0,MinConstraint)", SPMV_WANTED),
    Case("an_upper_limit_that_is_known", *SPMV, "bound(i,ib,11,MaxExact)", SPMV_WANTED),
    Case("an_upper_limit_that_is_bounded", *SPMV, "bound(j,jb,64,MaxConstraint)", SPMV_WANTED),
    Case("positions_with_a_second_sparse_operand", "y(i) = A(i,j) * x(j)", "A:ds x:s", "pos(j,p,A(i,j)) split(p,p0,p1,4)", SPMV_WANTED),
    Case(
        "all_positions_with_a_second_sparse_operand",
        "y(i) = A(i,j) * B(i,j)",
        "A:ds B:ds",
        "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4) parallelize(p0,CPUThread,Atomics)",
        einsum("ij,ij->i"),
    ),
    Case("columns_fused", "y(i) = A(i,j) * x(j)", "A:ds:1,0", "fuse(j,i,f) pos(f,p,A(i,j)) split(p,p0,p1,4)", SPMV_WANTED),
    Case("a_product_of_rows_split", *SPGEMM, "split(i,r0,r1,4) parallelize(r0,CPUThread,NoRaces)", SPGEMM_WANTED),
    Case("a_product_of_rows_by_positions", *SPGEMM, "pos(k,q,B(i,k)) split(q,q0,q1,2)", SPGEMM_WANTED),
    Case("a_product_of_doubly_compressed_rows", SPGEMM[0], "B:ss C:ss", "split(i,r0,r1,4)", SPGEMM_WANTED),
    Case("three_factors", "A(i,j) = B(i,k) * C(k,l) * D(l,j)", "B:ds C:ds D:ds", "split(i,r0,r1,4)", einsum("ik,kl,lj->ij")),
    Case("a_product_and_a_sum", "A(i,j) = B(i,k) * C(k,j) + D(i,j)", "B:ds C:ds D:ds", "split(i,r0,r1,4)", lambda B, C, D: B @ C + D),
    Case("rows_and_columns_added", "A(i,j) = B(i,j) + C(i,j)", "B:ds C:ds:1,0", "split(i,r0,r1,4)", lambda B, C: B + C),
    Case("a_transposed_operand", "A(i,j) = B(j,i)", "B:ds", "split(i,r0,r1,4)", lambda B: B.T),
    Case("a_diagonal", "y(i) = A(i,i)", "A:ds", "split(i,r0,r1,4)", lambda A: np.diagonal(A)),
    Case(
        "a_tensor_times_a_vector_with_a_workspace",
        "A(i,j) = B(i,j,k) * c(k)",
        "B:sss",
        "fuse(i,j,f) fuse(f,k,g) pos(g,p,B(i,j,k)) split(p,p0,p1,8) split(p1,q0,q1,4) precompute(B(i,j,k)*c(k),q1,qw,w) unroll(qw,4)",
        einsum("ijk,k->ij"),
    ),
)


def operands(case: Case, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random operands of a statement; the variables have the sizes above."""
    assign = sl.program(case.statement).preview().stages.assign
    found = {}
    for access in (n for n in walk(assign.rhs) if isinstance(n, Access)):
        shape = tuple(SIZES[var.name] for var in access.indices)
        found[access.tensor.name] = matrix(rng, shape[0], int(np.prod(shape[1:])), 0.3).reshape(shape)
    return found


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_schedule_gives(case: Case, target: str, rng: np.random.Generator) -> None:
    given = operands(case, rng)
    formats = dict(item.split(":", 1) for item in case.formats.split())
    result = sl.program(case.statement, formats, case.steps, target=target)(**given)
    assert np.array_equal(result.to_numpy(), case.wanted(*given.values()))


# Sparse results whose entries come in no order: right with a workspace, or refused.
SPARSE_RESULTS = (
    Case("a_sparse_product", SPGEMM[0], "A:ds B:ds C:ds", "split(i,r0,r1,4)", SPGEMM_WANTED),
    Case("a_doubly_compressed_product", SPGEMM[0], "A:ss B:ss C:ss", "", SPGEMM_WANTED),
    Case("a_sparse_product_of_three", "A(i,j) = B(i,k) * C(k,l) * D(l,j)", "A:ds B:ds C:ds D:ds", "", einsum("ik,kl,lj->ij")),
    Case("a_sparse_product_and_a_sum", "A(i,j) = B(i,k) * C(k,j) + D(i,j)", "A:ds B:ds C:ds D:ds", "", lambda B, C, D: B @ C + D),
)


@pytest.mark.parametrize("case", SPARSE_RESULTS, ids=lambda case: case.name)
def test_a_sparse_result_is_right_or_refused(case: Case, rng: np.random.Generator) -> None:
    given = operands(case, rng)
    formats = dict(item.split(":", 1) for item in case.formats.split())
    try:
        result = sl.program(case.statement, formats, case.steps, target="interpret")(**given)
    except (sl.NotationError, sl.ScheduleError) as refusal:
        assert "help: " in str(refusal)
    else:
        assert np.array_equal(result.to_numpy(), case.wanted(*given.values()))


REFUSED = (
    ("a_union_by_positions_of_one_operand", "y(i) = A(i,j) + B(i,j)", "A:ds B:ds", "pos(j,p,A(i,j))", "S412"),
    ("a_row_shared_with_no_strategy", *SPMV, "parallelize(j,CPUThread,NoRaces)", "S851"),
    ("positions_of_a_block_number", *SPMV, "split(j,j0,j1,4) pos(j0,p,A(i,j))", "S406"),
    ("positions_against_the_storage_order", *SPMV, "reorder(j,i) fuse(j,i,f) pos(f,p,A(i,j))", "S407"),
    ("an_unknown_variable", *SPMV, "split(q,q0,q1,4)", "S102"),
    ("an_unknown_tensor", *SPMV, "pos(j,p,Q(i,j))", "S005"),
    ("an_unknown_step", *SPMV, "tile(i,i0,i1,4)", "S002"),
)


@pytest.mark.parametrize(("statement", "formats", "steps", "code"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_schedule_is_refused(statement: str, formats: str, steps: str, code: str) -> None:
    with pytest.raises(sl.ScheduleError) as caught:
        sl.program(statement, dict(item.split(":", 1) for item in formats.split()), steps)
    assert str(caught.value).startswith(f"[{code}] cannot ")


def test_a_bound_that_does_not_hold_raises(rng: np.random.Generator) -> None:
    A, x = matrix(rng, 11, 13, 0.3), np.ones(13)
    with pytest.raises(sl.ShapeError, match="bound"):
        sl.program(*SPMV[:1], {"A": "ds"}, "bound(i,ib,12,MaxExact)", target="interpret")(A, x)
