"""Files: Matrix Market, FROSTT, binsparse, MATLAB's, and NumPy's archives and arrays."""

from __future__ import annotations

from sparseloom.io.files import read, write

__all__ = ["read", "write"]
