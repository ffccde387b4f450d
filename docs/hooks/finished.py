"""A look at the pages that were built: a page that shows what nobody should see fails the build."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

_CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
_DIRECTORY = re.compile(r'href="(?!https?:|mailto:|#)[^"#?]*/(?:#[^"]*)?"')


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site with such a page."""
    found = list(site_faults(Path(config.site_dir)))
    if found:
        raise ValueError("\n".join(found))


def site_faults(folder: Path) -> Iterator[str]:
    """What is wrong with the pages of a site."""
    for page in sorted(folder.rglob("*.html")):
        for fault in faults(page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(folder)}: {fault}"


def faults(html: str) -> Iterator[str]:
    """What is wrong with one page."""
    if "BLANKLINE" in html:
        yield "doctest's mark of an empty line is shown"
    if "&gt;&gt;&gt;" in _CODE.sub("", html):
        yield "an example stands outside of a block of code, where its lines run together"
    for link in _DIRECTORY.findall(html):
        yield f"{link} leads to a folder, of which a file shows a listing"
