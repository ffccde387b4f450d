"""What a user or a test may set about the runtime.

A field that is ``None`` asks the environment, every time, so that a variable set after the import still counts.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sparseloom.core.errors import ToolchainError

DEFAULT_CACHE_LIMIT = 512 << 20
DEFAULT_KEPT_MEMORY = 1 << 30
VARIABLES = {
    "SPARSELOOM_CACHE_DIR": "The folder of compiled kernels; else `$XDG_CACHE_HOME/sparseloom`, else `~/.cache/sparseloom`.",
    "SPARSELOOM_CACHE_LIMIT": "How many bytes that folder may hold, such as `200M`; 512 MiB if it is not set.",
    "SPARSELOOM_NO_CACHE": "If set, and not to 0, kernels are not kept on disk.",
    "SPARSELOOM_KEEP_MEMORY": "How many bytes of freed results are kept for new ones; a sixteenth of memory, 1 GiB at most, if not set.",
    "SPARSELOOM_TRACE": "A folder into which what every pass of the compiler makes of each kernel is written, with differences and times.",
    "SPARSELOOM_VERIFY": "If set, and not to 0, what every pass of the compiler makes is verified. The tests set it.",
    "XDG_CACHE_HOME": "Where caches of this user are, if it is a whole path.",
    "CC": "The C compiler, with arguments if there are any; else gcc, clang or cc, whichever is found first.",
    "PATH": "Where the C compiler is looked for.",
    "PYTHONPATH": "Where the explorer's processes look for packages, behind the one that holds this package.",
    "CONDA_PREFIX": "Where libomp is looked for besides the usual folders, for compilers that have no OpenMP of their own.",
    "OMP_NUM_THREADS": "How many threads kernels have without `sl.set_threads`; else one for each core that a container's quota fills.",
    "OMP_WAIT_POLICY": "How threads wait for work; if it is not set, they sleep soon.",
    "GOMP_SPINCOUNT": "How long threads of gcc's OpenMP look for work before they sleep.",
    "OMP_STACKSIZE": "The stack of each thread of a kernel.",
    "GOMP_STACKSIZE": "As `OMP_STACKSIZE`, for gcc's OpenMP.",
}
"""Every variable of the environment that the package reads, and what it does."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_LARGEST = 2**62  # bytes; more than any machine has, and still fits a 64-bit word
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(slots=True)
class Settings:
    """The settings of this process; ``settings`` below is the only one in use."""

    int32_limit: int = 2**31 - 1  # the largest position an int32 index array may hold; tests lower it
    small_conversion: int = 1 << 14  # how many values make it worth while to load a kernel for a conversion
    cache_folder: Path | None = None
    cache_limit: int | None = None
    use_cache: bool | None = None
    kept_memory: int | None = None
    verify: bool | None = None


settings = Settings()


def cache_folder() -> Path | None:
    """Where compiled kernels are kept, or ``None`` if they are not to be kept.

    The setting, else ``$SPARSELOOM_CACHE_DIR``, else ``$XDG_CACHE_HOME/sparseloom``, else ``~/.cache/sparseloom``.
    """
    if _is_set("SPARSELOOM_NO_CACHE") if settings.use_cache is None else not settings.use_cache:
        return None
    if settings.cache_folder is not None:
        return settings.cache_folder.absolute()
    if named := os.environ.get("SPARSELOOM_CACHE_DIR"):
        return Path(os.path.expanduser(named)).absolute()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(shared):  # the XDG rules: a relative path is to be ignored
        shared = os.path.expanduser("~/.cache")
    return Path(shared, "sparseloom") if os.path.isabs(shared) else None


def cache_limit() -> int:
    """How many bytes the kernel cache may hold: the setting, else ``$SPARSELOOM_CACHE_LIMIT``, else 512 MiB."""
    if settings.cache_limit is not None:
        return settings.cache_limit
    named = os.environ.get("SPARSELOOM_CACHE_LIMIT")
    return read_size(named, "SPARSELOOM_CACHE_LIMIT") if named else DEFAULT_CACHE_LIMIT


def kept_memory() -> int:
    """How many bytes of freed results stand ready for new ones: the setting, else ``$SPARSELOOM_KEEP_MEMORY``, else 1 GiB at most.

    By default no more than a sixteenth of the machine's memory is kept. It is asked whenever a kernel is loaded.
    """
    if settings.kept_memory is not None:
        return settings.kept_memory
    if named := os.environ.get("SPARSELOOM_KEEP_MEMORY"):
        return read_size(named, "SPARSELOOM_KEEP_MEMORY")
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return DEFAULT_KEPT_MEMORY
    return min(DEFAULT_KEPT_MEMORY, memory // 16)


def verifies() -> bool:
    """Whether what every pass of the compiler makes is verified: the setting, else ``$SPARSELOOM_VERIFY``. By default it is not."""
    return _is_set("SPARSELOOM_VERIFY") if settings.verify is None else settings.verify


def trace_folder() -> Path | None:
    """Where what every pass makes is written: ``$SPARSELOOM_TRACE``. By default nothing is written."""
    named = os.environ.get("SPARSELOOM_TRACE")
    return Path(os.path.expanduser(named)).absolute() if named else None


def read_size(text: str, what: str) -> int:
    """Read a number of bytes such as ``65536``, ``200M`` or ``1.5 GiB``; units are powers of 1024."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ToolchainError(f"{what} is {text!r}, which is not a size\n  help: write a number of bytes, such as 200M or 2G")
    number, unit = found.groups()
    return int(min(float(number) * (1 << _UNITS[unit.lower()]), _LARGEST))


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "") not in ("", "0")
