"""Tuning: candidates are measured, the quickest is kept for operands alike, here and on disk; results stay right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.core.settings import settings
from sparseloom.plan.plan import problem_text
from sparseloom.toolchain.tuned import forget_schedules, keep_schedule, known_schedule


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "cache_folder", tmp_path / "cache")
    forget_schedules()


def operands(rows: int = 2000) -> tuple[sp.csr_array, np.ndarray]:
    random = np.random.default_rng(rows)
    return sp.random_array((rows, 500), density=0.02, format="csr", rng=random), random.random((500, 16))


STATEMENT, FORMATS = "C(i,k) = A(i,j) * B(j,k)", {"A": "csr"}


def test_the_quickest_candidate_is_used_from_then_on() -> None:
    a, b = operands()
    kernel = sl.program(STATEMENT, FORMATS)
    before = kernel(a, b).to_numpy()
    (tuned,) = kernel.tune(a, b, seconds=0.05)
    assert [one.seconds for one in tuned.timings] == sorted(one.seconds for one in tuned.timings)
    assert tuned.gain >= 1
    np.testing.assert_allclose(kernel(a, b).to_numpy(), before)
    assert kernel.schedule == tuned.best
    other = sl.program(STATEMENT, FORMATS)
    other(a, b)
    assert other.schedule == tuned.best


def test_what_was_measured_is_found_on_disk() -> None:
    a, b = operands()
    kernel = sl.program(STATEMENT, FORMATS)
    (tuned,) = kernel.tune(a, b, seconds=0.05)
    forget_schedules()
    again = sl.program(STATEMENT, FORMATS)
    again(a, b)
    assert again.schedule == tuned.best
    assert "quickest schedule when the kernel was tuned" in again.explain()


def test_every_candidate_gives_the_result() -> None:
    a, b = operands()
    kernel = sl.program(STATEMENT, FORMATS)
    wanted = a @ b
    (tuned,) = kernel.tune(a, b, seconds=0.01)
    for one in tuned.timings:
        np.testing.assert_allclose(sl.program(STATEMENT, FORMATS, one.schedule)(a, b).to_numpy(), wanted)


def test_statements_of_a_chain_are_tuned_one_by_one() -> None:
    a, _ = operands(500)
    x = np.random.default_rng(1).random(500)
    kernel = sl.program("y(i) = A(i,j) * B(j,k) * x(k)", {"A": "csr", "B": "csr"})
    wanted = a @ (a @ x)
    np.testing.assert_allclose(kernel(a, a, x).to_numpy(), wanted)
    found = kernel.tune(a, a, x, seconds=0.05)
    assert [one.statement.split("(")[0] for one in found] == ["t1", "y"]
    np.testing.assert_allclose(kernel(a, a, x).to_numpy(), wanted)


def test_a_schedule_of_ones_own_is_not_tuned() -> None:
    a, b = operands()
    with pytest.raises(sl.ScheduleError, match="there is nothing to tune: the schedule is the user's own"):
        sl.program(STATEMENT, FORMATS, "split(i,i0,i1,8)").tune(a, b)


@pytest.mark.parametrize("seconds", [0, -1, "2", True, float("nan"), float("inf")])
def test_a_time_that_cannot_be(seconds: object) -> None:
    a, b = operands()
    with pytest.raises(sl.NotationError, match="tuning cannot take"):
        sl.program(STATEMENT, FORMATS).tune(a, b, seconds=seconds)  # type: ignore[arg-type]


def test_damage_on_disk_is_as_if_nothing_were_there(tmp_path: Path) -> None:
    keep_schedule("a problem", "split(i,i0,i1,8)")
    forget_schedules()
    assert known_schedule("a problem") == "split(i,i0,i1,8)"
    for file in (tmp_path / "cache").glob("*.kernel"):
        file.write_bytes(b"split(j)")
    forget_schedules()
    assert known_schedule("a problem") is None


def test_a_schedule_that_loops_do_not_allow_is_not_followed() -> None:
    a, b = operands()
    kernel = sl.program(STATEMENT, FORMATS)
    kernel(a, b)
    last = kernel._last
    keep_schedule(problem_text(last.problem, last.statistics), "split(nobody,i0,i1,8)")
    again = sl.program(STATEMENT, FORMATS)
    np.testing.assert_allclose(again(a, b).to_numpy(), a @ b)
    assert "nobody" not in again.schedule


def test_progress_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    a, b = operands()
    sl.program(STATEMENT, FORMATS).tune(a, b, seconds=0.02, progress=True)
    shown = capsys.readouterr().err
    assert "measuring schedules [" in shown
    assert shown.endswith("\r")
    sl.program(STATEMENT, FORMATS).tune(a, b, seconds=0.02, progress=False)
    assert capsys.readouterr().err == ""
