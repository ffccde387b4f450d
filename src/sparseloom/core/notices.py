"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings

from sparseloom.core.errors import SparseloomWarning


def notify(text: str, category: type[SparseloomWarning] = SparseloomWarning) -> None:
    """Warn at the innermost line outside this package, however deep inside it the cause was found."""
    package = __name__.partition(".")[0]
    frame, depth = sys._getframe(0).f_back, 2
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == package:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, category, stacklevel=depth)
