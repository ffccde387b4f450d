"""A loop nest as text: bare, with an arrow at one loop, or with all that is known of every loop."""

from __future__ import annotations

from collections.abc import Iterator

from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import SERIAL, Assign, Forall, IndexVar, Sequence, Stmt, SuchThat, Where
from sparseloom.notation.printer import show
from sparseloom.notation.relations import (
    BoundRelation,
    BoundType,
    CoordRelation,
    DivideRelation,
    FuseRelation,
    PosRelation,
    RenameRelation,
    SplitRelation,
)
from sparseloom.schedule.loops import body_of, provenance, relations_of
from sparseloom.schedule.primitive import describe

_INDENT = "  "


def bare(stmt: Stmt, at: IndexVar | None = None) -> str:
    """The loops of a statement with their tags; an arrow points at the first loop over ``at``."""
    lines = list(_lines(body_of(stmt), 0))
    texts = [text + _tagged(found) for text, found in lines]
    place = next((k for k, (_, found) in enumerate(lines) if isinstance(found, Forall) and found.var == at), None)
    if place is not None:
        texts[place] = f"{texts[place]:{max(map(len, texts)) + 4}}<-- here"
    return "\n".join(texts)


def full(stmt: Stmt) -> str:
    """The loops of a statement, beside each what it counts, in which bounds, and its tag; then the relations."""
    graph = provenance(stmt)
    lines = list(_lines(body_of(stmt), 0))
    width = max((len(text) for text, found in lines if isinstance(found, Forall)), default=0) + 3
    texts = [f"{text:{width}}{remark(found, graph)}" if isinstance(found, Forall) else text for text, found in lines]
    if relations_of(stmt):
        texts += ["such that", *(f"{_INDENT}{relation}" for relation in relations_of(stmt))]
    return "\n".join(texts)


def _lines(stmt: Stmt, depth: int) -> Iterator[tuple[str, Stmt]]:
    """Every line of a nest, with the statement that it stands for."""
    before = _INDENT * depth
    match stmt:
        case Assign():
            yield before + show(stmt), stmt
        case Forall(var, body):
            yield f"{before}forall {var}", stmt
            yield from _lines(body, depth + 1)
        case Where(consumer, producer):
            yield from _lines(consumer, depth)
            yield before + "where", stmt
            yield from _lines(producer, depth + 1)
        case Sequence(stmts):
            yield before + "sequence", stmt
            for part in stmts:
                yield from _lines(part, depth + 1)
        case SuchThat(body, _):
            yield from _lines(body, depth)
        case _:
            raise CompilerBug(stmt, "a statement is an Assign, Forall, Where, Sequence or SuchThat")


def _tagged(stmt: Stmt) -> str:
    match stmt:
        case Forall(_, _, tag) if tag != SERIAL:
            return f" [{describe(tag)}]"
    return ""


def remark(loop: Forall, graph: Provenance) -> str:
    """What a loop counts, in which bounds, and how it runs: ``positions of A(i,j) in [0, 16), CPUThread with Atomics``."""
    relation = graph.position(loop.var)
    space = "coordinates" if relation is None else f"positions of {show(relation.access)}"
    lower, upper = bounds(loop.var, graph)
    words = [f"{space} in [{lower}, {upper})", *_promises(loop.var, graph)]
    return ", ".join(words if loop.tag == SERIAL else [*words, describe(loop.tag)])


def bounds(var: IndexVar, graph: Provenance) -> tuple[str, str]:
    """The limits of a variable as text; ``|i|`` is the extent of i. Positions start where their segment does."""
    lower, upper = graph.limits(var)
    match graph.made_by(var):
        case PosRelation(_, _, access):
            first, last = f"begin({access.tensor})", f"end({access.tensor})"
        case CoordRelation(position, _):
            first, last = f"first({position})", f"last({position}) + 1"
        case SplitRelation(parent, _, _, part) | DivideRelation(parent, _, _, part):
            first, last = "0", f"ceil(|{parent}| / {part})"
        case FuseRelation(outer, inner, _) if (below := graph.position(inner)) is not None and graph.position(outer) != below:
            first, last = f"begin({below.access.tensor})", f"end({below.access.tensor})"
        case FuseRelation(outer, inner, _):
            first, last = "0", f"{_size(outer, graph)} * {_size(inner, graph)}"
        case BoundRelation(parent) | RenameRelation(parent):
            first, last = bounds(parent, graph)
        case _:
            first, last = "0", f"|{var}|"
    return first if lower is None else str(lower), last if upper is None else str(upper)


def _size(var: IndexVar, graph: Provenance) -> str:
    extent = graph.extent(var)
    return f"|{var}|" if extent is None else str(extent)


def _promises(var: IndexVar, graph: Provenance) -> Iterator[str]:
    match graph.made_by(var):
        case BoundRelation(parent, _, value, kind):
            yield from _promises(parent, graph)
            if kind is BoundType.MinConstraint:
                yield f"starting at {value} or later"
            elif kind is BoundType.MaxConstraint:
                yield f"ending at {value} or earlier"
