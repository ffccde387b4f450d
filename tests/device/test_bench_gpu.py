"""``python -m benchmarks gpu`` from end to end on a stand-in for a device: kernels run in the interpreter, and times are made up."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from device.stand_in import StandIn
from device.stand_in_clock import StandInClock

from benchmarks.command import main
from benchmarks.entrants import Entrant
from benchmarks.gpu import calls, run, studies, tasks
from benchmarks.gpu.clock import FEWEST, SLOW_ROUNDS, race
from benchmarks.gpu.outcome import SCHEMA, Call, Finding, Outcome, Report, read_json
from benchmarks.gpu.schedules import PLAIN_POSITIONS, THREAD, schedules_of
from benchmarks.gpu.studies import crossing
from benchmarks.gpu.tables import all_tables
from benchmarks.gpu.targets import verdicts
from benchmarks.gpu.tasks import CONTESTS, Answer, Case, everybody, fault_of, task_of
from benchmarks.keeping import write_kept
from benchmarks.outcome import Line, Study
from benchmarks.stand_ins import uniform
from sparseloom.core.errors import DeviceError

TOYS = ["gpu", "--toy", "--seconds", "0"]


@pytest.fixture
def measured(device: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A device on which everything can be measured."""
    library = SimpleNamespace(load=lambda: None, Clock=StandInClock)
    device.title = "a stand-in"  # type: ignore[attr-defined]
    monkeypatch.setattr(run, "LIBRARIES", {"CuPy": library})
    monkeypatch.setattr(calls, "CALLS", 1)
    monkeypatch.setattr(calls, "BATCHES", 1)
    return device


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the schedules: each of them is run by itself elsewhere."""
    shown = {*studies.SHOWN, THREAD, PLAIN_POSITIONS, "one atomic per nonzero, 8"}
    every = schedules_of

    def some(kernel: str, width: int) -> dict[str, str | None]:
        found = every(kernel, width)
        return {name: steps for number, (name, steps) in enumerate(found.items()) if name in shown or number < 3}

    for module in (tasks, studies, sys.modules[__name__]):
        monkeypatch.setattr(module, "schedules_of", some)
    monkeypatch.setattr(studies, "BASES", (1.0, 1.002, 1.004))


def test_everything_of_ours_runs_and_is_right(measured: StandIn, few: None, tmp_path: Path) -> None:
    kept = tmp_path / "run.json"
    chosen = ["--kernels", "spmv,mttkrp,calls", "--cases", "short_wide,scattered", "--dtypes", "f32"]
    assert main([*TOYS, *chosen, "--json", str(kept)]) == 0
    report = read_json([kept])
    assert [(o.kernel, o.width, o.case, o.group, o.dtype) for o in report.outcomes] == [
        ("spmv", 0, "short_wide", "six", "float32"), ("mttkrp", 32, "scattered", "tensors", "float32"),
    ]  # fmt: skip
    for outcome in report.outcomes:
        assert list(outcome.seconds) == list(schedules_of(outcome.kernel, outcome.width)) and not outcome.absent
        assert "GPUBlock" in outcome.schedule and outcome.floor > 0
    assert report.outcomes[0].rival is None and report.outcomes[1].rival.startswith("one atomic per nonzero")
    assert [call.name for call in report.calls][-1] == "a CUDA graph of run.start()"


def test_numbers_page_and_pictures_are_made_of_what_was_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    atomic = {"planned": 5e-6, "runs of 64": 4e-6, "one atomic per nonzero, 8": 3e-6}
    others = [outcome(case="b", dtype="float64"), outcome(group="afterwards", case="c")]
    others.append(outcome(kernel="mttkrp", width=32, group="tensors", seconds=atomic))
    versions = {"nvrtc": "12", "python": "3", "numpy": "2", "scipy": "1", "peers": {"CuPy": "13"}}
    machine = {"when": "now", "gpu": "one", "clock": "CuPy", **versions}
    study = Study("gpu_balance", "Balance", "Even.", "base", (1.0, 1.1), 0, (Line("rows", (1e-5, 2e-5)),))
    found = [Finding("8.5", "4.5x faster", "5x faster", {"rows": 1e-5})], [study], [Call("bound", 5e-6, 6e-6)]
    report = Report(machine, {"seconds": 1.0, "note": "Idle."}, 4e12, {"PyTorch": "not installed"}, ["a: b"], [outcome(), *others], *found)
    write_kept(SCHEMA, report, verdicts(report), tmp_path / "run.json")
    kept = json.loads((tmp_path / "run.json").read_text())
    assert kept["schema"] == SCHEMA and {target["said"] for target in kept["targets"]} == {"met", "missed", "not measured"}
    again = ["--markdown", str(tmp_path / "page.md"), "--json", str(tmp_path / "again.json"), "--pictures", str(tmp_path / "pictures")]
    assert main(["gpu", "--from", str(tmp_path / "run.json"), str(tmp_path / "run.json"), *again]) == 0
    assert json.loads((tmp_path / "again.json").read_text()) == kept
    assert "best of our schedules" in capsys.readouterr().out
    page = (tmp_path / "page.md").read_text()
    titles = [line.lstrip("# ") for line in page.splitlines() if line.startswith("##")]
    assert titles[:7] == ["Targets", "All kernels", "The paper's studies", "Balance", "Calls", "How it is measured", "Kernels"]
    kernels = ["SpMV, f32, the six", "SpMV, f32, six chosen afterwards", "SpMV, f64, the six", "MTTKRP, 32 columns, f32, tensors"]
    assert titles[7:] == kernels and "**PyTorch** is missing: not installed" in page
    assert "| **best of our schedules** | **0.75x** | **0.75x** | **0.75x** |" in page  # MTTKRP: never the schedule it is compared with
    for picture in ("spmv.svg", "mttkrp_32.svg", "gpu_balance.svg"):
        assert ElementTree.parse(tmp_path / "pictures" / picture).getroot().tag.endswith("svg") and f"](pictures/{picture})" in page


def test_wide_results_and_sampled_products_in_both_dtypes(measured: StandIn, few: None, tmp_path: Path) -> None:
    kept = tmp_path / "run.json"
    assert main([*TOYS, "--kernels", "spmm,sddmm", "--cases", "short_wide", "--json", str(kept)]) == 0
    outcomes = read_json([kept]).outcomes
    wanted = [(kernel, width, dtype) for dtype in ("float32", "float64") for kernel in ("spmm", "sddmm") for width in (32, 128)]
    assert [(o.kernel, o.width, o.dtype) for o in outcomes] == wanted
    assert all(set(o.seconds) == set(schedules_of(o.kernel, o.width)) for o in outcomes)


def test_studies_stand_beside_the_papers_numbers(measured: StandIn, few: None, tmp_path: Path) -> None:
    kept = tmp_path / "run.json"
    assert main([*TOYS, "--kernels", "studies", "--json", str(kept), "--pictures", str(tmp_path)]) == 0
    report = read_json([kept])
    assert [(f.what[:3], f.paper) for f in report.findings] == [
        ("8.3", "6.9x slower"), ("8.3", "1.36x faster"), ("8.5", "4.5x faster"), ("8.5", "not in the paper"),
    ]  # fmt: skip
    assert all(f.found.endswith(("slower", "faster")) for f in report.findings)
    assert [line.name for line in report.studies[0].lines] == ["warp per row", "the paper's", "tiles of 2048, 8 lanes per row", "planned"]
    assert "cross just before 1.00256" in report.studies[0].note and (tmp_path / "gpu_balance.svg").exists()


def test_what_the_time_does_not_suffice_for_is_named(measured: StandIn, tmp_path: Path) -> None:
    kept = tmp_path / "run.json"
    assert main([*TOYS, "--kernels", "spmv,calls", "--cases", "road_4m", "--dtypes", "f32", "--limit", "0", "--json", str(kept)]) == 0
    assert read_json([kept]).left_out == ["SpMV on road_4m, float32: the time is over", "calls: the time is over"]


def test_files_of_a_folder(measured: StandIn, tmp_path: Path) -> None:
    import sparseloom as sl

    sl.write(tmp_path / "cube.tns", sl.from_coo(np.array([[0, 1, 2], [1, 1, 0], [2, 0, 1]]), np.ones(3), (3, 3, 3)))
    sl.write(tmp_path / "small.mtx", sl.random((40, 40), 0.1, "csr", seed=1))
    (tmp_path / "torn.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 5\n1 1 1.0\n")
    given = ["--data", str(tmp_path), "--json", str(tmp_path / "run.json"), "--kernels", "spmv,mttkrp", "--dtypes", "f64"]
    assert main([*TOYS, *given]) == 0
    report = read_json([tmp_path / "run.json"])
    assert [(o.case, o.group) for o in report.outcomes] == [("small", "data"), ("cube", "data_tensors")]
    assert report.left_out[0].startswith("torn.mtx")


def test_a_wrong_result_is_named_and_never_timed(measured: StandIn) -> None:
    def theirs(A: Any, x: Any, y: Any) -> dict[str, Any]:
        off, right = np.ones(30), Case("few", "six", A.to_host()).sums
        off[3] = np.nan
        return {
            "cuSPARSE ALG1": lambda: Entrant(pytest.fail, lambda: right * off),
            "cuSPARSE default": lambda: Entrant(lambda: None, lambda: right),
            "cuSPARSE ALG2": lambda: x.nothing,
        }

    clock, matrix = StandInClock(), uniform(30, 20, 200)
    step = run.Step(CONTESTS["spmv"], 0, "few", "float64")
    there, peers = matrix.to_device(), {"CuPy": SimpleNamespace(spmv=theirs)}
    found = run.measured(step, Case("few", "six", matrix), there, clock, peers, 0.0, 1e9)
    assert found.absent["cuSPARSE ALG1"].startswith("WRONG: 1 of 30 numbers") and "cuSPARSE ALG1" not in found.seconds
    assert found.absent["cuSPARSE ALG2"].startswith("failed: ") and found.rival == "cuSPARSE default"
    report = run.Report({}, {}, 1.0, {}, [], [found])
    (table, *_) = all_tables(report)
    assert ["cuSPARSE ALG1", "WRONG", "", ""] in [list(row) for row in table.rows] and "cuSPARSE ALG2: failed" in table.note


def test_what_fails_is_named_and_the_rest_is_kept(measured: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*given: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(run, "task_of", no_room)
    monkeypatch.setattr(run, "calls", no_room)
    chosen = ["--kernels", "spmv,calls", "--cases", "short_wide", "--dtypes", "f32"]
    assert main([*TOYS, *chosen, "--json", str(tmp_path / "run.json"), "--pictures", str(tmp_path)]) == 0
    assert read_json([tmp_path / "run.json"]).left_out == ["SpMV on short_wide, float32: failed: no room", "calls: no room"]


def test_a_schedule_that_is_wrong_is_found(measured: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, matrix = StandInClock(), uniform(30, 20, 200)
    task = task_of(CONTESTS["spmv"], 0, Case("few", "six", matrix), "float64", matrix.to_device(), clock)
    monkeypatch.setattr(clock, "seen", lambda array, onto=None: np.zeros(30))
    found = everybody(task_of(CONTESTS["spmv"], 0, Case("few", "six", matrix), "float64", task.operands[0], clock), clock, {})
    assert not found.entrants and all(why.startswith("WRONG") for why in found.absent.values())


def test_every_number_of_a_result_counts() -> None:
    expected = np.array([1e6, 1.0, 0.0])
    answer = Answer(expected, np.abs(expected))
    assert fault_of(np.array([1e6, 1.0, 1e-9]), Answer(expected, np.array([1e6, 1.0, 1e-5])), "float32") == ""  # terms cancelled
    assert fault_of(expected * (1 + 1e-5), answer, "float32") == ""
    assert fault_of(np.array([1e6, 0.9, 0.0]), answer, "float32") == "WRONG: 1 of 3 numbers, one of them by 1.0e-01"
    assert fault_of(np.array([1e6, 1.0, 1e-9]), answer, "float32").startswith("WRONG: 1 of 3")
    assert fault_of(np.array([1e6, 1.0]), answer, "float32") == "WRONG: 2 numbers instead of 3"


def test_a_race_takes_turns_and_is_short_with_the_slow() -> None:
    class Clock(StandInClock):
        def seconds(self, run: Any) -> float:
            return float(run())

    order: list[str] = []

    def runner(name: str, seconds: float) -> Any:
        return lambda: order.append(name) or seconds

    found = race(Clock(), {"quick": runner("quick", 1e-4), "slow": runner("slow", 0.5)}, 0.0)
    assert found == {"quick": 1e-4, "slow": 0.5}
    assert order.count("quick") == 2 + FEWEST and order.count("slow") == 2 + SLOW_ROUNDS


def test_where_lines_cross() -> None:
    bases = (1.0, 1.1, 1.2)
    assert crossing(bases, (1.0, 2.0, 3.0), (2.0, 2.5, 2.5)) == "at about 1.1500"
    assert crossing(bases, (1.0, 2.0, 3.0), (2.0, 3.0, 4.0)) == "nowhere"
    assert crossing(bases, (1.0, 2.0, 3.0), (0.5, 1.0, 1.0)) == "everywhere"


def outcome(**changed: Any) -> Outcome:
    """A measurement in which cuSPARSE takes 12, 11 and 10 microseconds, our best 8 and the planner's choice 9."""
    seconds = {"planned": 9e-6, "warp per row": 8e-6, "cuSPARSE default": 12e-6, "cuSPARSE ALG1": 11e-6, "cuSPARSE ALG2": 10e-6}
    return replace(Outcome("spmv", 0, "a", "six", (9, 9), 9, "float32", seconds, {}, 4e-6, ""), **changed)


