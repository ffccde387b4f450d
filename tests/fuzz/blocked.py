"""Cases whose operands are stored in blocks: schedules cut, fuse and count the variables of their levels, not those of the statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from fuzz.drawing import Case
from fuzz.schedules import schedulable

KINDS = "dsdsdsub"  # levels of blocks; those within are mostly dense


def blocked_cases(seed: int, stream: int) -> Iterator[Case]:
    """An endless stream of cases to schedule, most of whose operands are stored in blocks."""
    return map(blocked, schedulable(seed, stream))


def blocked(case: Case) -> Case:
    """The same case with other formats. Now and then an operand keeps its own, so that blocks meet what has none.

    Under a semiring they all do: what sparse operands are worth where nothing is stored was drawn for it.
    """
    if case.semiring is not None:
        return case
    random = Random(f"blocked {case.seed}")
    specs = {}
    for name, spec in case.specs.items():
        order = len(case.shape(name))
        if 0 < order < 4 and random.random() < 0.85:
            spec = replace(spec, format=blocked_format(order, random), slack=False, repeats=False)
        specs[name] = spec
    return replace(case, specs=specs)


def blocked_format(order: int, random: Random) -> str:
    """Blocks of any size, stored in any order of the modes, each level in any way."""
    blocks, within = (random.sample(range(order), order) if random.random() < 0.3 else range(order) for _ in range(2))
    kinds = "".join(random.choices(KINDS, k=order))
    inner = "d" * order if random.random() < 0.8 else "".join(random.choices("dds", k=order))
    sizes = ",".join(str(random.choice((1, 2, 2, 3))) for _ in range(order))
    return f"{kinds}{inner}:{','.join(map(str, (*blocks, *within)))}/{sizes}"


