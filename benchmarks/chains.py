"""Products of three to six operands through ``einsum``: the order in which they are computed decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.kernels import double
from benchmarks.stand_ins import numbers, room
from benchmarks.task import Array, Task
from sparseloom.tensor.tensor import Tensor

Operand = Tensor | Array
RIGHT, LEFT = "right_to_left", "left_to_right"


def low_rank(matrix: Tensor, width: int) -> Task:
    """A sparse matrix, two thin dense ones and a vector."""
    n = matrix.shape[1]
    B, C, d = (numbers(name, *shape, dtype=matrix.dtype) for name, shape in (("B", (n, width)), ("C", (width, n)), ("d", (n,))))
    return _chain("ij,jr,rk,k->i", [matrix, B, C, d])


def powers(matrix: Tensor, width: int) -> Task:
    """A sparse matrix three times, and a vector."""
    return _chain("ij,jk,kl,l->i", [matrix, matrix, matrix, _vector(matrix)])


def more_powers(matrix: Tensor, width: int) -> Task:
    """A sparse matrix four times, and a vector."""
    return _chain("ij,jk,kl,lm,m->i", [matrix, matrix, matrix, matrix, _vector(matrix)])


def two_matrices(matrix: Tensor, width: int) -> Task:
    """A sparse matrix twice, and a vector."""
    return _chain("ij,jk,k->i", [matrix, matrix, _vector(matrix)])


def scaled(matrix: Tensor, width: int) -> Task:
    """A sparse matrix, a diagonal, the matrix again, and a vector."""
    return _chain("ij,j,jk,k->i", [matrix, _vector(matrix, "d"), matrix, _vector(matrix)])


def scaled_twice(matrix: Tensor, width: int) -> Task:
    """Six operands: three matrices with a diagonal behind each."""
    d, e, x = (_vector(matrix, name) for name in "dex")
    return _chain("ij,j,jk,k,kl,l->i", [matrix, d, matrix, e, matrix, x])


def narrowing(matrix: Tensor, width: int) -> Task:
    """A layer of a graph network, A X W, whose output is narrower than its input: W comes first."""
    X, W = numbers("X", matrix.shape[1], 4 * width, dtype=matrix.dtype), numbers("W", 4 * width, width, dtype=matrix.dtype)
    return _chain("ij,jk,kl->il", [matrix, X, W], RIGHT)


def widening(matrix: Tensor, width: int) -> Task:
    """The same with an output that is wider: W comes last."""
    X, W = numbers("X", matrix.shape[1], width, dtype=matrix.dtype), numbers("W", width, 4 * width, dtype=matrix.dtype)
    return _chain("ij,jk,kl->il", [matrix, X, W], LEFT)


def _chain(subscripts: str, operands: Sequence[Operand], call: str = RIGHT) -> Task:
    """An einsum whose operands are multiplied like matrices."""
    inputs, output = subscripts.split("->")
    terms = inputs.split(",")
    sizes = {letter: size for term, operand in zip(terms, operands, strict=True) for letter, size in zip(term, operand.shape, strict=True)}
    out = room(*(sizes[letter] for letter in output), dtype=operands[0].dtype)
    given = [operand.to_scipy() if isinstance(operand, Tensor) else operand for operand in operands]
    named = {f"T{place}": operand for place, operand in enumerate(operands)}
    accesses = " * ".join(f"{name}({','.join(term)})" for name, term in zip(named, terms, strict=True))
    work = _multiplications(terms, operands, sizes)
    statement = f"out({','.join(output)}) = {accesses}"
    return Task(statement, named, out, call, given, lambda: _from_right(given), subscripts=subscripts, multiplications=work)


def _multiplications(terms: Sequence[str], operands: Sequence[Operand], sizes: dict[str, int]) -> float:
    """About how many innermost iterations one nest has: all points, thinned out by every sparse operand."""
    points = math.prod(map(float, sizes.values()))
    return points * math.prod(operand.nnz / math.prod(operand.shape) for operand in operands if isinstance(operand, Tensor)) * len(terms)


def _from_right(given: Sequence[Any]) -> Any:
    *others, made = map(double, given)
    for factor in reversed(others):
        made = factor * made if factor.ndim == 1 else factor @ made
    return np.asarray(made)


def _vector(matrix: Tensor, name: str = "x") -> Array:
    return numbers(name, matrix.shape[1], dtype=matrix.dtype)
