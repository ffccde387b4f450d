"""What the planner chooses, best first, with its reasons: ``tests/golden/plans`` has a file per target.

A heading is ``statement | formats | extents | what is known of the sparse operands``. The processor is made up, so that the text is the
same on every machine.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from primitives.golden import GOLDEN, WRITES, read_cases, write_cases
from primitives.statements import concrete

from sparseloom.iteration.concretize import Concrete
from sparseloom.plan.choose import choices, variants
from sparseloom.plan.decision import Choice
from sparseloom.plan.machine import Machine
from sparseloom.plan.space import Space
from sparseloom.plan.statistics import Evenness, OperandFacts, Statistics
from sparseloom.targets.c import C
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.target import Target

FOLDER = GOLDEN / "plans"
USUAL = Machine()
MOST = 6  # choices that are written for each case


def known_of(text: str) -> tuple[str, OperandFacts]:
    """``A: uneven, fans 1000 20, longest 4000, scattered``."""
    name, _, rest = text.partition(":")
    told = {word: values for word, *values in (part.split() for part in rest.split(","))}
    number = {word: float(told[word][0]) for word in ("imbalance", "heaviest", "longest") if word in told}
    spread = next(one for one in Evenness if one.value in told)
    fans = tuple(map(float, told["fans"]))
    return name.strip(), OperandFacts(fans, spread, scattered="scattered" in told, steady="steady" in told, **number)


def space_of(heading: str, machine: Machine = USUAL, target: Target = C) -> tuple[Concrete, Space]:
    """The loops of a case and what is known of them."""
    statement, formats, extents, facts, *kind = (part.strip() for part in heading.split("|"))
    loops = concrete(statement, formats, np.dtype(kind[0]) if kind else None)
    sizes = {name: int(size) for name, size in (part.split("=") for part in extents.split())}
    operands = tuple(known_of(part) for part in facts.split(";") if part.strip())
    stored = tuple((name, int(_entries(known))) for name, known in operands)
    statistics = Statistics(sum(count for _, count in stored), tuple(name for name, _ in operands), stored, operands)
    return loops, Space(loops.stmt, sizes, statistics, machine.running(target))


def _entries(known: OperandFacts) -> float:
    count = 1.0
    for fan in known.fans:
        count *= fan
    return count


def told(found: list[Choice]) -> str:
    """Choices as text."""
    lines = []
    for choice in found:
        lines.append(choice.schedule.replace("\n", " ") or "plain loops")
        lines += [f"  {decision}" for decision in choice.decisions]
    return "\n".join(lines)


def on_c(heading: str) -> str:
    return told(list(islice(choices(*space_of(heading)), MOST)))


def on_another(heading: str) -> str:
    return told(list(islice(choices(*space_of(heading, Machine(masks=False, cache=1 << 20, gathers=False))), MOST)))


def measured(heading: str) -> str:
    return told(list(variants(*space_of(heading))))


def on_gpu(heading: str) -> str:
    return told(list(choices(*space_of(heading, target=CUDA))))


def on_gpu_in_order(heading: str) -> str:
    return told(list(choices(*space_of(heading, target=CUDA), ordered=True)))


@pytest.mark.parametrize("plan", [on_c, on_another, measured, on_gpu, on_gpu_in_order], ids=lambda plan: plan.__name__)
def test_the_planner_chooses_these(plan) -> None:
    file = FOLDER / f"{plan.__name__}.txt"
    found = {heading: plan(heading) for heading in read_cases(file)}
    if WRITES:
        write_cases(file, found)
    assert found == read_cases(file)
