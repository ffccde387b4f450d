"""Metamorphic relations: changes of a program that leave its result as it is, or only transpose it.

Each function takes random numbers and a program and returns the changed program with the axes of its result that restore the old one, or
None if it does not apply. None of them knows what the result is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from metamorphic.grammar import Access, Factor, Operand, Program, Statement, Term, Total, accesses, rebuilt, variables, with_accesses
from metamorphic.storing import draw_format
from numpy.typing import NDArray

# Words of Python and of C, and names that a compiler may think its own.
NAMES = (
    "for", "lambda", "int", "double", "restrict", "while", "return", "class", "struct", "i0", "i1", "i_block", "i_within", "j_block",
    "wi", "ws", "w", "f", "p", "pos", "crd", "crd0", "pos1", "A_vals", "A_crd1", "_i", "__a", "T", "t", "n", "x1", "end", "main", "size",
    "NULL", "void", "b5", "acc", "t_acc", "R_vals", "vals", "None", "self", "E", "q", "z",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Changed:
    """A program whose result, with its axes in this order, is the old program's. ``dtype_holds`` if its dtype is the same as well."""

    program: Program
    axes: tuple[int, ...]
    dtype_holds: bool = True


Relation = Callable[[Random, Program], "Changed | None"]


def _same(program: Program, dtype_holds: bool = True) -> Changed:
    return Changed(program, tuple(range(len(program.result.indices))), dtype_holds)


def commute(random: Random, program: Program) -> Changed | None:
    """Factors of products and terms of sums in another order."""

    def mixed(terms: tuple[Term, ...]) -> tuple[Term, ...]:
        made = [replace(term, factors=tuple(map(within, random.sample(term.factors, len(term.factors))))) for term in terms]
        return tuple(random.sample(made, len(made)))

    def within(factor: Factor) -> Factor:
        return Total(mixed(factor.terms)) if isinstance(factor, Total) else factor

    statements = tuple(replace(one, terms=mixed(one.terms)) for one in program.statements)
    return _same(replace(program, statements=statements), dtype_holds=False)


def store_otherwise(random: Random, program: Program) -> Changed | None:
    """Other formats for some or all tensors, results included."""
    share = random.choice((0.3, 0.6, 1.0))
    operands = {name: _stored_otherwise(random, operand, share) for name, operand in program.operands.items()}
    orders = {one.result.name: len(one.result.indices) for one in program.statements}
    formats = {name: draw_format(random, orders[name]) if random.random() < share else form for name, form in program.formats.items()}
    for one in program.statements:
        if one.adds and one.result.indices:
            formats[one.result.name] = operands[one.result.name].format
    return _same(replace(program, operands=operands, formats=formats))


def _stored_otherwise(random: Random, operand: Operand, share: float) -> Operand:
    if not operand.shape or random.random() > share:
        return operand
    return replace(operand, format=draw_format(random, len(operand.shape)))


def rename(random: Random, program: Program) -> Changed | None:
    """Other names for all variables and tensors."""
    tensors = {*program.operands, *(one.result.name for one in program.statements)}
    variables_ = {i for one in program.statements for a in (one.result, *accesses(one.terms)) for i in a.indices if isinstance(i, str)}
    old = sorted(tensors | variables_)
    if len(old) > len(NAMES):
        return None
    new = dict(zip(old, random.sample(NAMES, len(old)), strict=True))

    def access(one: Access) -> Access:
        return Access(new[one.name], tuple(i if isinstance(i, int) else new[i] for i in one.indices))

    statements = tuple(Statement(access(one.result), rebuilt(one.terms, access), one.adds) for one in program.statements)
    operands = {new[name]: operand for name, operand in program.operands.items()}
    formats = {new[name]: form for name, form in program.formats.items()}
    extents = {new[name]: size for name, size in program.extents.items() if name in new}
    return _same(Program(statements, operands, formats, extents))


def transpose(random: Random, program: Program) -> Changed | None:
    """Modes of an operand in another order, its data with them."""
    found = [name for name, operand in program.operands.items() if len(operand.shape) > 1 and name not in _added_to(program)]
    if not found:
        return None
    name = random.choice(found)
    operand = program.operands[name]
    order = random.sample(range(len(operand.shape)), len(operand.shape))
    turned = replace(
        operand,
        shape=tuple(operand.shape[k] for k in order),
        coordinates=operand.coordinates[order],
        format=draw_format(random, len(order)),
    )

    def access(one: Access) -> Access:
        return Access(name, tuple(one.indices[k] for k in order)) if one.name == name else one

    return _same(replace(program, statements=with_accesses(program, access), operands={**program.operands, name: turned}))


def transpose_result(random: Random, program: Program) -> Changed | None:
    """Modes of the result in another order."""
    last, count = program.statements[-1], len(program.result.indices)
    if count < 2 or last.adds:
        return None
    order = random.sample(range(count), count)
    turned = replace(last, result=Access(last.result.name, tuple(last.result.indices[k] for k in order)))
    formats = {**program.formats, last.result.name: draw_format(random, count)}
    changed = replace(program, statements=(*program.statements[:-1], turned), formats=formats)
    return Changed(changed, tuple(order.index(k) for k in range(count)))


def _added_to(program: Program) -> set[str]:
    return {one.result.name for one in program.statements if one.adds}


