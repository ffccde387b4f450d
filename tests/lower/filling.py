"""Filling a sink by hand: plain loops over the entries of one operand tell it where they are, and nothing else of lowering is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from lower.conditions import Conditions

from sparseloom.formats.pack import convert
from sparseloom.formats.storage import Storage
from sparseloom.loops import interpret
from sparseloom.loops import nodes as ir
from sparseloom.loops.verify import verify
from sparseloom.lower.kernel import Lowered, _inputs
from sparseloom.notation.nodes import Assign, IndexVar
from sparseloom.programs.binding import gather, grown_lengths
from sparseloom.scope.ranges import Range
from sparseloom.scope.scope import Place, Scope, Sink, Value

Arrays = dict[str, list[Any]]


def filled(
    given: Conditions, sink: Sink, scope: Scope | None = None, source: str = "A", assign: Assign | None = None, rows: Range | None = None
) -> ir.Stmt:
    """Loops over an operand's entries as they are stored, which write each of them. ``rows`` are the positions of the first level."""
    access, outside = given.access(source), given.scope if scope is None else scope
    levels, view = access.tensor.format.levels, outside.view(access)
    variables, written = outside.provenance.stored(access), given.concrete.assign if assign is None else assign

    def below(k: int, parent: ir.Expr, place: Place, scope: Scope) -> ir.Stmt:
        if k == len(levels):
            return sink.write(written, Value(ir.Load(view.values, parent), ir.TRUE, 0), scope)
        var, at = variables[k], ir.Var(scope.fresh(f"at{k}"))
        inner_place = place.below(k + 1, at, slot=levels[k].slot(view.levels[k], parent, at))
        inner = scope.knowing(var, ir.Var(var.name)).placing({access: inner_place})
        found = ir.Declare(ir.Var(var.name), levels[k].coordinate(view.levels[k], parent, at))
        body = ir.block(found, sink.around(var, below(k + 1, inner_place.position, inner_place, inner), inner))
        used = levels[k].used(view.levels[k], parent, at) if levels[k].has_holes else ir.TRUE
        begin, end = rows if rows is not None and k == 0 else levels[k].bounds(view.levels[k], parent)
        return ir.block(ir.For(at, begin, end, ir.when(used, body)), sink.after(var, scope))

    return below(0, ir.ZERO, Place(), outside)


class Passing(Sink):
    """Tells another sink what it is told; a test changes a part of that."""

    def __init__(self, other: Sink) -> None:
        self.other = other

    def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        return self.other.around(var, body, scope)

    def after(self, var: IndexVar, scope: Scope) -> ir.Stmt:
        return self.other.after(var, scope)

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        return self.other.write(assign, value, scope)


@dataclass(frozen=True)
class Maker:
    """A kernel that makes a result."""

    given: Conditions
    lowered: Lowered

    def on(self, operands: Mapping[str, Storage], room: int | None = None, **sizes: int) -> Arrays:
        """The arrays that it makes from these operands: ``pos2``, ``crd2``, ``values``, ``count2``.

        ``room`` is how many values a result has that writes into an array of the caller's.
        """
        lowered, tensor = self.lowered, self.given.lhs.tensor
        values = None if room is None else np.full(room, -77, tensor.dtype)
        found = interpret.run(lowered.function, gather(lowered, operands, self.given.sizes(operands, sizes), values, guess=1))
        for k, length in (grown_lengths(lowered, found) if lowered.grown else {}).items():
            found[k] = found[k][:length]
        out = (ir.Role.OUTPUT, ir.Role.GROWN, ir.Role.COUNT)
        handed = [(slot, found[k]) for k, slot in enumerate(lowered.slots) if lowered.function.params[k].role in out]
        return {f"{slot.part}{'' if slot.level is None else slot.level + 1}": np.atleast_1d(worth).tolist() for slot, worth in handed}


def maker(given: Conditions, result: Sink, body: ir.Stmt) -> Maker:
    """What fills a result, between its beginning and its end, ready to run."""
    home = given.scope.home
    params = [*result.parameters(), *_inputs(given.scope)]
    whole = ir.block(result.begin(), *home.first, body, *home.last, result.finish())
    function = ir.Function("made", tuple(param for param, _ in params), whole)
    verify(function)
    return Maker(given, Lowered(function, tuple(slot for _, slot in params), given.lhs, None, given.lhs.tensor.fill, ()))


def packed(given: Conditions, storage: Storage) -> Arrays:
    """The arrays of the result's format that hold the entries of a storage."""
    wanted = convert(storage, given.lhs.tensor.format)
    found: Arrays = {"values": wanted.values.tolist()}
    for k, data in enumerate(wanted.levels):
        found |= {f"{part}{k + 1}": array.tolist() for part, array in data.arrays.items()}
        found |= {f"{part}{k + 1}": [worth] for part, worth in data.scalars.items()}
    return found


def without_counts(found: Arrays) -> Arrays:
    """What a result holds, without how many there are at each level."""
    return {name: array for name, array in found.items() if not name.startswith("count")}
