"""Blocks of results in registers: rows that go through a sum in vectors together, whole blocks and what is left over."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from together import compile_together

import sparseloom as sl

PRODUCT = "C(i,k) = A(i,j) * B(j,k)"
PLANNED = [
    (PRODUCT, "ij,jk->ik", ((61, 40), (40, 43)), "reorder(i0,k,i1,j)"),
    (PRODUCT, "ij,jk->ik", ((50, 700), (700, 101)), "precompute(B(j,k),{j,k1},{jw,k1w},w)"),
    ("C(b,i,k) = A(b,i,j) * B(b,j,k)", "bij,bjk->bik", ((3, 34, 19), (3, 19, 40)), "reorder(b,i0,k,i1,j)"),
    ("C(i,k) = A(j,i) * B(j,k)", "ji,jk->ik", ((50, 40), (50, 40)), "reorder(i0,k,i1,j)"),
    ("C(i,k) = A(i,j,l) * B(j,l,k)", "ijl,jlk->ik", ((33, 9, 8), (9, 8, 36)), "reorder(i0,k,i1,j,l)"),
    ("C(i,k) = A(i,j) * B(j,k) * x(k)", "ij,jk,k->ik", ((37, 30), (30, 65), (65,)), "reorder(i0,k,i1,j)"),
]
IN_PLACE = "split(i,i0,i1,{rows}) reorder(i0,k,i1,j) unroll(i1,{rows}) unroll(k,8) parallelize(k,CPUVector,NoRaces)"
PACKED = (
    "split(k,k0,k1,8) reorder(k0,j,k1,i) precompute(B(j,k),{{j,k1}},{{jw,kw}},w) split(i,i0,i1,{rows}) reorder(i0,k1,i1,j) "
    "unroll(i1,{rows}) unroll(k1,8) parallelize(k1,CPUVector,NoRaces) parallelize(k0,CPUThread,NoRaces)"
)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_the_planner_keeps_blocks_in_registers_where_rows_share_an_operand(dtype: str, rng: np.random.Generator) -> None:
    kernels, given = [], []
    for text, _, shapes, step in PLANNED:
        operands = [rng.integers(0, 5, shape).astype(dtype) for shape in shapes]
        planned = sl.plan(text, *operands, optimize=True)
        assert step in planned and "unroll(i1,6)" in planned, planned
        kernels.append(sl.program(planned))
        given.append(operands)
    compile_together(zip(kernels, given, strict=True))
    for (_, subscripts, _, _), kernel, operands in zip(PLANNED, kernels, given, strict=True):
        np.testing.assert_array_equal(kernel(*operands).to_numpy(), np.einsum(subscripts, *operands))


def test_whole_blocks_and_what_is_left_over() -> None:
    each = list(product((IN_PLACE, PACKED), (2, 5), ("interpret", "c"), (PRODUCT, PRODUCT.replace("=", "+="))))
    kernels = [sl.program(text, schedule=steps.format(rows=rows), target=target) for steps, rows, target, text in each]
    shapes = ((10, 3, 16), (11, 4, 19), (1, 2, 8), (5, 0, 9), (0, 3, 8), (3, 2, 0))
    compile_together((kernel, (np.ones((4, 2)), np.ones((2, 9)))) for kernel, how in zip(kernels, each, strict=True) if how[3] == PRODUCT)
    for (_, _, _, text), kernel in zip(each, kernels, strict=True):
        for i, j, k in shapes:
            A, B, C = np.arange(i * j).reshape(i, j) % 7.0, np.arange(j * k).reshape(j, k) % 5.0, np.ones((i, k))
            found = kernel(A, B) if text == PRODUCT else kernel(A=A, B=B, C=C)
            np.testing.assert_array_equal(found.to_numpy(), A @ B + (0 if text == PRODUCT else C))


def test_rows_stay_apart_where_their_sums_differ() -> None:
    steps = "split(i,i0,i1,4) reorder(i0,k,i1,j) unroll(i1,4) parallelize(k,CPUVector,NoRaces)"
    kernel = sl.program(PRODUCT, {"A": "csr"}, steps)
    together = sl.program(PRODUCT, schedule=steps)
    assert "_lanes_of" in together.source and "_lanes_of" not in kernel.source  # rows of A end where they end
    A, B = np.arange(42).reshape(7, 6) % 4.0, np.arange(102).reshape(6, 17) % 5.0
    for made in (kernel, together):
        np.testing.assert_array_equal(made(A, B).to_numpy(), A @ B)
