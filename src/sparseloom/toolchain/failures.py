"""Failures of compilers, which are remembered: a broken compiler is not run again for every call.

A refusal holds for a compiler as it was, with the environment as it was. Whatever is changed, ``$CC``, a path or the program itself,
it is tried anew. Where memory, processes or room on the disk were short, it is tried again some seconds later: gcc waits a quarter of a
minute for processes that it cannot start, which nobody wants with every call.
"""

from __future__ import annotations

import math
import os
import time

from sparseloom.core.errors import ToolchainError
from sparseloom.toolchain.compilers import CompileError, Compiler, StartError

_MOST = 256
_WHILE = 10.0  # seconds
_Case = tuple[Compiler, str | None, frozenset[tuple[str, str]]]


class Failures:
    """The refusals of this process: of everything by a compiler, or of one kernel by its key."""

    def __init__(self) -> None:
        self._known: dict[_Case, tuple[ToolchainError, float]] = {}

    def remember(self, compiler: Compiler, key: str | None, refusal: ToolchainError) -> None:
        """Remember a failure; only for a while if it may not occur again."""
        match refusal:
            case StartError(passing=True):
                return
            case CompileError(passing=True):
                end = time.monotonic() + _WHILE
            case CompileError() | StartError():
                end = math.inf
            case _:
                return
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[_case(compiler, key)] = refusal, end

    def refuse_again(self, compiler: Compiler, key: str) -> None:
        """Raise what was raised for this kernel, or for all kernels, as long as nothing has changed."""
        if self._known:
            for case in (_case(compiler, None), _case(compiler, key)):
                refusal, end = self._known.get(case, (None, 0.0))
                if refusal is not None and time.monotonic() < end:
                    raise ToolchainError(str(refusal))

    def forget(self) -> None:
        """Try everything again."""
        self._known.clear()


failures = Failures()


def _case(compiler: Compiler, key: str | None) -> _Case:
    return compiler, key, frozenset(os.environ.items())
