"""Questions about loop nests: which loops there are, what stands around an assignment, which names are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sparseloom.core.names import Names
from sparseloom.core.once import cached_property, once_for_each
from sparseloom.core.trees import Node, rewrite
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import written
from sparseloom.notation.contents import accesses_in, numbers_in
from sparseloom.notation.nodes import Access, Assign, Expr, Forall, IndexVar, Sequence, Stmt, SuchThat, Tag, TensorVar, Where
from sparseloom.relations.relation import Relation, carried


def body_of(stmt: Stmt) -> Stmt:
    """The loops of a scheduled statement, without its relations."""
    return stmt.body if isinstance(stmt, SuchThat) else stmt


def relations_of(stmt: Stmt) -> tuple[Relation, ...]:
    """The relations that a scheduled statement carries, oldest first."""
    return carried(stmt)


@once_for_each
def provenance(stmt: Stmt) -> Provenance:
    """How the variables of a statement come from each other."""
    return Provenance(relations_of(stmt), numbers=numbers_in(stmt))


def related(body: Stmt, relations: tuple[Relation, ...]) -> Stmt:
    """``body`` with these relations; there is at most one ``SuchThat``, at the root."""
    return SuchThat(body, relations) if relations else body


@once_for_each
def placed(stmt: Stmt) -> tuple[tuple[tuple[IndexVar, ...], Stmt], ...]:
    """A statement and all those inside it, outer ones first, each with the variables of the loops around it."""
    found, left = list[tuple[tuple[IndexVar, ...], Stmt]](), list[tuple[tuple[IndexVar, ...], Stmt]]([((), stmt)])
    while left:
        outer, here = left.pop()
        found.append((outer, here))
        match here:
            case Forall(var, body):
                left.append(((*outer, var), body))
            case SuchThat(body, _):
                left.append((outer, body))
            case Where(consumer, producer):
                left += [(outer, producer), (outer, consumer)]
            case Sequence(stmts):
                left += [(outer, part) for part in reversed(stmts)]
    return tuple(found)


@once_for_each
def statements(stmt: Stmt) -> tuple[Stmt, ...]:
    """A statement and all those inside it, outer ones first."""
    return tuple([found for _, found in placed(stmt)])


@once_for_each
def assignments(stmt: Stmt) -> tuple[Assign, ...]:
    """The assignments of a statement, consumers before producers."""
    return tuple([found for found in statements(stmt) if isinstance(found, Assign)])


def accesses(root: Expr | Assign) -> tuple[Access, ...]:
    """The accesses of an expression or an assignment, from left to right."""
    return accesses_in(root)


@once_for_each
def loops(stmt: Stmt) -> tuple[IndexVar, ...]:
    """The variables that have a loop, each once, outer ones first."""
    return tuple(dict.fromkeys(found.var for found in statements(stmt) if isinstance(found, Forall)))


def tag_of(stmt: Stmt, var: IndexVar) -> Tag:
    """The tag of the loops over ``var``: one for all of them, but for those that it cannot be meant for."""
    tags = [found.tag for found in statements(stmt) if isinstance(found, Forall) and found.var == var]
    return next((tag for tag in tags if tag.unit is not None), tags[0])


@dataclass(frozen=True)
class Path:
    """An assignment and the loops around it, outermost first.

    ``temporaries`` says for every temporary in scope how many loops stand outside it: those share one copy.
    """

    loops: tuple[Forall, ...]
    assign: Assign
    temporaries: Mapping[str, int]

    @cached_property
    def variables(self) -> tuple[IndexVar, ...]:
        """The variables of the loops."""
        return tuple(loop.var for loop in self.loops)


@once_for_each
def paths(stmt: Stmt) -> tuple[Path, ...]:
    """Every assignment with the loops around it; producers before consumers."""
    return tuple(_paths(stmt, (), {}))


def _paths(stmt: Stmt, outer: tuple[Forall, ...], temporaries: Mapping[str, int]) -> Iterator[Path]:
    match stmt:
        case Assign():
            yield Path(outer, stmt, temporaries)
        case Forall(_, body):
            yield from _paths(body, (*outer, stmt), temporaries)
        case SuchThat(body, _):
            yield from _paths(body, outer, temporaries)
        case Where(consumer, producer):
            inner = {**temporaries, written(producer).tensor.name: len(outer)}
            yield from _paths(producer, outer, inner)
            yield from _paths(consumer, outer, inner)
        case Sequence(stmts):
            for part in stmts:
                yield from _paths(part, outer, temporaries)


def places(stmt: Stmt, var: IndexVar) -> Iterator[tuple[tuple[IndexVar, ...], Forall]]:
    """Every loop over ``var``, with the variables of the loops around it."""
    seen = set()
    for path in paths(stmt):
        for depth, loop in enumerate(path.loops):
            if loop.var == var and id(loop) not in seen:
                seen.add(id(loop))
                yield path.variables[:depth], loop


def temporaries(stmt: Stmt) -> Iterator[tuple[tuple[IndexVar, ...], Where]]:
    """Every temporary, with the variables of the loops around it."""
    return ((outer, found) for outer, found in placed(stmt) if isinstance(found, Where))


def result(stmt: Stmt) -> Access:
    """What the statement computes: its last assignment's left side that is no temporary."""
    return next(path.assign.lhs for path in reversed(paths(stmt)) if path.assign.lhs.tensor.name not in path.temporaries)


