"""From what is written to what is meant: a statement's tensors, variables, scopes and implicit reductions.

Each top-level term is added up over the variables that the left side lacks:

    a(i) = B(i,j) + c(j) - d(i)    ==>    a(i) = sum(j, B(i,j)) + sum(j, c(j)) - d(i)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparseloom.core.algebra import Scalar, Semiring, operator
from sparseloom.core.dtypes import FLOAT64, DType
from sparseloom.core.errors import CompilerBug, DTypeError, NotationError
from sparseloom.core.once import once_for_each
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.notation.caret import refuse
from sparseloom.notation.dtyping import as_written, promoted_dtype, with_wide_sums
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Fixed, IndexVar, Literal, Points, Reduce, TensorVar
from sparseloom.notation.printer import show

# Through these the top-level terms of a right side are found.
_ADDITIVE = frozenset({"add", "subtract", "negative"})
_NO_INVERSE = {"subtract": "-", "negative": "-", "divide": "/"}


def combine(op: str, left: Expr, right: Expr) -> Apply:
    """``left op right``. Sums and products are flat as far as that keeps the order of evaluation: from left to right."""
    match left:
        case Apply(name, args, None) if name == op and operator(op).associative:
            return Apply(op, (*args, right))
    return Apply(op, (left, right))


@once_for_each
def tensors_of(root: Node) -> tuple[TensorVar, ...]:
    """The tensors below ``root``, in order of first appearance."""
    return tuple(dict.fromkeys(found for found in walk(root) if isinstance(found, TensorVar)))


def free_variables(expr: Expr) -> tuple[IndexVar, ...]:
    """The variables of ``expr`` that no reduction within it binds, in order of first appearance."""
    return tuple(dict.fromkeys(_free(expr)))


def _free(expr: Expr) -> Iterator[IndexVar]:
    match expr:
        case Access(_, indices):
            yield from (found for found in indices if not isinstance(found, Fixed))
        case Literal() | Points():
            pass
        case Apply(_, args):
            for arg in args:
                yield from _free(arg)
        case Reduce(_, variables, body):
            yield from (found for found in _free(body) if found not in variables)
        case _:
            raise CompilerBug(expr, "an expression is an Access, a Literal, an Apply or a Reduce")


def close_over(assign: Assign, semiring: Semiring | None = None) -> Assign:
    """Make every reduction of a declared statement explicit.

    Each top-level term of the right side is added up over the variables that it has and the left side lacks. Under a
    semiring, add and multiply, however they are spelled, mean the semiring's two operators. Dtypes promote from left to right, and
    sums that are written out are as wide as NumPy's; but a semiring computes in the one dtype in which its zero is.
    """
    check_scopes(assign)
    is_usual = semiring is None or (semiring.add, semiring.multiply) == ("add", "multiply")
    written = with_wide_sums(assign.rhs) if is_usual else assign.rhs
    closed = Assign(assign.lhs, _close(written, frozenset(assign.lhs.indices)), assign.op)
    if semiring is not None and not is_usual:
        closed = _translate(closed, semiring)
    return Assign(closed.lhs, as_written(tell_apart(closed.rhs)), closed.op)


def tell_apart(expr: Expr) -> Expr:
    """An expression in which numbers that stand for variables are told apart by tensor and mode; nothing else is called ``A:0:3``."""

    def rule(found: Node) -> Node | None:
        match found:
            case Access(tensor, indices) if any(isinstance(var, Fixed) for var in indices):
                return Access(tensor, tuple(_named(tensor, mode, var) for mode, var in enumerate(indices)))
        return None

    return rewrite(expr, rule)


def _named(tensor: TensorVar, mode: int, var: IndexVar) -> IndexVar:
    return Fixed(f"{tensor.name}:{mode}:{var.value}", var.value) if isinstance(var, Fixed) else var


def _close(expr: Expr, kept: frozenset[IndexVar]) -> Expr:
    match expr:
        case Apply(op, args, zero) if op in _ADDITIVE:
            return Apply(op, tuple(_close(arg, kept) for arg in args), zero)
    summed = tuple(var for var in free_variables(expr) if var not in kept)
    return Reduce("add", summed, expr) if summed else expr


def _translate(assign: Assign, semiring: Semiring) -> Assign:
    """Put the semiring's operators in place of add and multiply."""
    meaning = {"add": semiring.add, "multiply": semiring.multiply}
    zero = semiring_zero(assign, semiring)

    def rule(found: object) -> Expr | None:
        match found:
            case Apply(op) if op in _NO_INVERSE:
                what = f"'{_NO_INVERSE[op]}' has no meaning in the semiring ({semiring.add}, {semiring.multiply})"
                raise _refuse_at(what, assign, found, "a semiring has + and * only")
            case Apply("add", args):
                return Apply(semiring.add, args)
            case Apply("multiply", args):
                return Apply(semiring.multiply, args, zero)
            case Reduce(op, variables, body) if op in meaning:
                return Reduce(meaning[op], variables, body)
        return None

    op = assign.op and meaning.get(assign.op, assign.op)
    return Assign(assign.lhs, rewrite(assign.rhs, rule), op)


