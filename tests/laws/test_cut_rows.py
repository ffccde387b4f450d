"""Blocks of fused loops that end within a row of a compressed result: the next block goes on with the row."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl

MATRIX = "C(i,j) = A(i,j) * B(i,j)"
CUTS = ("fuse(i,j,f) split(f,f0,f1,{})", "fuse(i,j,f) divide(f,f0,f1,{})", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,{})")
TENSOR = "C(i,j,k) = A(i,j,k) * x(k)"
DEEP = ("fuse(i,j,f) fuse(f,k,g) split(g,g0,g1,{})", "fuse(i,j,f) fuse(f,k,g) pos(g,p,A(i,j,k)) split(p,p0,p1,{})")


def entries(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Small whole numbers, most of them zero."""
    return rng.integers(1, 5, shape) * (rng.random(shape) < 0.4)


def same(made: sl.Tensor, wanted: np.ndarray, form: str) -> bool:
    """Whether a result is stored as if it had been packed: no row twice, and nothing but its entries."""
    packed = sl.asarray(wanted).to(form)
    arrays = zip(made.storage.indices, packed.storage.indices, strict=True)
    return np.array_equal(made.to_numpy(), wanted) and all(np.array_equal(a[: len(b)], b) for a, b in arrays)


@pytest.mark.parametrize(("size", "target"), [(1, "interpret"), (2, "c"), (5, "interpret"), (64, "interpret")])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("form", ("csr", "dcsr"))
def test_rows_are_appended_once(form: str, cut: str, size: int, target: str, rng: np.random.Generator) -> None:
    A, B = entries(rng, 9, 7), entries(rng, 9, 7)
    kernel = sl.program(MATRIX, {"A": form, "B": "dcsr", "C": "dcsr"}, cut.format(size), target=target)
    assert same(kernel(A, B), A * B, "dcsr")


@pytest.mark.parametrize(("size", "target"), [(1, "interpret"), (3, "c"), (64, "interpret")])
@pytest.mark.parametrize("cut", DEEP)
def test_rows_of_rows_are_appended_once(cut: str, size: int, target: str, rng: np.random.Generator) -> None:
    A, x = entries(rng, 4, 5, 6), np.arange(1, 7)
    kernel = sl.program(TENSOR, {"A": "csf", "C": "sss"}, cut.format(size), target=target)
    assert same(kernel(A, x), A * x, "sss")


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize("threads", ("", "parallelize(i,CPUThread,NoRaces) "))
def test_rows_below_a_loop_outside_go_on(threads: str, target: str, rng: np.random.Generator) -> None:
    """The row above is still being made when a block cuts what stands below it."""
    A, x = entries(rng, 4, 5, 6), np.arange(1, 7)
    kernel = sl.program(TENSOR, {"A": "csf", "C": "sss"}, threads + "fuse(j,k,f) split(f,f0,f1,4)", target=target)
    assert same(kernel(A, x), A * x, "sss")


def test_what_is_counted_first_is_not_cut() -> None:
    with pytest.raises(sl.ScheduleError, match="S611"):
        sl.program(MATRIX, {"A": "csr", "B": "dcsr", "C": "dcsr"}, CUTS[0].format(4) + " assemble(C, Insert)")
