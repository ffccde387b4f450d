"""The iteration graph of a schedule, as text and as SVG: the loops in their order, and the path that every operand takes through them.

forall i     B dense
  forall j   B compressed ∩ c compressed
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sparseloom.core.once import cached_property
from sparseloom.core.signs import printable
from sparseloom.formats.level import Level
from sparseloom.iteration.foralls import Path, accesses, paths, places, provenance
from sparseloom.iteration.formula import ALWAYS, All, Any, Formula, Stored, stored
from sparseloom.iteration.walked import walked
from sparseloom.notation.nodes import Access, IndexVar, Stmt
from sparseloom.notation.printer import show
from sparseloom.show.svg import Drawing, colour, named, text_width

_MARGIN = 22.0


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
                for stored_var, level in zip(graph.stored(access), access.tensor.format.levels, strict=True)
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
        return printable("\n\n".join(texts))

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
        height = max(height, _MARGIN + 40 + _ROW * len(stops) + 36)
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
        drawing.rectangle(left, rows[depth] - 17, width, 34, f'class="sl-box" {named(stop.var)}', 17)
        drawing.text(left + 16, rows[depth], str(stop.var), f'class="sl-text" {named(stop.var)}', 14, "start")
        if stop.sign:
            drawing.text(left + width - 20, rows[depth], stop.sign, size=18)
        if depth + 1 < len(stops):
            x = left + 24
            drawing.arrow(f"M{x:g} {rows[depth] + 17:g}V{rows[depth + 1] - 20:g}", (x, rows[depth + 1] - 17), (0, 1), 'class="sl-line"')
    for number, access in enumerate(operands):
        x, paint = left + names + lane * (number + 0.5), colour(number)
        dots = [dot for k, stop in enumerate(stops) for dot in _dots(rows[k], [level for found, level in stop.levels if found == access])]
        drawing.text(x, _MARGIN + 8, show(access), f'fill="{paint}" {named(access.tensor)}', 12)
        if dots:
            drawing.path(f"M{x:g} {_MARGIN + 20:g}V{dots[-1][0]:g}", f'stroke="{paint}" stroke-width="2.5" stroke-linecap="round"')
        for y, level in dots:
            full = 'class="sl-hollow"' if level.full else f'fill="{paint}"'
            drawing.circle(x, y, 5, f'{full} stroke="{paint}" stroke-width="2.5"')
    drawing.text(left + width / 2, top + _ROW * len(stops) - 18, show(path.assign), 'class="sl-text"', 12)


def _dots(y: float, levels: list[Level]) -> list[tuple[float, Level]]:
    """Where the levels of one operand stand in a loop's box: below each other, if the loop settles several."""
    step = min(13.0, 23 / max(1, len(levels) - 1))
    return [(y + step * (k - (len(levels) - 1) / 2), level) for k, level in enumerate(levels)]
