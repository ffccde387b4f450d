"""Tensors of float16 and bfloat16: made, computed in float32, rounded once, kept in files, and named in refusals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core import dtypes

HALVES = ("float16", "bfloat16")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FORMATS = ("dense", "csr", "csc", "coo", "dcsr", "bcsr(2,2)", "ell", "dia")


def matrix(seed: int = 0) -> np.ndarray:
    """Numbers that halves hold, many of them 0."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=(6, 5)) * 8) / 8 * (rng.random((6, 5)) < 0.5)


def single(value: Any) -> np.ndarray:
    """A tensor or an array as float32."""
    return np.asarray(value.to_numpy() if isinstance(value, sl.Tensor) else value).astype(np.float32)


def assert_rounded(got: Any, exact: Any, half: str) -> None:
    """``got`` is what was computed in float32, rounded to a half once; it may fall to the other side of one step."""
    kind, want = dtypes.value_dtype(half), np.asarray(exact, np.float32)
    assert got.dtype == kind
    step = dtypes.float_limits(kind)[1] * np.abs(single(want.astype(kind)))
    assert (np.abs(single(got) - single(want.astype(kind))) <= step).all()


@pytest.mark.parametrize("half", HALVES)
def test_every_way_to_make_one(half: str) -> None:
    kind = dtypes.value_dtype(half)
    made = (sl.zeros(3, dtype=half), sl.ones(3, dtype=kind), sl.full((2, 2), 1.5, "csr", dtype=half), sl.eye(3, dtype=half))
    assert [tensor.dtype for tensor in made] == [kind] * 4
    assert sl.random((4, 4), 0.5, dtype=half).dtype == kind
    array = matrix().astype(kind)
    tensor = sl.asarray(array)
    assert tensor.dtype == kind and np.shares_memory(tensor.to_numpy(), array) and tensor.notes == ()
    by_columns = np.asfortranarray(array)
    assert np.shares_memory(sl.asarray(by_columns).arrays["values"], by_columns)
    assert sl.asarray(matrix(), dtype=half).dtype == kind
    assert half in repr(tensor)
    assert tensor.astype("float64").dtype == np.float64 and tensor.astype(float).astype(half).dtype == kind


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("half", HALVES)
def test_conversions_between_formats_keep_every_bit(half: str, format: str) -> None:
    array = matrix().astype(dtypes.value_dtype(half))
    for start in ("csr", "coo", "dense"):
        there = sl.asarray(array).to(start).to(format)
        assert there.dtype == array.dtype
        np.testing.assert_array_equal(single(there), single(array))
        np.testing.assert_array_equal(single(there.to("csc")), single(array))


@pytest.mark.parametrize("half", HALVES)
def test_results_promote_as_numpy_says(half: str) -> None:
    kind = dtypes.value_dtype(half)
    A = sl.asarray(matrix(), dtype=half).to("csr")
    expected = {
        "bool": kind, "int8": kind, "uint8": kind, half: kind, "float32": "float32", "float64": "float64", "complex64": "complex64",
        "int16": "float32", "int32": "float64", "int64": "float64",
        "float16": kind if half == "float16" else "float32", "bfloat16": kind if half == "bfloat16" else "float32",
    }  # fmt: skip
    for other, wanted in expected.items():
        assert (A * np.ones(5, dtypes.value_dtype(other))).dtype == wanted, other
        assert sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=np.ones(5, dtypes.value_dtype(other))).dtype == wanted, other
    for number, wanted in ((2, kind), (2.5, kind), (True, kind), (1j, "complex64"), (np.float32(2), "float32")):
        assert (A * number).dtype == wanted, number
    assert (A > 0).dtype == bool and sl.isnan(A).dtype == bool
    assert sl.array_api.result_type(A, np.float32) == np.float32


@pytest.mark.parametrize("format", ("dense", "csr", "coo"))
@pytest.mark.parametrize("half", HALVES)
def test_sums_are_rounded_once(half: str, format: str) -> None:
    """4096 ones and halves: adding in a half would stop at 2048, or at 256."""
    kind = dtypes.value_dtype(half)
    A = sl.asarray(np.full((4096, 2), 0.5), dtype=half).to(format)
    assert single(A.sum()) == 4096 and A.sum().dtype == kind
    assert single(A.sum(axis=0)).tolist() == [2048, 2048]
    assert single(A.mean()) == 0.5 and A.mean().dtype == kind and A.mean(axis=0).dtype == kind
    assert single(sl.evaluate("s = A(i,j) * A(i,j)", A=A)) == 2048
    assert single(sl.evaluate("s(j) = A(i,j)", A=A, format="dense")).tolist() == [2048, 2048]  # added up in memory
    assert single(sl.cumsum(A, axis=0))[-1].tolist() == [2048, 2048]
    assert single(sl.norm(A)) == single(np.float32(np.sqrt(2048)).astype(kind))


@pytest.mark.parametrize("half", HALVES)
def test_what_is_absent_is_reduced_with_what_is_stored_before_anything_is_rounded(half: str) -> None:
    A = sl.full((3000, 2), 0.5, "csr", dtype=half)
    assert single(A.sum()) == 3000 // 8 * 8 if half == "float16" else 3008
    assert single(A.mean()) == 0.5 and single(sl.var(A)) == 0


