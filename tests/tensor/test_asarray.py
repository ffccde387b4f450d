"""What ``asarray`` shares, what it copies, and that it never touches the user's arrays."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from sparseloom.core.dtypes import VALUE_DTYPES
from sparseloom.core.errors import ConversionWarning, DTypeError, FormatError, ShapeError, StorageError
from sparseloom.formats import named
from sparseloom.interop import entry
from sparseloom.programs import guard
from sparseloom.tensor import Tensor, asarray, from_arrays, from_coo, full, random, zeros

CLASSES = [getattr(sp, f"{name}_{kind}") for name in "csr csc coo bsr dia lil dok".split() for kind in ("array", "matrix")]
DENSE = np.array([[0, 1.5, 0, 0], [2, 0, 0, 3], [0, 0, 0, 0], [0, 0, -1, 0], [4, 0, 0, 0], [0, 0, 5, 6]])


def arrays_in(matrix: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays a SciPy object holds."""
    names = ("indptr", "indices", "data", "row", "col", "offsets", "rows")
    return [getattr(matrix, name) for name in names if isinstance(getattr(matrix, name, None), np.ndarray)]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_every_scipy_class_is_taken_and_left_as_it_was(cls: Any) -> None:
    matrix = cls(DENSE)
    before = [array.copy() for array in arrays_in(matrix)]
    attributes = dict(vars(matrix)) if hasattr(matrix, "__dict__") else {}
    tensor = asarray(matrix)
    np.testing.assert_array_equal(tensor.to_numpy(), DENSE)
    for old, new in zip(before, arrays_in(matrix), strict=True):
        np.testing.assert_array_equal(old, new)
    assert dict(vars(matrix)).keys() == attributes.keys()


@pytest.mark.parametrize(("make", "format"), [(sp.csr_array, named.csr), (sp.csc_array, named.csc), (sp.csr_matrix, named.csr)])
def test_compressed_matrices_are_shared(make: Any, format: Any) -> None:
    matrix = make(DENSE)
    tensor = asarray(matrix)
    assert tensor.format == format
    assert tensor.arrays["pos1"] is matrix.indptr
    assert tensor.arrays["crd1"] is matrix.indices
    assert tensor.arrays["values"] is matrix.data
    assert tensor.notes == ()


def test_coo_is_shared_in_any_order_of_modes() -> None:
    rng = np.random.default_rng(3)
    coordinates = tuple(map(np.ascontiguousarray, np.unravel_index(np.sort(rng.choice(120, 17, replace=False)), (4, 5, 6))))
    array = sp.coo_array((np.arange(17.0), coordinates), shape=(4, 5, 6))
    tensor = asarray(array)
    assert tensor.format == named.coo(3)
    for mode in range(3):
        assert np.shares_memory(tensor.arrays[f"crd{mode}"], array.coords[mode])
    assert np.shares_memory(tensor.arrays["values"], array.data)
    np.testing.assert_array_equal(tensor.to_numpy(), array.toarray())


def test_coordinates_with_gaps_are_copied_and_said() -> None:
    pairs = np.array([[0, 1], [1, 0], [1, 2]])
    array = sp.coo_array((np.arange(3.0), (pairs[:, 0], pairs[:, 1])), shape=(2, 3))
    if array.coords[0].flags.c_contiguous:
        array.coords = (pairs[:, 0], pairs[:, 1])
    with pytest.warns(ConversionWarning, match="^an index array was copied: not contiguous and aligned in memory$"):
        tensor = asarray(array)
    np.testing.assert_array_equal(tensor.to_numpy(), [[0, 0, 0], [1, 0, 2]])


def test_bsr_is_shared_as_bcsr() -> None:
    matrix = sp.bsr_array(np.kron(np.eye(3), np.arange(1.0, 7).reshape(2, 3)), blocksize=(2, 3))
    tensor = asarray(matrix)
    assert str(tensor.format) == "bcsr(2,3)"
    assert np.shares_memory(tensor.arrays["values"], matrix.data)
    np.testing.assert_array_equal(tensor.to_numpy(), matrix.toarray())


def test_a_sparse_vector_is_shared() -> None:
    vector = sp.csr_array(np.array([0, 2.0, 0, 3]))
    tensor = asarray(vector)
    assert tensor.shape == (4,)
    assert tensor.arrays["crd0"] is vector.indices
    np.testing.assert_array_equal(tensor.to_numpy(), [0, 2, 0, 3])


