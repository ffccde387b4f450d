"""Statements as text: ``parse("y(i) = A(i,j) * x(j)")``.

Parsing needs no formats and no data. Every tensor comes out as a dense float64 placeholder, which ``declare`` then
replaces; implicit reductions are inserted after that, by ``terms.close_over``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import assert_never

from sparseloom.core.algebra import operator
from sparseloom.core.errors import NotationError
from sparseloom.core.trees import rewrite
from sparseloom.formats.named import dense
from sparseloom.notation.caret import refuse
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Fixed, IndexVar, Literal, Reduce, TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.syntax import (
    Braces,
    Element,
    Name,
    Operation,
    Syntax,
    WrittenCall,
    WrittenNumber,
    WrittenStatement,
    read_statement,
)
from sparseloom.notation.terms import check_scopes, combine, tensors_of

# These names are reductions only; min and max of two values are also minimum and maximum.
_ONLY_REDUCTIONS = frozenset({"sum", "prod", "any", "all"})


@dataclass(frozen=True)
class ParsedStatement:
    """A statement as it was read: its text, and its tree with placeholders for the tensors."""

    text: str
    assign: Assign

    @property
    def result(self) -> str:
        """The name of the tensor on the left."""
        return self.assign.lhs.tensor.name

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the tensors on the right, in order of first appearance."""
        return tuple(tensor.name for tensor in tensors_of(self.assign.rhs))


def parse(text: str, tensors: Collection[str] = ()) -> ParsedStatement:
    """Read a statement. ``tensors`` are names known to be tensors, even if there are functions of the same name.

    >>> parse("y(i) = A(i,j) * x(j)").operands
    ('A', 'x')
    """
    if not isinstance(text, str):
        raise NotationError(f"a statement is text such as 'y(i) = A(i,j) * x(j)', not {type(text).__name__}")
    statement = read_statement(text, tensors)
    assign = _Meaning(text, statement).assign()
    check_scopes(assign)
    return ParsedStatement(text, assign)


def placeholder(name: str, order: int) -> TensorVar:
    """A tensor about which only its name and order are known."""
    return TensorVar(name, order, dense(order))


def declare(assign: Assign, declarations: Mapping[str, TensorVar]) -> Assign:
    """Put the declared tensors in place of the placeholders of the same name. Tensors that are not declared stay."""
    known = {tensor.name: tensor for tensor in tensors_of(assign)}
    for name in declarations:
        if name not in known:
            raise NotationError(f"the statement has no tensor {name!r}; it has {', '.join(known)}\n  {show(assign)}")

    def rule(found: object) -> Access | None:
        match found:
            case Access(tensor, indices) if tensor.name in declarations:
                declared = declarations[tensor.name]
                if declared.order != len(indices):
                    fault = f"{tensor.name} has {_modes(declared.order)}, but {show(found)} gives it {len(indices)}"
                    raise NotationError(f"{fault}\n  {show(assign)}")
                return Access(declared, indices)
        return None

    return rewrite(assign, rule)


def _modes(order: int) -> str:
    return "1 mode" if order == 1 else f"{order} modes"