@once_for_each
def operands(stmt: Stmt) -> tuple[Access, ...]:
    """The arguments that the statement reads, each access once; temporaries are none."""
    made = {path.assign.lhs.tensor.name for path in paths(stmt)}
    return tuple(access for access in reads(stmt) if access.tensor.name not in made)


@once_for_each
def reads(stmt: Stmt) -> tuple[Access, ...]:
    """Every access that a statement reads, temporaries included, each once."""
    return tuple(dict.fromkeys(access for assign in assignments(stmt) for access in accesses(assign.rhs)))


@once_for_each
def tensors(stmt: Stmt) -> Mapping[str, TensorVar]:
    """Every tensor of the statement by its name."""
    written_to = (assign.lhs for assign in assignments(stmt))
    return MappingProxyType({access.tensor.name: access.tensor for access in (*written_to, *reads(stmt))})


@once_for_each
def taken_names(stmt: Stmt) -> frozenset[str]:
    """The names that a new variable or tensor must not have."""
    indices = (var for assign in assignments(stmt) for access in (assign.lhs, *accesses(assign.rhs)) for var in access.indices)
    derived = (var for relation in relations_of(stmt) for var in (*relation.parents, *relation.children))
    return frozenset(tensors(stmt)) | {var.name for var in (*loops(stmt), *indices, *derived)}


def fresh_variables(stmt: Stmt, *wishes: str) -> tuple[IndexVar, ...]:
    """Variables named as wished for, or nearly so."""
    names = Names(taken_names(stmt))
    return tuple(IndexVar(names.fresh(wish)) for wish in wishes)


def replace_loops(stmt: Stmt, var: IndexVar, make: Callable[[Forall], Stmt], *relations: Relation) -> Stmt:
    """Put ``make(loop)`` in the place of every loop over ``var``, and add the relations that explain it."""

    def rule(found: Node) -> Node | None:
        return make(found) if isinstance(found, Forall) and found.var == var else None

    return related(rewrite(body_of(stmt), rule, Stmt), relations_of(stmt) + relations)


def cut_loops(stmt: Stmt, relation: Relation) -> Stmt:
    """Put two loops in the place of every one over a variable that is cut; both merge operands as that did."""
    outer, inner = relation.children

    def cut(loop: Forall) -> Stmt:
        tag = Tag(merge=loop.tag.merge)
        return Forall(outer, Forall(inner, loop.body, tag), tag)

    return replace_loops(stmt, relation.parents[0], cut, relation)


def retag(stmt: Stmt, var: IndexVar, make: Callable[[Tag], Tag]) -> Stmt:
    """Change the tag of every loop over ``var``."""
    return replace_loops(stmt, var, lambda loop: Forall(loop.var, loop.body, make(loop.tag)))
