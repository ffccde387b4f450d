"""For mkdocstrings: the examples of docstrings in fences, as text they would run together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from griffe import Extension, Object

sys.path.insert(0, str(Path(__file__).parent))  # mkdocstrings loads this file alone
from fences import fenced


class FencedExamples(Extension):
    """For mkdocstrings: fences the examples of every docstring, which would run together as text."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
