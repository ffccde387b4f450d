"""Parts of ``python -m benchmarks gpu`` by themselves: schedules as text, operands, CuPy's clock and cuSPARSE through its bindings."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sparseloom as sl
from benchmarks.gpu import operands
from benchmarks.gpu.schedules import schedules_of
from benchmarks.gpu.tasks import CONTESTS, Case, _onto
from benchmarks.peers import cupy
from sparseloom.programs.cuda.nvrtc import compile_cubin

KERNELS = [(contest.name, width) for contest in CONTESTS.values() for width in contest.widths]


def _given(kernel: str, width: int, rng: np.random.Generator) -> tuple[tuple[Any, ...], Any]:
    """Small operands with rows of every length, and the answer."""

    def whole(*shape: int, density: float = 1.0) -> Any:
        return rng.integers(1, 5, shape) * (rng.random(shape) < density) * 1.0

    A = whole(13, 21, density=0.3)
    A[[2, 3, 12]] = 0
    A[5] = 1
    match kernel:
        case "spmv":
            x = whole(21)
            return (A, x), A @ x
        case "spmm":
            B = whole(21, width)
            return (A, B), A @ B
        case "sddmm":
            C, D = whole(13, width), whole(21, width)
            return (A, C, D), A * (C @ D.T)
    B, C, D = whole(7, 5, 6, density=0.2), whole(5, width), whole(6, width)
    return (B, C, D), np.einsum("ikl,kj,lj->ij", B, C, D)


@pytest.mark.parametrize(("kernel", "width"), KERNELS)
def test_every_schedule_is_right_free_of_races_and_compiled(kernel: str, width: int, rng: np.random.Generator) -> None:
    given, wanted = _given(kernel, width, rng)
    contest = CONTESTS[kernel]
    for name, schedule in schedules_of(kernel, width).items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernels = [sl.program(contest.statement, contest.formats, schedule, target=target) for target in ("interpret", "cuda")]
        assert np.array_equal(kernels[0](*given).to_numpy(), wanted), f"{kernel} {width}, {name} is wrong"
        assert compile_cubin(kernels[1].source)


@pytest.mark.parametrize("make", [operands.six(100), operands.tensors(1000)], ids=("matrices", "tensors"))
def test_operands_are_the_same_in_every_run(make: dict[str, Any]) -> None:
    for name, made in make.items():
        once, again = made(), made()
        assert np.array_equal(once.storage.values, again.storage.values) and once.nnz == again.nnz > 0, name
        assert str(once.format) in ("csr", "csf") and once.storage.levels[-1].arrays["crd"].dtype == np.int32


def test_operands_are_as_described() -> None:
    lengths = {name: np.diff(make().to_scipy().indptr) for name, make in operands.six(20).items()}
    assert 39 < lengths["uniform_4m"].mean() <= 40 and lengths["fem_27"].max() == 27
    assert lengths["power_law_12m"].max() > 100 * lengths["power_law_12m"].mean() and lengths["power_law_12m"].min() < 5
    assert set(lengths["road_4m"]) <= set(range(6)) and lengths["skewed_8m"].max() > 2 * lengths["skewed_8m"].mean()
    assert len(operands.afterwards()) == 6 and not set(operands.afterwards()) & set(operands.six())
    graph = np.diff(operands.recursive(8, 2000).to_scipy().indptr)
    assert graph.max() > 5 * graph.mean()
    slices = np.diff(operands.skewed_slices((50, 20, 30), 400, 4).storage.levels[1].arrays["pos"])
    assert slices.max() > 2 * slices.mean()


def test_names_of_sets_and_cases_choose() -> None:
    sets = operands.toy_sets()
    assert list(operands.only(sets, ("six",))["six"]) == list(sets["six"]) and not operands.only(sets, ("six",))["tensors"]
    assert list(operands.only(sets, ("road_4m", "tensors"))["six"]) == ["road_4m"]


def test_sums_are_what_products_with_outer_products_need() -> None:
    case = Case("few", "six", sl.random((30, 20), 0.2, "csr", seed=1))
    A, b, u = case.tensor.to_numpy(), case.along(1), np.arange(1.0, 33.0)
    np.testing.assert_allclose(np.outer(case.sums, u @ _onto(32)), A @ np.outer(b, u) @ _onto(32))
    dense = A * np.outer(case.along(0), b)
    np.testing.assert_allclose(case.scaled, dense[A != 0])


class Event:
    """An event that notes what happened before it."""

    log: list[str]

    def record(self) -> None:
        self.log.append("record")

    def synchronize(self) -> None:
        self.log.append("synchronize")


class Flushed:
    """What is written before every run."""

    def __init__(self, log: list[str], count: int) -> None:
        self._log, self.count = log, count

    def fill(self, value: int) -> None:
        self._log.append("flush")


def test_the_clock_flushes_the_cache_before_every_run() -> None:
    log: list[str] = []
    Event.log = log
    cuda = SimpleNamespace(Event=Event, get_elapsed_time=lambda before, after: 2.5)
    made = cupy.Clock(SimpleNamespace(cuda=cuda, empty=lambda count, dtype: Flushed(log, count)))
    assert made.seconds(lambda: log.append("run")) == 2.5e-3
    assert log == ["flush", "record", "run", "record", "synchronize"]
    assert made._flushed.count * 4 == 128 << 20


class There:
    """An array at an address, as CuPy has it."""

    def __init__(self, shape: tuple[int, ...], dtype: str, address: int) -> None:
        self.shape, self.size, self.dtype = shape, int(np.prod(shape)), np.dtype(dtype)
        self.data = SimpleNamespace(ptr=address)


def test_cusparse_is_asked_for_every_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    class Bindings:
        def __getattr__(self, name: str) -> Any:
            return lambda *given: asked.append((name, *given)) or 77

    monkeypatch.setattr(cupy, "_handle", lambda: 5)
    monkeypatch.setattr(cupy, "_room", lambda nbytes: SimpleNamespace(ptr=900 + nbytes))
    monkeypatch.setattr(cupy, "_bindings", Bindings)
    parts = (There((9,), "int32", 1), There((30,), "int32", 2), There((30,), "float32", 3))
    matrix = SimpleNamespace(shape=(8, 6), indptr=parts[0], indices=parts[1], data=parts[2])
    A = SimpleNamespace(to_cupy=lambda: matrix)
    for made in (cupy.spmv(A, There((6,), "float32", 4), There((8,), "float32", 5)), cupy.spmm(A, *_two(32))):
        for prepare in made.values():
            prepare().run()
    assert ("createCsr", 8, 6, 30, 1, 2, 3, 2, 2, 0, 0) in asked and ("createDnMat", 6, 32, 32, 6, 0, 2) in asked
    assert [given[-2] for given in asked if given[0] == "spMV"] == [0, 2, 3]
    assert [given[-2:] for given in asked if given[0] == "spMM"] == [(0, 977), (4, 977), (6, 977), (12, 977)]


def _two(width: int) -> tuple[There, There]:
    return There((6, width), "float32", 6), There((8, width), "float32", 7)
