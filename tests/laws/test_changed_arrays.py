"""Arrays that a caller changes after they became a tensor: every call sees what they hold now, or says what is wrong with it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.core.errors import DTypeError, StorageError
from sparseloom.programs.guard import Guard


def matrix(rows: int = 40, columns: int = 50, density: float = 0.2, seed: int = 1) -> Any:
    return sp.random_array((rows, columns), density=density, format="csr", rng=seed)


SPMV = "y(i) = A(i,j) * x(j)"


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
def test_an_index_out_of_range_is_found_in_raw_arrays(format: str) -> None:
    a, x = matrix().asformat(format), np.ones(50)
    sl.evaluate(SPMV, A=a, x=x)
    indices = a.coords[1] if format == "coo" else a.indices
    indices[3] = 2 * 10**9
    for _ in range(2):
        with pytest.raises(StorageError, match="2000000000"):
            sl.evaluate(SPMV, A=a, x=x)


@pytest.mark.parametrize("use", [lambda t, x: t @ x, lambda t, x: t + t, lambda t, x: t.sum(), lambda t, x: t.to("csc"), lambda t, x: t[3],
                                 lambda t, x: t.to_numpy(), lambda t, x: t.nnz, lambda t, x: sl.einsum("ij,j->i", t, x),
                                 lambda t, x: sl.program(SPMV, {"A": "csr"})(t, x)])  # fmt: skip
def test_an_index_out_of_range_is_found_in_a_tensor(use: Callable[[Any, Any], Any]) -> None:
    a = matrix()
    tensor, x = sl.asarray(a), np.ones(50)
    use(tensor, x)
    a.indices[0] = -7
    with pytest.raises(StorageError, match=r"crd\[0\] = -7.*\n.*changed after they became a tensor"):
        use(tensor, x)
    a.indices[0] = 0
    np.testing.assert_allclose((tensor @ x).to_numpy(), a @ x)


def test_columns_that_are_relabelled_are_sorted_again() -> None:
    """Still a valid matrix of SciPy, which need not be sorted; a tensor is."""
    a, x = matrix(), np.arange(50.0)
    kernel = sl.program(SPMV, {"A": "csr"})
    product = sl.program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"})
    b = matrix(50, 30, seed=2)
    kernel(a, x)
    for seed in range(3):
        a.indices[:] = np.random.default_rng(seed).permutation(50)[a.indices]
        with pytest.warns(sl.ConversionWarning, match="not sorted"):
            np.testing.assert_allclose(kernel(a, x).to_numpy(), a @ x)
        with pytest.warns(sl.ConversionWarning, match="not sorted"):
            np.testing.assert_allclose(product(a, b).to_numpy(), (a @ b).toarray())


def test_positions_that_move_are_seen() -> None:
    a, x = matrix(), np.arange(50.0)
    tensor, kernel = sl.asarray(a), sl.program(SPMV, {"A": "csr"})
    out = sl.zeros(40)
    kernel(tensor, x, out=out)
    a.indptr[1:-1] = 0  # all entries in the last row, where they are in no order
    with pytest.raises(StorageError, match="changed after they became a tensor"):
        kernel(tensor, x, out=out)
    one = sp.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
    t = sl.asarray(one)
    assert t.sum(axis=1).to_numpy().tolist() == [3.0, 3.0]
    one.indptr[1], one.indices[:] = 1, [0, 0, 1]
    assert t.sum(axis=1).to_numpy().tolist() == [1.0, 5.0]


def test_an_assignment_reads_what_its_operands_hold_when_it_runs() -> None:
    a, x = matrix(), np.ones(50)
    i, j = sl.indices("i j")
    y = sl.zeros(40)
    held = sl.asarray(a)
    y[i] = held[i, j] * sl.asarray(x)[j]
    np.testing.assert_allclose(y.to_numpy(), a @ x)
    with sl.deferred():
        y[i] = held[i, j] * sl.asarray(x)[j]
    a.indices[5] = 10**9
    with pytest.raises(StorageError, match="1000000000"):
        y.to_numpy()
    with pytest.raises(StorageError, match="1000000000"):
        y[i] = held[i, j] * sl.asarray(x)[j]


def test_conversions_follow_their_operand() -> None:
    """A csc operand where csr is wanted: the way its entries go is remembered, as long as they stay where they are."""
    a = matrix().tocsc()
    tensor, kernel, x = sl.asarray(a), sl.program("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}), matrix(seed=4)
    for _ in range(3):
        np.testing.assert_allclose(kernel(tensor, x).to_numpy(), (a + x).toarray())
        np.testing.assert_allclose(sl.evaluate("C(i,j) = A(i,j) + B(i,j)", A=tensor, B=x, format="csr").to_numpy(), (a + x).toarray())
        a.indices[:] = (a.indices + 0)
        last = a.indptr[1:] - 1
        a.indices[last[np.diff(a.indptr) > 0]] = 39  # the last of every column moves down, and stays the last


@pytest.mark.parametrize("make", [lambda t: t * 10, np.sin, lambda t: t.astype("f4"), lambda t: +t, lambda t: t.conj(), lambda t: t.real,
                                  lambda t: t.to("coo"), lambda t: t.to("csr"), lambda t: t[:], lambda t: t[2:30], lambda t: -t,
                                  lambda t: t.copy(), lambda t: sl.asarray(t, copy=True)])  # fmt: skip
def test_a_result_keeps_nothing_that_a_caller_owns(make: Callable[[Any], Any]) -> None:
    a = matrix()
    a.data[::3] = 0
    tensor = sl.asarray(a)
    made = make(tensor)
    before = made.to_numpy().copy()
    a.eliminate_zeros()
    a.data[:] = 77
    np.testing.assert_array_equal(made.to_numpy(), before)


def test_a_result_is_apart_from_what_is_done_to_another() -> None:
    a = sl.random((30, 30), 0.2, format="csr", seed=3)
    b = a * 2
    c = b * 3
    values = [t.to_numpy() for t in (a, b, c)]
    given = b.to_scipy()
    given.data[:4] = 0
    given.eliminate_zeros()
    given.indices[:] = 0
    np.testing.assert_array_equal(a.to_numpy(), values[0])
    np.testing.assert_array_equal(c.to_numpy(), values[2])


def test_dense_results_keep_nothing_that_a_caller_owns() -> None:
    x = np.arange(6.0)
    t = sl.asarray(x)
    made = [+t, t.to("dense"), t.astype("f4"), t * 1, t.conj()]
    x[:] = -1
    for one in made:
        assert one.to_numpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_what_is_handed_out_is_checked_from_then_on() -> None:
    a = sl.random((30, 30), 0.2, format="csr", seed=3)
    a.to_scipy().indices[0] = 10**6
    with pytest.raises(StorageError, match="1000000"):
        a.sum()
    b = sl.random((30, 30), 0.2, format="csr", seed=3)
    turned, total = b.T, b.sum()
    turned.arrays["crd1"][0] = -1
    with pytest.raises(StorageError, match="-1"):
        turned.sum()
    assert b.sum() == total
    b.arrays["crd1"][0] = -1
    with pytest.raises(StorageError, match="-1"):
        b.sum()


def test_entries_are_not_the_arrays_they_were_given_in() -> None:
    crd, values = np.array([[0, 1, 2], [0, 1, 2]], np.int32), np.ones(3)
    t = sl.from_coo(crd, values, (3, 3), format="coo")
    crd[:], values[:] = 99, 99
    np.testing.assert_array_equal(t.to_numpy(), np.eye(3))


def test_structure_that_changed_is_not_computed_again() -> None:
    a = matrix(30, 30)
    kernel = sl.program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"})
    made = kernel.assemble(a, a)
    a.data[:] = 2
    np.testing.assert_allclose(kernel.compute(a, a, out=made).to_numpy(), (a @ a).toarray())
    row = next(i for i in range(30) if 0 < a.indptr[i + 1] - a.indptr[i] < 20)
    a.indices[a.indptr[row + 1] - 1] = 29 if a.indices[a.indptr[row + 1] - 1] != 29 else 28
    with pytest.raises(StorageError, match=r"not stored as it was when C was assembled"):
        kernel.compute(a, a, out=made)


def test_computing_again_leaves_converted_results_alone() -> None:
    a = sl.asarray(matrix(30, 30), copy=True)
    kernel = sl.program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"})
    made = kernel.assemble(a, a)
    listed, before = made.to("coo"), made.to_numpy()
    a.storage.values[:] = 0
    kernel.compute(a, a, out=made)
    np.testing.assert_array_equal(listed.to_numpy(), before)
    assert not made.to_numpy().any()
    kernel.compute(a, a, out=made)


def test_nothing_is_held_that_the_caller_lets_go() -> None:
    kernel = sl.program("y(i) = 2 * x(i)")
    alive = []
    for wrap in (sl.asarray, lambda array: array):
        for _ in range(5):
            x, y = np.ones(1000), np.zeros(1000)
            alive += [weakref.ref(x), weakref.ref(y)]
            kernel(wrap(x), out=wrap(y))
            kernel(wrap(x))
            del x, y
    gc.collect()
    assert not any(one() is not None for one in alive)


def test_calls_on_the_same_arrays_see_new_values_and_places() -> None:
    kernel = sl.program(SPMV, {"A": "csr"})
    a, x, y = matrix(), np.ones(50), np.zeros(40)
    for _ in range(3):
        np.testing.assert_allclose(kernel(a, x).to_numpy(), a @ x)
        np.testing.assert_allclose(kernel(a, x, out=y).to_numpy(), a @ x)
        np.testing.assert_allclose(kernel(A=a, x=x).to_numpy(), a @ x)
        x += 1
        a.data *= 2
    first = kernel(a, x)
    assert kernel(a, x) is not first
    a.data = a.data.copy()
    a.data *= 3
    np.testing.assert_allclose(kernel(a, x).to_numpy(), a @ x)
    y.flags.writeable = False
    with pytest.raises(StorageError, match="read-only"):
        kernel(a, x, out=y)
    square = np.ones((5, 10)).reshape(50)
    np.testing.assert_allclose(kernel(a, square).to_numpy(), a @ square)
    square.shape = (50, 1)
    with pytest.raises(sl.ShapeError):
        kernel(a, square)


def test_a_view_in_another_order_is_not_mistaken_for_what_it_was() -> None:
    kernel = sl.program("y(i) = 2 * x(i)")
    x = np.arange(8.0)
    kernel(x)
    x.shape = (8,)
    x = x[::-1]
    for _ in range(2):
        with pytest.warns(sl.ConversionWarning, match="not contiguous"):
            np.testing.assert_array_equal(kernel(x).to_numpy(), 2 * x)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr", "bcsr(2,3)", "ell", "u~q~+", "du~", "uq", "su", "db", "bs", "dia"])
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_a_guard_sees_what_a_whole_check_sees(format: str, width: Any, rng: np.random.Generator) -> None:
    """One index after another is changed; the quick check agrees with the slow one, or leaves it to it."""
    given = sl.random((150, 90), 0.05, seed=int(rng.integers(1000)))
    storage = sl.asarray(given, format="csr").to(format.replace("su", "ss")).storage
    for levels in storage.levels:
        for name, array in levels.arrays.items():
            levels.arrays[name] = array if array.dtype == bool else np.array(array, width)
    guard = Guard(storage)
    assert guard.holds()
    arrays = [(level, name) for level in storage.levels for name in level.arrays]
    for _ in range(150):
        level, name = arrays[rng.integers(len(arrays))]
        array = level.arrays[name]
        place, old = rng.integers(len(array)), None
        old = array[place]
        array[place] = rng.choice([old + 1, old - 1, -1, 0, 89, 90, 10**6, np.iinfo(width).max, np.iinfo(width).min])
        if array[place] != old and guard.holds():
            try:
                Guard(storage)
            except StorageError as fault:
                assert "unused place" in str(fault)  # nothing reads there
        array[place] = old
    assert guard.holds()


@pytest.mark.parametrize("format", ["coo(2)", "coo(3)"])
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_a_guard_sees_neighbours_that_change_places(format: str, width: Any, rng: np.random.Generator) -> None:
    """Wherever in a list they stand, and whichever column decides."""
    order = int(format[4])
    storage = sl.random((7, 40, 6)[:order], 0.3, format, seed=int(rng.integers(1000))).storage
    for levels in storage.levels:
        levels.arrays.update({name: np.array(given, width) for name, given in levels.arrays.items()})
    columns = [level.arrays["crd"] for level in storage.levels]
    guard = Guard(storage)
    assert guard.holds() and len(columns[0]) > 64
    for place in range(len(columns[0]) - 1):
        for column in columns:
            column[place], column[place + 1] = column[place + 1], column[place]
        assert not guard.holds()
        for column in columns:
            column[place], column[place + 1] = column[place + 1], column[place]
    assert guard.holds()


def test_entries_that_come_in_order_are_not_sorted_and_stay_the_callers(rng: np.random.Generator) -> None:
    matrix = sl.random((3000, 2000), 0.02, "csr", seed=3).to_scipy().tocoo()
    coordinates, values = np.stack([matrix.row, matrix.col]), matrix.data.copy()
    mixed = rng.permutation(len(values))
    repeated = np.concatenate([coordinates, coordinates[:, :5]], axis=1), np.concatenate([values, values[:5]])
    made, sorted_first = sl.from_coo(coordinates, values, matrix.shape), sl.from_coo(coordinates[:, mixed], values[mixed], matrix.shape)
    np.testing.assert_array_equal(made.to_numpy(), matrix.toarray())
    np.testing.assert_array_equal(sorted_first.to_numpy(), matrix.toarray())
    summed = matrix.toarray()
    summed[tuple(coordinates[:, :5])] *= 2
    np.testing.assert_array_equal(sl.from_coo(*repeated, matrix.shape).to_numpy(), summed)
    coordinates[:], values[:] = 0, 7
    np.testing.assert_array_equal(made.to_numpy(), matrix.toarray())


def test_large_arrays_are_copied_by_all_threads() -> None:
    entries = 700_000
    matrix = sp.coo_array((np.arange(entries) + 1.0, (np.arange(entries) // 7, np.arange(entries) % 7)), shape=(100_000, 7))
    made = sl.asarray(matrix).to("csr")
    matrix.data[:], matrix.col[:] = 0, 0
    np.testing.assert_array_equal(made.storage.values, np.arange(entries) + 1.0)
    np.testing.assert_array_equal(made.storage.levels[1].arrays["crd"], np.arange(entries) % 7)


@pytest.mark.parametrize("fill", [None, "0", 1j, np.array([1, 2]), [0], b"0", object()])
def test_a_fill_is_a_number_that_the_values_can_be(fill: Any) -> None:
    one = {"pos0": np.array([0, 1]), "crd0": np.array([1]), "values": np.array([5.0])}
    with pytest.raises(DTypeError, match="fill"):
        sl.from_arrays("s", (3,), one, fill=fill)
    with pytest.raises(DTypeError, match="fill"):
        sl.from_coo([[0]], [1.0], (3,), fill=fill)


@pytest.mark.parametrize("out", [[0.0, 0.0, 0.0], (0.0,) * 3, 0.0])
def test_an_output_is_something_that_can_be_written_to(out: Any) -> None:
    with pytest.raises(StorageError, match=f"out cannot be {type(out).__name__}"):
        sl.program("y(i) = 2 * x(i)")(np.ones(3), out=out)


def test_masked_arrays_are_refused_at_every_door() -> None:
    hidden = np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0])
    index = np.ma.masked_array([0, 1, 2], [0, 1, 0])
    a = sp.csr_array(np.eye(3))
    a.data = hidden
    b = sp.csr_array(np.eye(3))
    b.indices = index
    for make in (
        lambda: sl.asarray(hidden), lambda: sl.asarray(a), lambda: sl.asarray(b), lambda: sl.from_coo([index], np.ones(3), (3,)),
        lambda: sl.from_coo([[0, 1, 2]], hidden, (3,)),
        lambda: sl.from_arrays("s", (3,), {"pos0": np.array([0, 3]), "crd0": index, "values": np.ones(3)}),
        lambda: sl.from_arrays("s", (3,), {"pos0": np.array([0, 3]), "crd0": np.arange(3), "values": hidden}),
    ):  # fmt: skip
        with pytest.raises(StorageError, match="masked"):
            make()


def test_values_that_are_not_aligned_are_copied() -> None:
    raw = np.zeros(8 * 5 + 1, np.uint8)
    values = raw[1:].view(float)
    values[:] = np.arange(1, 6)
    made = sl.from_coo([np.arange(5)], values, (5,), format="s")
    assert made.storage.values.flags.aligned
    assert made.to_numpy().tolist() == [1, 2, 3, 4, 5]


def is_sealed(tensor: Any) -> bool:
    return bool(tensor.storage.is_sealed)


def test_arrays_that_nobody_else_has_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [sl.asarray(matrix()), sl.asarray(matrix()).T, sl.asarray(matrix().tocsc()), sl.asarray(matrix(), copy=True)]
    arrays = {"pos1": np.array([0, 1, 2]), "crd1": np.array([0, 1]), "values": np.ones(2)}
    made.append(sl.from_arrays("ds", (2, 50), arrays))
    assert not is_sealed(made[-1])
    arrays.clear()
    assert all(map(is_sealed, made))
    monkeypatch.setattr(Guard, "holds", None)
    for tensor in made:
        tensor @ np.ones(tensor.shape[1])


@pytest.mark.parametrize("keep", [lambda a: a, lambda a: a.indices, lambda a: a.indptr[2:5], lambda a: memoryview(a.indices),
                                  lambda a: sp.csr_array((np.zeros(a.nnz), a.indices, a.indptr), shape=a.shape),
                                  lambda a: [a.indptr], lambda a: a.indices.base])  # fmt: skip
def test_arrays_that_somebody_else_has_are(keep: Callable[[Any], Any]) -> None:
    a = matrix()
    kept = keep(a)
    tensor, x, want = sl.asarray(a), np.ones(50), a @ np.ones(50)
    del a
    np.testing.assert_allclose((tensor @ x).to_numpy(), want)
    assert not is_sealed(tensor)
    del kept
    assert is_sealed(tensor)
    tensor.to_scipy().indices[0] = 99
    with pytest.raises(StorageError, match="99"):
        tensor @ x


def test_what_was_changed_before_it_was_let_go_is_found() -> None:
    a, x = matrix(), np.ones(50)
    tensor = sl.asarray(a)
    tensor @ x
    a.indices[0] = 50
    del a
    for _ in range(2):
        with pytest.raises(StorageError, match="50"):
            tensor @ x


def test_a_view_of_what_became_the_tensors_own_is_checked_when_it_is_handed_out() -> None:
    for view in (lambda t: t.T, lambda t: t.to("csr", copy=False)):
        tensor = sl.asarray(matrix())
        tensor @ np.ones(50)
        other = view(tensor)
        other.arrays["crd1"][0] = 77
        with pytest.raises(StorageError, match="77"):
            other.sum()
        try:
            assert tensor.to_numpy().shape == (40, 50)  # it has arrays of its own, or says that they were changed
        except StorageError as fault:
            assert "77" in str(fault)


def test_read_only_arrays_are_read_again_once_they_were_open_to_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    a, x = matrix(), np.arange(50.0)
    a.indices, a.indptr = a.indices.copy(), a.indptr.copy()
    a.indices.flags.writeable = a.indptr.flags.writeable = False
    tensor, kernel = sl.asarray(a), sl.program(SPMV, {"A": "csr"})
    loaded = kernel(a, x), kernel(tensor, x)
    with monkeypatch.context() as patch:
        patch.setattr("sparseloom.programs.guard._guard_entry", None)
        for made in (*loaded, tensor @ x, kernel(tensor, x)):
            np.testing.assert_allclose(made.to_numpy(), a @ x)
    a.indices.flags.writeable = True
    a.indices[0] = 50
    for use in (lambda: tensor @ x, lambda: kernel(a, x)):
        with pytest.raises(StorageError, match="50"):
            use()
