"""Programs on which the metamorphic campaign found a fault."""

from __future__ import annotations

import numpy as np
import pytest
from together import compile_together

import sparseloom as sl

TARGETS = ("interpret", "c")
DTYPES = ("int8", "int64", "float32", "float64", "complex128")
UNORDERED_BLOCKS = ("s~sdd:0,1,0,1/2,2", "ds~dd:0,1,0,1/2,3", "u~q~dd:0,1,0,1/2,3", "u~qdd:1,0,0,1/2,3", "bs~dd:0,1,0,1/2,3")


@pytest.mark.parametrize("form", ("d", "s"))
@pytest.mark.parametrize("initial", DTYPES)
def test_a_result_holds_what_it_is_added_to(form: str, initial: str) -> None:
    before = np.array([1.5, 300, -2]).astype(initial) if initial != "int8" else np.array([1, 100, -2], np.int8)
    before = before + 1j if initial == "complex128" else before
    for dtype in DTYPES:
        added = np.array([1, 2, 3]).astype(dtype)
        made = sl.evaluate("y(i) += a(i)", a=added, y=before, format=form, target="interpret")
        expected = before + added
        assert (made.dtype, made.to_numpy().tolist()) == (expected.dtype, expected.tolist())


def test_a_program_adds_to_a_wider_result() -> None:
    before = np.array([0.5, 1.5])
    kernel = sl.program("t(i) = a(i) * 2\ny(i) += t(i)")
    assert kernel(np.array([1, 2]), y=before).to_numpy().tolist() == [2.5, 5.5]
    assert kernel(np.array([1, 2]), out=before).to_numpy().tolist() == [2.5, 5.5] == before.tolist()


def test_truth_values_take_the_initial_value_as_truth_values() -> None:
    made = sl.evaluate("y(i) += a(i)", a=np.array([True, False, False]), y=np.array([0, 2, 0]), semiring="or_and")
    assert (made.dtype, made.to_numpy().tolist()) == (np.dtype(bool), [True, True, False])


@pytest.mark.parametrize("form", ("s~d:0,0/1", "s~d:0,0/3", "u~d:0,0/2"))
@pytest.mark.parametrize("result", ("s", "u", "p", "b"))
def test_unordered_blocks_are_copied_into_a_list_of_entries(form: str, result: str) -> None:
    given = np.array([0, 1, 0, 0, 2, 0, 3])
    made = sl.program("R(i) = D(i)", {"D": form, "R": result}, "", target="interpret")(sl.asarray(given, format=form))
    assert made.to_numpy().tolist() == given.tolist()


@pytest.mark.parametrize("form", UNORDERED_BLOCKS)
def test_unordered_blocks_of_a_matrix_are_copied_into_any_format(form: str) -> None:
    given = np.arange(12).reshape(3, 4) * (np.arange(12).reshape(3, 4) % 3 == 1)
    operand = sl.asarray(given, format=form)
    statements = {"R(i,j) = D(i,j)": given, "R(j,i) = D(i,j)": given.T}
    kernels = {
        (text, target, result): sl.program(text, {"D": form, "R": result}, "", target=target)
        for text in statements
        for target in TARGETS
        for result in ("ds", "ss:1,0", "uq", "bb")
        if target == "interpret" or result == "ds"
    }
    compile_together((kernel, (operand,)) for kernel in kernels.values())
    for (text, _, _), kernel in kernels.items():
        assert kernel(operand).to_numpy().tolist() == statements[text].tolist()


