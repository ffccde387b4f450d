"""``sparseloom info``: what was found on this machine, for a look and for reports."""

from __future__ import annotations

import argparse
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

from sparseloom import __version__
from sparseloom.cli import cache
from sparseloom.cli.arguments import Subcommands, add_subcommand
from sparseloom.core.errors import DeviceError, ToolchainError
from sparseloom.core.processor import cpu_flags
from sparseloom.core.system import usable_cores
from sparseloom.programs.cuda import nvrtc
from sparseloom.programs.cuda.device import device
from sparseloom.toolchain.cache import kernel_cache
from sparseloom.toolchain.compilers import Compiler, find_compiler
from sparseloom.toolchain.openmp import has_threads, with_openmp
from sparseloom.toolchain.teams import get_threads

ABOUT = "Show versions, the C compiler and its flags, the CPU's vector features, what there is of CUDA, and the kernel cache."
EXAMPLES = """
sparseloom info
CC=clang sparseloom info     what would be used with another compiler
"""
_VECTORS = ("sse4_2", "avx", "fma", "avx2", "avx512f", "avx512bw", "avx512vl", "asimd", "sve", "sve2")


def add_to(subcommands: Subcommands) -> None:
    """Declare the subcommand."""
    add_subcommand(subcommands, "info", execute, ABOUT, EXAMPLES)


def execute(options: argparse.Namespace) -> int:
    """Print the facts. A missing compiler is a fact too, not a failure."""
    python = f"{platform.python_version()}, NumPy {_version('numpy')}, SciPy {_version('scipy')}"
    print(f"sparseloom {__version__}\nPython     {python}\nsystem     {platform.system()} {platform.machine()}, {usable_cores()} CPUs")
    features = set(cpu_flags().split())
    print(f"vectors    {' '.join(name for name in _VECTORS if name in features) or 'unknown'}")
    try:
        compiler = find_compiler()
    except ToolchainError as missing:
        print(f"compiler   {missing}")
    else:
        print(f"compiler   {' '.join((compiler.path, *compiler.arguments))}: {_compiler_version(compiler)}")
        print(f"flags      {' '.join(compiler.flags)}")
        print(f"openmp     {_openmp(compiler)}")
    print(f"cuda       {_nvrtc()}; {_device()}")
    print("cache")
    print("\n".join(f"  {line}" for line in cache.lines(kernel_cache())))
    return 0


def _openmp(compiler: Compiler) -> str:
    """By which flags kernels get threads, and how many."""
    try:
        found = with_openmp(compiler, kernel_cache())
    except ToolchainError as problem:
        return str(problem).partition("\n")[0]
    if not has_threads(found):
        return "none, so kernels run on one thread (macOS: brew install libomp; Debian with clang: apt install libomp-dev)"
    return f"{' '.join(found.openmp)}; {get_threads()} threads"


def _nvrtc() -> str:
    """Whether kernels for CUDA can be compiled."""
    try:
        return f"NVRTC {'.'.join(map(str, nvrtc.version()))}"
    except ToolchainError:
        return "no NVRTC (pip install 'sparseloom[cuda]')"


def _device() -> str:
    """Whether they can be run."""
    try:
        found = device()
        return f"{found.title}, {found.architecture}"
    except DeviceError as missing:
        return str(missing).partition("\n")[0]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _compiler_version(compiler: Compiler) -> str:
    """The first line of what the compiler says about itself."""
    try:
        said = subprocess.run([compiler.path, *compiler.arguments, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"it cannot be started ({problem})"
    return (said.stdout or said.stderr).strip().split("\n")[0] or "it does not tell its version"
