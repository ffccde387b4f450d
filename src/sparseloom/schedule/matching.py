"""Finding an expression inside another, up to associativity and commutativity: ``B*D`` occurs in ``B*C*D``."""

from __future__ import annotations

from dataclasses import dataclass

from sparseloom.core.algebra import annihilates, operator
from sparseloom.core.dtypes import DType
from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.foralls import accesses
from sparseloom.iteration.region import annihilating
from sparseloom.notation.dtyping import compute_dtype_of, constant_of, dtype_of, fill_of
from sparseloom.notation.nodes import Access, Apply, Expr, Literal, Points, Reduce

Key = tuple[object, ...]


@dataclass(frozen=True)
class Match:
    """Where an expression was found: the whole with a stand-in in its place, what was taken out, and how often."""

    rest: Expr
    found: Expr
    count: int


def key(expr: Expr) -> Key:
    """What two expressions share that are equal up to associativity and commutativity. Conversions of dtype do not count."""
    match expr:
        case Access(tensor, indices):
            return ("access", tensor.name, *(var.name for var in indices))
        case Literal(value):
            return ("literal", repr(value))
        case Points(names, _):
            return ("points", *names)
        case Apply(op, (inner,)) if op.startswith("as_"):
            return key(inner)
        case Apply(op, _):
            keys = [key(part) for part in flat(expr)]
            return (op, *(sorted(keys, key=repr) if operator(op).commutative else keys))
        case Reduce(op, variables, body):
            return (op, *sorted(var.name for var in variables), key(body))
    raise CompilerBug(expr, "every expression has a key")


def flat(expr: Apply) -> list[Expr]:
    """The arguments of an operation, those of the same associative operation inside it included."""
    if not operator(expr.op).associative:
        return list(expr.args)
    parts: list[Expr] = []
    for arg in expr.args:
        parts += flat(arg) if isinstance(arg, Apply) and arg.op == expr.op and _may_come_apart(arg, expr) else [arg]
    return parts


def _may_come_apart(inner: Apply, outer: Apply) -> bool:
    """Whether an operation inside the same one may be done in any order with it: truth values and narrow integers are added as such."""
    dtype = compute_dtype_of(inner)
    return (dtype.kind in "fc" or dtype == compute_dtype_of(outer)) and not _decides_together(inner)


def _decides_together(expr: Apply) -> bool:
    """Whether an absent ``expr`` annihilates although none of its arguments does (``0 * C``): apart, they would store other entries."""
    fill = fill_of(expr)
    return fill is not None and annihilates(expr.op, 0, fill, expr.zero) and not annihilating(expr)


def take_out(whole: Expr, wanted: Expr, stand_in: Access) -> Match | None:
    """Put ``stand_in`` wherever ``wanted`` occurs in ``whole``; None if it does not."""
    search = _Search(wanted, stand_in)
    rest = search.visit(whole)
    return None if search.found is None else Match(rest, search.found, search.count)


class _Search:
    """One walk through an expression; remembers what it took out."""

    def __init__(self, wanted: Expr, stand_in: Access) -> None:
        self._key = key(wanted)
        self._parts = [key(part) for part in flat(wanted)] if _is_free(wanted) and isinstance(wanted, Apply) else []
        self._op = wanted.op if isinstance(wanted, Apply) else ""
        self._stand_in = stand_in
        self.found: Expr | None = None
        self.count = 0

    def visit(self, expr: Expr) -> Expr:
        if key(expr) == self._key:
            return self._taken(expr)
        if not isinstance(expr, Apply) or expr.op == "is_stored":  # that an operand is stored is not read from a workspace
            return expr
        if self._parts and expr.op == self._op:
            expr = self._without_parts(expr)
        args = tuple(arg if arg == self._stand_in else self.visit(arg) for arg in expr.args)
        return expr if args == expr.args else Apply(expr.op, args, expr.zero)

    def _taken(self, expr: Expr) -> Expr:
        self.found = self.found or expr
        self.count += 1
        return self._stand_in

    def _without_parts(self, expr: Apply) -> Apply:
        """A sum or product with the wanted parts taken out, as often as they are all there."""
        left, changed = flat(expr), False
        dtype = compute_dtype_of(expr)
        while True:
            picked = _pick(left, self._parts)
            if picked is None:
                return Apply(expr.op, tuple(left), expr.zero) if changed else expr
            parts = [left[k] for k in picked]
            made = Apply(expr.op, tuple(parts), expr.zero)
            if dtype_of(made) != dtype:  # computed apart, the parts must not lose what the whole would have kept
                made = Apply(expr.op, (Apply(f"as_{dtype.name}", (parts[0],)), *parts[1:]), expr.zero)
            left = [part for k, part in enumerate(left) if k not in picked]
            left.insert(min(picked), self._taken(made))
            changed = True


def _is_free(expr: Expr) -> bool:
    return isinstance(expr, Apply) and operator(expr.op).associative and operator(expr.op).commutative


def _pick(parts: list[Expr], wanted: list[Key]) -> list[int] | None:
    """The places of the wanted parts, each taken once; None if one is missing."""
    picked: list[int] = []
    for key_wanted in wanted:
        place = next((k for k, part in enumerate(parts) if k not in picked and key(part) == key_wanted), None)
        if place is None:
            return None
        picked.append(place)
    return picked


# Which operations distribute over which reductions: a * sum(x) = sum(a * x), a + min(x) = min(a + x).
_DISTRIBUTIVE = frozenset({
    ("multiply", "add"), ("negative", "add"), ("add", "minimum"), ("add", "maximum"), ("minimum", "maximum"), ("maximum", "minimum"),
    ("minimum", "minimum"), ("maximum", "maximum"), ("logical_and", "logical_or"), ("logical_or", "logical_and"),
    ("logical_and", "logical_xor"), ("logical_or", "logical_or"), ("logical_and", "logical_and"),
})  # fmt: skip


def is_distributive(op: str, reduction: str, dtype: DType) -> bool:
    """Whether an operation distributes over a reduction, in ``dtype``."""
    # The identity of min and max is no neutral guest in a sum unless it is infinite.
    return (op, reduction) in _DISTRIBUTIVE and (op != "add" or dtype.kind in "fc")


def distributes(expr: Expr, inner: Access, reduction: str, dtype: DType) -> bool:
    """Whether ``expr`` of a reduced ``inner`` equals the reduction of ``expr`` of each, in ``dtype``."""
    if expr == inner:
        return True
    match expr:
        case Apply("divide", (above, below)) if reduction == "add":
            # By 0, parts become infinities of both signs, and their sum does not.
            return distributes(above, inner, reduction, dtype) and bool(constant_of(below))
        case Apply(op, args) if is_distributive(op, reduction, dtype):
            holding = [arg for arg in args if any(found.tensor.name == inner.tensor.name for found in accesses(arg))]
            return len(holding) == 1 and distributes(holding[0], inner, reduction, dtype)
    return False
