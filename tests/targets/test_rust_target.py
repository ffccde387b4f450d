"""A second language, one file (``targets/rust.py``): each entry point plans, emits, compiles, calls and frees with its own toolchain."""

from __future__ import annotations

import gc
import pickle
import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz.drawing import cases
from fuzz.runner import Tally, examine, prepare
from targets.rust import RUST, emit, has_dtype

import sparseloom as sl
from sparseloom.core.dtypes import FLOAT64, INT64
from sparseloom.core.errors import DeviceError
from sparseloom.core.settings import settings
from sparseloom.core.trees import walk
from sparseloom.loops.nodes import Array
from sparseloom.loops.rename import alpha_rename
from sparseloom.targets.c import C
from sparseloom.targets.registry import TARGETS
from sparseloom.targets.target import CPU_UNITS
from sparseloom.toolchain.libraries import load

pytestmark = pytest.mark.skipif(shutil.which("rustc") is None, reason="needs rustc, which runs this target")
A = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
B = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(2))
D, x = np.random.default_rng(3).random((30, 20)), np.random.default_rng(4).random(30)
# A target that lacks something else each, which no case above was written for.
SHORT = replace(C, name="short", title="C with short indices", has_dtype=lambda dtype: dtype != INT64)
SERIAL = replace(C, name="serial", title="serial C", units=(), atomic=lambda op, dtype: None)
LANES = replace(C, name="lanes", title="C in lanes", units=CPU_UNITS[1:], atomic=lambda op, dtype: None, vector_bytes=16)


@pytest.fixture(autouse=True)
def targets(monkeypatch: pytest.MonkeyPatch) -> None:
    for target in (RUST, SHORT, SERIAL, LANES):
        monkeypatch.setitem(TARGETS, target.name, target)


@pytest.mark.parametrize(
    ("statement", "formats", "operands", "wanted"),
    [
        ("y(i) = A(i,j) * x(j)", {"A": "csr"}, (A, x), A @ x),
        ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}, (A, B), (A + B).toarray()),
        ("C(i,j) = A(i,k) * B(j,k)", {"A": "csr", "B": "csr", "C": "csr"}, (A, B), (A @ B.T).toarray()),
        ("C(i,j) = A(i,j) * B(i,j)", {"A": "coo", "B": "csc", "C": "coo"}, (A, B), (A * B).toarray()),
        ("C(i,k) = A(i,j) * D(j,k)", {"A": "csr"}, (A, D), A @ D),
        ("C(j,i) = A(i,j)", {"A": "csr", "C": "csr"}, (A,), A.T.toarray()),
        ("y(i) = max(j, A(i,j))", {"A": "csr"}, (A,), A.toarray().max(axis=1)),
        ("s = A(i,j) * A(i,j)", {"A": "dcsr"}, (A,), (A * A).sum()),
    ],
)
def test_programs_are_right(statement: str, formats: dict[str, str], operands: tuple[object, ...], wanted: np.ndarray) -> None:
    kernel = sl.program(statement, formats, target="rust")
    made = kernel(*operands)
    np.testing.assert_allclose(made.to_numpy(), wanted)
    assert "pub unsafe extern" in kernel.source and kernel.show("rust") == kernel.source
    assert "Thread" not in kernel.explain() and "CPUVector" not in kernel.explain()


def test_evaluate_and_einsum_take_the_target() -> None:
    np.testing.assert_allclose(sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=x, target="rust").to_numpy(), A @ x)
    np.testing.assert_allclose(sl.einsum("ij,jk,k->i", A, D, np.ones(20), target="rust").to_numpy(), A @ D.sum(axis=1))
    made = sl.evaluate("C(i,j) = A(i,j) * B(i,j)", A=sl.asarray(A), B=sl.asarray(B), format="csc", target="rust")
    assert abs(made.to_scipy() - A * B).max() < 1e-12


