"""Walking one operand: its range at a level, its coordinate at a position, and what follows once a coordinate is known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparseloom.core.dtypes import BOOL, INT64, DType, computed
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.level import Level, LevelView
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.scope.ranges import Range, least, most, subtract
from sparseloom.scope.scope import Place, Scope
from sparseloom.scope.views import value_at


@dataclass(frozen=True)
class Walker:
    """One sparse level of one operand, about to be walked: positions from ``begin`` to ``end`` below the current parent."""

    access: Access
    level: Level
    view: LevelView
    parent: Place
    position: ir.Var
    stop: ir.Var
    begin: ir.Expr
    end: ir.Expr
    run_end: ir.Var  # the first position behind the current run of equal coordinates

    def coordinate(self, position: ir.Expr | None = None) -> ir.Expr:
        """The coordinate at a position."""
        return self.level.coordinate(self.view, self.parent.position, self.position if position is None else position)

    def found(self, var: ir.Var) -> ir.Stmt:
        """Declare the coordinate at the current position."""
        return ir.Declare(var, self.coordinate(), f"coordinate of {self.access.tensor}")

    def search(self, begin: ir.Expr, end: ir.Expr, coordinate: ir.Expr) -> ir.Expr:
        """The first position whose coordinate is at least the given one."""
        return self.level.search(self.view, self.parent.position, begin, end, coordinate)

    @property
    def slot(self) -> ir.Expr:
        """Where the values of the current position stand."""
        return self.level.slot(self.view, self.parent.position, self.position)

    @property
    def is_used(self) -> ir.Expr:
        """Whether the current position holds something; where a level has no holes, every one does."""
        return self.level.used(self.view, self.parent.position, self.position) if self.level.has_holes else ir.TRUE

    def skip(self) -> ir.Stmt:
        """Move the cursor on to a position that is used."""
        if not self.level.has_holes:
            return ir.block()
        unused = ir.both(self.is_live, ir.Op("logical_not", (self.is_used,), BOOL))
        return ir.While(unused, ir.Assign(self.position, ir.add(self.position, ir.ONE)))

    def is_at(self, coordinate: ir.Expr) -> ir.Expr:
        """Whether the cursor stands at a coordinate."""
        return ir.both(self.is_live, ir.compare("equal", self.coordinate(), coordinate), self.is_used)

    @property
    def is_live(self) -> ir.Expr:
        """Whether positions are left."""
        return ir.compare("less", self.position, self.stop)

    @property
    def is_last(self) -> bool:
        """Whether the level is the operand's last, so that its positions have values."""
        return self.parent.depth + 1 == len(self.access.tensor.format.levels)

    @property
    def is_run(self) -> bool:
        """Whether equal coordinates may stand side by side."""
        return not self.level.unique

    def start(self) -> ir.Stmt:
        """Declare the cursor and its end."""
        return ir.block(ir.Declare(self.position, self.begin), ir.Declare(self.stop, self.end), self.skip())


def make_walker(access: Access, scope: Scope) -> Walker:
    """Prepare to walk the next level of an operand."""
    place = scope.at(access)
    level = access.tensor.format.levels[place.depth]
    view = scope.view(access).levels[place.depth]
    name = scope.fresh(f"p{access.tensor.name}{place.depth + 1}")
    begin, end = cut(segment(level, view, place), scope.cuts.get((access, place.depth)))
    stop, run_end = ir.Var(scope.fresh(f"{name}_end")), ir.Var(scope.fresh(f"{name}_run"))
    return Walker(access, level, view, place, ir.Var(name), stop, begin, end, run_end)


def segment(level: Level, view: LevelView, place: Place) -> Range:
    """The positions below a place; none if its operand turns out to be absent."""
    begin, end = (place.position, place.end) if place.end is not None else level.bounds(view, place.position)
    return if_present(place, begin), if_present(place, end)


def if_present(place: Place, position: ir.Expr) -> ir.Expr:
    """A limit of the positions below a place; 0 if its operand turns out to be absent, so that there are none."""
    return position if place.present == ir.TRUE else ir.Select(place.present, position, ir.ZERO)


