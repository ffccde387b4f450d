"""How many Python functions a statement enters: when it is compiled for the first time, through a second entry point, and when it is warm.

Counts do not depend on the machine or its load. Each test runs in a process of its own, in which other statements were compiled before, so
that what is done once for each process is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import sparseloom

SETTING = """
    import os, sys
    import numpy as np, scipy.sparse as sp, sparseloom as sl

    def calls(run):
        count = 0
        def called(frame, event, argument):
            nonlocal count
            count += event == "call"
        sys.setprofile(called)
        run()
        sys.setprofile(None)
        return count

    A = sl.asarray(sp.random_array((1000, 1000), density=0.01, format="csr", rng=1))
    x = np.random.default_rng(1).random(1000)
    sl.program("y(i) = A(i,j) + 1", formats={"A": "csr"})(A)
    sl.program("y(i) = 3 * x(i)")(x)
"""


def counted(text: str, cache: Path) -> list[int]:
    """The numbers that a program prints, which counts its calls."""
    package = Path(sparseloom.__file__).parents[1]
    own = {"SPARSELOOM_CACHE_DIR": str(cache), "PYTHONPATH": str(package), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", dedent(SETTING) + dedent(text)]
    done = subprocess.run(command, env=own, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


def test_a_first_scheduled_product_and_a_warm_one(tmp_path: Path) -> None:
    first, warm = counted(
        """
        made = []
        schedule = "split(i,i0,i1,64) parallelize(i0,CPUThread,NoRaces)"
        print(calls(lambda: made.append(sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule=schedule)) or made[0](A, x)))
        kernel = made[0]
        kernel(A, x), kernel(A, x)
        print(calls(lambda: kernel(A, x)) - 1)
        """,
        tmp_path,
    )
    assert first <= 10_346  # 60% of 17,244, before trees were walked without generators and facts were remembered
    assert warm <= 17


def test_another_entry_point_neither_plans_nor_lowers(tmp_path: Path) -> None:
    """Statements that differ in names alone are one problem; a matrix times itself is planned as a matrix times another."""
    first, *others, compiled = counted(
        """
        B = sl.asarray(sp.random_array((1000, 1000), density=0.01, format="csr", rng=2))
        k = sl.program("w(q) = M(q,s) * v(s)", formats={"M": "csr"})
        y, i, j = sl.zeros(1000), *sl.indices("i j")
        def assign():
            y[i] = A[i, j] * sl.asarray(x)[j]
        sl.evaluate("y(i) = 2 * x(i)", x=x), sl.einsum("i->", x)
        print(calls(lambda: A @ x))
        print(calls(lambda: sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=x)), calls(lambda: sl.einsum("ij,j->i", A, x)))
        print(calls(lambda: k(A, x)), calls(assign))
        A @ B
        compiled = set(os.listdir(os.environ["SPARSELOOM_CACHE_DIR"]))
        A @ A
        print(len(set(os.listdir(os.environ["SPARSELOOM_CACHE_DIR"])) - compiled))
        """,
        tmp_path,
    )
    assert max(others) < first / 2
    assert compiled == 0


def test_a_large_dense_result_takes_the_short_way(tmp_path: Path) -> None:
    """Only how much memory is free is asked in addition."""
    small, large = counted(
        """
        def warm(size):
            a, b = np.ones(size), np.ones((1, 8))
            kernel = sl.program("C(i,k) = a(i) * b(j,k)")
            for _ in range(3):
                kernel(a, b)
            return calls(lambda: kernel(a, b)) - 1
        print(warm(1_000), warm(1_200_000))
        """,
        tmp_path,
    )
    assert large <= small + 40
