"""The two graphs of a schedule, as text and as SVG.

``ProvenanceGraph``: how the variables come from each other, and how each is recovered.

    i, j --fuse--> f --pos(A)--> p --split(4)--> p0, p1

``IterationGraph``: the loops in their order, and the path that every operand takes through them.

    forall i     B dense
      forall j   B compressed ∩ c compressed
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import Level
from sparseloom.iteration.formula import ALWAYS, All, Any, Formula, Stored, stored
from sparseloom.iteration.ordering import level_variables
from sparseloom.iteration.provenance import children, parents
from sparseloom.notation.nodes import Access, IndexVar, Relation, Stmt
from sparseloom.notation.printer import show
from sparseloom.notation.relations import (
    BoundRelation,
    CoordRelation,
    DivideRelation,
    FuseRelation,
    PosRelation,
    RenameRelation,
    SplitRelation,
)
from sparseloom.schedule.loops import Path, accesses, loops, paths, places, provenance, relations_of
from sparseloom.schedule.svg import Drawing, colour, text_width
from sparseloom.schedule.walked import walked


def label(relation: Relation) -> str:
    """A relation in one word, with its constant or its operand."""
    match relation:
        case SplitRelation(_, _, _, size):
            return f"split({size})"
        case DivideRelation(_, _, _, count):
            return f"divide({count})"
        case FuseRelation():
            return "fuse"
        case PosRelation(_, _, access):
            return f"pos({access.tensor})"
        case CoordRelation():
            return "coord"
        case BoundRelation(_, _, value, kind):
            return f"bound({value},{kind.name})"
        case RenameRelation():
            return "rename"
    raise CompilerBug(relation, "a relation must have a name")


def original(relation: Relation) -> str:
    """What gives the parents of a relation from its children: ``recover_original``."""
    match relation:
        case SplitRelation() | DivideRelation() | CoordRelation():
            return str(relation)
        case FuseRelation(outer, inner, fused):
            return f"{outer} = {fused} / |{inner}|, {inner} = {fused} % |{inner}|"
        case PosRelation(coordinate, position, access):
            return f"{coordinate} = crd({access.tensor})[{position}]"
        case BoundRelation(parent, bounded, _, _):
            return f"{parent} = {bounded}"
        case RenameRelation(first, renamed):
            return f"{first} = {renamed}"
    raise CompilerBug(relation, "a relation must be recoverable")


def derived(relation: Relation) -> str:
    """What gives the children of a relation from its parents: ``recover_derived``."""
    match relation:
        case SplitRelation(parent, outer, inner, size):
            return f"{outer} = {parent} / {size}, {inner} = {parent} % {size}"
        case DivideRelation(parent, outer, inner, count):
            return f"{outer} = {parent} / (|{parent}|/{count}), {inner} = {parent} % (|{parent}|/{count})"
        case FuseRelation():
            return str(relation)
        case PosRelation(coordinate, position, access):
            return f"{position} = search of {coordinate} in {access.tensor}"
        case CoordRelation(position, coordinate):
            return f"{coordinate} = coordinate at {position}"
        case BoundRelation(parent, bounded, _, _):
            return f"{bounded} = {parent}"
        case RenameRelation(first, renamed):
            return f"{renamed} = {first}"
    raise CompilerBug(relation, "a relation must derive something")


@dataclass(frozen=True)
class ProvenanceGraph:
    """How the variables of a statement come from each other."""

    stmt: Stmt

    @cached_property
    def originals(self) -> tuple[IndexVar, ...]:
        """The variables that no relation makes, in the order of their loops."""
        graph = provenance(self.stmt)
        sources = [var for relation in self.relations for var in parents(relation)]
        found = [var for var in (*sources, *loops(self.stmt)) if graph.made_by(var) is None]
        return tuple(dict.fromkeys(found))

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The edges, oldest first."""
        return relations_of(self.stmt)

    def tracked(self, relation: Relation) -> str | None:
        """What ``recover_track`` steps along: the upper coordinates of a position loop over several levels."""
        match relation:
            case PosRelation(coordinate, position, access):
                span = provenance(self.stmt).span(coordinate, level_variables(access))
                if span is not None and len(span.variables) > 1:
                    upper = ", ".join(str(var) for var in span.variables[:-1])
                    return f"{upper} advance with {position}" if len(span.variables) > 2 else f"{upper} advances with {position}"
        return None

    def __str__(self) -> str:
        recovery = {
            "recover_original": [original(relation) for relation in reversed(self.relations)],
            "recover_derived": [derived(relation) for relation in self.relations],
            "recover_track": [words for relation in self.relations if (words := self.tracked(relation)) is not None],
        }
        lines = [f"{name if k == 0 else '':16}   {words}" for name, found in recovery.items() for k, words in enumerate(found)]
        return "\n".join([*self._chains(), *lines])

    def _chains(self) -> Iterator[str]:
        """Each relation once; one that uses only what the line ends in goes on with it."""
        waiting = list(self.relations)
        used = {var for relation in waiting for var in parents(relation)}
        loose = [str(var) for var in self.originals if var not in used]
        if loose:
            yield ", ".join(loose)
        while waiting:
            line, ends = ", ".join(map(str, parents(waiting[0]))), parents(waiting[0])
            while (following := next((r for r in waiting if parents(r) == ends), None)) is not None:
                waiting.remove(following)
                ends = children(following)
                line += f" --{label(following)}--> {', '.join(map(str, ends))}"
            yield line

    def _repr_svg_(self) -> str:
        return str(_ProvenanceDrawing(self).made())


