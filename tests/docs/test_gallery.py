"""Every program of the gallery is one that `make gallery` measures, and defines what is measured."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_program_is_measured() -> None:
    measured = runpy.run_path(str(ROOT / "benchmarks" / "gallery.py"))
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "gallery").glob("*.md") if page.stem != "index"}
    assert set(pages) == set(measured["PROGRAMS"])
    for name, text in pages.items():
        assert all(f"def {part}(" in text for part in ("data", "ours", "theirs")), name
        assert measured["MARKED"].search(text) and "assert " in text, name
