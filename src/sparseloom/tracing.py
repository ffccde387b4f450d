"""What every pass of the compiler makes, for people who look for a pass: texts, differences, times, and the pass that changes a result.

    == cut_into_slots: 0.11 ms, unchanged
    == lower: 1.94 ms
    def kernel(input A2_pos: int32[], ...)
      ...
    == vectorize: 0.62 ms
    @@ -4,3 +4,8 @@
    -  for k in 0 : k_size  [vector]
    ...

``kernel.show("passes")`` prints this, and ``SPARSELOOM_TRACE=folder`` writes it for every kernel that is compiled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from difflib import unified_diff
from itertools import count
from time import perf_counter
from typing import Generic, TypeVar

from sparseloom.core.errors import ToolchainError
from sparseloom.core.settings import trace_folder
from sparseloom.core.trees import walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.loops import nodes as ir
from sparseloom.loops import printer as loop_printer
from sparseloom.lower.kernel import Lowered
from sparseloom.notation import printer

Made = TypeVar("Made", Concrete, Lowered)
_numbers = count(1)


@dataclass(frozen=True)
class Pass(Generic[Made]):
    """One pass: its name, what it does, and the kinds of loops that it works on; without any, it looks at every kernel."""

    name: str
    run: Callable[[Made], Made]
    kinds: Collection[ir.LoopKind] = ()

    def applies(self, found: Collection[ir.LoopKind]) -> bool:
        """Whether a kernel with these kinds of loops has something for it to do."""
        return not self.kinds or any(kind in found for kind in self.kinds)


@dataclass(frozen=True)
class Passed(Generic[Made]):
    """What one pass made, and in how many seconds. It ``changed`` something unless it gave back what it got."""

    name: str
    made: Made
    seconds: float
    changed: bool = True

    @property
    def text(self) -> str:
        """What was made, as text that ends with a line break."""
        if isinstance(self.made, Lowered):
            return loop_printer.show(self.made.function)
        return printer.show(self.made.stmt) + "\n"


AnyPassed = Passed[Concrete] | Passed[Lowered]


@dataclass(frozen=True)
class Timing:
    """How long a pass took, and whether it changed something."""

    name: str
    seconds: float
    changed: bool

    @classmethod
    def of(cls, passed: AnyPassed) -> Timing:
        """The time of a pass, without what it made."""
        return cls(passed.name, passed.seconds, passed.changed)


def timed(one: Pass[Made], given: Made) -> Passed[Made]:
    """Run a pass and look at the clock."""
    began = perf_counter()
    made = one.run(given)
    return Passed(one.name, made, perf_counter() - began, made is not given)


def loop_kinds(function: ir.Function) -> frozenset[ir.LoopKind]:
    """The kinds of loops of a kernel."""
    return frozenset(n.kind for n in walk(function, ir.Stmt) if isinstance(n, ir.For))


def show_passes(start: Concrete, passes: Iterable[AnyPassed]) -> str:
    """The text before the first pass, and what each changes."""
    before = printer.show(start.stmt) + "\n"
    parts = [f"== concrete\n{before}"]
    language: type = Concrete
    for passed in passes:
        heading = f"== {passed.name}: {passed.seconds * 1e3:.2f} ms"
        if not passed.changed:
            parts.append(f"{heading}, unchanged\n")
            continue
        text = passed.text
        whole = type(passed.made) is not language
        parts.append(f"{heading}\n{text if whole else difference(before, text)}")
        before, language = text, type(passed.made)
    return "".join(parts)


def difference(before: str, after: str) -> str:
    """A unified difference without its heading; a sentence if the texts are equal, since names of origins are no part of them."""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
    return "\n".join(lines) + "\n" if lines else "the text is the same\n"


def show_timings(timings: Iterable[Timing]) -> str:
    """A line for each pass and one for all of them."""
    kept = list(timings)
    width = max((len(one.name) for one in kept), default=0)
    lines = [f"  {one.name:{width}} {one.seconds * 1e3:8.2f} ms{'' if one.changed else '  unchanged'}" for one in kept]
    return "\n".join(["compile time", *lines, f"  {'all':{width}} {sum(one.seconds for one in kept) * 1e3:8.2f} ms"])


def write_trace(start: Concrete, passes: Iterable[AnyPassed]) -> None:
    """Write what every pass made into a new folder below the one that ``SPARSELOOM_TRACE`` names."""
    folder = trace_folder()
    if folder is None:
        return
    kept = list(passes)
    inside = folder / f"{os.getpid()}-{next(_numbers):04}-{start.assign.lhs.tensor.name}"
    try:
        inside.mkdir(parents=True, exist_ok=True)
        (inside / "00-concrete.txt").write_text(printer.show(start.stmt) + "\n", encoding="utf-8")
        for number, passed in enumerate(kept, 1):
            if passed.changed:
                (inside / f"{number:02}-{passed.name}.txt").write_text(passed.text, encoding="utf-8")
        (inside / "passes.txt").write_text(show_passes(start, kept), encoding="utf-8")
    except OSError as cannot:
        raise ToolchainError(f"cannot write to SPARSELOOM_TRACE={folder}: {cannot.strerror}\n  help: name a folder of yours") from None
