"""The site, as far as it can be looked at without building it: no page is left out of it, and no link leads nowhere."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from sparseloom.surface import TABLE

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
WRITTEN = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
_LISTED = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
NAV = re.findall(r"^ +- (?:[^#\n]*?: )?([\w/-]+\.md)$", _LISTED, re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def made_pages() -> set[str]:
    """The pages of the reference, which the site's hook makes."""
    hook = (DOCS / "hooks" / "reference.py").read_text(encoding="utf-8")
    named = re.findall(r'^    "([\w-]+)": \(', hook.partition("PAGES = {")[2].partition("\n}\n")[0], re.MULTILINE)
    families = {found.family.replace(" ", "-") for found in TABLE.values()}
    return {f"reference/{name}.md" for name in ("index", *named, *families)}


def test_every_page_stands_once_in_the_list_of_the_site() -> None:
    assert sorted(NAV) == sorted(WRITTEN | made_pages()), "name each page once under nav: in mkdocs.yml"


@pytest.mark.parametrize("page", sorted(WRITTEN))
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in LINK.findall(text):
        target = link.partition("#")[0]
        if target and not link.startswith(("http:", "https:")):
            found = (DOCS / page).parent / target
            assert found.exists() or found.resolve().relative_to(DOCS).as_posix() in made_pages(), link


def hook(name: str) -> ModuleType:
    """A hook of the site, which is no module of a package."""
    spec = spec_from_file_location(name, DOCS / "hooks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_examples_of_docstrings_are_fenced_without_marks() -> None:
    told = "What ``x`` is.\n\n>>> print(x)\na\n<BLANKLINE>\nb\n\nMore.\n\n>>> y\n1"
    wanted = "What `x` is.\n\n```pycon\n>>> print(x)\na\n\nb\n```\n\nMore.\n\n```pycon\n>>> y\n1\n```"
    assert [line for line in hook("fences").fenced(told).split("\n") if line] == [line for line in wanted.split("\n") if line]
    assert hook("fences").unmarked("a\n<BLANKLINE>\n  <BLANKLINE>\nb <BLANKLINE>") == "a\n\n\nb <BLANKLINE>"


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ("<p>&gt;&gt;&gt; x = 1 &gt;&gt;&gt; x</p>", "an example stands outside of a block of code, where its lines run together"),
        ("<pre><code>a\n&lt;BLANKLINE&gt;</code></pre>", "doctest's mark of an empty line is shown"),
        ('<a href="../tour/">', 'href="../tour/" leads to a folder, of which a file shows a listing'),
        ('<a href="tour/#begin">', 'href="tour/#begin" leads to a folder, of which a file shows a listing'),
    ],
)
def test_a_page_that_shows_what_nobody_should_see_is_found(html: str, fault: str) -> None:
    assert list(hook("finished").faults(html)) == [fault]
    good = '<pre><code>&gt;&gt;&gt; x</code></pre><a href="tour.html#begin">a</a><a href="https://semver.org/">b</a><a href="#top">c</a>'
    assert list(hook("finished").faults(good)) == []


def test_the_built_site_shows_nothing_of_the_kind() -> None:
    """CI builds the site before the tests; elsewhere there may be none, or an older one, which the next ``make docs`` looks at."""
    built = ROOT / "build" / "site"
    newest = max(page.stat().st_mtime for page in (*DOCS.rglob("*"), ROOT / "mkdocs.yml") if page.is_file())
    if not (built / "index.html").exists() or (built / "index.html").stat().st_mtime < newest:
        pytest.skip("no site is built of these pages")
    assert list(hook("finished").site_faults(built)) == []


def test_make_docs_says_how_to_read_the_site() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndocs:\n")[2].partition("\n\n")[0]
    assert "http.server" in recipe and "--directory build/site" in recipe
    assert "\nuse_directory_urls: false" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
