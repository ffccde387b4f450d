"""Index notation written in Python: expressions, assignments, names, and what is refused."""

from __future__ import annotations

import operator
from threading import Thread

import numpy as np
import pytest

import sparseloom as sl
from sparseloom import deferred, evaluate
from sparseloom.core.errors import DTypeError, NotationError, ShapeError
from sparseloom.notation.nodes import IndexVar
from sparseloom.tensor import asarray, functions, indices, random, zeros

i, j, k = indices("i j k")
A = asarray(random((4, 3), 0.5, "csr", seed=1, dtype=int), name="A")
B = asarray(random((4, 3), 0.5, "csc", seed=2, dtype=int), name="B")
x = asarray(np.arange(1, 4), name="x")


def test_indices() -> None:
    assert indices("i") == (IndexVar("i"),)
    assert indices("i, j0") == (IndexVar("i"), IndexVar("j0"))
    for wrong in ("", "1i", "i-j", "i.j"):
        with pytest.raises(NotationError):
            indices(wrong)


def test_expressions_show_what_they_are() -> None:
    shown = {
        repr(A[i, j] * x[j] + 1): "Expression(A(i,j) * x(j) + 1)",
        repr(-(A[i, j] - B[i, j]) / 2): "Expression(-(A(i,j) - B(i,j)) / 2)",
        repr(2 ** A[i, j]): "Expression(2**A(i,j))",
        repr(abs(A[i, j]) >= 3): "Expression(absolute(A(i,j)) >= 3)",
        repr(functions.where(A[i, j] > 0, A[i, j], 0)): "Expression(where(A(i,j) > 0, A(i,j), 0))",
        repr(functions.max(j, A[i, j] * x[j])): "Expression(max(j, A(i,j) * x(j)))",
        repr(functions.sum((i, j), A[i, j])): "Expression(sum({i,j}, A(i,j)))",
        repr(A[i, j] + B[i, j] + x[j]): "Expression(A(i,j) + B(i,j) + x(j))",
    }
    for found, expected in shown.items():
        assert found == expected


def test_an_assignment_is_computed_at_once_and_stays_recorded() -> None:
    y = zeros(4, dtype=int, name="y")
    y[i] = A[i, j] * x[j]
    assert str(y.assignment) == "y(i) = sum(j, A(i,j) * x(j))"
    assert (y.shape, y.dtype, y.format.is_dense) == ((4,), np.int64, True)
    assert "assigned" not in repr(y)
    np.testing.assert_array_equal(y.to_numpy(), A.to_numpy() @ x.to_numpy())
    evaluate("y(i) = 2 * A(i,j)", A=A, out=y)
    np.testing.assert_array_equal(y.schedule().compile()().to_numpy(), A.to_numpy() @ x.to_numpy())


def test_a_loop_that_refills_an_operand_gets_each_result() -> None:
    array, made = np.array([1.0, 2.0]), []
    operand = asarray(array)
    for _ in range(3):
        y = asarray(np.zeros(2))
        y[i] = asarray(np.array([3.0, 2.0]))[i] * operand[i]
        made.append(y)
        array *= 2
    assert [y.to_numpy().tolist() for y in made] == [[3, 4], [6, 8], [12, 16]]
    y[i] += operand[i]
    array[:] = 0
    assert y.to_numpy().tolist() == [20, 32]


def test_a_deferred_assignment_waits_until_its_tensor_is_read_or_its_kernel_runs() -> None:
    array = np.array([1.0, 2.0])
    operand, y, z = asarray(array), zeros(2, name="y"), zeros(2, name="z")
    with deferred():
        y[i] = 3 * operand[i]
        z[i] = 3 * operand[i]
        with pytest.raises(ShapeError):
            y[i] = A[i, j]
        with pytest.raises(DTypeError):
            y[i] = functions.max(k, 1j * x[k])
    assert "assigned, not computed yet: y(i) = 3 * T0(i)" in repr(y)
    array *= 10
    assert y.to_numpy().tolist() == [30, 60]
    assert z.schedule().compile()() is z
    array *= 10
    assert z.to_numpy().tolist() == [30, 60]
    z[i] = operand[i]
    array *= 10
    assert z.to_numpy().tolist() == [100, 200]


