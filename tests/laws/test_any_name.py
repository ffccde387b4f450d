"""Names carry no meaning: users may call variables and tensors what they like, and the compiler's own names give way."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

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


PRODUCT = "C(i,j) = A(i,k) * B(k,j)"
ROWS = {"A": "csr", "B": "csr", "C": "csr"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "steps",
    [
        "precompute(A(i,k) * B(k,j), j, jw, w)",
        "precompute(B(k,j), j, w, w1)",
        "precompute(w(j), j, jw, w)",
        "split(j, w, w1, 3)",
        "precompute(A(i,k), k, kw, w) precompute(B(k,j), j, jw, w1)",
    ],
)
def test_names_of_the_compiler_give_way_to_those_of_a_schedule(steps: str, target: str) -> None:
    square = A[:5]
    k = sl.program(PRODUCT, ROWS, steps, target=target)
    np.testing.assert_array_equal(k(square, square).to_numpy(), square @ square)


def test_a_name_that_the_schedule_gave_itself_stays() -> None:
    with pytest.raises(sl.ScheduleError, match=r"cannot precompute\(B\(k,j\), j, jw, w\): w is already a tensor"):
        sl.program(PRODUCT, ROWS, "precompute(A(i,k), k, kw, w) precompute(B(k,j), j, jw, w)")
    with pytest.raises(sl.ScheduleError, match="B is already a tensor"):
        sl.program(PRODUCT, ROWS, "precompute(A(i,k), k, kw, B)")


@pytest.mark.parametrize("target", TARGETS)
def test_the_name_of_what_a_result_held_before_gives_way(target: str) -> None:
    k = sl.program("C(i,j) += A(i,j)", {"A": "csr", "C": "csr"}, "precompute(A(i,j), j, C_initial, w)", target=target)
    np.testing.assert_array_equal(k(A, C=A).to_numpy(), 2 * A)


def test_steps_that_took_a_name_of_the_compiler_can_be_taken_again() -> None:
    i, j, k = sl.indices("i j k")
    a, c = sl.asarray(sp.csr_array(A[:5]), name="A"), sl.zeros((5, 5), format="csr", name="C")
    c[i, j] = a[i, k] * a[k, j]
    first = c.schedule().precompute("A(i,k)", k, "kw", "w")
    again = c.schedule().then_text(first.text)
    assert again.trace == first.trace
    first.compile()()
    np.testing.assert_array_equal(c.to_numpy(), A[:5] @ A[:5])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("names", [("pA2_first", "pA2_last"), ("pA2_run", "pA2_end"), ("j_chunk", "j_stop"), ("A2_crd", "A_vals")])
def test_digits_may_be_named_as_the_cursors_of_the_loops(names: tuple[str, str], target: str) -> None:
    first, second = names
    for form in ("csr", "coo", "ds~"):
        k = sl.program("y(i) = A(i,j) * x(j)", {"A": form}, f"divide(j, {first}, {second}, 2)", target=target)
        np.testing.assert_array_equal(k(A, B[:, 0].copy()).to_numpy(), A @ B[:, 0])
