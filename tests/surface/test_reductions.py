"""Reductions on whole tensors, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from surface.against_numpy import FORMATS, check, same

import sparseloom as sl
from sparseloom.core.errors import ShapeError

SHAPES = {"A": (6, 5), "T": (3, 4, 5), "V": (7,), "E": (4, 0)}
CASES = [
    f"xp.{name}({operand}{axis}{kept})"
    for name in ("argmax", "argmin", "var", "std")
    for operand, axis in (("A", ""), ("A", ", axis=0"), ("A", ", axis=-1"), ("T", ", axis=1"), ("V", ""), ("T", ""))
    for kept in ("", ", keepdims=True")
]  # fmt: skip
CASES += [
    "A.argmax(1)", "A.var(0)", "xp.var(A, axis=0, ddof=1)", "xp.std(T, axis=(0, 2))", "xp.var(T, axis=(1, 2), keepdims=True)",
    "A.std()", "xp.cumsum(A)", "xp.cumsum(A, axis=0)", "A.cumsum(1)", "xp.cumprod(A, axis=1)", "xp.cumsum(T, axis=-1, dtype=float)",
    "xp.var(E, axis=0)",
]  # fmt: skip
# Kernels are compiled for these.
COMPILED = [
    "xp.sum(A)", "xp.sum(A, axis=0)", "xp.max(A, axis=1)", "A.min()", "xp.mean(A, axis=0)", "xp.mean(T, axis=0)",
    "xp.sum(T, axis=0, keepdims=True)", "xp.any(A, axis=1)", "xp.all(A)", "xp.prod(A, axis=0)", "xp.count_nonzero(A)",
    "xp.count_nonzero(A, axis=1)", "xp.ptp(A, axis=0)",
]  # fmt: skip
NAN = [
    f"xp.nan{name}({operand})"
    for name in ("sum", "prod", "min", "max", "mean", "var", "std")
    for operand in ("A", "A, axis=0")
] + ["xp.nancumsum(A, axis=0)", "xp.nancumprod(A)", "xp.nanargmax(A)", "xp.nanargmin(A)"]  # fmt: skip
NORMS = [
    "A", "V", "A, 'fro'", "A, 1", "A, np.inf", "A, -1", "A, -np.inf", "V, 1", "V, 3", "V, np.inf", "V, -np.inf", "V, 0", "A, axis=0",
    "A, 1, axis=1", "A, axis=1, keepdims=True", "T, 1, axis=(0, 2)",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reductions_as_in_numpy(rng: np.random.Generator) -> None:
    check(rng, [case for case in CASES if "E" not in case], SHAPES, ("float64", "int64", "float32", "int8"))
    check(rng, [case for case in CASES if "var" in case and "E" not in case], SHAPES, ("complex128",))


def test_compiled_reductions_as_in_numpy(rng: np.random.Generator) -> None:
    check(rng, COMPILED, SHAPES, ("float64",))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nan_is_left_out(rng: np.random.Generator) -> None:
    array = rng.integers(-3, 4, (6, 5)) * (rng.random((6, 5)) < 0.5) * 1.0
    array[rng.random((6, 5)) < 0.3] = np.nan
    array[:, 2] = np.nan
    tensor = sl.asarray(array, format="csr")
    for case in NAN:
        same(eval(case, {"xp": np, "A": tensor}), eval(case, {"xp": np, "A": array}), case)
    same(np.nanmean(tensor, axis=1, keepdims=True), np.nanmean(array, axis=1, keepdims=True), "keepdims")


def test_norms_as_in_numpy(rng: np.random.Generator) -> None:
    arrays = {name: rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5) * 1.0 for name, shape in SHAPES.items()}
    tensors = {name: sl.asarray(array, format=FORMATS[array.ndim][0]) for name, array in arrays.items()}
    for case in NORMS:
        expected = eval(f"norm({case})", {"norm": np.linalg.norm, "np": np, **arrays})
        same(eval(f"norm({case})", {"norm": sl.norm, "np": np, **tensors}), expected, case)
    assert np.linalg.norm(tensors["A"]) == sl.norm(tensors["A"]) == tensors["A"].norm()
    with pytest.raises(ShapeError, match="the norm 2 over 2 modes is not offered"):
        sl.norm(tensors["A"], 2)


def test_absent_entries_take_part_with_their_fill(rng: np.random.Generator) -> None:
    numbers = np.array([[3.0, 2, 2], [2, 2, 2], [4, 5, 6], [2, 1, 2]])
    for fill in (2.0, 5.0, np.nan):
        array = np.where(numbers == 2, fill, numbers)
        a = sl.asarray(array, format="csr", fill=fill)
        assert a.nnz < a.size
        for case in ("argmax(A)", "argmax(A, axis=0)", "argmin(A, axis=1)", "var(A, axis=1)", "std(A)", "sort(A)", "sort(A, axis=0)"):
            same(eval(f"xp.{case}", {"xp": sl, "A": a}), eval(f"xp.{case}", {"xp": np, "A": array}), f"{case} with fill {fill}")


def test_large_sparse_tensors_are_reduced_without_visiting_zeros() -> None:
    t = sl.from_coo([[0, 2**30], [5, 7], [1, 1]], [-3.0, 4.0], shape=(2**31, 2**20, 2**20), format="csf")
    assert (t.argmax(2).nnz, t.var(2).nnz, t.std(2).nnz) == (2, 2, 2)
    assert str(t.sum(axis=0, keepdims=True).format) == "csf"


def test_reductions_that_are_refused() -> None:
    with pytest.raises(ShapeError, match="argmax along mode 1"):
        sl.zeros((3, 0), "csr").argmax(1)
    with pytest.raises(ShapeError, match="name the axis to run along"):
        sl.cumulative_sum(sl.zeros((3, 3), "csr"))
