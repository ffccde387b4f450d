"""The benchmarks run from end to end on small operands, check every answer, and keep their numbers. Nothing here depends on times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_benchmark_runs_on_toys(tmp_path: Path) -> None:
    results, tables = tmp_path / "toy.json", tmp_path / "toy.md"
    _run("run.py", "--toy", "--results", results, "--markdown", tables)
    found = json.loads(results.read_text())
    assert {case["kernel"] for case in found["kernels"]} == {
        "SpMV", "SpMM, 32 columns", "MTTKRP, rank 16", "A + B", "(A + B) x, fused", "SDDMM, 32 columns",
    }  # fmt: skip
    for case in found["kernels"]:
        assert set(case["ratios"]) == set(case["seconds"]) - {"Sparseloom"} and case["ratios"]
    assert all(wait["samples"] for wait in found["overheads"])
    assert all(door["ours"] > 0 and door["theirs"] > 0 for door in found["doors"]) and len(found["doors"]) > 15
    assert tables.read_text().count("### ") == 8


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


def _run(script: str, *arguments: str | Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, ROOT / "bench" / script, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
