"""The sanitizers: how a program is compiled and run under each, and whether this machine has it.

A tool is trusted only after a trial: it must pass a sound program and report a planted fault.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 120
_COMMON = "-std=gnu11 -g -fno-omit-frame-pointer -fno-math-errno -fno-trapping-math -w".split()
_SOUND = """
#include <stdlib.h>
int main(int count, char **words) {
  long *array = malloc(4 * sizeof(long)), sum = 0;
  for (int k = 0; k < 4; k++) array[k] = k;
#pragma omp parallel for
  for (int k = 0; k < 4; k++) array[k] += 1;
  for (int k = 0; k < 4; k++) sum += array[k];
  %s
  free(array);
  return sum == 77;
}
"""


@dataclass(frozen=True)
class Tool:
    """One sanitizer."""

    name: str
    what: str
    compilers: tuple[str, ...]
    flags: tuple[str, ...]
    kinds: tuple[str, ...]  # which kernels run under it
    fault: str  # a planted one, which must be reported
    install: str
    options: tuple[tuple[str, str], ...] = ()
    prefix: tuple[str, ...] = field(default=())  # what stands before the program

    @property
    def compiler(self) -> str | None:
        """The compiler that is used, or None if none of them is here."""
        return next((path for name in self.compilers if (path := shutil.which(name))), None)

    def build(self, source: Path) -> subprocess.CompletedProcess[str]:
        """Compile a program beside its source. A tool that runs no kernels with threads runs all of them on one."""
        own = ["-fopenmp"] if "parallel" in self.kinds else ["-fopenmp-simd"]
        own += ["-fcx-fortran-rules"] if "clang" not in str(self.compiler) else []
        command = [str(self.compiler), *_COMMON, *self.flags, *own, "-o", str(source.with_suffix("")), str(source), "-lm"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def run(self, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program; one that takes too long is ended and counts as a report."""
        words = [*self.prefix, str(program.with_suffix("")), *arguments]
        environment = {**os.environ, **dict(self.options), "OMP_NUM_THREADS": "4", "LC_ALL": "C"}
        try:
            return subprocess.run(words, capture_output=True, text=True, errors="replace", check=False, env=environment, timeout=SECONDS)
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(late.cmd, 124, "", f"no end after {SECONDS} s")

    def missing(self, folder: Path) -> str | None:
        """What is not here, or None if the tool works: it passes a sound program and reports a planted fault."""
        for program in self.prefix[:1]:
            if shutil.which(program) is None:
                return f"there is no {program}; {self.install}"
        if self.compiler is None:
            return f"there is no {' or '.join(self.compilers)}; {self.install}"
        for name, fault in (("sound", ""), ("planted", self.fault)):
            source = folder / f"{self.name}-{name}.c"
            source.write_text(_SOUND % fault, encoding="utf-8")
            built = self.build(source)
            if built.returncode:
                return f"{self.compiler} cannot build for it ({_first(built.stderr)}); {self.install}"
            done = self.run(source)
            if (done.returncode != 0) != bool(fault):
                said = f"reports a sound program: {_first(done.stderr)}" if not fault else "does not report a planted fault"
                return f"it {said}; {self.install}"
        return None


def _first(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip("= \t")), "it says nothing")


SERIAL = ("statement", "narrow", "scheduled", "wide")
_UNWRITTEN = "volatile long *none = malloc(8); if (*none == 3) abort(); free((void *)none);"
_CLANG = "apt install clang libomp-dev libclang-rt-14-dev"
_ARCHER = tuple(str(path) for path in sorted(Path("/usr/lib").glob("llvm-*/lib/libarcher.so")))[-1:]
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "asan", "addresses, undefined behaviour and leaks", ("gcc", "clang"),
            ("-O1", "-march=native", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
            ("statement", "narrow", "scheduled", "wide", "parallel"), "sum += array[4];", "apt install gcc",
            (
                ("ASAN_OPTIONS", "detect_stack_use_after_return=1:allocator_may_return_null=1:max_allocation_size_mb=1000"),
                ("UBSAN_OPTIONS", "print_stacktrace=1"),
            ),
        ),
        Tool(
            "msan", "memory that nobody wrote", ("clang",),
            ("-O1", "-march=native", "-fsanitize=memory", "-fsanitize-memory-track-origins"), SERIAL, _UNWRITTEN, _CLANG,
        ),
        Tool(
            "valgrind", "memory that nobody wrote, by valgrind", ("gcc", "clang"), ("-O1",), SERIAL, _UNWRITTEN, "apt install valgrind",
            prefix=("valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite"),
        ),
        Tool(
            "tsan", "races, with libomp and Archer", ("clang",), ("-O1", "-march=native", "-fsanitize=thread"), ("parallel",),
            "_Pragma(\"omp parallel for\") for (int k = 0; k < 4000; k++) sum += k;", _CLANG,
            (("TSAN_OPTIONS", "ignore_noninstrumented_modules=1"), *(("OMP_TOOL_LIBRARIES", path) for path in _ARCHER)),
        ),
    )
}  # fmt: skip


def reports(tool: Tool, source: Path, count: int) -> dict[int, str]:
    """What is reported, by kernel: the program is run as a whole, and only if that fails, kernel by kernel."""
    if tool.run(source).returncode == 0:
        return {}
    found = {}
    for k in range(count):
        done = tool.run(source, str(k))
        if done.returncode != 0:
            found[k] = f"exit code {done.returncode}\n{done.stderr[:3000]}"
    return found or {-1: "the program fails, but none of its kernels does alone"}


def named(names: Sequence[str] | None) -> list[Tool]:
    """The tools of these names; all of them, if none is named."""
    return [TOOLS[name] for name in names or TOOLS]