def test_ratios_are_to_the_best_algorithm_of_each_operand() -> None:
    slower = outcome(case="b", seconds={"planned": 20e-6, "warp per row": 10e-6, "cuSPARSE default": 16e-6})
    assert outcome().rival == "cuSPARSE ALG2"
    assert outcome().best_gain == pytest.approx(1.25) and outcome().planned_gain == pytest.approx(10 / 9)
    found = {v.what: v for v in verdicts(run.Report({}, {}, 1.0, {}, [], [outcome(), slower])) if v.dtype == "float32" and v.group == "six"}
    best = found["SpMV, best schedule"]
    assert (best.found, best.worst, best.said) == ("1.41x", "1.25x", "met")
    assert (found["SpMV, planned"].worst, found["SpMV, planned"].said) == ("0.80x", "missed")
    assert found["SpMM, 32 columns, planned"].said == "not measured"


def test_what_a_later_run_measured_is_no_longer_left_out(tmp_path: Path) -> None:
    machine: dict[str, Any] = {"gpu": "one"}
    left_out = ["SpMV on a, float32: the time is over", "studies: the time is over"]
    write_kept(SCHEMA, Report(machine, {}, 1.0, {}, left_out), [], tmp_path / "1.json")
    write_kept(SCHEMA, Report(machine, {}, 2.0, {"PyTorch": "no"}, [], [outcome()]), [], tmp_path / "2.json")
    merged = read_json([tmp_path / "1.json", tmp_path / "2.json"])
    assert merged.left_out == ["studies: the time is over"] and merged.outcomes == [outcome()] and merged.bandwidth == 2.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kernels", "spmv,ttv"], "--kernels names ttv, but there are spmv, spmm, sddmm, mttkrp, studies, calls"),
        (["--threads", "2"], "--threads is for bench cpu; kernels on a GPU have the threads that their schedules say"),
        (["--cases", "nowhere"], "--cases names nowhere, but there are six, tensors, uniform_4m, fem_27"),
        (["--dtypes", "f16"], "--dtypes names f16, but there are f32, f64"),
    ],
)
def test_a_mistake_is_one_paragraph(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TOYS, *arguments]) == 2
    assert f"sparseloom: {said}" in capsys.readouterr().err


def test_a_file_of_another_benchmark_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cpu.json").write_text('{"schema": "python -m benchmarks cpu 1"}')
    assert main(["gpu", "--from", str(tmp_path / "cpu.json")]) == 2
    assert "cpu.json was not written by python -m benchmarks gpu --json" in capsys.readouterr().err


def test_without_a_gpu_one_line_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing() -> None:
        raise DeviceError("there is no CUDA device\n  help: target='c' computes without one")

    monkeypatch.setattr(run, "device", missing)
    assert main(["gpu", "--quick"]) == 2
    assert capsys.readouterr().err == "sparseloom: bench gpu needs a GPU: there is no CUDA device\n"


def test_without_cupy_and_torch_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError("no such library")

    monkeypatch.setattr(run, "LIBRARIES", {"CuPy": SimpleNamespace(load=missing)})
    assert run.find_libraries() == ({}, {"CuPy": "no such library"})
    with pytest.raises(DeviceError, match="bench gpu needs CuPy or PyTorch to take times\n  help: pip install cupy-cuda12x"):
        run.find_clock({})
