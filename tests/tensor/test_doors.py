"""Doors that remember: operators, reductions, einsum and kernels find their way without posing and planning, and the right one."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.calls import kernel
from sparseloom.core.errors import ConversionWarning, StorageError
from sparseloom.core.settings import settings
from sparseloom.programs import chain, execution, laying
from sparseloom.programs.dispatch import Doors, doors
from sparseloom.tensor import operators

Make = Callable[[np.random.Generator], Any]


def matrix(rng: np.random.Generator, shape: tuple[int, int] = (20, 20), dtype: Any = float, stored: int = 60) -> sl.Tensor:
    """A csr matrix with as many entries each time, elsewhere."""
    dense = np.zeros(shape, dtype)
    dense.ravel()[rng.permutation(dense.size)[:stored]] = rng.integers(1, 9, stored).astype(dtype)
    return sl.asarray(dense).to("csr")


SPMV = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
SUM = sl.program("C(i,j) = A(i,j) + B(i,j)", formats={"A": "csr", "B": "csr", "C": "csr"})
DOORS: dict[str, tuple[Callable[[sl.Tensor, sl.Tensor, Any], Any], Callable[[Any, Any, Any], Any]]] = {
    "a @ x": (lambda a, b, x: a @ x, lambda a, b, x: a @ x),
    "x @ a": (lambda a, b, x: x @ a, lambda a, b, x: x @ a),
    "a @ b": (lambda a, b, x: a @ b, lambda a, b, x: a @ b),
    "a @ a": (lambda a, b, x: a @ a, lambda a, b, x: a @ a),
    "a + b": (lambda a, b, x: a + b, lambda a, b, x: a + b),
    "a - b": (lambda a, b, x: a - b, lambda a, b, x: a - b),
    "a - a": (lambda a, b, x: a - a, lambda a, b, x: a - a),
    "a * x": (lambda a, b, x: a * x, lambda a, b, x: a * x),
    "x - a": (lambda a, b, x: x - a, lambda a, b, x: x - a),
    "a * 3": (lambda a, b, x: a * 3, lambda a, b, x: a * 3),
    "2 - a": (lambda a, b, x: 2 - a, lambda a, b, x: 2 - a),
    "a ** 2": (lambda a, b, x: a**2, lambda a, b, x: a**2),
    "-a": (lambda a, b, x: -a, lambda a, b, x: -a),
    "a > b": (lambda a, b, x: a > b, lambda a, b, x: a > b),
    "a.T @ x": (lambda a, b, x: a.T @ x, lambda a, b, x: a.T @ x),
    "sum": (lambda a, b, x: a.sum(), lambda a, b, x: a.sum()),
    "sum of columns": (lambda a, b, x: a.sum(axis=0), lambda a, b, x: a.sum(axis=0)),
    "sum of rows": (lambda a, b, x: a.sum(axis=1), lambda a, b, x: a.sum(axis=1)),
    "max of rows": (lambda a, b, x: a.max(axis=1), lambda a, b, x: a.max(axis=1)),
    "mean": (lambda a, b, x: a.mean(axis=0), lambda a, b, x: a.mean(axis=0)),
    "where": (lambda a, b, x: sl.where(a > 0, a, b), lambda a, b, x: np.where(a > 0, a, b)),
    "einsum": (lambda a, b, x: sl.einsum("ij,j->i", a, x), lambda a, b, x: np.einsum("ij,j->i", a, x)),
    "einsum of two": (lambda a, b, x: sl.einsum("ij,kj->ik", a, b), lambda a, b, x: np.einsum("ij,kj->ik", a, b)),
    "evaluate": (lambda a, b, x: sl.evaluate("y(i) = A(i,j) * x(j)", A=a, x=x), lambda a, b, x: a @ x),
    "kernel": (lambda a, b, x: SPMV(a, x), lambda a, b, x: a @ x),
    "sparse kernel": (lambda a, b, x: SUM(B=b, A=a), lambda a, b, x: a + b),
    "matvec": (lambda a, b, x: a.matvec(x), lambda a, b, x: a @ x),
    "rmatvec": (lambda a, b, x: a.rmatvec(x), lambda a, b, x: a.T @ x),
}


def as_array(value: Any) -> Any:
    return value.to_numpy() if isinstance(value, sl.Tensor) else value


@pytest.mark.parametrize("name", DOORS)
def test_a_second_call_neither_poses_nor_plans(name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = DOORS[name]

    def compare() -> None:
        a, b, x = matrix(rng), matrix(rng), rng.integers(1, 9, 20).astype(float)
        np.testing.assert_array_equal(as_array(ours(a, b, x)), theirs(a.to_numpy(), b.to_numpy(), x))

    compare()
    compare()  # a sum has other fills inside than its operands, and what they are is learnt one by one

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("this was done before")

    for module, function in ((execution, "pose"), (chain, "pose"), (execution, "plan"), (execution, "build")):
        monkeypatch.setattr(module, function, never)
    for _ in range(5):
        compare()


@pytest.mark.parametrize("name", ["a @ x", "a @ b", "a + b", "a * 3", "2 - a", "-a", "sum of rows", "einsum", "kernel", "sparse kernel"])
def test_a_second_call_writes_no_statement(name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, _ = DOORS[name]
    many = [(matrix(rng), matrix(rng), np.ones(20)) for _ in range(4)]  # at once, so that none stands where another was
    for operands in many[:2]:
        ours(*operands)
    for what, function in ((operators, "Statement"), (kernel.Kernel, "specialized")):
        monkeypatch.setattr(what, function, None)
    for operands in many[2:]:
        ours(*operands)


def test_operands_of_all_kinds_in_turn_give_right_results(rng: np.random.Generator, case_count: int) -> None:
    dtypes = (float, np.float32, np.int32, complex)
    kinds = [(shape, dtype, stored) for shape in ((20, 20), (20, 7)) for dtype in dtypes for stored in (0, 5, 60)]
    for _ in range(max(case_count // 40, 20)):
        shape, dtype, stored = kinds[rng.integers(len(kinds))]
        a = matrix(rng, shape, dtype, stored)
        if rng.random() < 0.3:
            a = a.to("csc" if rng.random() < 0.5 else "coo")
        other = matrix(rng, shape, kinds[rng.integers(len(kinds))][1], 60)
        x = rng.integers(1, 9, shape[1]).astype(kinds[rng.integers(len(kinds))][1])
        dense, beside = a.to_numpy(), other.to_numpy()
        results = ((a @ x, dense @ x), (a + other, dense + beside), (a * other, dense * beside), (a.sum(axis=0), dense.sum(axis=0)))
        for made, want in results:
            assert made.dtype == want.dtype
            np.testing.assert_array_equal(made.to_numpy(), want)


def test_fills_are_told_apart(rng: np.random.Generator) -> None:
    plain = matrix(rng)
    for fill in (0, 1.0, -0.0, 0.0, np.nan, np.inf, 1.0, 0):
        a = sl.asarray(plain, fill=fill)
        want = np.where(plain.to_numpy() == 0, fill, plain.to_numpy())
        np.testing.assert_array_equal((a + plain).to_numpy(), want + plain.to_numpy())
        np.testing.assert_array_equal(np.signbit((a * 1.0).to_numpy()), np.signbit(want))
        np.testing.assert_array_equal(a.sum(axis=1).to_numpy(), want.sum(axis=1))


def test_numbers_are_told_apart(rng: np.random.Generator) -> None:
    a = matrix(rng, dtype=np.uint8)
    dense = a.to_numpy()
    numbers = (2, 3, True, 2.0, 200, 2, np.float32(2), np.float64(2), np.int64(2), 0.5, np.uint8(3), 1j, complex(2, -0.0), complex(2, 0.0))
    for number in numbers:
        np.testing.assert_array_equal((a * number).to_numpy(), dense * number)
        assert (a * number).dtype == (dense * number).dtype
    for number in (2, 3, 2.0, 3.0, 0.0, -0.0, np.nan, 1j):
        np.testing.assert_array_equal((a + number).to_numpy(), dense + number)
        np.testing.assert_array_equal((number - a).to_numpy(), number - dense)
    assert (a * 300).to_numpy().max() > 255 and (a * 300).dtype == (a * 1000).dtype


def test_signs_of_zeros_are_kept(rng: np.random.Generator) -> None:
    a = sl.asarray(matrix(rng).to_numpy())
    for zero in (0.0, -0.0, 0.0, complex(1, 0.0), complex(1, -0.0)):
        np.testing.assert_array_equal(np.signbit((a * 0 * zero).to_numpy().imag), np.signbit((a.to_numpy() * 0 * zero).imag))


def test_changed_values_and_structures_are_seen(rng: np.random.Generator) -> None:
    A = matrix(rng).to_scipy()
    a, x = sl.asarray(A), np.ones(20)
    for _ in range(3):
        np.testing.assert_array_equal((a @ x).to_numpy(), A @ x)
        A.data[:] = rng.integers(1, 9, A.nnz)
        for row in range(20):
            begin, end = A.indptr[row], A.indptr[row + 1]
            A.indices[begin:end] = np.sort(rng.permutation(20)[: end - begin])
        np.testing.assert_array_equal((a + a).to_numpy(), 2 * A.toarray())
    A.indices[3] = 99
    with pytest.raises(StorageError, match="the arrays were changed after they became a tensor"):
        a @ x


def test_operands_by_name_are_known_in_any_order(rng: np.random.Generator) -> None:
    k = sl.program("y(i) = a(i) - b(i)")
    A, B = matrix(rng, stored=20), matrix(rng, stored=90)
    for _ in range(5):
        a, b = rng.random(20), rng.random(20)
        for made in (k(a, b), k(b=b, a=a), k(a, b=b), k({"b": b, "a": a})):
            np.testing.assert_array_equal(made.to_numpy(), a - b)
        want = A.to_numpy() - B.to_numpy()
        np.testing.assert_array_equal(sl.evaluate("C(i,j) = A(i,j) - B(i,j)", A=A, B=B.to("csc")).to_numpy(), want)
        np.testing.assert_array_equal(sl.evaluate("C(i,j) = A(i,j) - B(i,j)", B=B, A=A.to("csc")).to_numpy(), want)


def test_an_operand_in_two_places_is_no_pair(rng: np.random.Generator) -> None:
    for _ in range(3):
        a, b = matrix(rng), matrix(rng)
        for left, right in ((a, a), (a, b), (b, b), (b, a)):
            np.testing.assert_array_equal((left - right).to_numpy(), left.to_numpy() - right.to_numpy())
            np.testing.assert_array_equal((left @ right).to_numpy(), left.to_numpy() @ right.to_numpy())


@pytest.fixture
def narrow() -> Iterator[None]:
    """Positions above 127 do not fit."""
    before, settings.int32_limit = settings.int32_limit, 127
    yield
    settings.int32_limit = before


@pytest.mark.usefixtures("narrow")
def test_results_that_outgrow_their_positions_are_widened(rng: np.random.Generator) -> None:
    for stored in (12, 20, 60, 60, 20, 90):
        a = matrix(rng, stored=stored)
        product = a @ a
        np.testing.assert_array_equal(product.to_numpy(), a.to_numpy() @ a.to_numpy())
        np.testing.assert_array_equal((a + a.T.tocsr()).to_numpy(), a.to_numpy() + a.to_numpy().T)


def test_threads_go_through_doors_at_once(rng: np.random.Generator) -> None:
    pairs = [(matrix(rng, stored=stored), rng.integers(1, 9, 20).astype(float)) for stored in (3, 30, 60, 90)]
    k = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})

    def work() -> None:
        for a, x in pairs * 10:
            dense = a.to_numpy()
            np.testing.assert_array_equal((a @ x).to_numpy(), dense @ x)
            np.testing.assert_array_equal(k(a, x.copy()).to_numpy(), dense @ x)
            np.testing.assert_array_equal((a @ a).to_numpy(), dense @ dense)
            np.testing.assert_array_equal((a * 2 + a).to_numpy(), 3 * dense)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work) for _ in range(8)]:
            done.result()


def test_nothing_is_kept_alive(rng: np.random.Generator) -> None:
    k = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
    gone: list[weakref.ref[Any]] = []
    for _ in range(6):
        a, x = matrix(rng), rng.random(20)
        A = a.to_scipy()
        for made in (a @ x, a + a, a * 2, a.sum(axis=1), sl.einsum("ij,j->i", a, x), k(A, x), k(a, x)):
            gone += [weakref.ref(made), weakref.ref(made.storage.values)]
        gone += [weakref.ref(thing) for thing in (a, a.storage, a.storage.values, x, A, A.indices)]
        del a, A, x, made
    gc.collect()
    assert not [thing() for thing in gone if thing() is not None]


def test_a_copy_of_a_storage_has_its_own_addresses(rng: np.random.Generator) -> None:
    storage = matrix(rng).storage
    laid = laying.lay(storage)
    assert laid is not None and laying.lay(storage) is laid
    for made in (copy.copy(storage), copy.deepcopy(storage)):
        assert not hasattr(made, "laid")
    again = laying.lay(copy.deepcopy(storage))
    assert again is not None and again[0] is laid[0] and not {*again[3]} & {*laid[3]}


def test_what_is_remembered_is_bounded(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    few = Doors(3)
    monkeypatch.setattr(operators, "doors", few)
    monkeypatch.setattr(laying, "MOST_KINDS", 4)
    monkeypatch.setattr(laying, "_KINDS", {})
    for size in (*range(2, 9), *range(2, 9)):
        a = matrix(rng, (size, size), stored=3)
        np.testing.assert_array_equal((a @ np.ones(size)).to_numpy(), a.to_numpy().sum(axis=1))
        assert len(few._known) <= 3 and len(laying._KINDS) <= 4


def test_small_matrices_of_scipy_are_looked_at_each_time(rng: np.random.Generator) -> None:
    k = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
    x = rng.integers(1, 9, 20).astype(float)

    def fresh() -> Any:
        return copy.deepcopy(A)

    A = matrix(rng).to_scipy()
    for _ in range(3):
        np.testing.assert_array_equal(k(fresh(), x).to_numpy(), A @ x)
    pointers = [("indptr", 0, 1), ("indptr", 7, 61), ("indptr", 20, 70), ("indptr", 9, -3)]
    for array, place, value in [("indices", 5, 20), ("indices", 5, -1), *pointers]:
        broken = fresh()
        getattr(broken, array)[place] = value
        with pytest.raises(StorageError):
            k(broken, x)
    shorter = fresh()
    shorter.indptr = shorter.indptr[:-1].copy()
    with pytest.raises(StorageError):
        k(shorter, x)


def test_matrices_of_scipy_that_must_be_changed_first_are(rng: np.random.Generator) -> None:
    k = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
    x = rng.integers(1, 9, 20).astype(float)
    A = matrix(rng).to_scipy()
    for _ in range(3):
        np.testing.assert_array_equal(k(copy.deepcopy(A), x).to_numpy(), A @ x)
    backwards, wide, mixed, longer = (copy.deepcopy(A) for _ in range(4))
    for row in range(20):
        part = slice(A.indptr[row], A.indptr[row + 1])
        backwards.indices[part], backwards.data[part] = A.indices[part][::-1], A.data[part][::-1]
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    mixed.indptr = mixed.indptr.astype(np.int64)
    longer.indices, longer.data = np.append(A.indices, 7).astype(np.int32), np.append(A.data, 5.0)
    strided = copy.deepcopy(A)
    strided.data = np.repeat(A.data, 2)[::2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        for given in (backwards, wide, mixed, longer, strided, A.tocsc(), A.tocoo(), sp.csr_matrix(A), A.astype(np.float32)):
            for _ in range(3):
                np.testing.assert_array_equal(k(given, x).to_numpy(), A @ x)


def test_the_same_objects_are_recalled_still(rng: np.random.Generator) -> None:
    k = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
    A, x = matrix(rng).to_scipy(), rng.random(20)
    for _ in range(5):
        x[:] = rng.integers(1, 9, 20)
        np.testing.assert_array_equal(k(A, x).to_numpy(), A @ x)
    y = sl.zeros(20)
    for _ in range(3):
        k(A, x, out=y)
    assert k._recalled


def test_the_adjoint_of_a_complex_matrix(rng: np.random.Generator) -> None:
    a = matrix(rng, (20, 7), complex) * (1 + 2j)
    for x in (rng.integers(1, 9, 20) * 1j + 1, rng.integers(1, 9, 20), np.ones((20, 2)) * 1j):
        np.testing.assert_array_equal(a.rmatvec(x), a.to_numpy().conj().T @ x)


def test_kernels_say_what_ran_last(rng: np.random.Generator) -> None:
    k = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
    a = matrix(rng)
    for dtype in (np.float64, np.float32, np.float64, np.float32):
        k(a.astype(dtype), np.ones(20, dtype))
        assert ("float *" in k.source) == (dtype == np.float32)


def test_doors_of_tensors_hold_no_arrays() -> None:
    held = [thing for thing in gc.get_referents(doors._known) if isinstance(thing, np.ndarray | sl.Tensor)]
    assert not held


def test_a_product_in_several_statements_goes_through_a_door(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    def operands() -> tuple[sl.Tensor, sl.Tensor, np.ndarray]:
        made = (sp.random_array((300, 300), density=0.1, format="csr", rng=rng) for _ in range(2))
        first, second = (sl.asarray(one) for one in made)
        return first, second, rng.random(300)

    def compare(a: sl.Tensor, b: sl.Tensor, x: np.ndarray) -> None:
        found = sl.einsum("ij,jk,k->i", a, b, x)
        np.testing.assert_allclose(found.to_numpy(), a.to_scipy() @ (b.to_scipy() @ x))

    many = [operands() for _ in range(6)]
    many += [(a, a, x) for a, _, x in many]
    many = many[::2] + many[1::2]
    assert len(sl.plan("ij,jk,k->i", *many[0]).split("\n")) > 4
    for given in many[:6]:
        compare(*given)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("this was done before")

    for what, function in ((chain, "pose"), (execution, "plan"), (execution, "build"), (chain.Chain, "run"), (chain.Chain, "bind")):
        monkeypatch.setattr(what, function, never)
    for given in many[6:]:
        compare(*given)


def test_a_nan_that_zeros_may_have_made_is_looked_into_by_one_nest(rng: np.random.Generator) -> None:
    matrix = sp.random_array((300, 300), density=0.1, format="csr", rng=rng)
    a, x = sl.asarray(matrix), rng.random(300)
    for _ in range(3):
        sl.einsum("ij,jk,k->i", a, a, x)
    x[7] = np.inf
    wanted = sl.einsum("ij,jk,k->i", a, a, x, optimize=False).to_numpy()
    np.testing.assert_array_equal(np.isnan(sl.einsum("ij,jk,k->i", a, a, x).to_numpy()), np.isnan(wanted))


def test_einsum_fills_any_array(rng: np.random.Generator) -> None:
    """Of a wider dtype, with gaps, in another order, and dense where the result would be sparse."""
    a = sl.random((4, 4), 0.5, "csr", seed=1)
    expected = a.to_numpy() @ a.to_numpy()
    outputs = np.zeros((4, 4)), np.zeros((4, 4), complex), np.zeros((8, 8))[::2, ::2], np.zeros((4, 4)).T
    for out in outputs:
        sl.einsum("ij,jk->ik", a, a, out=out)
        np.testing.assert_allclose(out, expected)
    counted = np.zeros((), np.int64)
    sl.einsum("i->", np.full(3, 100, np.int8), out=counted)
    assert counted == 300  # as in NumPy, computed in the dtype of all of them
    with pytest.raises(sl.ShapeError, match=r"^out has the shape \(4, 4\), but the result has \(4,\)"):
        sl.einsum("ij->i", a, out=outputs[2])
    with pytest.raises(sl.DTypeError, match="out holds float32"):
        sl.einsum("ij,jk->ik", a, a, out=np.zeros((4, 4), np.float32))


def sorted_otherwise(A: Any) -> Any:
    """The same matrix with the entries of each row backwards."""
    B = copy.deepcopy(A)
    for row in range(A.shape[0]):
        part = slice(A.indptr[row], A.indptr[row + 1])
        B.indices[part], B.data[part] = A.indices[part][::-1], A.data[part][::-1]
    B.has_sorted_indices = False
    return B


@pytest.mark.parametrize("stored", [60, 40_000])
def test_objects_of_neighbours_are_known_everywhere(stored: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 20 if stored < 100 else 500
    a = matrix(rng, (size, size), stored=stored)
    A, dense, wide = a.to_scipy(), a.to_numpy(), rng.integers(1, 9, (size, 3)).astype(float)
    x, y = wide[:, 1], rng.integers(1, 9, size).astype(float)
    B = sorted_otherwise(A)
    k = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"})
    two = sl.program("t(k) = A(k,l) * x(l)\ny(i) = A(i,k) * t(k)", {"A": "csr"})
    shortest = np.min(np.where(dense == 0, np.inf, dense) + x, axis=1)
    text = "y(i) = A(i,j) * x(j)"
    calls: list[tuple[Callable[[], Any], Any]] = [
        (lambda: sl.einsum("ij,j->i", A, x), dense @ x), (lambda: sl.einsum("ij,j->i", B, x), dense @ x),
        (lambda: sl.evaluate(text, A=A, x=x), dense @ x), (lambda: sl.evaluate(text, A=B, x=y), dense @ y),
        (lambda: sl.evaluate(text, A=A, x=x, semiring="min_plus"), shortest), (lambda: k(A, x), dense @ x), (lambda: k(B, x), dense @ x),
        (lambda: sl.evaluate(text, A=A, x=y, dtype="float32"), dense @ y), (lambda: two(A, x), dense @ (dense @ x)),
        (lambda: sl.evaluate("y(i) += A(i,j) * x(j)", A=A, x=x, y=y), y + dense @ x), (lambda: a @ x, dense @ x),
        (lambda: sl.einsum("ij,jk->ik", A, np.asfortranarray(wide)), dense @ wide),
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        for _ in range(2):
            for ours, want in calls:
                np.testing.assert_allclose(ours().to_numpy(), want)
        monkeypatch.setattr(kernel.Kernel, "specialized", None)
        for ours, want in calls:
            np.testing.assert_allclose(ours().to_numpy(), want)


def test_unsorted_matrices_are_sorted_once_and_said_so(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    A, x = matrix(rng).to_scipy(), rng.integers(1, 9, 20).astype(float)
    B = sorted_otherwise(A)
    for format in ("csr", "coo"):
        given = B if format == "csr" else B.tocoo()
        with pytest.warns(ConversionWarning, match=r"its coordinates are not sorted\n  help: call sort_indices\(\) on the matrix, or pass"):
            sl.evaluate("y(i) = A(i,j) * x(j)", A=given, x=x)
        with monkeypatch.context() as patch:
            patch.setattr("sparseloom.interop.entry.convert", None)
            for _ in range(3):
                given.data *= 2  # values are read anew
                with pytest.warns(ConversionWarning):
                    np.testing.assert_array_equal(sl.evaluate("y(i) = A(i,j) * x(j)", A=given, x=x).to_numpy(), given @ x)
    B.indices[:] = (B.indices + 3) % 20  # entries that move are sorted again
    with pytest.warns(ConversionWarning):
        np.testing.assert_array_equal(sl.evaluate("y(i) = A(i,j) * x(j)", A=B, x=x).to_numpy(), B @ x)
    B.indices[4] = 20
    with pytest.raises(StorageError):
        sl.evaluate("y(i) = A(i,j) * x(j)", A=B, x=x)


def test_large_matrices_of_scipy_are_looked_at_again(rng: np.random.Generator) -> None:
    a = matrix(rng, (500, 500), stored=40_000)
    A, x = a.to_scipy(), rng.integers(1, 9, 500).astype(float)
    for _ in range(4):
        np.testing.assert_array_equal(sl.einsum("ij,j->i", A, x).to_numpy(), A @ x)
    for array, value in (("indices", 500), ("indices", -1), ("indptr", 50_000)):
        arrays = getattr(A, array)
        before, arrays[7] = arrays[7], value
        with pytest.raises(StorageError):
            sl.einsum("ij,j->i", A, x)
        arrays[7] = before
    np.testing.assert_array_equal(sl.einsum("ij,j->i", A, x).to_numpy(), A @ x)


def test_initial_values_are_not_changed_and_promote(rng: np.random.Generator) -> None:
    x = rng.integers(1, 9, 20).astype(float)
    for start in (np.ones(20), np.ones(20, np.float32), np.ones(40)[::2], np.ones(20, np.int64)):
        for _ in range(3):
            made = sl.evaluate("y(i) += 2 * x(i)", x=x, y=start)
            np.testing.assert_array_equal(made.to_numpy(), 1 + 2 * x)
            assert made.dtype == np.float64 and (start == 1).all()
