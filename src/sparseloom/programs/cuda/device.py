"""One device: its memory, copies, modules and launches. Work is put on a stream, and nothing waits unless it says so.

Memory comes from the device's own pool, which keeps what is freed for the next one. The primary context is used, as CuPy and PyTorch do,
so that pointers and streams mean the same everywhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from typing import Any, TypeVar

from sparseloom.core.errors import DeviceError
from sparseloom.programs.calling import OutOfMemory
from sparseloom.programs.cuda.driver import OUT_OF_MEMORY, driver, said

T = TypeVar("T")
_MAJOR, _MINOR, _HAS_POOLS = 75, 76, 115  # CU_DEVICE_ATTRIBUTE_...
_RELEASE_THRESHOLD = 4  # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
_MEMORY_TYPE, _ORDINAL = 2, 9  # CU_POINTER_ATTRIBUTE_...
_WITHOUT_TIMING = 2  # CU_EVENT_DISABLE_TIMING


class Device:
    """A device by its number. Its context need not be the current one: every method sees to that."""

    name = "cuda"

    def __init__(self, ordinal: int) -> None:
        self._driver = driver()
        self.ordinal = ordinal
        handle, context = c_int(), c_void_p()
        self._check(self._driver.cuDeviceGet(byref(handle), ordinal), f"find device {ordinal}")
        self._check(self._driver.cuDevicePrimaryCtxRetain(byref(context), handle), f"open device {ordinal}")
        self._context = context.value
        self._handle = handle.value
        self.architecture = f"sm_{self._attribute(_MAJOR)}{self._attribute(_MINOR)}"
        self._pool = self._kept_pool() if self._attribute(_HAS_POOLS) else None
        count = c_int()
        self._check(self._driver.cuDeviceGetCount(byref(count)), "count devices")
        self._is_alone = count.value == 1  # if so, work cannot get to another device by mistake
        self.launch: Callable[[int, int, int, None], int] = self._driver.cuLaunchKernelEx
        self.within(lambda: None)  # calls that do not ask for a context find one in this thread

    @property
    def title(self) -> str:
        """What the device is called."""
        text = ctypes.create_string_buffer(256)
        self._check(self._driver.cuDeviceGetName(text, 256, self._handle), "ask for the device's name")
        return text.value.decode()

    def _attribute(self, which: int) -> int:
        found = c_int()
        self._check(self._driver.cuDeviceGetAttribute(byref(found), which, self._handle), "ask what the device has")
        return found.value

    def _kept_pool(self) -> int | None:
        """The device's pool, told to keep what is freed."""
        pool, all_of_it = c_void_p(), c_uint64(2**64 - 1)
        self._check(self._driver.cuDeviceGetDefaultMemPool(byref(pool), self._handle), "find the device's memory pool")
        self._check(self._driver.cuMemPoolSetAttribute(pool, _RELEASE_THRESHOLD, byref(all_of_it)), "set up the device's memory pool")
        return pool.value

    def within(self, work: Callable[[], T]) -> T:
        """Do something while the context is the current one of this thread. It stays so where there was none."""
        current = c_void_p()
        self._driver.cuCtxGetCurrent(ctypes.addressof(current))
        if current.value == self._context:
            return work()
        self._check(self._driver.cuCtxPushCurrent_v2(self._context), "use the device")
        if current.value is None:
            return work()
        try:
            return work()
        finally:
            self._driver.cuCtxPopCurrent_v2(byref(current))

    # Memory

    def allocate(self, nbytes: int, stream: int = 0) -> int:
        """Room for so many bytes, for work on this stream; 0 for none."""
        if not nbytes:
            return 0
        if self._is_alone and self._pool is not None:  # the shortest way, which fails only where no context is current, or no memory left
            address = c_uint64()
            if not self._driver.cuMemAllocAsync(byref(address), nbytes, stream):
                return address.value
        return self.within(lambda: self._allocate(nbytes, stream))

    def _allocate(self, nbytes: int, stream: int) -> int:
        address = c_uint64()
        status = self._try_to_allocate(address, nbytes, stream)
        if status == OUT_OF_MEMORY and self._pool is not None:
            # What was freed on other streams may still wait in the pool.
            self._driver.cuStreamSynchronize(stream)
            self._driver.cuMemPoolTrimTo(self._pool, 0)
            status = self._try_to_allocate(address, nbytes, stream)
        if status == OUT_OF_MEMORY:
            raise OutOfMemory(f"device {self.ordinal} has no room for {nbytes} bytes\n  help: let other arrays on the device go first")
        self._check(status, f"allocate {nbytes} bytes")
        return address.value

    def _try_to_allocate(self, address: c_uint64, nbytes: int, stream: int) -> int:
        if self._pool is None:
            return int(self._driver.cuMemAlloc_v2(byref(address), nbytes))
        return int(self._driver.cuMemAllocAsync(byref(address), nbytes, stream))

    def free(self, address: int, stream: int = 0) -> None:
        """Give memory back once the work on the stream is done. At exit the driver may be gone before it; then there is nothing to do."""
        if self._is_alone and self._pool is not None and not self._driver.cuMemFreeAsync(address, stream):
            return
        with suppress(DeviceError):
            self.within(lambda: self._free(address, stream))

    def _free(self, address: int, stream: int) -> None:
        if self._pool is None or self._driver.cuMemFreeAsync(address, stream):
            self._driver.cuMemFree_v2(address)

    def room(self) -> int:
        """How many bytes are free."""
        free, total = c_size_t(), c_size_t()
        self._check(self.within(lambda: self._driver.cuMemGetInfo_v2(byref(free), byref(total))), "ask how much memory is free")
        return free.value

    # Copies

    def copy_in(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        """Copy from main memory; the source may be changed as soon as this returns. Only what is page-locked is copied behind our back."""
        self._put(lambda: self._driver.cuMemcpyHtoDAsync_v2(to, source, nbytes, stream), nbytes, "copy to the device")
        if nbytes and self._is_page_locked(source):
            self.wait(stream)

    def _is_page_locked(self, address: int) -> bool:
        found = c_int()
        status = self.within(lambda: self._driver.cuPointerGetAttribute(ctypes.addressof(found), _MEMORY_TYPE, address))
        return bool(status == 0)

    def copy_out(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        """Copy to main memory, and wait until it is there."""
        self._put(lambda: self._driver.cuMemcpyDtoHAsync_v2(to, source, nbytes, stream), nbytes, "copy from the device")
        self.wait(stream)

    def copy(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        """Copy within the device."""
        self._put(lambda: self._driver.cuMemcpyDtoDAsync_v2(to, source, nbytes, stream), nbytes, "copy on the device")

    def clear(self, address: int, nbytes: int, stream: int = 0) -> None:
        """Set bytes to zero."""
        self._put(lambda: self._driver.cuMemsetD8Async(address, 0, nbytes, stream), nbytes, "clear memory")

    def follow(self, stream: int, first: int = 0) -> None:
        """Let work that is put on a stream from now on wait for what is on another one."""
        if stream != first:
            self.within(lambda: self._follow(stream, first))

    def _follow(self, stream: int, first: int) -> None:
        event = c_void_p()
        self._check(self._driver.cuEventCreate(byref(event), _WITHOUT_TIMING), "make an event")
        self._check(self._driver.cuEventRecord(event, first), "record an event")
        self._check(self._driver.cuStreamWaitEvent(stream, event, 0), "wait for an event")
        self._driver.cuEventDestroy_v2(event)

    def wait(self, stream: int = 0) -> None:
        """Wait until all work on a stream is done."""
        self._check(self.within(lambda: self._driver.cuStreamSynchronize(stream)), "run a kernel")

    def finish(self) -> None:
        """Wait until all work is done, on every stream."""
        self._check(self.within(self._driver.cuCtxSynchronize), "run a kernel")

    def _put(self, work: Callable[[], int], nbytes: int, what: str) -> None:
        if nbytes:
            self._check(self.within(work), what)

    def run(self, launches: Sequence[tuple[int, int, int]]) -> None:
        """Launch kernels: where their configurations are, their handles, and where their arguments are."""
        if self._is_alone:
            launch = self.launch
            for one in launches:
                if launch(one[0], one[1], one[2], None):  # perhaps no context is current; what was launched before stays so
                    launches = launches[launches.index(one) :]
                    break
            else:
                return
        self.within(lambda: self._launch(launches))

    def _launch(self, launches: Sequence[tuple[int, int, int]]) -> None:
        for config, function, pack in launches:
            self._check(self.launch(config, function, pack, None), "launch a kernel")

    # Kernels

    def load(self, cubin: bytes) -> int:
        """The handle of loaded machine code."""
        module = c_void_p()
        self._check(self.within(lambda: self._driver.cuModuleLoadData(byref(module), cubin)), "load a kernel")
        return module.value or 0

    def unload(self, module: int) -> None:
        """Unload machine code; none of its kernels may run any more."""
        self.within(lambda: self._driver.cuModuleUnload(module))

    def function(self, module: int, name: str) -> int:
        """The handle of a kernel."""
        found = c_void_p()
        self._check(self.within(lambda: self._driver.cuModuleGetFunction(byref(found), module, name.encode())), f"find the kernel {name}")
        return found.value or 0

    def _check(self, status: int, what: str) -> None:
        if status == OUT_OF_MEMORY:
            raise OutOfMemory(f"the device has no memory left to {what}")
        if status:
            raise DeviceError(f"the CUDA driver could not {what}: {said(self._driver, status)}")


_devices: dict[int, Any] = {}


def device(ordinal: int = 0) -> Any:
    """The device of this number."""
    found = _devices.get(ordinal)
    if found is None:
        found = _devices.setdefault(ordinal, Device(ordinal))
    return found


def ordinal_of(address: int) -> int:
    """On which device memory is, as the driver says."""
    found = c_int()
    status = driver().cuPointerGetAttribute(ctypes.addressof(found), _ORDINAL, address) if address else 0
    if status:
        raise DeviceError(f"the address {address:#x} is no memory of a CUDA device: {said(driver(), status)}")
    return found.value
