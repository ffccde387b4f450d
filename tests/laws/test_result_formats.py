"""Sparse results in every format, from every kind of statement and operand; and conversions, made by kernels alone."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from fuzz.operands import Spec, store
from fuzz.result_formats import PROPERTY, STATEMENTS, cases, packed
from fuzz.runner import compare_all

import sparseloom as sl
from sparseloom.assemble import listing
from sparseloom.compiler import build
from sparseloom.core.errors import ToolchainError
from sparseloom.core.settings import settings
from sparseloom.formats.pack import convert as by_numpy
from sparseloom.formats.pack import pattern, stored_count, to_dense, without_fill
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format
from sparseloom.formats.validate import check
from sparseloom.programs import conversion

BLOCKS = ("bcsr(2,3)", "bcsr(3,2)", "dsdd:1,0,0,1/2,2")
READ = [(2, source, target) for source in ("db", "bs", "dia") for target in ("ds", "ss:1,0", "uq", "dd", *BLOCKS)]
READ += [(2, source, target) for source in ("ds", "ds:1,0", "ss", "uq", "dd", "ell", "dia") for target in ("db", "bb:1,0", "bd")]
CONVERTED = {2: ("ds", "ds:1,0", "ss", "uq", "dd", "sd", "ell", *BLOCKS), 3: ("sss", "uqq:2,1,0", "dds", "ssd")}
PAIRS = [(n, *pair) for n, forms in CONVERTED.items() for pair in permutations(forms, 2)]
SHAPES = {2: (6, 5), 3: (4, 5, 3)}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_results_of_every_format_are_right(kind: str, seed: int, record_property: object) -> None:
    """No cell of the table is empty: nothing is refused, and dense oracle, interpreter and C agree on values and pattern."""
    drawn = list(cases(seed, kind))
    tally = compare_all(drawn)
    assert not tally.failures, "\n\n".join(f"{case}\n{problem}" for case, problem in tally.failures)
    assert not tally.refused
    assert tally.compared == len(drawn)
    record_property(PROPERTY, packed(kind, Counter(case.format or "" for case in drawn)))  # type: ignore[operator]


@pytest.fixture
def only_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert small tensors with kernels too, and never with NumPy."""
    forbid_numpy(monkeypatch)


def forbid_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> Storage:
        raise AssertionError(f"converted without a kernel: {args[0]}")

    monkeypatch.setattr(settings, "small_conversion", 0)
    monkeypatch.setattr("sparseloom.formats.pack.convert", never)


def expected(storage: Storage) -> tuple[np.ndarray, np.ndarray]:
    """Values and pattern, entry by entry."""
    return to_dense(storage), pattern(storage)


