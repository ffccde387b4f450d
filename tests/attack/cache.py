"""The kernel cache damaged, planted, taken away and shared: a kernel is always the one that was asked for."""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from attack.children import NOBODY, become_nobody, in_child

from sparseloom.core.errors import SparseloomError
from sparseloom.core.settings import settings
from sparseloom.toolchain import libraries as library
from sparseloom.toolchain.cache import kernel_cache, open_cache
from sparseloom.toolchain.compilers import find_compiler
from sparseloom.toolchain.libraries import load

NAME = "cache"
COUNT = 100
SHORT = 12

KERNEL = "#include <stdint.h>\nint32_t entry(void **args) {{ (void)args; return {}; }}\n"
PLANTED = '__attribute__((constructor)) static void run(void) {{ __builtin_trap(); }}\nint entry(void **args) {{ return 666; }}\n'


def answers(number: int) -> None:
    """Load a kernel as a new process would, and refuse any other than the one that was asked for."""
    library._libraries._loaded.clear()
    found = load(KERNEL.format(number))[0](0)
    assert found == number, f"the kernel of {number} gives {found}"


def entry_of(folder: Path, number: int) -> Path:
    """The file of a kernel."""
    return folder / f"{kernel_cache().key(KERNEL.format(number), find_compiler())}.kernel"