_ORIGINAL, _DERIVED, _TRACK = colour(0), colour(1), colour(2)
_STEP, _MARGIN = 96.0, 22.0


class _ProvenanceDrawing:
    """Variables in layers, originals on top; a pill with the relation's name between a layer and the next."""

    def __init__(self, graph: ProvenanceGraph) -> None:
        self.graph = graph
        self.layer: dict[IndexVar, int] = dict.fromkeys(graph.originals, 0)
        for relation in graph.relations:
            depth = 1 + max(self.layer[var] for var in parents(relation))
            self.layer.update(dict.fromkeys(children(relation), depth))
        self.x = self._columns()

    def _columns(self) -> dict[IndexVar, float]:
        """Children stand below the middle of their parents, with room between neighbours in a layer."""
        x: dict[IndexVar, float] = {}
        edge: dict[int, float] = {}

        def place(var: IndexVar, wish: float) -> None:
            half = self.width(var) / 2
            x[var] = max(wish, edge.get(self.layer[var], 0.0) + half)
            edge[self.layer[var]] = x[var] + half + 26

        for var in self.graph.originals:
            place(var, 0)
        for relation in self.graph.relations:
            middle = sum(x[var] for var in parents(relation)) / len(parents(relation))
            made = children(relation)
            whole = sum(self.width(var) for var in made) + 70 * (len(made) - 1)
            start = middle - whole / 2
            for var in made:
                place(var, start + self.width(var) / 2)
                start += self.width(var) + 70
        left = min(x[var] - self.width(var) / 2 for var in x)
        return {var: at - left + _MARGIN + 60 for var, at in x.items()}

    @staticmethod
    def width(var: IndexVar) -> float:
        return max(34.0, text_width(str(var)) + 18)

    def y(self, var: IndexVar) -> float:
        return _MARGIN + 16 + _STEP * self.layer[var]

    def made(self) -> Drawing:
        right = max(self.x[var] + self.width(var) / 2 for var in self.x) + 60
        below = max(self.y(var) for var in self.x) + 16 + _MARGIN + 30
        drawing = Drawing(max(right + _MARGIN, 520), below)
        for relation in self.graph.relations:
            self._relation(drawing, relation)
        shown = set(loops(self.graph.stmt))
        for var in self.x:
            width = self.width(var)
            look = f'fill="{_ORIGINAL}" class="sl-pale" stroke="{_ORIGINAL}" stroke-width="1.6"' if var in shown else 'class="sl-box"'
            drawing.rectangle(self.x[var] - width / 2, self.y(var) - 14, width, 28, look, 14)
            drawing.text(self.x[var], self.y(var), str(var))
        self._legend(drawing, below - 20)
        return drawing

    def _relation(self, drawing: Drawing, relation: Relation) -> None:
        above, below = parents(relation), children(relation)
        x = sum(self.x[var] for var in (*above, *below)) / len((*above, *below))
        top, bottom = max(self.y(var) for var in above) + 14, min(self.y(var) for var in below) - 14
        y = (top + bottom) / 2
        for var in above:
            drawing.path(f"M{self.x[var]:g} {self.y(var) + 14:g}L{x:g} {y:g}", 'class="sl-line" stroke-width="1.4"')
        for var in below:
            end, tip = self.x[var], self.y(var) - 14
            drawing.path(f"M{x:g} {y:g}L{end:g} {tip:g}", 'class="sl-line" stroke-width="1.4"')
        words = label(relation)
        half = text_width(words, 12) / 2 + 8
        drawing.rectangle(x - half, y - 11, 2 * half, 22, 'class="sl-box"', 5)
        drawing.text(x, y, words, size=12)
        self._recovery(drawing, x, y, half, top, bottom, self.graph.tracked(relation) is not None)

    @staticmethod
    def _recovery(drawing: Drawing, x: float, y: float, half: float, top: float, bottom: float, tracked: bool) -> None:
        """An arrow up for what gives the parents, one down for what gives the children, a dashed one for what steps along."""

        def curve(side: float, out: float, start: float, end: float, paint: str, dashes: str = "") -> None:
            at, sign = x + side * (half + out), 1 if end > start else -1
            steps = f"M{at - side * 4:g} {start:g}Q{at + side * 6:g} {y:g} {at - side * 4:g} {end:g}"
            slope = (-side * 0.37, sign * 0.93)
            drawing.arrow(steps, (at - side * 4, end), slope, f'stroke="{paint}" stroke-width="1.6"{dashes}', paint)

        curve(-1, 9, bottom - 4, top + 4, _ORIGINAL)
        curve(1, 9, top + 4, bottom - 4, _DERIVED)
        if tracked:
            curve(-1, 23, bottom - 4, top + 4, _TRACK, ' stroke-dasharray="4 3"')

    @staticmethod
    def _legend(drawing: Drawing, y: float) -> None:
        x = _MARGIN
        for words, paint, dashes in (
            ("recover_original", _ORIGINAL, ""),
            ("recover_derived", _DERIVED, ""),
            ("recover_track", _TRACK, ' stroke-dasharray="4 3"'),
        ):
            drawing.arrow(f"M{x:g} {y:g}L{x + 22:g} {y:g}", (x + 26, y), (1, 0), f'stroke="{paint}" stroke-width="1.6"{dashes}', paint)
            drawing.text(x + 34, y, words, 'class="sl-faint"', 12, "start")
            x += 34 + text_width(words, 12) + 22


