"""In which order the loops stand: a topological order of the variables under the operands' storage orders.

Three kinds of edge, from strict to mild: *hard* (a sparse level can only be walked below its parents), *firm* (a
sparse result is appended in order only if its variables are outside the reductions), *soft* (a dense operand is read along
its rows).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sparseloom.core.names import Names
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.relations.block import BlockRelation
from sparseloom.relations.relation import Relation

Edge = tuple[IndexVar, IndexVar]
Blocks = Mapping[IndexVar, Relation]


def level_variables(access: Access, blocks: Blocks) -> tuple[IndexVar, ...]:
    """The variable at every level of an access, from the root down; ``blocks`` tells those of variables that are walked in blocks."""
    form = access.tensor.format
    if not form.blocks:
        return tuple(map(access.indices.__getitem__, form.modes))
    seen: set[int] = set()
    variables = []
    for mode in form.modes:
        outer, inner = blocks[access.indices[mode]].children
        variables.append(inner if mode in seen else outer)
        seen.add(mode)
    return tuple(variables)


def cut_into_blocks(accesses: Iterable[Access], names: Names) -> dict[IndexVar, BlockRelation]:
    """Fresh variables for the blocks of every variable of blocked accesses, which agree on the sizes, and for the places in a block."""
    found: dict[IndexVar, BlockRelation] = {}
    for access in accesses:
        for var, size in zip(access.indices, access.tensor.format.blocks, strict=False):
            if var not in found:
                found[var] = BlockRelation(var, IndexVar(names.fresh(f"{var}_block")), IndexVar(names.fresh(f"{var}_within")), size)
    return found


def blocks_among(relations: Iterable[Relation]) -> dict[IndexVar, Relation]:
    """The variables that are walked in blocks."""
    return {relation.parents[0]: relation for relation in relations if relation.is_block}


def hard_edges(access: Access, blocks: Blocks) -> set[Edge]:
    """Every level that is not full stands below all of its parents."""
    variables = level_variables(access, blocks)
    edges: set[Edge] = set()
    for k, level in enumerate(access.tensor.format.levels):
        if not level.full:
            edges.update((above, variables[k]) for above in variables[:k] if above != variables[k])
    return edges


def soft_edges(access: Access, sparse: set[IndexVar], blocks: Blocks) -> set[Edge]:
    """Neighbouring levels, except into a variable that some operand walks sparsely: rows are not contiguous there.

    Where other operands walk a variable in blocks, this holds for its two loops.
    """
    neighbours = pairwise(_loops_over(var, blocks) for var in level_variables(access, blocks))
    return {(a, b) for before, after in neighbours for a in before for b in after if a != b and b not in sparse}


def _loops_over(var: IndexVar, blocks: Blocks) -> tuple[IndexVar, ...]:
    """The variables whose loops may run through the values of one."""
    return (var, *blocks[var].children) if var in blocks else (var,)


def sparse_variables(accesses: Iterable[Access], blocks: Blocks) -> set[IndexVar]:
    """The variables that some access walks by a level that is not full."""
    return {
        var
        for access in accesses
        for var, level in zip(level_variables(access, blocks), access.tensor.format.levels, strict=True)
        if not level.full
    }


@dataclass
class Edges:
    """The constraints on an order."""

    hard: set[Edge] = field(default_factory=set)
    firm: set[Edge] = field(default_factory=set)
    soft: set[Edge] = field(default_factory=set)


def loop_order(variables: Sequence[IndexVar], edges: Edges) -> tuple[IndexVar, ...] | set[IndexVar]:
    """The variables in loop order, first appearances first among equals; or those that a cycle of hard edges holds back."""
    waiting = dict.fromkeys(variables)
    hard, firm, soft = (_before(waiting, kind) for kind in (edges.hard, edges.firm, edges.soft))
    placed: list[IndexVar] = []
    while waiting:
        ready = [var for var in waiting if not hard[var]]
        if not ready:
            return set(waiting)
        best = min(ready, key=lambda var: (bool(firm[var]), bool(soft[var])))
        del waiting[best]
        placed.append(best)
        for kind in (hard, firm, soft):
            for before in kind.values():
                before.discard(best)
    return tuple(placed)


def _before(variables: Iterable[IndexVar], edges: set[Edge]) -> dict[IndexVar, set[IndexVar]]:
    """The variables that must come before each."""
    found: dict[IndexVar, set[IndexVar]] = {var: set() for var in variables}
    for a, b in edges:
        if a != b and a in found and b in found:
            found[b].add(a)
    return found
