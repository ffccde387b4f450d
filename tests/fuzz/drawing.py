"""Whole cases: a statement, its sizes, its operands, and what is asked of the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from fuzz.families import BFLOAT16, FAMILIES, Family
from fuzz.naming import nasty_names
from fuzz.operands import RESULTS, Spec, draw_spec
from fuzz.statements import Grammar, known_statement, with_numbers

from sparseloom.core.algebra import SEMIRINGS, Scalar, Semiring
from sparseloom.core.errors import DTypeError
from sparseloom.core.trees import walk
from sparseloom.notation.nodes import Access, Apply, Assign, Fixed, IndexVar, Reduce, TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.terms import close_over, free_variables, tell_apart
from sparseloom.notation.text import declare, parse
from sparseloom.plan.problem import own_dtype
from sparseloom.schedule.own_names import rename

_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6)
_LARGE_SIZES = (1, 3, 11, 13, 40, 130)
MOST_POINTS = 6000
LOWERED_LIMIT = 127
OWN_SEMIRINGS = {
    "add_min": Semiring("add", "min", 0),
    "or_and_own": Semiring("or", "and", False),
    "max_times_own": Semiring("max", "times", 0),
}


@dataclass(frozen=True)
class Case:
    """One comparison to be made. ``specs`` has the operands by name, and the initial value of a ``+=`` under the result's."""

    seed: tuple[int, int]
    assign: Assign
    sizes: dict[str, int]
    specs: dict[str, Spec]
    format: str | None = None
    dtype: str | None = None
    semiring: str | None = None
    int32_limit: int = 2**31 - 1

    @property
    def text(self) -> str:
        """The statement as a user would write it."""
        return show(self.assign)

    @property
    def ring(self) -> Semiring | None:
        """The semiring to compute in."""
        return None if self.semiring is None else {**SEMIRINGS, **OWN_SEMIRINGS}[self.semiring]

    @property
    def given_sizes(self) -> dict[str, int]:
        """The extents that no operand fixes."""
        named = {v.name for a in accesses(self.assign) if a.tensor.name in self.specs for v in a.indices}
        return {name: size for name, size in self.sizes.items() if name not in named}

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        access = next(a for a in accesses(self.assign) if a.tensor.name == name)
        return tuple(self.sizes[v.name] for v in access.indices)

    def closed(self) -> Assign:
        """The statement, read from its text, with every tensor declared and every reduction explicit."""
        assign = parse(self.text).assign
        tensors = {}
        for access in accesses(assign):
            name, order = access.tensor.name, len(access.indices)
            if name in self.specs:
                spec = self.specs[name]
                form = spec.level_format(order)
                index = np.dtype(spec.index) if any(level.array_names for level in form.levels) else None
                tensors[name] = TensorVar(name, order, form, np.dtype(spec.dtype), index, spec.fill)
        return close_over(declare(assign, tensors), self.ring)

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {self.text}", f"  sizes {self.sizes}"]
        lines += [f"  {name}: {spec}" for name, spec in self.specs.items()]
        lines.append(f"  result format {self.format}, dtype {self.dtype}, semiring {self.semiring}, int32 limit {self.int32_limit}")
        return "\n".join(lines)


def accesses(assign: Assign) -> list[Access]:
    """Every access of a statement, the result's first."""
    return [n for n in walk(assign) if isinstance(n, Access)]


def numbers_of(assign: Assign) -> list[Fixed]:
    """The numbers in the place of variables, from left to right."""
    return [n for n in walk(assign) if isinstance(n, Fixed)]


def cases(seed: int, stream: int, large: bool = False) -> Iterator[Case]:
    """An endless stream of cases; the pair (seed, number) decides each of them."""
    number = stream << 32
    while True:
        yield draw(seed, number, large)
        number += 1


def draw(seed: int, number: int, large: bool = False) -> Case:
    """One case."""
    random = Random(f"{seed}/{number}/{large}")
    family = random.choices([f for f, _ in FAMILIES.values()], [w for _, w in FAMILIES.values()])[0]
    semiring = random.choice((*family.semirings, *OWN_SEMIRINGS)) if family.semirings and random.random() < 0.08 else None
    if semiring in OWN_SEMIRINGS and family.name != "unsigned":
        semiring = random.choice(family.semirings)
    if semiring is None and random.random() < 0.22:
        assign = known_statement(random, family)
    else:
        assign = Grammar(random, family).statement(products_only=semiring is not None)
    numbers = Random(f"numbers {seed}/{number}/{large}")
    assign = with_numbers(assign, numbers) if numbers.random() < 0.08 else assign
    sizes = _draw_sizes(random, assign, large)
    specs = _draw_specs(random, family, assign, semiring, large)
    form = _draw_format(random, assign, large)
    dtype = _draw_dtype(random, family) if semiring is None and random.random() < 0.06 else None
    case = Case((seed, number), assign, sizes, specs, form, dtype, semiring, LOWERED_LIMIT if large else 2**31 - 1)
    case = _with_initial_dtype(case) if assign.op is not None else case
    names = Random(f"names {seed}/{number}/{large}")
    return nastily_named(case, names) if names.random() < 0.2 else case


