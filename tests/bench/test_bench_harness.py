"""The benchmark runs from end to end on toy operands, checks every answer, and keeps its numbers. Nothing here depends on times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_benchmark_runs_on_toys(tmp_path: Path) -> None:
    results, tables = tmp_path / "toy.json", tmp_path / "toy.md"
    command = [sys.executable, ROOT / "bench" / "run.py", "--toy", "--results", results, "--markdown", tables]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(results.read_text())
    assert {case["kernel"] for case in found["kernels"]} == {
        "SpMV", "SpMM, 32 columns", "MTTKRP, rank 16", "A + B", "(A + B) x, fused", "SDDMM, 32 columns",
    }  # fmt: skip
    for case in found["kernels"]:
        assert set(case["ratios"]) == set(case["seconds"]) - {"Sparseloom"} and case["ratios"]
    assert all(wait["samples"] for wait in found["overheads"])
    assert tables.read_text().count("### ") == 7
