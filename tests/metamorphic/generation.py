"""Random valid programs, built under constraints: every index gets its extent and its uses before any text is written.

What makes a program valid is settled while it is built. Extents are drawn first, operands take their indices from variables with the
extents that they have, and a result's variable that no factor has is given to one. Dtypes are chosen last, from those that hold every
intermediate value exactly, so that equal means equal in whatever order a program is computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from random import Random

import numpy as np
from metamorphic.grammar import Access, Factor, Index, Operand, Program, Statement, Term, Total, accesses, variables
from metamorphic.storing import draw_format, in_any_order

VARIABLES = "ijklmno"
MOST_POINTS = 700
ORDERS = {0: 8, 1: 24, 2: 38, 3: 20, 4: 7, 5: 3}
DENSITIES = (0.0, 0.15, 0.3, 0.5, 0.8, 1.0)
LARGEST = 3
# What each dtype holds exactly.
HOLDS = {
    "int8": 127, "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**53, "uint8": 255, "uint16": 2**16 - 1, "uint32": 2**32 - 1,
    "float16": 2**11, "float32": 2**24, "float64": 2**53, "complex64": 2**24, "complex128": 2**53,
}  # fmt: skip


@dataclass
class Draft:
    """A program while it is drawn: shapes of tensors, extents of variables, statements."""

    random: Random
    extents: dict[str, int]
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def order(self, most: int = 5) -> int:
        """How many modes a tensor has."""
        return min(self.random.choices(list(ORDERS), list(ORDERS.values()))[0], most)

    def access(self, pool: tuple[str, ...]) -> Access:
        """An operand that is new, or one that is read again where variables of the same extents are to be had."""
        if self.shapes and self.random.random() < 0.25:
            name = self.random.choice(list(self.shapes))
            fitting = [[i for i in pool if self.extents[i] == size] for size in self.shapes[name]]
            if all(fitting):
                return Access(name, tuple(map(self.random.choice, fitting)))
        indices: list[Index] = list(self.random.sample(pool, min(self.order(), len(pool))))
        if len(indices) > 1 and self.random.random() < 0.08:
            indices[-1] = indices[0]
        shape = tuple(self.extents[str(i)] for i in indices)
        if indices and self.random.random() < 0.04 and self.extents[str(indices[0])]:
            indices[0] = self.random.randrange(self.extents[str(indices[0])])
        return self.new(shape, tuple(indices))

    def new(self, shape: tuple[int, ...], indices: tuple[Index, ...]) -> Access:
        """A new operand."""
        name = "ABCDEFGHKLMNOPQ"[len(self.shapes)] if len(self.shapes) < 15 else f"Z{len(self.shapes)}"
        self.shapes[name] = shape
        return Access(name, indices)

    def term(self, pool: tuple[str, ...], depth: int = 0) -> Term:
        """A product of one to four factors, some of which are sums or numbers."""
        count = self.random.choices((1, 2, 3, 4), (28, 45, 21, 6))[0]
        factors: list[Factor] = []
        for _ in range(count):
            # A sum that is all of a term is no factor: its terms are summed apart, as those around it.
            if depth == 0 and count > 1 and self.random.random() < 0.08:
                factors.append(Total(tuple(self.term(pool, 1) for _ in range(2))))
            else:
                factors.append(self.access(pool))
        if self.random.random() < 0.1:
            factors.insert(self.random.randint(0, count), self.random.choice((2, 3)))
        return Term(tuple(factors), self.random.random() < 0.2)


def draw_program(random: Random) -> Program:
    """A program with its data; two of the same random numbers are equal."""
    draft = Draft(random, _extents(random))
    statements: list[Statement] = []
    count = random.choices((1, 2, 3), (78, 17, 5))[0]
    for number in range(count):
        statements.append(_statement(draft, number, statements[-1].result if statements else None, count == 1))
    return _with_data(draft, tuple(statements))


def _extents(random: Random) -> dict[str, int]:
    """How far variables run: all as far in every second program, so that operands fit in several places."""
    count = random.randint(1, len(VARIABLES))
    sizes = [random.randint(1, 5) for _ in range(count)]
    if random.random() < 0.5:
        sizes = [sizes[0]] * count
    if random.random() < 0.04:
        sizes[random.randrange(count)] = 0
    while prod(max(size, 1) for size in sizes) > MOST_POINTS:
        sizes = [max(size - 1, 1) if size else 0 for size in sizes] if min(sizes) > 2 else sizes[:-1]
    return dict(zip(VARIABLES, sizes, strict=False))


def _statement(draft: Draft, number: int, before: Access | None, is_only: bool) -> Statement:
    """One statement, which reads the result of the one before."""
    random, pool = draft.random, tuple(draft.extents)
    indices = tuple(random.sample(pool, min(draft.order(), len(pool))))
    if len(indices) > 1 and random.random() < 0.03:
        indices = (*indices[:-1], next(i for i in indices if draft.extents[i] == draft.extents[indices[0]]))
    terms = [draft.term(pool) for _ in range(random.choices((1, 2, 3), (70, 23, 7))[0])]
    if before is not None:
        terms[0] = Term((before, *terms[0].factors[:2]), terms[0].negative)
    lacks_some = is_only and random.random() < 0.06  # a term that is spread over what it lacks
    terms = [term if lacks_some else _completed(draft, term, indices) for term in terms]
    result = Access(f"R{number}" if before is not None else "R", indices)
    return Statement(result, tuple(terms))


def _completed(draft: Draft, term: Term, indices: tuple[str, ...]) -> Term:
    """The term with one factor more, if the result has variables that it lacks."""
    missing = tuple(dict.fromkeys(i for i in indices if i not in variables(term)))
    if not missing:
        return term
    return Term((*term.factors, draft.new(tuple(draft.extents[i] for i in missing), missing)), term.negative)


def _with_data(draft: Draft, statements: tuple[Statement, ...]) -> Program:
    random = draft.random
    if random.random() < 0.08:
        last = statements[-1]
        if len(set(last.result.indices)) == len(last.result.indices):
            draft.shapes[last.result.name] = tuple(draft.extents[str(i)] for i in last.result.indices)
            statements = (*statements[:-1], Statement(last.result, last.terms, adds=True))
    read = {access.name for one in statements for access in accesses(one.terms)} | {one.result.name for one in statements if one.adds}
    shapes = {name: shape for name, shape in draft.shapes.items() if name in read}
    bound = largest(statements, draft.extents, dict.fromkeys(shapes, 2 * LARGEST))
    kinds = _dtypes(random, statements, bound, len(shapes))
    operands = {name: _operand(random, shape, kind) for (name, shape), kind in zip(shapes.items(), kinds, strict=True)}
    formats = {one.result.name: draw_format(random, len(one.result.indices)) for one in statements if one.result.indices}
    for one in statements:
        if len(set(one.result.indices)) < len(one.result.indices) and random.random() < 0.5:
            formats[one.result.name] = "d" * len(one.result.indices)
    for one in statements:
        if one.adds and one.result.indices:
            formats[one.result.name] = operands[one.result.name].format
    return Program(statements, operands, formats, draft.extents)


def largest(statements: tuple[Statement, ...], extents: dict[str, int], bounds: dict[str, int]) -> int:
    """No value is larger on the way, in whatever order things are added and multiplied."""
    bounds, most = dict(bounds), max(bounds.values(), default=1)

    def of(term: Term) -> int:
        return prod(bounds[f.name] if isinstance(f, Access) else f if isinstance(f, int) else sum(map(of, f.terms)) for f in term.factors)

    for one in statements:
        total = bounds.get(one.result.name, 0) if one.adds else 0
        for term in one.terms:
            summed = [i for i in variables(term) if i not in one.result.indices]
            total += of(term) * prod(max(extents[i], 1) for i in summed)
        bounds[one.result.name] = total
        most = max(most, total)
    return most


def _dtypes(random: Random, statements: tuple[Statement, ...], bound: int, count: int) -> list[str]:
    """The dtype of each operand: one for all, or any that hold all values."""
    subtracts = any("-" in str(one) for one in statements)
    fitting = [name for name, most in HOLDS.items() if most >= bound and not (subtracts and name.startswith("u"))]
    simple = [name for name in fitting if name in ("int32", "int64", "float32", "float64")] or ["float64"]
    if random.random() < 0.5:
        return [random.choice(simple if random.random() < 0.5 else fitting or simple)] * count
    return [random.choice(fitting or simple) for _ in range(count)]


def _operand(random: Random, shape: tuple[int, ...], kind: str) -> Operand:
    """Entries, some of them zeros, and a format."""
    rng = np.random.default_rng(random.getrandbits(32))
    form = draw_format(random, len(shape))
    is_dense = not set(form.split(":")[0]) - {"d"}
    fill = 0 if is_dense or random.random() > 0.05 else random.choice((1, 2))
    kept = rng.random(shape) < (1.0 if form == "" else random.choice(DENSITIES))
    coordinates = np.argwhere(kept).T.reshape(len(shape), -1) if shape else np.zeros((0, 1), np.int64)
    count = coordinates.shape[1]
    if shape and form == in_any_order(len(shape)) and count:
        again = rng.integers(count, size=min(count, 2))
        coordinates = coordinates[:, rng.permutation(np.append(np.arange(count), np.unique(again)))]
    return Operand(shape, coordinates, _values(rng, kind, coordinates.shape[1]), form, fill)


def _values(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    low = 0 if kind.startswith("u") else -LARGEST
    values = rng.integers(low, LARGEST + 1, count)
    if kind.startswith("complex"):
        values = rng.integers(-1, 2, count)
        return (values + 1j * rng.integers(-1, 2, count)).astype(kind)
    return values.astype(kind)
