"""Kernels on a real device: operands from everywhere, outputs, streams, graphs, and how long a call takes in Python."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.explorer import explore

pytestmark = pytest.mark.gpu
ROWS = "split(i,b,t,128) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)"
SPMV = "y(i) = A(i,j) * x(j)"


@pytest.fixture
def A() -> Any:
    return sp.random_array((5000, 4000), density=0.005, format="csr", rng=np.random.default_rng(3))


@pytest.fixture
def x() -> Any:
    return np.random.default_rng(4).random(4000)


@pytest.fixture
def kernel() -> sl.Kernel:
    return sl.program(SPMV, {"A": "csr"}, ROWS, target="cuda")


def test_arrays_of_numpy_and_scipy(kernel: sl.Kernel, A: Any, x: Any) -> None:
    y = kernel(A, x)
    assert y.device == "cuda"
    np.testing.assert_allclose(y.to_numpy(), A @ x)
    x[:] = 1
    np.testing.assert_allclose(kernel(A, x).to_numpy(), A @ x)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("width", ["int32", "int64"])
def test_dtypes(kernel: sl.Kernel, A: Any, dtype: str, width: str) -> None:
    numbers = np.random.default_rng(5).integers(-4, 5, 4000)
    matrix = sp.csr_array((np.round(A.data * 9).astype(dtype), A.indices.astype(width), A.indptr.astype(width)), shape=A.shape)
    np.testing.assert_array_equal(kernel(matrix, numbers.astype(dtype)).to_numpy(), matrix @ numbers.astype(dtype))


def test_tensors_on_the_device(kernel: sl.Kernel, A: Any, x: Any) -> None:
    there, v = sl.asarray(A).to_device(), sl.asarray(x).to_device()
    for _ in range(4):
        np.testing.assert_allclose(kernel(there, v).to_numpy(), A @ x)
    y = sl.zeros(5000).to_device()
    for _ in range(3):
        assert kernel(there, v, out=y) is y
        np.testing.assert_allclose(y.to_numpy(), A @ x)


def test_arrays_of_cupy(kernel: sl.Kernel, A: Any, x: Any) -> None:
    cupy, sparse = pytest.importorskip("cupy"), pytest.importorskip("cupyx.scipy.sparse")
    theirs, v, y = sparse.csr_matrix(sp.csr_matrix(A)), cupy.asarray(x), cupy.zeros(5000)
    np.testing.assert_allclose(kernel(theirs, v).to_cupy().get(), A @ x)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(5):
            v *= 2
            kernel(theirs, v, out=y)
        stream.synchronize()
    np.testing.assert_allclose(y.get(), A @ x * 32)


def test_tensors_of_torch(kernel: sl.Kernel, A: Any, x: Any) -> None:
    torch = pytest.importorskip("torch")
    parts = (torch.tensor(part, device="cuda") for part in (A.indptr, A.indices, A.data))
    theirs, v = torch.sparse_csr_tensor(*parts, A.shape), torch.tensor(x, device="cuda")
    torch.testing.assert_close(kernel(theirs, v).to_torch(), torch.tensor(A @ x, device="cuda"))
    y, stream = torch.zeros(5000, dtype=torch.float64, device="cuda"), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            v *= 2
            kernel(theirs, v, out=y)
    stream.synchronize()
    np.testing.assert_allclose(y.cpu().numpy(), A @ x * 32)


def test_a_bound_kernel_in_a_graph(kernel: sl.Kernel, A: Any, x: Any) -> None:
    torch = pytest.importorskip("torch")
    parts = (torch.tensor(part, device="cuda") for part in (A.indptr, A.indices, A.data))
    theirs, v = torch.sparse_csr_tensor(*parts, A.shape), torch.tensor(x, device="cuda")
    y = torch.zeros(5000, dtype=torch.float64, device="cuda")
    run = kernel.bind(theirs, v, out=y)
    run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run.start()
    y.zero_()
    v *= 3
    graph.replay()
    torch.cuda.synchronize()
    np.testing.assert_allclose(y.cpu().numpy(), A @ x * 3)


def test_a_result_with_the_structure_of_an_operand(A: Any, x: Any) -> None:
    kernel = sl.program("C(i,j) = A(i,j) * x(j)", {"A": "csr", "C": "csr"}, ROWS, target="cuda")
    C = kernel(sl.asarray(A).to_device(), x)
    np.testing.assert_allclose(C.to_numpy(), A.toarray() * x)


def test_calls_from_many_threads(kernel: sl.Kernel, A: Any, x: Any) -> None:
    there, v, expected = sl.asarray(A).to_device(), sl.asarray(x).to_device(), A @ x
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(50):
            if not np.allclose(kernel(there, v).to_numpy(), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_how_long_a_call_takes(kernel: sl.Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    """It only tells: tests are never timed."""
    A, x = sl.random((100, 100), 0.05, "csr", seed=1).to_device(), sl.asarray(np.ones(100)).to_device()
    run, y = kernel.bind(A, x), kernel(A, x)
    calls = {"call": lambda: kernel(A, x), "call with out": lambda: kernel(A, x, out=y), "bound": run, "start": run.start}
    told = {name: f"{min(_microseconds(call, y) for _ in range(20)):.1f}" for name, call in calls.items()}
    with capsys.disabled():
        print("\nmicroseconds from Python:", told)


def _microseconds(call: Any, y: Any) -> float:
    """How long a call takes until it returns, on average of so few that the device's queue does not fill."""
    y.to_numpy()
    begin = time.perf_counter()
    for _ in range(200):
        call()
    return (time.perf_counter() - begin) / 200 * 1e6


def test_the_explorer_runs_what_it_shows() -> None:
    steps = [{"text": step} for step in ROWS.split()]
    state = {"statement": SPMV, "formats": {"A": "csr"}, "steps": steps, "target": "cuda", "sizes": {"i": 3000, "j": 3000}}
    found = explore({"ask": "run", "state": state})
    assert found["ok"], found["error"]
    assert found["scipy"]["same"] and found["interpreter"]["same"] and found["seconds"] > 0
    compared = explore({"ask": "compare", "state": state, "other": {**state, "steps": []}})
    assert "the results are equal" in compared["text"]
