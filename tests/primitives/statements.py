"""Statements to schedule, from their text and the formats of their tensors."""

from __future__ import annotations

from dataclasses import replace

from sparseloom.core.dtypes import DType
from sparseloom.formats.text import parse_format
from sparseloom.iteration.concretize import Concrete, concretize
from sparseloom.notation.terms import close_over, tensors_of
from sparseloom.notation.text import declare, parse
from sparseloom.schedule.schedule import Schedule


def concrete(text: str, formats: str = "", dtype: DType | None = None) -> Concrete:
    """The loops of a statement; ``formats`` reads ``A:csr x:s``, and what it leaves out is dense."""
    assign = parse(text).assign
    stored = dict(item.split(":", 1) for item in formats.split())
    tensors = {}
    for tensor in tensors_of(assign):
        form = parse_format(stored[tensor.name], tensor.order) if tensor.name in stored else tensor.format
        tensors[tensor.name] = replace(tensor, format=form, dtype=tensor.dtype if dtype is None else dtype)
    return concretize(close_over(declare(assign, tensors)))


def schedule(text: str, formats: str = "", steps: str = "", dtype: DType | None = None) -> Schedule:
    """A statement after the steps of a schedule."""
    return Schedule.from_text(concrete(text, formats, dtype), steps)


SPMV = ("y(i) = A(i,j) * x(j)", "A:csr")
SPMM = ("C(i,k) = A(i,j) * B(j,k)", "A:csr")

# One of every kind of loop: dense, sparse, blocked, unions, intersections, temporaries, appended and shared results.
MANY = (
    SPMV,
    SPMM,
    ("y(i) = A(i,j) * x(j)", ""),
    ("y(i) = A(i,j) * x(j)", "A:csc"),
    ("y(i) = A(i,j) * x(j)", "A:dcsr x:s"),
    ("y(i) = A(i,j) * x(j)", "A:coo"),
    ("y(i) = A(i,j) * x(j)", "A:ell"),
    ("y(i) = A(i,j) * x(j)", "A:db"),
    ("y(i) = A(i,j) * x(j)", "A:dia"),
    ("y(i) = A(i,j) * x(j)", "A:ds~"),
    ("y(i) = A(i,j) * x(j)", "A:bcsr(2,2)"),
    ("y(i) = A(i,j) * x(j) + b(i)", "A:csr"),
    ("a(i) = b(i) * c(i)", "b:s c:s"),
    ("a(i) = b(i) + c(i)", "b:s"),
    ("C(i,j) = A(i,j) + B(i,j)", "A:csr B:csr C:csr"),
    ("C(i,j) = A(i,j) * B(i,j)", "A:dcsr B:csr"),
    ("C(i,j) = A(i,j) * B(i,k) * D(k,j)", "A:csr C:csr"),
    ("A(i,j) = B(i,k,l) * C(k,j) * D(l,j)", "B:csf"),
    ("A(i,j) = B(i,j,k) * c(k)", "B:csf"),
    ("y(i) = max(j, A(i,j) * x(j)) + sum(j, A(i,j))", "A:csr"),
)
