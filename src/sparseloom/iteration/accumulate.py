"""``R op= expr`` into a sparse result: entries cannot be added to storage that is there, so the result is made anew.

    R(i,j) += A(i,k) * B(k,j)    ==>    R(i,j) = R_initial(i,j) + sum(k, A(i,k) * B(k,j))

What R held before is an operand like any other, so that its entries stay, also where the right side has none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import DType
from sparseloom.core.errors import NotationError
from sparseloom.core.names import Names
from sparseloom.iteration.nests import join_reductions
from sparseloom.notation.contents import identifiers_in
from sparseloom.notation.dtyping import dtype_of, fill_of
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, TensorVar
from sparseloom.notation.printer import show


def merges_initial(assign: Assign) -> bool:
    """Whether a statement adds to a sparse result. A dense one is added to in place."""
    return assign.op is not None and not assign.lhs.tensor.format.is_dense


def name_initial(assign: Assign, initial: TensorVar) -> TensorVar:
    """What the result held before, under a name of its own."""
    taken = identifiers_in(assign)
    return replace(initial, name=Names(taken).fresh(f"{assign.lhs.tensor.name}_initial"))


def merge_initial(assign: Assign, initial: TensorVar) -> Assign:
    """The statement that makes the result from what it held before. It is computed in the result's dtype."""
    lhs, dtype = assign.lhs, assign.lhs.tensor.dtype
    if assign.op is None:
        return assign
    if len(set(lhs.indices)) < len(lhs.indices):
        raise _only_diagonal(assign)
    before, added = _in(Access(initial, lhs.indices), dtype), _in(join_reductions(assign.rhs), dtype)
    known = fill_of(assign.rhs)
    if known is not None and algebra.annihilates(assign.op, 1, known):
        raise _all_decided(assign, known)
    fill = initial.fill if known is None else algebra.compute(assign.op, (initial.fill, known), dtype)
    result = replace(lhs.tensor, fill=np.asarray(fill).astype(dtype).item())
    return Assign(Access(result, lhs.indices), Apply(assign.op, (before, added)))


def _in(expr: Expr, dtype: DType) -> Expr:
    return expr if dtype_of(expr) == dtype else Apply(f"as_{dtype.name}", (expr,))


def _all_decided(assign: Assign, known: Scalar) -> NotationError:
    """The refusal of a statement after which nothing of what a sparse result held before would matter."""
    name = assign.lhs.tensor.name
    return NotationError(
        f"cannot add to {name}: where nothing is stored, what is added is {known}, and that decides every value of {name}.\n"
        f"  in {show(assign)}\n"
        f"  help: write = to make {name} anew, or leave the constant away"
    )


def _only_diagonal(assign: Assign) -> NotationError:
    """The refusal of a statement that reaches a part of a sparse result, and would have to leave the rest as it is."""
    name = assign.lhs.tensor.name
    return NotationError(
        f"cannot add to a part of {name} alone: a variable stands twice in {show(assign.lhs)}, and {name} is sparse.\n"
        f"  in {show(assign)}\n"
        f"  help: compute what is added with =, and add it to {name} in a second statement, with a variable for each mode"
    )
