"""The iteration space of a schedule on a small matrix: in which order its entries are visited, and into which tiles they are cut.

    1  .  2  .        split(j,j0,j1,2): two tiles, a and b, of two columns each
    .  3  .  4
    a     b

The order follows from the relations alone. Every derived variable has a value at every entry (``recover_derived``), and the
loops visit the entries in the lexicographic order of those values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.errors import ScheduleError
from sparseloom.core.once import cached_property
from sparseloom.iteration.foralls import Path, operands, paths, provenance, reads
from sparseloom.notation.nodes import Access, IndexVar, Stmt
from sparseloom.notation.printer import show
from sparseloom.relations.arithmetic import ARRAYS
from sparseloom.relations.relation import FoundAgain, Pieces, Positions, Ranges
from sparseloom.show.svg import Drawing, colour

Integers = NDArray[np.int64]
MOST = 16  # rows and columns that a picture can show


def draw(stmt: Stmt, matrix: Any) -> IterationSpace:
    """The picture of a statement's loops over a small matrix: an array, or anything with ``to_numpy`` or ``toarray``."""
    densely = next((getattr(matrix, name)() for name in ("to_numpy", "toarray") if hasattr(matrix, name)), matrix)
    values = np.asarray(densely)
    access = next((found for found in operands(stmt) if len(found.indices) == 2 and len(set(found.indices)) == 2), None)
    if access is None:
        names = ", ".join(map(show, operands(stmt)))
        raise ScheduleError(f"there is no matrix to draw: the statement reads {names}\n  help: pictures show an operand with two variables")
    if values.ndim != 2 or max(values.shape) > MOST or not values.size:
        raise ScheduleError(f"a picture shows 1 to {MOST} rows and columns, not shape {values.shape}\n  help: draw a part of the matrix")
    seen = np.ones_like(values, bool) if access.tensor.format.is_dense else values != 0
    return IterationSpace(stmt, access, values.shape, np.argwhere(seen))


@dataclass(frozen=True, eq=False)
class IterationSpace:
    """The entries of ``access``, in the order in which the loops visit them. ``points`` are their coordinates, a row each."""

    stmt: Stmt
    access: Access
    shape: tuple[int, ...]
    points: Integers

    @cached_property
    def path(self) -> Path:
        """The assignment that reads the matrix, with its loops."""
        return next(path for path in paths(self.stmt) if self.access in reads(path.assign))

    @cached_property
    def order(self) -> Integers:
        """The numbers of the points in the order of their visits."""
        keys = [self._values.of(var) for var in reversed(self.path.variables)]
        return np.lexsort(keys) if keys else np.arange(len(self.points))

    @cached_property
    def tiles(self) -> Integers:
        """The tile of every point, numbered in the order of their first visits; one tile if nothing is cut."""
        cuts = self.cuts
        if not cuts or not len(self.points):
            return np.zeros(len(self.points), np.int64)
        tile = _ranks([self._values.of(var) for var in cuts])
        first = list(dict.fromkeys(tile[self.order].tolist()))
        return np.array([first.index(number) for number in tile.tolist()])

    @property
    def cuts(self) -> tuple[IndexVar, ...]:
        """The loops that count tiles: the outer halves of splits and divides, and parallel loops; outermost first."""
        graph = provenance(self.stmt)
        outer = {child for r in graph.relations for child in r.significant[:-1]}
        mine = set(self.access.indices)
        here = [loop for loop in self.path.loops if mine.intersection(graph.originals(loop.var))]
        return tuple(loop.var for loop in here if loop.var in outer or loop.tag.unit is not None)

    def value(self, var: IndexVar) -> Integers:
        """The value of a variable at every point."""
        return self._values.of(var)

    @cached_property
    def _values(self) -> _Values:
        return _Values(self)

    def __str__(self) -> str:
        """The number of every visit, and the letter of its tile where there are several."""
        several = len(set(self.tiles.tolist())) > 1
        cells = np.full(self.shape, ".", dtype=object)
        for visit, point in enumerate(self.order):
            cells[tuple(self.points[point])] = f"{ascii_lowercase[self.tiles[point] % 26] if several else ''}{visit + 1}"
        width = max((len(cell) for cell in cells.flat), default=1)
        return "\n".join("  ".join(f"{cell:>{width}}" for cell in row) for row in cells)

    def _repr_svg_(self) -> str:
        return str(_drawing(self))


