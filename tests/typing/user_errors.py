"""Errors, formats and semirings."""

from typing import assert_type

import sparseloom as sl

formats: list[sl.Format] = [sl.csr, sl.csc, sl.coo(3), sl.bcsr((2, 2)), sl.dense(2)]
ring: sl.Semiring = sl.Semiring("minimum", "add", float("inf"))
try:
    sl.evaluate("y(i) = A(i,j) * x(j)", A=sl.eye(3), x=[1.0])
except sl.ShapeError as wrong:
    assert_type(str(wrong), str)
except (sl.NotationError, sl.FormatError, sl.ToolchainError) as problem:
    assert isinstance(problem, sl.SparseloomError)