def test_index_dtypes_stay_as_they_come() -> None:
    matrix = sp.csr_array(DENSE)
    wide = sp.csr_array(matrix.shape)
    wide.indptr, wide.indices, wide.data = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data
    assert asarray(matrix).arrays["crd1"].dtype == np.int32
    tensor = asarray(wide)
    assert tensor.arrays["crd1"] is wide.indices
    back = tensor.to_scipy()
    assert back.indices is wide.indices


def test_unsorted_rows_are_copied_and_said() -> None:
    matrix = sp.csr_array((np.array([1.0, 2, 3]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    indices = matrix.indices.copy()
    with pytest.warns(ConversionWarning, match="the tensor was copied: its coordinates are not sorted"):
        tensor = asarray(matrix)
    np.testing.assert_array_equal(tensor.to_numpy(), [[2, 0, 1], [0, 3, 0]])
    np.testing.assert_array_equal(matrix.indices, indices)
    assert "has_sorted_indices" not in vars(matrix) and "_has_sorted_indices" not in vars(matrix)
    assert tensor.notes == ("the tensor was copied: its coordinates are not sorted",)


def test_repeated_coordinates_are_summed_and_said() -> None:
    matrix = sp.coo_array((np.array([1.0, 2, 3]), (np.array([0, 0, 1]), np.array([1, 1, 0]))), shape=(2, 2))
    with pytest.warns(ConversionWarning, match="1 repeated coordinates were summed"):
        tensor = asarray(matrix)
    np.testing.assert_array_equal(tensor.to_numpy(), [[0, 3], [3, 0]])
    np.testing.assert_array_equal(matrix.data, [1, 2, 3])


def test_a_copy_is_not_remembered() -> None:
    matrix = sp.csr_array((np.array([1.0, 2]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        asarray(matrix)
        matrix.data[:] = [5, 7]
        np.testing.assert_array_equal(asarray(matrix).to_numpy(), [[7, 5]])


def test_room_behind_the_last_entry_is_ignored() -> None:
    matrix = sp.csr_array(DENSE)
    roomy = sp.csr_array(matrix.shape)
    roomy.indptr = matrix.indptr
    roomy.indices, roomy.data = np.append(matrix.indices, [9, 9]).astype(np.int32), np.append(matrix.data, [7.0, 7.0])
    for _ in range(2):
        tensor = asarray(roomy)
        assert tensor.nnz == matrix.nnz
        np.testing.assert_array_equal(tensor.to_numpy(), DENSE)


def test_malformed_matrices_are_refused() -> None:
    matrix = sp.csr_array(DENSE)
    broken = sp.csr_array(matrix.shape)
    broken.indptr, broken.data = matrix.indptr, matrix.data
    broken.indices = matrix.indices.copy()
    broken.indices[2] = 99
    with pytest.raises(StorageError, match=r"level 1 \(compressed, mode j\): crd\[2\] = 99"):
        asarray(broken)
    broken.indices = matrix.indices.astype(float)
    with pytest.raises(StorageError, match="index arrays must hold integers"):
        asarray(broken)


def test_valid_arrays_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = guard.check
    monkeypatch.setattr(guard, "check", lambda storage: (calls.append(1), real(storage)))
    matrix = sp.random_array((50, 60), density=0.1, format="csr", rng=1)
    for _ in range(5):
        asarray(matrix)
    assert len(calls) == 1
    tensor = asarray(matrix)
    assert asarray(matrix).storage is tensor.storage
    matrix.indices = matrix.indices.copy()
    asarray(matrix)
    assert len(calls) == 2


def test_changed_values_are_seen() -> None:
    matrix = sp.csr_array(DENSE)
    asarray(matrix)
    matrix.data *= 2
    np.testing.assert_array_equal(asarray(matrix).to_numpy(), 2 * DENSE)


def test_the_record_of_dead_arrays_goes_with_them() -> None:
    before = len(entry._SEEN)
    matrix = sp.random_array((30, 30), density=0.2, format="csr", rng=2)
    asarray(matrix)
    assert len(entry._SEEN) == before + 1
    del matrix
    gc.collect()
    assert len(entry._SEEN) == before


@pytest.mark.parametrize("dtype", VALUE_DTYPES, ids=str)
def test_every_dtype_is_shared(dtype: Any) -> None:
    dense = (np.arange(12).reshape(3, 4) % 3).astype(dtype)
    tensor = asarray(dense)
    assert tensor.dtype == dtype
    assert np.shares_memory(tensor.to_numpy(), dense)
    matrix = sp.csr_array(dense)
    assert np.shares_memory(asarray(matrix).arrays["values"], matrix.data)
    np.testing.assert_array_equal(asarray(matrix).to_numpy(), dense)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)], ids=str)
def test_any_contiguous_order_is_shared(axes: tuple[int, ...]) -> None:
    array = np.arange(60.0).reshape(3, 4, 5).transpose(axes)
    tensor = asarray(array)
    assert np.shares_memory(tensor.storage.values, array)
    np.testing.assert_array_equal(tensor.to_numpy(), array)
    assert tensor.notes == ()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (1, 4), (4, 1), (1, 1, 1), (2, 1, 3)], ids=str)
def test_odd_shapes_are_shared(shape: tuple[int, ...]) -> None:
    for order in ("C", "F"):
        array = np.asarray(np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape), order=order)  # type: ignore[call-overload]
        tensor = asarray(array)
        assert tensor.shape == shape
        np.testing.assert_array_equal(tensor.to_numpy(), array)
        assert tensor.notes == ()


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.arange(20.0)[::2], "it is not contiguous in memory"),
        (np.arange(20.0)[::-1], "it is not contiguous in memory"),
        (np.arange(12.0).reshape(3, 4)[:, 1:3], "it is not contiguous in memory"),
        (np.broadcast_to(np.arange(3.0), (4, 3)), "it is not contiguous in memory"),
        (np.arange(5.0).astype(">f8"), "its byte order is not native"),
        (np.frombuffer(bytes(25), np.float64, 3, offset=1), "it is not aligned in memory"),
    ],
)
def test_arrays_that_cannot_be_used_are_copied_and_said(array: np.ndarray[Any, Any], reason: str) -> None:
    with pytest.warns(ConversionWarning, match=reason):
        tensor = asarray(array)
    assert tensor.notes == (f"the array was copied: {reason}",)
    np.testing.assert_array_equal(tensor.to_numpy(), array)
    with pytest.raises(StorageError, match="copy=False, but this needs a copy"):
        asarray(array, copy=False)


