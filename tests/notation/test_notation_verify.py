"""Broken concrete statements are found."""

from __future__ import annotations

import pytest

from sparseloom.core.errors import CompilerBug
from sparseloom.formats.named import csr
from sparseloom.notation.nodes import Access, Apply, Assign, Forall, IndexVar, Literal, Reduce, Sequence, Stmt, SuchThat, TensorVar, Where
from sparseloom.notation.text import placeholder
from sparseloom.notation.verify import verify
from sparseloom.relations.split import SplitRelation

i, j, i0, i1 = (IndexVar(name) for name in ("i", "j", "i0", "i1"))


def at(name: str, *indices: IndexVar) -> Access:
    return Access(placeholder(name, len(indices)), indices)


y, x, w, s, A = at("y", i), at("x", j), at("w", j), at("s"), at("A", i, j)
spmv = Forall(i, Forall(j, Assign(y, Apply("multiply", (A, x)), "add")))
fill_w = Forall(j, Assign(w, Apply("multiply", (A, x))))
read_w = Forall(j, Assign(y, w, "add"))

GOOD: dict[str, Stmt] = {
    "a loop nest": spmv,
    "a scalar": Assign(s, Literal(1)),
    "a temporary": Forall(i, Where(read_w, fill_w)),
    "a sequence": Forall(i, Sequence((fill_w, read_w))),
    "a split loop": SuchThat(Forall(i0, Forall(i1, Assign(y, at("b", i)))), (SplitRelation(i, i0, i1, 4),)),
    "one variable in two branches": Sequence((spmv, Forall(i, Assign(at("z", i), y)))),
}

BROKEN: dict[str, Stmt] = {
    "j must be bound by a loop or a relation": Forall(i, Assign(y, Apply("multiply", (A, x)), "add")),
    "i must be bound by a loop or a relation": Assign(y, Literal(0)),
    "j must be bound by one loop only": Forall(j, Forall(i, Forall(j, Assign(y, A, "add")))),
    "w must be written before it is read": Forall(i, Where(fill_w, read_w)),
    "y must not be read by the assignment that writes it": Forall(i, Assign(y, Apply("add", (y, Literal(1))))),
    "A must mean one tensor throughout the statement": Forall(
        i, Forall(j, Assign(y, Apply("add", (A, Access(TensorVar("A", 2, csr), (i, j)))), "add"))
    ),
    "A must have one index and one stored mode for each of its 2 modes": Forall(i, Assign(y, Access(A.tensor, (i,)))),
    "every reduction must have become a loop": Forall(i, Assign(y, Reduce("add", (j,), A))),
    "foo must be an operator of core.algebra": Assign(s, Apply("foo", (Literal(1),))),
    "exp must have 1 arguments, not 2": Assign(s, Apply("exp", (Literal(1), Literal(2)))),
    "add must have 2 arguments, not 1": Assign(s, Apply("add", (Literal(1),))),
    "an assignment must accumulate with an operator that has an identity, not divide": Assign(s, Literal(1), "divide"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_sound_statement_passes(name: str) -> None:
    verify(GOOD[name])


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_promise_is_named(promise: str) -> None:
    with pytest.raises(CompilerBug) as caught:
        verify(BROKEN[promise])
    assert str(caught.value).startswith(f"internal error: {promise}\n")
