"""The provenance graph of a schedule, as text and as SVG: how the variables come from each other, and how each is recovered.

i, j --fuse--> f --pos(A)--> p --split(4)--> p0, p1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparseloom.core.once import cached_property
from sparseloom.core.signs import printable
from sparseloom.iteration.foralls import loops, provenance, relations_of
from sparseloom.notation.nodes import IndexVar, Stmt
from sparseloom.relations.relation import Relation
from sparseloom.show.svg import Drawing, colour, named, text_width


@dataclass(frozen=True)
class ProvenanceGraph:
    """How the variables of a statement come from each other."""

    stmt: Stmt

    @cached_property
    def originals(self) -> tuple[IndexVar, ...]:
        """The variables that no relation makes, in the order of their loops."""
        graph = provenance(self.stmt)
        sources = [var for relation in self.relations for var in relation.parents]
        found = [var for var in (*sources, *loops(self.stmt)) if graph.made_by(var) is None]
        return tuple(dict.fromkeys(found))

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The edges, oldest first."""
        return relations_of(self.stmt)

    def tracked(self, relation: Relation) -> str | None:
        """What ``recover_track`` steps along: the upper coordinates of a position loop over several levels."""
        counted = relation.positions
        if counted is None:
            return None
        graph = provenance(self.stmt)
        span = graph.span(counted.coordinate, graph.stored(counted.access))
        upper = [] if span is None else list(map(str, span.variables[:-1]))
        return f"{', '.join(upper)} advance{'s' if len(upper) == 1 else ''} with {counted.position}" if upper else None

    def __str__(self) -> str:
        recovery = {
            "recover_original": [relation.recovery for relation in reversed(self.relations)],
            "recover_derived": [relation.derivation for relation in self.relations],
            "recover_track": [words for relation in self.relations if (words := self.tracked(relation)) is not None],
        }
        lines = [f"{name if k == 0 else '':16}   {words}" for name, found in recovery.items() for k, words in enumerate(found)]
        return printable("\n".join([*self._chains(), *lines]))

    def _chains(self) -> Iterator[str]:
        """Each relation once; one that uses only what the line ends in goes on with it."""
        waiting = list(self.relations)
        used = {var for relation in waiting for var in relation.parents}
        loose = [str(var) for var in self.originals if var not in used]
        if loose:
            yield ", ".join(loose)
        while waiting:
            line, ends = ", ".join(map(str, waiting[0].parents)), waiting[0].parents
            while (following := next((r for r in waiting if r.parents == ends), None)) is not None:
                waiting.remove(following)
                ends = following.children
                line += f" --{following.label}--> {', '.join(map(str, ends))}"
            yield line

    def _repr_svg_(self) -> str:
        return str(_ProvenanceDrawing(self).made())


_DASHED = ' stroke-dasharray="4 3"'
_ORIGINAL, _DERIVED, _TRACK = (colour(0), ""), (colour(1), ""), (colour(2), _DASHED)  # how arrows of recovery are painted, and dashed
_STEP, _MARGIN = 96.0, 22.0


def _pill(relation: Relation) -> float:
    """Half the width of the pill that names a relation."""
    return text_width(relation.label, 12) / 2 + 8


