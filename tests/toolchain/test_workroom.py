"""Kernels are compiled where nobody else can exchange a file, with a compiler from an absolute path, and nothing is left behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toolchain.kernels import returning, stand_in

from sparseloom.core.errors import ToolchainError
from sparseloom.core.settings import settings
from sparseloom.toolchain import workroom as rooms
from sparseloom.toolchain.compilers import CompileError, compile_library, find_compiler
from sparseloom.toolchain.libraries import kernel_cache, load
from sparseloom.toolchain.workroom import is_safe, sweep, temporary_folder, workroom

SOURCE = Path(__file__).parents[2] / "src"
OLD = time.time() - 3600


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    return tmp_path / "cache"


def used_folders(calls: list[str]) -> set[Path]:
    """The folders in which kernels were compiled, from the notes of a compiler."""
    return {Path(call.split()[-2]).parent.parent for call in calls}


def test_a_room_is_private_and_goes_away(temporary: Path) -> None:
    with workroom() as room:
        assert room.path.parent == temporary and room.path.stat().st_mode & 0o777 == 0o700
        (room.path / "kernel.c").touch()
    assert list(temporary.iterdir()) == []


def test_kernels_are_compiled_beside_the_cache(
    tmp_path: Path, temporary: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    load(returning(41))
    assert used_folders(calls()) == {cache}
    assert [path.suffix for path in cache.iterdir()] == [".kernel"] and list(temporary.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o772])
def test_where_others_can_exchange_files_nothing_is_compiled(
    tmp_path: Path, temporary: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the sticky bit, whoever may write a folder may put another room in the place of ours."""
    calls = stand_in(tmp_path, monkeypatch)
    inside = temporary / "inside"
    inside.mkdir(mode=0o700)
    temporary.chmod(mode)
    for folder in (temporary, inside):
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        assert not is_safe(folder)
        assert temporary_folder() in (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
        compile_library(returning(0), find_compiler(), (), folder)
        assert not used_folders(calls()) & {temporary, inside}
    temporary.chmod(mode | 0o1000)
    assert is_safe(temporary) and temporary_folder() == inside
    temporary.chmod(0o700)


def test_a_folder_of_another_user_is_not_safe(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = temporary.stat().st_uid
    assert is_safe(temporary)
    monkeypatch.setattr(rooms, "_trusted_users", lambda: (own + 1,))
    assert not is_safe(temporary)


def test_no_safe_folder_at_all_is_said(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "is_safe", lambda _: False)
    with pytest.raises(ToolchainError) as refused:
        compile_library(returning(0), find_compiler())
    assert str(refused.value) == (
        f"other users can exchange files in {temporary}, and in the other folders for temporary files\n"
        "  help: set $TMPDIR to a folder of your own, or chmod +t the shared one"
    )


def test_the_compilers_own_files_are_in_the_room(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "cc"
    program.write_text(f'#!/bin/sh\necho "$TMPDIR $TMP $TEMP" > {tmp_path}/said\nexec {shutil.which("gcc")} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setenv("CC", str(program))
    monkeypatch.setenv("TMPDIR", "/var/empty")
    compile_library(returning(0), find_compiler())
    assert {Path(folder).parent for folder in (tmp_path / "said").read_text().split()} == {temporary}


@pytest.mark.parametrize("path", ["", ".", ":/usr/bin", "/usr/bin:", "/usr/bin::/bin", "./here:/usr/bin", "here:/usr/bin"])
def test_no_program_of_the_current_folder_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Neither by us nor by the compiler, which looks for an assembler and a linker."""
    monkeypatch.delenv("CC", raising=False)
    for folder in (tmp_path, tmp_path / "here"):
        folder.mkdir(exist_ok=True)
        for name in ("gcc", "clang", "cc", "as", "ld", "collect2"):
            (folder / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/run\nexit 1\n")
            (folder / name).chmod(0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    try:
        assert os.path.isabs(find_compiler().path)
        compile_library(returning(0), find_compiler())
    except ToolchainError as missing:
        assert "/usr/bin" not in path and str(missing).startswith("no C compiler was found")
    assert not (tmp_path / "run").exists()


def test_a_compiler_may_be_named_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mycc").write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "$@"\n')
    (tmp_path / "mycc").chmod(0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", "./mycc")
    assert find_compiler().path == str(tmp_path / "mycc")


def test_a_full_disk_under_the_cache_is_left_for_another(
    tmp_path: Path, cache: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "cc"
    full = f'case "$*" in *"{cache}"*) echo "kernel.so: No space left on device" >&2; exit 1;; esac'
    program.write_text(f'#!/bin/sh\n{full}\nexec {shutil.which("gcc")} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setenv("CC", str(program))
    assert load(returning(42))[0](0) == 42
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_is_swept(tmp_path: Path, cache: Path) -> None:
    """It is killed while its compiler runs; the room stays until a later process compiles there."""
    program = tmp_path / "cc"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexec sleep 60\n")
    program.chmod(0o700)
    code = f"from sparseloom.toolchain.libraries import load; load({returning(43)!r})"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "CC": str(program), "SPARSELOOM_CACHE_DIR": str(cache)}
    worker = subprocess.Popen([sys.executable, "-c", code], env=environment, process_group=0)
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    (room,) = cache.glob("sparseloom-build-*")
    os.utime(room, (OLD, OLD))
    sweep(cache)
    assert room.exists(), "its process is alive"
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    sweep(cache, wait=2**60)
    assert room.exists(), "it is too young"
    sweep(cache)
    assert not room.exists()
    kernel_cache().clear()


def test_only_what_is_ours_is_swept(temporary: Path) -> None:
    names = ["sparseloom-build-0123456789abcdef", "sparseloom-refused-0123456789abcdef", ".0123456789abcdef.sparseloom-tmp"]
    others = ["sparseloom-build-mine", "sparseloom-test-cache-0123456789abcdef", "sparseloom-build-0123456789abcdef0", "abcd1234"]
    for name in (*names[:2], *others):
        (temporary / name).mkdir()
        (temporary / name / "kernel.c").touch()
    (temporary / names[2]).touch()
    (temporary / "sparseloom-build-00000000000000ff").symlink_to(temporary / others[0])
    deep = temporary / "sparseloom-build-ffffffffffffffff" / "deep"
    deep.mkdir(parents=True)
    (deep / "kept").touch()
    for path in temporary.iterdir():
        os.utime(path, (OLD - 10, OLD - 10), follow_symlinks=False)
    sweep(temporary)
    left = {path.name for path in temporary.iterdir()}
    assert left == {names[1], *others, "sparseloom-build-00000000000000ff", "sparseloom-build-ffffffffffffffff"}
    assert (deep / "kept").exists() and (temporary / others[0] / "kernel.c").exists()
    os.utime(temporary / names[1], (0, 0))
    sweep(temporary)
    assert not (temporary / names[1]).exists()


def test_rooms_are_swept_where_files_cannot_be_locked(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then only what is a day old is taken for dead."""

    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert compile_library(returning(0), find_compiler())[:4] == b"\x7fELF"
    for name, age in (("sparseloom-build-0123456789abcdef", 3600), ("sparseloom-build-0123456789abcdee", 90_000)):
        (temporary / name).mkdir()
        os.utime(temporary / name, (time.time() - age,) * 2)
    sweep(temporary)
    assert [path.name for path in temporary.iterdir()] == ["sparseloom-build-0123456789abcdef"]


def test_a_refused_source_is_kept_apart(temporary: Path) -> None:
    with pytest.raises(CompileError) as refusal:
        compile_library("int entry( {\n", find_compiler())
    assert refusal.value.source.parent.name.startswith("sparseloom-refused-")
    assert [path.name for path in refusal.value.source.parent.iterdir()] == ["kernel.c"]
