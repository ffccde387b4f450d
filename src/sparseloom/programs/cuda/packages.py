"""The optional packages behind ``target="cuda"``, loaded when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sparseloom.core.errors import ToolchainError

HELP = "pip install 'sparseloom[cuda]'"


def package(name: str) -> Any:
    """A package by name, or a ToolchainError that says how to install it."""
    try:
        return import_module(name)
    except ImportError as missing:
        raise ToolchainError(f"kernels for CUDA need {name}, which cannot be loaded: {missing}\n  help: {HELP}") from None
