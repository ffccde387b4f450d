"""Compile kernels with the C compiler and call them on NumPy arrays, or run them in the interpreter, in the same way."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparseloom.loops.interpret import KernelStatus, run
from sparseloom.loops.nodes import Function, Role, Status
from sparseloom.loops.verify import verify
from sparseloom.targets.c import C, translation_unit
from sparseloom.toolchain.loading import ENTRY, TAKES_ADDRESS, Library
from sparseloom.toolchain.shelf import connect

FLAGS = (
    "-std=gnu11 -O3 -march=native -ffp-contract=fast -fno-math-errno -fno-trapping-math -fno-unroll-loops -fcx-fortran-rules -fPIC -shared"
).split()
WARNINGS = "-Wall -Wextra -Werror -Wno-unused-parameter -Wno-unused-function -Wno-unused-variable".split()


def build(text: str, folder: Path, *flags: str) -> ctypes.CDLL:
    """Compile C text into a library; a warning is an error."""
    source, library = folder / "kernels.c", folder / "kernels.so"
    source.write_text(text, encoding="utf-8")
    openmp = ["-fopenmp"] if "#pragma omp" in text else []
    command = ["gcc", *FLAGS, *WARNINGS, *openmp, *flags, str(source), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000] + "\n" + text[:8000]
    return ctypes.CDLL(str(library))


def compile_all(functions: Sequence[Function], folder: Path, *flags: str) -> list[Any]:
    """The entries of several kernels, compiled in one file."""
    for function in functions:
        verify(function)
    built = build(translation_unit([(f, f"entry{k}") for k, f in enumerate(functions)]), folder, *flags)
    library = Library(built._name)
    connect(library, C.allocator)
    entries = [library.function(f"entry{k}", ENTRY) for k in range(len(functions))]
    for entry in entries:
        entry.give_back = library.function(C.allocator.free, TAKES_ADDRESS)
    return entries


def call(entry: Any, function: Function, arguments: Sequence[Any], cancelled: Any = None) -> list[Any]:
    """Call a compiled kernel as the interpreter is called; a status other than OK is raised, with nothing handed out."""
    words = (ctypes.c_void_p * (1 + len(arguments)))()
    caller = (ctypes.c_void_p * 2)(ctypes.cast(cancelled, ctypes.c_void_p)) if cancelled is not None else None
    words[0] = ctypes.addressof(caller) if caller is not None else None
    for k, (param, argument) in enumerate(zip(function.params, arguments, strict=True), 1):
        match param.role:
            case Role.INPUT | Role.OUTPUT:
                words[k] = argument.ctypes.data
            case Role.SIZE:
                words[k] = ctypes.c_void_p(argument)
    entry.argtypes, entry.restype = [ctypes.c_void_p], ctypes.c_int32
    status = Status(entry(ctypes.addressof(words)))
    if status is not Status.OK:
        slots = [k for k, p in enumerate(function.params, 1) if p.role in (Role.GROWN, Role.COUNT)]
        assert all(words[k] is None for k in slots), "a kernel that failed hands out nothing"
        raise KernelStatus(status)
    count = next((words[k] or 0 for k, p in enumerate(function.params, 1) if p.role is Role.COUNT), 0)
    answers = []
    for k, (param, argument) in enumerate(zip(function.params, arguments, strict=True), 1):
        match param.role:
            case Role.GROWN:
                answers.append(_taken(words[k] or 0, count, param.target.dtype, entry.give_back))
            case Role.COUNT:
                answers.append(words[k] or 0)
            case _:
                answers.append(argument)
    return answers


def _taken(address: int, count: int, dtype: Any, give_back: Any) -> np.ndarray[Any, Any]:
    """Copy ``count`` elements that a kernel allocated, and free them."""
    copy = np.frombuffer(ctypes.string_at(address, count * dtype.itemsize), dtype).copy()
    give_back(address)
    return copy


def both_ways(function: Function, arguments: Sequence[Any], folder: Path, **how: Any) -> tuple[list[Any], list[Any]]:
    """The answers of the compiled kernel and of the interpreter, each on its own copy of the arguments."""
    (entry,) = compile_all([function], folder)
    copies = [[a.copy() if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2)]
    return call(entry, function, copies[0]), run(function, copies[1], **how)
