"""Files that hold what is expected. With ``SPARSELOOM_GOLDEN=write`` a test writes what it finds instead; read the difference then."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
WRITES = os.environ.get("SPARSELOOM_GOLDEN") == "write"


def read_cases(file: Path) -> dict[str, str]:
    """The cases of a file: a heading after ``=== ``, and the text below it."""
    parts = file.read_text().split("=== ")[1:]
    return {heading.strip(): text.strip("\n") for heading, _, text in (part.partition("\n") for part in parts)}


def write_cases(file: Path, cases: dict[str, str]) -> None:
    """Write a file that ``read_cases`` reads."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(f"=== {heading}\n{text}\n" for heading, text in cases.items()))
