"""Random statements from a grammar: sums of products as in tensor algebra, and free nests of operators, functions and reductions."""

from __future__ import annotations

from random import Random

from fuzz.families import Family

from sparseloom.core.trees import rewrite
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Fixed, IndexVar, Literal, Reduce, TensorVar
from sparseloom.notation.terms import combine, free_variables, tell_apart
from sparseloom.notation.text import parse, placeholder

_VARIABLES = tuple(IndexVar(name) for name in "ijkl")
_NAMES = "ABCDEFGHKLMNPQSTUVWXYZ"
MOST_POINTS_VARIABLES = 5  # so that the dense oracle stays small

# Statements that people write, among them those on which other systems failed.
KERNELS = (
    "y(i) = A(i,j) * x(j)", "y(j) = A(i,j) * x(i)", "y(i) = A(i,j) * x(j) + b(i)", "y(i) = 2 * A(i,j) * x(j) + 3 * b(i)",
    "y(i) = A(j,i) * x(j) - b(i)", "C(i,j) = A(i,k) * B(k,j)", "C(i,j) = A(i,k) * B(j,k)", "C(i,j) = A(i,j) * D(i,k) * E(k,j)",
    "C(i,j) = A(i,j) * D(i,k) * E(j,k)", "A(i,j) = B(i,k,l) * C(k,j) * D(l,j)", "A(i,j) = B(k,l,i) * D(l,j) * C(k,j)",
    "A(i,j) = B(i,j,k) * c(k)", "A(i,j,l) = B(i,j,k) * C(k,l)", "A(i,j,l) = B(i,j,k) * C(l,k)", "a = A(i,j) * B(i,j)",
    "a = A(i,j,k) * B(i,j,k)", "A(i,j,k) = B(i,j,k) + C(i,j,k)", "C(i,j) = A(i,j) + B(i,j)", "C(i,j) = A(i,j) + B(j,i)",
    "C(i,j) = A(i,j) * B(i,j)", "y(i) = (A(i,j) + B(i,j)) * x(j)", "y(i) = (A(i,j) + B(j,i)) * x(j) * z", "y(i) = A(i,i) * x(i)",
    "y(i) = A(i,j,j)", "a = A(i,i)", "a(i) = B(i,j) + c(j)", "a(i) = b(i) - c(i)", "a(i) = b(i) + c(i) + d(i) + e(i) + f(i)",
    "J(j,l) = A(l,j) + A(j,l)", "A(i,j,k) = B(i,j,k) + C(i,j)", "B(i,i) = A(i,j) * A(j,i)", "Z(j,k,l,m) = X(i,j,k) * Y(i,l,m)",
    "A(k,i) = B(k,j,l) * C(j,l,i)", "A(k) = B(l,k)", "A(i) = B(j,i) * C(i,j)", "C(i,j) = (A(i,j) + B(i,j)) * (A(i,j) + B(i,j) + D(i,j))",
    "A(j,k) = G(i,j,k) * p(i)", "C(i,l) = A(i,j) * B(j,k) * D(k,l)", "y(i) = b(i) - A(i,j) * x(j) * B(j,k) * z(k)",
    "y(i) += A(i,j) * x(j)", "C(i,j) += A(i,k) * B(k,j)", "y(i) = max(j, A(i,j) * x(j))", "y(i) = sum(j, A(i,j)) * c(i)",
    "y(i) = sqrt(sum(j, A(i,j) * conjugate(A(i,j))))", "y(i) = A(i,j) * x(j) + B(i,k) * z(k)", "y(i) = where(b(i) > 0, c(i), d(i))",
    "y(i) = min(j, A(i,j) + x(j))", "a = sum(i, max(j, A(i,j)) * b(i))", "C(i,j) = exp(A(i,j)) + B(i,j)", "A(i,j) = b(i) * c(j)",
    "A(i,j) = b(i) + c(j)", "C(i,j) = A(i,j) * x(j) * y(i)", "C(i,j) = A(i,j) / B(i,j)", "A(l,k,j,i) = B(i,j,k,l)",
    "a = A(i,j,k,l) * B(k,l) * C(i,j)", "y(i) = any(j, A(i,j))", "y(i) = all(j, A(i,j) == B(i,j))",
    "y(i) = sum(j, A(i,j)) / sum(k, B(i,k))", "C(i,j) = A(i,j) * sum(k, D(i,k) * E(k,j))", "A(i,j) = B(i)", "A(i,j) = 3",
    "y(i) = A(i,j) * B(j,k) * C(k,l) * x(l)", "Y(i,l) = M(i,j) * Q(i,k) * K(j,k) * V(j,l)", "C(i,j) = A(i,j) * B(j,k) * D(k,l) * E(l,i)",
    "A(i,j) = B(j,i)", "A(i,j) = B(i,j)", "A(i,j,k) = B(k,i,j)",
    "C(i,j) = A(k,i) * B(k,j)", "C(i,j) = A(k,i) * B(j,k)", "Y(i,l,k) = B(i,j,k) * C(j,l)",
    "A(j,r) = B(i,j,k) * C(i,r) * D(k,r)", "K(i,k,j,l) = A(i,j) * B(k,l)", "C(i,j) = A(k,i) * B(k,j) + D(i,j)",
    "C(i,j) = xor(and(A(i,j), D(i,j)), and(B(i,j), D(i,j)))",
    "R(i) = A(i)", "R(i,i) = cos(b(i))", "R(i,i) = A(i)", "R(i,j,i) = exp(A(i,j))", "R(i,i) = A(i,j) + 1", "R(i,i) = min(j, A(i,j))",
    "R(i) = prod(m, A*B(m)) / C(i)", "R(i,j) = all(m, A(j,m) * B(j,i)) / C(i,j)", "R(i,j) = (A(j,i) / B(i,j)) * min(m, 3 * C(m,j))",
    "R(j) = sum(i, A(i,j) != 0)", "R(i) = sum(j, A(i,j) * x(j)) + prod(k, B(i,k) + 2)", "R = sum({i,j}, A(i,j)) * sum(k, x(k) > 0)",
    "R(i) = sum(j, A(i,j) + 1)", "R(i) = sum(j, exp(A(i,j)))", "R(i) = sum(j, A(i,j) + b(i))", "R(i) = max(j, A(i,j) - b(i))",
    "R = max({i,j}, A(i,j))", "R = min(i, sum(j, A(i,j) + 2))", "R(i) = max(j, A(i,j) + B(i,j))", "R(i,k) = max(j, A(i,j) * B(j,k))",
    "R(i) = min(j, A(i,j) * B(i,j))", "R(i,k) = prod(j, A(i,j) * B(j,k) + 2)", "R(i) += max(j, A(i,j))", "R(i) += sum(j, A(i,j) + 1)",
    "R(i) = sum(j, where(A(i,j) > 0, b(i), 1))", "R(j) = 3 * max(i, A(i,j)) + b(j)", "R(i) = all(j, A(i,j) + B(i))",
    "R(i,j) = max(k, A(i,j,k))", "R(i) = prod(j, A(i,j))", "R(j) = prod(i, A(i,j) * x(i))", "R(i) = min(j, A(i,j)) * x(i)",
)  # fmt: skip
_RECIPROCAL = (1, 2, 4, 0.5)