@dataclass(frozen=True)
class Stop:
    """One loop of a nest, and the levels of operands that it walks or finds there."""

    var: IndexVar
    levels: tuple[tuple[Access, Level], ...]
    region: Formula

    def __str__(self) -> str:
        meeting = set(stored(self.region)) if isinstance(self.region, All | Any) else set()
        words = [f"{access.tensor} {_kind(level)}" for access, level in self.levels if access not in meeting]
        kinds = {access: _kind(level) for access, level in self.levels}
        merged = [_joined(self.region, kinds)] if meeting else []
        return ", ".join([*merged, *words])

    @property
    def sign(self) -> str:
        """How several sparse operands meet: an intersection, a union, or some of each."""
        match self.region:
            case All(parts):
                return "∩" if all(isinstance(part, Stored) for part in parts) else "∩∪"
            case Any(parts):
                return "∪" if all(isinstance(part, Stored) for part in parts) else "∪∩"
        return ""


def _joined(region: Formula, kinds: dict[Access, str], inside: bool = False) -> str:
    match region:
        case Stored(access):
            return f"{access.tensor} {kinds.get(access, '')}".rstrip()
        case All(parts) | Any(parts):
            words = (" ∩ " if isinstance(region, All) else " ∪ ").join(_joined(part, kinds, True) for part in parts)
            return f"({words})" if inside else words
    return "all"


def _kind(level: Level) -> str:
    return type(level).__name__.lower()


