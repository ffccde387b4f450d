"""Names that passes over scheduled notation made, and what they stand for in the statement that a user knows.

forall i (CPUThread)         forall i_part (CPUThread)         i_part and i_within stand for i
  ...                  ==>     forall i_within
                                 ...
"""

from __future__ import annotations

from sparseloom.core.trees import walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import relations_of
from sparseloom.iteration.making import Counted, Inserted
from sparseloom.notation.nodes import IndexVar, Stmt, TensorVar


def origins_of(concrete: Concrete, settled: Concrete) -> dict[str, str]:
    """For every name that passes made: a variable that its variable derives from, or the result for which its tensor counts."""
    if settled is concrete:
        return {}
    known = {n.name for n in walk(concrete.stmt) if isinstance(n, IndexVar | TensorVar)}
    made: dict[str, str] = {}
    for stmt in _statements(settled):
        for relation in relations_of(stmt):
            stands_for = relation.parents[0].name
            made |= {child.name: made.get(stands_for, stands_for) for child in relation.children if child.name not in known}
        made |= {n.name: concrete.assign.lhs.tensor.name for n in walk(stmt) if isinstance(n, TensorVar) and n.name not in known}
    return made


def _statements(settled: Concrete) -> list[Stmt]:
    """The statement, and the one that counts, if it is another."""
    match settled.making:
        case Counted(counting=Stmt() as counting) | Inserted(counting=Stmt() as counting) if counting is not settled.stmt:
            return [settled.stmt, counting]
    return [settled.stmt]
