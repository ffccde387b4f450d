"""Find a C compiler and turn C text into the bytes of a shared library.

The compiler is called with an argument list, never through a shell, and ``$CFLAGS`` is not read: a stray ``-ffast-math`` would
change NaN results and, as gcc 12 links it, flush denormals to zero in the whole process.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sparseloom.core.errors import ToolchainError

FLAGS = (
    "-fno-fast-math",  # first: undoes a -ffast-math inside $CC, and leaves the flags below in force
    *"-std=gnu11 -O3 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math".split(),
    # gcc 12 jams two rounds of a sparse loop into one and then gathers what lies side by side: MTTKRP took up to 1.4x as long.
    # A short loop that straddles two cache lines took 1.2x as long (SpMV), so loops are aligned.
    *"-fno-unroll-loops -fno-loop-unroll-and-jam -falign-loops=32".split(),
    *"-fcx-fortran-rules -fPIC -shared -pipe".split(),
)
_ESSENTIAL = frozenset({"-std=gnu11", "-O3", "-fPIC", "-shared"})
_MESSAGE_LINES = 12
_INSTALL = """\
  help: install one, for example
    Debian, Ubuntu:  apt install gcc libc6-dev
    Fedora:          dnf install gcc
    macOS:           xcode-select --install
    conda:           conda install -c conda-forge c-compiler
  or name one in $CC; target="interpret" needs no compiler"""

Identity = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler: the program, the arguments that ``$CC`` puts behind it, and the flags we ask for.

    ``identity`` holds real path, size and modification time (ns) of each program in the command, so that an
    upgrade is noticed, also behind a wrapper such as ccache.
    """

    path: str
    arguments: tuple[str, ...]
    identity: Identity
    flags: tuple[str, ...] = FLAGS


class CompileError(ToolchainError):
    """The compiler ran and refused the source, which is kept in ``source``."""

    def __init__(self, text: str, source: Path) -> None:
        super().__init__(text)
        self.source = source


def find_compiler() -> Compiler:
    """Return the compiler that ``$CC`` names, else the first of gcc, clang and cc on the PATH."""
    if asked := os.environ.get("CC", "").strip():
        return _compiler_from(asked)
    for name in ("gcc", "clang", "cc"):
        if path := shutil.which(name):
            return Compiler(path, (), _identify((path,)))
    raise ToolchainError(f"no C compiler was found: $CC is not set, and gcc, clang and cc are not on the PATH\n{_INSTALL}")


def compile_library(source: str, compiler: Compiler, without: Collection[str] = ()) -> bytes:
    """Compile C text into a shared library and return its bytes; leave out the flags in ``without``.

    The source is kept only if the compiler refuses it, and the error says where.
    """
    text = _written(source)
    library = text.with_name("kernel.so")
    with ExitStack() as at_end:
        at_end.callback(shutil.rmtree, text.parent, ignore_errors=True)
        flags = [flag for flag in compiler.flags if flag not in without]
        if "#pragma omp" in source:
            flags.append("-fopenmp")
        done = _call(compiler, [*flags, "-o", str(library), str(text), "-lm"])
        if done.returncode != 0 or not library.exists():
            at_end.pop_all()  # the error names the source
            raise CompileError(_complaint(compiler, done, text), text)
        return library.read_bytes()


def refused_flags(compiler: Compiler) -> frozenset[str]:
    """The flags that this compiler does not know; asked only after a compile has failed, since every answer costs a run."""
    optional = [flag for flag in compiler.flags if flag not in _ESSENTIAL]
    if _accepts(compiler, optional):
        return frozenset()
    return frozenset(flag for flag in optional if not _accepts(compiler, [flag]))


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
    path = shutil.which(words[0]) if words else None
    if path is None:
        raise ToolchainError(f"$CC is {asked!r}, but there is no such program\n{_INSTALL}")
    return Compiler(path, tuple(words[1:]), _identify((path, *words[1:])))


def _identify(words: Sequence[str]) -> Identity:
    programs = (shutil.which(word) for word in words if not word.startswith("-"))
    real = [os.path.realpath(program) for program in programs if program]
    return tuple((path, status.st_size, status.st_mtime_ns) for path in real for status in [os.stat(path)])


def _call(compiler: Compiler, arguments: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    command = [compiler.path, *compiler.arguments, *arguments]
    try:
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except OSError as wrong:
        raise ToolchainError(f"the C compiler {compiler.path} cannot be started: {wrong.strerror}\n{_INSTALL}") from None


def _accepts(compiler: Compiler, flags: Sequence[str]) -> bool:
    arguments = [*flags, "-x", "c", "-c", "-o", os.devnull, "-"]
    return _call(compiler, arguments, "int probe;\n").returncode == 0


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


def _written(source: str) -> Path:
    try:
        text = Path(tempfile.mkdtemp(prefix="sparseloom-"), "kernel.c")
        text.write_text(source, encoding="utf-8")
    except OSError as wrong:
        raise ToolchainError(f"no temporary file can be written: {wrong.strerror}\n  help: set $TMPDIR to a folder with room") from None
    return text


def cpu_flags() -> str:
    """The names of the CPU's features as the system lists them, or nothing where it does not."""
    # Only the first processor is read: on a machine with hundreds of them, the whole file takes the kernel many milliseconds.
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    return value.strip()
    except OSError:
        pass
    return ""
