"""The other ways to compute the same thing. One that is not installed is left out, and that is said."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

MODULES = {"SciPy": "scipy_calls", "Numba": "numba_loops", "MKL": "mkl_calls"}


def find_peers() -> tuple[dict[str, ModuleType], list[str]]:
    """The peers at hand, by name, and a line for each that is missing."""
    found: dict[str, ModuleType] = {}
    missing = []
    for name, module in MODULES.items():
        try:
            found[name] = import_module(module)
        except ImportError as why:
            missing.append(f"{name} is left out: {why}")
    return found, missing
