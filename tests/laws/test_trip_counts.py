"""``explain`` tells how often loops run on the data that a kernel was called with."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl

# Rows of 3, 0, 1 and 2 entries; and one that shares two of them.
A = np.array([[1.0, 2, 0, 3, 0], [0, 0, 0, 0, 0], [0, 0, 4, 0, 0], [0, 5, 0, 0, 6]])
B = np.array([[0.0, 2, 0, 3, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
GIVEN = {"A": A, "B": B, "x": np.ones(5), "X": np.ones((5, 7)), "S": np.eye(5), "r": np.array([0.0, 0, 1, 1])}

SPMV, SPMM = "y(i) = A(i,j) * x(j)", "Y(i,k) = A(i,j) * X(j,k)"
CASES = (
    ("csr", SPMV, "", ("i: every coordinate (4 times)", "j: driven by A (6 times)")),
    ("dcsr", SPMV, "", ("i: driven by A (3 times)", "j: driven by A (6 times)")),
    ("coo", SPMV, "", ("i: driven by A (at most 4 times)", "j: driven by A (6 times)")),
    ("dd", SPMV, "", ("i: every coordinate (4 times)", "j: every coordinate (20 times)")),
    ("csr", SPMM, "", ("i: every coordinate (4 times)", "j: driven by A (6 times)", "k: every coordinate (42 times)")),
    ("csr", SPMV, "split(i,i0,i1,3)", ("i0: every coordinate (2 times)", "i: every coordinate (4 times)", "j: driven by A (6 times)")),
    ("csr", SPMV, "divide(j,j0,j1,2)", ("i: every coordinate (4 times)", "j0: every coordinate (8 times)", "j: driven by A (6 times)")),
    (
        "csr",
        SPMV,
        "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4)",
        ("p0: every coordinate (2 times)", "p1: positions of A (i, j) (6 times)"),
    ),
    (
        "csr",
        SPMV,
        "pos(j,p,A(i,j)) split(p,p0,p1,2)",
        ("i: every coordinate (4 times)", "p0: every coordinate (at most 7 times)", "p1: positions of A (j) (6 times)"),
    ),
    ("csr", "y(i) = A(i,j) + B(i,j)", "", ("i: every coordinate (4 times)", "j: merges A, B (at most 9 times)")),
    ("csr", "y(i) = A(i,j) * B(i,j)", "", ("i: every coordinate (4 times)", "j: intersects A, B (at most 3 times)")),
    # only the rows that r selects are walked
    ("csr", "y(i) = r(i) * A(i,j)", "", ("i: driven by r (2 times)", "j: driven by A (at most 6 times)")),
    (
        "csr",
        "Y(i,k) = A(i,j) * S(j,k)",
        "",
        ("i: every coordinate (4 times)", "j: driven by A (6 times)", "k: driven by S (at most 20 times)"),
    ),
)


@pytest.mark.parametrize(("form", "statement", "schedule", "wanted"), CASES)
def test_loops_run_so_often(form: str, statement: str, schedule: str, wanted: tuple[str, ...]) -> None:
    formats = {"A": form, "B": "csr", "S": "csr", "r": "s"}
    formats = {name: kind for name, kind in formats.items() if f"{name}(" in statement.split("=")[1]}
    kernel = sl.program(statement, formats, schedule, target="interpret")
    kernel(**{name: value for name, value in GIVEN.items() if f"{name}(" in statement.split("=")[1]})
    lines = kernel.explain().split("loops\n")[1].split("\n\n")[0].splitlines()
    assert tuple(line.strip() for line in lines) == wanted


def test_without_data_there_is_nothing_to_count() -> None:
    assert "times" not in sl.program(SPMV, {"A": "csr"}).explain()


def test_counts_follow_the_data_of_the_last_call() -> None:
    kernel = sl.program(SPMV, {"A": "csr"}, target="interpret")
    kernel(A, np.ones(5))
    kernel(B, np.ones(5))
    assert "j: driven by A (3 times)" in kernel.explain()
