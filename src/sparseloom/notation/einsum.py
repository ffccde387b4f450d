"""NumPy's einsum subscripts: ``parse_einsum("ij,j->i", (2, 1))`` is ``T(i) = op0(i,j) * op1(j)``.

The dimensions of an ellipsis are named from the last: ``e0`` is the rightmost, so operands of different order align there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import NotationError
from sparseloom.core.names import Names
from sparseloom.core.trees import rewrite, walk
from sparseloom.notation.caret import refuse
from sparseloom.notation.dtyping import promoted_dtype
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, IndexVar
from sparseloom.notation.text import placeholder

RESULT = "T"

_LABEL = re.compile(r"\s+|\.\.\.|[A-Za-z]")
_ELLIPSIS = "..."


@dataclass(frozen=True)
class _Group:
    """The labels of one operand or of the output, and where they start in the subscripts."""

    labels: tuple[str, ...]
    at: int


def parse_einsum(subscripts: str, orders: Sequence[int]) -> Assign:
    """Read subscripts for operands of these orders. The operands are named ``op0``, ``op1``, ..., the result ``T``.

    The sum over the labels that the output lacks is implicit, as in text.
    """
    inputs, arrow, output = subscripts.partition("->")
    groups = _input_groups(subscripts, inputs)
    if len(groups) != len(orders):
        raise NotationError(f"the subscripts {subscripts!r} are for {len(groups)} operands, but there are {len(orders)}")
    widths = [_ellipsis_width(subscripts, k, group, order) for k, (group, order) in enumerate(zip(groups, orders, strict=True))]
    widest = max(widths, default=0)
    if arrow:
        result = _group(subscripts, output, len(inputs) + len(arrow))
        _check_output(subscripts, result, groups, widest)
    else:
        result = _Group(_implicit_output(groups), len(subscripts))
    names = Names((RESULT, *(f"op{k}" for k in range(len(groups)))))
    variables = {label: IndexVar(names.fresh(label)) for label in dict.fromkeys(label for group in groups for label in group.labels)}
    factors: list[Expr] = [
        Access(placeholder(f"op{k}", orders[k]), _indices(group, variables, width))
        for k, (group, width) in enumerate(zip(groups, widths, strict=True))
    ]
    written = _indices(result, variables, widest)
    rhs = factors[0] if len(factors) == 1 else Apply("multiply", tuple(factors))
    return Assign(Access(placeholder(RESULT, len(written)), written), rhs)


def broadcast(assign: Assign, shapes: Sequence[Sequence[int]]) -> tuple[Assign, tuple[tuple[int, ...], ...]]:
    """Let dimensions of size one fit any other size, as NumPy does.

    Returns the statement in which such operands lack those modes, and for every operand the modes to squeeze.
    """
    operands = {f"op{k}": tuple(shape) for k, shape in enumerate(shapes)}
    dropped: dict[str, tuple[int, ...]] = dict.fromkeys(operands, ())
    accesses = [found for found in walk(assign.rhs) if isinstance(found, Access)]
    wide = {var for found in accesses for var, size in zip(found.indices, operands[found.tensor.name], strict=True) if size != 1}

    def rule(found: object) -> Access | None:
        match found:
            case Access(tensor, indices) if tensor.name in operands:
                sizes = operands[tensor.name]
                own = {var for var, size in zip(indices, sizes, strict=True) if size != 1}
                dropped[tensor.name] = tuple(mode for mode, var in enumerate(indices) if var in wide - own)
                kept = tuple(var for var in indices if var not in wide - own)
                return Access(placeholder(tensor.name, len(kept)), kept)
        return None

    rhs = rewrite(assign.rhs, rule)
    return Assign(assign.lhs, rhs, assign.op), tuple(dropped.values())


def converted(assign: Assign, dtypes: Sequence[DType], dtype: DType | None) -> Assign:
    """Let operands of different dtypes be converted to a common one before they are multiplied, as NumPy's einsum does.

    That is ``dtype`` where it has room for them all, else what they promote to together.
    """
    common = promoted_dtype(dtypes)
    wanted = dtype if dtype is not None and np.can_cast(common, dtype) else common
    narrow = {f"op{k}" for k, given in enumerate(dtypes) if given != wanted}

    def rule(found: object) -> Expr | None:
        match found:
            case Access(tensor) if tensor.name in narrow:
                return Apply(f"as_{wanted.name}", (found,))
        return None

    return Assign(assign.lhs, rewrite(assign.rhs, rule), assign.op) if narrow else assign


def _input_groups(subscripts: str, inputs: str) -> list[_Group]:
    groups, at = [], 0
    for part in inputs.split(","):
        groups.append(_group(subscripts, part, at))
        at += len(part) + 1
    return groups


def _group(subscripts: str, part: str, at: int) -> _Group:
    """Split one comma-free part into labels; spaces do not count."""
    labels: list[str] = []
    place = 0
    while place < len(part):
        found = _LABEL.match(part, place)
        if found is None:
            help = "labels are letters; '...' stands for further dimensions"
            raise _refuse(f"{part[place]!r} is not a label", subscripts, at + place, help)
        if found.group() == _ELLIPSIS and _ELLIPSIS in labels:
            raise _refuse("there are two ellipses in one group", subscripts, at + place)
        if not found.group().isspace():
            labels.append(found.group())
        place = found.end()
    return _Group(tuple(labels), at)


def _ellipsis_width(subscripts: str, operand: int, group: _Group, order: int) -> int:
    """How many dimensions the ellipsis of an operand stands for."""
    labels = sum(label != _ELLIPSIS for label in group.labels)
    if labels > order or (labels < order and _ELLIPSIS not in group.labels):
        help = "'...' stands for further dimensions" if labels < order else ""
        raise _refuse(f"operand {operand} has order {order}, but its labels are {labels}", subscripts, group.at, help)
    return order - labels


def _implicit_output(groups: Sequence[_Group]) -> tuple[str, ...]:
    """The ellipsis, then the labels that appear once, in the order of the alphabet."""
    labels = [label for group in groups for label in group.labels]
    once = sorted(label for label in labels if label != _ELLIPSIS and labels.count(label) == 1)
    return (_ELLIPSIS, *once) if _ELLIPSIS in labels else tuple(once)


def _check_output(subscripts: str, output: _Group, groups: Sequence[_Group], widest: int) -> None:
    known = {label for group in groups for label in group.labels}
    for label in output.labels:
        if label != _ELLIPSIS and label not in known:
            raise _refuse(f"the output's label {label!r} is not in any operand", subscripts, output.at)
        if output.labels.count(label) > 1:
            raise _refuse(f"the output has the label {label!r} twice", subscripts, output.at)
    if widest and _ELLIPSIS not in output.labels:
        raise _refuse("the output lacks the dimensions of the ellipsis", subscripts, output.at, "write '...' in the output")


def _indices(group: _Group, variables: dict[str, IndexVar], width: int) -> tuple[IndexVar, ...]:
    """One variable per dimension; those of the ellipsis are named from the right."""
    found: list[IndexVar] = []
    for label in group.labels:
        found.extend([IndexVar(f"e{k}") for k in reversed(range(width))] if label == _ELLIPSIS else [variables[label]])
    return tuple(found)


def _refuse(what: str, subscripts: str, at: int, help: str = "") -> NotationError:
    return refuse(f"cannot read the subscripts: {what}", subscripts, at, help)
