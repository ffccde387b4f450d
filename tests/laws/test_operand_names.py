"""Any identifier names an operand, in whichever way it is passed; options of a call never swallow one without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.errors import NotationError

X = np.array([1.0, 2.0, 3.0])
OPTIONS = ("format", "dtype", "semiring", "sizes", "target", "out", "workspace")
NAMES = (
    "self", "text", "operands", "named", "args", "schedule", "formats", "i_block", "lambda", "int", "NULL", "π", "_", "exp", "inf", "True",
)  # fmt: skip


@pytest.mark.parametrize("name", (*OPTIONS, *NAMES))
def test_any_name_goes_by_position_and_in_a_dict(name: str) -> None:
    statement = f"y_(i) = 3 * {name}[i]"
    kernel = sl.program(statement)
    into = np.zeros(3)
    for got in (
        sl.evaluate(statement, X),
        sl.evaluate(statement, {name: X}),
        sl.evaluate(statement, {name: X}, out=into),
        kernel(X),
        kernel({name: X}),
        kernel({name: X}, out=into),
        kernel.bind({name: X})(),
        kernel.bind({name: X}, out=into)(),
        kernel.assemble({name: X}),
    ):
        np.testing.assert_array_equal(got.to_numpy(), 3 * X)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_but_that_of_an_option_goes_by_name(name: str) -> None:
    statement = f"y_(i) = 3 * {name}[i]"
    np.testing.assert_array_equal(sl.evaluate(statement, **{name: X}).to_numpy(), 3 * X)
    np.testing.assert_array_equal(sl.program(statement)(**{name: X}).to_numpy(), 3 * X)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_was_meant_as_an_operand_is_refused(name: str) -> None:
    statement = f"y_(i) = 3 * {name}(i)"
    with pytest.raises(NotationError) as refusal:
        sl.evaluate(statement, **{name: X})
    assert str(refusal.value) == (
        f"{name}= is an option of the call, so it cannot pass the operand {name} of {statement}\n"
        f"  help: pass the operands by position, or in a dict: {{'{name}': ..., ...}}"
    )


def test_a_kernel_says_the_same_of_its_own_option() -> None:
    kernel = sl.program("y(i) = 3 * out(i)")
    for call in (kernel, kernel.bind):
        with pytest.raises(NotationError, match=r"out= is an option of the call.*\n  help: pass the operands by position, or in a dict"):
            call(out=X)


def test_a_result_may_be_called_as_an_option() -> None:
    np.testing.assert_array_equal(sl.evaluate("out(i) = 2 * x(i)", x=X, out=np.zeros(3)).to_numpy(), 2 * X)
    np.testing.assert_array_equal(sl.evaluate("dtype(i) += x(i)", {"x": X, "dtype": X}).to_numpy(), 2 * X)


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "both ways": (lambda: sl.evaluate("y(i) = a(i) * b(i)", {"a": X}, X), "operands go in one dict, or by position, but not both"),
    "twice": (lambda: sl.evaluate("y(i) = a(i)", {"a": X}, a=X), "a was given twice, in the dict and by name"),
    "no name": (lambda: sl.evaluate("y(i) = a(i)", {1: X}), "operands in a dict go by their names, and 1 is a int"),
    "not there": (lambda: sl.evaluate("y(i) = a(i)", {"a": X, "b": X}), "there is no operand 'b'"),
    "no text": (lambda: sl.evaluate(["y(i) = a(i)"], X), "a statement is text such as"),  # type: ignore[arg-type]
    "strange target": (lambda: sl.evaluate("y(i) = a(i)", X, target=X), "there is no target"),  # type: ignore[arg-type]
    "strange workspace": (lambda: sl.evaluate("y(i) = a(i)", X, workspace=X), "there is no workspace"),  # type: ignore[arg-type]
    "strange semiring": (lambda: sl.evaluate("y(i) = a(i)", X, semiring=[X]), "there is no semiring"),  # type: ignore[arg-type]
    "strange sizes": (lambda: sl.evaluate("y(i) = a(i)", X, sizes=[3]), "sizes is a mapping from variables to extents"),  # type: ignore[arg-type]
    "strange size": (lambda: sl.evaluate("y(i) = a(i)", X, sizes={"i": [3]}), "sizes says that i runs to a list"),  # type: ignore[dict-item]
    "no variable": (lambda: sl.evaluate("y(i) = a(i)", X, sizes={3: 3}), "sizes names variables, and 3 is a int"),  # type: ignore[dict-item]
    "enormous size": (lambda: sl.evaluate("y(i,k) = a(i)", X, sizes={"k": 2**70}), r"sizes says that k runs to 2\*\*63 or further"),
    "dtype": (lambda: sl.evaluate("y(i) = a(i)", X, dtype="(f8"), r"'\(f8' is not a value type"),
    "dtype of no letters": (lambda: sl.evaluate("y(i) = a(i)", X, dtype="\ud800"), "is not a value type"),
}


@pytest.mark.parametrize("case", CALLS)
def test_strange_calls_are_refused_in_our_own_words(case: str) -> None:
    call, why = CALLS[case]
    with pytest.raises(sl.SparseloomError, match=why):
        call()


def test_operands_mixed_by_name_and_in_a_dict() -> None:
    got = sl.evaluate("y(i) = a(i) * out(i)", {"out": X}, a=X)
    np.testing.assert_array_equal(got.to_numpy(), X * X)


def test_a_dict_that_changes_between_calls_is_read_anew() -> None:
    kernel = sl.program("y(i) = 2 * a(i)")
    given = {"a": X}
    np.testing.assert_array_equal(kernel(given).to_numpy(), 2 * X)
    given["a"] = X + 1
    np.testing.assert_array_equal(kernel(given).to_numpy(), 2 * X + 2)
