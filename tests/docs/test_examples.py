"""Every Python block of the README and of docs/ runs, and shows what it says it shows."""

from __future__ import annotations

import doctest
import importlib
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparseloom
from sparseloom.cli.folded import folded

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / "docs" / part for part in ("", "gallery", "lessons", "primitives")]
PAGES = [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted(folder.glob("*.md")))]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return [found[2] for found in FENCED.finditer(page.read_text(encoding="utf-8")) if found[1] == language]


def only_python(page: Path) -> str:
    """The Python blocks of a page, with empty lines for everything else, so that line numbers stay."""
    text = page.read_text(encoding="utf-8")
    kept = [""] * text.count("\n")
    for found in FENCED.finditer(text):
        if found[1] == "python":
            first = text[: found.start(2)].count("\n")
            lines = found[2].splitlines()
            kept[first : first + len(lines)] = lines
    return "\n".join(kept)


@pytest.mark.filterwarnings("ignore::sparseloom.ConversionWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", os.environ.get("CC", ""))  # a page may change it; this puts it back
    found = blocks(page, "python")
    assert found, f"{page.name} has no Python example"
    text = only_python(page)
    if not any(block.startswith(">>>") for block in found):
        exec(compile(text, str(page), "exec"), {"__name__": page.stem})
        return
    session = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    told: list[str] = []
    results = doctest.DocTestRunner(optionflags=OPTIONS).run(session, out=told.append)
    assert not results.failed, "".join(told)


def test_the_readme_shows_the_c_that_ran_on_its_own_operands() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").split("```c\n")[0]
    known: dict[str, Any] = {}
    for found in FENCED.finditer(first):
        exec(compile(found[2], "README.md", "exec"), known)
    assert [folded(known["balanced"].source) + "\n"] == blocks(ROOT / "README.md", "c")


SOURCE = ROOT / "src"
FILES = [file.relative_to(SOURCE).with_suffix("") for file in sorted(SOURCE.rglob("*.py")) if file.stem != "__main__"]
MODULES = [".".join(file.parts).removesuffix(".__init__") for file in FILES]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS, extraglobs={"np": np, "sl": sparseloom})
    assert not results.failed