def known_statement(random: Random, family: Family) -> Assign:
    """One of the kernels; subtraction becomes addition where the family has none."""
    text = random.choice(KERNELS)
    if not family.subtracts:
        text = text.replace(" - ", " + ")
    if family.name == "complex" and any(word in text for word in ("max", "min", " > ", "prod")):
        text = KERNELS[0]
    return parse(text).assign


def with_numbers(assign: Assign, random: Random) -> Assign:
    """The statement with numbers in the place of some variables of its operands: ``A(1,j)``."""

    def rule(found: object) -> Access | None:
        match found:
            case Access(tensor, (_, *_) as indices) if random.random() < 0.4:
                at, value = random.randrange(len(indices)), random.choice((0, 1, 2))
                return Access(tensor, tuple(Fixed(str(value), value) if mode == at else var for mode, var in enumerate(indices)))
        return None

    return Assign(assign.lhs, tell_apart(rewrite(assign.rhs, rule)), assign.op)


class Grammar:
    """Draws one statement. ``exact`` is found out on the way: whether its value is the same however it is computed."""

    def __init__(self, random: Random, family: Family) -> None:
        self.random = random
        self.family = family
        count = random.choices((1, 2, 3, 4), (0.2, 0.4, 0.28, 0.12))[0]
        self.variables = list(_VARIABLES[:count])
        self.orders: dict[str, int] = {}
        self.bound = 0

    def statement(self, products_only: bool = False) -> Assign:
        """A statement with at least one operand, most of the time."""
        products = products_only or self.random.random() < 0.55
        rhs = self.sum_of_products(products_only) if products else self.expression(self.random.choice((1, 2, 2, 3)), exact=self.chance(0.6))
        lhs = self.left_side(rhs)
        return Assign(lhs, rhs, "add" if self.chance(0.08) else None)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def left_side(self, rhs: Expr) -> Access:
        """Some of the free variables in any order; sometimes a repeated one, sometimes one that the right side lacks."""
        free = list(free_variables(rhs))
        keep = len(free) if self.chance(0.35) else self.random.randint(0, len(free))
        indices = self.random.sample(free, keep) if self.chance(0.35) else sorted(self.random.sample(free, keep), key=free.index)
        if indices and len(indices) < 4 and self.chance(0.03):
            indices.insert(self.random.randint(0, len(indices)), self.random.choice(indices))
        if len(indices) < 4 and self.chance(0.05):
            indices.insert(self.random.randint(0, len(indices)), IndexVar("n"))
        return Access(placeholder("R", len(indices)), tuple(indices))

    # Sums of products

    def sum_of_products(self, products_only: bool) -> Expr:
        total = self.product(products_only)
        if not products_only and self.family.subtracts and self.chance(0.1):
            total = Apply("negative", (total,))
        for _ in range(self.random.choices((0, 1, 2), (0.55, 0.3, 0.15))[0]):
            subtracts = not products_only and self.family.subtracts and self.chance(0.35)
            term = self.product(products_only)
            total = Apply("subtract", (total, term)) if subtracts else combine("add", total, term)
        return total

    def product(self, products_only: bool) -> Expr:
        count = self.random.choices((0, 1, 2, 3, 4), (0.03, 0.27, 0.4, 0.22, 0.08))[0]
        factors = [self.factor(products_only) for _ in range(count)] or [self.literal()]
        result = factors[0]
        for factor in factors[1:]:
            result = combine("multiply", result, factor)
        return result

    def factor(self, products_only: bool) -> Expr:
        draw = 0.0 if products_only else self.random.random()
        if draw < 0.76:
            return self.access()
        if draw < 0.82:
            return self.literal()
        if draw < 0.93:
            terms = [self.access() for _ in range(self.random.randint(2, 3))]
            result: Expr = terms[0]
            for term in terms[1:]:
                result = combine("add", result, term)
            return result
        return self.expression(1, exact=True)

    # Free nests

    def expression(self, depth: int, exact: bool) -> Expr:
        """An expression at most ``depth`` operators deep; an exact one has exact operators only."""
        if depth == 0:
            return self.leaf()
        draw = self.random.random()
        if draw < 0.14:
            return self.reduction(depth, exact)
        if draw < 0.62:
            return self.arithmetic(depth, exact)
        if not exact and draw < 0.85:
            return self.inexact(depth)
        return self.exact_function(depth) if exact or self.chance(0.3) else self.leaf()

    def leaf(self) -> Expr:
        return self.literal() if self.chance(0.12) else self.access()

    def arithmetic(self, depth: int, exact: bool) -> Expr:
        choices = ["add", "add", "multiply", "multiply", "multiply"] + (["subtract", "negative"] if self.family.subtracts else [])
        op = self.random.choice(choices)
        count = {"negative": 1, "subtract": 2}.get(op, self.random.choice((2, 2, 3)))
        args = [self.expression(self.random.randint(0, depth - 1), exact) for _ in range(count)]
        if op in ("subtract", "negative"):
            return Apply(op, tuple(args))
        result = args[0]
        for arg in args[1:]:
            result = combine(op, result, arg)
        return result

    def exact_function(self, depth: int) -> Expr:
        """A function whose arguments are exact and shallow, so that what it compares stays small."""
        draw = self.random.random()
        if draw < 0.15:
            condition = Apply(self.comparison(), (self.leaf(), self.leaf()))
            return Apply("where", (condition, self.expression(depth - 1, True), self.expression(depth - 1, True)))
        if draw < 0.25 and not self.family.is_float and self.family.name != "bool":
            return Apply("power", (self.leaf(), Literal(self.random.choice((0, 1, 2, 3)))))
        if draw < 0.6:
            return Apply(self.random.choice(self.family.unary), (self.expression(min(depth - 1, 1), True),))
        op = self.random.choice(self.family.binary)
        return Apply(op, (self.expression(min(depth - 1, 1), True), self.expression(0, True)))

    def comparison(self) -> str:
        return self.random.choice([op for op in self.family.binary if "equal" in op or op in ("less", "greater")])

    def inexact(self, depth: int) -> Expr:
        """A function or quotient of something exact. Divisors are plain, so that the sign of a zero in them is certain."""
        draw = self.random.random()
        if draw < 0.3:
            divisor = self.divisor()
            above = self.reduction(depth, True) if self.chance(0.35) else self.expression(depth - 1, True)
            return Apply("divide", (above, divisor))
        if draw < 0.4 and self.family.name == "float":
            return Apply("power", (self.access(), Literal(self.random.choice((2, 3, -1, 1.5)))))
        if draw < 0.45 and self.family.name == "float":
            positive = Apply("add", (Apply("absolute", (self.access(),)), Literal(1)))
            return Apply(self.random.choice(("arctan2", "hypot")), (self.access(), positive))
        return Apply(self.random.choice(self.family.inexact), (self.expression(min(depth - 1, 1), True),))

    def divisor(self) -> Expr:
        """An operand, or the larger of it and itself, which is as absent; or a number."""
        if self.chance(0.4):
            return Literal(self.random.choice(_RECIPROCAL))
        found = self.access()
        return Apply("maximum", (found, found)) if self.family.name == "float" and self.chance(0.2) else found

    def reduction(self, depth: int, exact: bool) -> Expr:
        """A reduction over fresh variables, so that none is used outside it."""
        if len(self.variables) + self.bound >= MOST_POINTS_VARIABLES:
            return self.leaf()
        fresh = IndexVar(f"r{self.bound}")
        self.bound += 1
        outer, self.variables = self.variables, [*self.variables[: self.random.randint(0, len(self.variables))], fresh]
        op = self.random.choice(self.family.reductions)
        shallow = op.startswith("logical") or exact
        body = self.expression(min(depth - 1, 1), True) if shallow else self.expression(depth - 1, False)
        if fresh not in free_variables(body) and self.chance(0.8):
            body = combine("multiply", body, Access(self.tensor(1), (fresh,)))
        self.variables = outer
        return Reduce(op, (fresh,), body)

    # Leaves

    def literal(self) -> Literal:
        return Literal(self.random.choice(self.family.literals))

    def access(self) -> Access:
        """A tensor at variables in any order; sometimes one that was used before, sometimes with a variable twice."""
        order = self.random.choices((0, 1, 2, 3, 4), (0.05, 0.34, 0.42, 0.15, 0.04))[0]
        order = min(order, len(self.variables) + (1 if self.chance(0.05) else 0), 4)
        if order > len(self.variables):
            indices = [self.random.choice(self.variables) for _ in range(order)]
        else:
            indices = self.random.sample(self.variables, order)
            if self.chance(0.5):
                indices.sort(key=self.variables.index)
        if order > 1 and self.chance(0.04):
            indices[-1] = indices[0]
        return Access(self.tensor(order), tuple(indices))

    def tensor(self, order: int) -> TensorVar:
        old = [name for name, known in self.orders.items() if known == order]
        again, letter = divmod(len(self.orders), len(_NAMES))
        name = self.random.choice(old) if old and self.chance(0.15) else f"{_NAMES[letter]}{again or ''}"
        self.orders[name] = order
        return placeholder(name, order)
