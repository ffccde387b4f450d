"""The dense oracle against NumPy written by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sparseloom.core.algebra import SEMIRINGS, Scalar
from sparseloom.core.errors import CompilerBug, ShapeError
from sparseloom.core.trees import walk
from sparseloom.formats.named import csf, dense
from sparseloom.notation.dtyping import dtype_of
from sparseloom.notation.interpret import Operand, Result, evaluate
from sparseloom.notation.nodes import Access, TensorVar
from sparseloom.notation.terms import close_over
from sparseloom.notation.text import declare, parse

inf, nan = math.inf, math.nan


def sparse(values: Any, fill: Scalar = 0, dtype: str = "f8") -> Operand:
    """An operand that does not store the places where ``values`` is its fill."""
    array = np.asarray(values, dtype)
    present = array != fill if fill == fill else array == array
    return Operand(np.where(present, array, array.dtype.type(99)), present, fill)  # 99: an absent value must never be read


def run(
    text: str, semiring: str | None = None, sizes: dict[str, int] | None = None, initial: Operand | None = None, **given: Any
) -> Result:
    """Evaluate a statement; arrays are dense operands, and the result has the dtype of the right side."""
    operands = {name: value if isinstance(value, Operand) else Operand.full(value) for name, value in given.items()}
    declarations = {}
    for name, value in operands.items():
        order = value.values.ndim
        is_dense = not isinstance(given[name], Operand)
        declarations[name] = TensorVar(name, order, dense(order) if is_dense else csf(order), value.values.dtype, fill=value.fill)
    statement = declare(parse(text).assign, declarations)
    assign = close_over(statement, None if semiring is None else SEMIRINGS[semiring])
    known = dict(sizes or {})
    for access in (found for found in walk(assign.rhs) if isinstance(found, Access)):
        known |= zip((var.name for var in access.indices), operands[access.tensor.name].values.shape, strict=True)
    return evaluate(assign, operands, known, dtype_of(assign.rhs), initial)


def check(result: Result, values: Any, present: Any = True, fill: Scalar = 0) -> None:
    """Compare values, places and fill."""
    np.testing.assert_array_equal(result.values, values)
    np.testing.assert_array_equal(result.present, np.broadcast_to(present, result.values.shape))
    np.testing.assert_equal(result.fill, fill)


M = np.array([[1.0, 0, 2], [0, 0, 0]])
v = np.array([3.0, 4, 5])


def test_matrix_times_vector() -> None:
    check(run("y(i) = A(i,j) * x(j)", A=sparse(M), x=v), M @ v, [True, False])
    check(run("y(i) = A(i,j) * x(j)", A=M, x=v), M @ v)


def test_union_and_intersection() -> None:
    a, b = np.array([1.0, 2, 0, 0]), np.array([0, 5.0, 7, 0])
    check(run("y(i) = a(i) + b(i)", a=sparse(a), b=sparse(b)), a + b, [True, True, True, False])
    check(run("y(i) = a(i) - b(i)", a=sparse(a), b=sparse(b)), a - b, [True, True, True, False])
    check(run("y(i) = a(i) * b(i)", a=sparse(a), b=sparse(b)), a * b, [False, True, False, False])
    check(run("y(i) = a(i) + b(i)", a=sparse(a), b=b), a + b)


def test_each_term_is_summed_apart() -> None:
    b, c = np.array([1.0, 2]), np.array([1.0, 2, 4])
    check(run("y(i) = A(i,j) + c(j) - b(i)", A=M, c=c, b=b), M.sum(1) + c.sum() - b)
    check(run("y(i) = (A(i,j) + B(i,j)) * x(j)", A=sparse(M), B=sparse(M), x=v), 2 * M @ v, [True, False])


def test_an_absent_entry_is_never_multiplied() -> None:
    a, bad = np.array([0, 0, 2.0]), np.array([inf, nan, inf])
    check(run("y(i) = a(i) * b(i)", a=sparse(a), b=bad), [0, 0, inf], [False, False, True])
    check(run("y(i) = b(i) * a(i) * b(i)", a=sparse(a), b=bad), [0, 0, inf], [False, False, True])
    check(run("y(i) = a(i) * b(i)", a=a, b=bad), [nan, nan, inf])  # stored zeros are numbers like any other
    check(run("y(i) = 0 * b(i)", b=bad), [nan, nan, nan])
    check(run("y = a(i) * b(i)", a=sparse(a), b=bad), inf)


def test_division() -> None:
    a, b = np.array([0, 1.0, 2, 0]), np.array([0, 0, 4.0, 5])
    check(run("y(i) = a(i) / b(i)", a=sparse(a), b=sparse(b)), [0, inf, 0.5, 0], [False, True, True, False])
    check(run("y(i) = a(i) / b(i)", a=a, b=b), [nan, inf, 0.5, 0])
    check(run("y(i) = 1 / a(i)", a=sparse(a)), [inf, 1, 0.5, inf], [False, True, True, False], inf)
    halves = run("y(i) = a(i) / 2", a=np.array([1, 2, 3]))
    check(halves, [0.5, 1, 1.5])
    assert halves.values.dtype == np.float64


def test_functions_fill_in() -> None:
    a = np.array([0, 1.0, 0])
    check(run("y(i) = exp(a(i))", a=sparse(a)), np.exp(a), [False, True, False], 1.0)
    check(run("y(i) = a(i) + 1", a=sparse(a)), a + 1, [False, True, False], 1.0)
    check(run("y = exp(a(i))", a=sparse(a)), np.exp(a).sum())
    check(run("y(i) = where(a(i) > 0, a(i), 7)", a=sparse(a)), [7, 1, 7], [False, True, False], 7.0)
    check(run("y(i) = a(i) == 0", a=sparse(a)), a == 0, [False, True, False], True)


def test_reductions() -> None:
    A = np.array([[1.0, 0, -2], [0, 0, 0]])
    check(run("y(i) = max(j, A(i,j))", A=sparse(A)), A.max(1), [True, False])
    check(run("y(i) = min(j, A(i,j))", A=sparse(A)), A.min(1), [True, False])
    check(run("y(i) = max(j, A(i,j))", A=A), A.max(1))
    check(run("y(i) = max(j, A(i,j))", A=sparse([[-inf, 3.0], [-inf, -inf]], -inf)), [3, -inf], [True, False], -inf)
    check(run("y(j) = prod(i, A(i,j))", A=A), A.prod(0))
    check(run("y(i) = any(j, A(i,j))", A=sparse(A)), [True, False], [True, False], False)
    check(run("y(i) = all(j, A(i,j))", A=sparse(A)), [False, False], False, False)  # one absent truth decides
    check(run("y(i) = prod(j, A(i,j))", A=sparse([[nan, 0], [2, 3]])), [0, 6], [False, True])
    check(run("y(i) = max(j, A(i,j) * x(j))", A=sparse(A), x=v), (A * v).max(1), [True, False])
    check(run("y = sum({i,j}, A(i,j)**2)", A=A), (A**2).sum())
    check(run("y = max({i,j}, 2)", sizes={"i": 2, "j": 3}), 2)
    check(run("y = sum({i,j}, 2)", sizes={"i": 2, "j": 3}), 12)


def test_empty_extents() -> None:
    empty = np.zeros((2, 0))
    check(run("y(i) = A(i,j)", A=empty), [0, 0])  # a dense operand is stored everywhere, however small it is
    check(run("y(i) = max(j, A(i,j))", A=empty), [-inf, -inf])  # not the fill, so it must be stored
    check(run("y(i) = max(j, A(i,j))", A=sparse(empty, -inf)), [-inf, -inf], False, -inf)
    check(run("y(j) = A(i,j)", A=empty), [])
    check(run("y = A(i,j)", A=sparse(empty)), 0, False)


def test_min_plus() -> None:
    weights = np.array([[inf, 1, 4], [inf, inf, 2], [inf, inf, inf]])
    start = np.array([0, inf, inf])
    once = run("d(j) = e(i) * A(i,j)", "min_plus", e=sparse(start, inf), A=sparse(weights, inf))
    check(once, [inf, 1, 4], [False, True, True], inf)
    both = run("d(i) = a(i) + b(i)", "min_plus", a=sparse([1, inf, inf], inf), b=sparse([2, 3, inf], inf))
    check(both, [1, 3, inf], [True, True, False], inf)


def test_min_plus_on_integers_does_not_overflow() -> None:
    top = np.iinfo(np.int32).max
    weights = sparse([[top, 1], [top, top]], top, "i4")
    check(run("d(j) = e(i) * A(i,j)", "min_plus", e=np.array([5, 6], "i4"), A=weights), [top, 6], [False, True], top)


def test_or_and() -> None:
    A = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool)
    reached = run("y(j) = x(i) * A(i,j)", "or_and", x=sparse([True, False, False], False, "?"), A=sparse(A, False, "?"))
    check(reached, [False, True, False], [False, True, False], False)
    assert reached.values.dtype == np.bool_


def test_repeated_indices() -> None:
    A = np.arange(9.0).reshape(3, 3)
    check(run("y(i) = A(i,i)", A=A), np.diag(A))
    check(run("y = A(i,i)", A=A), np.trace(A))
    check(run("B(i,i) = x(i)", x=v), np.diag(v), np.eye(3, dtype=bool))


def test_broadcast_along_the_left_side() -> None:
    check(run("B(i,j) = x(i) * 2", x=v, sizes={"j": 2}), np.stack([2 * v, 2 * v], 1))
    check(run("B(i,j) = 7", sizes={"i": 2, "j": 2}), np.full((2, 2), 7), False, 7)  # a number alone is the fill
    check(run("B(i,j) = a(j)", a=sparse([0, 1.0]), sizes={"i": 2}), [[0, 1], [0, 1]], [[False, True]])


def test_accumulation() -> None:
    start = np.array([10.0, 20])
    check(run("y(i) += A(i,j) * x(j)", A=sparse(M), x=v, initial=Operand.full(start)), start + M @ v)
    check(run("y(i) += A(i,j) * x(j)", A=sparse(M), x=v), M @ v, [True, False])
    check(run("y(i) += a(i)", a=sparse([1.0, 0, 0]), initial=sparse([0, 2.0, 0])), [1, 2, 0], [True, True, False])
    check(run("y(i) += exp(a(i))", a=sparse([0.0, 0]), initial=sparse([0, 2.0])), [1, 3], [False, True], 1.0)
    check(run("y(i) += a(i)", "min_plus", a=sparse([1, inf], inf), initial=sparse([3, inf], inf)), [1, inf], [True, False], inf)
    check(
        run("B(i,i) += exp(a(i))", a=sparse([0.0, 0]), initial=sparse([[0, 5.0], [0, 0]])),
        [[1, 5], [0, 1]],
        [[True, True], [False, True]],
    )


def test_numbers_are_exact_and_wrap_as_in_numpy() -> None:
    a = np.array([100, 27], "i1")
    check(run("y = a(i)", a=a), 127)
    check(run("y(i) = a(i) * 2", a=a), a * np.int8(2))
    big = np.array([2**53 + 1, 1])
    check(run("y = a(i) * b(i)", a=big, b=big), int(big @ big))
    check(run("y(i) = a(i) + 1j", a=a), a + 1j)
    assert run("y(i) = (1/3) * a(i)", a=np.ones(1, "f4")).values.dtype == np.float32


def test_mttkrp(rng: np.random.Generator) -> None:
    B: NDArray[Any] = rng.integers(-4, 4, (3, 4, 5)) * (rng.random((3, 4, 5)) < 0.3)
    C, D = rng.integers(-4, 4, (4, 2)), rng.integers(-4, 4, (5, 2))
    result = run("A(i,r) = B(i,k,l) * D(l,r) * C(k,r)", B=sparse(B, dtype="i8"), C=C, D=D)
    check(result, np.einsum("ikl,lr,kr->ir", B, D, C), (B != 0).any((1, 2))[:, None])


def test_what_cannot_be_evaluated() -> None:
    with pytest.raises(ShapeError, match=r"x has shape \(3,\), but its indices have extents \(2,\)"):
        run("y(i) = x(i) + z(i)", x=v, z=np.ones(2))
    with pytest.raises(ShapeError, match="the extent of j is not known"):
        run("B(i,j) = x(i)", x=v)
    with pytest.raises(ShapeError, match=r"the initial value has shape \(2,\), but the result has \(3,\)"):
        run("y(i) += x(i)", x=v, initial=Operand.full(np.ones(2)))
    with pytest.raises(CompilerBug, match="every reduction must be explicit, also that over i"):
        evaluate(parse("y = x(i)").assign, {"x": Operand.full(v)}, {"i": 3})
