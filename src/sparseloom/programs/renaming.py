"""Problems that differ in names alone are one problem: it is planned, lowered and compiled once, whichever entry point asks first.

    w(q) = sum(s, M(q,s) * v(s))      R(i) = sum(j, T0(i,j) * T1(j))      M -> T0, v -> T1
    C(i,j) = sum(k, A(i,k) * A(k,j))  R(i,j) = sum(k, T0(i,k) * T1(k,j))  A -> T0 and T1

Variables and tensors are named by order of appearance. A tensor that is read at several places is an operand for each of them, so that
``A @ A`` runs the kernel of ``A @ B``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from sparseloom.core.trees import Node, rewrite
from sparseloom.notation.contents import variables_in
from sparseloom.notation.nodes import Access, Assign, Fixed, IndexVar
from sparseloom.plan.problem import Problem, own_dtype
from sparseloom.plan.statistics import Statistics

RESULT = "R"
T = TypeVar("T")


@dataclass(frozen=True)
class Names:
    """What tensors are called in a renamed problem. ``sources`` has for every operand there what it is called in the original."""

    sources: Mapping[str, str]

    def of(self, operands: Mapping[str, T]) -> dict[str, T]:
        """Operands under their new names."""
        return {name: operands[source] for name, source in self.sources.items() if source in operands}

    def original(self, found: Mapping[str, T]) -> dict[str, T]:
        """What is known by new names, by the original ones."""
        return {self.sources.get(name, name): known for name, known in found.items()}


def renamed(problem: Problem, statistics: Statistics) -> tuple[Problem, Statistics, Names]:
    """The problem in names by order of appearance, with what is known of its data; and what operands are called there."""
    result = problem.assign.lhs.tensor.name
    written = (var for var in variables_in(problem.assign) if not isinstance(var, Fixed))
    variables = {var.name: IndexVar(_variable(place)) for place, var in enumerate(written)}
    tensors: dict[tuple[str, tuple[IndexVar, ...]], str] = {}

    def rule(found: Node) -> Node | None:
        match found:
            case IndexVar(name):
                return variables.get(name)
            case Access(tensor, indices):  # whose variables have their new names already
                own = RESULT if tensor.name == result else tensors.setdefault((tensor.name, indices), f"T{len(tensors)}")
                return Access(replace(tensor, name=own), indices)
        return None

    assign: Assign = rewrite(problem.assign, rule)
    sources = {new: old for (old, _), new in tensors.items()}
    is_plain = problem.assign.op is None and problem.assign.rhs == problem.statement.rhs
    is_own = is_plain and own_dtype(assign) == assign.lhs.tensor.stored_dtype
    extents = {variables[name].name if name in variables else name: size for name, size in problem.extents}
    made = replace(
        problem,
        statement=assign if is_plain else rewrite(problem.statement, rule),
        assign=assign,
        extents=tuple(sorted(extents.items())),
        dtype=None if is_own else problem.dtype,
    )
    sources |= {} if problem.assign.op is None else {RESULT: result}
    return made, _renamed(statistics, sources), Names(sources)


def _variable(place: int) -> str:
    return "ijklmn"[place] if place < 6 else f"i{place}"


def _renamed(statistics: Statistics, sources: Mapping[str, str]) -> Statistics:
    """What is known of operands under other names, in the order in which it was."""
    names: dict[str, list[str]] = {}
    for new, old in sources.items():
        names.setdefault(old, []).append(new)
    return replace(
        statistics,
        cheapest=tuple(new for old in statistics.cheapest for new in names.get(old, ())),
        stored=tuple((new, count) for old, count in statistics.stored for new in names.get(old, ())),
        operands=tuple((new, known) for old, known in statistics.operands for new in names.get(old, ())),
    )
