"""Many calls, one run of the C compiler: their kernels are compiled as one file before the first of them is called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sparseloom as sl
from sparseloom.compiler import load_together
from sparseloom.programs.chain import Chain

Call = tuple[sl.Kernel, Sequence[Any]]


def compile_together(calls: Iterable[Call]) -> None:
    """Compile the kernels for C of these calls, which find them compiled then."""
    found = [kernel.specialized(kernel._operands(given, {}, None)) for kernel, given in calls if kernel._target.name == "c"]
    load_together([one.stages for made in found for one in (made.links if isinstance(made, Chain) else (made,))])
