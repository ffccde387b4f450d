"""The kernel cache: compiled libraries on disk, shared by all processes of one user.

An entry is one file, ``<key>.kernel``: the library, then a mark, then the digest of key and library::

    | ELF bytes ... | "SLKERNEL" | sha256(key + ELF bytes) |

The loader ignores what follows the ELF image. An entry is written under another name and then renamed, so that readers see all
of it or nothing, and every rewrite is a new inode: a library that is mapped somewhere is never changed. ``get`` and ``put`` hand
out the *open file* whose content was checked, not its path, so that nobody can exchange it between the check and the loading.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sparseloom.core import settings
from sparseloom.core.notices import notify
from sparseloom.core.system import WARILY, is_ours, user
from sparseloom.toolchain import turns
from sparseloom.toolchain.compilers import Compiler, cpu_features
from sparseloom.toolchain.workroom import UNFINISHED, no_room, sweep, temporary_folder

_MARK = b"SLKERNEL"
_TRAILER = len(_MARK) + hashlib.sha256().digest_size
_SUFFIX = ".kernel"
_DAY = 24 * 60 * 60
_HOUR = 60 * 60


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One kept kernel: its key, its size in bytes, and when it was last used (to within a day)."""

    key: str
    size: int
    last_used: float


class KernelCache:
    """Kernels kept in ``folder``, at most about ``limit`` bytes; the least recently used go first.

    A folder that cannot be used or trusted gives one warning, and kernels then live in nameless temporary files of this process.
    ``folder=None`` asks for just that, without a warning.
    """

    def __init__(self, folder: Path | None, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._trusted = _prepared(folder) if folder is not None else None
        self._warned = self._trusted is None
        self._written = 0  # bytes since the folder was last measured

    @staticmethod
    def key(source: str, compiler: Compiler) -> str:
        """The name of a kernel: a digest of everything its code depends on."""
        chain = compiler.toolchain
        flags = compiler.flags + (compiler.openmp if chain.has_parallel_loops(source) else ())
        parts = ("sparseloom kernel 2", source, compiler.path, compiler.arguments, compiler.identity, flags, chain.suffix, chain.libraries)
        return hashlib.sha256(repr((*parts, cpu_features())).encode()).hexdigest()

    def get(self, key: str) -> io.FileIO | None:
        """Open an entry after checking it, or return ``None``. A damaged one is removed."""
        if self._trusted is None:
            return None
        try:
            file = io.FileIO(_path(self._trusted, key), opener=_open_warily)
        except OSError:
            return None
        if _is_sound(file, key):
            _mark_used(file)
            return file
        file.close()
        self.discard(key)
        return None

    @property
    def room(self) -> Path | None:
        """A folder that holds nothing but what is ours, to compile in; ``None`` if there is none."""
        return self._trusted

    def turn(self, key: str) -> AbstractContextManager[None]:
        """Wait until no other process makes this entry, or is waited for too long; look whether it is there, then."""
        return turns.turn(self._trusted, key)

    def read(self, key: str) -> bytes | None:
        """The content of an entry, as it was put."""
        file = self.get(key)
        if file is None:
            return None
        with file:
            return content_of(file)

    def put(self, key: str, library: bytes) -> IO[bytes]:
        """Keep a library and return it as an open file. Old entries make room."""
        content = library + _MARK + _digest(key, library)
        if self._trusted is not None:
            try:
                path = _path(self._trusted, key)
                file = _written(content, path.parent, lambda name: os.replace(name, path))
            except OSError as wrong:
                self._warn_once(self._trusted, f"cannot be written ({wrong.strerror})")
            else:
                self._make_room(key, len(content))
                return file
        return _temporary(content)

    def discard(self, key: str) -> None:
        """Remove an entry if it is there. A process that has it loaded is not disturbed."""
        if self._trusted is not None:
            with suppress(OSError):
                _path(self._trusted, key).unlink()

    def entries(self) -> list[CacheEntry]:
        """All entries, least recently used first."""
        found = [CacheEntry(path.name.removesuffix(_SUFFIX), status.st_size, status.st_mtime) for path, status in self._files(_SUFFIX)]
        return sorted(found, key=lambda entry: (entry.last_used, entry.key))

    @property
    def size(self) -> int:
        """The bytes that all entries take."""
        return sum(entry.size for entry in self.entries())

    def clear(self) -> int:
        """Remove every entry, nothing else, and return how many there were."""
        entries = self.entries()
        for entry in entries:
            self.discard(entry.key)
        self._sweep()
        return len(entries)

    def _warn_once(self, folder: Path, complaint: str) -> None:
        if not self._warned:
            _say(folder, complaint)
        self._warned = True

    def _files(self, *suffixes: str) -> Iterator[tuple[Path, os.stat_result]]:
        """Our own files in the folder that end so; some may vanish meanwhile, as other processes evict too."""
        if self._trusted is None:
            return
        with suppress(OSError), os.scandir(self._trusted) as listing:
            for item in listing:
                if item.name.endswith(suffixes):
                    with suppress(OSError):
                        status = item.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            yield Path(item.path), status

    def _make_room(self, key: str, written: int) -> None:
        """Evict what is over the limit. Measuring a full folder takes long, so it is done after every 1/64 of the limit.

        One key in sixteen counts as well, for processes that write a single kernel each.
        """
        self._written += written
        if self._written * 64 < self.limit and not key.startswith("0"):
            return
        self._written = 0
        entries = self.entries()
        surplus = sum(entry.size for entry in entries) - self.limit
        for entry in entries:
            if surplus <= 0:
                break
            self.discard(entry.key)
            surplus -= entry.size
        self._sweep()

    def _sweep(self) -> None:
        """Remove half-written files, locks and folders of processes that died."""
        now = time.time()
        for path, status in self._files(UNFINISHED, turns.SUFFIX):
            if now - status.st_mtime > _HOUR:
                with suppress(OSError):
                    path.unlink()
        if self._trusted is not None:
            sweep(self._trusted)


def kernel_cache() -> KernelCache:
    """The disk cache that the settings name."""
    return open_cache(settings.cache_folder(), settings.cache_limit())


@functools.cache
def open_cache(folder: Path | None, limit: int) -> KernelCache:
    """The cache in a folder, opened once."""
    return KernelCache(folder, limit)


def content_of(file: IO[bytes]) -> bytes:
    """What was put, from the open file of an entry: without the mark and the digest."""
    file.seek(0)
    return file.read()[:-_TRAILER]


def _path(folder: Path, key: str) -> Path:
    return folder / (key + _SUFFIX)


def _prepared(folder: Path) -> Path | None:
    """Make the folder if need be and return it, or say why it cannot be used and return ``None``."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        complaint = _distrust(folder.lstat())
    except OSError as wrong:
        complaint = f"cannot be made ({wrong.strerror})"
    if complaint:
        _say(folder, complaint)
        return None
    return folder


def _distrust(status: os.stat_result) -> str:
    """Why a folder may hold code that is not ours, or nothing. Others may read it: kernels are no secret."""
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not is_ours(status):
        return "belongs to another user"
    if user() is not None and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written by other users (mode {stat.S_IMODE(status.st_mode):o}; chmod 700 would do)"
    return ""


def _say(folder: Path, complaint: str) -> None:
    notify(
        f"the kernel cache {folder} {complaint}; compiled kernels will not be kept\n"
        "  help: set SPARSELOOM_CACHE_DIR to a folder of your own, or SPARSELOOM_NO_CACHE=1 to do without"
    )


def _digest(key: str, library: bytes) -> bytes:
    # The key is part of it, so that an entry renamed to another key is refused.
    return hashlib.sha256(key.encode() + library).digest()


def _open_warily(path: str, flags: int) -> int:
    """Open for reading; a link is not followed, and a pipe put here by mistake does not block."""
    return os.open(path, flags | WARILY)


def _is_sound(file: io.FileIO, key: str) -> bool:
    try:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not is_ours(status):
            return False
        content = file.read()
    except OSError:
        return False
    return content[-_TRAILER:] == _MARK + _digest(key, content[:-_TRAILER])


def _mark_used(file: io.FileIO) -> None:
    """Set the time of last use, at most once a day: a lookup should not write."""
    now = time.time()
    if now - os.fstat(file.fileno()).st_mtime > _DAY:
        with suppress(OSError):
            os.utime(file.fileno(), (now, now))


def _temporary(content: bytes) -> IO[bytes]:
    try:
        return _written(content, temporary_folder(), os.unlink)
    except OSError as wrong:
        raise no_room(wrong) from None


def _written(content: bytes, folder: Path, then: Callable[[str], None]) -> IO[bytes]:
    """Write a new file, do something with its name, and return it open; leave nothing behind on failure."""
    name = os.path.join(folder, f".{os.urandom(8).hex()}{UNFINISHED}")
    file = os.fdopen(os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | WARILY, 0o600), "w+b")
    try:
        file.write(content)
        file.flush()
        then(name)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        with suppress(OSError):
            file.close()
        raise
    return file
