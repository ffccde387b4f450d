"""Calls with target="cuda" on a stand-in for a device: operands go there, launches are prepared once, results stay there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from device.neighbours import ndarray
from device.stand_in import StandIn

import sparseloom as sl
from sparseloom.calls.evaluation import _einsum_kernel, kernel_for
from sparseloom.core.errors import DeviceError
from sparseloom.formats.storage import open_up
from sparseloom.programs import large

ROWS = "split(i,b,t,32) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)"
SPMV = "y(i) = A(i,j) * x(j)"


def spmv(**options: object) -> sl.Kernel:
    return sl.program(SPMV, {"A": "csr"}, ROWS, target="cuda", **options)


@pytest.fixture
def A() -> sp.csr_array:
    return sp.random_array((100, 80), density=0.1, format="csr", rng=np.random.default_rng(7))


@pytest.fixture
def x() -> np.ndarray:
    return np.arange(80.0)


def test_operands_of_numpy_and_scipy_are_copied_in(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    y = spmv()(A, x)
    assert (y.device, y.storage.device) == ("cuda", "cuda")
    assert [line for line in device.log if line.startswith("launch")] == ["launch entry_0 4 x 32"]
    assert "copy out" not in " ".join(device.log)
    np.testing.assert_allclose(y.to_numpy(), A @ x)


def test_the_second_call_reads_new_values(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    kernel = spmv()
    kernel(A, x)
    x[:] = 1
    np.testing.assert_allclose(kernel(A, x).to_numpy(), A @ x)


def test_tensors_on_the_device_are_used_where_they_are(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    kernel, B, v = spmv(), sl.asarray(A).to_device(), sl.asarray(x).to_device()
    first = kernel(B, v)
    device.log.clear()
    second = kernel(B, v)
    assert device.log == ["allocate 800", "launch entry_0 4 x 32"]
    np.testing.assert_allclose(first.to_numpy(), A @ x)
    np.testing.assert_allclose(second.to_numpy(), A @ x)


def test_a_bound_kernel_only_launches(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    run = spmv().bind(sl.asarray(A).to_device(), sl.asarray(x).to_device())
    y = run()
    device.log.clear()
    assert run() is y
    run.start()
    assert device.log == ["launch entry_0 4 x 32"] * 2
    np.testing.assert_allclose(y.to_numpy(), A @ x)


def test_a_bound_kernel_copies_arrays_of_numpy_again(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    run = spmv().bind(A, x)
    run()
    x[:] = 3
    np.testing.assert_allclose(run().to_numpy(), A @ x)


def test_results_with_the_structure_of_an_operand(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    kernel = sl.program("C(i,j) = A(i,j) * x(j)", {"A": "csr", "C": "csr"}, ROWS, target="cuda")
    B = sl.asarray(A).to_device()
    C = kernel(B, x)
    assert (C.device, C.nnz, C.format) == ("cuda", A.nnz, B.format)
    assert C.storage.levels[1].arrays["pos"] is B.storage.levels[1].arrays["pos"]
    np.testing.assert_allclose(C.to_numpy(), A.toarray() * x)


def test_an_output_on_the_device_is_filled(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    y = sl.zeros(100).to_device()
    kernel = spmv()
    assert kernel(A, x, out=y) is y
    np.testing.assert_allclose(y.to_numpy(), A @ x)
    with pytest.raises(DeviceError, match="out is in main memory, where CUDA cannot write to it"):
        kernel(A, x, out=sl.zeros(100))


def test_an_output_that_is_read_too(device: StandIn) -> None:
    kernel = sl.program("y(i) = x(i) * x(i)", schedule=ROWS, target="cuda")
    x = sl.asarray(np.arange(40.0)).to_device()
    assert kernel(x, out=x) is x
    np.testing.assert_allclose(x.to_numpy(), np.arange(40.0) ** 2)


def test_sums_onto_what_was_there(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    kernel = sl.program("y(i) += A(i,j) * x(j)", {"A": "csr"}, ROWS, target="cuda")
    start = np.ones(100)
    np.testing.assert_allclose(kernel(A, x, y=start).to_numpy(), 1 + A @ x)
    there = sl.asarray(start).to_device()
    np.testing.assert_allclose(kernel(A, x, y=there).to_numpy(), 1 + A @ x)
    np.testing.assert_array_equal(there.to_numpy(), start)


def test_a_tensor_in_main_memory_is_not_moved(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    with pytest.raises(DeviceError) as caught:
        spmv()(sl.asarray(A), x)
    assert str(caught.value) == (
        "A is a tensor in main memory, and CUDA computes on the device\n  help: copy it once, with A.to_device()"
    )


def test_a_tensor_on_the_device_stays_there(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    kernel = sl.program(SPMV, {"A": "csr"})
    with pytest.raises(DeviceError) as caught:
        kernel(sl.asarray(A).to_device(), x)
    assert str(caught.value) == (
        "A is on cuda, and C computes in main memory\n  help: copy with A.to_host(), or compute there with target='cuda'"
    )


def test_operators_say_where_operands_are(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    there = sl.asarray(A).to_device()
    for attempt in (lambda: there @ x, lambda: there + there, lambda: there.sum(), lambda: there[0], lambda: there.astype("f4")):
        with pytest.raises(DeviceError, match=r"to_host\(\)"):
            attempt()


def test_an_operator_says_which_operand_it_is(device: StandIn, A: sp.csr_array) -> None:
    with pytest.raises(DeviceError) as caught:
        sl.asarray(A) + sl.asarray(A).to_device()
    assert str(caught.value) == (
        "operand 2 of the operator is on cuda, and operators compute in main memory\n"
        "  help: copy it with to_host(), or write sl.evaluate or sl.einsum, which compute on the device"
    )


def test_an_assignment_says_where_operands_are(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    i, j = sl.indices("i j")
    B, y = sl.asarray(A, name="B").to_device(), sl.zeros(100)
    B.arrays  # noqa: B018 - whoever has them could change them
    with pytest.raises(DeviceError, match="B is on cuda, and C computes in main memory"):
        y[i] = B[i, j] * sl.asarray(x)[j]


def test_storage_is_not_converted_on_the_device(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    with pytest.raises(DeviceError) as caught:
        spmv()(sl.asarray(A.tocsc()).to_device(), x)
    assert str(caught.value) == (
        "a tensor on cuda cannot be converted there, from csc to csr\n"
        "  help: convert it in main memory: t.to_host().to('csr').to_device()"
    )
    np.testing.assert_allclose(spmv()(A.tocsc(), x).to_numpy(), A @ x)


def test_a_bound_that_does_not_hold_is_said(device: StandIn) -> None:
    kernel = sl.program("y(i) = 2 * x(i)", schedule=f"bound(i,ib,64,MaxExact) {ROWS.replace('(i,', '(ib,')}", target="cuda")
    np.testing.assert_allclose(kernel(np.ones(64)).to_numpy(), 2)
    with pytest.raises(sl.ShapeError, match="a bound that the schedule promises does not hold"):
        kernel(np.ones(65))


def test_statements_one_after_another(device: StandIn, A: sp.csr_array, x: np.ndarray) -> None:
    kernel = sl.program(
        f"""
        A: csr
        w(i) = A(i,j) * x(j)
          {ROWS}
        y(i) = w(i) * w(i)
          {ROWS}
        """,
        target="cuda",
    )
    there, v = sl.asarray(A).to_device(), sl.asarray(x).to_device()
    np.testing.assert_allclose(kernel(A, x).to_numpy(), (A @ x) ** 2)
    np.testing.assert_allclose(kernel(there, v).to_numpy(), (A @ x) ** 2)
    run = kernel.bind(there, v)
    run()
    device.log.clear()
    np.testing.assert_allclose(run().to_numpy(), (A @ x) ** 2)
    assert [line for line in device.log if line != "copy out 800"] == ["launch entry_0 4 x 32"] * 2


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Statements without a schedule get one, as the planner would give it."""
    real = sl.Kernel.__init__

    def scheduled(self: sl.Kernel, *args: Any, **options: Any) -> None:
        real(self, *args, **options)
        if self._target.name == "cuda":
            self._schedule = ROWS

    monkeypatch.setattr(sl.Kernel, "__init__", scheduled)
    yield
    kernel_for.cache_clear()
    _einsum_kernel.cache_clear()


