"""Files: Matrix Market, FROSTT, and NumPy's archives and arrays."""

from __future__ import annotations

from sparseloom.tensor.io.files import read, write

__all__ = ["read", "write"]
