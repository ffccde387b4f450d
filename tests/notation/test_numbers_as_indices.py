"""Numbers in the place of index variables: ``y(j) = A(3,j)``."""

from __future__ import annotations

import numpy as np
import pytest
from together import compile_together

import sparseloom as sl
from sparseloom.core.errors import ShapeError
from sparseloom.notation.nodes import Fixed
from sparseloom.notation.printer import show
from sparseloom.notation.text import parse

# Each with what NumPy makes of it, for every combination of formats below.
STATEMENTS = {
    "y(j) = A(3,j)": lambda A, B: A[3],
    "y(i) = A(i,2) * B(i,4)": lambda A, B: A[:, 2] * B[:, 4],
    "y(j) = A(3,j) + B(j,2)": lambda A, B: A[3] + B[:, 2],
    "y = A(3,j) * A(j,3)": lambda A, B: A[3] @ A[:, 3],
    "y = A(1,2) + A(1,2) * B(0,0)": lambda A, B: A[1, 2] * (1 + B[0, 0]),
    "y(i) = max(j, A(i,j) * B(5,j))": lambda A, B: (A * B[5]).max(axis=1),
    "Y(i,j) = A(i,k) * B(k,j) * B(5,j)": lambda A, B: (A @ B) * B[5],
}
FORMATS = (("csr", "csc", "csr"), ("dcsr", "dense", "dense"), ("coo", "bcsr(2,3)", "csc"), ("ell", "dcsr", "coo"))


def test_numbers_take_parts_in_every_format(rng: np.random.Generator) -> None:
    A, B = (np.where(rng.random((6, 6)) < 0.4, rng.integers(1, 9, (6, 6)), 0).astype(float) for _ in "AB")
    calls = []
    for text, meaning in STATEMENTS.items():
        for a, b, y in FORMATS:
            formats = {name: form for name, form in (("A", a), ("B", b), ("Y", y)) if f"{name}(" in text}
            operands = [{"A": A, "B": B}[name] for name in formats if name != "Y"]
            calls += [(sl.program(text, formats, target=target), operands, meaning(A, B)) for target in ("c", "interpret")]
    compile_together([(kernel, operands) for kernel, operands, _ in calls])
    for kernel, operands, expected in calls:
        np.testing.assert_array_equal(kernel(*operands).to_numpy(), expected, err_msg=repr(kernel))


def test_a_number_is_located_and_no_loop_runs_over_it() -> None:
    kernel = sl.program("y(j) = A(3,j) * x(j)", {"A": "csr"})
    assert kernel.show("concrete") == "forall j\n  y(j) = A(3,j) * x(j)"
    assert "A2_pos[3]" in kernel.source
    kernel(np.eye(5), np.ones(5))
    told = kernel.explain().split("\n\n")[1:3]
    assert told == ["extents\n  j: 5", "loops\n  j: driven by A (at most 5 times)"]


def test_schedules_name_accesses_at_numbers() -> None:
    A, x = np.arange(36.0).reshape(6, 6) % 5, np.arange(6.0)
    steps = "pos(j,p,A(3,j)) split(p,p0,p1,2)"
    assert sl.program("y(j) = A(3,j) * x(j)", {"A": "csr"}, steps)(A, x).to_numpy().tolist() == (A[3] * x).tolist()
    steps = "precompute(A(2,j), j, jw, w)"
    assert sl.program("y(i) = B(i,j) * A(2,j)", {"A": "csc", "B": "csr"}, steps)(A, A).to_numpy().tolist() == (A @ A[2]).tolist()


def test_a_number_beyond_the_mode_is_refused_at_every_call() -> None:
    kernel = sl.program("y(j) = A(3,j)", {"A": "csr"})
    assert kernel(np.eye(4)).to_numpy().tolist() == [0, 0, 0, 1]
    with pytest.raises(ShapeError) as refused:
        kernel(np.eye(3))
    told = "A(3,j) is outside of A, whose mode 0 has 3 coordinates\n  in y(j) = A(3,j)\n  help: they are counted from 0"
    assert str(refused.value) == told


def test_numbers_are_printed_as_they_were_read() -> None:
    assign = parse("y(j) = A(3,j) * b(0)").assign
    assert show(assign) == "y(j) = A(3,j) * b(0)"
    assert [found.value for access in assign.rhs.args for found in access.indices if isinstance(found, Fixed)] == [3, 0]


def test_python_objects_take_the_same_parts() -> None:
    A = np.arange(12.0).reshape(3, 4) % 5
    a, y = sl.asarray(A).to("csr"), sl.zeros(4)
    (j,) = sl.indices("j")
    y[j] = a[-1, j] * a[0, j]
    assert y.to_numpy().tolist() == sl.evaluate("y(j) = A(2,j) * A(0,j)", A=a).to_numpy().tolist() == (A[2] * A[0]).tolist()
