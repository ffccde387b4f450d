"""From C text to an entry: compiled once, kept, and loaded as it was checked."""

from __future__ import annotations

import errno
import gc
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from toolchain.kernels import SPMV, THREADED_SUM, in_child, returning, stand_in

import sparseloom as sl
from sparseloom.compiler import build
from sparseloom.core.errors import CompilerBug, SparseloomWarning, ToolchainError
from sparseloom.core.settings import settings
from sparseloom.programs.calling import Pack, run
from sparseloom.toolchain import libraries as library
from sparseloom.toolchain.compilers import find_compiler
from sparseloom.toolchain.failures import failures
from sparseloom.toolchain.libraries import kernel_cache, load

SOURCE = Path(__file__).parents[2] / "src"
MXCSR = "#include <stdint.h>\nint32_t entry(void **args) { (void)args; return (int32_t)__builtin_ia32_stmxcsr(); }\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache on disk and in memory."""
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process as forgetful as a new one."""
    monkeypatch.setattr(library, "_libraries", library._Libraries())
    monkeypatch.setattr(library, "_refusals", {})
    failures.forget()


def status(source: str) -> int:
    (entry,) = load(source)
    return entry(0)


def multiply(source: str = SPMV) -> list[float]:
    pos, crd = np.array([0, 2, 2, 3], np.int32), np.array([0, 2, 1], np.int32)
    y = np.full(3, np.nan)
    (entry,) = load(source)
    run(entry, Pack([pos, crd, np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0, 100.0]), y, 3]))
    return y.tolist()


def test_a_kernel_computes() -> None:
    assert multiply() == [201.0, 0.0, 30.0]


def test_one_source_may_have_many_entries() -> None:
    source = "".join(f"int entry_{n}(void **args) {{ (void)args; return {n}; }}\n" for n in range(50))
    entries = load(source, [f"entry_{n}" for n in range(50)])
    assert [entry(0) for entry in entries] == list(range(50))


def test_a_missing_entry_is_a_bug() -> None:
    with pytest.raises(CompilerBug, match="a kernel library should define other"):
        load(returning(0), ("other",))


def test_a_kernel_is_compiled_once_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    assert [status(returning(7)), status(returning(7))] == [7, 7]
    forget(monkeypatch)
    assert status(returning(7)) == 7
    assert len(calls()) == 1


def test_two_threads_compile_a_kernel_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, ready, answers = stand_in(tmp_path, monkeypatch), threading.Barrier(4), list[int]()

    def ask() -> None:
        ready.wait()
        answers.append(status(returning(7)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [7, 7, 7, 7]
    assert len(calls()) == 1


def test_libraries_loaded_through_the_same_descriptor_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # Descriptors are numbered again, and the loader goes by path: without care the second source gives the first library.
    assert [status(returning(n)) for n in range(10)] == list(range(10))
    forget(monkeypatch)
    assert [status(returning(n)) for n in reversed(range(10))] == list(reversed(range(10)))


def test_where_descriptors_have_no_path_a_private_copy_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.sys, "platform", "another")
    assert [status(returning(n)) for n in range(3)] == [0, 1, 2]
    forget(monkeypatch)
    assert [status(returning(n)) for n in range(3)] == [0, 1, 2]


def test_memory_holds_few_libraries_and_loads_the_others_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    monkeypatch.setattr(library, "_REMEMBERED", 2)
    assert [status(returning(n)) for n in (1, 2, 3, 1, 2, 3)] == [1, 2, 3, 1, 2, 3]
    assert len(library._libraries._loaded) == 2
    assert len(calls()) == 3


def test_an_entry_outlives_its_file_and_its_place_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    (entry,) = load(returning(7))
    kernel_cache().clear()
    forget(monkeypatch)
    assert entry(0) == 7
    assert status(returning(7)) == 7


def test_a_damaged_file_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    assert status(returning(7)) == 7
    (file,) = (tmp_path / "cache").iterdir()
    damaged = tmp_path / "damaged"
    damaged.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    damaged.replace(file)
    forget(monkeypatch)
    assert status(returning(7)) == 7
    assert len(calls()) == 2


def test_a_sound_file_that_cannot_be_loaded_is_compiled_again() -> None:
    cache = kernel_cache()
    key = cache.key(returning(7), find_compiler())
    cache.put(key, b"made for another machine").close()
    assert status(returning(7)) == 7
    assert (cache.read(key) or b"").startswith(b"\x7fELF" if sys.platform == "linux" else b"")


def test_code_that_cannot_be_loaded_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "compile_library", lambda *_: b"made for another machine")
    with pytest.raises(ToolchainError, match=r"cannot be loaded: .*\n  help: the cache folder may be on a disk mounted noexec"):
        load(returning(7))


def test_an_unusable_cache_is_one_warning_and_kernels_still_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "file" / "cache")
    with pytest.warns(SparseloomWarning, match=r"cannot be made \(Not a directory\)") as said:
        assert [status(returning(n)) for n in range(3)] == [0, 1, 2]
    assert len(said) == 1


def test_without_a_cache_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "use_cache", False)
    assert [status(returning(n)) for n in range(3)] == [0, 1, 2]
    assert not (tmp_path / "cache").exists()


def test_a_poorer_compiler_is_asked_once_which_flags_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch, refusing=("-fcx-fortran-rules", "-march=native"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    assert status(returning(1)) == 1
    assert list((tmp_path / "temporary").iterdir()) == []
    asked = len(calls())
    assert status(returning(2)) == 2
    forget(monkeypatch)
    assert [status(returning(n)) for n in (1, 2, 3)] == [1, 2, 3]
    assert len(calls()) == asked + 2
    assert "-fcx-fortran-rules" not in calls()[-1] and "-O3" in calls()[-1]


def test_a_wrong_source_fails_each_time_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for _ in range(2):
        with pytest.raises(ToolchainError, match="ended with status 1 on a generated kernel"):
            load("int entry( {\n")
    assert kernel_cache().entries() == [] and library._libraries._under_way == {}


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="MXCSR is a register of x86")
@pytest.mark.parametrize("asked", ["", " -ffast-math", " -Ofast"])
def test_loading_leaves_the_floating_point_state_alone(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    (control,) = load(MXCSR)
    modes = 0xFFC0  # everything but the sticky exception flags
    before = control(0) & modes
    monkeypatch.setenv("CFLAGS", "-ffast-math")
    monkeypatch.setenv("CC", find_compiler().path + asked)
    assert multiply() == [201.0, 0.0, 30.0]
    assert control(0) & modes == before
    tiny = np.nextafter(np.zeros(4), 1.0)
    assert np.all(tiny * 1.0 > 0) and np.all(tiny + tiny > tiny)


def test_many_processes_at_once_agree(tmp_path: Path) -> None:
    program = (
        "import sys; from sparseloom.toolchain.libraries import load\n"
        "sys.stdin.readline()\n"
        "print([load(source)[0](0) for source in sys.argv[1:]])\n"
    )
    sources = [returning(n) for n in range(4)]
    environment = {**os.environ, "SPARSELOOM_CACHE_DIR": str(tmp_path / "shared"), "PYTHONPATH": str(SOURCE)}
    workers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, *sources],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(4)
    ]
    said = [worker.communicate("go\n") for worker in workers]
    assert said == [("[0, 1, 2, 3]\n", "")] * 4
    assert len(list((tmp_path / "shared").iterdir())) == 4


def test_a_forked_child_compiles_and_runs() -> None:
    multiply()
    with library._libraries._lock:  # as if another thread were in the middle of a lookup when the process forks
        assert in_child(lambda: multiply() == [201.0, 0.0, 30.0] and status(returning(7)) == 7)


def test_a_forked_child_runs_threads_after_its_parent_did() -> None:
    def total() -> bool:
        pack = Pack([1000, None])
        (entry,) = load(THREADED_SUM)
        run(entry, pack)
        return pack.slot(1) == 499500

    assert total()
    assert in_child(total)
    assert total()


def mappings() -> int:
    """How many parts of memory come from kernels."""
    return sum("sparseloom-tmp" in line or ".kernel" in line for line in Path("/proc/self/maps").read_text().splitlines())


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/maps")
def test_a_library_is_unloaded_when_nobody_has_its_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_REMEMBERED", 4)
    before, (kept,) = mappings(), load(returning(77))
    each = mappings() - before
    assert 0 < each <= 3
    for n in range(40):
        assert status(returning(n)) == n
    assert mappings() - before <= (4 + 1) * each and kept(0) == 77
    del kept
    library._libraries._loaded.clear()
    assert mappings() == before


def test_results_outlive_the_kernel_that_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for n in range(6):
        a = sl.random((60, 60), density=0.3, format="csr", seed=n)
        made.append((sl.program(f"C(i,k) = {n + 2} * A(i,j) * B(j,k)", {"A": "csr", "B": "csr", "C": "csr"})(a, a), a, n + 2))
        build.cache_clear()
        forget(monkeypatch)
        gc.collect()
    for result, a, factor in made:
        np.testing.assert_allclose(result.to_numpy(), factor * (a.to_numpy() @ a.to_numpy()))


def test_a_bound_kernel_keeps_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = sl.program("y(i) = 3.5 * x(i)", schedule="parallelize(i,CPUThread,NoRaces)")
    bound = kernel.bind(np.arange(1000.0))
    del kernel
    build.cache_clear()
    forget(monkeypatch)
    gc.collect()
    assert bound().to_numpy()[-1] == 999 * 3.5


def test_a_kernel_that_was_unloaded_is_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    monkeypatch.setattr(library, "_REMEMBERED", 2)
    kernels = [sl.program(f"y(i) = {n}.75 * x(i)") for n in range(6)]
    for _ in range(3):
        assert [float(kernel(np.ones(1)).to_numpy()[0]) for kernel in kernels] == [n + 0.75 for n in range(6)]
    assert sum("kernel.c" in call for call in calls()) == 6


def test_a_broken_compiler_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, notes = tmp_path / "cc", tmp_path / "notes"
    program.write_text(f"#!/bin/sh\necho run >> {notes}\necho broken >&2\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setenv("CC", str(program))
    texts = set()
    for n in range(5):
        with pytest.raises(ToolchainError, match=f"{program} ended with status 1 on a generated kernel\n    broken") as refused:
            load(returning(n % 3))
        texts.add(str(refused.value))
    assert len(texts) == 1
    once = len(notes.read_text().split())
    assert once == 3  # the kernel, then all flags, then none of those that may be refused
    monkeypatch.setenv("SOMETHING_ELSE", "changed")
    with pytest.raises(ToolchainError):
        load(returning(0))
    assert len(notes.read_text().split()) == 2 * once
    program.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "$@"\n')
    assert status(returning(4)) == 4


def test_a_compiler_that_does_not_start_is_started_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "cc"
    program.write_text("#!/nonexistent/interpreter\n")
    program.chmod(0o700)
    monkeypatch.setenv("CC", str(program))
    for _ in range(2):
        with pytest.raises(ToolchainError, match="cannot be started: No such file or directory"):
            load(returning(4))
        monkeypatch.setattr(subprocess, "Popen", None)
    monkeypatch.undo()


def test_a_shortage_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    with monkeypatch.context() as short:
        short.setattr(subprocess, "Popen", refuse)
        with pytest.raises(ToolchainError, match="cannot be started: Resource temporarily unavailable"):
            load(returning(4))
    assert status(returning(4)) == 4


def test_a_compiler_that_was_short_of_something_is_run_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, notes = tmp_path / "cc", tmp_path / "notes"
    short = f"echo run >> {notes}; echo 'vfork: Resource temporarily unavailable' >&2; exit 1"
    program.write_text(f'#!/bin/sh\n[ -e {tmp_path}/enough ] && exec {shutil.which("gcc")} "$@"\n{short}\n')
    program.chmod(0o700)
    monkeypatch.setenv("CC", str(program))
    for _ in range(3):
        with pytest.raises(ToolchainError, match="Resource temporarily unavailable"):
            load(returning(4))
    assert notes.read_text() == "run\n"
    (tmp_path / "enough").touch()
    later = time.monotonic() + 11
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert status(returning(4)) == 4


def test_a_kernel_that_was_refused_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(tmp_path, monkeypatch)
    for _ in range(3):
        with pytest.raises(ToolchainError, match="ended with status 1 on a generated kernel"):
            load("int entry( {\n")
    assert len(calls()) == 2  # the kernel, and all flags
    assert status(returning(4)) == 4
