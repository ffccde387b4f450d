"""What a loop says as clauses of OpenMP: one function for the threads of a region, one for the iterations that they share.

A parallel loop is both at once. Each clause comes with the property that it writes, so that none is lost (see ``loop_properties``).
"""

from __future__ import annotations

from typing import NamedTuple

from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.targets.c_names import CNames
from sparseloom.targets.loop_properties import COUNTDOWN, FACTOR, reduction

_CLAUSES = {"add": "+", "multiply": "*", "minimum": "min", "maximum": "max", "logical_or": "||", "logical_and": "&&"}
_CLAUSES_ON_BOOL = {
    "add": "||", "maximum": "||", "logical_or": "||", "multiply": "&&", "minimum": "&&", "logical_and": "&&", "logical_xor": "^",
}  # fmt: skip


class Clause(NamedTuple):
    """Words of a pragma, and the property of a loop that they write, if any."""

    text: str
    says: str = ""


def of_region(region: ir.Team | ir.For) -> list[Clause]:
    """What each thread begins with a copy of: where the kernel may be cancelled, the count to its next look."""
    polls = any(isinstance(n, ir.Poll) for n in walk(region))
    return [Clause("firstprivate(poll, countdown)", COUNTDOWN)] if polls else []


def of_iterations(loop: ir.For, names: CNames, otherwise: str = "") -> list[Clause]:
    """How threads or lanes take the iterations of a loop, ``otherwise`` if it says nothing, and how they combine what they have."""
    if loop.factor:
        how = f"schedule(dynamic, {loop.factor})" if loop.kind is ir.LoopKind.THREADS else f"simdlen({loop.factor})"
        taken = [Clause(how, FACTOR)]
    else:
        taken = [Clause(otherwise)] if otherwise else []
    return [*taken, *(_combining(one, loop, names) for one in loop.reduces)]


def _combining(one: ir.Reduction, loop: ir.For, names: CNames) -> Clause:
    """How copies of a scalar are combined; OpenMP's own minimum would lose nan."""
    var, op = one.var, one.op
    clause = (_CLAUSES_ON_BOOL if var.dtype == BOOL else _CLAUSES).get(op)
    if var.dtype.kind == "f" and op in ("minimum", "maximum"):
        clause = f"reduce_{op}_{var.dtype}"
    if clause is None:
        raise CompilerBug(loop, f"{op} of {var.dtype} has a reduction in a {loop.kind.value} loop")
    return Clause(f"reduction({clause}:{names.scalar(var.name)})", reduction(one))
