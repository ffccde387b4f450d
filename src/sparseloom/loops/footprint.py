"""Which places of an array a loop nest touches: an interval, or what the coordinates of an interval of positions lead to.

    for p in pos[i] : pos[i + 1]           of v: the places [pos[i], pos[i + 1])
      j = crd[p]                           of x: crd[p] * n + k for p in [pos[i], pos[i + 1]), k in [0, n)
      for k in 0 : n                       of y: the places [i * n, i * n + n)
        y[i * n + k] += v[p] * x[j * n + k]

All bounds are in terms of what is known before the nest. They are not exceeded, and may not be reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace

from sparseloom.core.trees import Node, children
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import Monomial, Uses, added, expression, is_hint, meaning, polynomial, product, uses
from sparseloom.loops.roles import is_nonnegative
from sparseloom.loops.routines import Call


@dataclass(frozen=True)
class Interval:
    """The places from ``low`` on, up to ``high`` and without it."""

    low: ir.Expr
    high: ir.Expr

    def __str__(self) -> str:
        return f"[{self.low}, {self.high})"


@dataclass(frozen=True)
class Image:
    """The places ``array[p] * scale + r``, for p in ``positions`` and r in ``reach``."""

    array: ir.Array
    positions: Interval
    scale: ir.Expr
    reach: Interval


Footprint = Interval | Image
_Bounds = tuple[ir.Expr, ir.Expr]  # both can be reached


def footprint(
    stmt: ir.Stmt, array: ir.Array, nonnegative: Set[str] = frozenset(), ascending: Set[ir.Array] = frozenset()
) -> frozenset[Footprint] | None:
    """The places of an array that a statement may touch; None if that is not known.

    Args:
        stmt: a loop nest, or any other statement.
        array: what it reads or writes.
        nonnegative: scalars that are known outside and never negative, such as sizes.
        ascending: arrays in which no number is less than the one before it, such as those of positions.

    Returns:
        What its accesses touch, together.
    """
    found = list(_touched(stmt, array, _Scope({}, uses(stmt), nonnegative, ascending)))
    return None if None in found else frozenset(one for one in found if one is not None)


@dataclass(frozen=True)
class _Scope:
    """Inside a nest that uses some names: what scalars from inside are worth, if that is known."""

    values: Mapping[str, ir.Expr | _Bounds | None]
    nest: Uses
    nonnegative: Set[str]
    ascending: Set[ir.Array]

    def knowing(self, var: ir.Var, value: ir.Expr | _Bounds | None) -> _Scope:
        """The scope with one more scalar."""
        is_fixed = var.name not in self.nest.assigned
        return replace(self, values={**self.values, var.name: value if is_fixed else None})

    def meant(self, expr: ir.Expr) -> ir.Expr:
        """An expression without the names of scalars from inside that stand for another one."""
        values = {name: value for name, value in self.values.items() if isinstance(value, ir.Expr)}
        return meaning(expr, values)

    def bounds(self, expr: ir.Expr) -> _Bounds | None:
        """The least and the largest value of an index, in terms of what is known outside."""
        match expr:
            case ir.Literal():
                return expr, expr
            case ir.Var(name) if name in self.values:
                value = self.values[name]
                return self.bounds(value) if isinstance(value, ir.Expr) else value
            case ir.Var(name):
                return None if name in self.nest.assigned else (expr, expr)
            case ir.Cast(operand):
                return self.bounds(operand) if operand.dtype.kind == "i" else None
            case ir.Load(array, index):
                at = self.bounds(index)
                if at is None or array in self.nest.stored or not (at[0] == at[1] or array in self.ascending):
                    return None
                return ir.Load(array, at[0]), ir.Load(array, at[1])
            case ir.Select(_, then, other):
                return self._joined("minimum", "maximum", then, other)
            case ir.Search(_, begin, end):
                return self._joined("minimum", "maximum", begin, end)
            case ir.Op("minimum" | "maximum" as name, (left, right)):
                return self._joined(name, name, left, right)
            case ir.Op("floor_divide", (left, ir.Literal(by))) if by.real > 0 and (whole := self.bounds(left)) is not None:
                low, high = (ir.Op("floor_divide", (end, ir.Literal(by))) for end in whole)
                return low, high
            case ir.Op("add" | "subtract" | "multiply"):
                return self._sum(polynomial(expr))
        return None

    def _joined(self, low: str, high: str, left: ir.Expr, right: ir.Expr) -> _Bounds | None:
        first, second = self.bounds(left), self.bounds(right)
        return None if first is None or second is None else (_least(low, first[0], second[0]), _least(high, first[1], second[1]))

    def _sum(self, terms: Mapping[Monomial, int]) -> _Bounds | None:
        """The bounds of a sum of products: each product is bounded by those of its factors, if these are not negative."""
        lows, highs = list[ir.Expr](), list[ir.Expr]()
        for factors, count in terms.items():
            found = [self.bounds(factor) for factor in factors]
            known = [one for one in found if one is not None]
            if len(known) < len(found) or (len(known) > 1 and not all(is_nonnegative(low, {*self.nonnegative}) for low, _ in known)):
                return None
            ends = product([low for low, _ in known]), product([high for _, high in known])
            for total, end in zip((lows, highs), ends if count > 0 else ends[::-1], strict=True):
                total.append(ir.multiply(end, ir.index(count)))
        return expression(polynomial(added(lows))), expression(polynomial(added(highs)))

    def places(self, index: ir.Expr) -> Footprint | None:
        """The places that an index stands for."""
        terms = polynomial(self.meant(index))
        whole = self._sum(terms)
        if whole is not None:
            return _interval(whole)
        read = [(factors, load) for factors in terms for factor in factors if (load := _load_of(factor)) is not None]
        if len(read) != 1:
            return None
        ((factors, load),) = read
        rest = {other: count for other, count in terms.items() if other != factors}
        scale = self._sum({tuple(factor for factor in factors if _load_of(factor) is None): terms[factors]})
        positions, reach = self.bounds(load.index), self._sum(rest)
        if positions is None or reach is None or scale is None or scale[0] != scale[1] or load.array in self.nest.stored:
            return None
        return Image(load.array, _interval(positions), scale[0], _interval(reach))


def _touched(stmt: Node, array: ir.Array, scope: _Scope) -> Iterator[Footprint | None]:
    """The footprints of the accesses in a statement or an expression, one by one."""
    match stmt:
        case ir.Block(stmts):
            for inner in stmts:
                yield from _touched(inner, array, scope)
                if isinstance(inner, ir.Declare):
                    scope = scope.knowing(inner.var, scope.meant(inner.value))
            return
        case ir.For(var, begin, end, body):
            yield from (one for part in (begin, end) for one in _touched(part, array, scope))
            low, high = scope.bounds(begin), scope.bounds(end)
            known = None if low is None or high is None else (low[0], _before(high[1]))
            yield from _touched(body, array, scope.knowing(var, known))
            return
        case ir.Load(read, index) | ir.Store(read, index) if read == array:
            yield scope.places(index)
        case ir.Fill(read, begin, count) if read == array:
            first, last = scope.bounds(begin), scope.bounds(ir.add(begin, count))
            yield None if first is None or last is None else Interval(first[0], last[1])
        case ir.Search(read, begin, end) if read == array:
            whole = scope.bounds(begin), scope.bounds(end)
            yield None if whole[0] is None or whole[1] is None else Interval(whole[0][0], whole[1][1])
        case Call(arrays=arrays) if array in arrays and not is_hint(stmt):
            yield None
    for part in children(stmt):
        if isinstance(part, ir.Expr | ir.Stmt):
            yield from _touched(part, array, scope)


def _load_of(factor: ir.Expr) -> ir.Load | None:
    match factor:
        case ir.Load() | ir.Cast(ir.Load()):
            return factor if isinstance(factor, ir.Load) else factor.operand  # type: ignore[return-value]
    return None


def _interval(whole: _Bounds) -> Interval:
    return Interval(whole[0], expression(polynomial(ir.add(whole[1], ir.ONE))))


def _before(end: ir.Expr) -> ir.Expr:
    return expression(polynomial(ir.add(end, ir.index(-1))))


def _least(name: str, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """The smaller, or the larger, of two indices."""
    match left, right:
        case ir.Literal(a), ir.Literal(b):
            return ir.index(int((min if name == "minimum" else max)(a.real, b.real)))
    return left if left == right else ir.Op(name, (left, right))