class _Meaning:
    """Decides what each name of a statement is, and builds the nodes."""

    def __init__(self, text: str, statement: WrittenStatement) -> None:
        self.text = text
        self.statement = statement
        elements = [found for side in (statement.left, statement.right) for found in _elements(side)]
        names = [name for found in elements for name in (found.names if isinstance(found, Braces) else found.indices)]
        self.indices = {name.name for name in names if isinstance(name, Name)}
        self.orders: dict[str, int] = {}

    def refuse(self, what: str, at: int, help: str = "") -> NotationError:
        return refuse(f"cannot read the statement: {what}", self.text, at, help)

    def assign(self) -> Assign:
        left = self.statement.left
        lhs = self.access(left.name, left.indices, left.at)
        return Assign(lhs, self.value(self.statement.right), "add" if self.statement.accumulates else None)

    def value(self, syntax: Syntax) -> Expr:
        """The expression that ``syntax`` stands for where a value is wanted."""
        match syntax:
            case WrittenNumber(value):
                return Literal(value)
            case Name(name, at):
                if name in self.indices:
                    help = f"pass a tensor that holds 0, 1, 2, ..., and write it as t({name})"
                    raise self.refuse(f"'{name}' is an index variable, not a value", at, help)
                return self.access(name, (), at)
            case Element(name, indices, at):
                return self.access(name, indices, at)
            case Operation(op, (arg,)):
                return Apply(op, (self.value(arg),))
            case Operation(op, args):
                return reduce(partial(combine, op), map(self.value, args))
            case WrittenCall():
                return self.call(syntax)
            case Braces(_, at):
                raise self.refuse("variables in braces stand only at the start of a reduction", at, "write sum({i,j}, A(i,j))")
        assert_never(syntax)

    def access(self, name: str, indices: tuple[Name | WrittenNumber, ...], at: int) -> Access:
        if name in self.indices:
            raise self.refuse(f"'{name}' is an index variable, so it cannot be a tensor too", at, "rename one of them")
        before = self.orders.setdefault(name, len(indices))
        if before != len(indices):
            raise self.refuse(f"'{name}' has {_modes(before)} elsewhere, but {len(indices)} here", at)
        return Access(placeholder(name, len(indices)), tuple(map(_index, indices)))

    def call(self, call: WrittenCall) -> Expr:
        match call:
            case WrittenCall("complex", (WrittenNumber(int() | float() as real), WrittenNumber(int() | float() as imaginary))):
                return Literal(complex(real, imaginary))
            case WrittenCall("complex", _, at):
                raise self.refuse("complex takes two real numbers", at, "write complex(1, 2) or 1 + 2j")
            case WrittenCall(_, (Braces(), *_)):
                return self.reduction(call)
            case WrittenCall(function, (Name(name), *_)) if name in self.indices and operator(function).identity is not None:
                return self.reduction(call)
            case WrittenCall(function, _, at) if function in _ONLY_REDUCTIONS:
                help = f"write {function}(j, A(i,j)) or {function}({{i,j}}, A(i,j))"
                raise self.refuse(f"'{function}' must say over which variables", at, help)
        return self.function(call)

    def reduction(self, call: WrittenCall) -> Reduce:
        op = operator(call.function)
        if op.identity is None:
            raise self.refuse(f"'{call.function}' cannot reduce", call.at, "reductions are sum, prod, min, max, any and all")
        if len(call.args) != 2:
            help = f"write {call.function}(j, A(i,j)), or {call.function}[i] for a tensor of that name"
            raise self.refuse(f"the reduction '{call.function}' takes variables and one expression", call.at, help)
        variables, body = call.args
        names = variables.names if isinstance(variables, Braces) else (variables,)
        bound = tuple(IndexVar(found.name) for found in names if isinstance(found, Name))
        return Reduce(op.name, bound, self.value(body), written=True)

    def function(self, call: WrittenCall) -> Expr:
        op = operator(call.function)
        for arg in call.args:
            if isinstance(arg, Name) and arg.name in self.indices and all(isinstance(other, Name) for other in call.args):
                places = ",".join(other.name for other in call.args if isinstance(other, Name))
                help = f"write {call.function}[{places}] if it is a tensor of that name"
                raise self.refuse(f"the function '{call.function}' takes values, and '{arg.name}' is an index variable", arg.at, help)
        args = [self.value(arg) for arg in call.args]
        if len(args) != op.arity and not (op.associative and len(args) > 1):
            wanted = f"{op.arity} or more arguments" if op.associative else "1 argument" if op.arity == 1 else f"{op.arity} arguments"
            raise self.refuse(f"'{call.function}' takes {wanted}, not {len(args)}", call.at)
        if op.associative:
            return reduce(partial(combine, op.name), args)
        return Apply(op.name, tuple(args))


def _index(written: Name | WrittenNumber) -> IndexVar:
    """The variable, or the number, at which a tensor stands."""
    match written:
        case Name(name):
            return IndexVar(name)
        case WrittenNumber(value):
            return Fixed(str(value), int(value.real))
    assert_never(written)


def _elements(syntax: Syntax) -> Iterator[Element | Braces]:
    """Every place in ``syntax`` where names are index variables."""
    match syntax:
        case Element() | Braces():
            yield syntax
        case WrittenCall(_, args) | Operation(_, args):
            for arg in args:
                yield from _elements(arg)
