"""What the explorer opens with: a program or a kernel as the state of the page, and a state as an address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sparseloom.calls.kernel import Kernel
from sparseloom.core.algebra import SEMIRINGS
from sparseloom.core.errors import NotationError
from sparseloom.explorer.state import USUAL
from sparseloom.formats.named import name_of
from sparseloom.notation.printer import show
from sparseloom.notation.script import PLAIN, Script, read_script
from sparseloom.schedule.text import read_steps
from sparseloom.targets.registry import DEFAULT
from sparseloom.tensor.tensor import Tensor

State = Mapping[str, Any]


def fragment(state: State | None) -> str:
    """A state as the last part of an address, which a browser keeps to itself."""
    return "" if state is None else f"#s={quote(json.dumps(state, separators=(',', ':')), safe='')}"


def program_state(
    script: Script, formats: Mapping[str, str] | None = None, schedule: str | None = None, target: str = DEFAULT, **others: Any
) -> dict[str, Any]:
    """The state of a program, which must be one statement, with formats and a schedule of its own or beside it."""
    if len(script.steps) != 1:
        help = "explore them one by one"
        raise NotationError(f"the explorer shows one statement, and the program has {len(script.steps)}\n  help: {help}")
    written = script.last.schedule if schedule is None else schedule
    steps = [{"text": text, "on": True} for text in step_texts(written or "")]
    found = {**script.formats, **(formats or {})}
    return {"statement": script.last.parsed.text, "formats": found, "steps": steps, "target": target, **others}


def step_texts(schedule: str) -> list[str]:
    """The steps of a schedule's text, one by one."""
    calls = read_steps("" if schedule.strip() == PLAIN else schedule)
    return [f"{call.step.word()}({','.join(call.arguments)})" for call in calls]


def kernel_state(kernel: Kernel, operands: Mapping[str, Tensor]) -> dict[str, Any]:
    """The state of a kernel on these operands: its statement, formats, and the schedule that it was given or that was chosen for it."""
    ring = USUAL if kernel._ring is None else next((name for name, known in SEMIRINGS.items() if known == kernel._ring), None)
    if ring is None:
        help = f"it has {', '.join(SEMIRINGS)}; for another one look at kernel.explain() and kernel.source"
        raise NotationError(f"the explorer knows semirings by name, and {kernel._ring} has none\n  help: {help}")
    plan = read_script(kernel.plan_for(dict(operands)) if operands else kernel.plan)
    formats = {name: name_of(tensor.format) for name, tensor in operands.items() if not tensor.format.is_dense}
    target = kernel._target.model.name
    if len(plan.steps) > 1 and not kernel._before:  # it runs in several statements, and is shown as the one that it is
        declared = {name: form for name, form in plan.formats.items() if name in (*kernel.operand_names, kernel.result_name)}
        return program_state(read_script(show(kernel._statement)), declared | formats, "", target, semiring=ring)
    return program_state(plan, formats, None, target, semiring=ring)
