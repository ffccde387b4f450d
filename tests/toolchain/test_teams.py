"""Teams of threads: fewer where not all can be started, and never the end of the process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.toolchain.teams import stack_size

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


def ran(code: str, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **variables}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


SIZES = """
import threading
import time
import numpy as np, sparseloom as sl
from pathlib import Path

def threads():
    '''How many there are, when those that are dismissed have had the time to end.'''
    seen = []
    while len(seen) < 200 and not (len(seen) > 5 and len(set(seen[-5:])) == 1):
        seen.append(len(list(Path("/proc/self/task").iterdir())))
        time.sleep(0.01)
    return seen[-1]

x = np.arange(100_000.0)
kernel = sl.program("y(i) = 2 * x(i)", schedule="parallelize(i,CPUThread,NoRaces)")
"""


def test_as_many_threads_as_are_set() -> None:
    code = SIZES + """
before = threads()
for size in (1, 3, 5):
    sl.set_threads(size)
    kernel(x)
    print(sl.get_threads(), threads() - before)
"""
    assert ran(code, OMP_NUM_THREADS="2") == "1 0\n3 2\n5 4\n"


def test_the_number_of_threads_holds_for_every_thread_and_can_be_taken_back() -> None:
    code = SIZES + """
sl.set_threads(4)
before = threads()
def work():
    kernel(x)
    print(threads() - before)
one = threading.Thread(target=work)
one.start()
one.join()
sl.set_threads(None)
print(sl.get_threads())
"""
    assert ran(code, OMP_NUM_THREADS="2") == "4\n2\n"


def test_one_call_or_one_kernel_has_threads_of_its_own() -> None:
    code = SIZES + """
before = threads()
kernel = sl.program("y(i) = 2 * x(i)", schedule="parallelize(i,CPUThread,NoRaces)", threads=3)
kernel(x)
print(sl.get_threads(), threads() - before)
bound = kernel.bind(x)
bound(), bound()
other = sl.program("y(i) = 2 * x(i)", schedule="parallelize(i,CPUThread,NoRaces)")
other(x)
print(threads() - before)
sl.evaluate("y(i) = 3 * cos(x(i))", x=np.tile(x, 20), threads=5)
print(threads() - before)
sl.einsum("i,i->i", np.tile(x, 20), np.tile(x, 20), threads=4)
other(x)
print(sl.get_threads(), threads() - before)
"""
    assert ran(code, OMP_NUM_THREADS="2") == "2 2\n1\n4\n2 1\n"


def test_threads_are_an_option_of_whoever_computes() -> None:
    """Of plans too, which do not depend on it; an operand of that name goes in a dict."""
    x = np.ones(3)
    assert str(sl.plan("y(i) = 2 * x(i)", x=x, threads=2)) == str(sl.plan("y(i) = 2 * x(i)", x=x))
    assert str(sl.plan("i,i->i", x, x, threads=2)) == str(sl.plan("i,i->i", x, x))
    assert sl.evaluate("y(i) = 2 * threads(i)", {"threads": x}, threads=1).to_numpy().tolist() == [2, 2, 2]
    with pytest.raises(sl.NotationError, match="threads= is an option of the call"):
        sl.evaluate("y(i) = 2 * threads(i)", threads=1)
    kernel = sl.program("y(i) = 2 * x(i)", threads=2)
    assert kernel.tune(x, seconds=0.01) and pickle.loads(pickle.dumps(kernel))(x).to_numpy().tolist() == [2, 2, 2]


def test_a_number_of_threads_that_cannot_be() -> None:
    for wrong in (0, -1, 2.0, "2", True, 100_000):
        with pytest.raises(sl.ToolchainError, match=r"a kernel cannot run on .* threads"):
            sl.set_threads(wrong)  # type: ignore[arg-type]
        with pytest.raises(sl.ToolchainError, match=r"a kernel cannot run on .* threads"):
            sl.evaluate("y(i) = x(i)", x=[1.0], threads=wrong)
        with pytest.raises(sl.ToolchainError, match=r"a kernel cannot run on .* threads"):
            sl.program("y(i) = x(i)", threads=wrong)


def test_calls_at_the_same_time_share_the_machine() -> None:
    """Of eight threads of Python that compute at once, one has seven helpers; all of them having some would be sixty-four that run."""
    code = SIZES + """
