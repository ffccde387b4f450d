"""Pages of the reference, made while the site is built: every public name with its signature, its docstring and its example.

Classes are left to mkdocstrings, which reads their sources. Functions are read from the package itself: many are made from a table.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import sparseloom as sl
from sparseloom.surface import TABLE

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file alone
from fences import fenced, unmarked

PAGES = {
    "statements": (
        "Statements",
        "evaluate program einsum plan indices IndexVar Expression deferred Kernel BoundKernel Semiring SparsePath",
    ),
    "tensors": (
        "Tensors",
        "Tensor Builder asarray from_arrays from_coo from_networkx random read write get_threads set_threads threads release_memory "
        "accelerate array_api",
    ),
    "schedules": (
        "Formats and schedules",
        "Format csr csc dcsr dcsc ell dia dense coo csf bcsr Schedule CPUThread CPUVector GPUBlock GPUWarp GPUThread NoRaces "
        "IgnoreRaces Atomics Temporary ParallelReduction TwoFinger Gallop Append Insert MinExact MinConstraint MaxExact MaxConstraint",
    ),
    "errors": (
        "Errors",
        "SparseloomError NotationError FormatError StorageError ShapeError ScheduleError DTypeError DeviceError ToolchainError "
        "CompilerBug SparseloomWarning ConversionWarning RaceWarning",
    ),
}
"""The names that are no functions on whole tensors; those stand on a page for each family of the table."""
HEAD = "Examples assume `import numpy as np, sparseloom as sl`; every one is run by the tests."


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference to those that are written."""
    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Colour sessions as sessions, and show empty lines of output as such."""
    markdown = unmarked(markdown)
    return re.sub(r"^```python\n(?=>>>)", "```pycon\n", markdown, flags=re.MULTILINE)


def pages() -> dict[str, str]:
    """The text of every page by its name."""
    contents = {name: (title, names.split()) for name, (title, names) in PAGES.items()}
    for family in dict.fromkeys(found.family for found in TABLE.values()):
        contents[family.replace(" ", "-")] = family.capitalize(), sorted(name for name in TABLE if TABLE[name].family == family)
    told = {name for _, names in contents.values() for name in names}
    if missing := set(sl.__all__) - told - {"__version__"}:
        raise ValueError(f"no page of the reference has {', '.join(sorted(missing))}; see PAGES")
    made = {name: "\n".join([f"# {title}", "", HEAD, "", *_entries(names)]) for name, (title, names) in contents.items()}
    return {"index": _index(contents), **made}


def _index(contents: dict[str, tuple[str, list[str]]]) -> str:
    """All names with links to where they stand."""
    lines = ["# Reference", "", "Every public name of `import sparseloom as sl`.", ""]
    for page, (title, names) in contents.items():
        links = ", ".join(f"[`{name}`]({page}.md#{_anchor(name)})" for name in names)
        lines += [f"**[{title}]({page}.md)**: {links}", ""]
    return "\n".join(lines)


def _anchor(name: str) -> str:
    """Where a name stands on its page; mkdocstrings anchors classes by their whole path."""
    found = getattr(sl, name)
    return f"{found.__module__}.{found.__qualname__}" if isinstance(found, type) else f"sl.{name}"


def _entries(names: list[str]) -> Iterator[str]:
    """The names of a page in order. Constants of one class have one docstring, its own, and stand together."""
    for (kind, _), group in groupby(names, key=_kind):
        together = list(group)
        if kind is None:
            yield from map(_entry, together)
        else:
            anchors = " ".join(f'<a id="sl.{name}"></a>' for name in together)
            yield "\n".join([f"## {', '.join(together)}", "", anchors, "", *_told(getattr(sl, together[0])), ""])


def _kind(name: str) -> tuple[str | None, str]:
    """The class of a constant; of what stands alone, nothing."""
    found = getattr(sl, name)
    alone = callable(found) or inspect.ismodule(found)
    return (None, name) if alone else (type(found).__name__, "")


def _entry(name: str) -> str:
    """One name on its page."""
    found = getattr(sl, name)
    if isinstance(found, type):
        return f"::: {found.__module__}.{found.__qualname__}\n"
    return "\n".join([f"## {name} {{ #sl.{name} }}", "", *_signature(name, found), *_told(found), ""])


def _signature(name: str, found: Any) -> Iterator[str]:
    """How it is called; what kinds of arguments it takes is said in words."""
    if callable(found):
        signature = inspect.signature(found)
        plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
        text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
        yield from ("```python", f"sl.{name}" + re.sub(r"<class '(\w+)'>", r"\1", text), "```", "")


def _told(found: Any) -> Iterator[str]:
    """The docstring, its examples fenced."""
    yield fenced(inspect.getdoc(found) or "")
