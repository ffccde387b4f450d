"""float16 and bfloat16 on a real device: every bit pattern, kernels that round once, and memory shared with PyTorch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl

pytestmark = pytest.mark.gpu
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
ROWS = "split(i,b,t,128) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)"
ENTRIES = "fuse(i,j,f) pos(f,p,A(i,j)) split(p,b,t,128) parallelize(b,GPUBlock,Atomics) parallelize(t,GPUThread,Atomics)"
COPY = "split(i,b,t,256) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)"


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_every_pattern_is_read_and_rounded(half: np.dtype) -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(half)
    with np.errstate(all="ignore"):
        wide = halves.astype(np.float32)
    k = sl.program("y(i) = x(i)", schedule=COPY, target="cuda")
    missing = np.isnan(wide)
    np.testing.assert_array_equal(k(halves).to_numpy().view(np.uint16)[~missing], halves.view(np.uint16)[~missing])
    k = sl.program("y(i) = x(i)", schedule=COPY, target="cuda", dtype="float32")
    np.testing.assert_array_equal(k(halves).to_numpy()[~missing], wide[~missing])
    numbers = np.random.default_rng(0).integers(0, 2**32, 2**20, dtype=np.uint32).view(np.float32)
    got = sl.program("y(i) = x(i)", schedule=COPY, target="cuda", dtype=str(half))(numbers).to_numpy()
    with np.errstate(all="ignore"):
        want = numbers.astype(half)
        missing = np.isnan(want.astype(np.float32))
    np.testing.assert_array_equal(got.view(np.uint16)[~missing], want.view(np.uint16)[~missing])
    assert np.isnan(got[missing].astype(np.float32)).all()


def operands(half: np.dtype) -> tuple[Any, Any, np.ndarray]:
    """Whole numbers, whose sums are exact in float32."""
    rng = np.random.default_rng(3)
    A = sp.random_array((3000, 2000), density=0.02, format="csr", rng=rng)
    A.data = rng.integers(-20, 40, A.nnz).astype(np.float32)
    x = rng.integers(-15, 40, (2000, 8)).astype(np.float32)
    return sl.asarray(A).astype(half).to_device(), x.astype(half), (A @ x).astype(np.float32)


@pytest.mark.parametrize("schedule", (ROWS, ENTRIES, None))
@pytest.mark.parametrize("half", HALVES, ids=str)
def test_products_are_rounded_once(half: np.dtype, schedule: str | None) -> None:
    A, x, exact = operands(half)
    y = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule=schedule, target="cuda")(A, x[:, 0].copy())
    assert y.dtype == half
    np.testing.assert_array_equal(y.to_numpy().view(np.uint16), exact[:, 0].astype(half).view(np.uint16))
    if schedule is None:
        made = sl.program("Y(i,k) = A(i,j) * X(j,k)", formats={"A": "csr"}, target="cuda")(A, x)
        np.testing.assert_array_equal(made.to_numpy().view(np.uint16), exact.astype(half).view(np.uint16))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_pytorch_shares_its_memory(half: np.dtype) -> None:
    torch = pytest.importorskip("torch")
    A, x, exact = operands(half)
    theirs = getattr(torch, str(half))
    there = torch.tensor(x[:, 0].astype(np.float32)).to(theirs).cuda()
    assert sl.asarray(there).dtype == half
    y = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, target="cuda")(A, there)
    back = y.to_torch()
    assert back.dtype == theirs and back.is_cuda and back.data_ptr() == y.storage.values.address
    np.testing.assert_array_equal(back.float().cpu().numpy(), exact[:, 0].astype(half).astype(np.float32))
    matrix = A.to_torch()
    assert matrix.dtype == theirs and sl.asarray(matrix).dtype == half
