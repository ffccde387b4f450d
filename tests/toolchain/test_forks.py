"""A forked child compiles and runs, whatever other threads of its parent were doing."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from toolchain.kernels import POLLING, SELF_INTERRUPTING, in_child, returning, stand_in

import sparseloom as sl
from sparseloom.core.settings import settings
from sparseloom.programs.calling import Pack, run
from sparseloom.toolchain import forks, turns
from sparseloom.toolchain import libraries as library
from sparseloom.toolchain.libraries import load

PACKAGE = Path(sl.__file__).parent
PARALLEL = "parallelize(i,CPUThread,NoRaces)"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    monkeypatch.setattr(library, "_libraries", library._Libraries())


def doubles(factor: float) -> bool:
    """Compile a statement that no other test has, and run it."""
    return bool(np.all(sl.evaluate(f"y(i) = {factor} * x(i)", x=np.full(5, 2.0)).to_numpy() == 2 * factor))


class Waiting:
    """A compiler that waits until it is told to go on."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.started, program = folder / "go", folder / "started", folder / "waiting cc"
        wait = f"touch '{self.started}'; while [ ! -e '{self.go}' ]; do sleep 0.01; done"
        program.write_text(f"#!/bin/sh\n{wait}\nexec {shutil.which('gcc') or 'cc'} \"$@\"\n")
        program.chmod(0o700)
        monkeypatch.setenv("CC", f"'{program}'")

    def until_it_runs(self) -> None:
        while not self.started.exists():
            time.sleep(0.005)


def test_a_child_forked_while_another_thread_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, answers = Waiting(tmp_path, monkeypatch), list[bool]()
    thread = threading.Thread(target=lambda: answers.append(doubles(31.25)))
    thread.start()
    compiler.until_it_runs()

    def work() -> bool:
        del os.environ["CC"]
        return doubles(31.5) and doubles(31.25)

    succeeded = in_child(work)
    compiler.go.touch()
    thread.join()
    assert succeeded and answers == [True]


def test_the_child_holds_no_lock_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that lives on while its parent is killed must not keep others waiting for what the parent was making."""
    compiler = Waiting(tmp_path, monkeypatch)
    thread = threading.Thread(target=load, args=(returning(5),))
    thread.start()
    compiler.until_it_runs()
    held = set(forks._descriptors)

    def work() -> bool:
        gone = [descriptor for descriptor in held if not os.path.exists(f"/proc/self/fd/{descriptor}")]
        return len(held) == len(gone) == 2 and not forks._descriptors and not turns._held

    succeeded = in_child(work)
    compiler.go.touch()
    thread.join()
    assert succeeded and not forks._descriptors and not turns._held


def test_a_fork_waits_until_a_compiler_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the child would hold the ends of its pipes, and the parent wait for the child's end."""
    held: list[bool] = []

    class Watched(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: object, **options: object) -> None:
            held.append(forks.whole_step._is_owned())  # type: ignore[attr-defined]
            super().__init__(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(subprocess, "Popen", Watched)
    load(returning(6))
    assert held and all(held) and not forks.whole_step._is_owned()  # type: ignore[attr-defined]


def test_a_handler_asks_for_what_its_own_thread_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No lock keeps a thread waiting for itself."""
    compiler, answers = Waiting(tmp_path, monkeypatch), list[int]()

    def handler(*_: object) -> None:
        compiler.go.touch()
        answers.append(load(returning(9))[0](0))

    def interrupt() -> None:
        compiler.until_it_runs()
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        answers.append(load(returning(9))[0](0))
    finally:
        signal.signal(signal.SIGUSR1, before)
    thread.join()
    assert answers == [9, 9]


def test_a_handler_of_a_kernel_may_fork() -> None:
    inner, outer, children = load(POLLING)[0], load(SELF_INTERRUPTING)[0], list[bool]()

    def work() -> bool:
        pack = Pack([20, None])
        run(inner, pack)
        return pack.slot(1) == 20 and doubles(32.5)

    before = signal.signal(signal.SIGINT, lambda *_: children.append(in_child(work)))
    try:
        pack = Pack([20, None])
        run(outer, pack)
    finally:
        signal.signal(signal.SIGINT, before)
    assert children == [True] and pack.slot(1) == 20


def test_a_child_runs_threads_while_other_threads_of_its_parent_do() -> None:
    kernel = sl.program("y(i) = 2 * x(i)", schedule=PARALLEL)
    x, done = np.arange(20_000.0), threading.Event()
    kernel(x)

    def work() -> bool:
        return bool(np.array_equal(kernel(x).to_numpy(), 2 * x))

    def keep_busy() -> None:
        while not done.is_set():
            kernel(x)

    threads = [threading.Thread(target=keep_busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    children = [in_child(work) for _ in range(20)]
    done.set()
    for thread in threads:
        thread.join()
    assert children == [True] * 20 and work()


def test_many_forks_while_kernels_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch)
    done = threading.Event()

    def keep_compiling() -> None:
        for k in range(1000):
            if done.is_set():
                return
            load(returning(100 + k))

    thread = threading.Thread(target=keep_compiling)
    thread.start()
    children = [in_child(lambda k=k: load(returning(2000 + k))[0](0) == 2000 + k) for k in range(8)]  # type: ignore[misc]
    done.set()
    thread.join()
    assert children == [True] * 8


def test_every_lock_is_known_to_the_forks() -> None:
    """Locks are made in two places, each of which takes care of forked children; and nobody uses a property that hides one.

    The command has a thread that shows how it gets on, and forks nobody meanwhile. A child that is forked while an explorer is open
    leaves it alone (``Explorer.close``), so that nothing there is asked for a lock.
    """
    makers = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for found in ast.walk(tree):
            if isinstance(found, ast.Attribute) and ast.unparse(found.value) == "threading" and found.attr not in ("get_ident", "local"):
                makers.add(path.relative_to(PACKAGE).as_posix())
            if isinstance(found, ast.ImportFrom) and found.module in ("functools", "threading", "multiprocessing"):
                assert found.module == "functools" and "cached_property" not in {name.name for name in found.names}, path
    explorers = {"cli/explore.py", *(f"explorer/{name}.py" for name in ("child", "server", "serving", "worker"))}
    assert makers == {"toolchain/forks.py", "toolchain/libraries.py", "cli/terminal.py", *explorers}
