"""What statements look like, and that the parser reads back what the printer writes."""

from __future__ import annotations

import math

import pytest
from notation.random_statements import RandomStatements

from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Forall, IndexVar, Literal, Reduce, Sequence, SuchThat, Where
from sparseloom.notation.printer import show
from sparseloom.notation.text import parse, placeholder
from sparseloom.relations.split import SplitRelation

i, j, k = (IndexVar(name) for name in "ijk")


def at(name: str, *indices: IndexVar) -> Access:
    return Access(placeholder(name, len(indices)), indices)


@pytest.mark.parametrize("batch", range(10))
def test_what_is_printed_is_read_back(batch: int, seed: int) -> None:
    statements = RandomStatements(seed + batch)
    for _ in range(200):
        assign = statements.assign()
        text = show(assign)
        again = parse(text).assign
        assert again == assign, text
        assert show(again) == text


a, b = at("a"), at("b")

EXPRESSIONS: list[tuple[Expr, str]] = [
    (Apply("multiply", (Apply("add", (at("A", i, j), at("B", i, j))), at("x", j))), "(A(i,j) + B(i,j)) * x(j)"),
    (Apply("subtract", (a, Apply("subtract", (a, b)))), "a - (a - b)"),
    (Apply("divide", (a, Apply("multiply", (a, b)))), "a / (a * b)"),
    (Apply("negative", (Apply("add", (a, b)),)), "-(a + b)"),
    (Apply("negative", (Literal(3),)), "-(3)"),
    (Apply("power", (Literal(-3), Literal(-2))), "(-3)**-2"),
    (Apply("power", (Apply("negative", (a,)), b)), "(-a)**b"),
    (Apply("less", (Apply("less", (a, b)), b)), "(a < b) < b"),
    (Apply("add", (a, Literal(-1))), "a + -1"),
    (Apply("minimum", (a, b)), "minimum(a, b)"),
    (Apply("add", (a, b), zero=math.inf), "a + b"),
    (Reduce("add", (j, k), at("T", i, j, k)), "sum({j,k}, T(i,j,k))"),
    (Reduce("maximum", (j,), at("x", j)), "max(j, x(j))"),
    (Reduce("logical_xor", (j,), Literal(True)), "xor({j}, True)"),
    (at("exp", i), "exp[i]"),
    (Literal(1 - 2j), "complex(1.0, -2.0)"),
    (Literal(math.nan), "nan"),
    (i, "i"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("expression", "text"), EXPRESSIONS, ids=[text for _, text in EXPRESSIONS])
def test_expression(expression: Expr, text: str) -> None:
    assert show(expression) == text


def test_loop_nest() -> None:
    w = at("w", k)
    producer = Forall(k, Assign(w, Apply("multiply", (at("A", i, k), at("x", k)))))
    consumer = Forall(j, Assign(at("y", i), Access(w.tensor, (j,)), "add"))
    i0, i1 = IndexVar("i0"), IndexVar("i1")
    relation = SplitRelation(i, i0, i1, 32)
    nest = SuchThat(Forall(i0, Forall(i1, Where(consumer, producer))), (relation,))
    assert show(nest) == "\n".join(
        [
            "forall i0",
            "  forall i1",
            "    forall j",
            "      y(i) += w(j)",
            "    where",
            "      forall k",
            "        w(k) = A(i,k) * x(k)",
            "such that",
            f"  {relation}",
        ]
    )


def test_sequence_and_other_accumulations() -> None:
    first = Forall(i, Assign(at("y", i), Literal(0)))
    second = Forall(i, Forall(j, Assign(at("y", i), at("A", i, j), "maximum")))
    assert show(Sequence((first, second))) == "\n".join(
        ["sequence", "  forall i", "    y(i) = 0", "  forall i", "    forall j", "      y(i) max= A(i,j)"]
    )
