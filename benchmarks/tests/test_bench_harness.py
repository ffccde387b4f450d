"""The benchmarks run from end to end on small operands, check every answer, and keep their numbers. Nothing here depends on times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.command import main
from benchmarks.contests import CONTESTS
from benchmarks.outcome import SCHEMA, read_json
from benchmarks.peers.registry import PEERS, find_peers
from benchmarks.targets import TARGETS, verdicts

ROOT = Path(__file__).resolve().parents[2]
SOME = ("spmv", "sddmm", "ttv", "spgemm", "powers")
OUTCOME = "kernel width case shape stored dtype threads seconds ratios absent floor schedule".split()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a run on toys has filled, with everything but most kernels."""
    folder = tmp_path_factory.mktemp("bench")
    where = ["--json", str(folder / "run.json"), "--pictures", str(folder / "pictures"), "--markdown", str(folder / "page.md")]
    kernels = ",".join([*SOME, "studies", "random", "doors"])
    assert main(["cpu", "--toy", "--kernels", kernels, "--threads", "1,2", "--dtypes", "f64", *where]) == 0
    return folder


def test_every_kernel_is_measured_and_loops_by_hand_take_part(tmp_path: Path) -> None:
    kept = tmp_path / "run.json"
    assert main(["cpu", "--toy", "--kernels", ",".join(CONTESTS), "--threads", "2", "--dtypes", "f64", "--json", str(kept)]) == 0
    outcomes = read_json([kept]).outcomes
    assert [(o.kernel, o.width) for o in outcomes] == [(c.name, width) for c in CONTESTS.values() for width in c.widths]
    by_hand = {o.kernel for o in outcomes if "hand C" in o.seconds}
    assert by_hand >= {"spmv", "spmm", "sddmm", "mttkrp", "ttv", "ttm", "inner", "spgemm", "add_three", "masked", "attention"}
    assert by_hand >= {"mttkrp4", "sampled_product", "min_plus", "hadamard", "block_spmm"}
    assert not [why for o in outcomes for why in o.absent.values() if why.startswith("wrong")]


def test_numbers_are_kept_in_one_form(kept: Path) -> None:
    found = json.loads((kept / "run.json").read_text())
    assert found["schema"] == SCHEMA
    measured = [(o["kernel"], o["width"], o["dtype"], o["threads"]) for o in found["outcomes"]]
    wanted = [(name, width) for name in SOME for width in CONTESTS[name].widths]
    assert measured == [(*kernel, "float64", threads) for kernel in wanted for threads in (1, 2)]
    for outcome in found["outcomes"]:
        assert list(outcome) == OUTCOME
        assert {"Sparseloom", "Sparseloom, plain"} <= set(outcome["seconds"]) == set(outcome["ratios"])
        assert outcome["ratios"]["Sparseloom"] == 1 and outcome["floor"] > 0
    assert {study["name"] for study in found["studies"]} == {"locality", "balance"}
    assert len(found["trials"]) == 2 and found["doors"]


def test_what_is_missing_is_named(kept: Path) -> None:
    report = read_json([kept / "run.json"])
    _, missing = find_peers()
    assert report.gaps == missing and set(report.machine["peers"]) == set(PEERS) - set(missing)
    assert all(o.absent["Sparseloom, tuned"] == "missing: kernels cannot be tuned yet" for o in report.outcomes if not _can_be_tuned())
    page = (kept / "page.md").read_text()
    assert all(f"**{name}** is missing: {why}" in page for name, why in missing.items())


def test_every_target_has_a_verdict(kept: Path) -> None:
    found = json.loads((kept / "run.json").read_text())["targets"]
    assert {target["said"] for target in found} <= {"met", "missed", "not measured"}
    said = {target["what"] for target in found}
    assert {target.named for target in TARGETS} <= said
    assert any("random statements" in what for what in said) and "a @ x" in said


def test_pictures_are_sound_and_linked(kept: Path) -> None:
    pictures = sorted((kept / "pictures").iterdir())
    assert len(pictures) == sum(len(CONTESTS[name].widths) for name in SOME) + 2
    page = (kept / "page.md").read_text()
    for picture in pictures:
        root = ElementTree.parse(picture).getroot()
        assert root.tag.endswith("svg") and "prefers-color-scheme:dark" in picture.read_text()
        assert f"](pictures/{picture.name})" in page


def test_the_page_has_every_part(kept: Path) -> None:
    page = (kept / "page.md").read_text()
    titles = [line.lstrip("# ") for line in page.splitlines() if line.startswith("#")]
    assert titles[:4] == ["Performance", "Targets", "Where we lose, and why", "All kernels"]
    assert {"How it is measured", "Kernels", "Studies", "Random statements, planned and plain", "Doors"} <= set(titles)
    assert all(line.count("|") >= 3 for line in page.splitlines() if line.startswith("|"))


