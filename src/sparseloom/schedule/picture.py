"""A loop nest as text: bare, with an arrow at one loop, with what each line stems from, or with all that is known of every loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparseloom.core.lines import Line
from sparseloom.iteration.foralls import body_of, provenance
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import written
from sparseloom.notation import nodes
from sparseloom.notation.nodes import SERIAL, Assign, Forall, IndexVar, Stmt, Where
from sparseloom.notation.printer import lines, show
from sparseloom.relations.arithmetic import WORDS, Arithmetic, Text
from sparseloom.relations.relation import FoundAgain, Pieces, Positions, Ranges, Relation
from sparseloom.schedule.primitive import describe


def bare(stmt: Stmt, at: IndexVar | None = None) -> str:
    """The loops of a statement with their tags; an arrow points at the first loop over ``at``."""
    found = list(lines(body_of(stmt)))
    texts = [f"{text} [{describe(part.tag)}]" if isinstance(part, Forall) and part.tag != SERIAL else text for text, part in found]
    place = next((k for k, (_, part) in enumerate(found) if isinstance(part, Forall) and part.var == at), None)
    if place is not None:
        texts[place] = f"{texts[place]:{max(map(len, texts)) + 4}}<-- here"
    return "\n".join(texts)


def lines_with_origins(stmt: Stmt) -> Iterator[Line]:
    """The lines of a statement and its relations, with what they stem from."""
    return (Line(text, _origin(part)) for text, part in lines(stmt))


def _origin(part: Stmt | nodes.Relation) -> str:
    """The variable of a loop, the tensor that is written, or the first variable that a relation makes."""
    match part:
        case Forall(var):
            return var.name
        case Assign(lhs):
            return lhs.tensor.name
        case Where(_, producer):
            return written(producer).tensor.name
        case Relation(children=(made, *_)):
            return made.name
    return ""


def full(stmt: Stmt) -> str:
    """The loops of a statement, beside each what it counts, in which bounds, and its tag; then the relations."""
    graph, found = provenance(stmt), list(lines(stmt))
    width = max((len(text) for text, part in found if isinstance(part, Forall)), default=0) + 3
    return "\n".join(f"{text:{width}}{remark(part, graph)}" if isinstance(part, Forall) else text for text, part in found)


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
        low, high = (Text("0"), Text(f"|{var}|")) if relation is None else relation.range_of(var, self)
        first, last = self.graph.limits(var)
        return low if first is None else Text(str(first)), high if last is None else Text(str(last))

    def extent(self, var: IndexVar) -> Text:
        """How many values a variable takes."""
        extent = self.graph.extent(var)
        return Text(f"|{var}|" if extent is None else str(extent))

    def piece_of(self, relation: Pieces) -> tuple[Text, Text]:
        """Where a piece begins and ends."""
        return Text(f"cut({relation.outer})"), Text(f"cut({relation.outer} + 1)")

    def positions_of(self, relation: Positions) -> tuple[Text, Text]:
        """Where a segment begins and ends."""
        return Text(f"begin({relation.access.tensor})"), Text(f"end({relation.access.tensor})")

    def coordinates_of(self, relation: FoundAgain) -> tuple[Text, Text]:
        """Which coordinates some positions have."""
        return Text(f"first({relation.position})"), Text(f"last({relation.position}) + 1")


def _promises(var: IndexVar, graph: Provenance) -> Iterator[str]:
    relation = graph.made_by(var)
    if relation is not None and relation.promises:
        yield from _promises(relation.parents[0], graph)
        if relation.promise:
            yield relation.promise
