"""A loop nest as text: bare, with an arrow at one loop, or with all that is known of every loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import SERIAL, Assign, Forall, IndexVar, Sequence, Stmt, SuchThat, Where
from sparseloom.notation.printer import show
from sparseloom.relations.arithmetic import WORDS, Arithmetic, Text
from sparseloom.relations.bound import BoundRelation
from sparseloom.relations.coord import CoordRelation
from sparseloom.relations.fuse import FuseRelation
from sparseloom.relations.pos import PosRelation
from sparseloom.relations.relation import Ranges, Relation
from sparseloom.relations.weighted import WeightedRelation
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
    low, high = _Bounds(graph).range_of(var)
    return low.words, high.words


@dataclass(frozen=True)
class _Bounds(Ranges[Text]):
    """Ranges in words, and in numbers where those are constants."""

    graph: Provenance
    arithmetic: Arithmetic[Text] = WORDS

    def range_of(self, var: IndexVar) -> tuple[Text, Text]:
        """The limits of a variable."""
        relation = self.graph.made_by(var)
        low, high = (Text("0"), Text(f"|{var}|")) if relation is None else self._made(var, relation)
        first, last = self.graph.limits(var)
        return low if first is None else Text(str(first)), high if last is None else Text(str(last))

    def _made(self, var: IndexVar, relation: Relation) -> tuple[Text, Text]:
        match relation:
            case FuseRelation(outer, inner) if (below := self.graph.position(inner)) is not None and self.graph.position(outer) != below:
                return self.measured(below)
        return relation.range_of(var, self)

    def extent(self, var: IndexVar) -> Text:
        """How many values a variable takes."""
        extent = self.graph.extent(var)
        return Text(f"|{var}|" if extent is None else str(extent))

    def measured(self, relation: Relation) -> tuple[Text, Text]:
        """Where a segment or a piece begins and ends, or which coordinates its positions have."""
        match relation:
            case WeightedRelation(outer=outer):
                return Text(f"cut({outer})"), Text(f"cut({outer} + 1)")
            case PosRelation(_, _, access):
                return Text(f"begin({access.tensor})"), Text(f"end({access.tensor})")
            case CoordRelation(position, _):
                return Text(f"first({position})"), Text(f"last({position}) + 1")
        raise CompilerBug(relation, "only positions have no arithmetic")


def _promises(var: IndexVar, graph: Provenance) -> Iterator[str]:
    match graph.made_by(var):
        case BoundRelation(original, _, value, kind):
            yield from _promises(original, graph)
            if not kind.is_exact:
                yield f"starting at {value} or later" if kind.is_lower else f"ending at {value} or earlier"
