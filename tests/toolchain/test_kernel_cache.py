"""The kernel cache: what it keeps, what it trusts, and what it lets go."""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from pathlib import Path

import pytest
from toolchain.kernels import SPMV, returning

from sparseloom.core.errors import SparseloomWarning, ToolchainError
from sparseloom.toolchain.cache import KernelCache
from sparseloom.toolchain.compilers import Compiler

COMPILER = Compiler("/usr/bin/cc", (), (("/usr/bin/cc", 1, 2),))
LIMIT = 1 << 20
A, B, C, D = (letter * 64 for letter in "abcd")


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "cache", LIMIT)


def file_of(cache: KernelCache, key: str) -> Path:
    assert cache.folder is not None
    return cache.folder / f"{key}.kernel"


def put(cache: KernelCache, key: str, content: bytes = b"library") -> None:
    cache.put(key, content).close()


def test_what_was_put_is_got(cache: KernelCache) -> None:
    assert cache.get(A) is None
    with cache.put(A, b"library") as handed:
        handed.seek(0)
        assert handed.read().startswith(b"library")
    assert cache.read(A) == b"library"
    with cache.get(A) as file:  # type: ignore[union-attr]
        file.seek(0)
        assert file.read().startswith(b"library")


def test_an_entry_is_one_file_in_a_private_folder(cache: KernelCache) -> None:
    put(cache, A)
    assert cache.folder is not None
    assert [path.name for path in cache.folder.iterdir()] == [f"{A}.kernel"]
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    assert file_of(cache, A).stat().st_mode & 0o777 == 0o600


def test_the_key_depends_on_everything_that_decides_the_code() -> None:
    variants = [
        COMPILER,
        dataclasses.replace(COMPILER, arguments=("-m64",)),
        dataclasses.replace(COMPILER, flags=("-O2",)),
        dataclasses.replace(COMPILER, identity=(("/usr/bin/cc", 1, 3),)),
    ]
    keys = {KernelCache.key(source, compiler) for source in (SPMV, returning(0)) for compiler in variants}
    assert len(keys) == 8
    assert KernelCache.key(SPMV, COMPILER) == KernelCache.key(SPMV, dataclasses.replace(COMPILER))


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:10], lambda b: b"", lambda b: b"L" + b[1:], lambda b: b[:-1] + b"?"])
def test_a_damaged_entry_is_removed(cache: KernelCache, damage: object) -> None:
    put(cache, A)
    file_of(cache, A).write_bytes(damage(file_of(cache, A).read_bytes()))  # type: ignore[operator]
    assert cache.get(A) is None
    assert not file_of(cache, A).exists()
    put(cache, A, b"again")
    assert cache.read(A) == b"again"


def test_an_entry_under_another_key_is_removed(cache: KernelCache) -> None:
    put(cache, A)
    file_of(cache, A).rename(file_of(cache, B))
    assert cache.get(B) is None
    assert not file_of(cache, B).exists()


def test_what_is_open_does_not_change_when_the_entry_does(cache: KernelCache) -> None:
    put(cache, A, b"old library")
    with cache.get(A) as file:  # type: ignore[union-attr]
        old = os.fstat(file.fileno()).st_ino
        put(cache, A, b"new library")
        assert file_of(cache, A).stat().st_ino != old
        cache.discard(A)
        file.seek(0)
        assert file.read().startswith(b"old library")


def test_things_that_are_no_files_are_not_read(cache: KernelCache, tmp_path: Path) -> None:
    put(cache, A)
    elsewhere = tmp_path / "elsewhere"
    file_of(cache, A).rename(elsewhere)
    file_of(cache, A).symlink_to(elsewhere)
    os.mkfifo(file_of(cache, B))
    file_of(cache, C).mkdir()
    assert [cache.get(key) for key in (A, B, C)] == [None, None, None]
    put(cache, A, b"mine")
    assert cache.read(A) == b"mine" and not file_of(cache, A).is_symlink()
    assert elsewhere.read_bytes().startswith(b"library")
    assert [entry.key for entry in cache.entries()] == [A]


