"""What a compiler refused, remembered: a broken one is not run again for every call.

A refusal holds for a compiler as it was, with the environment as it was. Whatever is changed, ``$CC``, a path or the program itself,
it is tried anew; also where memory, processes or room on the disk were short.
"""

from __future__ import annotations

import os

from sparseloom.core.errors import ToolchainError
from sparseloom.runtime.toolchain import CompileError, Compiler, StartError

_MOST = 256
_Case = tuple[Compiler, str | None, frozenset[tuple[str, str]]]


class Failures:
    """The refusals of this process: of everything by a compiler, or of one kernel by its key."""

    def __init__(self) -> None:
        self._known: dict[_Case, ToolchainError] = {}

    def remember(self, compiler: Compiler, key: str | None, refusal: ToolchainError) -> None:
        """Keep a refusal in mind, unless it may be different next time."""
        if isinstance(refusal, CompileError | StartError) and not refusal.passing:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[_case(compiler, key)] = refusal

    def refuse_again(self, compiler: Compiler, key: str) -> None:
        """Raise what was raised for this kernel, or for all kernels, as long as nothing has changed."""
        if self._known:
            for case in (_case(compiler, None), _case(compiler, key)):
                if known := self._known.get(case):
                    raise ToolchainError(str(known))

    def forget(self) -> None:
        """Try everything again."""
        self._known.clear()


failures = Failures()


def _case(compiler: Compiler, key: str | None) -> _Case:
    return compiler, key, frozenset(os.environ.items())