def nastily_named(case: Case, random: Random) -> Case:
    """The same case, its variables and tensors called otherwise. What a ``+=`` adds to keeps its name."""
    found = dict.fromkeys(n.name for n in walk(case.assign) if isinstance(n, IndexVar | TensorVar) and not isinstance(n, Fixed))
    names = nasty_names(found, random)
    if case.assign.op is not None:
        names.pop(case.assign.lhs.tensor.name, None)
    renamed = rename(case.assign, names)
    renamed = Assign(renamed.lhs, tell_apart(renamed.rhs), renamed.op)
    pairs = zip(numbers_of(case.assign), numbers_of(renamed), strict=True)
    names |= {before.name: after.name for before, after in pairs}
    return replace(
        case,
        assign=renamed,
        sizes={names.get(name, name): size for name, size in case.sizes.items()},
        specs={names.get(name, name): spec for name, spec in case.specs.items()},
    )


def _with_initial_dtype(case: Case) -> Case:
    """What a ``+=`` starts from has the dtype of the result."""
    name = case.assign.lhs.tensor.name
    try:
        closed = case.closed()
        dtype = case.dtype or own_dtype(closed).name
    except DTypeError:
        return case
    spec = case.specs[name]
    smallest = 0 if np.dtype(dtype).kind in "ub" else spec.smallest
    fill: Scalar = 0
    if case.ring is not None and not spec.level_format(len(case.assign.lhs.indices)).is_dense:
        fill = case.ring.zero_of(np.dtype(dtype))
    specials = spec.specials and "float" in dtype
    return replace(case, specs={**case.specs, name: replace(spec, dtype=dtype, smallest=smallest, fill=fill, specials=specials)})


def tied_variables(assign: Assign) -> dict[str, str]:
    """Every variable, and one that stands for all that must have its extent."""
    variables = list(dict.fromkeys(n.name for n in walk(assign) if isinstance(n, IndexVar)))
    same = {name: name for name in variables}

    def root(name: str) -> str:
        return name if same[name] == name else root(same[name])

    first: dict[str, tuple[IndexVar, ...]] = {}
    for access in accesses(assign):
        for a, b in zip(first.setdefault(access.tensor.name, access.indices), access.indices, strict=True):
            same[root(a.name)] = root(b.name)
    return {name: root(name) for name in variables}


def _draw_sizes(random: Random, assign: Assign, large: bool) -> dict[str, int]:
    """Extents that agree wherever one tensor is used twice, or a variable stands at two modes."""
    root = tied_variables(assign)
    while True:
        drawn = {name: random.choice(_LARGE_SIZES if large else _SIZES) for name in root}
        sizes = {name: drawn[root[name]] for name in root}
        points = 1
        for size in sizes.values():
            points *= max(size, 1)
        if points <= MOST_POINTS and all(found.value < sizes[found.name] for found in numbers_of(assign)):
            return sizes


def _draw_specs(random: Random, family: Family, assign: Assign, semiring: str | None, large: bool) -> dict[str, Spec]:
    specials = family.is_float and family.name != "complex" and not _is_touchy(assign) and random.random() < 0.1
    specs: dict[str, Spec] = {}
    one_dtype = random.choice(family.dtypes)
    for access in accesses(assign)[0 if assign.op else 1 :]:
        name, order = access.tensor.name, len(access.indices)
        if name in specs:
            continue
        spec = draw_spec(random, family, order, specials)
        if large:
            spec = replace(spec, density=random.choice((0.2, 0.9, 1.0)))
        if semiring is not None:
            spec = _under_semiring(spec, one_dtype, order, {**SEMIRINGS, **OWN_SEMIRINGS}[semiring])
        if name == assign.lhs.tensor.name and random.random() < 0.4:
            spec = Spec("d" * order, spec.dtype, spec.seed, spec.smallest)
        specs[name] = spec
    return specs


def _is_touchy(assign: Assign) -> bool:
    """Whether the sign of a zero, or the order of a nan, may matter."""
    return any(isinstance(n, Apply) and n.op in ("divide", "power", "arctan2", "hypot") for n in walk(assign))


def _under_semiring(spec: Spec, dtype: str, order: int, ring: Semiring) -> Spec:
    """Absent entries are the semiring's zero."""
    kind = np.dtype(dtype)
    zero: Scalar = 0 if spec.level_format(order).is_dense else ring.zero_of(kind)
    smallest = 0 if kind.kind in "ub" else spec.smallest
    return Spec(spec.format, dtype, spec.seed, smallest, spec.index, zero, spec.density, spec.repeats, False, spec.slack)


def _draw_format(random: Random, assign: Assign, large: bool) -> str | None:
    """Sparse results of every kind, whether or not their entries come in order; more of them where the result has all variables."""
    order = len(assign.lhs.indices)
    reduces = any(isinstance(n, Reduce) for n in walk(assign)) or any(v not in assign.lhs.indices for v in free_variables(assign.rhs))
    dense = "d" * order
    if order == 0:
        return dense
    whole = all(set(a.indices) == set(assign.lhs.indices) for a in accesses(assign))
    chances = (0.55, 0.15, 0.3) if reduces else (0.3, 0.3, 0.4) if whole else (0.45, 0.3, 0.25)
    if large and not reduces:
        chances = (0.1, 0.2, 0.7)  # only sparse results can outgrow their positions
    match random.choices(("dense", "default", "sparse"), chances)[0]:
        case "dense":
            return dense if random.random() < 0.9 or order != 2 else "dd:1,0"
        case "default":
            return None
    return random.choice(RESULTS[order])


def _draw_dtype(random: Random, family: Family) -> str | None:
    """A wider result, or one that is rounded."""
    wider: dict[str, tuple[str, ...]] = {
        "signed": ("int64", "float64", "complex128"), "float": ("float64", "float32", "float16"), "bool": ("int32", "float64"),
        "half": ("float16", BFLOAT16, "float32"),
    }  # fmt: skip
    return random.choice(wider.get(family.name, (None,)))
