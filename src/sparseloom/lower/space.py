"""Ranges: how far each variable runs, which part of a range the loops so far have fixed, and how variables are recovered.

Loops over the digits of a variable (``i0`` and ``i1`` of a split) fix it bit by bit. Leading digits fix an *interval*; what is left is
a *filter*. When the last digit is bound, the variable is *recovered*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.provenance import Digits, Provenance
from sparseloom.loops import nodes as ir
from sparseloom.lower.views import Sizes
from sparseloom.notation.nodes import IndexVar
from sparseloom.notation.relations import (
    BoundRelation,
    BoundType,
    CoordRelation,
    DivideRelation,
    FuseRelation,
    RenameRelation,
    SplitRelation,
)

Range = tuple[ir.Expr, ir.Expr]


@dataclass(frozen=True)
class Space:
    """The ranges of variables at one place in the loops.

    ``values`` are the known variables, ``limits`` the ranges that outer code has narrowed or, for positions, computed.
    """

    provenance: Provenance
    sizes: Sizes
    values: Mapping[IndexVar, ir.Expr]
    limits: Mapping[IndexVar, Range]

    def range_of(self, var: IndexVar) -> Range:
        """The whole range of a variable."""
        if var in self.limits:
            return self.limits[var]
        relation = self.provenance.made_by(var)
        match relation:
            case None:
                return ir.ZERO, self.sizes.of(var)
            case SplitRelation(parent, outer, _, size):
                return ir.ZERO, ceil_divide(self.extent(parent), ir.index(size)) if var == outer else ir.index(size)
            case DivideRelation(_, outer, _, count):
                return ir.ZERO, ir.index(count) if var == outer else self.block_size(relation)
            case FuseRelation(outer, inner, _):
                return ir.ZERO, ir.multiply(self.extent(outer), self.extent(inner))
            case BoundRelation(parent, _, value, kind):
                low, high = self.range_of(parent)
                match kind:
                    case BoundType.MinExact:
                        return ir.index(value), high
                    case BoundType.MaxExact:
                        return low, ir.index(value)
                return low, high
            case RenameRelation(original, _):
                return self.range_of(original)
        raise CompilerBug(relation, f"the range of {var} must be known before its loops")

    def whole_range(self, var: IndexVar) -> Range:
        """The range of a variable before outer code narrowed it."""
        return replace(self, limits={other: limits for other, limits in self.limits.items() if other != var}).range_of(var)

    def extent(self, var: IndexVar) -> ir.Expr:
        """How many values a variable runs through."""
        low, high = self.range_of(var)
        return subtract(high, low)

    def block_size(self, relation: Digits) -> ir.Expr:
        """How many values of the parent one value of the outer digit stands for."""
        if isinstance(relation, SplitRelation):
            return ir.index(relation.size)
        return ir.Op("maximum", (ir.ONE, ceil_divide(self.extent(relation.parent), ir.index(relation.count))))

    def interval(self, var: IndexVar) -> Range:
        """The part of a variable's range that the known leading digits leave."""
        if var in self.values:
            return self.values[var], ir.add(self.values[var], ir.ONE)
        match self.provenance.used_by(var):
            case BoundRelation(_, child, _, _) | RenameRelation(_, child):
                return self.interval(child)
        low, high = self.range_of(var)
        relation = self.provenance.digits(var)
        if relation is None:
            return low, high
        size = self.block_size(relation)
        whole = self.provenance.whole_again(relation)
        if whole is not None:
            first, last = self.interval(whole.fused)
            if whole.fused not in self.limits and (first, last) == self.range_of(whole.fused):
                return low, high
            return ir.add(low, first), least(ir.add(low, last), high)
        if relation.outer in self.values:
            base = ir.add(low, ir.multiply(self.values[relation.outer], size))
            inner_low, inner_high = self.interval(relation.inner)
            return ir.add(base, inner_low), least(ir.add(base, inner_high), high)
        if not self._is_narrowed(relation.outer):
            return low, high
        outer_low, outer_high = self.interval(relation.outer)
        return ir.add(low, ir.multiply(outer_low, size)), least(ir.add(low, ir.multiply(outer_high, size)), high)

    def _is_narrowed(self, var: IndexVar) -> bool:
        """Whether some leading digit of a variable is known."""
        relation = self.provenance.digits(var)
        if relation is None:
            return False
        whole = self.provenance.whole_again(relation)
        if whole is not None:
            return whole.fused in self.values or self._is_narrowed(whole.fused)
        return relation.outer in self.values or self._is_narrowed(relation.outer)

    def is_leading(self, var: IndexVar, digit: IndexVar) -> bool:
        """Whether, of the digits of ``var``, everything above ``digit`` is known: then its loop runs through an interval."""
        if var == digit:
            return True
        relation = self.provenance.used_by(var)
        match relation:
            case BoundRelation(_, bounded, _, _):
                return self.is_leading(bounded, digit)
            case RenameRelation(_, renamed):
                return self.is_leading(renamed, digit)
            case SplitRelation(_, outer, inner, _) | DivideRelation(_, outer, inner, _):
                whole = self.provenance.whole_again(relation)
                if whole is not None:
                    return self.is_leading(whole.fused, digit)
                return outer in self.values and self.is_leading(inner, digit)
        return False

    def filters(self, var: IndexVar, value: ir.Expr, leads: bool = True) -> list[ir.Expr]:
        """Conditions on a value of ``var`` that the known digits below unknown ones impose.

        What outer code left of the range of a digit is a condition too, unless the digit ``leads``: then the interval has it.
        """
        relation = self.provenance.digits(var)
        if relation is None:
            return []
        whole = self.provenance.whole_again(relation)
        if whole is not None:
            offset = subtract(value, self.range_of(relation.parent)[0])
            known = [ir.compare("equal", offset, self.values[whole.fused])] if whole.fused in self.values else []
            left = [] if leads else self._left_of(whole.fused, offset)
            return [*known, *left, *self.filters(whole.fused, offset, leads)]
        outer, inner = self.split_value(relation, value)
        known = [ir.compare("equal", inner, self.values[relation.inner])] if relation.inner in self.values else []
        if relation.outer in self.values:
            left = [] if leads else self._left_of(relation.inner, inner)
            return [*left, *self.filters(relation.inner, inner, leads), *known]
        above = self.filters(relation.outer, outer, leads=False)
        left = [*self._left_of(relation.outer, outer), *self._left_of(relation.inner, inner)]
        return [*above, *left, *known, *self.filters(relation.inner, inner, leads=False)]

    def _left_of(self, digit: IndexVar, part: ir.Expr) -> list[ir.Expr]:
        """Conditions on a digit whose range outer code has narrowed, under its own name or that of a bound or renaming."""
        found: list[ir.Expr] = []
        if digit in self.limits and digit not in self.values:
            low, high = self.limits[digit]
            found += [ir.compare("greater_equal", part, low), ir.compare("less", part, high)]
        match self.provenance.used_by(digit):
            case BoundRelation(_, child, _, _) | RenameRelation(_, child):
                found += self._left_of(child, part)
        return found

    def split_value(self, relation: Digits, value: ir.Expr) -> Range:
        """The digits of a value: recover_derived."""
        offset = subtract(value, self.range_of(relation.parent)[0])
        size = self.block_size(relation)
        return ir.Op("floor_divide", (offset, size)), ir.Op("remainder", (offset, size))

    def digit_of(self, var: IndexVar, value: ir.Expr, digit: IndexVar) -> ir.Expr | None:
        """The value of one digit of ``var``, or None if it is not one."""
        if var == digit:
            return value
        match self.provenance.used_by(var):
            case BoundRelation(_, child, _, _) | RenameRelation(_, child):
                return self.digit_of(child, value, digit)
            case SplitRelation() | DivideRelation() as relation:
                whole = self.provenance.whole_again(relation)
                if whole is not None:
                    found = self.digit_of(whole.fused, subtract(value, self.range_of(relation.parent)[0]), digit)
                    if found is not None:
                        return found
                outer, inner = self.split_value(relation, value)
                found = self.digit_of(relation.outer, outer, digit)
                return found if found is not None else self.digit_of(relation.inner, inner, digit)
        return None

    def members_at(self, var: IndexVar, value: ir.Expr, levels: tuple[IndexVar, ...] = ()) -> tuple[ir.Expr, ...]:
        """The coordinates that a value of ``var`` stands for, outermost first; one beyond the end of a range is moved to the end.

        ``levels`` are variables to stop at although they are derived.
        """
        relation = None if var in levels else self.provenance.made_by(var)
        match relation:
            case BoundRelation(parent, _, _, _) | RenameRelation(parent, _):
                return self.members_at(parent, value, levels)
            case SplitRelation(parent, outer, _, _) | DivideRelation(parent, outer, _, _):
                low, high = self.range_of(parent)
                begin = ir.add(low, ir.multiply(self.values[outer], self.block_size(relation)))
                return self.members_at(parent, least(ir.add(begin, value), high), levels)
            case FuseRelation(outer, inner, _):
                halves = self.provenance.halves(relation)
                if halves is not None:
                    low, high = self.range_of(halves.parent)
                    return self.members_at(halves.parent, least(ir.add(low, value), high), levels)
                width = most(ir.ONE, self.extent(inner))
                row = ir.add(self.range_of(outer)[0], ir.Op("floor_divide", (value, width)))
                column = ir.add(self.range_of(inner)[0], ir.Op("remainder", (value, width)))
                return (*self.members_at(outer, row, levels), *self.members_at(inner, column, levels))
            case CoordRelation():
                return self.members_at(self.provenance.found_again(relation), value, levels)
        return (value,)

    def joined(self, relation: Digits) -> ir.Expr:
        """The parent's value from its digits: recover_original. It may lie beyond the end of the parent's range."""
        low, _ = self.range_of(relation.parent)
        scaled = ir.multiply(self.values[relation.outer], self.block_size(relation))
        return ir.add(ir.add(low, scaled), self.values[relation.inner])


def ceil_divide(value: ir.Expr, by: ir.Expr) -> ir.Expr:
    """``value / by``, rounded up; ``by`` is positive."""
    if by == ir.ONE:
        return value
    less = ir.Literal(int(by.value.real) - 1) if isinstance(by, ir.Literal) else subtract(by, ir.ONE)
    return ir.Op("floor_divide", (ir.add(value, less), by))


def subtract(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """``left - right`` on int64, folding what is known."""
    match left, right:
        case ir.Literal(a), ir.Literal(b):
            return ir.Literal(int(a.real) - int(b.real))
        case _, ir.Literal(0):
            return left
        case ir.Op("add", (a, b)), _ if a == right:
            return b
    return ir.ZERO if left == right else ir.Op("subtract", (left, right))


def least(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """The smaller of two index values."""
    match left, right:
        case ir.Literal(a), ir.Literal(b):
            return ir.Literal(min(int(a.real), int(b.real)))
    return left if left == right else ir.Op("minimum", (left, right))


def most(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """The larger of two index values."""
    match left, right:
        case ir.Literal(a), ir.Literal(b):
            return ir.Literal(max(int(a.real), int(b.real)))
    return left if left == right else ir.Op("maximum", (left, right))