def test_read_only_arrays_are_shared_and_stay_read_only() -> None:
    array = np.arange(6.0).reshape(2, 3)
    array.flags.writeable = False
    tensor = asarray(array)
    assert np.shares_memory(tensor.to_numpy(), array)
    assert not tensor.to_numpy().flags.writeable
    assert not array.flags.writeable


@pytest.mark.parametrize(
    "value",
    [np.zeros(3, "V2"), np.zeros(3, object), np.array(["a"]), np.zeros(3, "M8[s]"), np.zeros(2, np.longdouble), "text", {}, None],
)
def test_other_dtypes_and_objects_are_refused(value: Any) -> None:
    with pytest.raises(DTypeError):
        asarray(value)


def test_what_else_is_refused() -> None:
    with pytest.raises(StorageError, match=r"array\.filled\(value\)"):
        asarray(np.ma.masked_array([1.0, 2], [True, False]))
    with pytest.raises(ShapeError, match="the lists do not form an array"):
        asarray([[1, 2], [3]])
    with pytest.raises(DTypeError, match="Python objects"):
        asarray([2**70])
    with pytest.raises(FormatError):
        asarray(np.zeros((2, 2)), format="xyz")


def test_python_numbers_and_lists() -> None:
    assert asarray(3).dtype == np.int64
    assert asarray(2.5).shape == ()
    assert asarray(True).dtype == np.bool_
    assert asarray(1j).dtype == np.complex128
    np.testing.assert_array_equal(asarray([[1, 2], [3, 4]]).to_numpy(), [[1, 2], [3, 4]])


def test_a_tensor_comes_back_as_itself() -> None:
    tensor = asarray(DENSE, name="A", copy=True)
    assert asarray(tensor) is tensor
    assert asarray(tensor, name="A") is tensor
    renamed = asarray(tensor, name="B")
    assert (renamed.name, tensor.name) == ("B", "A")
    assert renamed.storage.values is tensor.storage.values


def test_format_dtype_fill_and_copy() -> None:
    tensor = asarray(DENSE, format="csr", dtype=np.float32)
    assert (tensor.format, tensor.dtype, tensor.nnz) == (named.csr, np.float32, 7)
    infinite = asarray(np.array([np.inf, 1, np.inf]), format="s", fill=np.inf)
    assert (infinite.nnz, infinite.fill) == (1, np.inf)
    np.testing.assert_array_equal(infinite.to_numpy(), [np.inf, 1, np.inf])
    copied = asarray(DENSE, copy=True)
    assert not np.shares_memory(copied.to_numpy(), DENSE)
    assert np.shares_memory(asarray(DENSE, copy=False).to_numpy(), DENSE)
    with pytest.raises(StorageError, match="another format or dtype was asked for"):
        asarray(DENSE, dtype=np.float32, copy=False)
    with pytest.raises(DTypeError, match="the fill 'x' is not a value of type float64"):
        asarray(DENSE, fill="x")  # type: ignore[arg-type]