import time
kernel(x)
end = time.monotonic() + 1.5
def work():
    while time.monotonic() < end:
        kernel(x)
several = [threading.Thread(target=work) for _ in range(8)]
for one in several:
    one.start()
for one in several:
    one.join()
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "8"}
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], env=environment) as started:
        most = 0
        while started.poll() is None:
            most = max(most, running(started.pid))
            time.sleep(0.02)
    assert started.returncode == 0
    assert 0 < most <= 20


def running(process: int) -> int:
    """How many threads of a process run, or would if a core were free."""
    count = 0
    for task in Path(f"/proc/{process}/task").glob("*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            count += task.read_text().rsplit(")")[-1].split()[0] == "R"
    return count


def test_waiting_threads_sleep() -> None:
    """Soon after a call, a second of waiting costs next to no time of the processor."""
    code = SIZES + """
import time
kernel(x)
before = time.process_time()
time.sleep(0.5)
print(time.process_time() - before < 0.1)
"""
    assert ran(code, OMP_NUM_THREADS="4") == "True\n"


@pytest.mark.parametrize("order", ["import torch\n{}", "{}\nimport torch"])
def test_torch_may_come_before_or_after(order: str) -> None:
    pytest.importorskip("torch")
    code = order.format(SIZES + "kernel(x)") + """
a = torch.rand(500, 500)
for _ in range(3):
    (a @ a).sum().item()
    kernel(x)
print("both")
"""
    assert ran(code) == "both\n"

LIMITS = """
import ctypes
import numpy as np, sparseloom as sl
from sparseloom.toolchain.teams import teams

openmp = ctypes.CDLL("libgomp.so.1")
sum_of = sl.program("a = x(i)", schedule="split(i,i0,i1,64) parallelize(i0,CPUThread,ParallelReduction)")
x = np.arange(1000.0)
%s
"""


@pytest.mark.parametrize(
    "steps",
    [
        # What others ask of OpenMP holds, before the first kernel and after it.
        "openmp.omp_set_num_threads(1); assert sum_of(x).item() == x.sum(); assert sl.get_threads() == 1, sl.get_threads()",
        "sum_of(x); openmp.omp_set_num_threads(3); assert sl.get_threads() == 3; sum_of(x); assert openmp.omp_get_max_threads() == 3",
        # What is asked here holds inside, and what was there holds again afterwards.
        "sum_of(x)\nwith sl.threads(5):\n    assert sl.get_threads() == 5; sum_of(x); assert openmp.omp_get_max_threads() == 5\n"
        "sum_of(x); assert sl.get_threads() == SIZE, sl.get_threads(); assert openmp.omp_get_max_threads() == SIZE",
        "with sl.threads(2):\n    with sl.threads(1):\n        assert sl.get_threads() == 1\n    assert sl.get_threads() == 2",
        # A quota of the system limits teams that nobody limits; a number that is asked for does not care.
        "openmp.omp_set_num_threads(7); sum_of(x); assert sl.get_threads() == openmp.omp_get_max_threads() == 4\n"
        "sl.set_threads(9); sum_of(x); assert openmp.omp_get_max_threads() == 9",
    ],
    ids=["limit first", "limit later", "block", "nested blocks", "quota"],
)
def test_limits_of_others_and_of_blocks_hold(steps: str) -> None:
    quota = "from sparseloom.core import system\nsystem.quota_cores = lambda: 4\nSIZE = system.usable_cores()\n"  # of whatever machine
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment["PYTHONPATH"] = str(SOURCE)
    command = [sys.executable, "-c", quota + LIMITS % steps]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
