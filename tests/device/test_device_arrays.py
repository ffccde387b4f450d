"""Arrays on a device: what is known of them without a copy, what is refused, and how other libraries see them."""

from __future__ import annotations

import copy
import gc
import pickle

import ml_dtypes
import numpy as np
import pytest
from device.stand_in import StandIn

import sparseloom as sl
from sparseloom.core.dtypes import VALUE_DTYPES
from sparseloom.core.errors import DeviceError
from sparseloom.programs.cuda.arrays import copied_in, empty
from sparseloom.programs.cuda.checks import has_nan
from sparseloom.programs.cuda.dlpack import _alive, capsule_of, read_capsule


def test_ends_of_positions_are_known(device: StandIn) -> None:
    positions = copied_in(np.array([0, 2, 5], np.int32), is_positions=True)
    device.log.clear()
    assert (positions[0], positions[2], positions[-1], device.log) == (0, 5, 5, [])
    assert (positions[1], device.log) == (2, ["copy out 4"])
    with pytest.raises(IndexError):
        positions[3]


def test_numpy_cannot_read_them(device: StandIn) -> None:
    array = copied_in(np.arange(4.0))
    for attempt in (lambda: np.asarray(array), lambda: array[1:], lambda: array.astype("f4"), lambda: array.sum(), lambda: np.sqrt(array)):
        with pytest.raises((DeviceError, TypeError)):
            attempt()
    assert not hasattr(array, "frobnicate")


def test_they_are_filled_as_a_whole(device: StandIn) -> None:
    array = empty(3, np.dtype(np.float64))
    array[:] = np.ones(3)
    other = empty(3, np.dtype(np.float64))
    other[:] = array
    assert other.to_host().tolist() == [1, 1, 1]
    for wrong in (np.ones(2), np.ones(3, np.float32), 1.0):
        with pytest.raises(DeviceError, match="it can be filled as a whole only"):
            array[:] = wrong


def test_overlaps_are_seen(device: StandIn) -> None:
    one, other = copied_in(np.arange(4.0)), copied_in(np.arange(4.0))
    assert one.overlaps(one) and not one.overlaps(other)
    assert not one.overlaps(empty(0, one.dtype))


def test_the_cuda_array_interface(device: StandIn) -> None:
    tensor = sl.asarray(np.arange(6.0).reshape(2, 3), format="dd:1,0").to_device()
    told = tensor.__cuda_array_interface__
    assert (told["shape"], told["strides"], told["typestr"], told["version"], told["stream"]) == ((2, 3), (8, 16), "<f8", 3, 1)
    assert told["data"] == (tensor.storage.values.address, False)
    assert not hasattr(sl.asarray([1.0]), "__cuda_array_interface__")
    assert not hasattr(sl.asarray(np.eye(3), format="csr").to_device(), "__cuda_array_interface__")


@pytest.mark.parametrize("dtype", [*VALUE_DTYPES, np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_dlpack_both_ways(device: StandIn, dtype: np.dtype) -> None:
    array = copied_in(np.arange(6).astype(dtype))
    found = read_capsule(capsule_of(array.address, array.dtype, (2, 3), (3, 1), 0, array))
    assert (found.address, found.dtype, found.shape, found.strides) == (array.address, dtype, (2, 3), (3, 1))
    assert (found.kind, found.ordinal) == (2, 0)


def test_dlpack_keeps_memory_as_long_as_it_is_used(device: StandIn) -> None:
    before, blocks = len(_alive), len(device.blocks)
    tensor = sl.asarray(np.arange(3.0)).to_device()
    used, unused = tensor.__dlpack__(), tensor.__dlpack__()
    assert tensor.__dlpack_device__() == (2, 0)
    found = read_capsule(used)
    with pytest.raises(TypeError, match="used before"):
        read_capsule(used)
    del tensor, unused, used
    gc.collect()
    assert (len(_alive), len(device.blocks)) == (before + 1, blocks + 1)
    del found
    assert (len(_alive), len(device.blocks)) == (before, blocks)


def test_another_stream_waits(device: StandIn) -> None:
    tensor = sl.asarray(np.arange(3.0)).to_device()
    for stream, waits in ((None, False), (1, False), (-1, False), (0x1234, True)):
        device.log.clear()
        tensor.__dlpack__(stream=stream)
        assert ("wait" in device.log) == waits


def test_tensors_go_and_come_back(device: StandIn) -> None:
    for format in ("dense", "csr", "csc", "coo", "dcsr", "bcsr(2,3)", "ell", "dia"):
        tensor = sl.random((7, 5), 0.4, format, seed=5)
        there = tensor.to_device()
        assert (there.device, there.shape, there.dtype, there.format, there.nbytes) == (
            "cuda", tensor.shape, tensor.dtype, tensor.format, tensor.nbytes)  # fmt: skip
        assert there.to_device() is there and tensor.to_host() is tensor
        np.testing.assert_array_equal(there.to_host().to_numpy(), tensor.to_numpy())
        np.testing.assert_array_equal(there.copy().to_numpy(), tensor.to_numpy())
    with pytest.raises(DeviceError, match="there is no device 'tpu'; there are 'cpu', 'cuda'"):
        tensor.to_device("tpu")


def test_what_a_tensor_on_a_device_shows(device: StandIn) -> None:
    device.log.clear()
    there = sl.random((7, 5), 0.4, "csr", seed=5, name="A").to_device()
    device.log.clear()
    assert repr(there) == "<Tensor 'A': 7 x 5, csr, float64, 14 stored (40 %), 200 bytes, on cuda>"
    assert "<td style='text-align:left'>cuda</td>" in there._repr_html_()
    assert (there.nnz, device.log) == (14, [])
    for format, told in (("ell", "ell, float64, "), ("bcsr(2,3)", "bcsr(2,3), float64, "), ("dense", "dense(2), float64, ")):
        there = sl.random((7, 5), 0.4, format, seed=5).to_device()
        assert repr(there).startswith(f"<Tensor: 7 x 5, {told}") and repr(there).endswith(", on cuda>")
        assert ">cuda<" in there._repr_html_()
    with pytest.raises(DeviceError, match=r"does not become a NumPy array silently\n  help: copy it with to_numpy\(\)"):
        np.asarray(sl.asarray([1.0]).to_device())


def test_pickles_and_copies_stay_on_the_device(device: StandIn) -> None:
    there = sl.random((7, 5), 0.4, "csr", seed=5, name="A").to_device()
    for again in (pickle.loads(pickle.dumps(there)), copy.deepcopy(there), there.copy()):
        assert (again.device, again.name, again.format) == ("cuda", "A", there.format)
        np.testing.assert_array_equal(again.to_numpy(), there.to_numpy())


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex64", "complex128"])
def test_what_is_no_number_is_found(device: StandIn, dtype: str) -> None:
    values = np.ones(300, dtype)
    assert not has_nan(copied_in(values)) and not has_nan(empty(0, np.dtype(dtype)))
    if dtype != "int64":
        values[299] = complex(0, np.nan) if dtype.startswith("c") else np.nan
        assert has_nan(copied_in(values))


def test_memory_is_freed_with_the_last_tensor(device: StandIn) -> None:
    before = len(device.blocks)
    there = sl.random((7, 5), 0.4, "csr", seed=5).to_device()
    assert len(device.blocks) == before + 3
    del there
    gc.collect()
    assert len(device.blocks) == before
