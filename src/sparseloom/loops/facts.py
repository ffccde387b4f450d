"""Facts about loops, which passes, the planner and ``explain`` ask.

    for i in 0 : n                     uses         which scalars and arrays a statement reads, declares and writes
      first = i * 4                    varying      along i: i, first, j, and what is computed from them
      for p in pos[i] : pos[i + 1]     stride       of j * 4 + k along k: 1; of first along i: 4
        j = crd[p]                     multiple_of  first is a multiple of 4
        y[i] += v[p] * x[j * 4]        order_of     iterations of i write places of their own, so their order does not matter

Which places of an operand a nest touches is asked of ``footprint``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from math import gcd

from sparseloom.core.dtypes import INT64
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.routines import Call, Use, indices_of


@dataclass(frozen=True)
class Uses:
    """What statements and expressions do with names: scalars by name, and arrays."""

    read: frozenset[str]
    declared: frozenset[str]
    assigned: frozenset[str]
    loaded: frozenset[ir.Array]
    stored: frozenset[ir.Array]
    allocated: frozenset[ir.Array]

    @property
    def changed(self) -> frozenset[str]:
        """The scalars from outside that get new values."""
        return self.assigned - self.declared

    @property
    def stored_outside(self) -> frozenset[ir.Array]:
        """The arrays from outside that are written."""
        return self.stored - self.allocated


def uses(*parts: Node) -> Uses:
    """What some statements or expressions use, with all that is inside them."""
    read, declared, assigned = set[str](), set[str](), set[str]()
    loaded, stored, made = set[ir.Array](), set[ir.Array](), set[ir.Array]()
    for n in walk(parts[0]) if len(parts) == 1 else chain.from_iterable(map(walk, parts)):
        match n:
            case ir.Var(name):
                read.add(name)
            case ir.Declare(ir.Var(name)) | ir.For(ir.Var(name)):
                declared.add(name)
            case ir.Assign(ir.Var(name)) | ir.Shuffle(ir.Var(name)):
                assigned.add(name)
            case ir.Load(array) | ir.Search(array):
                loaded.add(array)
            case ir.Store(array) | ir.Fill(array):
                stored.add(array)
            case ir.Allocate(array):
                made.add(array)
            case Call():
                loaded |= {*n.using(Use.READS)}
                stored |= {*n.using(Use.WRITES, Use.REALLOCATES, Use.FREES)}
                made |= {*n.using(Use.ALLOCATES)}
                assigned |= {var.name for var in (n.assigned,) if var is not None}
    return Uses(frozenset(read), frozenset(declared), frozenset(assigned), frozenset(loaded), frozenset(stored), frozenset(made))


def reads_memory(*parts: Node) -> bool:
    """Whether something depends on what an array contains."""
    return any(isinstance(n, ir.Load | ir.Search) for part in parts for n in walk(part))


def depends(names: Set[str], *parts: Node) -> bool:
    """Whether one of these scalars or arrays occurs."""
    for part in parts:
        for n in walk(part):
            if isinstance(n, ir.Var | ir.Array) and n.name in names:
                return True
    return False


def keeps(expr: ir.Expr, among: Uses) -> bool:
    """Whether an expression keeps its value while statements with these uses run."""
    found = uses(expr)
    return found.read.isdisjoint(among.assigned) and found.loaded.isdisjoint(among.stored)


def varying(body: ir.Stmt, along: Iterable[str]) -> frozenset[str]:
    """The scalars and private arrays of a loop's body that may differ between its iterations, which count ``along``.

    They are computed from the loop's variable, or chosen by it. A scalar from outside that the body changes differs too.
    """
    whole = uses(body)
    found, private, before = {*along, *whole.changed}, {array.name for array in whole.allocated}, 0
    while len(found) != before:
        before = len(found)
        _spread(body, found, private, False)
    return frozenset(found)


def _spread(stmt: ir.Stmt, found: set[str], private: Set[str], chosen: bool) -> None:
    """Add what a statement makes differ. ``chosen``: whether it runs or how often differs."""
    match stmt:
        case ir.Block(stmts):
            for inner in stmts:
                _spread(inner, found, private, chosen)
        case ir.Declare(var, value) | ir.Assign(var, value):
            if chosen or depends(found, value):
                found.add(var.name)
        case ir.For(var, begin, end, body):
            differs = depends(found, begin, end)
            if differs:
                found.add(var.name)
            _spread(body, found, private, chosen or differs)
        case ir.While(condition, body):
            _spread(body, found, private, chosen or depends(found, condition))
        case ir.If(condition, then, other):
            differs = chosen or depends(found, condition)
            _spread(then, found, private, differs)
            _spread(other, found, private, differs)
        case ir.Store(array, index, value):
            if array.name in private and (chosen or depends(found, index, value)):
                found.add(array.name)
        case ir.Fill(array, begin, count, value):
            if array.name in private and (chosen or depends(found, begin, count, value)):
                found.add(array.name)
        case ir.Allocate(array, size):
            if chosen or depends(found, size):
                found.add(array.name)
        case Call(arrays=arrays, args=args):
            if chosen or depends(found, *arrays, *args):
                found |= {array.name for array in arrays if array.name in private}
                found |= {var.name for var in (stmt.assigned,) if var is not None}


def meanings(stmts: Sequence[ir.Stmt]) -> dict[str, ir.Expr]:
    """The values of declared scalars in terms of what is known before the statements. Scalars that are assigned again are left out."""
    changed, meant = uses(*stmts).assigned, dict[str, ir.Expr]()
    for stmt in stmts:
        if isinstance(stmt, ir.Declare) and stmt.var.name not in changed:
            meant[stmt.var.name] = meaning(stmt.value, meant)
    return meant


def meaning(expr: ir.Expr, meant: Mapping[str, ir.Expr]) -> ir.Expr:
    """An expression with scalars replaced by their values."""
    return rewrite(expr, lambda n: meant.get(n.name) if isinstance(n, ir.Var) else None) if meant else expr


def addends(index: ir.Expr) -> list[ir.Expr]:
    """The terms of a sum of indices, in order."""
    match index:
        case ir.Op("add", args, dtype) if dtype == INT64:
            return [term for arg in args for term in addends(arg)]
    return [index]


def added(terms: Sequence[ir.Expr]) -> ir.Expr:
    """The sum of some indices."""
    total: ir.Expr = ir.ZERO
    for term in terms:
        total = ir.add(total, term)
    return total


def without_addend(index: ir.Expr, var: ir.Var) -> ir.Expr | None:
    """What is added to a variable to make an index; None if the index does not count up with it one by one."""
    terms = addends(index)
    rest = [term for term in terms if term != var]
    if len(rest) != len(terms) - 1 or depends({var.name}, *rest):
        return None
    return added(rest)


Monomial = tuple[ir.Expr, ...]


def polynomial(index: ir.Expr) -> dict[Monomial, int]:
    """An index as a sum of products: how often each product of factors that cannot be taken apart is added."""
    match index:
        case ir.Literal(value):
            return {(): int(value.real)} if value else {}
        case ir.Op("add", args):
            return _summed([(polynomial(arg), 1) for arg in args])
        case ir.Op("subtract", (left, right)):
            return _summed([(polynomial(left), 1), (polynomial(right), -1)])
        case ir.Op("multiply", args):
            return reduce(_multiplied, map(polynomial, args))
    return {(index,): 1}


def _summed(parts: Iterable[tuple[dict[Monomial, int], int]]) -> dict[Monomial, int]:
    total: dict[Monomial, int] = {}
    for part, times in parts:
        for factors, count in part.items():
            total[factors] = total.get(factors, 0) + times * count
    return {factors: count for factors, count in total.items() if count}


def _multiplied(left: dict[Monomial, int], right: dict[Monomial, int]) -> dict[Monomial, int]:
    products = ((tuple(sorted(a + b, key=repr)), m * n) for a, m in left.items() for b, n in right.items())
    return _summed([({factors: count}, 1) for factors, count in products])


def expression(sum_of: Mapping[Monomial, int]) -> ir.Expr:
    """The index that a sum of products stands for."""
    return added([ir.multiply(ir.index(count), product(factors)) for factors, count in sum_of.items()])


def product(factors: Sequence[ir.Expr]) -> ir.Expr:
    """The product of some indices."""
    made: ir.Expr = ir.ONE
    for factor in factors:
        made = ir.multiply(made, factor)
    return made


def stride(index: ir.Expr, var: ir.Var) -> ir.Expr | None:
    """By how much an index grows with a variable; None if by different amounts."""
    found: dict[Monomial, int] = {}
    for factors, count in polynomial(index).items():
        rest = list(factors)
        if var in rest:
            rest.remove(var)
            found[tuple(rest)] = count
        if depends({var.name}, *rest):
            return None
    return expression(found)


def multiple_of(index: ir.Expr, known: Mapping[str, int] | None = None) -> int:
    """The largest number that provably divides an index; 0 if the index is 0. ``known`` has such numbers of scalars."""
    known = known or {}
    found = 0
    for factors, count in polynomial(index).items():
        for factor in factors:
            count *= known.get(factor.name, 1) if isinstance(factor, ir.Var) else 1
        found = gcd(found, count)
    return found


def order_of(loop: ir.For) -> str | None:
    """Why the order of a loop's iterations matters, in words; None if parts of them may change places.

    They may if each iteration writes places of its own, and reads of what it writes only these.
    """
    body, whole = loop.body, uses(loop.body)
    for n in walk(body, ir.Stmt):
        match n:
            case ir.Poll() | ir.Barrier() | ir.Shuffle() | ir.Launch() | ir.Team():
                return "they may end the kernel or wait for others"
            case ir.For(kind=kind) if kind in ir.GPU_KINDS or kind is ir.LoopKind.THREADS:
                return f"they share the loop over {n.var.name} out"
            case ir.Fill(array) | Call(arrays=(array, *_)) if array not in whole.allocated and not is_hint(n):
                return f"they change {array.name} as a whole"
    if whole.changed:
        return f"each goes on with {sorted(whole.changed)[0]} where the one before it left it"
    apart = varying(body, (loop.var.name,))
    for array in sorted(whole.stored_outside, key=lambda one: one.name):
        why = _clash(loop, array, apart)
        if why is not None:
            return why
    return None


def is_hint(stmt: object) -> bool:
    """Whether a statement only asks for memory ahead of its use, and changes nothing."""
    return isinstance(stmt, Call) and stmt.routine.name in ("prefetch", "prefetch_read")


def _clash(loop: ir.For, array: ir.Array, apart: Set[str]) -> str | None:
    """Where iterations may meet in an array that they write."""
    meant = meanings([n for n in walk(loop.body, ir.Stmt) if isinstance(n, ir.Declare)])
    stores = [n for n in walk(loop.body, ir.Stmt) if isinstance(n, ir.Store) and n.array == array]
    loaded = [indices_of(n)[0] for n in walk(loop.body) if isinstance(n, ir.Load | ir.Search) and n.array == array]
    if not all(depends(apart, store.index) for store in stores):
        return f"they write one place of {array.name}"
    places = {frozenset(polynomial(meaning(index, meant)).items()) for index in (*(store.index for store in stores), *loaded)}
    if len({store.op for store in stores}) > 1 and len(places) > 1:
        return f"they write several places of {array.name}, in more than one way"
    if loaded and not (len(places) == 1 and _is_own(meaning(stores[0].index, meant), loop)):
        return f"they read {array.name}, which they write"
    return None


def _is_own(place: ir.Expr, loop: ir.For) -> bool:
    """Whether a place is that of one iteration alone: it grows with the loop's variable, and with nothing inside the loop."""
    step = stride(place, loop.var)
    return isinstance(step, ir.Literal) and step != ir.ZERO and not depends(uses(loop.body).declared, place)


