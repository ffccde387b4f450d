"""A short form of ``make races``: some kernels of threads run again and again, with more threads than cores, and under ThreadSanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from races.campaign import batch, ordered
from races.running import THREADS, Found, drawn, evenly, run, sanitize
from races.shapes import DTYPES, RACES, REDUCTIONS, RESULTS, Cell, cells
from sanitize.tools import TOOLS

from sparseloom.targets import c_stmt
from sparseloom.targets.c_clauses import Clause
from sparseloom.targets.loop_properties import WrittenProperties

MANY, FEW = 24, 10  # cells, without ThreadSanitizer and with it
KEPT = [Cell(result, "outer", races, "a workspace", op) for result in ("scalar", "vector") for races in RACES[1:] for op in ("sum", "all")]


@pytest.fixture(scope="session")
def has_tsan(tmp_path_factory: pytest.TempPathFactory) -> bool:
    """Whether clang is here with ThreadSanitizer and Archer."""
    return TOOLS["tsan"].missing(tmp_path_factory.mktemp("tsan")) is None


def problems(found: Found) -> str:
    """Every fault."""
    return "\n\n".join(found.faults)


@pytest.mark.parametrize("first", [0, MANY])
def test_threads_give_the_same_every_time(first: int, seed: int) -> None:
    found = run(ordered(seed)[first : first + MANY], seed, first, repeats=20)
    assert not found.faults, problems(found)
    assert found.ran.total() >= MANY // 3
    assert found.calls == found.ran.total() * 20 * len(THREADS)


def test_threads_that_keep_a_workspace_lose_nothing(seed: int, has_tsan: bool, tmp_path: Path) -> None:
    """What OpenMP combines was lost where threads had memory of their own."""
    found = run(KEPT, seed, 0, 100, TOOLS["tsan"] if has_tsan else None, tmp_path)
    assert not found.faults, problems(found)
    assert found.ran.total() >= len(KEPT) // 2


def test_no_race_is_reported(seed: int, has_tsan: bool) -> None:
    if has_tsan:
        found = batch(seed, 2 * MANY, FEW, 1, True)
        assert not found.faults, problems(found)
        assert found.checked == found.ran.total() > 0


def test_a_lost_reduction_is_found(seed: int, has_tsan: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaign sees what it is for."""
    whole = c_stmt.of_iterations

    def without(*args: object) -> list[Clause]:
        return [clause for clause in whole(*args) if "reduction" not in clause.says]  # type: ignore[arg-type]

    monkeypatch.setattr(c_stmt, "of_iterations", without)
    monkeypatch.setattr(WrittenProperties, "check", lambda self, root: None)
    found = Found()
    case = drawn(Cell("scalar", "outer", "Atomics", "a workspace", "sum"), seed, 0, found)
    assert case is not None
    if has_tsan:
        sanitize([case], TOOLS["tsan"], tmp_path, found)
        assert len(found.faults) == 1
        assert "data race" in problems(found)


def test_what_is_rejected_for_its_dtype_is_counted(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DTYPES, "prod", ("complex64",))
    found = run([cell for cell in cells() if (cell.races, cell.reduction, cell.form) == ("Atomics", "prod", "within blocks")], seed, 0, 1)
    assert not found.faults, problems(found)
    assert found.rejected["S853"]


def test_every_combination_is_there() -> None:
    assert len(set(cells())) == len(cells())
    assert set(DTYPES) == set(REDUCTIONS)
    assert {cell.result for cell in cells()} == set(RESULTS)
    assert sorted(map(str, ordered(1))) == sorted(map(str, cells()))


def test_loops_are_dealt_out_evenly() -> None:
    text = "#pragma omp for schedule(guided) reduction(+:a)\n#pragma omp parallel for schedule(dynamic, 3)\n"
    assert evenly(text) == "#pragma omp for schedule(static, 1) reduction(+:a)\n#pragma omp parallel for schedule(static, 3)\n"
