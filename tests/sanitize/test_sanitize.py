"""A short form of ``make sanitize``: kernels that the fuzzers draw, as programs of their own, under the tools that are here."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from sanitize.kernels import KINDS, drawn
from sanitize.run import check
from sanitize.standalone import Kernel, program
from sanitize.tools import TOOLS, reports

from sparseloom.core.dtypes import INT64
from sparseloom.loops.nodes import ONE, ZERO, Array, Function, Load, Param, Role, Store

EACH = 8


@pytest.fixture(scope="session")
def gcc_sanitizes(tmp_path_factory: pytest.TempPathFactory) -> bool:
    """Whether gcc is here with its sanitizers."""
    return shutil.which("gcc") is not None and TOOLS["asan"].missing(tmp_path_factory.mktemp("asan")) is None


@pytest.mark.parametrize("kind", KINDS)
def test_no_kernel_leaves_its_arrays(kind: str, seed: int, gcc_sanitizes: bool) -> None:
    if gcc_sanitizes:
        found = check("asan", kind, seed, 0, EACH)
        assert not found.faults, "\n\n".join(f"{label}\n{text}" for label, text in found.faults)
        assert found.ran[kind] == EACH


def test_a_kernel_that_leaves_its_array_is_reported(tmp_path: Path, gcc_sanitizes: bool) -> None:
    """The blocks have exactly the size of their arrays: one element more is seen, in the kernel that takes it."""
    given, made = Array("given", INT64), Array("made", INT64)
    params = (Param(given, Role.INPUT), Param(made, Role.OUTPUT))
    copies = [Function("copy", params, Store(made, ZERO, Load(given, place))) for place in (ZERO, ONE)]
    kernels = [Kernel(copy.name, copy, [np.ones(1, np.int64), np.zeros(1, np.int64)], False, {}) for copy in copies]
    source = tmp_path / "copies.c"
    source.write_text(program(kernels), encoding="utf-8")
    if gcc_sanitizes:
        tool = TOOLS["asan"]
        assert tool.build(source).returncode == 0
        found = reports(tool, source, 2)
        assert list(found) == [1]
        assert "heap-buffer-overflow" in found[1]


def test_a_kernel_follows_from_its_numbers() -> None:
    first, again = (drawn("statement", 1, 0) for _ in range(2))
    assert first is not None
    assert again is not None
    assert program([first]) == program([again])
