"""Find a C compiler and turn C text into the bytes of a shared library.

The compiler is called with an argument list, never through a shell, and ``$CFLAGS`` is not read: a stray ``-ffast-math`` would
change NaN results and, as gcc 12 links it, flush denormals to zero in the whole process.

Programs are looked up in the absolute parts of the PATH alone, by us and by the compiler: an empty part means the current folder, and what
lies there is not to be run. The compiler's own temporary files go into the private folder in which it works.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparseloom.core.errors import ToolchainError
from sparseloom.core.processor import cpu_flags
from sparseloom.core.system import runs_kernels
from sparseloom.toolchain.forks import whole_step
from sparseloom.toolchain.workroom import Workroom, no_room, workroom

FLAGS = (
    "-fno-fast-math",  # first: undoes a -ffast-math inside $CC, and leaves the flags below in force
    *"-std=gnu11 -O3 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math".split(),
    # gcc 12 jams two rounds of a sparse loop into one and then gathers what lies side by side: MTTKRP took up to 1.4x as long.
    # A short loop that straddles two cache lines took 1.2x as long (SpMV), so loops are aligned.
    *"-fno-unroll-loops -fno-loop-unroll-and-jam -falign-loops=32".split(),
    *"-fcx-fortran-rules -fPIC -shared -pipe".split(),
    # A library takes two mappings instead of five; a process may have some 65,000.
    *("-Wl,-z,noseparate-code -Wl,-z,norelro".split() if sys.platform == "linux" else ()),
)
_ESSENTIAL = ("-std=gnu11", "-O3", "-fPIC", "-shared")
_NO_ROOM = ("No space left on device", "Disk quota exceeded")
_SHORT = ("Resource temporarily unavailable", "Cannot allocate memory", "out of memory", *_NO_ROOM)
_MESSAGE_LINES = 12
_INSTALL = """\
  help: install one, for example
    Debian, Ubuntu:  apt install gcc libc6-dev
    Fedora:          dnf install gcc
    macOS:           xcode-select --install
    conda:           conda install -c conda-forge c-compiler
  or name one in $CC; target="interpret" needs no compiler"""

_ELSEWHERE = """\
kernels are compiled and run on Linux and macOS, and this is neither
  help: on Windows, use Linux in WSL; target="interpret" needs no compiler"""

Identity = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: the program, the arguments that ``$CC`` puts behind it, and the flags we ask for.

    ``identity`` holds real path, size and modification time (ns) of each program in the command, so that an
    upgrade is noticed, also behind a wrapper such as ccache. ``openmp`` is what C with parallel loops is compiled with.
    """

    path: str
    arguments: tuple[str, ...]
    identity: Identity
    flags: tuple[str, ...] = FLAGS
    openmp: tuple[str, ...] = field(default=("-fopenmp",), compare=False)  # found out by toolchain/openmp.py


class CompileError(ToolchainError):
    """The compiler ran and refused the source, which is kept in ``source``. What may be different next time is ``passing``."""

    def __init__(self, text: str, source: Path, passing: bool = False) -> None:
        super().__init__(text)
        self.source = source
        self.passing = passing


class StartError(ToolchainError):
    """The compiler could not be started. With memory or processes to spare it may be next time: then this is ``passing``."""

    def __init__(self, text: str, passing: bool) -> None:
        super().__init__(text)
        self.passing = passing


def find_compiler() -> Compiler:
    """Return the compiler that ``$CC`` names, else the first of gcc, clang and cc on the PATH."""
    if not runs_kernels():
        raise ToolchainError(_ELSEWHERE)
    if asked := os.environ.get("CC", "").strip():
        return _compiler_from(asked)
    for name in ("gcc", "clang", "cc"):
        if path := find_program(name):
            return Compiler(path, (), _identify((path,)))
    raise ToolchainError(f"no C compiler was found: $CC is not set, and gcc, clang and cc are not on the PATH\n{_INSTALL}")


def find_program(name: str) -> str | None:
    """The absolute path of a program; one that is named without a folder is looked up in the absolute parts of the PATH."""
    found = shutil.which(name, path=_search_path())
    return None if found is None else os.path.abspath(found)


def _search_path() -> str:
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(part for part in parts if os.path.isabs(part))


def compile_library(source: str, compiler: Compiler, without: Collection[str] = (), beside: Path | None = None) -> bytes:
    """Compile C text into a shared library and return its bytes; leave out the flags in ``without``.

    It is done in a private folder, in ``beside`` if possible. The source is kept only if the compiler refuses it, and the error says where.
    """
    flags = [flag for flag in compiler.flags if flag not in without]
    if uses_threads(source):
        flags += compiler.openmp
    with workroom(beside) as room:
        text, library = _write(room, "kernel.c", source), room.path / "kernel.so"
        # What a library is named after follows the text that needs it.
        linked = [flag for flag in flags if flag.startswith("-l")]
        done = _call(compiler, [*(flag for flag in flags if flag not in linked), "-o", str(library), str(text), *linked, "-lm"], room)
        if done.returncode == 0 and library.exists():
            return library.read_bytes()
        said = done.stderr or done.stdout
        without_room = any(words in said for words in _NO_ROOM)
        if not (without_room and beside is not None):
            kept = room.keep("kernel.c")
            raise CompileError(_complaint(compiler, done, kept), kept, done.returncode < 0 or any(words in said for words in _SHORT))
    return compile_library(source, compiler, without)  # the disk of the cache is full


