"""Trees are walked and rewritten as far as a question needs, and answers are remembered for the very object that was asked about."""

from __future__ import annotations

from sparseloom.core.once import once_for_each
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.notation.nodes import Access, Assign, Expr, Forall, IndexVar, Stmt
from sparseloom.notation.text import parse

STATEMENT = parse("y(i) = sum(j, A(i,j) * x(j)) + sqrt(b(i)) + 2").assign
LOOP = Forall(IndexVar("i"), Forall(IndexVar("j"), STATEMENT))


def test_nodes_of_one_kind_come_in_the_order_of_all() -> None:
    assert list(walk(STATEMENT, Expr)) == [n for n in walk(STATEMENT) if isinstance(n, Expr | Assign)]
    assert list(walk(LOOP, Stmt)) == [LOOP, LOOP.body, STATEMENT]


def test_a_rule_for_statements_sees_no_expressions() -> None:
    seen: list[Node] = []
    assert rewrite(LOOP, lambda n: seen.append(n), Stmt) is LOOP
    assert seen == [STATEMENT, LOOP.body, LOOP]
    outer = rewrite(LOOP, lambda n: n.body if isinstance(n, Forall) and n.var.name == "j" else None, Stmt)
    assert outer == Forall(IndexVar("i"), STATEMENT) and outer.body is STATEMENT


def test_answers_are_remembered_by_identity_and_not_for_ever() -> None:
    asked: list[Access] = []

    def name(access: Access) -> str:
        asked.append(access)
        return access.tensor.name

    remembered = once_for_each(name, most=2)
    twins = [Access(STATEMENT.lhs.tensor, STATEMENT.lhs.indices) for _ in range(2)]
    assert [remembered(one) for one in (*twins, *twins)] == ["y"] * 4
    assert len(asked) == 2 and asked[0] is twins[0] and asked[1] is twins[1]
    remembered(STATEMENT.lhs)  # there is room for two, so all are forgotten
    remembered(twins[0])
    assert len(asked) == 4
