"""The table of differences from NumPy: what the campaign forgives is what the page says."""

from __future__ import annotations

from attack.function_differences import DIFFERENCES, rows


def test_the_page_and_the_campaign_have_the_same_rows() -> None:
    assert rows() == list(DIFFERENCES)
