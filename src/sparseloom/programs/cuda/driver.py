"""The driver of NVIDIA's devices, called by ctypes: the functions that are used, with the types of their arguments.

Every function returns a status, 0 if all is well. A launch takes four addresses that were prepared before (``cuLaunchKernelEx``), so that
there is hardly anything to convert on the way of a call.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from functools import lru_cache
from typing import Any

from sparseloom.core.errors import DeviceError

NAMES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
OUT_OF_MEMORY = 2
HELP = "target='c' computes without one"


class LaunchConfig(Structure):
    """How a kernel is launched: ``CUlaunchConfig`` of the driver."""

    _fields_ = (
        ("blocks", c_uint),
        ("blocks_y", c_uint),
        ("blocks_z", c_uint),
        ("threads", c_uint),
        ("threads_y", c_uint),
        ("threads_z", c_uint),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint),
    )


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuDeviceGetDefaultMemPool": (POINTER(c_void_p), c_int),
    "cuMemPoolSetAttribute": (c_void_p, c_int, POINTER(c_uint64)),
    "cuMemPoolTrimTo": (c_void_p, c_size_t),
    "cuCtxGetCurrent": (c_void_p,),  # an address, which is prepared: it is asked before every call
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemAllocAsync": (POINTER(c_uint64), c_size_t, c_void_p),
    "cuMemFreeAsync": (c_uint64, c_void_p),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuLaunchKernelEx": (c_void_p, c_void_p, c_void_p, c_void_p),
}


@lru_cache(maxsize=1)
def driver() -> Any:
    """The driver, initialised; a DeviceError where there is none, or it finds no device."""
    library = _library()
    for name, types in _SIGNATURES.items():
        getattr(library, name).argtypes = types
        getattr(library, name).restype = c_int
    library.cuGetErrorString.argtypes = library.cuGetErrorName.argtypes = (c_int, POINTER(c_char_p))
    status, count = library.cuInit(0), c_int()
    if status == 0:
        status = library.cuDeviceGetCount(byref(count))
    if status or not count.value:
        why = "it finds no device" if not status else said(library, status)
        raise DeviceError(f"the CUDA driver cannot be used: {why}\n  help: {HELP}")
    return library


def _library() -> Any:
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError(f"there is no CUDA device: the driver's library ({NAMES[0]}) cannot be loaded\n  help: {HELP}")


def said(library: Any, status: int) -> str:
    """What a status means, in the driver's words."""
    name, text = c_char_p(), c_char_p()
    if library.cuGetErrorName(status, byref(name)) or library.cuGetErrorString(status, byref(text)):
        return f"error {status}"
    return f"{(name.value or b'').decode()}: {(text.value or b'').decode()}"
