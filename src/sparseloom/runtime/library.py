"""From C text to functions that can be called: the memory of this process, then the disk cache, then the compiler."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import shutil
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from sparseloom.core.errors import CompilerBug, ToolchainError
from sparseloom.runtime import settings
from sparseloom.runtime.cache import KernelCache
from sparseloom.runtime.shelf import shelf
from sparseloom.runtime.toolchain import CompileError, Compiler, compile_library, find_compiler, refused_flags

Entry = Callable[[int], int]
"""A kernel's entry: takes the address of a pointer pack and returns a status. It keeps its library loaded."""

_Wish = tuple[str, str | None, str | None, Path | None]

_REMEMBERED = 512
_OMP_PAUSE_HARD = 2


def load(source: str, entries: Sequence[str] = ("entry",)) -> tuple[Entry, ...]:
    """Return the named functions of a C source, compiling it only if no cache has it.

    ``source`` must define every name as ``int32_t name(void **args)``. Safe from many threads: each source is compiled once.
    """
    library = _libraries.get(source)
    return tuple(_entry(library, name) for name in entries)


def kernel_cache() -> KernelCache:
    """The disk cache that the settings name."""
    return _open_cache(settings.cache_folder(), settings.cache_limit())


class _Libraries:
    """The libraries this process has used lately, by source and by what decides how it would be compiled.

    Forgetting one does not unload it: entries may be in use, and opening the same file again gives the same library.
    """

    def __init__(self) -> None:
        self._loaded: OrderedDict[_Wish, ctypes.CDLL] = OrderedDict()
        self._threaded: ctypes.CDLL | None = None
        self.renew_locks()

    def renew_locks(self) -> None:
        """Start with free locks; after a fork the old ones may be held by threads that the child does not have."""
        self._lock = threading.Lock()
        self._under_way: dict[_Wish, threading.Lock] = {}

    def pause_threads(self) -> None:
        """Let OpenMP end the idle threads of the calling thread; a forked child of gcc's runtime would wait for them for ever."""
        if self._threaded is not None and hasattr(self._threaded, "omp_pause_resource_all"):
            self._threaded.omp_pause_resource_all(_OMP_PAUSE_HARD)

    def get(self, source: str) -> ctypes.CDLL:
        """Return the library of a source; the first thread that asks makes it, the others wait for it."""
        wish = (source, os.environ.get("CC"), os.environ.get("PATH"), settings.cache_folder())
        with self._lock:
            if found := self._recall(wish):
                return found
            turn = self._under_way.setdefault(wish, threading.Lock())
        with turn:
            try:
                with self._lock:
                    if found := self._recall(wish):
                        return found
                library = _find_or_build(source)
                shelf.connect(library)
                with self._lock:
                    self._remember(wish, library)
                return library
            finally:
                with self._lock:
                    self._under_way.pop(wish, None)

    def _recall(self, wish: _Wish) -> ctypes.CDLL | None:
        if (found := self._loaded.get(wish)) is not None:
            self._loaded.move_to_end(wish)
        return found

    def _remember(self, wish: _Wish, library: ctypes.CDLL) -> None:
        self._loaded[wish] = library
        if "#pragma omp" in wish[0]:
            self._threaded = library
        if len(self._loaded) > _REMEMBERED:
            self._loaded.popitem(last=False)


_libraries = _Libraries()
os.register_at_fork(before=lambda: _libraries.pause_threads(), after_in_child=lambda: _libraries.renew_locks())


def _entry(library: ctypes.CDLL, name: str) -> Entry:
    try:
        entry = library[name]
    except AttributeError:
        raise CompilerBug(library, f"a kernel library should define {name}") from None
    entry.restype = ctypes.c_int32
    entry.argtypes = [ctypes.c_void_p]
    return entry


@functools.cache
def _open_cache(folder: Path | None, limit: int) -> KernelCache:
    return KernelCache(folder, limit)


def _find_or_build(source: str) -> ctypes.CDLL:
    compiler, cache = find_compiler(), kernel_cache()
    key = cache.key(source, compiler)
    return _reopen(cache, key) or _build(source, compiler, cache, key)


def _reopen(cache: KernelCache, key: str) -> ctypes.CDLL | None:
    file = cache.get(key)
    if file is None:
        return None
    with file:
        try:
            return _open_library(file)
        except OSError:
            # Sound, but not for this system: say, a home folder shared with a machine that has a newer C library.
            cache.discard(key)
            return None


def _build(source: str, compiler: Compiler, cache: KernelCache, key: str) -> ctypes.CDLL:
    with cache.put(key, _compile(source, compiler, cache)) as file:
        try:
            return _open_library(file)
        except OSError as wrong:
            raise ToolchainError(
                f"a kernel was compiled with {compiler.path} but cannot be loaded: {wrong}\n"
                "  help: the cache folder may be on a disk mounted noexec (set SPARSELOOM_CACHE_DIR), or $CC makes code for another machine"
            ) from None


def _compile(source: str, compiler: Compiler, cache: KernelCache) -> bytes:
    """Compile, and if that fails, find out which flags this compiler does not know and go without them from then on.

    The kernel's key has the flags we asked for: with the compiler's identity they decide which are used.
    """
    refused = _known_refusals(compiler, cache)
    try:
        return compile_library(source, compiler, refused)
    except CompileError as refusal:
        found = refused_flags(compiler)
        if found <= refused:
            raise
        shutil.rmtree(refusal.source.parent, ignore_errors=True)
    _refusals[compiler] = found
    cache.put(_refusal_key(compiler), " ".join(sorted(found)).encode()).close()
    return compile_library(source, compiler, found)


_refusals: dict[Compiler, frozenset[str]] = {}


def _known_refusals(compiler: Compiler, cache: KernelCache) -> frozenset[str]:
    """The flags found to be refused earlier, by this process or by another one, which left them in the cache."""
    if compiler not in _refusals:
        kept = cache.read(_refusal_key(compiler)) or b""
        _refusals[compiler] = frozenset(kept.decode().split())
    return _refusals[compiler]


def _refusal_key(compiler: Compiler) -> str:
    return KernelCache.key("refused flags", compiler)


_serial = itertools.count()


def _open_library(file: IO[bytes]) -> ctypes.CDLL:
    """Load the very bytes that were checked: through the open file, or where the system cannot, from a private copy."""
    through = f"/proc/self/fd/{file.fileno()}"
    if sys.platform == "linux" and os.path.exists(through):
        return ctypes.CDLL(_unused_spelling(file.fileno()))
    with tempfile.NamedTemporaryFile(prefix="sparseloom-", suffix=".so") as copy:
        file.seek(0)
        shutil.copyfileobj(file, copy)
        copy.flush()
        return ctypes.CDLL(copy.name)


def _unused_spelling(descriptor: int) -> str:
    """A path to an open file that this process has not handed to the loader before.

    The loader knows libraries by the path they came from, and descriptors are numbered again once closed: the same
    path would give an older library. So a serial number is spelled into the path, ``./`` for 0 and ``.//`` for 1.
    """
    digits = "".join(".//" if digit == "1" else "./" for digit in f"{next(_serial):b}")
    return f"/proc/self/fd/{digits}{descriptor}"
