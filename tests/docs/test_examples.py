"""Every Python block of the README and of docs/ runs, and shows what it says it shows."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import sparseloom

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a page in one language, with the lines on which they start."""
    text = page.read_text(encoding="utf-8")
    return [(text[: found.start()].count("\n") + 1, found[2]) for found in FENCED.finditer(text) if found[1] == language]


@pytest.mark.filterwarnings("ignore::sparseloom.ConversionWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    found = blocks(page, "python")
    assert found, f"{page.name} has no Python example"
    for line, text in found:
        if text.startswith(">>>"):
            check_session(text, names, page, line)
        else:
            exec(compile("\n" * line + text, str(page), "exec"), names)


def check_session(text: str, names: dict[str, object], page: Path, line: int) -> None:
    """Run an interactive session in the names that a page has made so far."""
    session = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line)
    told: list[str] = []
    results = doctest.DocTestRunner(optionflags=OPTIONS).run(session, out=told.append, clear_globs=False)
    assert not results.failed, "".join(told)
    names.update(session.globs)


def test_the_readme_shows_the_c_that_is_made() -> None:
    source = sparseloom.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}).source.splitlines()
    [(_, shown)] = blocks(ROOT / "README.md", "c")
    remaining = iter(source)
    for line in shown.splitlines():
        assert line in remaining, f"{line!r} is not in the kernel, or not in this order"


MODULES = sorted(found.name for found in pkgutil.walk_packages(sparseloom.__path__, "sparseloom.") if not found.name.endswith("__main__"))


@pytest.mark.parametrize("name", ["sparseloom", *MODULES])
def test_the_examples_in_docstrings_are_right(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert not results.failed
