"""Programs of several statements as text: what is read, and what is refused, with the whole text of each refusal."""

from __future__ import annotations

import pytest

from sparseloom.core.errors import NotationError
from sparseloom.notation.script import read_script

TWO = """
A: csr, t1: ds:1,0
t1(k) = A(k,l)
        * x(l)        # goes on, for an operator stands before it
  split(k, k0, k1,
        64)
  parallelize(k0, CPUThread, NoRaces)
y(i) = A(i,k) * t1(k) +
       2
  plain
"""


def test_statements_schedules_and_formats_are_told_apart() -> None:
    script = read_script(TWO)
    assert [" ".join(step.parsed.text.split()) for step in script.steps] == ["t1(k) = A(k,l) * x(l)", "y(i) = A(i,k) * t1(k) + 2"]
    assert [step.line for step in script.steps] == [3, 8]
    assert [step.schedule and " ".join(step.schedule.split()) for step in script.steps] == [
        "split(k, k0, k1, 64) parallelize(k0, CPUThread, NoRaces)", "",
    ]  # fmt: skip
    assert script.formats == {"A": "csr", "t1": "ds:1,0"}
    assert script.operands == ("A", "x")
    assert script.orders == {"t1": 1, "A": 2, "x": 1, "y": 1}


def test_one_statement_is_a_program_too() -> None:
    script = read_script("y(i) = A(i,j) * x(j)  # SpMV")
    assert script.operands == ("A", "x") and script.last.schedule is None and not script.formats
    assert read_script("y(i) = b(i)\n  unroll(i, 2)").last.schedule == "  unroll(i, 2)"
    assert read_script("y(i)\n  = b(i)\n  - c(i)").operands == ("b", "c")
    assert read_script("y(i) = where(b(i) == 0,\n  c(i), d(i))").operands == ("b", "c", "d")


def test_what_a_statement_makes_is_a_tensor_though_a_function_has_its_name() -> None:
    assert read_script("exp(i) = b(i)\ny(i) = exp(i) * b(i)").operands == ("b",)


def test_many_formats_stand_on_a_line() -> None:
    text = "A: bcsr(2,3), B: sss:1,2,0 , C:csf\ny(i) = A(i,j) * B(i,j,k) * C(i,j,k)"
    assert read_script(text).formats == {"A": "bcsr(2,3)", "B": "sss:1,2,0", "C": "csf"}


REFUSALS = {
    "y(i) = A(i,k) * t(k)\nt(k) = b(k)\nz(i) = t(i) * y(i)": """
cannot read the program: 't' is read in line 1, but made in line 2
  y(i) = A(i,k) * t(k)
                  ^
help: move line 2 before line 1, or give a temporary another name""",
    "t(k) = b(k) * y(k)\ny(k) = t(k)": """
cannot read the program: 'y' is read in line 1, but made in line 2
  t(k) = b(k) * y(k)
                ^
help: move line 2 before line 1, or give the result another name""",
    "t(k) = b(k)\nt(k) = c(k)\ny(k) = t(k)": """
cannot read the program: 't' is made twice, in line 1 and in line 2
  t(k) = c(k)
  ^
help: give each a name of its own""",
    "t(k) = b(k)\ny(k) = c(k)": """
cannot read the program: 't' is made in line 1, but nothing reads it
  t(k) = b(k)
  ^
help: the result is y, which the last statement makes; leave line 1 away""",
    "t(k) += b(k)\ny(k) = t(k)": """
cannot read the program: 't' is a temporary, which holds nothing that could be added to
  t(k) += b(k)
  ^
help: write = instead""",
    "t(k) = b(k)\n\ny(k) = t(k,j)": """
cannot read the program: 't' has 1 mode in line 1, but 2 in line 3
  y(k) = t(k,j)
         ^""",
    "t(k) = b(k)\ny(k) = t(k) * * 2": """
cannot read the statement: expected a value after '*'
  y(k) = t(k) * * 2
                ^
in line 2 of the program""",
    "t(k) = b(k)\n  plain\n  unroll(k, 2)\ny(k) = t(k)": """
cannot read the program: plain stands for no steps, but there are some
  in line 2
help: leave plain away, or the steps""",
    "A: csr, A: csc\ny(i) = A(i,j)": """
cannot read the program: the format of A is given twice
  in line 1: A: csr, A: csc""",
    "A:\ny(i) = A(i,j)": """
cannot read the program: no format is given for A
  in line 1: A:
help: write A: csr""",
    "A: csr\nB: csr": """
the program has no statement
  help: write one such as y(i) = A(i,j) * x(j)""",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals(text: str) -> None:
    with pytest.raises(NotationError) as refused:
        read_script(text)
    assert str(refused.value) == REFUSALS[text].strip("\n")


def test_a_statement_goes_on_where_a_word_joins_lines() -> None:
    script = read_script("t(i) = a(i) > 0 and\n  not b(i) > 1\n  and b(i) > 0\nand(i) = t(i)\n  or c(i) or not\n  d(i)", ())
    assert [step.parsed.result for step in script.steps] == ["t", "and"]
    assert script.operands == ("a", "b", "c", "d")
