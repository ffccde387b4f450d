"""The table of differences from NumPy: what the campaign forgives is what the page says."""

from __future__ import annotations

import re
from pathlib import Path

from attack.function_differences import DIFFERENCES, rows

from sparseloom.surface import TABLE
from sparseloom.tensor.table import standard


def test_the_page_and_the_campaign_have_the_same_rows() -> None:
    assert rows() == list(DIFFERENCES)


def test_the_campaign_calls_every_function() -> None:
    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("function_*.py"))
    words = set(re.findall(r"\w+", texts))
    missing = {name for name in (*TABLE, *standard()) if name not in words}
    assert missing <= {"empty", "builder"}, "functions that no call is drawn of: add them to the grammar, tests/attack/function_*.py"
