"""Names carry no meaning: users may call variables and tensors what they like, and the compiler's own names give way."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl

TARGETS = ("interpret", "c")
A = np.array([[0, 2, 0, 1, 0], [3, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 1, 4, 0, 2], [0, 0, 0, 5, 0], [1, 0, 0, 0, 3]], float)
B = np.arange(1.0, 21).reshape(5, 4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["i_block", "i_within", "j_block", "j_within", "i_block1", "i_size", "pA1", "A2_pos", "R_acc", "w", "t"])
def test_a_variable_beside_a_blocked_operand_may_have_any_name(name: str, target: str) -> None:
    k = sl.program(f"C(i,{name}) = A(i,j) * B(j,{name})", {"A": "bcsr(2,2)"}, target=target)
    np.testing.assert_array_equal(k(A, B).to_numpy(), A @ B)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["i_block", "j_within", "j_each", "w", "t", "C_rows"])
def test_blocked_results_beside_any_name(name: str, target: str) -> None:
    """A variable or an operand of that name, in a statement whose blocks are built in a workspace."""
    for var, tensor in ((name, "B"), ("k", name)):
        k = sl.program(f"C(i,j) = A(i,{var}) * {tensor}({var},j)", {"A": "csr", tensor: "csr", "C": "bcsr(2,2)"}, target=target)
        np.testing.assert_array_equal(k(A, B).to_numpy(), A @ B)


@pytest.mark.parametrize("target", TARGETS)
def test_halves_of_a_split_may_be_named_as_the_compiler_names_blocks(target: str) -> None:
    steps = "split(i, i_block, i_within, 4) fuse(i_block, i_within, f) pos(f, p, A(i,j))"
    k = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, steps, target=target)
    np.testing.assert_array_equal(k(A, B[:, 0].copy()).to_numpy(), A @ B[:, 0])


def test_a_loop_that_a_blocked_format_took_the_place_of() -> None:
    with pytest.raises(sl.ScheduleError, match="there is no loop over i any more: the blocked format made i_block and i_within of it"):
        sl.program("y(i) = A(i,j) * x(j)", {"A": "bcsr(2,2)"}, "split(i, i0, i1, 2)")
