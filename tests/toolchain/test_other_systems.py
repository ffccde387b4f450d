"""What other systems lack is taken away, in processes of their own: the package computes without it, or says what it needs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from toolchain.test_openmp import ran

from sparseloom.core import system
from sparseloom.core.system import quota_cores, usable_cores

COMPUTE = """
import numpy as np, scipy.sparse as sp, sparseloom as sl
A = sp.random_array((300, 300), density=0.05, format="csr", rng=np.random.default_rng(0))
x = np.arange(300.0)
assert sl.get_threads() >= 1
assert ((sl.asarray([1.0]) + 1).to_numpy() == [2.0]).all()
assert np.allclose(sl.eye(300) @ x, x)
assert np.allclose(sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=x).to_numpy(), A @ x)
assert abs((sl.asarray(A) @ sl.asarray(A)).to_scipy() - A @ A).max() < 1e-12
kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, "parallelize(i,CPUThread,NoRaces)")
assert np.allclose(kernel(A, x).to_numpy(), A @ x)
print("computed")
"""
WITHOUT = """
import sys
import numpy, scipy.sparse, subprocess, tempfile, selectors, ctypes.util  # they may use what they find
import os
sys.modules.update(dict.fromkeys({modules!r}))
for name in {names!r}:
    if hasattr(os, name):
        delattr(os, name)
"""


def without(*names: str, modules: tuple[str, ...] = ()) -> str:
    """A program's beginning, after which these functions of ``os`` and these modules do not exist."""
    return WITHOUT.format(names=names, modules=modules)


@pytest.mark.parametrize(
    "lacking",
    [
        without("sched_getaffinity", "process_cpu_count"),
        without(modules=("fcntl", "resource", "pwd", "grp")),
        without("O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY"),
        without("register_at_fork", "sysconf", "cpu_count") + "os.cpu_count = lambda: None\n",
        without("getuid", "geteuid", "getgid"),
    ],
    ids="affinity modules-of-unix careful-opening forks-and-sysconf users".split(),
)
def test_what_a_system_may_lack(tmp_path: Path, lacking: str) -> None:
    assert ran(lacking + COMPUTE, tmp_path, shutil.which("gcc") or "cc") == "computed\n"


def test_without_proc_and_with_private_copies(tmp_path: Path) -> None:
    code = "import numpy, sys, scipy.sparse\nsys.platform = 'darwin'\n" + COMPUTE
    assert ran(code, tmp_path, shutil.which("gcc") or "cc") == "computed\n"


WINDOWS = """
sys.platform = "win32"
import warnings
warnings.simplefilter("error")
import sparseloom as sl
import sparseloom.explorer.limits
y = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, target="interpret")(numpy.eye(3), numpy.arange(3.0))
print(y.to_numpy())
try:
    sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"})(numpy.eye(3000), numpy.arange(3000.0))
except sl.ToolchainError as problem:
    print(problem)
"""


def test_where_kernels_cannot_be_loaded_the_interpreter_runs_and_the_help_says_what_to_do(tmp_path: Path) -> None:
    lacking = without(
        "sched_getaffinity", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "register_at_fork", "getuid", "sysconf", "fork",
        modules=("fcntl", "resource", "pwd", "grp"),
    )  # fmt: skip
    assert ran(lacking + WINDOWS, tmp_path, "gcc") == (
        "[0. 1. 2.]\n"
        "kernels are compiled and run on Linux and macOS, and this is neither\n"
        '  help: on Windows, use Linux in WSL; target="interpret" needs no compiler\n'
    )


def test_cores_are_counted_as_python_or_the_system_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "quota_cores", lambda: 100)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 5, raising=False)
    assert usable_cores() == 5
    monkeypatch.delattr(os, "process_cpu_count")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3, 7}, raising=False)
    assert usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 9)
    assert usable_cores() == 9
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, sys.maxsize),
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, sys.maxsize),
        ({"sys/fs/cgroup/cpu.max": "150000 100000"}, 1),
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, 1),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.max": "300000 100000"}, 3),
        ({"proc/self/cgroup": "4:cpu,cpuacct:/box\n", "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "400000",
          "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000"}, 4),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, sys.maxsize),
    ],
    ids=["no groups", "no limit", "one and a half", "half a core", "a group above", "version 1", "version 1, no limit"],
)  # fmt: skip
def test_a_quota_limits_the_cores(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert quota_cores.__wrapped__(tmp_path) == cores
