"""The pictures at the head of passes are executed: what stands on the left becomes what stands on the right."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from sparseloom.loops import nodes as ir
from sparseloom.loops.printer import show
from sparseloom.loops.reader import read
from sparseloom.loops.verify import verify
from sparseloom.passes import expand, localise, vectorize, wide
from sparseloom.passes.unroll_and_jam import unroll_and_jam

HEAD = "def f(input A: float64[], input B: float64[], input crd: int64[], size m, size s, output C: float64[])"
ON_GPU = "  for t in 0 : 4  [gpu thread 4]"


def picture(module: ModuleType) -> tuple[list[str], list[str]]:
    """The two sides of the first picture of a docstring, whose columns the arrow tells."""
    paragraphs = (module.__doc__ or "").split("\n\n")
    lines = next(part for part in paragraphs if "==>" in part).strip("\n").split("\n")
    (arrow,) = (line for line in lines if "==>" in line)
    middle = arrow.index("==>")
    behind = [line[middle + 3 :] for line in lines]
    right = middle + 3 + min(len(text) - len(text.lstrip()) for text in behind if text.strip())
    sides = [[line[:middle].rstrip() for line in lines], [line[right:] for line in lines]]
    edge = min(len(line) - len(line.lstrip()) for line in sides[0] if line)
    return [line[edge:] for line in sides[0] if line], [line for line in sides[1] if line]


PASSES: list[tuple[ModuleType, Callable[[ir.Function], ir.Function], bool]] = [
    (expand, lambda function: unroll_and_jam(function)[0], False),
    (vectorize, lambda function: vectorize.vectorize(function, 32)[0], False),
    (localise, localise.keep_in_registers, True),
    (wide, wide.widen, True),
]


@pytest.mark.parametrize(("module", "run", "on_gpu"), PASSES, ids=[one[0].__name__.rsplit(".", 1)[1] for one in PASSES])
def test_a_picture_shows_what_a_pass_makes(module: ModuleType, run: Callable[[ir.Function], ir.Function], on_gpu: bool) -> None:
    before, after = picture(module)

    def whole(lines: list[str]) -> str:
        inside = [f"    {line}" for line in lines] if on_gpu else [f"  {line}" for line in lines]
        return "\n".join([HEAD, *([ON_GPU] if on_gpu else []), *inside]) + "\n"

    function = read(whole(before))
    made = run(function)
    verify(made)
    assert show(made).splitlines() == whole(after).splitlines()