def reopen(closed: Assign, semiring: Semiring | None = None) -> Assign:
    """A statement whose reductions are explicit, as it would be written: ``close_over`` makes the same of it.

    Sums over what the left side lacks are left out, and a semiring's operators are + and * again.
    """
    written = closed if semiring is None else _untranslate(closed, semiring)
    bare = Assign(written.lhs, _bare(written.rhs), written.op)
    try:
        return bare if close_over(bare, semiring) == closed else written
    except NotationError:
        return written


def _bare(expr: Expr) -> Expr:
    """An expression without the sums of its top-level terms."""
    match expr:
        case Apply(op, args, zero) if op in _ADDITIVE:
            return Apply(op, tuple(map(_bare, args)), zero)
        case Reduce("add", _, body):
            return body
    return expr


def _untranslate(assign: Assign, semiring: Semiring) -> Assign:
    """Put add and multiply in place of the semiring's operators."""
    written = {semiring.add: "add", semiring.multiply: "multiply"}

    def rule(found: object) -> Expr | None:
        match found:
            case Apply(op, args, zero) if zero is not None or op == semiring.multiply != semiring.add:
                return Apply("multiply", args)
            case Apply(op, args) if op == semiring.add:
                return Apply("add", args)
            case Reduce(op, variables, body) if op in written:
                return Reduce(written[op], variables, body)
        return None

    return Assign(assign.lhs, rewrite(assign.rhs, rule), assign.op and written.get(assign.op, assign.op))


def semiring_zero(assign: Assign, semiring: Semiring) -> Scalar:
    """The semiring's zero in the dtype to which the operands promote. Absent entries of the operands must have this value."""
    return zero_in(operand_dtype(assign), semiring)


def zero_in(dtype: DType, semiring: Semiring) -> Scalar:
    """The semiring's zero in the dtype to which operands promote."""
    try:
        return semiring.zero_of(dtype)
    except (OverflowError, TypeError, ValueError):
        raise DTypeError(f"the semiring's zero {semiring.zero!r} is not a value of type {dtype}, to which the operands promote") from None


def operand_dtype(assign: Assign) -> DType:
    """The dtype to which all operands of the right side promote."""
    dtypes = [tensor.dtype for tensor in tensors_of(assign.rhs)]
    return promoted_dtype(dtypes) if dtypes else FLOAT64


def check_scopes(assign: Assign) -> None:
    """Refuse a statement that reads its own result, uses a name twice, or binds a variable that is also used elsewhere."""
    _check_names(assign)
    for found in walk(assign.rhs):
        match found:
            case Access(tensor) if tensor.name == assign.lhs.tensor.name:
                help = f"write {show(assign.lhs)} += ... to add to what {tensor.name} holds, or give the result another name"
                raise _refuse_at(f"'{tensor.name}' is both the result and an operand", assign, found, help)
            case Reduce():
                _check_reduction(assign, found)
    outside = {*assign.lhs.indices, *free_variables(assign.rhs)}
    for reduction, var in _bound(assign.rhs):
        if var in outside:
            help = f"use another name for the variable of the reduction, or leave it to the implicit sum over {var}"
            raise _refuse_at(f"'{var}' is bound by a reduction, but is also used outside it", assign, reduction, help)


def _bound(expr: Expr) -> Iterator[tuple[Reduce, IndexVar]]:
    """The reductions of an expression, with each variable that they bind."""
    return ((found, var) for found in walk(expr) if isinstance(found, Reduce) for var in found.variables)


def _check_names(assign: Assign) -> None:
    """Refuse a name that stands for two things."""
    named: dict[str, Node] = {}
    for found in walk(assign):
        match found:
            case TensorVar(name) | IndexVar(name) if named.setdefault(name, found) != found:
                kinds = "a tensor and an index variable" if type(named[name]) is not type(found) else "two different tensors"
                raise NotationError(f"'{name}' stands for {kinds}\n  {show(assign)}\nhelp: rename one of them")


def _check_reduction(assign: Assign, reduction: Reduce) -> None:
    """Refuse a reduction that names a variable twice, or binds one that a reduction within it binds again."""
    if len(set(reduction.variables)) != len(reduction.variables):
        raise _refuse_at("a reduction names a variable twice", assign, reduction, "name each variable once")
    for inner, var in _bound(reduction.body):
        if var in reduction.variables:
            raise _refuse_at(f"'{var}' is bound by two reductions, one within the other", assign, inner, "use two variables")


def _refuse_at(what: str, assign: Assign, place: Expr, help: str) -> NotationError:
    """An error with the statement as it was understood, and a caret under ``place``."""
    text = show(assign)
    found = re.compile(r"(?<!\w)" + re.escape(show(place))).search(text, len(show(assign.lhs)))
    return refuse(what, text, found.start() if found else 0, help)
