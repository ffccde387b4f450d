"""Teams of threads: fewer where not all can be started, and never the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sparseloom.runtime.teams import stack_size

SOURCE = Path(__file__).parents[2] / "src"
LIMITED = """
import os, resource, threading
import numpy as np, sparseloom as sl

kernels = [
    sl.program("y(i) = 2 * x(i)", schedule="parallelize(i,CPUThread,NoRaces)"),
    sl.program("a = x(i)", schedule="parallelize(i,CPUThread,ParallelReduction)"),
]
A = sl.random((200, 200), density=0.1, format="csr", seed=1)
product = sl.program("C(i,k) = A(i,j) * B(j,k)", {"A": "csr", "B": "csr", "C": "csr"}, "parallelize(i,CPUThread,NoRaces)")
for kernel in kernels:
    kernel.preview().stages.entry
wanted = A.to_numpy() @ A.to_numpy()
%s
x = np.arange(10_000.0)
def work():
    assert np.array_equal(kernels[0](x).to_numpy(), 2 * x)
    assert kernels[1](x).to_numpy() == x.sum()
    assert np.allclose(product(A, A).to_numpy(), wanted)
for _ in range(3):
    work()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    try:
        thread.start()
    except RuntimeError:
        break  # not even Python can start one
for thread in threads:
    if thread.ident:
        thread.join()
print("computed")
"""
MEMORY = """
product(A, A)
mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + (%d << 20),) * 2)
"""
PROCESSES = """
product(A, A)
if os.getuid() == 0:
    os.setresuid(54321, 54321, 54321)
resource.setrlimit(resource.RLIMIT_NPROC, (%d, %d))
"""


def computed(limit: str, threads: int, **variables: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": str(threads), **variables}
    command = [sys.executable, "-c", textwrap.dedent(LIMITED) % limit]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "computed\n"), done.stderr


@pytest.mark.parametrize("megabytes", [30, 100])
def test_little_memory_means_fewer_threads(megabytes: int) -> None:
    """A child of fork has no team yet, and 64 threads want 8 MB each."""
    computed("if os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\n" + MEMORY % megabytes, 64)


@pytest.mark.parametrize("megabytes", [30, 100])
def test_a_thread_of_python_with_little_memory(megabytes: int) -> None:
    computed(MEMORY % megabytes, 24)


@pytest.mark.parametrize("processes", [0, 3])
def test_few_processes_mean_fewer_threads(processes: int) -> None:
    computed(PROCESSES % (processes, processes), 16)


def test_large_stacks_are_known() -> None:
    computed(MEMORY % 300, 16, OMP_STACKSIZE="100M")


@pytest.mark.parametrize(
    ("text", "size"), [("", 0), ("4096", 4 << 20), ("64 k", 64 << 10), ("2M", 2 << 20), (" 1g ", 1 << 30), ("512b", 512), ("much", 0)]
)
def test_the_size_of_a_stack_is_read_as_openmp_reads_it(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.delenv("GOMP_STACKSIZE", raising=False)
    monkeypatch.setenv("OMP_STACKSIZE", text)
    assert stack_size() == size
