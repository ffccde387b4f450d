"""What a program means, computed with NumPy alone on dense arrays: every variable of a term is an axis, and what is left over is summed."""

from __future__ import annotations

import numpy as np
from metamorphic.grammar import Access, Factor, Program, Statement, Term, Total, variables
from numpy.typing import NDArray

Array = NDArray[np.generic]


def computed(program: Program) -> Array:
    """The result of the last statement."""
    values = {name: operand.dense for name, operand in program.operands.items()}
    for one in program.statements:
        values[one.result.name] = _assigned(one, values, program.extents)
    return values[program.result.name]


def _assigned(one: Statement, values: dict[str, Array], extents: dict[str, int]) -> Array:
    names = tuple(dict.fromkeys(map(str, one.result.indices)))
    total = np.zeros([extents[i] for i in names], np.int64)
    for term in one.terms:
        axes = (*names, *(i for i in variables(term) if i not in names))
        product = _product(term, axes, values, extents)
        total = total + product.sum(axis=tuple(range(len(names), len(axes))))
    made = np.zeros([extents[str(i)] for i in one.result.indices], total.dtype)
    places = np.indices(total.shape)
    made[tuple(places[names.index(str(i))] for i in one.result.indices)] = total
    return values[one.result.name] + made if one.adds else made


def _product(term: Term, axes: tuple[str, ...], values: dict[str, Array], extents: dict[str, int]) -> Array:
    product: Array = np.full([extents[i] for i in axes], -1 if term.negative else 1)
    for factor in term.factors:
        product = product * _factor(factor, axes, values, extents)
    return product


def _factor(factor: Factor, axes: tuple[str, ...], values: dict[str, Array], extents: dict[str, int]) -> Array | int:
    match factor:
        case int():
            return factor
        case Total(terms):
            return sum((_product(term, axes, values, extents) for term in terms), start=np.zeros([extents[i] for i in axes], np.int64))
        case Access(name, indices):
            places = np.indices([extents[i] for i in axes])
            return np.asarray(values[name][tuple(i if isinstance(i, int) else places[axes.index(i)] for i in indices)])
