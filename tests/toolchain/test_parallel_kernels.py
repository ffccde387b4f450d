"""Scheduled kernels as machine code: packed instructions, forks after a parallel region, and results that never vary."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.toolchain.compilers import find_compiler

SPMV = "y(i) = A(i,j) * x(j)"
SPMM = "C(i,k) = A(i,j) * B(j,k)"
BALANCED = "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,64) parallelize(p0,CPUThread,Atomics)"


def _assembly(source: str, folder: Path) -> str:
    """The assembly of a kernel under the flags that kernels are compiled with."""
    compiler = find_compiler()
    text, made = folder / "kernel.c", folder / "kernel.s"
    text.write_text(source)
    flags = [flag for flag in compiler.flags if flag not in ("-shared", "-pipe")]
    subprocess.run([compiler.path, *compiler.arguments, *flags, "-fopenmp", "-S", str(text), "-o", str(made)], check=True)
    return made.read_text()


def _packed(assembly: str) -> list[str]:
    """Additions and fused multiply-adds on whole vectors."""
    return re.findall(r"\tv?(?:fmadd\w*|add)p[sd]\t.*%[xyz]mm\d+", assembly)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the assembly of x86-64 is read")
@pytest.mark.parametrize(
    "schedule",
    [
        "parallelize(k,CPUVector,NoRaces)",
        "reorder(i,k,j) parallelize(k,CPUVector,NoRaces)",
        "pos(j,p,A(i,j)) split(p,p0,p1,4) reorder(p0,k,p1) parallelize(k,CPUVector,NoRaces)",
    ],
)
def test_a_vector_loop_becomes_packed_instructions(schedule: str, tmp_path: Path) -> None:
    kernel = sl.program(SPMM, {"A": "csr"}, schedule)
    assert _packed(_assembly(kernel.source, tmp_path))


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the assembly of x86-64 is read")
def test_a_vector_reduction_becomes_packed_instructions(tmp_path: Path) -> None:
    kernel = sl.program("a = x(i) * y(i)", schedule="parallelize(i,CPUVector,ParallelReduction)")
    plain = sl.program("a = x(i) * y(i)")
    assert _packed(_assembly(kernel.source, tmp_path))
    assert not _packed(_assembly(plain.source, tmp_path)), "without a schedule a sum is never reordered"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the assembly of x86-64 is read")
def test_unroll_repeats_the_body(tmp_path: Path) -> None:
    def products(schedule: str) -> int:
        kernel = sl.program(SPMV, {"A": "csr"}, schedule)
        return len(re.findall(r"\tv?(?:fmadd\w*|mul)sd\t", _assembly(kernel.source, tmp_path)))

    assert products("unroll(j,8)") >= products("") + 7


FORKING = """
import os, sys
import numpy as np, scipy.sparse as sp, sparseloom as sl
A = sp.random_array((400, 400), density=0.1, format="csr", rng=np.random.default_rng(1))
x = np.arange(400.0)
kernel = sl.program({spmv!r}, {{"A": "csr"}}, {schedule!r})
wanted = kernel(A, x).to_numpy()
for _ in range(50):
    child = os.fork()
    if child == 0:
        os._exit(0 if np.allclose(kernel(A, x).to_numpy(), wanted) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.allclose(kernel(A, x).to_numpy(), wanted)
print("fifty forks")
"""


def test_a_forked_child_runs_parallel_kernels() -> None:
    script = textwrap.dedent(FORKING.format(spmv=SPMV, schedule=BALANCED))
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode != -signal.SIGKILL
    assert done.stdout.strip() == "fifty forks", done.stderr


@pytest.mark.parametrize("schedule", ["split(i,i0,i1,8) parallelize(i0,CPUThread,NoRaces)", "parallelize(j,CPUThread,Temporary)"])
def test_ordered_strategies_give_the_same_bits_every_time(schedule: str) -> None:
    rng = np.random.default_rng(2)
    A = sp.random_array((60, 3000), density=0.3, format="csr", rng=rng)
    x = rng.standard_normal(3000)
    kernel = sl.program(SPMV, {"A": "csr"}, schedule, deterministic=True)
    first = kernel(A, x).to_numpy().copy()
    assert np.allclose(first, A @ x)
    assert all(np.array_equal(kernel(A, x).to_numpy(), first) for _ in range(50))


def test_deterministic_refuses_atomics() -> None:
    with pytest.raises(sl.ScheduleError) as refused:
        sl.program(SPMV, {"A": "csr"}, BALANCED, deterministic=True)
    assert str(refused.value) == (
        "[S860] cannot use Atomics on p0: it adds in no fixed order, and deterministic=True asks for one\n  help: use NoRaces or Temporary"
    )


INTERRUPTED = """
import os, signal, threading, time
import numpy as np, sparseloom as sl
kernel = sl.program("s = x(i) * x(j) * x(k)", schedule={schedule!r})
kernel(np.ones(3))
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    kernel(np.ones(20_000))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("schedule", ["", "parallelize(i,CPUThread,Temporary)", "parallelize(i,CPUThread,ParallelReduction)"])
def test_every_thread_stops_at_ctrl_c(schedule: str) -> None:
    """The kernel would run for hours; the time-out is far above the fraction of a second that stopping takes."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    script = textwrap.dedent(INTERRUPTED.format(schedule=schedule))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.stdout.strip() == "interrupted", done.stderr