class _ProvenanceDrawing:
    """Variables in layers, originals on top; a pill with the relation's name between a layer and the next."""

    def __init__(self, graph: ProvenanceGraph) -> None:
        self.graph = graph
        self.layer: dict[IndexVar, int] = dict.fromkeys(graph.originals, 0)
        for relation in graph.relations:
            depth = 1 + max(self.layer[var] for var in relation.parents)
            self.layer.update(dict.fromkeys(relation.children, depth))
        self.x = self._columns()

    def _columns(self) -> dict[IndexVar, float]:
        """Variables that have nothing to do with each other stand side by side, each family in a column of its own."""
        x: dict[IndexVar, float] = {}
        left = _MARGIN
        for family in self._families():
            found = self._family_columns(family)
            relations = [relation for relation in self.graph.relations if relation.parents[0] in family]
            pills = [(self._middle(relation, found), _pill(relation) + 34) for relation in relations]
            boxes = [(at, self.width(var) / 2) for var, at in found.items()]
            first, last = min(at - half for at, half in (*boxes, *pills)), max(at + half for at, half in (*boxes, *pills))
            x |= {var: at - first + left for var, at in found.items()}
            left += last - first + 24
        return x

    def _families(self) -> list[set[IndexVar]]:
        """The variables, those together that relations connect."""
        families: list[set[IndexVar]] = [{var} for var in self.graph.originals]
        for relation in self.graph.relations:
            ends = {*relation.parents, *relation.children}
            touched = [family for family in families if family & ends]
            families = [family for family in families if family not in touched]
            families.append(ends.union(*touched))
        return sorted(families, key=lambda family: min(k for k, var in enumerate(self.graph.originals) if var in family))

    def _family_columns(self, family: set[IndexVar]) -> dict[IndexVar, float]:
        """Children stand below the middle of their parents, with room between neighbours in a layer."""
        x: dict[IndexVar, float] = {}
        edge: dict[int, float] = {}

        def place(var: IndexVar, wish: float) -> None:
            half = self.width(var) / 2
            x[var] = max(wish, edge.get(self.layer[var], -1e9) + half)
            edge[self.layer[var]] = x[var] + half + 30

        for number, var in enumerate(var for var in self.graph.originals if var in family):
            place(var, 60.0 * number)
        used = {var for relation in self.graph.relations for var in relation.parents}
        for relation in self.graph.relations:
            if relation.parents[0] not in family:
                continue
            middle = sum(x[var] for var in relation.parents) / len(relation.parents)
            made = relation.children
            gap = 150 if used.issuperset(made) else 60
            start = middle - (sum(map(self.width, made)) + gap * (len(made) - 1)) / 2
            for var in made:
                place(var, start + self.width(var) / 2)
                start += self.width(var) + gap
        return x

    @staticmethod
    def _middle(relation: Relation, x: dict[IndexVar, float]) -> float:
        ends = (*relation.parents, *relation.children)
        return sum(x[var] for var in ends) / len(ends)

    @staticmethod
    def width(var: IndexVar) -> float:
        return max(34.0, text_width(str(var)) + 18)

    def y(self, var: IndexVar) -> float:
        return _MARGIN + 16 + _STEP * self.layer[var]

    def made(self) -> Drawing:
        ends = [self.x[var] + self.width(var) / 2 for var in self.x]
        ends += [self._middle(relation, self.x) + _pill(relation) + 34 for relation in self.graph.relations]
        below = max(map(self.y, self.x), default=_MARGIN) + 16 + _MARGIN + 30
        drawing = Drawing(max(max(ends, default=0) + _MARGIN, 520), below)
        for relation in self.graph.relations:
            self._relation(drawing, relation)
        shown = set(loops(self.graph.stmt))
        for var in self.x:
            width = self.width(var)
            look = f'fill="{colour(0)}" class="sl-pale" stroke="{colour(0)}" stroke-width="1.6"' if var in shown else 'class="sl-box"'
            drawing.rectangle(self.x[var] - width / 2, self.y(var) - 14, width, 28, f"{look} {named(var)}", 14)
            drawing.text(self.x[var], self.y(var), str(var), f'class="sl-text" {named(var)}')
        self._legend(drawing, below - 20)
        return drawing

    def _relation(self, drawing: Drawing, relation: Relation) -> None:
        above, below = relation.parents, relation.children
        x = self._middle(relation, self.x)
        top, bottom = max(self.y(var) for var in above) + 14, min(self.y(var) for var in below) - 14
        y = (top + bottom) / 2
        lines = [f"M{self.x[var]:g} {self.y(var) + 14:g}L{x:g} {y:g}" for var in above]
        lines += [f"M{x:g} {y:g}L{self.x[var]:g} {self.y(var) - 14:g}" for var in below]
        for line in lines:
            drawing.path(line, 'class="sl-line" stroke-width="1.4"')
        half = _pill(relation)
        drawing.rectangle(x - half, y - 11, 2 * half, 22, f'class="sl-box" {named(*below)}', 5)
        drawing.text(x, y, relation.label, size=12)
        self._recovery(drawing, x, y, half, top, bottom, self.graph.tracked(relation) is not None)

    @staticmethod
    def _recovery(drawing: Drawing, x: float, y: float, half: float, top: float, bottom: float, tracked: bool) -> None:
        """An arrow up for what gives the parents, one down for what gives the children, a dashed one for what steps along."""

        up, down = (bottom - 4, top + 4), (top + 4, bottom - 4)
        curves = [(-1, 9, up, _ORIGINAL), (1, 9, down, _DERIVED), *([(-1, 23, up, _TRACK)] if tracked else [])]
        for side, out, (start, end), (paint, dashes) in curves:
            at, slope = x + side * (half + out), (-side * 0.37, 0.93 if end > start else -0.93)
            steps = f"M{at - side * 4:g} {start:g}Q{at + side * 6:g} {y:g} {at - side * 4:g} {end:g}"
            drawing.arrow(steps, (at - side * 4, end), slope, f'stroke="{paint}" stroke-width="1.6"{dashes}', paint)

    @staticmethod
    def _legend(drawing: Drawing, y: float) -> None:
        x = _MARGIN
        legend = {"recover_original": _ORIGINAL, "recover_derived": _DERIVED, "recover_track": _TRACK}
        for words, (paint, dashes) in legend.items():
            drawing.arrow(f"M{x:g} {y:g}L{x + 22:g} {y:g}", (x + 26, y), (1, 0), f'stroke="{paint}" stroke-width="1.6"{dashes}', paint)
            drawing.text(x + 34, y, words, 'class="sl-faint"', 12, "start")
            x += 34 + text_width(words, 12) + 22
