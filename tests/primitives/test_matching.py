"""Expressions are found inside others up to associativity and commutativity."""

from __future__ import annotations

import pytest

from sparseloom.core.dtypes import FLOAT64, INT32
from sparseloom.formats.named import dense
from sparseloom.notation.dtyping import dtype_of
from sparseloom.notation.nodes import Access, Apply, Expr, IndexVar, TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.text import parse
from sparseloom.schedule.matching import distributes, take_out

W = Access(TensorVar("w", 1, dense(1)), (IndexVar("i"),))


def expression(text: str) -> Expr:
    return parse(f"result(i) = {text}").assign.rhs


@pytest.mark.parametrize(
    ("whole", "part", "rest"),
    [
        ("b(i) * c(i) * d(i)", "d(i) * b(i)", "w(i) * c(i)"),
        ("b(i) * (c(i) * d(i))", "b(i) * c(i)", "w(i) * d(i)"),
        ("b(i) + c(i) + d(i)", "c(i) + d(i)", "b(i) + w(i)"),
        ("sqrt(b(i) * c(i))", "c(i) * b(i)", "sqrt(w(i))"),
        ("b(i) * b(i)", "b(i)", "w(i) * w(i)"),
        ("b(i) * c(i) * b(i) * c(i)", "b(i) * c(i)", "w(i) * w(i)"),
        ("b(i) - c(i)", "b(i) - c(i)", "w(i)"),
        ("minimum(b(i), c(i))", "minimum(c(i), b(i))", "w(i)"),
    ],
)
def test_it_occurs(whole: str, part: str, rest: str) -> None:
    match = take_out(expression(whole), expression(part), W)
    assert match is not None
    assert show(match.rest) == rest


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        ("b(i) - c(i)", "c(i) - b(i)"),
        ("b(i) * c(i)", "b(i) * b(i)"),
        ("b(i) + c(i)", "b(i) * c(i)"),
        ("b(i)", "b(j)"),
        ("b(i) / c(i) / d(i)", "c(i) / d(i)"),
    ],
)
def test_it_does_not_occur(whole: str, part: str) -> None:
    assert take_out(expression(whole), expression(part), W) is None


def test_parts_that_are_computed_apart_keep_the_precision_of_the_whole() -> None:
    b, c = (Access(TensorVar(name, 1, dense(1), INT32), (IndexVar("i"),)) for name in "bc")
    d = Access(TensorVar("d", 1, dense(1), FLOAT64), (IndexVar("i"),))
    match = take_out(Apply("multiply", (b, d, c)), Apply("multiply", (b, c)), W)
    assert match is not None
    assert dtype_of(match.found) == FLOAT64
    assert show(match.found) == "as_float64(b(i)) * c(i)"


@pytest.mark.parametrize(
    ("whole", "reduction", "holds"),
    [
        ("w(i)", "logical_xor", True),
        ("w(i) * b(i)", "add", True),
        ("-w(i) / 2", "add", True),
        ("w(i) / b(i)", "add", False),
        ("w(i) / 0", "add", False),
        ("b(i) / w(i)", "add", False),
        ("w(i) + b(i)", "add", False),
        ("w(i) * w(i)", "add", False),
        ("w(i) + b(i)", "minimum", True),
        ("w(i) * b(i)", "maximum", False),
        ("maximum(w(i), b(i))", "minimum", True),
        ("sqrt(w(i))", "add", False),
    ],
)
def test_what_distributes(whole: str, reduction: str, holds: bool) -> None:
    assert distributes(expression(whole), W, reduction, FLOAT64) is holds


def test_the_identity_of_a_minimum_must_survive_the_sum() -> None:
    assert distributes(expression("w(i) + b(i)"), W, "minimum", FLOAT64)
    assert not distributes(expression("w(i) + b(i)"), W, "minimum", INT32)


def test_conversions_of_dtype_are_seen_through() -> None:
    x = expression("x(i)")
    converted = Apply("as_float64", (x,))
    match = take_out(Apply("multiply", (converted, expression("b(i)"))), x, W)
    assert match is not None
    assert match.found == converted
