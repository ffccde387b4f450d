"""The explorer: a page on which one can see, change and trust a schedule."""

from __future__ import annotations

from sparseloom.explorer.explore import explore

__all__ = ["explore"]
