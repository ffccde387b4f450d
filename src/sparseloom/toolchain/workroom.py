"""Private folders to compile in.

Whoever can rename a folder above the one we work in can put another in its place, and so have us compile or load what is not ours. So a
folder is made with mode 700 where nobody but us and the system can exchange it: beside the cache's entries, else among temporary files.

A folder is locked while it is in use. The lock dies with its process, however that ends; what is found without one is swept.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sparseloom.core.errors import ToolchainError
from sparseloom.core.system import DIRECTORY, WARILY, is_ours, user
from sparseloom.toolchain.filelocks import lock
from sparseloom.toolchain.forks import close, close_in_child, whole_step

_IN_USE, _REFUSED = "sparseloom-build-", "sparseloom-refused-"
UNFINISHED = ".sparseloom-tmp"
_OURS = re.compile(rf"({_IN_USE}|{_REFUSED})[0-9a-f]{{16}}|\.[0-9a-f]{{16}}\{UNFINISHED}")
_USUAL = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
_MINUTE = 60
_HOUR = 60 * 60
_DAY = 24 * 60 * 60
_WEEK = 7 * _DAY


@dataclass
class Workroom:
    """A private folder; ``path`` changes when it is kept for the user to look into."""

    path: Path
    kept: bool = False

    def keep(self, name: str) -> Path:
        """Let one file stay after the work, for a week; return where it is then."""
        for item in self.path.iterdir():
            if item.name != name:
                item.unlink(missing_ok=True)
        kept = self.path.with_name(_REFUSED + os.urandom(8).hex())
        self.path.rename(kept)
        self.path, self.kept = kept, True
        return kept / name


@contextmanager
def workroom(beside: Path | None = None) -> Iterator[Workroom]:
    """A folder of our own, in ``beside`` if that can be used, which is removed in the end."""
    room, lock = _made(beside)
    try:
        yield room
    finally:
        if not room.kept:
            clear_away(room.path)
        if lock is not None:
            close(lock)


def temporary_folder() -> Path:
    """The folder of temporary files; where other users could exchange what is in it, a usual one that is safe."""
    with whole_step:  # Python asks for it behind a lock of its own
        named = Path(tempfile.gettempdir())
    if not named.exists():
        return named
    for folder in (named, *_USUAL):
        if is_safe(folder):
            return folder
    raise ToolchainError(
        f"other users can exchange files in {named}, and in the other folders for temporary files\n"
        "  help: set $TMPDIR to a folder of your own, or chmod +t the shared one"
    )


def is_safe(folder: Path) -> bool:
    """Whether only this user and the system can replace a folder or the files in it."""
    try:
        real = Path(os.path.realpath(folder))
        return not any(_is_changeable(os.stat(part)) for part in (real, *real.parents))
    except OSError:
        return False


def sweep(folder: Path, wait: float = _MINUTE) -> None:
    """Remove what processes left that ended in the middle of their work, and sources that were kept long enough."""
    if not is_safe(folder):
        return
    with suppress(OSError), os.scandir(folder) as listing:
        for item in listing:
            if _OURS.fullmatch(item.name):
                with suppress(OSError):
                    _sweep_one(Path(item.path), item.stat(follow_symlinks=False), wait)


def clear_away(folder: Path) -> None:
    """Remove a folder and the files in it. There are no folders in ours, so none is entered."""
    with suppress(OSError):
        for item in folder.iterdir():
            item.unlink(missing_ok=True)
        folder.rmdir()


def _sweep_one(found: Path, status: os.stat_result, wait: float) -> None:
    age = time.time() - status.st_mtime
    if stat.S_ISREG(status.st_mode) and is_ours(status) and age > _HOUR:
        found.unlink()
    if not stat.S_ISDIR(status.st_mode) or not is_ours(status):
        return
    if age < (_WEEK if found.name.startswith(_REFUSED) else wait):
        return
    descriptor = _opened(found)
    if descriptor is None:  # nobody can lock it here, so only its age tells
        if age > _DAY:
            clear_away(found)
        return
    try:
        if _lock(descriptor) or age > _DAY:
            clear_away(found)
    finally:
        os.close(descriptor)


def _made(beside: Path | None) -> tuple[Workroom, int | None]:
    """A new folder and the descriptor that locks it."""
    if beside is not None and is_safe(beside):
        with suppress(OSError):
            return _made_in(beside)
    try:
        return _made_in(temporary_folder())
    except OSError as wrong:
        raise no_room(wrong) from None


def no_room(wrong: OSError) -> ToolchainError:
    """The message if no temporary file can be written."""
    return ToolchainError(f"no temporary file can be written: {wrong.strerror}\n  help: set $TMPDIR to a folder with room")


def _made_in(place: Path) -> tuple[Workroom, int | None]:
    _sweep_once(place)
    path = place / (_IN_USE + os.urandom(8).hex())
    path.mkdir(mode=0o700)
    descriptor = _opened(path)
    if descriptor is None:
        return Workroom(path), None
    close_in_child(descriptor)
    if _lock(descriptor):
        return Workroom(path), descriptor
    close(descriptor)
    return Workroom(path), None


def _opened(folder: Path) -> int | None:
    """A descriptor of a folder; None on a system that does not open folders."""
    return os.open(folder, os.O_RDONLY | DIRECTORY | WARILY) if DIRECTORY else None


_swept: set[Path] = set()


def _sweep_once(place: Path) -> None:
    """Sweep a place the first time that this process works there."""
    if place not in _swept:
        _swept.add(place)
        sweep(place)


def _lock(descriptor: int) -> bool:
    """Lock a file; False if another process has locked it or its file system has no locks."""
    try:
        return lock(descriptor)
    except OSError:
        return False


def _is_changeable(status: os.stat_result) -> bool:
    """Whether another user can rename files in a folder with this status."""
    if user() is None:  # who may change a folder is not in its mode here; folders for temporary files are a user's own
        return False
    if status.st_uid not in _trusted_users():
        return True
    if status.st_mode & stat.S_ISVTX:
        return False
    private = status.st_gid in (0, user())  # the system's group, or one that has its user's number and no other member
    return bool(status.st_mode & stat.S_IWOTH) or bool(status.st_mode & stat.S_IWGRP and not private)


def _trusted_users() -> tuple[int | None, ...]:
    """Ourselves and the system. In a container that knows few users, whoever it does not know is outside, as its system is."""
    try:
        if Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
            return 0, user(), int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        pass
    return 0, user()
