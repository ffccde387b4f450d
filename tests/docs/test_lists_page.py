"""docs/lists.md is what the code makes it; ``SPARSELOOM_GOLDEN=write`` writes it again. Every public name has an example that runs."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import sys
from pathlib import Path

import numpy as np
from docs.lists_page import page

import sparseloom as sl
from sparseloom.core.settings import VARIABLES
from sparseloom.surface import TABLE
from sparseloom.targets.registry import TARGETS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "lists.md"
READ = re.compile(r"""environ(?:\.get\(|\[)"(\w+)"|_is_set\("(\w+)"\)|name in os\.environ for name in \(([^)]*)\)""")


def test_the_page_is_that_of_the_code() -> None:
    text = page()
    if os.environ.get("SPARSELOOM_GOLDEN") == "write":
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "docs/lists.md is old; write it again with SPARSELOOM_GOLDEN=write"


def test_every_variable_that_is_read_is_listed() -> None:
    files = list((ROOT / "src").rglob("*.py"))
    found = [match for file in files for match in READ.findall(file.read_text(encoding="utf-8"))]
    asked = {target.toolchain.variable for target in TARGETS.values() if target.toolchain is not None}
    assert {name for match in found for name in re.findall(r"\w+", " ".join(match))} | asked == set(VARIABLES)


def test_every_public_name_has_an_example_that_runs() -> None:
    told: list[str] = []
    for name in sl.__all__:
        if name == "__version__":
            continue
        text = inspect.getdoc(getattr(sl, name)) or ""  # of a constant, that of its class, which shows them all
        examples = doctest.DocTestParser().get_doctest(text, {"np": np, "sl": sl}, name, None, 0)
        shown = "\n".join(example.source + example.want + (example.exc_msg or "") for example in examples.examples)
        if not re.search(rf"\b{name}\b", shown):
            told.append(f"{name} has no example in its docstring\n")
        if name in TABLE and name not in vars(sys.modules[TABLE[name].call.__module__]):  # else those of the module's docstrings run
            doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=told.append)
    assert not told, "".join(told)
