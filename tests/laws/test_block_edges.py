"""Blocks of positions that meet in one place: only the first and last run of a block can, unless a level above is summed over."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import sparseloom as sl

FUSED = "reorder(i, j, k) fuse(j, k, jk) fuse(i, jk, f) pos(f, p, B(i,j,k)) split(p, p0, p1, {size}) parallelize(p0, CPUThread, {races})"
TTM = "A(i,j,l) = B(i,j,k) * C(k,l)"
WARPS = (
    "reorder(i, j, k, l) fuse(j, k, jk) fuse(i, jk, f) pos(f, p, B(i,j,k)) split(p, block, p1, 16) split(p1, warp, nz, 4) "
    "bound(l, lb, 4, MaxExact) parallelize(block, GPUBlock, IgnoreRaces) parallelize(warp, GPUWarp, IgnoreRaces) "
    "parallelize(lb, GPUThread, Atomics)"
)


def tensor() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(1, 5, (4, 5, 6)) * (rng.random((4, 5, 6)) < 0.5)


@pytest.mark.parametrize("form", ["csf", "dds", "uqq", "dss", "sds", "ddd"])
@pytest.mark.parametrize("left", ["ijk", "ij", "ik", "jk", "i", "j", "k", "", "ji", "kj"])
def test_every_place_gets_every_entry(left: str, form: str) -> None:
    """The interpreter reports a place that one thread writes plainly and another one atomically."""
    B, place = tensor(), f"y({','.join(left)})" if left else "y"
    for races, size in product(("Atomics", "Temporary"), (3, 7)):
        kernel = sl.program(f"{place} = B(i,j,k)", {"B": form}, FUSED.format(size=size, races=races), target="interpret")
        np.testing.assert_array_equal(kernel(B).to_numpy(), np.einsum(f"ijk->{left}", B))


@pytest.mark.parametrize("form", ["csf", "dds", "uqq", "dss"])
@pytest.mark.parametrize("target", ["interpret", "c"])
def test_a_run_is_private_and_not_a_slice(form: str, target: str) -> None:
    B, C = tensor(), np.arange(24).reshape(6, 4)
    steps = f"reorder(i, j, k, l) {FUSED.format(size=4, races='Atomics')}"
    kernel = sl.program(TTM, {"B": form}, steps, target=target)
    np.testing.assert_array_equal(kernel(B, C).to_numpy(), np.einsum("ijk,kl->ijl", B, C))
    assert form == "uqq" or "allocate A_vals_row: int64[l_size]" in kernel.show("loops")  # COO has no level of rows


@pytest.mark.parametrize("form", ["csf", "dds", "uqq", "dss"])
def test_lanes_in_warps_over_three_fused_levels(form: str) -> None:
    B, C = tensor(), np.arange(24).reshape(6, 4)
    kernel = sl.program(TTM, {"B": form}, WARPS, target="interpret")
    np.testing.assert_array_equal(kernel(B, C).to_numpy(), np.einsum("ijk,kl->ijl", B, C))
