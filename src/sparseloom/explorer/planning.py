"""The planner's schedule, step by step, with the numbers behind each decision."""

from __future__ import annotations

from typing import Any

from sparseloom.explorer.subject import Subject
from sparseloom.plan.plan import plan_freely, plan_schedule
from sparseloom.programs.chain import Chain
from sparseloom.programs.chain import specialize as specialize_whole
from sparseloom.toolchain.worth import machine_here


def planned(subject: Subject) -> dict[str, Any]:
    """The steps that the planner takes for these operands, in order, and what is not in them."""
    steps = planned_steps(subject)
    return {"steps": steps, "text": _remark(subject, len(steps))}


def planned_steps(subject: Subject) -> list[dict[str, str]]:
    """The steps alone, each with the decision that it belongs to."""
    problem, statistics = subject.special.problem, subject.special.statistics
    plan = plan_schedule(plan_freely(problem, statistics), problem.sizes, statistics, machine_here())
    return [
        {"text": step.compact, "what": decision.what, "why": decision.why, "instead": decision.instead}
        for decision in plan.decisions
        for step in decision.steps
    ]


def _remark(subject: Subject, count: int) -> str:
    """What is not in the steps: that nothing pays, or that the statement would be cut into several."""
    form, free = subject.formats[subject.wanted.result], {var: subject.sizes[var] for var in subject.wanted.free_extents}
    whole = specialize_whole(subject.special.problem.statement, subject.operands, form, sizes=free, target=subject.target)
    if isinstance(whole, Chain):
        lines = "\n".join(f"  {link.show('notation')}" for link in whole.links)
        return f"Without a schedule it would run as {len(whole.links)} statements, one after another:\n{lines}"
    return "" if count else "Plain loops are best here: for so little work, threads and vectors would not pay."
