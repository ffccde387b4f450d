"""Making a failing case small: one step at a time, keep what still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz.drawing import Case, accesses, numbers_of
from fuzz.runner import attempt

from sparseloom.core.errors import SparseloomError
from sparseloom.core.trees import walk
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, IndexVar, Reduce
from sparseloom.notation.text import placeholder

MOST_ATTEMPTS = 120


def shrink(case: Case, fails: Callable[[Case], bool] | None = None) -> Case:
    """The smallest case found that still fails."""
    still_fails = fails or (lambda candidate: attempt(candidate) is not None)
    attempts = 0
    improved = True
    while improved:
        improved = False
        for candidate in simpler(case):
            attempts += 1
            if attempts > MOST_ATTEMPTS:
                return case
            if _is_valid(candidate) and still_fails(candidate):
                case, improved = candidate, True
                break
    return case


def _is_valid(case: Case) -> bool:
    try:
        case.closed()
    except SparseloomError:
        return False
    return True


def simpler(case: Case) -> Iterator[Case]:
    """Cases that are one step simpler, the largest steps first."""
    for rhs in _simpler_expressions(case.assign.rhs):
        yield _trimmed(replace(case, assign=Assign(case.assign.lhs, rhs, case.assign.op)))
    if case.assign.op is not None:
        yield _trimmed(replace(case, assign=Assign(case.assign.lhs, case.assign.rhs)))
    for k in range(len(case.assign.lhs.indices)):
        indices = case.assign.lhs.indices[:k] + case.assign.lhs.indices[k + 1 :]
        lhs = Access(placeholder(case.assign.lhs.tensor.name, len(indices)), indices)
        yield _trimmed(replace(case, assign=Assign(lhs, case.assign.rhs, case.assign.op), format="d" * len(indices)))
    yield from _plainer(case)
    least = max((found.value for found in numbers_of(case.assign)), default=0)
    for name, size in case.sizes.items():
        for smaller in sorted({1, 2, size - 1}):
            if least < smaller < size:
                yield replace(case, sizes={n: smaller if s == size else s for n, s in case.sizes.items()})
                yield replace(case, sizes={**case.sizes, name: smaller})


def _plainer(case: Case) -> Iterator[Case]:
    """Plainer formats, dtypes, fills and data."""
    dense = "d" * len(case.assign.lhs.indices)
    for change in ({"format": dense}, {"dtype": None}, {"semiring": None}, {"int32_limit": 2**31 - 1}):
        if any(getattr(case, key) != value for key, value in change.items()):
            yield replace(case, **change)
    orders = {a.tensor.name: len(a.indices) for a in accesses(case.assign)}
    for name, spec in case.specs.items():
        plain = [{"format": "d" * orders[name], "fill": 0}, {"format": "s" * orders[name]}, {"dtype": "float64"}, {"index": "int32"}]
        plain += [{"fill": 0}, {"repeats": False}, {"specials": False}, {"slack": False}]
        for change in plain:
            if any(getattr(spec, key) != value for key, value in change.items()):
                yield replace(case, specs={**case.specs, name: replace(spec, **change)})


def _simpler_expressions(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression, and the expression with one argument left out or made simpler."""
    match expr:
        case Apply(op, args, zero):
            yield from args
            if len(args) > 2 and op != "where":
                yield from (Apply(op, args[:k] + args[k + 1 :], zero) for k in range(len(args)))
            for k, arg in enumerate(args):
                for inner in _simpler_expressions(arg):
                    yield Apply(op, (*args[:k], inner, *args[k + 1 :]), zero)
        case Reduce(op, variables, body):
            yield from (Reduce(op, variables, inner) for inner in _simpler_expressions(body))
            yield body


def _trimmed(case: Case) -> Case:
    """The case without operands and sizes that its statement no longer has."""
    tensors = {a.tensor.name for a in accesses(case.assign)[0 if case.assign.op else 1 :]}
    variables = {n.name for n in walk(case.assign) if isinstance(n, IndexVar)}
    specs = {name: spec for name, spec in case.specs.items() if name in tensors}
    return replace(case, specs=specs, sizes={name: size for name, size in case.sizes.items() if name in variables})