def test_kept_numbers_give_the_same_page_and_are_merged(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = ["--markdown", str(tmp_path / "page.md"), "--pictures", str(tmp_path / "pictures"), "--json", str(tmp_path / "again.json")]
    run = kept / "run.json"
    assert main(["cpu", "--from", str(run), str(run), *again]) == 0
    assert (tmp_path / "page.md").read_text() == (kept / "page.md").read_text()
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(run.read_text())
    assert "Targets" in capsys.readouterr().out


def test_what_a_later_run_measured_is_no_longer_left_out(kept: Path, tmp_path: Path) -> None:
    early = tmp_path / "early.json"
    assert main(["cpu", "--toy", "--limit", "0", "--kernels", "spmv,ttm,doors", "--dtypes", "f64", "--json", str(early)]) == 0
    assert len(read_json([early]).left_out) == 3
    assert read_json([early, kept / "run.json"]).left_out == ["TTM, 16 columns on toy_fibres, float64: the time is over"]


def test_some_kernels_in_single_precision(tmp_path: Path) -> None:
    kept = tmp_path / "run.json"
    assert main(["cpu", "--toy", "--kernels", "spmv,mttkrp,spgemm", "--threads", "2", "--dtypes", "f32", "--json", str(kept)]) == 0
    outcomes = read_json([kept]).outcomes
    assert [(o.kernel, o.width, o.dtype) for o in outcomes] == [
        ("spmv", 0, "float32"), ("mttkrp", 16, "float32"), ("mttkrp", 32, "float32"), ("spgemm", 0, "float32"),
    ]  # fmt: skip
    assert all("hand C" in o.seconds for o in outcomes)


def test_some_kernels_on_files_of_a_folder(tmp_path: Path) -> None:
    import numpy as np

    import sparseloom as sl

    sl.write(tmp_path / "small.mtx", sl.random((40, 40), 0.1, "csr", seed=1))
    sl.write(tmp_path / "cube.tns", sl.from_coo(np.array([[0, 1, 2], [1, 1, 0], [2, 0, 1]]), np.ones(3), (3, 3, 3)))
    sl.write(tmp_path / "phases.mtx", sl.asarray(np.array([[1j, 0], [0, 2]]), format="csr"))
    (tmp_path / "torn.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 5\n1 1 1.0\n")
    where = ["--data", str(tmp_path), "--json", str(tmp_path / "run.json")]
    assert main(["cpu", "--toy", "--kernels", "spmv,spgemm,ttv", "--threads", "1", "--dtypes", "f64", *where]) == 0
    report = read_json([tmp_path / "run.json"])
    assert [(o.kernel, o.case) for o in report.outcomes] == [("spmv", "small"), ("spgemm", "small"), ("ttv", "cube")]
    assert not report.studies and not report.doors
    assert [line.partition(":")[0] for line in report.left_out] == ["phases.mtx", "torn.mtx"]


def test_what_the_time_does_not_suffice_for_is_named(tmp_path: Path) -> None:
    kept = tmp_path / "run.json"
    assert main(["cpu", "--quick", "--limit", "0", "--kernels", "spmv,doors", "--json", str(kept)]) == 0
    report = read_json([kept])
    assert not report.outcomes
    assert report.left_out[0].endswith("the time is over") and report.left_out[-1] == "doors: the time is over"
    assert {v.said for v in verdicts(report)} == {"not measured"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kernels", "spmv,nothing"], "--kernels names nothing, but there are spmv, spmm, sddmm"),
        (["--threads", "1,x"], "cannot read --threads 1,x: it must be counts\n  help: write for example --threads 1,2"),
        (["--dtypes", "f16"], "--dtypes names f16, but there are f64, f32"),
        (["--seconds", "-1"], "--seconds is a time, at least 0, not -1.0"),
        (["--cases", "nowhere"], "--cases names nowhere, but there are toy_blocks, toy_fibres, toy_four, toy_uniform"),
    ],
)
def test_a_mistake_is_one_paragraph(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "--toy", *arguments]) == 2
    assert f"sparseloom: {said}" in capsys.readouterr().err


def test_a_file_that_holds_no_numbers_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text("[]")
    assert main(["cpu", "--from", str(tmp_path / "other.json")]) == 2
    assert "other.json was not written by python -m benchmarks cpu --json" in capsys.readouterr().err


def test_sparse_results_are_measured_in_a_quick_run(tmp_path: Path) -> None:
    results, tables = tmp_path / "quick.json", tmp_path / "quick.md"
    _run("results.py", "--quick", "--json", results, "--markdown", tables)
    found = json.loads(results.read_text())
    assert {(outcome["question"], outcome["threads"]) for outcome in found["outcomes"]} == {
        *((question, threads) for question in ("A·A", "A + B", "A + B + C") for threads in (1, 2)),
        *((question, 1) for question in ("csr to csc", "csr to coo", "coo to csr", "coo to csf, order 3")),
    }
    for outcome in found["outcomes"]:
        assert "Sparseloom" in {*outcome["seconds"], *outcome["absent"]}
        assert all(reason.startswith(("refused: ", "absent: ")) for reason in outcome["absent"].values())
    assert {target["peer"] for target in found["targets"]} >= {"SciPy", "SciPy + sort"}
    assert tables.read_text().count("### ") == 3 * 2 + 2 * 2 + 2 * 2 + 4 + 1  # ways by threads, conversions, targets


def _can_be_tuned() -> bool:
    import sparseloom as sl

    return hasattr(sl.Kernel, "tune")


def _run(script: str, *arguments: str | Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", f"benchmarks.{script.removesuffix('.py')}", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
