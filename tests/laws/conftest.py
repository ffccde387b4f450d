"""What the laws share: a compiler that is quick, because most of their time goes into compiling."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparseloom.targets.toolchain import Toolchain
from sparseloom.toolchain import libraries as library
from sparseloom.toolchain.compilers import Compiler, find_compiler


@pytest.fixture(autouse=True)
def quick_compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile with little effort, but one of five chunks of random cases as for users."""
    if "chunk" in request.fixturenames and request.getfixturevalue("chunk") % 5 == 0:
        return

    def quick(chain: Toolchain) -> Compiler:
        found = find_compiler(chain)
        return replace(found, flags=tuple("-Og" if flag == "-O3" else flag for flag in found.flags))

    monkeypatch.setattr(library, "find_compiler", quick)