class _Values(Ranges[Integers]):
    """The values of variables at every point, computed from the relations. Their extents differ, as the segments of positions do."""

    arithmetic = ARRAYS

    def __init__(self, space: IterationSpace) -> None:
        self.graph = provenance(space.stmt)
        self.space = space
        self.known: dict[IndexVar, Integers] = {}
        self.sizes = dict(zip(space.access.indices, space.shape, strict=True))

    def of(self, var: IndexVar) -> Integers:
        """The value of a variable at every point. What the matrix does not have is 0."""
        if var not in self.known:
            self.known[var] = self._derived(var)
        return self.known[var]

    def _derived(self, var: IndexVar) -> Integers:
        relation = self.graph.made_by(var)
        if relation is None:
            indices = self.space.access.indices
            return self.space.points[:, indices.index(var)] if var in indices else np.zeros(len(self.space.points), np.int64)
        values = {parent: self.of(parent) for parent in relation.parents}
        return relation.derive(values, self)[relation.children.index(var)]

    def range_of(self, var: IndexVar) -> tuple[Integers, Integers]:
        """Where the range of a variable begins and ends, at every point."""
        relation, zeros = self.graph.made_by(var), np.zeros(len(self.space.points), np.int64)
        low, high = (0, self.sizes.get(var, 1)) if relation is None else relation.range_of(var, self)
        return zeros + low, zeros + high

    def position_at(self, relation: Positions, values: Mapping[IndexVar, Integers]) -> Integers:
        """How many entries of the same segment come before one."""
        return self._position(relation.coordinate, relation.access)

    def coordinate_at(self, relation: FoundAgain, values: Mapping[IndexVar, Integers]) -> Integers:
        """Coordinates that are found again are counted from the first."""
        covered = self._coordinate(relation.position)
        return covered - _least(covered, self._group(relation.position))

    def piece_at(self, relation: Pieces, values: Mapping[IndexVar, Integers]) -> Integers:
        """The last piece of which the share begins at or before the entries of a point's row; of other operands nothing is known."""
        if relation.access != self.space.access:
            share = ARRAYS.share(self.extent(relation.parent), ARRAYS.number(relation.count))
            return self.of(relation.parent) // share
        variables = self.graph.stored(relation.access)
        group = _ranks([self.of(v) for v in variables[: variables.index(relation.parent)]] or [np.zeros(len(self.space.points), np.int64)])
        row, piece = self.of(relation.parent), np.zeros(len(self.space.points), np.int64)
        level, extent = relation.access.tensor.format.levels[variables.index(relation.parent)], self.extent(relation.parent)
        for number in np.unique(group):
            mine = group == number
            rows = row[mine]
            stored = np.arange(extent[mine][0]) if level.full else np.unique(rows)
            before = np.searchsorted(np.sort(rows), rows) + relation.rows * np.searchsorted(stored, rows)
            begins = np.arange(relation.count) * (len(rows) + relation.rows * len(stored)) // relation.count
            piece[mine] = np.searchsorted(begins, before, side="right") - 1
        return piece

    def positions_of(self, relation: Positions) -> tuple[Integers, Integers]:
        """Positions are counted from the first of their segment."""
        return self._counted(relation.position)

    def coordinates_of(self, relation: FoundAgain) -> tuple[Integers, Integers]:
        """So are coordinates that are found again."""
        return self._counted(relation.coordinate)

    def _counted(self, var: IndexVar) -> tuple[Integers, Integers]:
        last = -_least(-self.of(var), self._group(var))
        return np.zeros_like(last), last + 1

    def _group(self, var: IndexVar) -> list[Integers]:
        """What is fixed outside a position or coordinate loop: the levels above it, and the outer digits."""
        relation = self.graph.made_by(var)
        if relation is not None and relation.found_again is not None:
            return self._group(relation.found_again.position)
        if relation is not None and relation.whole is not None and len(relation.children) > 1 and var in relation.significant[-1:]:
            return [*self._group(relation.whole), *map(self.of, relation.significant[:-1])]
        position = self.graph.position(var)
        segment = None if position is None else self._segment(position.coordinate, position.access)
        return [] if segment is None else segment[0]

    def _segment(self, coordinate: IndexVar, access: Access) -> tuple[list[Integers], tuple[int, int]] | None:
        """What is fixed outside the positions of an operand, and the first and last level that they run through."""
        stored = self.graph.stored(access)
        span, levels = self.graph.span(coordinate, stored), self.graph.levels(coordinate, access)
        if span is None or levels is None:
            return None
        return [self.of(v) for v in (*stored[: levels[0]], *sorted(span.needs, key=str))], levels

    def _position(self, coordinate: IndexVar, access: Access) -> Integers:
        """How many entries of the same segment come before this one."""
        variables, levels = self.graph.stored(access), access.tensor.format.levels
        segment = self._segment(coordinate, access) if access == self.space.access else None
        if segment is None:
            return self.of(coordinate)
        group, (first, last) = segment
        while last + 1 < len(levels) and levels[last + 1].branchless:
            last += 1  # every entry of a chain has a position of its own
        place = np.zeros(len(self.space.points), np.int64)
        for k in range(first, last + 1):
            here = self.of(variables[k])
            place = place * self.extent(variables[k]) + here if levels[k].full else _ranks([*group, place, here])
        return place - _least(place, group)

    def _coordinate(self, position: IndexVar) -> Integers:
        """The coordinates that a position stands for, as one number."""
        relation = self.graph.position(position)
        span = None if relation is None else self.graph.span(relation.coordinate)
        number = np.zeros(len(self.space.points), np.int64)
        for var in span.variables if span is not None else ():
            number = number * self.extent(var) + self.of(var)
        return number