def refused(folder: Path, why: str) -> KernelCache:
    """The cache of a folder that must be refused with one warning, and still must hand out what is put."""
    with pytest.warns(SparseloomWarning) as said:
        cache = KernelCache(folder, LIMIT)
    assert [str(warning.message) for warning in said] == [
        f"the kernel cache {folder} {why}; compiled kernels will not be kept\n"
        "  help: set SPARSELOOM_CACHE_DIR to a folder of your own, or SPARSELOOM_NO_CACHE=1 to do without"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with cache.put(A, b"library") as file:
            file.seek(0)
            assert file.read().startswith(b"library")
        assert (cache.get(A), cache.read(A), cache.entries(), cache.size, cache.clear()) == (None, None, [], 0, 0)
        cache.discard(A)
    return cache


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    refused(tmp_path / "link", "is a symbolic link")
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    refused(tmp_path, f"can be written by other users (mode {mode:o}; chmod 700 would do)")
    assert tmp_path.stat().st_mode & 0o777 == mode


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    refused(tmp_path, "belongs to another user")


def test_an_entry_of_another_user_is_not_read(cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cache, A)
    monkeypatch.setattr(os, "getuid", lambda: file_of(cache, A).stat().st_uid + 1)
    assert cache.get(A) is None


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused(tmp_path / "file" / "cache", "cannot be made (Not a directory)")
    refused(tmp_path / "file", "cannot be made (File exists)")


def test_a_folder_that_others_can_read_is_used_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    put(KernelCache(tmp_path, LIMIT), A)
    assert KernelCache(tmp_path, LIMIT).read(A) == b"library"
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_an_unwritable_folder_warns_once_and_is_still_read(cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cache, A)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(SparseloomWarning, match=r"cache cannot be written \(No space left on device\)"):
        put(cache, B)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        put(cache, C)
    assert cache.read(A) == b"library"
    assert cache.folder is not None and [path.name for path in cache.folder.iterdir()] == [f"{A}.kernel"]


def test_without_a_folder_nothing_is_kept_or_said(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = KernelCache(None, LIMIT)
    put(cache, A)
    assert cache.get(A) is None
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent")
    with pytest.raises(ToolchainError, match="no temporary file can be written: No such file or directory"):
        put(cache, A)


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "cache", limit=3500)
    now = time.time()
    for age, key in ((5, A), (4, B), (3, C)):
        put(cache, key, bytes(1000))
        os.utime(file_of(cache, key), (now - age * 86400 * 2, now - age * 86400 * 2))
    assert [entry.key for entry in cache.entries()] == [A, B, C]
    cache.read(A)
    assert [entry.key for entry in cache.entries()] == [B, C, A]
    put(cache, D, bytes(1000))
    assert [entry.key for entry in cache.entries()] == [C, A, D]
    assert cache.size <= cache.limit


def test_using_an_entry_again_on_the_same_day_does_not_write(cache: KernelCache) -> None:
    put(cache, A)
    hour_ago = time.time() - 3600
    os.utime(file_of(cache, A), (hour_ago, hour_ago))
    before = file_of(cache, A).stat().st_mtime_ns
    assert cache.read(A) == b"library"
    assert file_of(cache, A).stat().st_mtime_ns == before


def test_an_entry_larger_than_the_limit_is_handed_out_and_let_go(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path / "cache", limit=100)
    with cache.put(A, bytes(1000)) as file:
        file.seek(0)
        assert file.read().startswith(bytes(1000))
    assert cache.entries() == []


def test_clear_removes_entries_and_nothing_else(cache: KernelCache) -> None:
    assert cache.folder is not None
    put(cache, A)
    put(cache, B)
    (cache.folder / "notes.txt").touch()
    fresh, stale = cache.folder / ".fresh.sparseloom-tmp", cache.folder / ".stale.sparseloom-tmp"
    fresh.touch()
    stale.touch()
    os.utime(stale, (0, 0))
    assert cache.size == sum(file_of(cache, key).stat().st_size for key in (A, B))
    assert cache.clear() == 2
    assert sorted(path.name for path in cache.folder.iterdir()) == [fresh.name, "notes.txt"]