def trip_count(loop: ir.For) -> int | None:
    """How many iterations a loop between constants has."""
    match loop.begin, loop.end:
        case ir.Literal(begin), ir.Literal(end):
            return max(0, int(end.real) - int(begin.real))
    return None


def at_most(index: ir.Expr) -> int | None:
    """A number that an index never exceeds, if one is known: ``min(i * 4 + 4, n) - i * 4`` is at most 4."""
    match index:
        case ir.Literal(value):
            return int(value.real)
        case ir.Op("minimum", args):
            return min((found for arg in args if (found := at_most(arg)) is not None), default=None)
        case ir.Op("subtract", (ir.Op("minimum", args), less)):
            return min((found for arg in args if (found := at_most(ir.Op("subtract", (arg, less)))) is not None), default=None)
    known = expression(polynomial(index))
    return int(known.value.real) if isinstance(known, ir.Literal) else None


def loops_in(stmt: Node) -> list[ir.For | ir.While]:
    """The loops in a statement, outer ones first; those over the lanes of a vector are none, for a few instructions do them."""
    found = [n for n in walk(stmt, ir.Stmt) if isinstance(n, ir.For | ir.While)]
    return [n for n in found if isinstance(n, ir.While) or n.kind not in (ir.LoopKind.LANES, ir.LoopKind.WIDE)]


def long_loops_in(stmt: Node) -> list[ir.For | ir.While]:
    """The loops in a statement that may take long: not those that are unrolled as a whole."""
    return [n for n in loops_in(stmt) if isinstance(n, ir.While) or n.kind is not ir.LoopKind.UNROLLED or not is_short(n)]


SHORT = 32  # iterations of an unrolled loop that count as one step


def is_short(loop: ir.For, most: int = SHORT) -> bool:
    """Whether a loop is unrolled, begins at 0, and has more than one and at most so many iterations."""
    return loop.kind is ir.LoopKind.UNROLLED and loop.begin == ir.ZERO and 1 < (trip_count(loop) or 0) <= most