@dataclass(frozen=True)
class IterationGraph:
    """The loops of a statement, and the path of every operand through them."""

    stmt: Stmt

    @cached_property
    def nests(self) -> tuple[tuple[Path, tuple[Stop, ...]], ...]:
        """Every assignment with its loops; those that fill temporaries come first."""
        return tuple((path, tuple(self._stops(path))) for path in paths(self.stmt))

    def _stops(self, path: Path) -> Iterator[Stop]:
        graph = provenance(self.stmt)
        operands = dict.fromkeys((path.assign.lhs, *accesses(path.assign.rhs)))
        for depth, var in enumerate(path.variables):
            before = graph.known(path.variables[:depth])
            settled = graph.known(path.variables[: depth + 1]) - before
            levels = [
                (access, level)
                for access in operands
                for stored_var, level in zip(level_variables(access), access.tensor.format.levels, strict=True)
                if stored_var in settled
            ]
            yield Stop(var, tuple(levels), self._merged(path, depth))

    def _merged(self, path: Path, depth: int) -> Formula:
        """When a loop that follows several operands has something to do; ALWAYS for one that follows at most one."""
        var, outer = path.variables[depth], path.variables[:depth]
        for (around, _), found in zip(places(self.stmt, var), walked(self.stmt, var), strict=True):
            if around == outer and found.position is None and len(found.sparse) > 1:
                return found.region
        return ALWAYS

    def __str__(self) -> str:
        texts = []
        for path, stops in self.nests:
            heads = [f"{'  ' * depth}forall {stop.var}" for depth, stop in enumerate(stops)]
            width = max(map(len, heads), default=0) + 3
            lines = [f"{head:{width}}{stop}".rstrip() for head, stop in zip(heads, stops, strict=True)]
            texts.append("\n".join([*lines, "  " * len(stops) + show(path.assign)]))
        return "\n\n".join(texts)

    def _repr_svg_(self) -> str:
        return str(_draw_iteration(self))


_LANE, _ROW = 46.0, 62.0


def _draw_iteration(graph: IterationGraph) -> Drawing:
    """One column per assignment. A lane per access runs down to the last loop that it has a level in; a dot stands for a level."""
    columns = []
    left, height = _MARGIN, 0.0
    for path, stops in graph.nests:
        operands = tuple(dict.fromkeys((*accesses(path.assign.rhs), path.assign.lhs)))
        heading = max((text_width(show(access), 12) for access in operands), default=0) + 18
        lane = max(_LANE, heading)
        names = max((text_width(str(stop.var)) for stop in stops), default=0) + 26
        width = max(names + lane * len(operands) + 44, text_width(show(path.assign), 12) + 10)
        columns.append((path, stops, operands, lane, names, left, width))
        left += width + 34
        height = max(height, _MARGIN + 40 + _ROW * len(stops) + 52)
    drawing = Drawing(max(left - 34 + _MARGIN, 300), height + 14)
    for column in columns:
        _draw_nest(drawing, *column)
    drawing.circle(_MARGIN + 5, height, 4.5, 'class="sl-faint"')
    drawing.text(_MARGIN + 15, height, "sparse level", 'class="sl-faint"', 11, "start")
    drawing.circle(_MARGIN + 121, height, 4, 'fill="none" class="sl-line" stroke-width="2"')
    drawing.text(_MARGIN + 131, height, "full level", 'class="sl-faint"', 11, "start")
    return drawing


def _draw_nest(
    drawing: Drawing,
    path: Path,
    stops: tuple[Stop, ...],
    operands: tuple[Access, ...],
    lane: float,
    names: float,
    left: float,
    width: float,
) -> None:
    """One assignment: a box per loop, a lane per access beside their names, and the assignment below."""
    top = _MARGIN + 52
    rows = [top + _ROW * depth for depth in range(len(stops))]
    for depth, stop in enumerate(stops):
        drawing.rectangle(left, rows[depth] - 17, width, 34, 'class="sl-box"', 17)
        drawing.text(left + 16, rows[depth], str(stop.var), size=14, anchor="start")
        if stop.sign:
            drawing.text(left + width - 20, rows[depth], stop.sign, size=18)
        if depth + 1 < len(stops):
            x = left + 24
            drawing.arrow(f"M{x:g} {rows[depth] + 17:g}V{rows[depth + 1] - 20:g}", (x, rows[depth + 1] - 17), (0, 1), 'class="sl-line"')
    for number, access in enumerate(operands):
        x, paint = left + names + lane * (number + 0.5), colour(number)
        dots = [(rows[k], level) for k, stop in enumerate(stops) for found, level in stop.levels if found == access]
        drawing.text(x, _MARGIN + 8, show(access), f'fill="{paint}"', 12)
        if dots:
            drawing.path(f"M{x:g} {_MARGIN + 20:g}V{dots[-1][0]:g}", f'stroke="{paint}" stroke-width="3" stroke-linecap="round"')
        for y, level in dots:
            full = 'class="sl-white"' if level.full else f'fill="{paint}"'
            drawing.circle(x, y, 6.5, f'{full} stroke="{paint}" stroke-width="3"')
    drawing.text(left + width / 2, top + _ROW * len(stops) - 18, show(path.assign), 'class="sl-text"', 12)
