"""No file of the project names a package index, or a folder of somebody's machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE = frozenset(".git .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis __pycache__ build dist".split())

# Written apart, so that this file keeps the rule that it states.
INDEX = re.compile("|".join(["py" + r"pi\.(org|python)", "python" + r"hosted\.org", "index" + r"[-_]url", "find" + r"[-_]links"]))
MACHINE = re.compile(r"(?<![\w.$}/-])/(home|root|Users|work)/[\w.]")


def project_files() -> Iterator[Path]:
    """The files that git tracks or would track; without git, all that are not made by tools."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        files = [file for file in ROOT.rglob("*") if not MADE.intersection(file.relative_to(ROOT).parts)]
    return (file for file in sorted(files) if file.is_file())


def breaches(pattern: re.Pattern[str]) -> list[str]:
    """Every line of the project's text files that matches."""
    return [
        f"{file.relative_to(ROOT)}:{number}: {found[0]}"
        for file in project_files()
        for number, line in enumerate(file.read_bytes().decode("utf-8", errors="replace").splitlines(), 1)
        if (found := pattern.search(line))
    ]


def require_none(pattern: re.Pattern[str], advice: str) -> None:
    """Fail with the places and the advice when anything matches."""
    if found := breaches(pattern):
        pytest.fail("\n  ".join([advice, *found]), pytrace=False)


def test_no_file_names_a_package_index() -> None:
    require_none(INDEX, "these lines name a package index; leave the choice to the machine's own settings:")


def test_no_file_names_a_folder_of_one_machine() -> None:
    require_none(MACHINE, "these lines name a folder of one machine; use a path from the repository's root:")


def test_the_patterns_find_what_they_forbid() -> None:
    assert INDEX.search("https://" + "pypi" + ".org/simple")
    assert MACHINE.search("see /" + "home/ada/notes")
    assert not any(MACHINE.search(before + "/" + "work/a") for before in ("tests", "$HOME", "https://example.org"))
    assert not MACHINE.search("/usr" + "/" + "home/x")
