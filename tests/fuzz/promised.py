"""Schedules that ``program`` accepts, called on operands of many kinds: the loops are those shown, and nothing is refused late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from fuzz.drawing import Case
from fuzz.operands import Spec, store
from fuzz.schedules import Drawn, draw_steps

import sparseloom as sl
from sparseloom.calls.kernel import Kernel
from sparseloom.core.errors import ScheduleError, ShapeError, SparseloomError
from sparseloom.tensor.tensor import Tensor

DTYPES = ("float64", "float32", "int64", "int8", "uint16", "bool", "complex128")
CALLS = 4


def check_promise(case: Case) -> str | None:
    """What a schedule of this case turns out to hide: a refusal at the call, or other loops than were shown. None if nothing is."""
    formats = {name: spec.format for name, spec in case.specs.items()}
    if case.format is not None:
        formats[case.assign.lhs.tensor.name] = case.format
    try:
        plain = _program(case, formats, "")
        steps = draw_steps(case, plain.preview().unscheduled(), Drawn())
        text = " ".join(map(str, steps))
        kernel = _program(case, formats, text)
    except SparseloomError:
        return None  # refused in time
    if not steps:
        return None
    for number, specs in enumerate(_operands(case)):
        problem = _broken(case, kernel, plain, specs)
        if problem is not None:
            return f"{case.text}\n  {formats}, sizes {case.sizes}\n  schedule {text}\n  call {number} on {specs}\n{problem}"
    return None


def _broken(case: Case, kernel: Kernel, plain: Kernel, specs: dict[str, Spec]) -> str | None:
    """What one call finds, after a look at the loops for operands of these dtypes."""
    try:
        shown = kernel.preview({name: specs[name].dtype for name in kernel.operand_names}).stages.show("concrete")
    except SparseloomError:
        return None  # the dtypes were not known to the program, and are refused without data too
    tensors = {name: Tensor(store(spec, case.shape(name)), name) for name, spec in specs.items()}
    problem = _late(kernel, plain, tensors)
    # What a += starts from has a dtype that only the call knows.
    if problem is None and case.assign.op is None and kernel.show("concrete") != shown:
        return f"other loops than were shown:\n{shown}\n  at the call\n{kernel.show('concrete')}"
    return problem


def _program(case: Case, formats: dict[str, str], schedule: str) -> Kernel:
    return sl.program(case.text, formats, schedule, sizes=case.given_sizes, target="interpret")


def _operands(case: Case) -> Iterator[dict[str, Spec]]:
    """The same statement on operands of other dtypes, widths of indices, and numbers of entries."""
    random = Random(f"operands {case.seed}")
    for _ in range(CALLS):
        dtype = random.choice(DTYPES)
        yield {name: _another(random, spec, dtype) for name, spec in case.specs.items()}


def _another(random: Random, spec: Spec, dtype: str) -> Spec:
    smallest = 0 if dtype[0] in "ub" else -3
    index, density = random.choice(("int32", "int64")), random.choice((0.0, 0.2, 0.5, 1.0))
    return replace(spec, dtype=dtype, smallest=smallest, index=index, density=density, fill=0, specials=False)


def _call(kernel: Kernel, tensors: dict[str, Tensor]) -> Tensor:
    rest = {name: tensor for name, tensor in tensors.items() if name not in kernel.operand_names}
    return kernel(*(tensors[name] for name in kernel.operand_names), **rest)


def _late(kernel: Kernel, plain: Kernel, tensors: dict[str, Tensor]) -> str | None:
    """What the scheduled kernel refuses although the statement can be computed. A bound may turn out to be wrong."""
    try:
        _call(kernel, tensors)
    except ScheduleError as late:
        return f"refused at the call: {late}"
    except ShapeError as wrong:
        return None if "bound" in str(wrong) else str(wrong)
    except SparseloomError as refusal:
        try:
            _call(plain, tensors)
        except SparseloomError as same:
            return None if type(same) is type(refusal) else f"{refusal}\n  and without a schedule\n{same}"
        return f"refused at the call: {refusal}"
    return None

