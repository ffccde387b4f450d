"""Find the compiler of a toolchain and turn text into the bytes of a shared library.

The compiler is called with an argument list, never through a shell.

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
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparseloom.core.errors import ToolchainError
from sparseloom.core.processor import cpu_flags
from sparseloom.core.system import runs_kernels
from sparseloom.targets.c_toolchain import C_TOOLCHAIN
from sparseloom.targets.toolchain import Toolchain
from sparseloom.toolchain.forks import whole_step
from sparseloom.toolchain.workroom import Workroom, no_room, workroom

_NO_ROOM = ("No space left on device", "Disk quota exceeded")
_SHORT = ("Resource temporarily unavailable", "Cannot allocate memory", "out of memory", *_NO_ROOM)
_MESSAGE_LINES = 12
_ELSEWHERE = """\
kernels are compiled and run on Linux and macOS, and this is neither
  help: on Windows, use Linux in WSL; target="interpret" needs no compiler"""

Identity = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler: the program, the arguments that the user's variable (``$CC``) puts behind it, and the flags we ask for.

    ``identity`` holds real path, size and modification time (ns) of each program in the command, so that an
    upgrade is noticed, also behind a wrapper such as ccache. ``openmp`` is what a text with parallel loops is compiled with.
    """

    path: str
    arguments: tuple[str, ...]
    identity: Identity
    flags: tuple[str, ...] = C_TOOLCHAIN.flags
    openmp: tuple[str, ...] = field(default=("-fopenmp",), compare=False)  # found out by toolchain/openmp.py
    toolchain: Toolchain = C_TOOLCHAIN


class CompileError(ToolchainError):
    """The compiler rejected the source, which is kept in ``source``. A ``passing`` error may not occur the next time."""

    def __init__(self, text: str, source: Path, passing: bool = False) -> None:
        super().__init__(text)
        self.source = source
        self.passing = passing


class StartError(ToolchainError):
    """The compiler could not be started. With memory or processes to spare it may be next time: then this is ``passing``."""

    def __init__(self, text: str, passing: bool) -> None:
        super().__init__(text)
        self.passing = passing


def find_compiler(toolchain: Toolchain = C_TOOLCHAIN) -> Compiler:
    """Return the compiler that the user's variable names, else the first one of the toolchain that is on the PATH."""
    if not runs_kernels():
        raise ToolchainError(_ELSEWHERE)
    if asked := os.environ.get(toolchain.variable or "", "").strip():
        return _compiler_from(asked, toolchain)
    for name in toolchain.programs:
        if path := find_program(name):
            return Compiler(path, (), _identify((path,)), toolchain.flags, toolchain=toolchain)
    unset = f"${toolchain.variable} is not set, and " if toolchain.variable else ""
    lacking = f"{_listed(toolchain.programs)} {'is' if len(toolchain.programs) == 1 else 'are'} not on the PATH"
    raise ToolchainError(_with_help(f"no {toolchain.language} compiler was found: {unset}{lacking}", toolchain))


def is_installed(toolchain: Toolchain) -> bool:
    """Whether there is a compiler, however it does."""
    try:
        find_compiler(toolchain)
    except ToolchainError:
        return False
    return True


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _with_help(text: str, toolchain: Toolchain) -> str:
    return f"{text}\n{toolchain.install}" if toolchain.install else text


def find_program(name: str) -> str | None:
    """The absolute path of a program; one that is named without a folder is looked up in the absolute parts of the PATH."""
    found = shutil.which(name, path=_search_path())
    return None if found is None else os.path.abspath(found)


def _search_path() -> str:
    return _absolute_parts(os.environ.get("PATH", os.defpath))


@functools.lru_cache(maxsize=8)
def _absolute_parts(path: str) -> str:
    return os.pathsep.join(part for part in path.split(os.pathsep) if os.path.isabs(part))


