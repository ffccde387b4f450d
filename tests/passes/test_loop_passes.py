"""Passes over loops: what each makes of a kernel (``tests/golden/loops``). Each works on the text alone, so the text says everything."""

from __future__ import annotations

from pathlib import Path

import pytest
from primitives.golden import GOLDEN, WRITES, read_cases, write_cases
from primitives.statements import schedule

from sparseloom.compiler import loop_passes, run_passes
from sparseloom.core.errors import CompilerBug
from sparseloom.loops.printer import show
from sparseloom.loops.reader import read
from sparseloom.lower.kernel import Lowered
from sparseloom.targets.c import C
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.registry import find_target
from sparseloom.tracing import loop_kinds

FOLDER = GOLDEN / "loops"
NAMES = sorted({one.name for target in (C, CUDA) for one in loop_passes(target)})


def passed(name: str, heading: str) -> str:
    """A kernel before and after the first pass of this name that has something to do: ``statement | formats | steps | target``."""
    statement, formats, steps, target_name = (part.strip() for part in heading.split("|"))
    target = find_target(target_name)
    before: Lowered | None = None
    for one in run_passes(schedule(statement, formats, steps).concrete, 2**31 - 1, False, target):
        if one.name == name and before is not None:
            made = one.made
            if not isinstance(made, Lowered):
                raise CompilerBug(name, "a pass over loops should make loops")
            text = show(before.function)
            if not one.changed:
                return f"{text}--> is left as it is"
            again = next(p for p in loop_passes(target, before.indices) if p.name == name).run(
                Lowered(read(text), before.slots, before.result, before.shared, before.fill, before.remarks)
            )
            assert show(again.function) == show(made.function), "the pass makes the same of the kernel that was read from the text"
            return f"{text}-->\n{show(made.function)}".rstrip("\n")
        if isinstance(one.made, Lowered):
            before = one.made
    return "has nothing to do for it"


@pytest.mark.parametrize("name", NAMES)
def test_a_pass_makes_these_loops(name: str) -> None:
    file: Path = FOLDER / f"{name}.txt"
    found = {heading: passed(name, heading) for heading in read_cases(file)}
    if WRITES:
        write_cases(file, found)
    assert found == read_cases(file)


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_changes_one_of_its_cases_and_leaves_another_as_it_is(name: str) -> None:
    texts = list(read_cases(FOLDER / f"{name}.txt").values())
    assert any("-->\n" in text for text in texts)
    assert any(text.endswith(("--> is left as it is", "has nothing to do for it")) for text in texts)


def test_a_pass_is_skipped_if_no_loop_is_of_its_kinds() -> None:
    names = [one.name for one in run_passes(schedule("y(i) = A(i,j) * x(j)", "A:csr").concrete, 2**31 - 1, False, C)]
    assert names == [
        "put_inside", "cut_into_slots", "cut_into_parts", "count_first", "lower", "use_promised", "simplify", "add_polls", "simplify",
    ]  # fmt: skip


@pytest.mark.parametrize("target", [C, CUDA], ids=lambda target: target.name)
@pytest.mark.parametrize("steps", ["", "split(i,i0,i1,4) unroll(i1,4)", "parallelize(j,CPUVector,ParallelReduction)"])
def test_a_pass_that_is_skipped_would_change_nothing(steps: str, target: object) -> None:
    found = find_target(getattr(target, "name"))  # noqa: B009
    *_, last = run_passes(schedule("y(i) = A(i,j) * x(j)", "A:csr", steps).concrete, 2**31 - 1, False, found)
    assert isinstance(last.made, Lowered)
    kinds = loop_kinds(last.made.function)
    for one in loop_passes(found, last.made.indices):
        if not one.applies(kinds):
            assert one.run(last.made) == last.made, one.name