def test_results_mix_with_operators_and_conversions() -> None:
    total = sl.evaluate("C(i,j) = A(i,j) + B(i,j)", A=sl.asarray(A), B=sl.asarray(B), format="csr", target="rust")
    assert abs((total @ total.T).to_scipy() - (A + B) @ (A + B).T).max() < 1e-12
    for form in ("csc", "coo", "ell", "dcsr", "dia"):
        assert abs(total.to(form).to("csr").to_scipy() - (A + B)).max() < 1e-12


def live_arrays(kernel: sl.Kernel) -> int:
    text = emit([(alpha_rename(kernel._inspected().stages.lowered.function), "entry")])
    return load(text, ("count_live",), RUST)[0](0)


def test_a_sparse_result_is_freed_by_its_own_allocator() -> None:
    kernel = sl.program("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}, target="rust")
    gc.collect()  # results of tests before this one are in cycles with their tensors
    results = [kernel(A, B) for _ in range(5)]
    assert live_arrays(kernel) == 15
    del results
    gc.collect()
    assert live_arrays(kernel) == 0


def test_a_kernel_is_kept_in_the_cache_and_pickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    kernel = sl.program("y(i) = 9.125 * A(i,j) * x(j)", {"A": "csr"}, target="rust")
    np.testing.assert_allclose(pickle.loads(pickle.dumps(kernel))(A, x).to_numpy(), 9.125 * (A @ x))
    assert len(list((tmp_path / "cache").glob("*.kernel"))) == 1


def test_what_it_lacks_is_rejected_with_what_to_do() -> None:
    with pytest.raises(DeviceError, match=r"Rust has no arrays of complex128\n  help: target='interpret' runs it"):
        sl.program("y(i) = 2 * x(i)", target="rust")(np.ones(3, complex))
    with pytest.raises(DeviceError, match="the schedule runs a loop on CPUVector, and Rust has none"):
        sl.program("y(i) = 2 * x(i)", schedule="parallelize(i,CPUVector,NoRaces)", target="rust")(np.ones(3))
    with pytest.raises(DeviceError, match="Rust has no arctan2 of float64"):
        sl.program("y(i) = arctan2(x(i), x(i))", target="rust")(np.ones(3))
    assert not has_dtype(np.dtype(complex)) and has_dtype(FLOAT64)


def test_threads_that_a_target_lacks_are_no_error() -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, target="rust", threads=4)
    np.testing.assert_allclose(kernel(A, x).to_numpy(), A @ x)


def test_random_statements_agree_with_the_dense_oracle(seed: int) -> None:
    tally, compared = Tally(), 0
    for case in islice(cases(seed, 31_000), 60):
        job = prepare(case, tally)
        if job is None:
            continue
        special = job.prepared.following(replace(job.prepared.stages, target=RUST))
        dtypes = {n.dtype for n in walk(special.stages.lowered.function) if isinstance(n, Array)}
        try:
            text = special.stages.source
        except DeviceError as lacking:
            assert "Rust has no" in str(lacking), dtypes
            continue
        assert text
        if compared < 12:
            examine(job, "rust", special.bind(job.storages, "rust").run())
            compared += 1
    assert compared > 5


@pytest.mark.parametrize("target", ["serial", "lanes"])
def test_a_target_without_units_or_atomics_is_planned_for(target: str) -> None:
    big = sp.random_array((3000, 3000), density=0.01, format="csr", rng=np.random.default_rng(5))
    made = sl.program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, target=target)
    assert abs(made(big, big).to_scipy() - big @ big).max() < 1e-9
    assert "#pragma omp parallel" not in made.source
    y = sl.program("y(j) = A(i,j) * x(i)", {"A": "csr"}, target=target)
    np.testing.assert_allclose(y(big, np.ones(3000)).to_numpy(), big.sum(axis=0))
    assert "omp atomic" not in y.source and "#pragma omp parallel" not in y.source


def test_a_target_with_short_indices_rejects_long_ones() -> None:
    kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, target="short")
    np.testing.assert_allclose(kernel(A, x).to_numpy(), A @ x)
    with pytest.raises(DeviceError, match="C with short indices has no arrays of int64"):
        kernel(sl.from_arrays("csr", A.shape, {"pos1": A.indptr.astype(np.int64), "crd1": A.indices.astype(np.int64), "values": A.data}), x)
