"""Damaged CSR, CSC, COO and CSF arrays: never a crash, and each either an error that names array and place, or rightly accepted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MUTATIONS = 400

@pytest.mark.parametrize("way", ["from_arrays", "scipy"])
@pytest.mark.parametrize("part", range(2))
def test_damaged_arrays_never_crash(way: str, part: int, seed: int) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    command = [sys.executable, "-X", "faulthandler", "-m", "fuzz.hostile_storage", way, str(seed + part), str(MUTATIONS)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *wrong, last = done.stdout.splitlines()
    assert not wrong, "\n".join(wrong)
    counts = json.loads(last)
    assert sum(counts.values()) == MUTATIONS
    assert min(counts["refused"], counts["accepted"]) > MUTATIONS // 10
