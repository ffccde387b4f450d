"""The other ways to compute the same thing. One that is not installed is left out, and that is said."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

MODULES = {"SciPy": "scipy_calls", "Numba": "numba_loops", "MKL": "mkl_calls", "GraphBLAS": "graphblas_calls"}


def find_peers(*names: str) -> tuple[dict[str, ModuleType], list[str]]:
    """Those of these peers that are at hand, by name, and a line for each that is missing."""
    found: dict[str, ModuleType] = {}
    missing = []
    for name in names:
        try:
            found[name] = import_module(MODULES[name])
        except ImportError as why:
            missing.append(f"{name} is left out: {why}")
    return found, missing
