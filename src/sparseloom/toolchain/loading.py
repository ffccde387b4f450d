"""Shared libraries that are unloaded when the last of their functions is gone.

``ctypes.CDLL`` never unloads, and its functions refer to themselves, so that only the garbage collector would find them.
"""

from __future__ import annotations

import _ctypes
import ctypes
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from sparseloom.toolchain.forks import whole_step


class EntryPoint(Protocol):
    """A kernel's entry: takes a pointer pack, or its address, and returns a status. It keeps its library loaded.

    ``give_back`` frees an array that the kernel handed out, by the allocator that made it; None if the library never allocates. Whoever
    keeps that function keeps the library loaded, too.
    """

    give_back: Callable[[int], None] | None

    def __call__(self, pack: int | bytes, /) -> int:
        """Run the kernel."""


class Library:
    """A library that this process has loaded. At exit, unloading is left to the system."""

    __slots__ = ("__weakref__", "_handle", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        with whole_step:
            self._handle: int = _ctypes.dlopen(path, ctypes.RTLD_LOCAL)
        weakref.finalize(self, _unload, self._handle).atexit = False

    def __repr__(self) -> str:
        return f"<library {self.path}>"

    def function(self, name: str, prototype: Any) -> Any:
        """A function, which keeps the library loaded; ``None`` if the library has none of that name."""
        try:
            address = _ctypes.dlsym(self._handle, name)
        except OSError:
            return None
        found = prototype(address)
        found.origin = self
        return found


ENTRY: Any = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
TAKES_ADDRESS: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
TAKES_ADDRESSES: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
TAKES_NOTHING: Any = ctypes.CFUNCTYPE(None)


def _unload(handle: int) -> None:
    with whole_step:
        _ctypes.dlclose(handle)
