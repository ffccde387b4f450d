"""What the numbers were measured with."""

from __future__ import annotations

import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from sparseloom.core.system import usable_cores
from sparseloom.toolchain.compilers import find_compiler


def machine() -> dict[str, Any]:
    """The processor, the compiler and the versions of this run."""
    compiler = find_compiler()
    said = subprocess.run([compiler.path, "--version"], capture_output=True, text=True, check=True).stdout.partition("\n")[0]
    return {
        "when": time.strftime("%Y-%m-%d %H:%M"),
        "cpu": _cpu_name(),
        "cores": usable_cores(),
        "compiler": said,
        "flags": " ".join(compiler.flags),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": version_of("scipy") or "not installed",
    }


def version_of(package: str) -> str | None:
    """The version of an installed package, if it is."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())
