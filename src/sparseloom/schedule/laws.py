"""What every scheduled statement keeps, whichever step made it: checked once after each step."""

from __future__ import annotations

from itertools import product

from sparseloom.formats.format import Format
from sparseloom.formats.level import Collector
from sparseloom.formats.named import name_of
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import Path, paths, provenance, reads, relations_of, result, temporaries
from sparseloom.iteration.layout import modes_in_order, plain
from sparseloom.iteration.making import Appended, Making
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import is_skippable, written
from sparseloom.notation.nodes import Access, IndexVar, Stmt, TensorVar
from sparseloom.notation.printer import show
from sparseloom.relations.relation import Relation
from sparseloom.schedule.asked_ahead import not_ahead
from sparseloom.schedule.races import unresolved
from sparseloom.schedule.refusal import Refusal, listed
from sparseloom.schedule.units import misplaced
from sparseloom.targets.interpret import INTERPRET
from sparseloom.targets.target import Target


def breach(concrete: Concrete, target: Target = INTERPRET) -> Refusal | None:
    """The first law that a statement breaks, if it runs on a target; the interpreter has every unit."""
    stmt, appended = concrete.stmt, appended_result(concrete)
    unordered = out_of_order(stmt, appended, concrete) if appended is not None else None
    return (
        mixed(stmt)
        or loose_position(stmt)
        or unsized(stmt)
        or unsearchable(stmt)
        or unordered
        or written_again(stmt)
        or unvisited(stmt)
        or misplaced(stmt, target)
        or not_ahead(stmt)
        or unresolved(stmt, appended, own_rows(concrete))
    )


def own_rows(concrete: Concrete) -> frozenset[IndexVar] | None:
    """The variables whose values have rows of their own: all but the last of an inserted result; None where any may be outermost."""
    return frozenset(provenance(concrete.stmt).stored(concrete.assign.lhs)[:-1]) if concrete.inserted else None


def appended_result(concrete: Concrete) -> TensorVar | None:
    """The result, if its entries are appended one after another: sparse, and with a structure of its own."""
    tensor = result(concrete.stmt).tensor
    return None if tensor.format.is_dense or concrete.shared is not None else tensor


def mixed(stmt: Stmt) -> Refusal | None:
    """Variables that a relation joins although the range of one, which only the data tell, depends on another.

    The loops of a nest may run through positions of one operand, or find coordinates again; values that are recovered have no such loops.
    """
    graph = provenance(stmt)
    for relation in relations_of(stmt):
        spaces = [graph.position(var) for var in relation.parents]
        for var, counted in zip(relation.parents, spaces, strict=True) if len(spaces) > 1 else ():
            made = [graph.made_by(above) for above in graph.line(var)]
            if counted is not None and (not relation.nest or any(space != counted for space in spaces)):
                what = f"positions of {show(counted.access)}"
            elif not relation.nest and any(found is not None and found.found_again is not None for found in made):
                what = "coordinates that are found again"
            else:
                continue
            why = f"{var} counts {what}, and {relation.word} would join it with {listed(v for v in relation.parents if v != var)}"
            return Refusal("S306", why, f"use {relation.word} before pos", at=relation.children[0])
    return None


def loose_position(stmt: Stmt) -> Refusal | None:
    """A position loop outside of what tells where its segment is."""
    graph = provenance(stmt)
    measured = [relation for relation in relations_of(stmt) if relation.follows_from_data]
    for relation, path in product(measured, paths(stmt)):
        inside = [k for k, var in enumerate(path.variables) if relation.children[-1] in graph.ancestors(var)]
        if inside:
            var = path.variables[inside[0]]
            missing = sorted(_needs(graph, relation) - graph.known(path.variables[: inside[0]]), key=str)
            if missing:
                what = f"{var} runs through a piece that is cut in" if relation.pieces is not None else f"{var} stands for entries below"
                why = f"{what} {listed(missing)}, which would not be known outside the loop over {var}"
                return Refusal("S606", why, f"keep the loop over {var} inside those that settle {listed(missing)}", at=var)
    return None