@pytest.mark.parametrize("drop_zeros", [False, True])
@pytest.mark.parametrize(("order", "source", "target"), PAIRS + READ)
def test_kernels_convert_as_numpy_does(order: int, source: str, target: str, drop_zeros: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: values and pattern, zeros that fill up blocks, and blocks that stick out."""
    before = store(Spec(source, "float64", 7, density=0.4), SHAPES[order])
    form = as_format(target, order)
    wanted = by_numpy(without_fill(before) if drop_zeros else before, form)
    forbid_numpy(monkeypatch)
    after = conversion.convert(before, form, drop_zeros)
    check(after)
    assert after.values.tobytes() == wanted.values.tobytes()
    for mine, its in zip(after.levels, wanted.levels, strict=True):
        assert {part: array.tolist() for part, array in mine.arrays.items()} == {part: array.tolist() for part, array in its.arrays.items()}
        assert mine.scalars == its.scalars


@pytest.mark.parametrize("source", ["uq+", "u~q~+", "du~"])
def test_repeated_entries_are_summed(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store(Spec(source, "float64", 3, density=0.5, repeats=True), (6, 5))
    wanted = expected(before)
    monkeypatch.setattr(settings, "small_conversion", 0)
    monkeypatch.setattr("sparseloom.formats.pack.convert", None)
    after = conversion.convert(before, as_format("csr", 2))
    check(after)
    assert stored_count(after) < stored_count(before)
    for got, want in zip(expected(after), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "ss:1,0"])
def test_entries_in_any_order_are_stored(form: str, only_kernels: None, rng: np.random.Generator) -> None:
    coordinates, values = rng.integers(0, 9, (2, 60)), rng.integers(1, 5, 60).astype(float)
    wanted = np.zeros((9, 9))
    np.add.at(wanted, tuple(coordinates), values)
    tensor = sl.from_coo(coordinates, values, shape=(9, 9), format=form)
    check(tensor.storage)
    np.testing.assert_array_equal(tensor.to_numpy(), wanted)


@pytest.mark.parametrize("small", [0, 1 << 14])
@pytest.mark.parametrize("target", ["csr", "csc", "coo", "ss:1,0"])
def test_zeros_are_kept_unless_they_are_to_be_dropped(target: str, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "small_conversion", small)
    tensor = sl.from_coo([[0, 1, 2], [1, 0, 2]], [5.0, 0.0, 7.0], shape=(3, 3), format="csr")
    assert tensor.to(target).nnz == 3
    dropped = tensor.to(target, drop_zeros=True)
    assert dropped.nnz == 2
    check(dropped.storage)
    np.testing.assert_array_equal(dropped.to_numpy(), tensor.to_numpy())
    assert sl.asarray(np.eye(4)).to(target).nnz == 4


def test_a_conversion_shares_what_stays_the_same(only_kernels: None) -> None:
    rows = store(Spec("ds", "float64", 5), (6, 5))
    entries = conversion.convert(rows, as_format("coo", 2))
    assert np.shares_memory(entries.values, rows.values)
    assert np.shares_memory(entries.levels[1].arrays["crd"], rows.levels[1].arrays["crd"])
    assert np.shares_memory(conversion.convert(entries, as_format("csr", 2)).values, rows.values)
    copied = sl.asarray(sl.Tensor(rows), format="coo", copy=True)
    assert not np.shares_memory(copied.storage.values, rows.values)
    assert np.shares_memory(sl.asarray(sl.Tensor(rows), format="coo", copy=False).storage.values, rows.values)


def test_positions_that_outgrow_int32_are_widened(only_kernels: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "int32_limit", 20)
    before = store(Spec("ds", "float64", 5, density=0.9), (6, 5))
    for target in ("csc", "dcsr", "dcsc", "coo"):
        after = conversion.convert(before, as_format(target, 2))
        check(after)
        assert after.levels[-1].arrays["crd"].dtype == np.int64
        np.testing.assert_array_equal(to_dense(after), to_dense(before))


def test_numpy_converts_where_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*args: object) -> Storage:
        raise ToolchainError("no compiler")

    monkeypatch.setattr(settings, "small_conversion", 0)
    monkeypatch.setattr(conversion, "_run", missing)
    before = store(Spec("ds", "float64", 5), (6, 5))
    np.testing.assert_array_equal(to_dense(conversion.convert(before, as_format("csc", 2))), to_dense(before))


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dcsr"])
def test_a_sparse_result_is_added_to(form: str, target: str, rng: np.random.Generator) -> None:
    A, B, C = ((rng.random(shape) < 0.3) * rng.random(shape) for shape in ((6, 5), (5, 7), (6, 7)))
    added = sl.program("C(i,j) += A(i,k) * B(k,j)", formats={"A": "csr", "B": "csr", "C": form}, target=target)
    before = sl.asarray(C, format=form).copy()
    for initial in (before, C, sl.asarray(C, format="coo"), sl.asarray(C.astype(np.float32))):
        result = added(A, B, C=initial)
        check(result.storage)
        assert str(result.format) == form
        np.testing.assert_allclose(result.to_numpy(), C + A @ B, rtol=1e-6)
    np.testing.assert_array_equal(before.to_numpy(), C)
    added(A, B, out=before)
    np.testing.assert_allclose(before.to_numpy(), C + A @ B)


def test_ways_to_assemble_are_told() -> None:
    """Which way is taken depends on the formats alone, and ``explain`` says it."""
    told = {
        "csc": "counted and then filled",
        "ss:1,0": "w: a list of coordinates and values, sorted before it is read",
    }
    for form, text in told.items():
        kernel = sl.program("B(i,j) = A(i,j)", formats={"A": "csr", "B": form})
        assert text in kernel.explain()
        assert "conversions\n  none" in kernel.explain()
    product = sl.program("C(i,j) = A(i,k) * B(j,k)", formats={"A": "csr", "B": "csr", "C": "csr"})
    assert "B is converted from csr to csc" in product.explain()  # else every pair of rows would be tried
    contracted = sl.program("Z(j,k,l,m) = X(i,j,k) * Y(i,l,m)", formats={"X": "csf", "Y": "csf", "Z": "csf(4)"})
    assert "sorted and combined before it is read" in contracted.explain()


@pytest.mark.parametrize("target", ["c", "interpret"])
def test_long_lists_are_combined_before_they_grow(target: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr(listing, "LONG", 8)
    build.cache_clear()
    X, Y = ((rng.random((7, 5, 4)) < 0.4) * rng.random((7, 5, 4)) for _ in range(2))
    kernel = sl.program("Z(j,k,l,m) = X(i,j,k) * Y(i,l,m)", formats={"X": "csf", "Y": "csf", "Z": "csf(4)"}, target=target)
    result = kernel(X, Y)
    build.cache_clear()
    check(result.storage)
    np.testing.assert_allclose(result.to_numpy(), np.einsum("ijk,ilm->jklm", X, Y))


@pytest.mark.parametrize("target", ["c", "interpret"])
def test_repeated_entries_in_no_order_are_summed_into_blocks(target: str) -> None:
    given = sl.from_coo([[0, 1, 0, 1], [0, 1, 0, 1]], [1.0, 2.0, 3.0, 4.0], shape=(4, 4), format="u~q~+")
    made = sl.program("C(i,j) = A(i,j)", {"A": "u~q~+", "C": "bcsr(2,3)"}, target=target)(given)
    np.testing.assert_array_equal(np.diag(made.to_numpy()), [4, 6, 0, 0])
    twice = np.tile([0, 1], 10_000)
    many = sl.from_coo([twice, twice], np.ones(20_000), shape=(2, 2), format="bcsr(2)")
    np.testing.assert_array_equal(many.to_numpy(), np.eye(2) * 10_000)


@pytest.mark.parametrize("size", [20, 200])
def test_a_fill_is_kept_by_kernels_too(size: int) -> None:
    dense = np.full((size, size), 7.0)
    dense[3, 4] = 1
    tensor = sl.asarray(dense, format="csr", fill=7.0)
    assert (tensor.fill, tensor.nnz) == (7, 1)
    np.testing.assert_array_equal(tensor.to_numpy(), dense)


def test_results_without_a_format_follow_the_rule() -> None:
    """Operators, ``evaluate`` and ``einsum`` agree: by rows, or by columns where all operands are; dense where one variable is."""
    dense = np.ones((6, 6))
    made = {"csr": sl.random((6, 6), 0.4, "csr", seed=1)}
    made |= {name: made["csr"].to(name) for name in ("csc", "dcsr", "coo", "ell", "bcsr(2,2)")} | {"dense": sl.asarray(dense)}
    products = {
        ("csr", "csr"): "csr", ("csr", "csc"): "csr", ("csc", "csr"): "csr", ("csc", "csc"): "csc", ("dcsr", "dcsr"): "dcsr",
        ("coo", "csr"): "dcsr", ("ell", "csr"): "csr", ("bcsr(2,2)", "bcsr(2,2)"): "csr", ("csr", "dense"): "dense(2)",
        ("dense", "dcsr"): "dense(2)",
    }  # fmt: skip
    for (left, right), format in products.items():
        a, b = made[left], made[right]
        results = a @ b, sl.evaluate("C(i,k) = A(i,j) * B(j,k)", A=a, B=b), sl.einsum("ij,jk->ik", a, b)
        assert [str(result.format) for result in results] == [format] * 3, (left, right)
    a = made["csr"]
    assert [str(t.format) for t in (a @ a.T, a.T @ a, a.T @ a.T, a + a.T, a.T + a.T)] == ["csr", "csr", "csc", "csr", "csc"]
    assert str(sl.evaluate("C(i,k) = A(j,i) * B(k,j)", A=a, B=a).format) == "csc"  # as a.T @ a.T
    assert str(sl.evaluate("C(i,j) = (A(i,j) + d(i)) * e(j)", A=a, d=dense[0], e=dense[0]).format) == "dense(2)"
    assert str(sl.evaluate("C(i,j) = A(i,j) * P(i,k) * Q(k,j)", A=a, P=dense, Q=dense).format) == "csr"