@pytest.mark.parametrize("format", ("dense", "csr"))
@pytest.mark.parametrize("half", HALVES)
def test_functions_are_those_of_float32_rounded(half: str, format: str) -> None:
    exact = matrix(3).astype(dtypes.value_dtype(half)).astype(np.float32)
    A = sl.asarray(exact, dtype=half).to(format)
    for name in ("sqrt", "exp", "sin", "tanh", "log1p", "cbrt", "floor", "sign", "square", "negative", "absolute"):
        given, of = (abs(A), np.abs(exact)) if name in ("sqrt", "log1p") else (A, exact)
        assert_rounded(getattr(np, name)(given), getattr(np, name)(of), half)
    for made, want in (
        (A + A.T.T, exact + exact), (A * A, exact * exact), (A - 2 * A, -exact), (A / 3, exact / 3), (A @ A.T, exact @ exact.T),
        (A.max(axis=0), exact.max(axis=0)), (A.min(), exact.min()), (sl.var(A, axis=1), exact.var(axis=1)), (sl.std(A), exact.std()),
        (sl.sort(A), np.sort(exact)), (sl.nanmean(A, axis=0), exact.mean(axis=0)), (sl.cumprod(A + 1, axis=1), np.cumprod(exact + 1, 1)),
        (sl.concatenate([A, A]), np.concatenate([exact, exact])), (sl.topk(A, 2).values, -np.sort(-exact)[:, :2]),
        (A[1:4, ::2], exact[1:4, ::2]),
        (sl.einsum("ij,kj->ik", A, A), exact @ exact.T), (sl.clip(A, -0.5, 0.5), exact.clip(-0.5, 0.5)),
    ):  # fmt: skip
        assert_rounded(made, want, half)
    np.testing.assert_array_equal(sl.argsort(A).to_numpy(), np.argsort(exact, kind="stable"))
    np.testing.assert_array_equal(sl.argmax(A, axis=0).to_numpy(), exact.argmax(axis=0))
    np.testing.assert_array_equal((A > 0).to_numpy(), exact > 0)


@pytest.mark.parametrize("half", HALVES)
def test_special_values_pass_and_overflow_is_infinite(half: str) -> None:
    kind = dtypes.value_dtype(half)
    least = np.array([1, 3, 1023], np.uint16).view(kind)  # subnormal
    x = np.concatenate([np.array([np.inf, -np.inf, np.nan, -0.0, 0.0], kind), least])
    for format in ("dense", "s"):
        got = sl.evaluate("y(i) = x(i)", x=sl.asarray(x).to(format)).to_numpy()
        np.testing.assert_array_equal(single(got), single(x))
        np.testing.assert_array_equal(np.signbit(got[:5]), np.signbit(x[:5]) if format == "dense" else [False, True, False, False, False])
    largest = np.full(2, dtypes.float_limits(kind)[0], kind)
    assert single(sl.evaluate("y(i) = x(i) + x(i)", x=largest)).tolist() == [np.inf, np.inf]
    assert single(sl.evaluate("s = x(i) - y(i)", x=np.concatenate([largest, largest]), y=np.concatenate([largest, largest]))) == 0
    if half == "float16":  # whose sums would overflow on the way, and do not: those of bfloat16 reach as far as those of float32
        assert single(sl.evaluate("s = x(i) * w(i)", x=np.tile(largest[:1], 4), w=np.array([1, 1, -1, -1], kind))) == 0
        assert single(sl.evaluate("y(i) = 0.5 * (x(i) + x(i))", x=largest)).tolist() == single(largest).tolist()


@pytest.mark.parametrize("half", HALVES)
def test_repeated_entries_are_summed_in_float32(half: str) -> None:
    kind = dtypes.value_dtype(half)
    places, values = np.zeros((1, 600), np.int64), np.ones(600, kind)
    assert single(sl.from_coo(places, values, (1,)))[0] == 600 // 4 * 4
    loose = sl.from_coo(np.zeros((2, 600), np.int64), values, (1, 1), format="u~q~")
    assert single(loose.to("csr"))[0, 0] == 600


@pytest.mark.parametrize("half", HALVES)
def test_outputs_and_accumulation(half: str) -> None:
    kind = dtypes.value_dtype(half)
    A, x = sl.asarray(matrix(), dtype=half).to("csr"), np.ones(5, kind)
    exact = single(A) @ single(x)
    out = np.empty(6, kind)
    sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=x, out=out)
    assert_rounded(out, exact, half)
    with pytest.raises(sl.DTypeError) as caught:
        sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=x, out=np.empty(6, np.float32))
    assert str(caught.value) == f"out holds float32, but y is {half}\n  help: pass dtype='float32'"
    y = np.full(6, 100, kind)
    assert_rounded(sl.evaluate("y(i) += A(i,j) * x(j)", A=A, x=x, y=y), 100 + exact, half)
    assert (single(y) == 100).all()
    k = sl.program("y(j) += A(i,j) * x(i)", formats={"A": "csr"})
    start = np.full(5, 0.25, kind)
    bound = k.bind(A, np.ones(6, kind), y=start, out=start)
    bound()
    assert_rounded(start, 0.25 + single(A).sum(axis=0), half)
    i, j = sl.indices("i j")
    z = sl.zeros(6, dtype=half)
    z[i] = A[i, j] * sl.asarray(x)[j]
    assert_rounded(z, exact, half)
    assert sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=x, dtype="float32").to_numpy().tolist() == exact.tolist()
    assert_rounded(sl.evaluate("y(i) = A(i,j) * x(j)", A=matrix(), x=np.ones(5), dtype=half), matrix().sum(axis=1), half)