def _needs(graph: Provenance, relation: Relation) -> frozenset[IndexVar]:
    """What must be known before the first loop of a variable whose range only the data tell."""
    pieces, counted = relation.pieces, relation.positions
    if pieces is not None:
        stored = graph.stored(pieces.access)
        return frozenset({pieces.outer, *stored[: stored.index(pieces.parent)]})
    if counted is None:
        span = graph.span(relation.parents[0])
        return frozenset() if span is None else span.needs
    stored = graph.stored(counted.access)
    span, levels = graph.span(counted.coordinate, stored), graph.levels(counted.coordinate, counted.access)
    return frozenset() if span is None or levels is None else span.needs.union(stored[: levels[0]])


def unsized(stmt: Stmt) -> Refusal | None:
    """A temporary over positions or a piece, outside of what tells how many there are: like their loops, it needs to know them."""
    graph = provenance(stmt)
    for outer, where in temporaries(stmt):
        made = written(where.producer).tensor
        read = next(access for access in reads(where.consumer) if access.tensor == made)
        for var in read.indices:
            if graph.extent(var) is not None:
                continue
            # Coordinates that are found again run as far as they did, wherever their positions are.
            counts, made_by = graph.position(var) is not None, [graph.made_by(above) for above in graph.ancestors(var)]
            told = [r for r in made_by if r is not None and (r.follows_from_data if counts else r.pieces is not None)]
            needed = {need for relation in told for need in _needs(graph, relation)}
            missing = sorted(needed - graph.known(outer), key=str)
            if missing:
                why = f"how far {var} runs depends on {listed(missing)}, which is not known where {made} is made"
                advice = f"choose variables further in, or precompute over coordinates: before pos, or after coord({var}, ...)"
                return Refusal("S606", why, advice, at=var)
    return None


def written_again(stmt: Stmt) -> Refusal | None:
    """Positions of a level that repeats coordinates, in a loop that sets each place once: entries that repeat are needed together."""
    graph = provenance(stmt)
    for path in paths(stmt):
        indexed = [graph.position(var) for var in path.assign.lhs.indices]
        for var in path.variables:
            relation = graph.position(var)
            if path.assign.op is None and relation is not None and relation not in indexed and not graph.is_distinct(relation):
                why = f"{show(relation.access)} repeats coordinates at this level, so {show(path.assign.lhs)} would be set more than once"
                return Refusal("S413", why, "fuse the loops over all of its levels first, and use pos on the fused one", at=var)
    return None


def unvisited(stmt: Stmt) -> Refusal | None:
    """A sum that may not skip absent terms, outside the loops over the blocks that list what they are given.

    Places are initialised before the loops that reduce into them, also where there is nothing to sum (LOWERING.md, where results go). Such
    blocks have places only for what they are given, so the loops over their own variables must come first.
    """
    graph = provenance(stmt)
    for path in paths(stmt):
        lhs, op = path.assign.lhs, path.assign.op
        lists = any(level.collector not in (None, Collector.LIST) for level in lhs.tensor.format.levels)
        if op is None or not lists or is_skippable(path.assign.rhs, op):
            continue
        inside = path.variables[path.temporaries.get(lhs.tensor.name, 0) :]
        own = [var for var in inside if {*graph.originals(var)} & {*lhs.indices}]
        early = [var for var in inside[: inside.index(own[-1])] if var not in own] if own else []
        early += [var for var in own if not {*graph.originals(var)} <= {*lhs.indices}]  # fused with what is summed
        if early:
            first, nothing = early[0], f"{lhs.tensor} would have no entry where there is nothing to sum"
            if first in own:
                return Refusal("S616", f"{first} fuses the loop over {lhs.tensor} with a sum, and {nothing}", "fuse other loops", at=first)
            why = f"{first} is summed outside the loop over {own[-1]}, and {nothing}"
            return Refusal("S616", why, f"keep the loop over {first} inside", at=first)
    return None


