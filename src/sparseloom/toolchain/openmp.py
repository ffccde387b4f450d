"""How a compiler makes parallel loops, found out once for each compiler by compiling and loading a small library.

gcc, and clang with libomp, take ``-fopenmp``. Apple's clang rejects that and takes ``-Xclang -fopenmp`` with the libomp of
Homebrew or conda. A compiler without OpenMP compiles parallel loops as plain ones: their pragmas are not read, and kernels run on one
thread, which is reported once. That a compiler has OpenMP is kept with the kernels. That it has none is not: it may be installed later.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from sparseloom.core.errors import ToolchainError
from sparseloom.core.notices import notify
from sparseloom.toolchain.cache import KernelCache, kernel_cache
from sparseloom.toolchain.compilers import Compiler, compile_small, find_compiler
from sparseloom.toolchain.loading import Library
from sparseloom.toolchain.workroom import workroom

_VECTORS_ALONE = "-fopenmp-simd"  # obeys the pragmas for vectors, which need no library
_SEPARATE = ("-Xclang", "-fopenmp", "-lomp")
_FOLDERS = ("/opt/homebrew/opt/libomp/lib", "/usr/local/opt/libomp/lib", "/opt/local/lib/libomp")  # Homebrew's two, MacPorts'
INSTALL = """\
  help: install one, for example
    macOS:           brew install libomp, or conda install -c conda-forge llvm-openmp
    Debian, Ubuntu:  apt install libomp-dev (for clang), or apt install gcc
    Fedora:          dnf install libomp-devel (for clang), or dnf install gcc
  or name another compiler in $CC"""
SPINS = "2000"  # some 50 us

_known: dict[Compiler, tuple[str, ...]] = {}
_reported: set[Compiler] = set()


def with_openmp(compiler: Compiler, cache: KernelCache) -> Compiler:
    """The compiler with the flags by which it makes parallel loops."""
    if compiler not in _known:
        kept = cache.read(_key(compiler))
        if kept is not None:
            _known[compiler] = tuple(kept.decode().split("\n"))
        else:
            found = _probed(compiler)
            if found is None:  # not even a plain library could be made, so the kernel's own complaint is the better one
                return compiler
            _known[compiler] = found
            if found and _VECTORS_ALONE not in found:
                cache.put(_key(compiler), "\n".join(found).encode()).close()
    return replace(compiler, openmp=_known[compiler])


def has_threads(compiler: Compiler) -> bool:
    """Whether parallel loops run in threads, by a compiler that ``with_openmp`` returned."""
    return bool(compiler.openmp) and compiler.openmp != (_VECTORS_ALONE,)


def kernels_have_threads() -> bool:
    """Whether this system's compiler makes loops that run in threads. Where there is no compiler, that is not what is missing."""
    try:
        return has_threads(with_openmp(find_compiler(), kernel_cache()))
    except ToolchainError:
        return True


def report_one_thread(compiler: Compiler) -> None:
    """Warn, once for each compiler, that its kernels run on one thread."""
    if compiler not in _reported:
        _reported.add(compiler)
        notify(one_thread(compiler))


def one_thread(compiler: Compiler) -> str:
    """Why kernels run on one thread, and what to do."""
    return f"kernels run on one thread, because {compiler.path} has no OpenMP; the results are the same\n{INSTALL}"


def forget() -> None:
    """Probe again, and report again."""
    _known.clear()
    _reported.clear()


@contextmanager
def soon_asleep() -> Iterator[None]:
    """While OpenMP is first loaded: let its threads sleep soon after their work, unless the environment says how they wait."""
    if any(name in os.environ for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = SPINS
    try:
        yield
    finally:
        os.environ.pop("GOMP_SPINCOUNT", None)


def _ways() -> Iterator[tuple[str, ...]]:
    """Flags that may give OpenMP, the usual ones first."""
    yield ("-fopenmp",)
    yield _SEPARATE
    conda = os.environ.get("CONDA_PREFIX", "")
    for folder in (*_FOLDERS, *([os.path.join(conda, "lib")] if os.path.isabs(conda) else [])):
        if os.path.isdir(folder):
            yield (*_SEPARATE, f"-L{folder}", f"-Wl,-rpath,{folder}")


def _probed(compiler: Compiler) -> tuple[str, ...] | None:
    """The flags that work; those for vectors, or none, where a library without threads is all that can be made; None if not even that."""
    for flags in (*_ways(), (_VECTORS_ALONE,), ()):
        chain = compiler.toolchain
        source = chain.openmp.probe if chain.openmp and flags and flags != (_VECTORS_ALONE,) else chain.probe
        library = compile_small(source, compiler, flags)
        if library is not None and _can_be_loaded(library):
            return flags
    return None


def _can_be_loaded(library: bytes) -> bool:
    """Whether a library finds everything it needs: some compilers accept the flag, and leave the calls to nobody."""
    with workroom() as room, soon_asleep():
        path = room.path / "probe.so"
        path.write_bytes(library)
        with suppress(OSError):
            Library(str(path))
            return True
    return False


def _key(compiler: Compiler) -> str:
    return KernelCache.key("flags for OpenMP", compiler)
