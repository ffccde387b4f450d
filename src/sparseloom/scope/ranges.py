"""Ranges: how far each variable runs, which part of a range the loops so far have fixed, and how variables are recovered.

Loops over the digits of a variable (``i0`` and ``i1`` of a split) fix it bit by bit. Leading digits fix an *interval*; what is left is
a *filter*. When the last digit is bound, the variable is *recovered*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseloom.iteration.provenance import Provenance
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import IndexVar
from sparseloom.relations import relation as relations
from sparseloom.relations.arithmetic import Arithmetic
from sparseloom.relations.relation import Pieces, Relation
from sparseloom.scope.views import Sizes

Range = tuple[ir.Expr, ir.Expr]


class LoopArithmetic(Arithmetic[ir.Expr]):
    """Index arithmetic in loop IR, folding what is known."""

    def number(self, value: int) -> ir.Expr:
        return ir.index(value)

    def constant(self, value: ir.Expr) -> int | None:
        return int(value.value.real) if isinstance(value, ir.Literal) else None

    def do(self, what: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        return _STEPS[what](left, right)


LOOPS = LoopArithmetic()


@dataclass(frozen=True)
class Ranges(relations.Known[ir.Expr]):
    """The ranges of variables at one place in the loops.

    ``values`` are the known variables, ``limits`` the ranges that outer code has narrowed or, for positions, computed.
    """

    provenance: Provenance
    sizes: Sizes
    values: Mapping[IndexVar, ir.Expr]
    limits: Mapping[IndexVar, Range]
    arithmetic: Arithmetic[ir.Expr] = LOOPS

    def range_of(self, var: IndexVar) -> Range:
        """The whole range of a variable."""
        if var in self.limits:
            return self.limits[var]
        relation = self.provenance.made_by(var)
        return (ir.ZERO, self.sizes.of(var)) if relation is None else relation.range_of(var, self)

    def piece_at(self, relation: Pieces, values: Mapping[IndexVar, ir.Expr]) -> ir.Expr:
        """The piece that a loop outside runs through. What else only the data tell is worked out before the loops, and limits them."""
        return self.values[relation.outer] if relation.outer in self.values else super().piece_at(relation, values)

    def whole_range(self, var: IndexVar) -> Range:
        """The range of a variable before outer code narrowed it."""
        return replace(self, limits={other: limits for other, limits in self.limits.items() if other != var}).range_of(var)

    def extent(self, var: IndexVar) -> ir.Expr:
        """How many values a variable runs through."""
        low, high = self.range_of(var)
        return subtract(high, low)

    def value(self, var: IndexVar) -> ir.Expr | None:
        """The value of a variable; None while it is open."""
        return self.values.get(var)

    def interval(self, var: IndexVar) -> Range:
        """The part of a variable's range that the known leading digits leave."""
        if var in self.values:
            return self.values[var], ir.add(self.values[var], ir.ONE)
        relation = self.provenance.replaced(var)
        if relation is None:
            made = self.provenance.made_by(var)
            return self.range_of(var) if made is None or made.whole is not None or var in self.limits else made.interval(var, self)
        whole = self.provenance.whole_again(relation)
        if whole is None:
            return relation.interval(var, self)
        (fused,), (low, high) = whole.children, self.range_of(var)
        first, last = self.interval(fused)
        if fused not in self.limits and (first, last) == self.range_of(fused):
            return low, high
        return ir.add(low, first), least(ir.add(low, last), high)

    def is_narrowed(self, var: IndexVar) -> bool:
        """Whether some leading digit of a variable is known."""
        leading = self.provenance.significant(var)[:1]
        return any(digit in self.values or self.is_narrowed(digit) for digit in leading)

    def is_leading(self, var: IndexVar, digit: IndexVar) -> bool:
        """Whether, of the digits of ``var``, everything above ``digit`` is known: then its loop runs through an interval."""
        return self.provenance.is_leading(var, digit, self.values)

    def filters(self, var: IndexVar, value: ir.Expr, leads: bool = True, within: bool = True) -> list[ir.Expr]:
        """Conditions on a value of ``var`` that the known digits below unknown ones impose.

        Leading digits that are known are no conditions ``within`` an interval, which has them. What outer code left of the range of a
        digit is a condition too, unless everything above it is known, so that it ``leads``.
        """
        relation = self.provenance.replaced(var)
        if relation is None:
            return []
        whole = self.provenance.whole_again(relation)
        if whole is not None:
            return self._conditions(whole.children[0], subtract(value, self.range_of(var)[0]), leads, within)
        if relation.alias is not None:
            return self.filters(relation.alias, value, leads, within)
        found: list[ir.Expr] = []
        for digit, part in self._digits(relation, value):
            within = within and digit in relation.significant
            is_last = digit in relation.significant[-1:]
            if not within or is_last or digit not in self.values:
                found += self._conditions(digit, part, leads and within and is_last, within)
            leads, within = leads and digit in self.values, within and digit in self.values
        return found

    def _digits(self, relation: Relation, value: ir.Expr) -> list[tuple[IndexVar, ir.Expr]]:
        """The digits of a value; none where only the loops over them tell, and there are no such loops around."""
        if relation.pieces is not None and relation.pieces.outer not in self.values:
            return []
        parts = dict(zip(relation.children, relation.derive({relation.parents[0]: value}, self), strict=True))
        return [(digit, parts[digit]) for digit in relation.significant or relation.children]

    def _conditions(self, digit: IndexVar, part: ir.Expr, leads: bool, within: bool) -> list[ir.Expr]:
        """What is known of one digit: its value, what is left of its range, and its own digits."""
        known = [ir.compare("equal", part, self.values[digit])] if digit in self.values else []
        left = [] if leads else self._left_of(digit, part)
        return [*left, *known, *self.filters(digit, part, leads, within)]

    def _left_of(self, digit: IndexVar, part: ir.Expr) -> list[ir.Expr]:
        """Conditions on a digit whose range outer code has narrowed, under its own name or another."""
        found: list[ir.Expr] = []
        if digit in self.limits and digit not in self.values:
            low, high = self.limits[digit]
            found += [ir.compare("greater_equal", part, low), ir.compare("less", part, high)]
        relation = self.provenance.replaced(digit)
        return found if relation is None or relation.alias is None else found + self._left_of(relation.alias, part)

    def digit_of(self, var: IndexVar, value: ir.Expr, digit: IndexVar) -> ir.Expr | None:
        """The value of one digit of ``var``, or None if it is not one."""
        if var == digit:
            return value
        relation = self.provenance.replaced(var)
        if relation is None:
            return None
        parts = self._digits(relation, value)
        whole = self.provenance.whole_again(relation)
        if whole is not None:
            parts.insert(0, (whole.children[0], subtract(value, self.range_of(var)[0])))
        found = (self.digit_of(child, part, digit) for child, part in parts)
        return next((part for part in found if part is not None), None)

    def members_at(self, var: IndexVar, value: ir.Expr, levels: tuple[IndexVar, ...] = ()) -> tuple[ir.Expr, ...]:
        """The coordinates that a value of ``var`` stands for, outermost first; one beyond the end of a range is moved to the end.

        ``levels`` are variables to stop at although they are derived.
        """
        relation = None if var in levels else self.provenance.made_by(var)
        if relation is None or relation.positions is not None:
            return (value,)
        if relation.found_again is not None:
            return self.members_at(self.provenance.found_again(relation.found_again), value, levels)
        halves = self.provenance.halves(relation)
        if halves is not None:
            (parent,) = halves.parents
            low, high = self.range_of(parent)
            return self.members_at(parent, least(ir.add(low, value), high), levels)
        if relation.whole is None and not relation.nest:
            return (value,)
        values = dict(zip(relation.parents, relation.recover({**self.values, var: value}, self), strict=True))
        members = ((parent, self._within(relation, parent, values[parent])) for parent in relation.nest or relation.parents)
        return tuple(member for parent, inside in members for member in self.members_at(parent, inside, levels))

    def _within(self, relation: Relation, var: IndexVar, value: ir.Expr) -> ir.Expr:
        """A recovered value, or the end of the range where it may lie behind that."""
        return least(value, self.range_of(var)[1]) if relation.guards(var, self)[1] else value


def ceil_divide(value: ir.Expr, by: ir.Expr) -> ir.Expr:
    """``value / by``, rounded up; ``by`` is positive."""
    if by == ir.ONE:
        return value
    if isinstance(value, ir.Literal) and isinstance(by, ir.Literal):
        return ir.index(-(-int(value.value.real) // int(by.value.real)))
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


_STEPS = {
    "add": ir.add,
    "subtract": subtract,
    "multiply": ir.multiply,
    "quotient": lambda left, right: ir.Op("floor_divide", (left, right)),
    "remainder": lambda left, right: ir.Op("remainder", (left, right)),
    "blocks": ceil_divide,
    "share": lambda extent, count: most(ir.ONE, ceil_divide(extent, count)),
    "least": least,
    "most": most,
}
