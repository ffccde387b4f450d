"""The site, as far as it can be looked at without building it: no page is left out of it, and no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparseloom.tensor import TABLE

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