def test_each_thread_defers_for_itself() -> None:
    made: list[str] = []

    def work() -> None:
        y = zeros(3, dtype=int)
        y[i] = 2 * x[i]
        made.append(repr(y))

    with deferred():
        thread = Thread(target=work)
        thread.start()
        thread.join()
    assert "[2 4 6]" in made[0]


def test_many_readers_of_a_postponed_tensor_see_its_values() -> None:
    for _ in range(20):
        y, seen = zeros(3, dtype=int), []
        with deferred():
            y[i] = 2 * x[i]
        threads = [Thread(target=lambda y=y, seen=seen: seen.append(y.to_numpy().tolist())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [[2, 4, 6]] * 4


def test_errors_call_tensors_without_a_name_as_the_user_does() -> None:
    matrix, vector = asarray(np.ones((2, 3))), asarray(np.ones(4))
    y = asarray(np.zeros(2))
    with pytest.raises(ShapeError) as fault:
        y[i] = matrix[i, j] * vector[j]
    expected = "j runs to 3 in mode 1 of matrix, but to 4 in mode 0 of vector\n  in y(i) = sum(j, matrix(i,j) * vector(j))"
    assert str(fault.value) == expected
    assert fault.value.__context__ is None
    with pytest.raises(ShapeError, match=r"in mode 1 of matrix, but to 4 in mode 0 of tensor of shape \(4,\)"):
        y[i] += matrix[i, j] * asarray(np.ones(4))[j]
    with pytest.raises(NotationError, match=r"a tensor of shape \(2, 3\) has 2 modes, but \[i\] gives it 1"):
        matrix[i]
    assert y.to_numpy().tolist() == [0, 0]


def test_an_assignment_runs_under_a_schedule() -> None:
    y = zeros(4, dtype=int, name="y")
    with pytest.raises(NotationError, match="there is nothing to schedule: nothing was assigned"):
        y.schedule()
    y[i] = A[i, j] * x[j]
    schedule = y.schedule().split(i, "i0", "i1", 2)
    for target in ("c", "interpret"):
        y[i] = 0 * A[i, j]
        kernel = schedule.compile(target)
        kernel()
        assert str(y.assignment) == "y(i) = sum(j, A(i,j) * x(j))"
        np.testing.assert_array_equal(y.to_numpy(), A.to_numpy() @ x.to_numpy())
    assert "i = i0 * 2 + i1" in kernel.show("concrete")
    with pytest.raises(NotationError, match="there is no target 'fortran'; there are c, cuda, interpret"):
        schedule.compile("fortran")


def test_accumulation() -> None:
    y = zeros(4, dtype=int, name="y")
    y[i] = A[i, j] * x[j]
    y[i] += B[i, j] * x[j]
    assert str(y.assignment) == "y(i) += sum(j, B(i,j) * x(j))"
    y[i] += 1
    np.testing.assert_array_equal(y.to_numpy(), (A.to_numpy() + B.to_numpy()) @ x.to_numpy() + 1)


def test_adding_to_an_expression_in_a_variable_is_not_an_assignment() -> None:
    total = A[i, j]
    total += B[i, j]
    y = zeros((4, 3), dtype=int)
    y[i, j] = total
    np.testing.assert_array_equal(y.to_numpy(), A.to_numpy() + B.to_numpy())


def test_the_right_side_reads_what_the_tensor_held_before() -> None:
    y = asarray(np.arange(4), name="y")
    y[i] = 2 * y[i]
    np.testing.assert_array_equal(y.to_numpy(), 2 * np.arange(4))
    y[i] *= 5
    np.testing.assert_array_equal(y.to_numpy(), 10 * np.arange(4))


def test_the_array_a_tensor_was_made_of_is_not_written() -> None:
    array = np.arange(4)
    y = asarray(array, name="y")
    y[i] = 7
    np.testing.assert_array_equal(y.to_numpy(), [7, 7, 7, 7])
    y[i] += 1
    np.testing.assert_array_equal(y.to_numpy(), [8, 8, 8, 8])
    np.testing.assert_array_equal(array, np.arange(4))
    evaluate("y(i) = 2 * x(i)", x=x, out=(filled := np.zeros(3, int)))
    np.testing.assert_array_equal(filled, [2, 4, 6])


def test_results_in_other_formats() -> None:
    y = zeros((4, 3), "csr", int, name="y")
    y[i, j] = A[i, j] * x[j]
    assert str(y.format) == "csr"
    np.testing.assert_array_equal(y.to_numpy(), A.to_numpy() * x.to_numpy())
    turned = zeros((3, 4), "csr", int)
    turned[j, i] = B[i, j]
    np.testing.assert_array_equal(turned.to_numpy(), B.to_numpy().T)


def test_scalars_diagonals_and_broadcasts() -> None:
    s = zeros((), dtype=int, name="s")
    s[()] = A[i, j]
    assert s.item() == A.to_numpy().sum()
    s[()] += A[i, j]
    assert s.item() == 2 * A.to_numpy().sum()
    square = asarray(np.arange(9).reshape(3, 3), name="S")
    d = zeros(3, dtype=int)
    d[i] = square[i, i]
    np.testing.assert_array_equal(d.to_numpy(), [0, 4, 8])
    rows = zeros((2, 3), dtype=int)
    rows[i, j] = x[j]
    np.testing.assert_array_equal(rows.to_numpy(), [[1, 2, 3], [1, 2, 3]])
    y = zeros((4, 3), dtype=int)
    y[i, j] = A[i, j] * s * asarray(2)
    np.testing.assert_array_equal(y.to_numpy(), A.to_numpy() * s.item() * 2)


def test_fixed_positions_beside_variables() -> None:
    y = zeros(4, dtype=int)
    y[i] = A[i, 1] + A[i, -1]
    np.testing.assert_array_equal(y.to_numpy(), A.to_numpy()[:, 1] + A.to_numpy()[:, -1])


def test_names_are_fresh_within_one_expression() -> None:
    first, second = asarray(np.arange(3)), asarray(np.arange(3, 6))
    assert repr(first[i] * second[i] + first[i]) == "Expression(T0(i) * T1(i) + T0(i))"
    same_name = asarray(np.arange(3, 6), name="x")
    assert repr(x[i] * same_name[i] - x[i]) == "Expression(x(i) * x1(i) - x(i))"
    y = zeros(3, dtype=int)
    y[i] = first[i] * second[i] + same_name[i] * x[i]
    assert str(y.assignment) == "T2(i) = T0(i) * T1(i) + x(i) * x1(i)"
    np.testing.assert_array_equal(y.to_numpy(), np.arange(3) * np.arange(3, 6) + np.arange(3, 6) * np.arange(1, 4))


def test_numpy_scalars_keep_their_dtype() -> None:
    short = asarray(np.arange(3, dtype=np.float32))
    assert short[i].node.tensor.dtype == np.float32  # type: ignore[attr-defined]
    y = zeros(3)
    y[i] = short[i] * np.float64(0.1)
    np.testing.assert_array_equal(y.to_numpy(), np.arange(3, dtype=np.float32) * np.float64(0.1))


def test_reductions_and_functions() -> None:
    y = zeros(4, dtype=int)
    y[i] = functions.max(j, A[i, j])
    np.testing.assert_array_equal(y.to_numpy(), A.to_numpy().max(axis=1))
    z = zeros((4, 3))
    z[i, j] = functions.sqrt(A[i, j]) + functions.minimum(A[i, j], B[i, j])
    np.testing.assert_allclose(z.to_numpy(), np.sqrt(A.to_numpy()) + np.minimum(A.to_numpy(), B.to_numpy()))
    w = zeros((4, 3), dtype=bool)
    w[i, j] = functions.equal(A[i, j], B[i, j])
    np.testing.assert_array_equal(w.to_numpy(), A.to_numpy() == B.to_numpy())


def test_what_is_refused() -> None:
    y = zeros(4, name="y")
    with pytest.raises(ShapeError, match="j runs to 4 in mode 0 of y, but to 3 in mode 1 of A"):
        y[j] = A[i, j]
    with pytest.raises(NotationError, match=r"A has 2 modes, but A\[i\] gives it 1; name one variable per mode"):
        A[i]
    with pytest.raises(NotationError, match=r"y has 1 modes, but y\[i, j\] gives it 2"):
        y[i, j] = A[i, j]
    with pytest.raises(NotationError, match="i is an index variable, not a value"):
        A[i, j] * i
    with pytest.raises(NotationError, match=r"write A\[i, j\]"):
        x[j] * A
    with pytest.raises(NotationError, match="a ndarray cannot stand in index notation"):
        x[j] * np.arange(3)
    with pytest.raises(NotationError, match="a list cannot stand in index notation"):
        x[j] + [1, 2, 3]
    with pytest.raises(NotationError, match="entries of a tensor cannot be set"):
        y[0] = 1
    with pytest.raises(NotationError, match="entries of a tensor cannot be set"):
        y[:] = 1
    with pytest.raises(NotationError, match="'i' stands for a tensor and an index variable"):
        y[i] = asarray(np.arange(4), name="i")[i]
    with pytest.raises(DTypeError, match="has no truth value before it is computed"):
        bool(A[i, j] > 0)
    with pytest.raises(DTypeError, match="cannot be iterated"):
        iter(A[i, j])
    with pytest.raises(NotationError, match=r"sl.sum reduces an expression over index variables, as in sl.sum\(j, A\[i, j\]\)"):
        functions.sum(A[i, j])
    with pytest.raises(NotationError, match=r"the first argument of sl\.sum must be index variables"):
        functions.sum(0, A[i, j])
    with pytest.raises(NotationError, match="sqrt takes 1 argument, not 2"):
        functions.sqrt(A[i, j], 1)
    with pytest.raises(NotationError, match="is bound by a reduction, but is also used outside it"):
        y[i] = functions.sum(j, A[i, j]) * x[j]
    with pytest.raises(NotationError, match="sqrt cannot take a str"):
        functions.sqrt("x")


def test_a_refused_assignment_leaves_the_tensor_as_it_was() -> None:
    y = asarray(np.arange(4), name="y")
    with pytest.raises(ShapeError):
        y[j] = A[i, j]
    assert y.assignment is None
    np.testing.assert_array_equal(y.to_numpy(), np.arange(4))


NUMBERS = (0, 1.5, True, np.float64(1), np.int8(2), np.bool_(True), np.array(2), asarray(2), np.nan, 2**62)
COMPARE = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@pytest.mark.parametrize("symbol", COMPARE)
def test_comparisons_make_expressions_of_numbers_on_either_side(symbol: str) -> None:
    compare, held = COMPARE[symbol], np.arange(3)
    operand = asarray(held)
    y = zeros(3, dtype=bool)
    for number in NUMBERS:
        plain = number.item() if hasattr(number, "item") else number
        y[i] = compare(operand[i], number)
        np.testing.assert_array_equal(y.to_numpy(), compare(held, plain))
        y[i] = compare(number, operand[i])
        np.testing.assert_array_equal(y.to_numpy(), compare(plain, held))
    y[i] = compare(operand[i], x[i])
    np.testing.assert_array_equal(y.to_numpy(), compare(held, x.to_numpy()))


def test_equal_and_not_equal_choose() -> None:
    operand, y = asarray(np.array([0.0, 2.0, 5.0])), zeros(3)
    y[i] = functions.where(operand[i] == 0, 1.0, operand[i])
    assert y.to_numpy().tolist() == [1, 2, 5]
    y[i] = functions.where(operand[i] != operand[i] + 0, 1.0, operand[i] * (operand[i] != 2))
    assert y.to_numpy().tolist() == [0, 0, 5]
    sparse = zeros((4, 3), "csr", bool)
    sparse[i, j] = A[i, j] == B[i, j]
    np.testing.assert_array_equal(sparse.to_numpy(), A.to_numpy() == B.to_numpy())


def test_truth_values_are_combined_by_bits() -> None:
    held, y = np.arange(-3, 4), zeros(7, dtype=bool)
    v = asarray(held)
    y[i] = (v[i] > -2) & ~(v[i] == 1) | (v[i] == -3) ^ (v[i] >= 3)
    np.testing.assert_array_equal(y.to_numpy(), (held > -2) & ~(held == 1) | (held == -3) ^ (held >= 3))
    y[i] = True & (v[i] > 0) | np.bool_(False)
    np.testing.assert_array_equal(y.to_numpy(), held > 0)
    assert repr(~(v[i] > 0) & (v[i] < 2) | (v[i] == 3)) == "Expression(not T0(i) > 0 and T0(i) < 2 or T0(i) == 3)"
    for wrong in (lambda: v[i] & 1, lambda: 1 | v[i], lambda: ~v[i], lambda: (v[i] > 0) ^ v[i]):
        with pytest.raises(DTypeError, match=r"of expressions is for truth values, and (T0\(i\)|1) is int64"):
            wrong()


def test_expressions_are_no_truth_values_and_no_keys() -> None:
    expression = A[i, j]
    with pytest.raises(DTypeError, match=r"choose with sl\.where") as fault:
        bool(expression == 0)
    assert str(fault.value).startswith("A(i,j) == 0 has no truth value before it is computed")
    for use in (lambda: 0 < expression < 2, lambda: expression > 0 and expression < 2, lambda: not expression, lambda: expression in [0]):
        with pytest.raises(DTypeError, match="has no truth value"):
            use()
    with pytest.raises(TypeError, match="unhashable"):
        hash(expression)
    for other in (None, "a", [1], np.arange(3), A, i):
        for compare in (operator.eq, operator.ne):
            with pytest.raises(NotationError):
                compare(expression, other)
            with pytest.raises(NotationError):
                compare(other, expression)
    assert expression.node == A[i, j].node and hash(expression.node) == hash(A[i, j].node)
    assert i == IndexVar("i") and i != j and i != 3


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64", "float32", "float64", "bool"])
@pytest.mark.parametrize("target", ["c", "interpret"])
def test_quotients_rounded_down_and_remainders_are_numpys(dtype: str, target: str) -> None:
    ends = [0, 1, 7, -1, -7, 2, -2, -128, 127, -(2**63), 2**63 - 1] if dtype[0] == "i" else [0, 1, 7, 2, 255, 128]
    special = [0.0, -0.0, 1, -1, 2.5, -2.5, np.inf, -np.inf, np.nan, 7, -7, 0.1, 1e30]
    values = np.array(special if dtype[0] == "f" else ends)
    values = values.astype(dtype)
    left, right = np.repeat(values, len(values)), np.tile(values, len(values))
    for symbol, function in (("//", np.floor_divide), ("%", np.remainder)):
        with np.errstate(all="ignore"):
            expected = function(left, right)
        made = evaluate(f"y(i) = a(i) {symbol} b(i)", a=left, b=right, target=target)
        assert made.dtype == expected.dtype
        np.testing.assert_array_equal(made.to_numpy(), expected)
        if dtype[0] == "f":
            seen = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(made.to_numpy())[seen], np.signbit(expected)[seen])


def test_quotients_and_remainders_in_python() -> None:
    held, y = np.arange(-3, 4), zeros(7, dtype=int)
    v = asarray(held)
    y[i] = v[i] // 2 + 7 % (v[i] * v[i] + 1) - 5 // (v[i] % 3 + 1)
    np.testing.assert_array_equal(y.to_numpy(), held // 2 + 7 % (held * held + 1) - 5 // (held % 3 + 1))
    even = zeros(7, "s", bool)
    even[i] = (v[i] % 2 == 0) & (v[i] != 0)
    np.testing.assert_array_equal(even.to_numpy(), (held % 2 == 0) & (held != 0))
    with pytest.raises(DTypeError, match="not defined on complex numbers"):
        y[i] = (v[i] * 1j) // 2


def test_expressions_are_no_arrays_and_take_no_number_that_does_not_fit() -> None:
    (i,), x = sl.indices("i"), sl.asarray([0.0, 1.0], name="x")
    for make in (np.array, np.asarray, lambda e: np.where(e, 1, 0)):
        with pytest.raises(DTypeError, match=r"x\(i\) == 0 is no array"):
            make(x[i] == 0)
    for number in (2**64, -(2**63) - 1, 10**400):
        with pytest.raises(DTypeError, match="does not fit in 64 bits"):
            _ = x[i] < number


def test_comparisons_of_two_variables_are_not_taken_for_conditions() -> None:
    A, (i, j) = sl.asarray(np.eye(3), name="A"), sl.indices("i j")
    for condition in (i == j, i == i, i != j):
        with pytest.raises(NotationError, match=r"the condition of where is (True|False) everywhere: Python compared two names"):
            sl.where(condition, A[i, j], 1.0)
        with pytest.raises(NotationError, match="Python compared two names"):
            sl.where(condition, 1, 0)
    with pytest.raises(NotationError, match="i is an index variable, not a value"):
        sl.equal(i, j)
    B = sl.zeros((3, 3))
    B[i, j] = sl.where(sl.eye(3)[i, j] == 1, 5.0, A[i, j])
    np.testing.assert_array_equal(B.to_numpy(), 5 * np.eye(3))