def cut(positions: Range, limits: Range | None) -> Range:
    """A range of positions confined to another."""
    if limits is None:
        return positions
    return most(positions[0], limits[0]), least(positions[1], limits[1])


def between(scope: Scope, walker: Walker, low: ir.Expr, high: ir.Expr) -> tuple[ir.Stmt, Walker]:
    """A walker confined to coordinates in ``[low, high)``: its first position is searched, and so is its last."""
    begin, end = (ir.Var(scope.fresh(f"{walker.position.name}_{which}")) for which in ("first", "last"))
    stop = most(walker.begin, walker.end)
    first, last = walker.search(walker.begin, stop, low), walker.search(begin, stop, most(low, high))
    return ir.block(ir.Declare(begin, first), ir.Declare(end, last)), replace(walker, begin=begin, end=end)


def next_variable(scope: Scope, access: Access, place: Place) -> IndexVar | None:
    """The variable of the next level to bind, or None when all are bound."""
    variables = scope.provenance.stored(access)
    return variables[place.depth] if place.depth < len(variables) else None


def find_run(walker: Walker, coordinate: ir.Expr, here: ir.Expr = ir.TRUE) -> ir.Stmt:
    """Find the end of the run of positions that have this coordinate; empty if the walker is not here."""
    if not walker.is_run:
        return ir.block()
    end = walker.run_end
    more = ir.both(ir.compare("less", end, walker.stop), ir.compare("equal", walker.coordinate(end), coordinate), here)
    return ir.block(ir.Declare(end, walker.position), ir.While(more, ir.Assign(end, ir.add(end, ir.ONE))))


def look_up(walker: Walker, coordinate: ir.Expr) -> ir.Stmt:
    """Declare the cursor where a coordinate would stand: found by search, or entry by entry where there is no order to search by."""
    if walker.level.ordered:
        return ir.Declare(walker.position, walker.search(walker.begin, walker.stop, coordinate))
    elsewhere = ir.both(walker.is_live, ir.compare("not_equal", walker.coordinate(), coordinate))
    onwards = ir.Assign(walker.position, ir.add(walker.position, ir.ONE))
    return ir.block(ir.Declare(walker.position, walker.begin), ir.While(elsewhere, onwards))


def step(walker: Walker, here: ir.Expr = ir.TRUE) -> ir.Stmt:
    """Move the cursor past the current coordinate, if it is there."""
    if walker.is_run:
        return ir.Assign(walker.position, walker.run_end)
    by = ir.ONE if here == ir.TRUE else ir.Cast(here, INT64)
    return ir.block(ir.Assign(walker.position, ir.add(walker.position, by)), walker.skip())


def bound_place(scope: Scope, walker: Walker, present: ir.Expr = ir.TRUE) -> tuple[ir.Stmt, Place]:
    """The place of an operand once its walker stands on the loop's coordinate; a run at the leaf is summed."""
    parent = walker.parent
    depth = parent.depth + 1
    if not walker.is_run:
        return ir.block(), parent.below(depth, walker.position, None, present, slot=walker.slot)
    if depth < len(walker.access.tensor.format.levels):
        return ir.block(), parent.below(depth, walker.position, walker.run_end, present)
    values = scope.view(walker.access).values
    total = ir.Var(scope.fresh(f"{walker.access.tensor.name}_sum"), computed(values.dtype))
    entry = ir.Var(scope.fresh(f"{walker.position.name}_entry"))
    added = ir.Op("add", (total, value_at(values, entry)), total.dtype)
    loop = ir.For(entry, walker.position, walker.run_end, ir.Assign(total, added))
    place = parent.below(depth, walker.position, walker.run_end, present, total)
    return ir.block(ir.Declare(total, _nothing(total.dtype)), loop), place


def _nothing(dtype: DType) -> ir.Expr:
    """What leaves every value as it is when it is added; with 0.0, a stored -0.0 would lose its sign."""
    match dtype.kind:
        case "f":
            return ir.constant(-0.0, dtype)
        case "c":
            return ir.constant(complex(-0.0, -0.0), dtype)
    return ir.constant(0, dtype)


