"""The compiler's own names give way: whatever a step calls something new, what the compiler had called so is called otherwise.

C(i,j) = w(j) where ... w(j) += A(i,k) * B(k,j)    and precompute(..., w)    ==>    C(i,j) = w1(j) where ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.making import Inserted, Making, Shared
from sparseloom.iteration.orderer import Conversion
from sparseloom.notation.nodes import IndexVar, TensorVar

N = TypeVar("N", bound=Node)


def renamings(concrete: Concrete, wanted: Iterable[str]) -> dict[str, str]:
    """Other names for what the compiler has called as the user wants to call something."""
    clashing = [name for name in wanted if name in concrete.made]
    if not clashing:
        return {}
    nodes = (concrete.stmt, concrete.assign, *(t for conversion in concrete.conversions for t in (conversion.source, conversion.target)))
    names = Names({n.name for root in nodes for n in walk(root) if isinstance(n, IndexVar | TensorVar)}.union(wanted))
    return {name: names.fresh(name) for name in clashing}


def renamed(concrete: Concrete, names: Mapping[str, str]) -> Concrete:
    """The same loops under other names."""
    conversions = (Conversion(rename(c.source, names), rename(c.target, names), c.reason) for c in concrete.conversions)
    return replace(
        concrete,
        stmt=rename(concrete.stmt, names),
        assign=rename(concrete.assign, names),
        making=_renamed_making(concrete.making, names),
        conversions=tuple(conversions),
        initial=None if concrete.initial is None else names.get(concrete.initial, concrete.initial),
        made=frozenset(names.get(name, name) for name in concrete.made),
    )


def _renamed_making(making: Making, names: Mapping[str, str]) -> Making:
    match making:
        case Shared(operand, depth):
            return Shared(rename(operand, names), depth)
        case Inserted(order=order):
            return replace(making, order=tuple(rename(var, names) for var in order))
    return making


def rename(root: N, names: Mapping[str, str]) -> N:
    """A tree in which some variables and tensors are called otherwise."""

    def rule(found: Node) -> Node | None:
        match found:
            case IndexVar(name) if name in names:
                return IndexVar(names[name])
            case TensorVar(name) if name in names:
                return replace(found, name=names[name])
        return None

    return rewrite(root, rule)
