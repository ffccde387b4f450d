"""Arrays of other libraries on a device become tensors over the same memory; sparse ones are validated once."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from device.neighbours import Plain, Tensor, coo_matrix, csc_matrix, csr_matrix, ndarray
from device.stand_in import StandIn
from device.test_calls import spmv

import sparseloom as sl
from sparseloom.core.errors import DeviceError, StorageError
from sparseloom.interop import device as interop


@pytest.fixture
def matrix() -> Any:
    return sp.random_array((20, 30), density=0.2, format="csr", rng=np.random.default_rng(3))


@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_arrays_are_shared(device: StandIn, order: Any) -> None:
    array = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
    theirs = ndarray(array)
    device.log.clear()
    tensor = sl.asarray(theirs)
    assert (tensor.device, tensor.storage.values.address, device.log) == ("cuda", theirs.memory.address, [])
    np.testing.assert_array_equal(tensor.to_numpy(), array)
    np.testing.assert_array_equal(sl.asarray(Plain(array)).to_numpy(), array)
    np.testing.assert_array_equal(sl.asarray(Tensor("strided", (2, 3), array=theirs)).to_numpy(), array)


def test_what_has_dlpack_alone_is_shared(device: StandIn) -> None:
    ours = sl.asarray(np.arange(6.0).reshape(2, 3)).to_device()
    theirs = SimpleNamespace  # a class of its own, so that nothing else is offered

    class Foreign(theirs):
        def __dlpack__(self, **options: Any) -> Any:
            return ours.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

    tensor = sl.asarray(Foreign())
    assert tensor.storage.values.address == ours.storage.values.address
    np.testing.assert_array_equal(tensor.to_numpy(), ours.to_numpy())


def test_work_on_the_stream_of_an_unknown_library_is_waited_for(device: StandIn) -> None:
    theirs = Plain(np.arange(6.0))
    for stream, expected in ((None, []), (1, []), (0x55, ["follow 85 on 0"])):
        theirs.stream = stream
        device.log.clear()
        sl.asarray(theirs)
        assert [line for line in device.log if line != "follow 0 on 0"] == expected


def test_gaps_are_refused(device: StandIn) -> None:
    theirs = ndarray(np.arange(8.0).reshape(2, 4))
    theirs.shape = (2, 3)
    with pytest.raises(DeviceError, match=r"has gaps in memory, and is not copied there\n  help: make it contiguous first"):
        sl.asarray(theirs)


@pytest.mark.parametrize(("kind", "format"), [(csr_matrix, "csr"), (csc_matrix, "csc"), (coo_matrix, "coo")])
def test_sparse_matrices_are_shared_and_validated_once(device: StandIn, matrix: Any, kind: Any, format: str) -> None:
    theirs = kind(matrix.asformat(format))
    tensor = sl.asarray(theirs)
    assert any("launch coordinates_int32" in line for line in device.log)
    assert tensor.format == sl.asarray(matrix.asformat(format)).format
    assert tensor.storage.values.address == theirs.data.memory.address
    np.testing.assert_array_equal(tensor.to_numpy(), matrix.toarray())
    device.log.clear()
    assert sl.asarray(theirs).storage is tensor.storage
    assert device.log == []
    del theirs, tensor
    gc.collect()
    assert not interop._valid


def test_sparse_tensors_of_torch_are_shared(device: StandIn, matrix: Any) -> None:
    coo = matrix.tocoo()
    names = {"crow_indices": matrix.indptr, "col_indices": matrix.indices, "values": matrix.data}
    shared = [Tensor("sparse_csr", matrix.shape, **{name: ndarray(array) for name, array in names.items()})]
    columns = matrix.tocsc()
    names = {"ccol_indices": columns.indptr, "row_indices": columns.indices, "values": columns.data}
    shared.append(Tensor("sparse_csc", matrix.shape, **{name: ndarray(array) for name, array in names.items()}))
    shared.append(Tensor("sparse_coo", matrix.shape, _indices=[ndarray(coo.row), ndarray(coo.col)], _values=ndarray(coo.data)))
    for theirs in shared:
        np.testing.assert_array_equal(sl.asarray(theirs).to_numpy(), matrix.toarray())
    with pytest.raises(StorageError, match=r"the PyTorch layout torch.sparse_bsr is not taken from a device"):
        sl.asarray(Tensor("sparse_bsr", (2, 2)))


def test_unsorted_matrices_are_refused(device: StandIn, matrix: Any) -> None:
    matrix.indices[[0, 1]] = matrix.indices[[1, 0]]
    with pytest.raises(StorageError) as caught:
        sl.asarray(csr_matrix(matrix))
    fault, help = str(caught.value).split("\n")
    assert fault.startswith("tensor: level 1 (compressed, mode j): crd[1] = ")
    assert help == "  help: call sum_duplicates() on it first, which sorts it, too"


def test_kernels_follow_the_stream_of_their_operands(device: StandIn, matrix: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SimpleNamespace(ptr=0x77)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: stream)))  # type: ignore[arg-type]
    kernel, theirs, x = spmv(), csr_matrix(matrix), ndarray(np.arange(30.0))
    streams: list[int] = []
    original = device.launch
    monkeypatch.setattr(device, "launch", lambda config, *rest: streams.append(device.stream_at(config)) or original(config, *rest))
    for expected in (0x77, 0x99, 0x99):
        stream.ptr = expected
        streams.clear()
        y = kernel(theirs, x)
        assert set(streams) == {expected}
        np.testing.assert_allclose(y.to_numpy(), matrix @ np.arange(30.0))
    assert y.storage.values.source == "cupy"
    assert len(kernel._recalled) == 1


def test_an_output_of_cupy_is_filled(device: StandIn, matrix: Any) -> None:
    y, x = ndarray(np.zeros(20)), ndarray(np.arange(30.0))
    made = spmv()(csr_matrix(matrix), x, out=y)
    assert made.storage.values.address == y.memory.address
    np.testing.assert_allclose(y.memory.to_host(), matrix @ np.arange(30.0))