# A level that is not full below a full one within blocks, blocks that are cut at the edge, and blocks that operands do not have.
@pytest.mark.parametrize(
    "form", ("ddds:0,1,0,1/2,3", "dsds:0,1,0,1/2,3", "ssds:1,0,0,1/3,2", "dddd:0,1,0,1/2,3", "sddd:0,1,0,1/2,3", "suss:0,1,0,1/2,3")
)
@pytest.mark.parametrize("statement", ("R(i,j) = A(i,j)", "R(j,i) = A(i,j)", "R(i,j) = A(i,j) + A(i,j) * B(j)", "R(i,j) += A(i,j)"))
def test_blocks_of_any_levels_are_made_of_any_operands(form: str, statement: str) -> None:
    for given in ("dd", "ds", "uq", form):
        matrix = np.arange(12).reshape(3, 4) * (np.arange(12).reshape(3, 4) % 3 != 0)
        values = {"A": sl.asarray(matrix, format=given), "B": np.array([1, 0, 2, 0])}
        expected = {"=": matrix, "+": matrix + matrix * values["B"]}["+" if "B" in statement else "="]
        expected = expected.T if "R(j,i)" in statement else 2 * expected if "+=" in statement else expected
        read = {name: value for name, value in values.items() if name in statement} | ({"R": matrix} if "+=" in statement else {})
        made = sl.program(statement, {"A": given, "R": form}, target="interpret")(read)
        assert made.to_numpy().tolist() == expected.tolist()
        assert sl.from_arrays(form, made.shape, dict(made.arrays)).to_numpy().tolist() == expected.tolist()


@pytest.mark.parametrize("form", ("ddds:0,1,0,1/3,5", "dddd:0,1,0,1/3,5"))
def test_large_tensors_are_converted_into_blocks_that_are_cut(form: str) -> None:
    matrix = np.arange(200 * 101).reshape(200, 101)
    for given in ("dd", "ds"):
        made = sl.asarray(matrix, format=given).to(form)
        assert np.array_equal(sl.from_arrays(form, made.shape, dict(made.arrays)).to_numpy(), matrix)


def test_a_compiled_result_in_blocks_that_are_cut() -> None:
    matrix = np.arange(12).reshape(3, 4)
    made = sl.program("R(i,j) = 2 * A(i,j)", {"A": "dd", "R": "dsds:0,1,0,1/2,3"})(matrix)
    assert made.to_numpy().tolist() == (2 * matrix).tolist()


@pytest.mark.parametrize("races", ("Temporary", "ParallelReduction"))
@pytest.mark.parametrize("form", ("ds", "dsd", "ss:1,0"))
def test_threads_may_sum_below_loops_that_insert_a_result(form: str, races: str) -> None:
    """The pieces that threads insert were looked for in the sum, and counts of the result's rows were never read."""
    rng = np.random.default_rng(3)
    blocks, scales = rng.integers(0, 3, (2, 3, 40)), rng.integers(1, 3, 2)
    text = "t(w,s) = E(s,w,b) + c(s)" if form != "dsd" else "t(w,s,k) = E(s,w,b) * d(k) + c(s) * d(k)"
    kernel = sl.program(text, {"t": form, "E": "spu"}, f"parallelize(b,CPUThread,{races})", target="interpret")
    given = {"E": blocks, "c": scales} | ({"d": np.array([1, 2])} if form == "dsd" else {})
    assert np.array_equal(kernel(given).to_numpy(), sl.program(text, {}, "", target="interpret")(given).to_numpy())


@pytest.mark.parametrize("size", (0, 3))
def test_a_step_may_share_the_structure_of_an_operand_that_it_converts(size: int) -> None:
    """Only an operand of the caller has another name where statements are compiled once for all names."""
    text = "R(i) = A(i) * B(i) - A(i) * B(i) * C(i)\nR1(i) = R(i) * D(i) * B(i) + F(i)\nR2(i) = R1(i) * G(i) * H(i) - K(i) * F(i)"
    forms = {"B": "u~", "C": "p", "F": "s", "G": "s", "H": "s", "K": "s", "R": "s", "R1": "u~"}
    dtypes = dict(zip("ABCDFGHK", ("f8", "f8", "c8", "c8", "c16", "c8", "i4", "c16"), strict=True))
    given = {name: sl.asarray(np.arange(1, size + 1).astype(dtype), format=forms.get(name)) for name, dtype in dtypes.items()}
    a = np.arange(1, size + 1).astype(complex)
    made = sl.program(text, forms, "", target="interpret")(given)
    assert np.array_equal(made.to_numpy(), ((a**2 - a**3) * a**2 + a) * a**2 - a**2)