def unsearchable(stmt: Stmt) -> Refusal | None:
    """An operand whose level is settled before its parent, and that cannot be searched there."""
    graph = provenance(stmt)
    for path in paths(stmt):
        settled = _settled(graph, path)
        for access in reads(path.assign):
            stored = graph.stored(access)
            for k, level in enumerate(access.tensor.format.levels):
                if level.full or level.ordered or level.can_locate:
                    continue
                other = _driver(graph, path, stored[k])
                if other is not None and other != access:
                    why = f"positions of {show(other)} give {stored[k]}, which {access.tensor} stores in no order, so it cannot be searched"
                    return Refusal("S613", why, f"use pos on {show(access)}, or convert it to an ordered format", at=stored[k])
                late = [v for v in stored[:k] if settled.get(v, _START) > settled.get(stored[k], _START)]
                if late:
                    why = f"{access.tensor} is stored below {listed(late)}, in no order, so {stored[k]} cannot be searched there"
                    return Refusal("S607", why, f"convert it first: {access.tensor}.to({_storable(access, settled)!r})", at=stored[k])
    return None


Moment = tuple[int, int]
_START: Moment = (0, 0)


def _settled(graph: Provenance, path: Path) -> dict[IndexVar, Moment]:
    """At which loop every variable of a path becomes known, and at which of the loops that a fused one turns into."""
    found: dict[IndexVar, Moment] = {}
    for depth in range(len(path.loops) + 1):
        order = graph.covered(path.variables[depth - 1]) if depth else ()
        for var in graph.known(path.variables[:depth]):
            found.setdefault(var, (depth, order.index(var) if var in order else 0))
    return found


def _driver(graph: Provenance, path: Path, var: IndexVar) -> Access | None:
    """The operand whose positions give a variable, if positions do."""
    for depth, loop in enumerate(path.variables):
        if var in graph.known(path.variables[: depth + 1]):
            relation = graph.position(loop)
            return None if relation is None else relation.access
    return None


def _storable(access: Access, settled: dict[IndexVar, Moment]) -> str:
    """The format that stores an operand in the order in which its variables are settled."""
    order = tuple(sorted(access.indices, key=lambda v: settled.get(v, _START)))
    return name_of(Format(plain(access.tensor.format).levels, modes_in_order(access, order)))


def out_of_order(stmt: Stmt, appended: TensorVar, concrete: Concrete) -> Refusal | None:
    """A loop order in which a result's entries would not come one after another, as stored or as ``inserted`` says."""
    for path in paths(stmt):
        lhs = path.assign.lhs
        if lhs.tensor == appended:
            wanted, last = _append_order(stmt, lhs, concrete.inserted)
            found = [var for var in path.variables if var in wanted]
            if found != wanted:
                why = f"{show(lhs)} is appended in the order {listed(wanted)}, but {_run(stmt, path, wanted, found)}"
                return Refusal("S608", why, _ADVICE, at=found[0] if found else path.variables[0])
            early = [var for var in path.variables[: path.variables.index(wanted[last])] if var not in wanted]
            if early:
                why = f"the loop over {early[0]} would visit entries of {show(lhs)} again, and they are appended once"
                return Refusal("S609", why, _ADVICE, at=early[0])
    return _cut_rows(stmt, appended, concrete.making) or _repeated(stmt, appended)


def _run(stmt: Stmt, path: Path, wanted: list[IndexVar], found: list[IndexVar]) -> str:
    """How the loops run instead: in another order, or over what a relation made of a variable without keeping its order."""
    for relation in relations_of(stmt):
        lost = [var for var in relation.parents if var in wanted and var not in path.variables]
        if lost and not relation.is_local:
            made = f"{listed(relation.children)}, which {relation.word} made of {listed(relation.parents)}"
            return f"the loops over {made}, run in another one"
    return f"the loops run {listed(found)}"


_ADVICE = "such an order needs a workspace or a dense result"


