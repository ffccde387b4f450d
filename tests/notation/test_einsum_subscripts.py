"""Einsum subscripts mean what they mean in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from sparseloom.core.errors import NotationError
from sparseloom.notation.einsum import broadcast, parse_einsum
from sparseloom.notation.interpret import Operand, evaluate
from sparseloom.notation.nodes import Access
from sparseloom.notation.printer import show
from sparseloom.notation.terms import close_over

CASES: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,j->i", ((2, 3), (3,))),
    ("ij,j", ((2, 3), (3,))),
    (" i j , j k -> i k ", ((2, 3), (3, 4))),
    ("ij,jk,kl", ((2, 3), (3, 4), (4, 2))),
    ("ba", ((2, 3),)),
    ("bA", ((2, 3),)),
    ("ij->", ((2, 3),)),
    ("ii", ((3, 3),)),
    ("ii->i", ((3, 3),)),
    ("iij->ji", ((3, 3, 2),)),
    ("i,i->i", ((4,), (4,))),
    ("i,j->ji", ((4,), (3,))),
    ("ij,->ij", ((2, 3), ())),
    ("", ((),)),
    (",", ((), ())),
    ("->", ((),)),
    ("...", ((2, 3),)),
    ("...i->...", ((2, 3, 4),)),
    ("i...->...i", ((2, 3, 4),)),
    ("i...", ((2, 3),)),
    ("...ij,...jk->...ik", ((5, 2, 3), (5, 3, 4))),
    ("...ij,...jk", ((5, 2, 3), (3, 4))),
    ("...,...", ((2, 3), (3,))),
    ("...i,...i", ((2, 1, 3), (5, 3))),
    ("...i->i", ((3,),)),
    ("i->...i", ((3,),)),
    ("i,i", ((3,), (1,))),
    ("ij,jk->ik", ((2, 1), (3, 4))),
    ("ii,i->i", ((1, 1), (3,))),
    ("Tij,Tj->Ti", ((2, 3, 4), (2, 4))),
    ("ij,j->i", ((0, 3), (3,))),
    ("ij,j->i", ((2, 0), (0,))),
    ("ikl,lj,kj->ij", ((2, 3, 4), (4, 5), (3, 5))),
]


def run(subscripts: str, arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Einsum by the dense oracle."""
    assign, squeezed = broadcast(parse_einsum(subscripts, [array.ndim for array in arrays]), [array.shape for array in arrays])
    operands = {f"op{n}": Operand.full(array.squeeze(modes)) for n, (array, modes) in enumerate(zip(arrays, squeezed, strict=True))}
    sizes = {}
    for access in [assign.rhs] if isinstance(assign.rhs, Access) else assign.rhs.args:  # type: ignore[attr-defined]
        sizes.update(zip((var.name for var in access.indices), operands[access.tensor.name].values.shape, strict=True))
    return evaluate(close_over(assign), operands, sizes, np.dtype(np.int64)).values.astype(np.int64)


@pytest.mark.parametrize(("subscripts", "shapes"), CASES, ids=[f"{subscripts} {shapes}" for subscripts, shapes in CASES])
def test_as_numpy(subscripts: str, shapes: tuple[tuple[int, ...], ...], rng: np.random.Generator) -> None:
    arrays = [rng.integers(-9, 9, shape) for shape in shapes]
    np.testing.assert_array_equal(run(subscripts, arrays), np.einsum(subscripts, *arrays), strict=True)


def test_statement() -> None:
    assert show(parse_einsum("...ij,j...", (3, 2))) == "T(e0,i) = op0(e0,i,j) * op1(j,e0)"
    assert show(parse_einsum("T->T", (1,))) == "T(T1) = op0(T1)"


def test_broadcast_names_the_modes_to_squeeze() -> None:
    assign, squeezed = broadcast(parse_einsum("...i,...i", (3, 2)), ((2, 1, 3), (5, 3)))
    assert squeezed == ((1,), ())
    assert show(assign) == "T(e1,e0) = op0(e1,i) * op1(e0,i)"


LETTERS = "help: labels are letters; '...' stands for further dimensions"
MORE = "help: '...' stands for further dimensions"
REFUSALS = [
    ("ij->ii", (2,), "the output has the label 'i' twice\n  ij->ii\n      ^"),
    ("ij->k", (2,), "the output's label 'k' is not in any operand\n  ij->k\n      ^"),
    ("i.j", (2,), f"'.' is not a label\n  i.j\n   ^\n{LETTERS}"),
    ("i...j...", (2,), "there are two ellipses in one group\n  i...j...\n       ^"),
    ("ij", (1,), "operand 0 has order 1, but its labels are 2\n  ij\n  ^"),
    ("i,ij", (1, 3), f"operand 1 has order 3, but its labels are 2\n  i,ij\n    ^\n{MORE}"),
    ("i->j->k", (1,), f"'-' is not a label\n  i->j->k\n      ^\n{LETTERS}"),
    ("i1", (2,), f"'1' is not a label\n  i1\n   ^\n{LETTERS}"),
    ("...i->i", (2,), "the output lacks the dimensions of the ellipsis\n  ...i->i\n        ^\nhelp: write '...' in the output"),
]


@pytest.mark.parametrize(("subscripts", "orders", "expected"), REFUSALS, ids=[subscripts for subscripts, _, _ in REFUSALS])
def test_refusal(subscripts: str, orders: tuple[int, ...], expected: str) -> None:
    with pytest.raises(ValueError):
        np.einsum(subscripts, *(np.ones((2,) * order) for order in orders))
    with pytest.raises(NotationError) as caught:
        parse_einsum(subscripts, orders)
    assert str(caught.value) == f"cannot read the subscripts: {expected}"


def test_the_number_of_operands_must_fit() -> None:
    with pytest.raises(NotationError) as caught:
        parse_einsum("i,j", (1, 1, 1))
    assert str(caught.value) == "the subscripts 'i,j' are for 2 operands, but there are 3"