def compile_library(source: str, compiler: Compiler, without: Collection[str] = (), beside: Path | None = None) -> bytes:
    """Compile text into a shared library and return its bytes; leave out the flags in ``without``.

    It is done in a private folder, in ``beside`` if possible. The source is kept only if the compiler rejects it; the error names the file.
    """
    flags = [flag for flag in compiler.flags if flag not in without]
    chain, name = compiler.toolchain, f"kernel{compiler.toolchain.suffix}"
    if chain.has_parallel_loops(source):
        flags += compiler.openmp
    with workroom(beside) as room:
        text, library = _write(room, name, source), room.path / "kernel.so"
        done = _call(compiler, _arguments(flags, text, library, chain.libraries), room)
        if done.returncode == 0 and library.exists():
            return library.read_bytes()
        said = done.stderr or done.stdout
        without_room = any(words in said for words in _NO_ROOM)
        if not (without_room and beside is not None):
            kept = room.keep(name)
            raise CompileError(_complaint(compiler, done, kept), kept, done.returncode < 0 or any(words in said for words in _SHORT))
    return compile_library(source, compiler, without)  # the disk of the cache is full


def compile_small(source: str, compiler: Compiler, flags: Sequence[str]) -> bytes | None:
    """A library of a few lines, compiled with these flags and what every compiler must know; None if it rejects them.

    A shortage of memory, processes or disk space is raised instead, because it may be over the next time.
    """
    with workroom() as room:
        text, library = _write(room, f"probe{compiler.toolchain.suffix}", source), room.path / "probe.so"
        done = _call(compiler, _arguments([*compiler.toolchain.essential, *flags], text, library), room)
        if done.returncode == 0 and library.exists():
            return library.read_bytes()
        said = done.stderr or done.stdout
    if done.returncode < 0 or any(words in said for words in _SHORT):
        raise StartError(f"{compiler.path} ended with status {done.returncode} on a probe\n    {said.strip()}", passing=True)
    return None


def _arguments(flags: Sequence[str], text: Path, library: Path, libraries: Sequence[str] = ()) -> list[str]:
    """What the compiler is called with. What is linked follows the text that needs it."""
    linked = [flag for flag in flags if flag.startswith("-l")]
    return [*(flag for flag in flags if flag not in linked), "-o", str(library), str(text), *linked, *libraries]


def refused_flags(compiler: Compiler) -> frozenset[str] | None:
    """The flags that this compiler does not know, or ``None`` if it cannot compile at all.

    Asked only after a compile has failed, since every answer costs a run.
    """
    optional = [flag for flag in compiler.flags if flag not in compiler.toolchain.essential]
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


def _compiler_from(asked: str, toolchain: Toolchain) -> Compiler:
    said = f"${toolchain.variable} is {asked!r}"
    try:
        words = shlex.split(asked)
    except ValueError as wrong:
        raise ToolchainError(f"{said}, which cannot be read: {wrong}\n  help: write a program and its arguments") from None
    path = find_program(words[0]) if words else None
    if path is None:
        raise ToolchainError(_with_help(f"{said}, but there is no such program", toolchain))
    return Compiler(path, tuple(words[1:]), _identify((path, *words[1:])), toolchain.flags, toolchain=toolchain)


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
        text = f"the {compiler.toolchain.language} compiler {compiler.path} cannot be started: {wrong.strerror}"
        passing = wrong.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
        raise StartError(_with_help(text, compiler.toolchain), passing) from None
    try:
        said, complained = process.communicate()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, said, complained)


def _accepts(compiler: Compiler, flags: Sequence[str], room: Workroom) -> bool:
    chain = compiler.toolchain
    text = _write(room, f"probe{chain.suffix}", chain.probe)
    return _call(compiler, _arguments([*chain.essential, *flags], text, room.path / "probe.so"), room).returncode == 0


def _complaint(compiler: Compiler, done: subprocess.CompletedProcess[str], text: Path) -> str:
    lines = (done.stderr or done.stdout).strip().splitlines() or ["(it said nothing)"]
    shown = [f"    {line}" for line in lines[:_MESSAGE_LINES]]
    if len(lines) > _MESSAGE_LINES:
        shown.append(f"    ... and {len(lines) - _MESSAGE_LINES} lines more")
    chain = compiler.toolchain
    other = f", or try another compiler through ${chain.variable}" if chain.variable else ""
    help_text = f"send the source with a report{other}"
    help_text = next((help for words, help in chain.hints if any(words in line for line in lines)), help_text)
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