def _append_order(stmt: Stmt, lhs: Access, inserted: tuple[IndexVar, ...]) -> tuple[list[IndexVar], int]:
    """The order of the loops in which entries come sorted, and the last of them that decides on an entry.

    It follows the relations: halves take the place of what was split, a fused variable that of its neighbours.
    """
    form = lhs.tensor.format
    stored = provenance(stmt).stored(lhs)
    order = list(inserted or dict.fromkeys(stored))
    sparse = [var for var, level in zip(stored, form.levels, strict=True) if not level.full]
    last = len(inserted) - 1 if inserted else max(map(order.index, sparse))
    for relation in relations_of(stmt):
        data = relation.positions is not None or relation.found_again is not None
        before = relation.nest or relation.parents
        if relation.is_local or before[0] not in order or not (data or relation.keeps_order):
            continue
        at, after = order.index(before[0]), relation.significant or relation.children
        if tuple(order[at : at + len(before)]) == before:
            order[at : at + len(before)] = after
            grown = len(after) - len(before)
            last += grown if at <= last and (grown > 0 or at < last) else 0
    return order, last


def _cut_rows(stmt: Stmt, appended: TensorVar, making: Making) -> Refusal | None:
    """Blocks of a fused variable that end within a row: the next block goes on with it, where that can be seen from what was appended.

    It cannot where a level has a place for every coordinate, whose rows end when the loops pass them, nor where entries are only counted.
    """
    found = cut_row(stmt, result(stmt))
    if found is None or (isinstance(making, Appended) and not any(level.full for level in appended.format.levels)):
        return None
    relation, row = found
    why = f"a block of {relation.parents[0]} may end within a {row}, and {appended} would append that {row} twice"
    advice = "split before fuse, append to compressed levels alone, or ask for dense upper levels"
    return Refusal("S611", why, advice, at=relation.children[0])


def cut_row(stmt: Stmt, lhs: Access) -> tuple[Relation, IndexVar] | None:
    """What cuts a fused variable into blocks that may end within a row of an appended result, and the variable of that row."""
    graph = provenance(stmt)
    stored, rows = graph.stored(lhs), _rows(graph, lhs)
    for relation in relations_of(stmt):
        whole = relation.whole if len(relation.children) > 1 else None
        cut = [] if whole is None else [var for var in _members(graph, whole, stored)[:-1] if var in rows]
        if cut:
            return relation, cut[-1]
    return None


def _rows(graph: Provenance, lhs: Access) -> set[IndexVar]:
    """The variables of which each value is appended once, for all that stands below it."""
    levels, stored = lhs.tensor.format.levels, graph.stored(lhs)
    last = max(k for k, level in enumerate(levels) if not level.full and not level.branchless)
    tail = max(k for k, level in enumerate(levels) if not level.full)
    rows = {stored[k] for k in range(last) if not levels[k].full}
    return rows | {stored[tail]} if tail + 1 < len(stored) else rows


def _members(graph: Provenance, var: IndexVar, levels: tuple[IndexVar, ...]) -> tuple[IndexVar, ...]:
    """The variables of levels that a variable runs through, outermost first."""
    relation = graph.made_by(var)
    if relation is None or var in levels:
        return (var,)
    return tuple(dict.fromkeys(member for parent in relation.parents for member in _members(graph, parent, levels)))


def _repeated(stmt: Stmt, appended: TensorVar) -> Refusal | None:
    """Positions at which a coordinate of an appended result comes several times."""
    graph = provenance(stmt)
    for relation in relations_of(stmt):
        counted = relation.positions
        if counted is None:
            continue
        levels = graph.position_levels(counted)
        again = [
            var
            for k, var in zip(levels, graph.walked(counted)[:-1], strict=False)
            if not counted.access.tensor.format.levels[k].unique and var in _rows(graph, result(stmt))
        ]
        if again:
            why = f"{show(counted.access)} repeats {again[0]} for every entry of it, and {appended} appends each once"
            return Refusal("S614", why, _ADVICE, at=counted.position)
        if not graph.is_distinct(counted) and {*graph.originals(counted.coordinate)} & {*result(stmt).indices}:
            why = f"{show(counted.access)} repeats coordinates of {counted.coordinate}, and {appended} appends each once"
            return Refusal("S610", why, _ADVICE, at=counted.position)
    return None