def test_einsum_and_evaluate_run_where_operands_are(device: StandIn, at_once: None, A: sp.csr_array, x: np.ndarray) -> None:
    there, v = sl.asarray(A).to_device(), sl.asarray(x).to_device()
    for made in (
        sl.einsum("ij,j->i", there, x),
        sl.einsum("ij,j->i", there, v),
        sl.einsum("ij,j->i", A, ndarray(x)),
        sl.evaluate(SPMV, A=there, x=x),
        sl.evaluate(SPMV, there, v),
        sl.evaluate(SPMV, {"A": A, "x": v}),
        sl.evaluate(SPMV, A=A, x=x, target="cuda"),
        sl.einsum("ij,j->i", A, x, target="cuda"),
    ):
        assert made.device == "cuda"
        np.testing.assert_allclose(made.to_numpy(), A @ x)
    assert sl.einsum("ij,j->i", A, x).device == "cpu"


def test_a_tensor_elsewhere_is_said_by_name(device: StandIn, at_once: None, A: sp.csr_array, x: np.ndarray) -> None:
    with pytest.raises(DeviceError, match="op0 is a tensor in main memory"):
        sl.einsum("ij,j->i", sl.asarray(A), x, target="cuda")
    with pytest.raises(DeviceError, match="x is on cuda, and C computes in main memory"):
        sl.evaluate(SPMV, A=A, x=sl.asarray(x).to_device(), target="c")


def test_a_structure_that_others_may_change_is_copied_there(device: StandIn, A: sp.csr_array, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is when the arrays of an operand were handed out; large ones are copied as small ones are."""
    monkeypatch.setattr(large, "SHARED", 0)
    S, C, D = (sl.asarray(given).to_device() for given in (A, np.ones((100, 4)), np.ones((80, 4))))
    open_up(S.storage)
    made = sl.program("Y(i,j) = S(i,j) * C(i,k) * D(j,k)", {"S": "csr", "Y": "csr"}, target="cuda")(S, C, D)
    assert made.storage.indices[0].address != S.storage.indices[0].address