def damaged(rng: np.random.Generator, folder: Path) -> str:
    """An entry cut, changed, emptied, lengthened or exchanged for another."""
    answers(1)
    answers(2)
    path = entry_of(folder, 1)
    content = bytearray(path.read_bytes())
    match int(rng.integers(7)):
        case 0:
            content = content[: int(rng.integers(len(content)))]
        case 1:
            for place in rng.integers(len(content), size=int(rng.integers(1, 9))):
                content[place] ^= int(rng.integers(1, 256))
        case 2:
            content += rng.bytes(int(rng.integers(1, 100)))
        case 3:
            content = bytearray(entry_of(folder, 2).read_bytes())
        case 4:
            content = content[-int(rng.integers(1, 200)) :]
        case 5:
            content = bytearray(rng.bytes(int(rng.integers(0, 5000))))
        case 6:
            content[: len(content) // 2] = bytes(len(content) // 2)
    new = folder.parent / "new"  # a file that is mapped here is exchanged, never written
    new.write_bytes(content)
    new.replace(path)
    answers(1)
    answers(2)
    return "right"


def obstructed(rng: np.random.Generator, folder: Path) -> str:
    """Links, pipes, folders and devices in the place of an entry, of a lock, or of the cache."""
    answers(1)
    path = entry_of(folder, 1)
    if rng.integers(2):
        path = folder / f".{path.stem}.sparseloom-lock"
        entry_of(folder, 1).unlink()
    elif rng.integers(3) == 0:
        shutil.rmtree(folder)
        path = folder
    path.unlink(missing_ok=True)
    elsewhere = folder.parent / "elsewhere"
    elsewhere.write_bytes(b"mine")
    match int(rng.integers(6)):
        case 0:
            path.symlink_to(elsewhere)
        case 1:
            path.symlink_to(path)
        case 2:
            os.mkfifo(path)
        case 3:
            path.mkdir(mode=0o700)
        case 4:
            path.symlink_to("/dev/zero")
        case 5:
            path.mkdir(mode=0o700)
            (path / "inside").touch()
    open_cache.cache_clear()
    answers(1)
    answers(1)
    assert elsewhere.read_bytes() == b"mine"
    return "right"


def planted(rng: np.random.Generator, folder: Path) -> str:
    """Another user puts code where we look for ours: as an entry, as a compiler, or while we compile in a folder that all may write."""
    evil = folder.parent / "evil.so"
    source = folder.parent / "evil.c"
    source.write_text(PLANTED.format())
    subprocess.run([find_compiler().path, "-shared", "-fPIC", "-o", evil, source], check=True)
    kind = int(rng.integers(3))
    if kind == 0:  # a sound entry that is not ours
        answers(1)
        path = entry_of(folder, 1)
        cache = kernel_cache()
        cache.put(path.stem, evil.read_bytes()).close()
        if os.getuid() != 0:
            return "not tried"
        os.chown(path, NOBODY, NOBODY)
        answers(1)
    if kind == 1:  # a compiler in the current folder
        here, path = os.getcwd(), os.environ["PATH"]
        for name in ("gcc", "cc", "clang", "as", "ld"):
            (folder.parent / name).write_text(f"#!/bin/sh\ncp {evil} kernel.so\ntouch {folder.parent}/run\n")
            (folder.parent / name).chmod(0o755)
        try:
            os.chdir(folder.parent)
            os.environ["PATH"] = (":" + path, path + ":", ".:" + path, path.replace(":", "::", 1))[rng.integers(4)]
            answers(3)
        finally:
            os.chdir(here)
            os.environ["PATH"] = path
        assert not (folder.parent / "run").exists(), "a program of the current folder was run"
    if kind == 2:  # a folder of temporary files without the sticky bit
        shared = folder.parent / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        thief = _exchanging(shared, evil)
        settings.use_cache = False
        before, tempfile.tempdir = tempfile.tempdir, str(shared)
        try:
            for number in range(4):
                answers(number)
        finally:
            tempfile.tempdir, settings.use_cache = before, None
            os.kill(thief, signal.SIGKILL)
            os.waitpid(thief, 0)
    return "right"


def _exchanging(shared: Path, evil: Path) -> int:
    """A process that exchanges whatever appears in a folder."""
    thief = os.fork()
    if thief:
        return thief
    with suppress(BaseException):
        if os.getuid() == 0:
            become_nobody()
        for number in itertools.count():
            for room in shared.glob("*"):
                with suppress(OSError):
                    room.rename(shared / f".old{number}")
                    room.mkdir(mode=0o777)
                    shutil.copy(evil, room / "kernel.so")
    os._exit(0)


def unwritable(rng: np.random.Generator, folder: Path) -> str:
    """A cache that cannot be written, read or entered, by a user with no special rights; or a full disk."""
    answers(1)
    mode = int(rng.choice([0o000, 0o100, 0o400, 0o500, 0o600, 0o300]))
    full = bool(rng.integers(2))

    def work() -> str:
        if os.getuid() == 0:
            for path in (folder.parent, *folder.parent.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        if not full:
            folder.chmod(mode)
        else:
            _limit_files(rng)
        open_cache.cache_clear()
        try:
            answers(1)
            answers(7)
        except SparseloomError:
            assert full, "there was room elsewhere"
            return "refused"
        finally:
            folder.chmod(0o700)
        return "right"

    return in_child(work)


def _limit_files(rng: np.random.Generator) -> None:
    """Let files be short: what a full disk does, to us and to the compiler."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    most = int(rng.integers(0, 1 << 15))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def many(rng: np.random.Generator, folder: Path) -> str:
    """Processes that start together, while the cache is cleared or some of them are killed."""
    numbers, kills, clears = [int(n) for n in rng.integers(0, 4, size=3)], int(rng.integers(0, 2)), bool(rng.integers(2))
    children = []
    for _ in range(5):
        child = os.fork()
        if child == 0:
            status = 1
            with suppress(SparseloomError, AssertionError):
                for number in numbers:
                    answers(number)
                status = 0
            os._exit(status)
        children.append(child)
    time.sleep(float(rng.uniform(0, 0.3)))
    for child in children[:kills]:
        os.kill(child, signal.SIGKILL)
    if clears:
        kernel_cache().clear()
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert all(end == 0 for end in ends[kills:]), f"the processes ended with {ends}"
    for number in numbers:
        answers(number)
    if not kills:
        left = [path.name for path in folder.iterdir() if path.suffix != ".kernel"]
        assert not left, f"these were left: {left}"
    return "right"


def unloaded(rng: np.random.Generator, folder: Path) -> str:
    """Kernels come and go while some are held; each stays what it was."""
    held: dict[int, Callable[[int], int]] = {}
    for _ in range(30):
        number = int(rng.integers(12))
        if rng.integers(2):
            held[number] = load(KERNEL.format(number))[0]
        elif held and rng.integers(2):
            held.popitem()
        else:
            answers(number)
        assert all(entry(0) == wanted for wanted, entry in held.items())
    return "right"


KINDS = (damaged, damaged, obstructed, planted, unwritable, many, unloaded)


def trial(rng: np.random.Generator) -> str:
    """One of them, in a cache of its own."""
    top = Path(tempfile.mkdtemp(prefix="attacked-"))
    top.chmod(0o755)
    before, settings.cache_folder = settings.cache_folder, top / "cache"
    open_cache.cache_clear()
    try:
        return KINDS[rng.integers(len(KINDS))](rng, top / "cache")
    finally:
        settings.cache_folder = before
        library._libraries._loaded.clear()
        open_cache.cache_clear()
        shutil.rmtree(top, ignore_errors=True)
