"""One process compiles, the others wait, and nobody waits for ever."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toolchain.kernels import returning, stand_in

from sparseloom.core.settings import settings
from sparseloom.toolchain import libraries as library
from sparseloom.toolchain import turns
from sparseloom.toolchain.compilers import find_compiler
from sparseloom.toolchain.libraries import kernel_cache, load

SOURCE = Path(__file__).parents[2] / "src"
WORKER = """
import sys
from sparseloom.toolchain.libraries import load
print("ready", flush=True)
sys.stdin.readline()
print([load(source)[0](0) for source in sys.argv[1:]])
"""
HOLDER = """
import sys, time
from pathlib import Path
from sparseloom.toolchain.turns import turn
with turn(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    monkeypatch.setattr(library, "_libraries", library._Libraries())
    (tmp_path / "cache").mkdir(mode=0o700)
    return tmp_path / "cache"


def started(program: str, *arguments: str, cache: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "SPARSELOOM_CACHE_DIR": str(cache)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-W", "error", "-c", program, *arguments], stdin=pipe, stdout=pipe, text=True, env=environment)


def test_processes_that_start_together_compile_each_kernel_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    workers = [started(WORKER, *map(returning, range(5)), cache=cache) for _ in range(6)]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    assert [worker.communicate()[0] for worker in workers] == ["[0, 1, 2, 3, 4]\n"] * 6
    assert len(calls()) == 5
    assert all(path.suffix == ".kernel" for path in cache.iterdir()) and len(list(cache.iterdir())) == 5


def held_by_another(cache: Path) -> subprocess.Popen[str]:
    """A process that pretends to compile what we want."""
    worker = started(HOLDER, str(cache), kernel_cache().key(returning(7), find_compiler()), cache=cache)
    assert worker.stdout is not None and worker.stdout.readline() == "held\n"
    return worker


def test_waiting_has_a_limit(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.2)
    worker = held_by_another(cache)
    try:
        assert load(returning(7))[0](0) == 7
    finally:
        worker.kill()
        worker.communicate()


def test_a_lock_dies_with_its_owner(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 1e9)
    worker = held_by_another(cache)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    assert load(returning(7))[0](0) == 7
    assert [path.suffix for path in cache.iterdir()] == [".kernel"]


def test_where_files_cannot_be_locked_nobody_waits(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert load(returning(7))[0](0) == 7


@pytest.mark.parametrize("obstacle", ["folder", "link", "pipe"])
def test_what_stands_in_the_place_of_a_lock_does_no_harm(tmp_path: Path, cache: Path, obstacle: str) -> None:
    path = cache / f".{kernel_cache().key(returning(7), find_compiler())}{turns.SUFFIX}"
    match obstacle:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to(tmp_path / "elsewhere")
        case "pipe":
            os.mkfifo(path)
    assert load(returning(7))[0](0) == 7
    assert not (tmp_path / "elsewhere").exists()


def test_old_locks_are_swept(cache: Path) -> None:
    old, young = cache / f".old{turns.SUFFIX}", cache / f".young{turns.SUFFIX}"
    old.touch()
    young.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    kernel_cache().clear()
    assert [path.name for path in cache.iterdir()] == [young.name]
