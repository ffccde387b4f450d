"""Long and deep statements: computed up to a limit, and refused beyond it at once, as text and as Python's expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.errors import NotationError
from sparseloom.notation.syntax import DEEPEST, LONGEST
from sparseloom.notation.tokens import LONGEST_NAME, MOST_TOKENS
from sparseloom.plan.problem import MOST_SPARSE

X = np.array([1.0, 2.0, -1.0])
(i,) = sl.indices("i")


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize(("symbol", "expected"), [("+", 350 * X), ("*", X**350)])
def test_350_terms(symbol: str, expected: np.ndarray, target: str) -> None:
    text = "y(i) = " + f" {symbol} ".join(["x(i)"] * 350)
    np.testing.assert_allclose(sl.evaluate(text, x=X, target=target).to_numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["bool", "int8", "complex64"])
def test_350_terms_of_other_dtypes(dtype: str) -> None:
    x = np.array([1, 0, 1], dtype)
    text = "y(i) = " + " + ".join(["x(i)"] * 350)
    np.testing.assert_array_equal(sl.evaluate(text, x=x).to_numpy(), (x * np.array(350).astype(dtype)).astype(dtype))


def test_1000_operands() -> None:
    operands = {f"t{k}": X + k for k in range(1000)}
    text = "y(i) = " + " + ".join(f"{name}(i)" for name in operands)
    np.testing.assert_array_equal(sl.evaluate(text, operands).to_numpy(), 1000 * X + sum(range(1000)))


def test_many_sparse_operands_are_merged() -> None:
    operands = {f"t{k}": sl.asarray(np.eye(3)[k % 3] * (k + 1)).to("s") for k in range(60)}
    text = "y(i) = " + " + ".join(f"{name}(i)" for name in operands)
    expected = sum((t.to_numpy() for t in operands.values()), np.zeros(3))
    np.testing.assert_array_equal(sl.evaluate(text, operands).to_numpy(), expected)


def test_too_many_sparse_operands_are_refused() -> None:
    sparse = sl.asarray(X).to("s")
    text = "y(i) = " + " + ".join(["x(i)"] * (MOST_SPARSE + 1))
    with pytest.raises(NotationError, match="reads sparse operands 501 times, and 500 is the limit\n  help: compute it in several"):
        sl.evaluate(text, x=sparse)


def test_int8_and_numbers_in_a_long_sum_keep_the_dtype_that_they_have_in_turn() -> None:
    narrow, single = np.array([3], np.int8), np.array([0.1], np.float32)
    text = "y(i) = a(i) * 0.5" + " + b(i)" * 300
    expected = narrow * 0.5
    for _ in range(300):
        expected = expected + single
    got = sl.evaluate(text, a=narrow, b=single).to_numpy()
    assert got.dtype == expected.dtype == np.float64
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" + ".join(["x(i)"] * (LONGEST + 1)), f"it has more than {LONGEST} numbers and accesses"),
        ("x(i)+" * 200_000, "it is too long" if 5 * LONGEST > MOST_TOKENS else f"it has more than {LONGEST}|it is too long"),
        ("(" * 100_000, f"it is nested more than {DEEPEST} deep|it is too long"),
        (" - ".join(["x(i)"] * 350), f"it is nested more than {DEEPEST} deep"),
        ("sin(" * 200 + "x(i)" + ")" * 200, f"it is nested more than {DEEPEST} deep"),
        ("x" * (LONGEST_NAME + 1), "the name is too long"),
        ("x(i) + " + "1" * 100_000, "the number does not fit in 64 bits"),
    ],
)
def test_beyond_the_limits_text_is_refused_in_a_few_words(text: str, why: str) -> None:
    with pytest.raises(NotationError, match=why) as refusal:
        sl.evaluate(f"y(i) = {text}", x=X)
    assert len(str(refusal.value)) < 1000
    assert "help: " in str(refusal.value)


def _repeated(step: Callable[[Any], Any], count: int) -> Any:
    made = sl.asarray(X, name="x")[i]
    for _ in range(count):
        made = step(made)
    return made


def test_python_expressions_of_350_terms() -> None:
    y = sl.zeros(3)
    x = sl.asarray(X, name="x")
    y[i] = _repeated(lambda e: e + x[i], 349)
    np.testing.assert_array_equal(y.to_numpy(), 350 * X)


@pytest.mark.parametrize(
    ("step", "count", "why"),
    [
        (lambda e: e - 1, 1000, f"nested more than {DEEPEST} deep"),
        (lambda e: 1 + e, 1000, f"nested more than {DEEPEST} deep"),
        (sl.sin, 1000, f"nested more than {DEEPEST} deep"),
        (lambda e: -e, 1000, f"nested more than {DEEPEST} deep"),
        (lambda e: e + e, 1000, f"more than {LONGEST} numbers and accesses"),
        (lambda e: sl.where(e > 0, e, 1), 1000, f"more than {LONGEST} numbers and accesses"),
        (lambda e: e + 1, 10_000, f"more than {LONGEST} numbers and accesses"),
        (lambda e: sl.sum(sl.IndexVar("j"), e), 1000, f"nested more than {DEEPEST} deep"),
    ],
)
def test_beyond_the_limits_python_expressions_are_refused(step: Callable[[Any], Any], count: int, why: str) -> None:
    with pytest.raises(NotationError, match=why):
        _repeated(step, count)


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize(
    "text", [" - ".join(["x(i)"] * 80), "-" * 79 + "x(i)", "sin(" * 79 + "x(i)" + ")" * 79, "x(i) + (" * 79 + "x(i)" + ")" * 79]
)
def test_what_is_as_deep_as_allowed_compiles(text: str, target: str) -> None:
    assert sl.evaluate(f"y(i) = {text}", x=X, target=target).shape == (3,)
