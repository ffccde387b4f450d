"""From the text of a target to functions that can be called: the memory of this process, then the disk cache, then the compiler."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from sparseloom.core import settings
from sparseloom.core.errors import CompilerBug, ToolchainError
from sparseloom.targets.c import C
from sparseloom.targets.c_toolchain import C_TOOLCHAIN
from sparseloom.targets.target import Target
from sparseloom.targets.toolchain import Allocator, Toolchain
from sparseloom.toolchain.cache import KernelCache, content_of, kernel_cache
from sparseloom.toolchain.compilers import CompileError, Compiler, compile_library, find_compiler, refused_flags
from sparseloom.toolchain.failures import failures
from sparseloom.toolchain.forks import in_child
from sparseloom.toolchain.loading import ENTRY, TAKES_ADDRESS, EntryPoint, Library
from sparseloom.toolchain.openmp import has_threads, report_one_thread, soon_asleep, with_openmp
from sparseloom.toolchain.shelf import connect
from sparseloom.toolchain.teams import teams
from sparseloom.toolchain.workroom import clear_away, workroom

_Wish = tuple[str, Toolchain, Allocator | None, str | None, str | None, Path | None]

_REMEMBERED = 512


def load(source: str, entries: Sequence[str] = ("entry",), target: Target = C) -> tuple[EntryPoint, ...]:
    """Return the named functions of a text of this target, compiling it only if no cache has it.

    ``source`` must define every name as C's ``int32_t name(void **args)``. Safe from many threads: each source is compiled once. A library
    is unloaded when it is forgotten here and nobody has an entry of it, or what one of them allocated, any more.
    """
    if target.toolchain is None:
        raise CompilerBug(target.name, "a target whose kernels are compiled should say how")
    return _libraries.get(source, entries, target.toolchain, target.allocator)


@functools.cache
def load_routine(source: str, name: str) -> EntryPoint | None:
    """A function of a C source, loaded when it is first needed; None if there is no compiler."""
    try:
        return load(source, (name,))[0]
    except ToolchainError:
        return None


class _Libraries:
    """The libraries this process has used lately, as their entries, by source and by what decides how it would be compiled."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[_Wish, dict[str, EntryPoint]] = OrderedDict()
        self.renew_locks()

    def renew_locks(self) -> None:
        """Start with free locks; after a fork the old ones may be held by threads that the child does not have.

        A handler of signals may ask for what its own thread is about to load, so that thread may enter twice.
        """
        self._lock = threading.RLock()
        self._under_way: dict[_Wish, threading.RLock] = {}

    def get(self, source: str, names: Sequence[str], chain: Toolchain, allocator: Allocator | None) -> tuple[EntryPoint, ...]:
        """Return entries of a source; the first thread that asks makes its library, the others wait for it."""
        wish = (source, chain, allocator, os.environ.get(chain.variable or ""), os.environ.get("PATH"), settings.cache_folder())
        with self._lock:
            if found := self._recall(wish, names):
                return found
            turn = self._under_way.setdefault(wish, threading.RLock())
        with turn:
            try:
                with self._lock:
                    if found := self._recall(wish, names):
                        return found
                library = _connected(source, chain, allocator)
                give_back = None if allocator is None else library.function(allocator.free, TAKES_ADDRESS)
                made = {name: _entry(library, name, give_back) for name in names}
                with self._lock:
                    self._remember(wish, made)
                return tuple(made.values())
            finally:
                with self._lock:
                    self._under_way.pop(wish, None)

    def _recall(self, wish: _Wish, names: Sequence[str]) -> tuple[EntryPoint, ...] | None:
        found = self._loaded.get(wish)
        if found is None or not all(name in found for name in names):
            return None
        self._loaded.move_to_end(wish)
        return tuple(found[name] for name in names)

    def _remember(self, wish: _Wish, entries: dict[str, EntryPoint]) -> None:
        self._loaded[wish] = {**self._loaded.get(wish, {}), **entries}
        self._loaded.move_to_end(wish)
        if len(self._loaded) > _REMEMBERED:
            self._loaded.popitem(last=False)


_libraries = _Libraries()
in_child(lambda: _libraries.renew_locks())


def _connected(source: str, chain: Toolchain, allocator: Allocator | None) -> Library:
    """The library of a source, which shares memory with those of the same allocator, and threads with all."""
    if not chain.has_parallel_loops(source):
        library = _find_or_build(source, find_compiler(chain))
        connect(library, allocator)
        return library
    compiler = with_openmp(find_compiler(chain), kernel_cache())
    with soon_asleep():
        library = _find_or_build(source, compiler)
        connect(library, allocator)
        if has_threads(compiler):
            teams.connect(library, _build_team)
        elif "#pragma omp parallel" in source and teams.size > 1:
            report_one_thread(compiler)
        teams.alone = not has_threads(compiler)
    return library


def _build_team(text: str) -> Library:
    """The library of the teams of all kernels, which is C."""
    return _find_or_build(text, with_openmp(find_compiler(C_TOOLCHAIN), kernel_cache()))


def _entry(library: Library, name: str, give_back: Callable[[int], None] | None) -> EntryPoint:
    entry: EntryPoint | None = library.function(name, ENTRY)
    if entry is None:
        raise CompilerBug(library, f"a kernel library should define {name}")
    entry.give_back = give_back
    return entry


def _find_or_build(source: str, compiler: Compiler) -> Library:
    cache = kernel_cache()
    key = cache.key(source, compiler)
    if found := _reopen(cache, key):
        return found
    failures.refuse_again(compiler, key)
    with cache.turn(key):
        return _reopen(cache, key) or _build(source, compiler, cache, key)


def _reopen(cache: KernelCache, key: str) -> Library | None:
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


def _build(source: str, compiler: Compiler, cache: KernelCache, key: str) -> Library:
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
        return compile_library(source, compiler, refused, cache.room)
    except CompileError as refusal:
        found = None if refusal.passing else refused_flags(compiler)
        if found is None or found <= refused:
            failures.remember(compiler, None if found is None else cache.key(source, compiler), refusal)
            raise
        clear_away(refusal.source.parent)
    except ToolchainError as refusal:
        failures.remember(compiler, None, refusal)
        raise
    _refusals[compiler] = found
    cache.put(_refusal_key(compiler), " ".join(sorted(found)).encode()).close()
    return compile_library(source, compiler, found, cache.room)


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


def _open_library(file: IO[bytes]) -> Library:
    """Load the very bytes that were checked: through the open file, or where the system cannot, from a private copy."""
    through = f"/proc/self/fd/{file.fileno()}"
    if sys.platform == "linux" and os.path.exists(through):
        return Library(_unused_spelling(file.fileno()))
    with workroom() as room:
        copy = room.path / "kernel.so"
        copy.write_bytes(content_of(file))  # some systems check that nothing follows a library
        return Library(str(copy))


def _unused_spelling(descriptor: int) -> str:
    """A path to an open file that this process has not handed to the loader before.

    The loader knows libraries by the path they came from, and descriptors are numbered again once closed: the same
    path would give an older library. So a serial number is spelled into the path, ``./`` for 0 and ``.//`` for 1.
    """
    digits = "".join(".//" if digit == "1" else "./" for digit in f"{next(_serial):b}")
    return f"/proc/self/fd/{digits}{descriptor}"