def test_explain_says_where_sums_are_kept() -> None:
    k = sl.program("y(j) = A(i,j) * x(i)", formats={"A": "csr"}, schedule="")
    assert "y: sums are kept in float32, and rounded to float16 in the end" in k.preview({"A": "float16", "x": "float16"}).explain()
    k = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule="")
    text = k.preview({"A": "float16", "x": "float16"})
    assert "rounded" not in text.explain()
    assert "y_vals[i] = float16_of_float32(" in text.source and "float32_of_float16(A_vals[" in text.source


@pytest.mark.parametrize("half", HALVES)
def test_casts_inside_a_statement_round(half: str) -> None:
    x = np.array([1 + 2.0**-12, 0.1, 70000.0], np.float32)
    kind = dtypes.value_dtype(half)
    with np.errstate(over="ignore"):
        want = x.astype(kind).astype(np.float32)
    got = sl.evaluate(f"y(i) = as_{half}(x(i)) + z(i)", x=x, z=np.zeros(3, np.float32))
    assert got.dtype == np.float32 and got.to_numpy().tolist() == want.tolist()
    assert sl.evaluate(f"y(i) = as_{half}(x(i))", x=x).dtype == kind


@pytest.mark.parametrize("format", ("dense", "csr", "dcsr", "coo"))
@pytest.mark.parametrize("half", HALVES)
def test_files(half: str, format: str, tmp_path: Path) -> None:
    tensor = sl.asarray(matrix(), dtype=half).to(format)
    for name in ("a.npz", "a.tns"):
        sl.write(tmp_path / name, tensor)
        back = sl.read(tmp_path / name)
        assert back.dtype == tensor.dtype
        np.testing.assert_array_equal(single(back), single(tensor))
    sl.write(tmp_path / "a.mtx", tensor)  # whose numbers are float64
    np.testing.assert_array_equal(sl.read(tmp_path / "a.mtx").to_numpy(), single(tensor))
    if half == "float16":
        sl.write(tmp_path / "a.npy", tensor)
        assert sl.read(tmp_path / "a.npy").dtype == np.float16
    else:
        with pytest.raises(sl.DTypeError, match=r"a .npy file has no word for bfloat16\n  help: write .npz"):
            sl.write(tmp_path / "a.npy", tensor)
    with pytest.raises(sl.DTypeError, match=f"MATLAB has no {half}\n  help: convert with astype"):
        sl.write(tmp_path / "a.mat", tensor)


def test_an_archive_that_names_other_bits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    sl.write(path, sl.asarray(matrix(), dtype="bfloat16").to("csr"))
    arrays = dict(np.load(path))
    for name, values in (("float8", arrays["values"]), ("bfloat16", arrays["values"].astype(np.int32))):
        np.savez(path, **arrays | {"dtype": np.array(name), "values": values})
        with pytest.raises(sl.StorageError, match="only the bits of bfloat16 are"):
            sl.read(path)


def test_bfloat16_needs_ml_dtypes_only_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(sl.DTypeError) as caught:
        sl.zeros(3, dtype="bfloat16")
    assert str(caught.value) == (
        "bfloat16 is a dtype of ml_dtypes, which is not installed\n"
        "  help: install ml_dtypes, which comes with JAX, or use float16 or float32"
    )
    assert sl.zeros(3, dtype="float16").dtype == np.float16


def test_the_standard_keeps_its_dtypes() -> None:
    info = sl.asarray([1.0]).__array_namespace__().__array_namespace_info__().dtypes()
    assert "float16" not in info and "bfloat16" not in info and "float32" in info
    assert sl.array_api.finfo(BFLOAT16).eps == 2.0**-7 and sl.array_api.finfo(np.dtype(np.float16)).eps == 2.0**-10
    assert sl.array_api.isdtype(BFLOAT16, "real floating") and sl.array_api.isdtype(BFLOAT16, (np.dtype(np.int8), BFLOAT16))
    assert not sl.array_api.isdtype(BFLOAT16, "integral")


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("semiring", ("min_plus", "max_times", "or_and"))
def test_semirings(half: str, semiring: str) -> None:
    A, x = sl.asarray(np.abs(matrix()), dtype=half).to("csr"), np.ones(5, dtypes.value_dtype(half))
    wide = sl.evaluate("y(i) = A(i,j) * x(j)", A=A.astype("float32"), x=single(x), semiring=semiring)
    got = sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=x, semiring=semiring)
    np.testing.assert_array_equal(single(got), single(wide))
