"""Random statements of index notation, in the form that the parser gives: any operator, any nesting, reductions, numbers."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from sparseloom.core.algebra import OPERATORS
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, IndexVar, Literal, Reduce
from sparseloom.notation.terms import combine, free_variables
from sparseloom.notation.text import placeholder

NUMBERS = (0, 1, 2, 7, -3, 0.5, -0.25, 1e30, 1e-9, 2j, -1.5j, 1 + 2j, True, False, float("inf"), float("-inf"))
TENSORS = {"a": 0, "x": 1, "y1": 1, "A": 2, "B": 2, "T": 3, "exp": 1, "max": 2, "inf": 0}
VARIABLES = "i j k l"


class RandomStatements:
    """A stream of random statements. ``tensors`` maps the names that may stand on the right to their orders."""

    def __init__(self, seed: int, tensors: Mapping[str, int] = TENSORS, operators: tuple[str, ...] = tuple(OPERATORS)) -> None:
        self.random = Random(seed)
        self.tensors = {name: placeholder(name, order) for name, order in tensors.items()}
        self.operators = operators
        self.variables = [IndexVar(name) for name in VARIABLES.split()]
        self.bound = 0

    def assign(self, depth: int = 4) -> Assign:
        """A statement: the left side has some of the right side's free variables, perhaps one that it lacks."""
        rhs = self.expression(depth)
        free = list(free_variables(rhs))
        indices = self.random.sample(free, self.random.randint(0, len(free)))
        if self.random.random() < 0.1:
            indices.append(IndexVar("n"))
        lhs = Access(placeholder("out", len(indices)), tuple(indices))
        return Assign(lhs, rhs, self.random.choice((None, None, "add")))

    def expression(self, depth: int) -> Expr:
        """An expression that is at most ``depth`` operators deep."""
        if depth == 0 or self.random.random() < 0.15:
            return self.leaf()
        if self.random.random() < 0.15:
            return self.reduction(depth)
        op = OPERATORS[self.random.choice(self.operators)]
        count = op.arity + (self.random.randint(0, 2) if op.associative else 0)
        args = [self.expression(depth - 1) for _ in range(count)]
        if not op.associative:
            return Apply(op.name, tuple(args))
        result = args[0]
        for arg in args[1:]:
            result = combine(op.name, result, arg)
        return result

    def leaf(self) -> Expr:
        if self.random.random() < 0.25:
            return Literal(self.random.choice(NUMBERS))
        tensor = self.random.choice(list(self.tensors.values()))
        return Access(tensor, tuple(self.random.choice(self.variables) for _ in range(tensor.order)))

    def reduction(self, depth: int) -> Reduce:
        """A reduction over fresh variables, so that none is used outside it; the last one may not occur in the body."""
        fresh = [IndexVar(f"r{self.bound + n}") for n in range(self.random.randint(1, 2))]
        self.bound += len(fresh)
        outer = self.variables
        self.variables = outer + fresh
        body = self.expression(depth - 1)
        self.variables = outer
        op = self.random.choice([op.name for op in OPERATORS.values() if op.identity is not None])
        return Reduce(op, tuple(fresh), body)
