"""Find the pass that changes a result: run the interpreter after every pass, and compare with the dense oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import float_limits, kind_of
from sparseloom.core.errors import CompilerBug
from sparseloom.formats.pack import pattern, to_dense
from sparseloom.formats.storage import Storage
from sparseloom.loops.racing import RaceFound
from sparseloom.lower.kernel import Lowered
from sparseloom.notation.interpret import Operand, evaluate
from sparseloom.programs.execution import Specialization
from sparseloom.targets.interpret import INTERPRET
from sparseloom.targets.target import Calling

COMPILED = "emit and compile"


@dataclass(frozen=True)
class Verdict:
    """Whether loops compute the right result after a pass; ``fault`` says what is wrong with them."""

    name: str
    fault: str | None = None

    def __str__(self) -> str:
        return f"{self.name}: {'right' if self.fault is None else f'wrong, {self.fault}'}"


def bisect(made: Specialization, operands: Mapping[str, Storage]) -> Iterator[Verdict]:
    """What the loops of a statement compute after each pass that changed them, up to the first pass that makes them wrong.

    If they are right after all passes, the compiled kernel is run as well, where it can be. The oracle is dense: operands should be small.

    Args:
        made: a statement with its schedule and target.
        operands: the operands by name.

    Yields:
        One verdict for the loops as they were lowered and for each later pass.
    """
    stages = made.stages
    seen = {name: Operand(to_dense(storage), pattern(storage), storage.fill) for name, storage in operands.items()}
    initial = seen.get(stages.assign.lhs.tensor.name)
    wanted = evaluate(stages.assign, seen, made.problem.sizes, initial=initial).values
    for passed in stages.again():
        if passed.changed and isinstance(passed.made, Lowered):
            following = made.following(replace(stages, lowered=passed.made))
            verdict = Verdict(passed.name, _fault(following, operands, INTERPRET.name, wanted))
            yield verdict
            if verdict.fault is not None:
                return
    if made.problem.target.calling is Calling.COMPILED and stages.gpu_unit is None:
        yield Verdict(COMPILED, _fault(made, operands, None, wanted))


def first_wrong(made: Specialization, operands: Mapping[str, Storage]) -> Verdict | None:
    """The first pass after which loops are wrong; None if they never are."""
    return next((verdict for verdict in bisect(made, operands) if verdict.fault is not None), None)


def _fault(made: Specialization, operands: Mapping[str, Storage], target: str | None, wanted: NDArray[Any]) -> str | None:
    """What is wrong with the result; None if nothing is."""
    try:
        found = to_dense(made.bind(operands, target).run())
    except (CompilerBug, RaceFound) as bug:
        return f"the interpreter stopped: {bug}"
    if found.shape != wanted.shape:
        return f"the result has shape {found.shape} instead of {wanted.shape}"
    if kind_of(wanted.dtype) in "fc":
        wanted = wanted.astype(found.dtype)
        _, eps = float_limits(found.dtype)
        near = np.isclose(found, wanted, rtol=64 * eps, atol=64 * eps * float(np.max(np.abs(wanted), initial=0)), equal_nan=True)
    else:
        near = found == wanted
    if near.all():
        return None
    where = tuple(int(k) for k in np.argwhere(~near)[0])
    return f"{int((~near).sum())} of {near.size} values differ, first at {list(where)}: {found[where]} instead of {wanted[where]}"
