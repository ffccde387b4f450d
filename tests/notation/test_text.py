"""What statements mean: the tree that each spelling gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparseloom.core.algebra import SEMIRINGS, Semiring
from sparseloom.core.errors import DTypeError, NotationError
from sparseloom.formats.named import csr, dense
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, IndexVar, Literal, Reduce, TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.terms import close_over, combine, free_variables, tensors_of
from sparseloom.notation.text import declare, parse, placeholder

i, j, k = (IndexVar(name) for name in "ijk")


def at(name: str, *indices: IndexVar) -> Access:
    return Access(placeholder(name, len(indices)), indices)


a, b, c, d = (at(name) for name in "abcd")
A, x = at("A", i, j), at("x", j)

RIGHT_SIDES: list[tuple[str, Expr]] = [
    ("a + b + c", Apply("add", (a, b, c))),
    ("(a + b) + c", Apply("add", (a, b, c))),
    ("a + (b + c)", Apply("add", (a, Apply("add", (b, c))))),
    ("a - b - c", Apply("subtract", (Apply("subtract", (a, b)), c))),
    ("a - b + c + d", Apply("add", (Apply("subtract", (a, b)), c, d))),
    ("a * b * c / d", Apply("divide", (Apply("multiply", (a, b, c)), d))),
    ("a + b * c", Apply("add", (a, Apply("multiply", (b, c))))),
    ("a ** b ** c", Apply("power", (a, Apply("power", (b, c))))),
    ("-a ** b", Apply("negative", (Apply("power", (a, b)),))),
    ("a ** -b", Apply("power", (a, Apply("negative", (b,))))),
    ("-a * b", Apply("multiply", (Apply("negative", (a,)), b))),
    ("+a", a),
    ("-3 * a", Apply("multiply", (Literal(-3), a))),
    ("-3 ** a", Apply("negative", (Apply("power", (Literal(3), a)),))),
    ("-(3)", Apply("negative", (Literal(3),))),
    ("1.5e-3", Literal(0.0015)),
    (".5", Literal(0.5)),
    ("2.", Literal(2.0)),
    ("1j", Literal(1j)),
    ("complex(1, -2)", Literal(1 - 2j)),
    ("-inf", Literal(-math.inf)),
    ("True", Literal(True)),
    ("a + b < c * d", Apply("less", (Apply("add", (a, b)), Apply("multiply", (c, d))))),
    ("(a < b) == c", Apply("equal", (Apply("less", (a, b)), c))),
    ("a and b or c", Apply("logical_or", (Apply("logical_and", (a, b)), c))),
    ("a or b and c", Apply("logical_or", (a, Apply("logical_and", (b, c))))),
    ("a or b or c", Apply("logical_or", (a, b, c))),
    ("not a == b", Apply("logical_not", (Apply("equal", (a, b)),))),
    ("not(a) == b", Apply("logical_not", (Apply("equal", (a, b)),))),
    ("(not a) == b", Apply("equal", (Apply("logical_not", (a,)), b))),
    ("not a and b", Apply("logical_and", (Apply("logical_not", (a,)), b))),
    ("not not a", Apply("logical_not", (Apply("logical_not", (a,)),))),
    ("2 * not(a)", Apply("multiply", (Literal(2), Apply("logical_not", (a,))))),
    ("a < b and b != c", Apply("logical_and", (Apply("less", (a, b)), Apply("not_equal", (b, c))))),
    ("and(a, b) and or(c, d)", Apply("logical_and", (a, b, Apply("logical_or", (c, d))))),
    ("any(j, x(j) and not x(j))", Reduce("logical_or", (j,), Apply("logical_and", (x, Apply("logical_not", (x,)))))),
    ("a // b % c * d", Apply("multiply", (Apply("mod", (Apply("floordiv", (a, b)), c)), d))),
    ("-a % b", Apply("mod", (Apply("negative", (a,)), b))),
    ("a % 2 == 0 and b", Apply("logical_and", (Apply("equal", (Apply("mod", (a, Literal(2))), Literal(0))), b))),
    ("remainder(a, floor_divide(b, c))", Apply("mod", (a, Apply("floordiv", (b, c))))),
    ("not[] + and[]", Apply("add", (at("not"), at("and")))),
    ("abs(a)", Apply("absolute", (a,))),
    ("min(a, b)", Apply("minimum", (a, b))),
    ("max(a, b, c)", Apply("maximum", (a, b, c))),
    ("minimum(minimum(a, b), c)", Apply("minimum", (a, b, c))),
    ("plus(a, b) + c", Apply("add", (a, b, c))),
    ("where(a > 0, a, 0)", Apply("where", (Apply("greater", (a, Literal(0))), a, Literal(0)))),
    ("max(j, A(i,j) * x(j))", Reduce("maximum", (j,), Apply("multiply", (A, x)))),
    ("sum({i,j}, A[i, j])", Reduce("add", (i, j), A)),
    ("any(j, x(j))", Reduce("logical_or", (j,), x)),
    ("logical_and(j, x(j))", Reduce("logical_and", (j,), x)),
    ("sum({j}, 3)", Reduce("add", (j,), Literal(3))),
    ("a() + b[]", Apply("add", (a, b))),
    ("exp[i]", at("exp", i)),
    ("inf[]", at("inf")),
]


@pytest.mark.parametrize(("text", "expected"), RIGHT_SIDES, ids=[text for text, _ in RIGHT_SIDES])
def test_right_side(text: str, expected: Expr) -> None:
    lhs = "y(i)" if "exp[i]" in text else "y"
    assert parse(f"{lhs} = {text}").assign.rhs == expected


def test_numbers_keep_their_type() -> None:
    assert [type(parse(f"y = {text}").assign.rhs.value) for text in ("2", "2.0", "2j", "True")] == [int, float, complex, bool]  # type: ignore[attr-defined]


def test_left_side_and_accumulation() -> None:
    assert parse("y[i] += A(i,j)").assign == Assign(at("y", i), A, "add")
    assert parse("B(i,i) = A(i,j)").assign.lhs.indices == (i, i)
    assert parse("s = x(j)").assign.lhs == at("s")


def test_operands_come_in_order_of_appearance() -> None:
    parsed = parse("y(i) = B(i,j) * x(j) + A(i,k) * x(k) * alpha")
    assert (parsed.result, parsed.operands) == ("y", ("B", "x", "A", "alpha"))


def test_a_known_tensor_hides_the_function_of_its_name() -> None:
    assert parse("y(i) = exp(i) * 2", tensors=["exp"]).operands == ("exp",)
    assert parse("y = inf * 2", tensors=["inf"]).operands == ("inf",)
    assert parse("max(i) = max(j, A(i,j))").assign.rhs == Reduce("maximum", (j,), A)


def test_names_may_be_any_identifier() -> None:
    assert parse("Größe_2(ι) = ψ(ι) * lambda").operands == ("ψ", "lambda")


def test_a_long_sum_is_one_flat_node() -> None:
    rhs = parse("y(i) = " + " + ".join(f"t{n}(i)" for n in range(1000))).assign.rhs
    assert isinstance(rhs, Apply) and len(rhs.args) == 1000


def test_declare_replaces_only_what_is_declared() -> None:
    sparse = TensorVar("A", 2, csr, np.dtype("f4"))
    declared = declare(parse("y(i) = A(i,j) * x(j) + A(i,k)").assign, {"A": sparse})
    assert tensors_of(declared) == (placeholder("y", 1), sparse, placeholder("x", 1))


CLOSED = [
    ("a(i) = B(i,j) + c(j) - d(i)", "a(i) = sum(j, B(i,j)) + sum(j, c(j)) - d(i)"),
    ("y(i) = (A(i,j) + B(i,j)) * x(j)", "y(i) = sum(j, (A(i,j) + B(i,j)) * x(j))"),
    ("y(i) = b(i) - (A(i,j) * x(j) - c(i))", "y(i) = b(i) - (sum(j, A(i,j) * x(j)) - c(i))"),
    ("y = -A(i,j)", "y = -sum({i,j}, A(i,j))"),
    ("y(i) = max(j, A(i,j)) * x(k)", "y(i) = sum(k, max(j, A(i,j)) * x(k))"),
    ("A(i,j) = b(i)", "A(i,j) = b(i)"),
    ("y(i) = exp(A(i,j))", "y(i) = sum(j, exp(A(i,j)))"),
    ("y(i) = max(j, A(i,j)) + min(j, A(i,j))", "y(i) = max(j, A(i,j)) + min(j, A(i,j))"),
    ("B(i,i) = A(i,j)", "B(i,i) = sum(j, A(i,j))"),
    ("y = 2", "y = 2"),
]


@pytest.mark.parametrize(("text", "closed"), CLOSED, ids=[text for text, _ in CLOSED])
def test_implicit_reductions(text: str, closed: str) -> None:
    once = close_over(parse(text).assign)
    assert show(once) == closed
    assert close_over(once) == once
    assert set(free_variables(once.rhs)) <= set(once.lhs.indices)


def test_a_semiring_gives_plus_and_times_their_meaning() -> None:
    closed = close_over(parse("d(j) += e(i) * A(i,j) + b(j)").assign, SEMIRINGS["min_plus"])
    product = Apply("add", (at("e", i), at("A", i, j)), zero=math.inf)
    assert closed == Assign(at("d", j), Apply("minimum", (Reduce("minimum", (i,), product), at("b", j))), "minimum")


def test_the_zero_of_a_semiring_follows_the_operands() -> None:
    declarations = {"A": TensorVar("A", 2, csr, np.dtype("i2")), "x": TensorVar("x", 1, dense(1), np.dtype("i4"))}
    declared = declare(parse("y(i) = A(i,j) * x(j)").assign, declarations)
    closed = close_over(declared, SEMIRINGS["min_plus"])
    assert closed.rhs.body.zero == 2**31 - 1  # type: ignore[attr-defined]
    with pytest.raises(DTypeError, match="the semiring's zero inf is not a value of type int32, to which the operands promote"):
        close_over(declared, Semiring("min", "plus", zero=math.inf))


def test_plus_times_is_ordinary_arithmetic() -> None:
    assign = parse("y(i) = A(i,j) * x(j) - b(i) / 2").assign
    assert close_over(assign, SEMIRINGS["plus_times"]) == close_over(assign)


@pytest.mark.parametrize(
    ("text", "symbol", "column"), [("y(i) = a(i) - b(i)", "-", 7), ("y(i) = c(i) * (a(i) / b(i))", "/", 15), ("y(i) = -a(i)", "-", 7)]
)
def test_a_semiring_has_no_inverses(text: str, symbol: str, column: int) -> None:
    with pytest.raises(NotationError) as caught:
        close_over(parse(text).assign, SEMIRINGS["min_plus"])
    caret = " " * (column + 2) + "^"
    what = f"'{symbol}' has no meaning in the semiring (minimum, add)"
    assert str(caught.value) == f"{what}\n  {text}\n{caret}\nhelp: a semiring has + and * only"


def test_combine_keeps_the_order_of_evaluation() -> None:
    assert combine("add", Apply("add", (a, b)), c) == Apply("add", (a, b, c))
    assert combine("add", a, Apply("add", (b, c))) == Apply("add", (a, Apply("add", (b, c))))
    assert combine("subtract", Apply("subtract", (a, b)), c) == Apply("subtract", (Apply("subtract", (a, b)), c))
