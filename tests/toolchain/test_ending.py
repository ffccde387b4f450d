"""Programs that end while kernels still run in threads that nobody waits for: their exit code and standard error are their own."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

import sparseloom as sl

HEAD = """
import os, signal, sys, threading, time
import numpy as np, scipy.sparse as sp, sparseloom as sl
def go(work, count=1, daemon=True):
    made = [threading.Thread(target=work, daemon=daemon) for _ in range(count)]
    for thread in made: thread.start()
    time.sleep(0.3)
    return made
"""
# Each computes for longer than a test may take, or for ever.
WORK = {
    "scalar": "x = np.ones(20_000); k = sl.program('s = x(i) * x(j) * x(k)', schedule='')\nwork = lambda: k(x)",
    "threads": "x = np.ones(20_000); k = sl.program('s = x(i) * x(j) * x(k)', schedule='parallelize(i,CPUThread,ParallelReduction)')\n"
    "work = lambda: k(x)",
    "bound": "X = np.ones((60, 60)); b = sl.program('C(i,k) = A(i,j) * B(j,k)', schedule='').bind(X, X)\ndef work():\n    while True: b()",
    "sparse": "A = sl.asarray(sp.random_array((900, 900), density=0.1, format='csr'))\ndef work():\n    while True: A @ A",
    "convert": "A = sl.asarray(sp.random_array((900, 900), density=0.1, format='csr'))\ndef work():\n    while True: A.to('csc').to('csr')",
    "file": "A = sl.asarray(sp.random_array((3000, 3000), density=0.02, format='csr')); sl.write('a.mtx', A)\n"
    "def work():\n    while True: sl.write('b.mtx', sl.read('a.mtx'))",
}
ENDS = {
    "falls off": ("go(work)", 0),
    "exits with two": ("go(work, 2); sys.exit(3)", 3),
    "is interrupted": (
        "thread, = go(work, daemon=False)\nthreading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try: thread.join()\nexcept KeyboardInterrupt: thread.daemon or os.environ\n",
        0,
    ),
    "forks": (
        "go(work)\nchild = os.fork()\nif not child:\n    go(work); sys.exit(5)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
        5,
    ),
}

ENDS_OF_ITS_OWN = ("exits with two", "falls off", "forks")


@pytest.mark.parametrize(("work", "end", "threads"), [(*pair, str(1 + k % 2)) for k, pair in enumerate(product(WORK, ENDS_OF_ITS_OWN))])
def test_a_program_may_end_while_kernels_run(work: str, end: str, threads: str, tmp_path: Path) -> None:
    text, code = ENDS[end]
    require(f"{HEAD}\n{WORK[work]}\n{text}", code, threads, tmp_path)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python waits for such a thread")
def test_a_program_may_end_whose_join_was_interrupted(tmp_path: Path) -> None:
    text, code = ENDS["is interrupted"]
    require(f"{HEAD}\n{WORK['scalar']}\n{text}", code, "1", tmp_path)


def require(program: str, code: int, threads: str, folder: Path) -> None:
    """The program must end with this code, and say nothing."""
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONPATH": str(Path(sl.__file__).parents[1])}
    ended = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (code, "")