def distribute(random: Random, program: Program) -> Changed | None:
    """``A * (B + C)`` as ``A * B + A * C``, if all of these are summed over the same variables."""
    places = [
        (s, t, f)
        for s, one in enumerate(program.statements)
        for t, term in enumerate(one.terms)
        for f, factor in enumerate(term.factors)
        if isinstance(factor, Total) and _distributes(one, term, f)
    ]
    if not places:
        return None
    s, t, f = random.choice(places)
    one = program.statements[s]
    term = one.terms[t]
    inner = term.factors[f]
    assert isinstance(inner, Total)
    spread = tuple(Term((*term.factors[:f], *part.factors, *term.factors[f + 1 :]), term.negative != part.negative) for part in inner.terms)
    changed = replace(one, terms=(*one.terms[:t], *spread, *one.terms[t + 1 :]))
    statements = (*program.statements[:s], changed, *program.statements[s + 1 :])
    return _same(replace(program, statements=statements), dtype_holds=False)


def _distributes(one: Statement, term: Term, f: int) -> bool:
    inner, rest = term.factors[f], Term((*term.factors[:f], *term.factors[f + 1 :]))
    assert isinstance(inner, Total)
    summed = {*variables(term)} - {*one.result.indices}
    return all(summed <= {*variables(part), *variables(rest)} for part in inner.terms)


def split(random: Random, program: Program) -> Changed | None:
    """A part of a product ahead, in a statement of its own, summed over what nothing else needs."""
    found = [(s, t) for s, one in enumerate(program.statements) for t, term in enumerate(one.terms) if _splits(one, term)]
    if not found:
        return None
    s, t = random.choice(found)
    one, term = program.statements[s], program.statements[s].terms[t]
    chosen = sorted(random.sample(range(len(term.factors)), random.randint(1, len(term.factors))))
    part = Term(tuple(term.factors[k] for k in chosen))
    rest = tuple(factor for k, factor in enumerate(term.factors) if k not in chosen)
    needed = {*one.result.indices, *variables(Term(rest))}
    kept = [i for i in variables(part) if i in needed]
    if not variables(part) or len(kept) > 5:
        return None
    random.shuffle(kept)
    name = next(name for name in ("T", "T1", "T2", "T3", "T4", "T5") if name not in program.text)
    temporary = Statement(Access(name, tuple(kept)), (part,))
    product = Term((temporary.result, *rest), term.negative)
    changed = replace(one, terms=(*one.terms[:t], product, *one.terms[t + 1 :]))
    statements = (*program.statements[:s], temporary, changed, *program.statements[s + 1 :])
    formats = {**program.formats, **({name: draw_format(random, len(kept))} if kept else {})}
    return _same(replace(program, statements=statements, formats=formats), dtype_holds=False)


def _splits(one: Statement, term: Term) -> bool:
    return all(not isinstance(factor, Total) for factor in term.factors) and any(isinstance(f, Access) for f in term.factors)


def part_entries(random: Random, program: Program) -> Changed | None:
    """An operand as the sum of two that have some of its entries each."""
    found = [name for name, operand in program.operands.items() if operand.shape and not operand.fill and name not in _added_to(program)]
    if not found:
        return None
    name = random.choice(found)
    operand = program.operands[name]
    first = np.random.default_rng(random.getrandbits(32)).random(len(operand.values)) < 0.5
    names = [f"{name}{k}" for k in (8, 9)]
    if any(one in program.text for one in names):
        return None
    parts = {one: _part_of(random, operand, kept) for one, kept in zip(names, (first, ~first), strict=True)}

    def access(one: Access) -> Factor:
        return Total(tuple(Term((Access(part, one.indices),)) for part in names)) if one.name == name else one

    operands = {key: value for key, value in program.operands.items() if key != name} | parts
    return _same(replace(program, statements=with_accesses(program, access), operands=operands))


def _part_of(random: Random, operand: Operand, kept: NDArray[np.bool_]) -> Operand:
    coordinates, values = operand.coordinates[:, kept], operand.values[kept]
    return replace(operand, coordinates=coordinates, values=values, format=draw_format(random, len(operand.shape)))


RELATIONS: dict[str, tuple[Relation, int]] = {
    "commute": (commute, 3),
    "store otherwise": (store_otherwise, 5),
    "rename": (rename, 1),
    "transpose an operand": (transpose, 2),
    "transpose the result": (transpose_result, 2),
    "distribute": (distribute, 2),
    "split a product": (split, 2),
    "part the entries": (part_entries, 2),
}
"""Each relation by name, and how often it is drawn."""


def draw_changes(random: Random, program: Program) -> tuple[Changed, tuple[str, ...]]:
    """One to three relations, one after another, and their names."""
    changed, names = _same(program), []
    for _ in range(random.choices((1, 2, 3), (60, 30, 10))[0]):
        (name,) = random.choices(list(RELATIONS), [weight for _, weight in RELATIONS.values()])
        found = RELATIONS[name][0](random, changed.program)
        if found is not None:
            # The old axes name places in what the new ones restore.
            axes = tuple(found.axes[k] for k in changed.axes)
            changed = Changed(found.program, axes, changed.dtype_holds and found.dtype_holds)
            names.append(name)
    return changed, tuple(names)