def position_count(access: Access, level: int, scope: Scope) -> ir.Expr:
    """How many positions a level has below all parents together."""
    levels, views = access.tensor.format.levels, scope.view(access).levels
    count = levels[0].bounds(views[0], ir.ZERO)[1]
    for k in range(1, level + 1):
        count = levels[k].begin(views[k], count)
    return count


def lists_all(level: Level) -> bool:
    """Whether every position of a level, below whichever parent, has a coordinate that is stored."""
    return level.compact and not level.has_holes and level.coordinate_array is not None


def entry_count(walker: Walker, scope: Scope) -> ir.Expr | None:
    """How many entries stand in the arrays of an operand that is walked; None if that is not known, or values stand elsewhere."""
    depth = walker.parent.depth
    if depth + 1 < len(walker.access.tensor.format.levels) or not lists_all(walker.level) or walker.slot != walker.position:
        return None
    return position_count(walker.access, depth, scope) if scope.is_array(walker.access) else None


def settle(scope: Scope) -> tuple[ir.Stmt, Scope]:
    """Bind every further level whose variable is known by now: dense levels are located, others searched."""
    stmts: list[ir.Stmt] = []
    for access in scope.operands:
        place, view = scope.at(access), scope.view(access)
        reach = scope.reach.get(access, len(access.tensor.format.levels))
        while not place.is_absent and place.depth < reach:
            var = next_variable(scope, access, place)
            if var is None or var not in scope.coordinates:
                break
            # Positions begin anywhere, the levels of a workspace at 0.
            here = scope.coordinates[var] if view.starts is None else subtract(scope.coordinates[var], view.starts[place.depth])
            code, place = _locate(scope, access, place, here)
            stmts.append(code)
            if view.mask is not None and next_variable(scope, access, place) is None:
                place = replace(place, present=ir.Load(view.mask, place.position))
        scope = scope.placing({access: place})
    return ir.block(*stmts), scope


def _locate(scope: Scope, access: Access, place: Place, coordinate: ir.Expr) -> tuple[ir.Stmt, Place]:
    level = access.tensor.format.levels[place.depth]
    view = scope.view(access).levels[place.depth]
    if level.can_locate:
        if place.end is not None:
            raise CompilerBug(access, "a level below repeated coordinates cannot be located")
        return _located(scope, access, place, level.locate(view, place.position, coordinate))
    stem = f"p{access.tensor.name}{place.depth + 1}"
    position = ir.Var(scope.fresh(stem))
    stop = ir.Var(scope.fresh(f"{stem}_end"))
    found = ir.Var(scope.fresh(f"{stem}_found"), BOOL)
    begin, end = segment(level, view, place)
    walker = Walker(access, level, view, place, position, stop, begin, end, ir.Var(scope.fresh(f"{position.name}_run")))
    here = walker.is_at(coordinate)
    scope.remark(f"{access.tensor.name} is searched for {coordinate_name(coordinate)}")
    code: list[ir.Stmt] = [ir.Declare(stop, end), look_up(walker, coordinate), ir.Declare(found, here)]
    if level.unique:
        return ir.block(*code), place.below(place.depth + 1, position, None, found, slot=walker.slot)
    code.append(find_run(walker, coordinate, found))
    summed, placed = bound_place(scope, walker, found)
    return ir.block(*code, summed), placed


def _located(scope: Scope, access: Access, place: Place, located: tuple[ir.Expr, ir.Expr]) -> tuple[ir.Stmt, Place]:
    """The place of a coordinate whose position was computed; it may turn out not to be there."""
    position, found = located
    if found == ir.TRUE:
        return ir.block(), place.below(place.depth + 1, position, None, place.present)
    here = ir.Var(scope.fresh(f"p{access.tensor.name}{place.depth + 1}_found"), BOOL)
    # Where the operand is absent already there is no position to look at.
    return ir.Declare(here, ir.both(place.present, found)), place.below(place.depth + 1, position, None, here)


def coordinate_name(coordinate: ir.Expr) -> str:
    """How a remark calls a coordinate."""
    return coordinate.name if isinstance(coordinate, ir.Var) else "a coordinate"
