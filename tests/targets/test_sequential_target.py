"""A sequential language as a target: it is compiled, called and freed with its own toolchain and memory, through every entry point."""

from __future__ import annotations

import gc
import os
import pickle
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from targets.sequential import MEMORY, SEQUENTIAL, emit
from toolchain.kernels import stand_in

import sparseloom as sl
from sparseloom.core.errors import CompilerBug, DeviceError, SparseloomWarning, ToolchainError
from sparseloom.core.settings import settings
from sparseloom.loops.rename import alpha_rename
from sparseloom.targets.c import C, translation_unit
from sparseloom.targets.registry import TARGETS
from sparseloom.targets.target import Target
from sparseloom.toolchain.libraries import load

A = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
B = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(2))
SUM, FORMATS = "C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}


@pytest.fixture(autouse=True)
def sequential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, SEQUENTIAL.name, SEQUENTIAL)


def added(target: str) -> sl.Kernel:
    return sl.program(SUM, FORMATS, "", target=target)


def live_arrays(kernel: sl.Kernel) -> int:
    """How many arrays of a kernel's library are not freed."""
    text = emit([(alpha_rename(kernel._inspected().stages.lowered.function), "entry")])
    return load(text, ("count_live",), SEQUENTIAL)[0](0)


def test_a_sparse_result_is_freed_by_its_own_allocator() -> None:
    kernel = added("sequential")
    result = kernel(A, B)
    assert (abs(result.to_scipy() - (A + B))).max() < 1e-12
    assert kernel.source.startswith("// sequential\n") and kernel.show("sequential") == kernel.source
    assert live_arrays(kernel) == 3
    del result
    gc.collect()
    assert live_arrays(kernel) == 0


def test_results_of_several_targets_are_freed_in_any_order_from_any_thread(rng: np.random.Generator) -> None:
    """An array that another allocator gets ends the process."""
    kernels = [added(target) for target in ("c", "sequential", "c", "sequential", "interpret")]
    results = [kernel(A, B) for _ in range(10) for kernel in kernels]
    order = random.Random(int(rng.integers(1 << 30))).sample(range(len(results)), len(results))

    def drop(places: list[int]) -> None:
        for place in places:
            results[place] = None

    threads = [threading.Thread(target=drop, args=(order[k::3],)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert live_arrays(kernels[1]) == 0


AT_EXIT = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np, scipy.sparse as sp, sparseloom as sl
from sparseloom.targets.registry import TARGETS
from targets.sequential import SEQUENTIAL
TARGETS["sequential"] = SEQUENTIAL
A = sp.random_array((40, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
kept = [sl.program({statement!r}, {formats!r}, "", target=target)(A, A) for target in ("c", "sequential", "c", "sequential") * 5]
later = kept[::2]
print(len(kept))
"""


def test_results_that_are_alive_at_exit_end_with_the_process() -> None:
    tests = str(Path(__file__).parents[1])
    code = AT_EXIT.format(tests=tests, statement=SUM, formats=FORMATS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": sys.path[0]})
    assert (done.returncode, done.stdout, done.stderr) == (0, "20\n", "")


def test_its_own_compiler_is_called_with_its_own_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    calls = stand_in(tmp_path, monkeypatch)
    monkeypatch.setenv("SEQUENTIAL_COMPILER", os.environ["CC"])
    monkeypatch.delenv("CC")
    kernel = sl.program("y(i) = 3.25 * A(i,j) * x(j)", {"A": "csr"}, "", target="sequential")
    assert np.allclose(kernel(A, np.ones(30)).to_numpy(), 3.25 * A.sum(axis=1))
    (call,) = calls()
    assert call.startswith(" ".join(SEQUENTIAL.toolchain.flags) + " -o ") and call.endswith("/kernel.c -lm")


def test_equal_text_for_two_toolchains_is_compiled_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    text = f"{MEMORY}\nint32_t entry(void **args) {{ (void)args; return 23; }}\n"
    suffixed = replace(SEQUENTIAL, toolchain=replace(SEQUENTIAL.toolchain, suffix=".i.c"))
    for target in (C, SEQUENTIAL, suffixed, C, SEQUENTIAL):
        assert load(text, target=target)[0](0) == 23
    assert len(list((tmp_path / "cache").glob("*.kernel"))) == 3


def test_a_kernel_pickles_by_its_target() -> None:
    kernel = pickle.loads(pickle.dumps(added("sequential")))
    assert kernel.source.startswith("// sequential\n")
    assert (abs(kernel(A, B).to_scipy() - (A + B))).max() < 1e-12


def test_what_it_has_no_units_for_is_rejected() -> None:
    with pytest.raises(DeviceError, match="the schedule runs a loop on CPUThread, and the sequential language has none"):
        sl.program("y(i) = 2 * x(i)", schedule="parallelize(i,CPUThread,NoRaces)", target="sequential")(np.ones(3))


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Target]]:
    """A target whose compiler is not installed, and one whose compiler fails."""
    missing = replace(SEQUENTIAL.toolchain, programs=("no-such-compiler", "nor-this"), variable="NO_COMPILER")
    failing = replace(SEQUENTIAL.toolchain, programs=(shutil.which("false") and "false",), variable=None)
    made = [replace(SEQUENTIAL, name=name, toolchain=chain) for name, chain in (("missing", missing), ("failing", failing))]
    for target in made:
        monkeypatch.setitem(TARGETS, target.name, target)
    return made


def test_the_interpreter_answers_for_no_target_that_was_asked_for(broken: list[Target]) -> None:
    with pytest.raises(ToolchainError) as missing:
        added("missing")(A, B)
    tried = "$NO_COMPILER is not set, and no-such-compiler and nor-this are not on the PATH"
    assert str(missing.value) == f"no sequential compiler was found: {tried}\n  help: install gcc"
    with pytest.raises(ToolchainError, match="/false ended with status 1 on a generated kernel"):
        added("failing")(A, B)


def test_for_the_default_target_it_answers_where_no_compiler_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "y(i) = 7.125 * A(i,j) * x(j)"
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(SparseloomWarning, match=r"no such program\n(.*\n)*This small problem is answered by the interpreter instead\."):
        assert np.allclose(sl.program(text, {"A": "csr"}, "")(A, np.ones(30)).to_numpy(), 7.125 * A.sum(axis=1))
    monkeypatch.setenv("CC", "false")
    with pytest.raises(ToolchainError, match="/false ended with status 1 on a generated kernel"):
        sl.program(text, {"A": "csr"}, "")(A, np.ones(30))


def test_a_compiled_target_says_how() -> None:
    with pytest.raises(CompilerBug, match="a target whose kernels are compiled should say how"):
        replace(C, name="lost", toolchain=None)


def test_a_target_without_an_allocator_hands_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "dry", replace(C, name="dry", allocator=None, emit=lambda kernels: "// dry\n" + translation_unit(kernels)))
    assert sl.program("y(i) = 2 * x(i)", target="dry")(np.ones(3)).to_numpy().tolist() == [2, 2, 2]
    with pytest.raises(DeviceError, match="C hands out no arrays, so it cannot make a sparse result"):
        added("dry")(A, B)
