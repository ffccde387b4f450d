"""Blocked results whose entries do not come block by block: a row of blocks is built in a workspace.

    R(i,j) = A(i,j), A csr, R bcsr(2,3)    ==>    forall i_block
                                                    forall j_block
                                                      forall i_within
                                                        forall j_within
                                                          R(i,j) = w(i,j)
                                                  where
                                                    forall i_within
                                                      forall j_each
                                                        w(i,j) = A(i,j)

The producer is the statement as it would run into the same format without blocks, cut to one row of blocks. In the workspace the blocks
of the row take entries in any order; they are listed as they are met, and sorted before they are appended.
"""

from __future__ import annotations

from sparseloom.core.errors import CompilerBug
from sparseloom.core.names import Names
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.formats.format import Format
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.levels.scattered import Scattered
from sparseloom.iteration.layout import can_append, plain
from sparseloom.iteration.ordering import cut_into_blocks, level_variables
from sparseloom.notation.dtyping import fill_of
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Stmt, SuchThat, TensorVar, Where
from sparseloom.relations.rename import RenameRelation


def can_build_blocks(result: Access) -> bool:
    """Whether rows of blocks can be built: all levels of blocks stand above the dense ones within them, and the last is sparse."""
    form, order = result.tensor.format, result.tensor.order
    return (
        bool(form.blocks)
        and can_append(form)
        and not form.levels[order - 1].full
        and all(level.full for level in form.levels[order:])
        and len(set(form.modes[:order])) == order == len(set(result.indices))
    )


def without_blocks(assign: Assign) -> Assign:
    """The statement with a result in the nearest format without blocks."""
    tensor = assign.lhs.tensor
    entries = TensorVar(tensor.name, tensor.order, plain(tensor.format), tensor.stored_dtype, tensor.index_dtype, tensor.fill)
    return Assign(Access(entries, assign.lhs.indices), assign.rhs, assign.op)


def build_blocks(assign: Assign, entries: Stmt, names: Names) -> Stmt:
    """Loops for a blocked result, from ``entries``: the loops that make it without blocks."""
    lhs, form = assign.lhs, assign.lhs.tensor.format
    *above, last = (lhs.indices[mode] for mode in form.modes[: lhs.tensor.order])
    blocks, each = cut_into_blocks([lhs], names), IndexVar(names.fresh(f"{last}_each"))
    row = Access(_workspace(assign, names), lhs.indices)

    def rule(found: Node) -> Node | None:
        match found:
            case Access(tensor, _) if tensor.name == lhs.tensor.name:
                return row
            case Forall(var, body, tag) if var == last:
                return Forall(each, body, tag)
            case Forall(var, body, tag) if var in above:
                return Forall(blocks[var].inner, body, tag)
        return None

    consumer: Stmt = Assign(lhs, row)
    for var in reversed(level_variables(lhs, blocks)[len(above) :]):
        consumer = Forall(var, consumer)

    def place(stmt: Stmt) -> Stmt:
        """What is computed once, outside the loops over the result, stays outside."""
        match stmt:
            case Where(inner, producer):
                return Where(place(inner), producer)
            case Forall(var) if var in (*above, last):
                made: Stmt = Where(consumer, rewrite(stmt, rule))
                for outer in reversed(above):
                    made = Forall(blocks[outer].outer, made)
                return made
        raise CompilerBug(stmt, "the loops over a sparse result should stand outermost")

    return SuchThat(place(entries), (*blocks.values(), RenameRelation(last, each)))


def _workspace(assign: Assign, names: Names) -> TensorVar:
    """A row of blocks: those of one row of the result, by the last block variable, with their entries in the result's order."""
    tensor, order = assign.lhs.tensor, assign.lhs.tensor.order
    levels = (*(Dense() for _ in range(order - 1)), Scattered(), *(Dense() for _ in range(order)))
    fill = fill_of(assign.rhs)
    form = Format(levels, tensor.format.modes, tensor.format.blocks)
    return TensorVar(names.fresh("w"), order, form, tensor.dtype, fill=tensor.fill if fill is None else fill)


def names_in(*stmts: Stmt) -> Names:
    """The names that are taken in some statements."""
    return Names({n.name for stmt in stmts for n in walk(stmt) if isinstance(n, TensorVar | IndexVar)})