def test_zeros_and_full() -> None:
    assert zeros(4).format.is_dense
    assert zeros((3, 4), "csr", np.int8).nnz == 0
    assert zeros([2, 3], "csc").shape == (2, 3)
    assert zeros(()).shape == ()
    np.testing.assert_array_equal(full((2, 2), 7).to_numpy(), [[7, 7], [7, 7]])
    sparse = full((2, 2), np.inf, "csr")
    assert (sparse.nnz, sparse.fill) == (0, np.inf)
    for shape in (-1, (2, -3), "ab", 2.5):
        with pytest.raises(ShapeError):
            zeros(shape)  # type: ignore[arg-type]


def test_from_coo_sorts_and_sums() -> None:
    tensor = from_coo([[1, 0, 1], [0, 2, 0]], [1.0, 2, 3])
    assert tensor.format == named.csr
    np.testing.assert_array_equal(tensor.to_numpy(), [[0, 0, 2], [4, 0, 0]])
    assert from_coo([[0, 1]], 1.0, 5, "s").nnz == 2
    with pytest.raises(StorageError, match="outside the size 1"):
        from_coo([[1, 0], [0, 0]], [1.0, 2], (1, 1))
    with pytest.raises(ShapeError, match="give shape="):
        from_coo(np.empty((2, 0), int), [])


def test_from_arrays_checks_and_shares() -> None:
    tensor = asarray(sp.csr_array(DENSE))
    again = from_arrays("csr", tensor.shape, tensor.arrays)
    assert again.arrays["crd1"] is tensor.arrays["crd1"]
    tree = random((4, 5, 6), 0.2, "csf", seed=1)
    np.testing.assert_array_equal(from_arrays("csf", tree.shape, tree.arrays).to_numpy(), tree.to_numpy())
    ell = tensor.to("ell")
    np.testing.assert_array_equal(from_arrays("ell", ell.shape, ell.arrays).to_numpy(), DENSE)
    with pytest.raises(StorageError, match="missing or strange: pos1, pos7"):
        from_arrays("csr", tensor.shape, {("pos7" if k == "pos1" else k): v for k, v in tensor.arrays.items()})
    with pytest.raises(StorageError, match="pos"):
        from_arrays("csr", tensor.shape, tensor.arrays | {"pos1": np.zeros(3, np.int32)})


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr", "bcsr(2,3)", "ell", "dense"])
def test_random_has_the_density_asked_for(format: str) -> None:
    tensor = random((20, 30), 0.1, format, seed=7)
    assert np.count_nonzero(tensor.to_numpy()) == 60
    np.testing.assert_array_equal(tensor.to_numpy(), random((20, 30), 0.1, "csr", seed=7).to_numpy())
    assert random((5, 5), 1.0, seed=1).nnz == 25
    assert random((0, 5), 0.5, seed=1).nnz == 0


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr", "bcsr(2,2)", "ell", "dense", "ds:1,0", "ss"])
def test_to_scipy_gives_the_same_matrix(format: str) -> None:
    tensor = asarray(DENSE).to(format)
    back = tensor.to_scipy()
    np.testing.assert_array_equal(back.toarray(), DENSE)
    if format in ("csr", "csc", "coo", "bcsr(2,2)"):
        assert np.shares_memory(back.data, tensor.arrays["values"])
    assert (back @ np.ones(4)).shape == (6,)


def test_to_scipy_of_other_orders() -> None:
    tensor = random((3, 4, 5), 0.3, "csf", seed=2)
    np.testing.assert_array_equal(tensor.to_scipy().toarray(), tensor.to_numpy())
    vector = asarray([0, 1.0, 2], format="s")
    np.testing.assert_array_equal(vector.to_scipy().toarray(), [0, 1, 2])
    with pytest.raises(FormatError, match="order 0"):
        asarray(1.0).to_scipy()
    with pytest.raises(StorageError, match="can only leave out zeros"):
        full((2, 2), 1.0, "csr").to_scipy()


def test_the_result_is_a_tensor() -> None:
    assert type(asarray(DENSE)) is Tensor