def compile_small(source: str, compiler: Compiler, flags: Sequence[str]) -> bytes | None:
    """A library of a few lines, compiled with these flags and what every compiler must know; None if it refuses.

    A shortage of memory, processes or room is no refusal: it is raised, and may be over next time.
    """
    with workroom() as room:
        text, library = _write(room, "probe.c", source), room.path / "probe.so"
        linked = [flag for flag in flags if flag.startswith("-l")]
        others = [flag for flag in flags if flag not in linked]
        done = _call(compiler, [*_ESSENTIAL, *others, "-o", str(library), str(text), *linked], room)
        if done.returncode == 0 and library.exists():
            return library.read_bytes()
        said = done.stderr or done.stdout
    if done.returncode < 0 or any(words in said for words in _SHORT):
        raise StartError(f"{compiler.path} ended with status {done.returncode} on a probe\n    {said.strip()}", passing=True)
    return None


def uses_threads(source: str) -> bool:
    """Whether C text needs OpenMP."""
    return "#pragma omp" in source or "omp_get_max_threads" in source


def refused_flags(compiler: Compiler) -> frozenset[str] | None:
    """The flags that this compiler does not know, or ``None`` if it cannot compile at all.

    Asked only after a compile has failed, since every answer costs a run.
    """
    optional = [flag for flag in compiler.flags if flag not in _ESSENTIAL]
    with workroom() as room:
        if _accepts(compiler, optional, room):
            return frozenset()
        if not _accepts(compiler, [], room):
            return None
        return frozenset(flag for flag in optional if not _accepts(compiler, [flag], room))


@functools.cache
def cpu_features() -> str:
    """A digest of what ``-march=native`` depends on: the CPU's feature flags, else its name."""
    found = cpu_flags() or f"{platform.machine()} {platform.processor()}"
    return hashlib.sha256(" ".join(sorted(set(found.split()))).encode()).hexdigest()


def _compiler_from(asked: str) -> Compiler:
    try:
        words = shlex.split(asked)
    except ValueError as wrong:
        raise ToolchainError(f"$CC is {asked!r}, which cannot be read: {wrong}\n  help: write a program and its arguments") from None
    path = find_program(words[0]) if words else None
    if path is None:
        raise ToolchainError(f"$CC is {asked!r}, but there is no such program\n{_INSTALL}")
    return Compiler(path, tuple(words[1:]), _identify((path, *words[1:])))


def _identify(words: Sequence[str]) -> Identity:
    programs = (find_program(word) for word in words if not word.startswith("-"))
    real = [os.path.realpath(program) for program in programs if program]
    return tuple((path, status.st_size, status.st_mtime_ns) for path in real for status in [os.stat(path)])


def _call(compiler: Compiler, arguments: Sequence[str], room: Workroom) -> subprocess.CompletedProcess[str]:
    command = [compiler.path, *compiler.arguments, *arguments]
    own = {"PATH": _search_path(), "LC_ALL": "C", **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(room.path))}
    try:
        # A child that another thread forks meanwhile would hold the pipes open, and we would wait for its end.
        with whole_step:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, **own},
            )
    except OSError as wrong:
        text = f"the C compiler {compiler.path} cannot be started: {wrong.strerror}\n{_INSTALL}"
        raise StartError(text, wrong.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)) from None
    try:
        said, complained = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, said, complained)


def _accepts(compiler: Compiler, flags: Sequence[str], room: Workroom) -> bool:
    text = _write(room, "probe.c", "int probe;\n")
    return _call(compiler, [*_ESSENTIAL, *flags, "-o", str(room.path / "probe.so"), str(text)], room).returncode == 0


def _complaint(compiler: Compiler, done: subprocess.CompletedProcess[str], text: Path) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines() or ["(it said nothing)"]
    shown = [f"    {line}" for line in lines[:_MESSAGE_LINES]]
    if len(lines) > _MESSAGE_LINES:
        shown.append(f"    ... and {len(lines) - _MESSAGE_LINES} lines more")
    help_text = "send the source with a report, or try another compiler through $CC"
    if any("stdint.h" in line for line in lines):
        help_text = "the headers of the C library are missing: install libc6-dev (Debian) or glibc-devel (Fedora)"
    return "\n".join(
        [f"{compiler.path} ended with status {done.returncode} on a generated kernel", *shown, f"  source: {text}", f"  help: {help_text}"]
    )


def _write(room: Workroom, name: str, source: str) -> Path:
    text = room.path / name
    try:
        text.write_text(source, encoding="utf-8")
    except OSError as wrong:
        raise no_room(wrong) from None
    return text
