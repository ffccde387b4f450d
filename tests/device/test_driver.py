"""The driver's functions are called as it wants them: a library in main memory, with the same signatures, takes its place."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sparseloom.core.errors import DeviceError
from sparseloom.programs.calling import OutOfMemory
from sparseloom.programs.cuda import device as devices
from sparseloom.programs.cuda import driver as drivers
from sparseloom.programs.cuda import launching
from sparseloom.programs.cuda.arrays import DeviceArray, copied_in, empty
from sparseloom.programs.cuda.device import Device, ordinal_of
from sparseloom.programs.cuda.host_code import Argument, HostPlan, Number, Step
from sparseloom.programs.cuda.launching import Launches, load_module


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("driver") / "libfake.so"
    source = Path(__file__).with_name("fake_driver.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(path), str(source)], check=True)
    return ctypes.CDLL(str(path))


@pytest.fixture
def fake(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    library.fake_last.restype = ctypes.c_uint64
    monkeypatch.setattr(drivers, "NAMES", (library._name,))
    monkeypatch.setattr(devices, "_devices", {})
    monkeypatch.setattr(launching, "_modules", type(launching._modules)())
    monkeypatch.setattr(launching, "compile_cubin", lambda source, architecture: source.encode())
    drivers.driver.cache_clear()
    yield library
    drivers.driver.cache_clear()


def test_a_device_is_opened(fake: ctypes.CDLL) -> None:
    device = Device(0)
    assert (device.architecture, device.title, device.room()) == ("sm_90", "a device in main memory", 7)
    assert [fake.fake_last(k) for k in range(3)] == [0x30, 4, 2**64 - 1]  # the pool keeps what is freed
    assert ordinal_of(123) == 0
    with pytest.raises(DeviceError, match="could not find device 3: CUDA_ERROR_FAKE: it is only a fake"):
        Device(3)


def test_memory_is_copied_there_and_back(fake: ctypes.CDLL) -> None:
    given = np.arange(10.0)
    there = copied_in(given)
    np.testing.assert_array_equal(there.copy().to_host(), given)
    assert there[3] == 3.0
    devices.device(0).clear(there.address, 16)
    assert there.to_host().tolist() == [0, 0, *range(2, 10)]
    assert len(empty(0, given.dtype)) == 0


def test_no_room_is_said(fake: ctypes.CDLL) -> None:
    with pytest.raises(OutOfMemory, match=f"device 0 has no room for {2**41} bytes"):
        empty(2**41, np.dtype(np.uint8))


def test_a_launch_takes_what_was_prepared(fake: ctypes.CDLL) -> None:
    to = empty(1, np.dtype(np.int64))
    plan = HostPlan((Step("write", 3, 64, (Argument(0), Number(-5))),))
    launches = Launches(load_module("text", 0), plan, [to], "")
    launches.start()
    assert (fake.fake_last(6), fake.fake_last(7), int(to.to_host()[0])) == (3064, 0, -5)
    other = empty(1, np.dtype(np.int64))
    launches.let_go()
    launches.start_with(0, other)
    assert int(other.to_host()[0]) == -5
    devices.device(0).finish()
    assert fake.fake_last(3) == 0x20  # in the device's own context
    devices.device(0).follow(0x100)
    assert fake.fake_last(5) == 0x140


def test_what_the_driver_refuses_is_said(fake: ctypes.CDLL) -> None:
    with pytest.raises(DeviceError, match="could not load a kernel: CUDA_ERROR_FAKE"):
        load_module("x", 0)
    with pytest.raises(DeviceError, match="could not find the kernel other"):
        load_module("text", 0).function("other")


def test_without_a_driver_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "NAMES", ("libnothing.so",))
    drivers.driver.cache_clear()
    with pytest.raises(DeviceError) as caught:
        drivers.driver()
    assert str(caught.value) == (
        "there is no CUDA device: the driver's library (libnothing.so) cannot be loaded\n  help: target='c' computes without one"
    )
    drivers.driver.cache_clear()


def test_arrays_that_are_let_go_are_freed(fake: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []
    monkeypatch.setattr(Device, "free", lambda self, address, stream: freed.append(address))
    made = empty(4, np.dtype(np.float32))
    view, address = DeviceArray(made.address, 2, made.dtype, made.owner), made.address
    del made
    assert freed == []
    del view
    assert freed == [address]
