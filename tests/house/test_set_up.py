"""The set-up finds a fit Python or says in one sentence what is missing; a test run has its own kernel cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FIND_PYTHON = Path(__file__).resolve().parents[2] / ".ci" / "find-python"


def fake(folder: Path, name: str, version: str, status: int) -> str:
    """A command that answers the set-up's question as that Python would."""
    command = folder / name
    command.write_text(f"#!/bin/sh\necho {version}\nexit {status}\n")
    command.chmod(0o755)
    return str(command)


def find(folder: Path, **variables: str) -> tuple[int, str, str]:
    """Run the search where only the commands in ``folder`` exist."""
    done = subprocess.run(["/bin/sh", FIND_PYTHON], env={"PATH": str(folder), **variables}, capture_output=True, text=True)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def test_the_first_fit_python_is_taken(tmp_path: Path) -> None:
    fake(tmp_path, "python3.13", "3.13.0", 4)
    fake(tmp_path, "python3.12", "3.12.1", 0)
    fake(tmp_path, "python3", "3.9.2", 3)
    assert find(tmp_path) == (0, "python3.12", "")


def test_the_python_of_this_run_is_fit(tmp_path: Path) -> None:
    assert find(tmp_path, PYTHON=sys.executable) == (0, sys.executable, "")


def test_an_old_python_is_named(tmp_path: Path) -> None:
    fake(tmp_path, "python3", "3.9.2", 3)
    text = (
        "Sparseloom needs Python 3.11 or newer, and python3 is 3.9.2: install a newer one, or name it with make PYTHON=/path/to/python3."
    )
    assert find(tmp_path) == (1, "", text)


def test_a_missing_venv_names_the_package(tmp_path: Path) -> None:
    fake(tmp_path, "python3", "3.11.2", 4)
    text = "python3 (3.11.2) cannot make virtual environments: run 'apt install python3-venv' and try again."
    assert find(tmp_path) == (1, "", text)


def test_a_named_python_is_not_replaced_by_another(tmp_path: Path) -> None:
    fake(tmp_path, "python3", "3.12.1", 0)
    assert find(tmp_path, PYTHON="nope") == (1, "", "There is no Python at 'nope': set PYTHON to a Python 3.11 or newer.")


def test_no_python_at_all(tmp_path: Path) -> None:
    text = "No Python was found: run 'apt install python3 python3-venv', or name one with make PYTHON=/path/to/python3."
    assert find(tmp_path) == (1, "", text)


def test_the_kernel_cache_is_of_this_run_or_the_one_that_was_asked_for() -> None:
    folder, asked = Path(os.environ["SPARSELOOM_CACHE_DIR"]), os.environ.get("SPARSELOOM_TEST_CACHE")
    assert folder.is_dir()
    assert folder == Path(asked) if asked else folder.name.startswith("sparseloom-test-cache-")
