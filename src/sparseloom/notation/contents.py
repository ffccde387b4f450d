"""What stands in a tree of index notation: its accesses, variables, names and sums. Each is found once for each tree."""

from __future__ import annotations

from sparseloom.core.once import once_for_each
from sparseloom.core.trees import Node, walk
from sparseloom.notation.nodes import Access, Apply, Expr, Fixed, IndexVar, Reduce, TensorVar


@once_for_each
def _nodes(root: Node) -> tuple[Node, ...]:
    """A tree and all trees in it, parents first, from left to right."""
    return tuple(walk(root))


@once_for_each
def accesses_in(root: Node) -> tuple[Access, ...]:
    """The accesses, from left to right."""
    return tuple(found for found in _nodes(root) if isinstance(found, Access))


@once_for_each
def variables_in(root: Node) -> tuple[IndexVar, ...]:
    """The variables, in order of first appearance."""
    return tuple(dict.fromkeys(found for found in _nodes(root) if isinstance(found, IndexVar)))


@once_for_each
def numbers_in(root: Node) -> frozenset[Fixed]:
    """The numbers that stand for variables, as in ``A(3,j)``."""
    return frozenset(found for found in _nodes(root) if isinstance(found, Fixed))


@once_for_each
def identifiers_in(root: Node) -> frozenset[str]:
    """The names of tensors and variables."""
    return frozenset(found.name for found in _nodes(root) if isinstance(found, TensorVar | IndexVar))


@once_for_each
def reductions_in(root: Node) -> tuple[Reduce, ...]:
    """The sums and other reductions, outer ones first."""
    return tuple(found for found in _nodes(root) if isinstance(found, Reduce))


def holds_padding(expr: Expr) -> bool:
    """Whether a value may come from a place that is stored without being an entry; what is reduced is one value of many."""
    match expr:
        case Access(tensor):
            return tensor.format.holds_padding
        case Apply(_, args):
            return any(holds_padding(arg) for arg in args)
    return False