def _ranks(keys: Sequence[Integers]) -> Integers:
    """Equal keys get equal numbers, in lexicographic order, with no gaps."""
    number = np.zeros_like(keys[0])
    for key in keys:
        if not len(key):
            return number
        low, span = int(key.min()), int(key.max()) - int(key.min()) + 1
        if int(number.max()) > 2**62 // span:
            number = np.unique(number, return_inverse=True)[1]
        number = number * span + (key - low)
    return np.unique(number, return_inverse=True)[1].astype(np.int64)


def _least(values: Integers, group: Sequence[Integers]) -> Integers:
    """The least value in the group of every point."""
    if not len(values):
        return values
    member = _ranks(group) if group else np.zeros(len(values), np.int64)
    least = np.full(int(member.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(least, member, values)
    return least[member]


_CELL, _MARGIN = 34.0, 30.0


def _drawing(space: IterationSpace) -> Drawing:
    """The grid, every visited entry in its tile's colour with the number of its visit, and arrows from each to the next."""
    rows, columns = space.shape
    drawing = Drawing(_CELL * columns + 2 * _MARGIN, _CELL * rows + 2 * _MARGIN + 24)
    row, column = space.access.indices
    for r in range(rows):
        for c in range(columns):
            drawing.rectangle(_MARGIN + _CELL * c, _MARGIN + _CELL * r, _CELL, _CELL, 'class="sl-grid"')
    drawing.text(_MARGIN + 12, 15, f"{column} →", 'class="sl-faint"', 12)
    drawing.text(15, _MARGIN + 12, f"{row} ↓", 'class="sl-faint"', 12)
    for point, (r, c) in enumerate(space.points):
        paint = colour(int(space.tiles[point]))
        x, y = _MARGIN + _CELL * c, _MARGIN + _CELL * r
        drawing.rectangle(x + 1.5, y + 1.5, _CELL - 3, _CELL - 3, f'fill="{paint}" class="sl-pale" stroke="{paint}"', 5)
    _arrows(drawing, space)
    for visit, point in enumerate(space.order):
        r, c = space.points[point]
        drawing.text(_MARGIN + _CELL * (c + 0.72), _MARGIN + _CELL * (r + 0.76), str(visit + 1), size=9.5)
    count = len(set(space.tiles.tolist()))
    words = f"{len(space.points)} visits" + (f", {count} tiles by {', '.join(map(str, space.cuts))}" if space.cuts else "")
    drawing.text(_MARGIN, drawing.height - 22, words, 'class="sl-faint"', 11, "start")
    return drawing


def _arrows(drawing: Drawing, space: IterationSpace) -> None:
    """From every visit to the next. Inside a tile in its colour; on to another tile faint and dashed."""
    centres = [(_MARGIN + _CELL * (c + 0.38), _MARGIN + _CELL * (r + 0.4)) for r, c in space.points]
    visits = space.order.tolist()
    for before, after in pairwise(visits):
        (x0, y0), (x1, y1) = centres[before], centres[after]
        length = float(np.hypot(x1 - x0, y1 - y0))
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        tip = (x1 - 4 * dx, y1 - 4 * dy)
        line = f"M{x0:g} {y0:g}L{tip[0] - 5 * dx:g} {tip[1] - 5 * dy:g}"
        same = space.tiles[before] == space.tiles[after]
        paint = colour(int(space.tiles[before])) if same else None
        is_step = same and length < 1.5 * _CELL
        strength = "1.6" if is_step else '1.2" stroke-opacity=".45'
        look = f'stroke="{paint}" stroke-width="{strength}"' if same else 'class="sl-line" stroke-width="1" stroke-dasharray="3 3"'
        drawing.arrow(line, tip, (dx, dy), look, paint)
    for (x, y), tile in zip(centres, space.tiles, strict=True):
        drawing.circle(x, y, 3, f'fill="{colour(int(tile))}"')
