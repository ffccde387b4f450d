"""Kernels written by hand, in the shape the C target gives them, stand-ins for compilers, and work in forked children."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

SPMV = """
#include <stdint.h>
int32_t entry(void **args)
{
    const int32_t *restrict pos = args[1], *restrict crd = args[2];
    const double *restrict vals = args[3], *restrict x = args[4];
    double *restrict y = args[5];
    int64_t n = (int64_t)args[6];
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t p = pos[i]; p < pos[i + 1]; p++)
            sum += vals[p] * x[crd[p]];
        y[i] = sum;
    }
    return 0;
}
"""

ENDLESS = """
#include <stdint.h>
#include <time.h>
int32_t entry(void **args)
{
    int32_t (*cancelled)(void) = *(int32_t (**)(void))args[0];
    struct timespec pause = {0, 10000000};
    *(volatile int64_t *)args[1] = 1;
    while (!cancelled())
        nanosleep(&pause, 0);
    return 4;
}
"""

# Interrupts itself, asks `args[1]` times whether to stop, and hands out how often it was told to go on.
SELF_INTERRUPTING = """
#include <signal.h>
#include <stdint.h>
#include <unistd.h>
int32_t entry(void **args)
{
    int32_t (*cancelled)(void) = *(int32_t (**)(void))args[0];
    kill(getpid(), SIGINT);
    for (int64_t n = 0; n < (int64_t)args[1]; n++) {
        usleep(1000);
        if (cancelled())
            return 4;
        args[2] = (void *)(n + 1);
    }
    return 0;
}
"""

# Asks `args[1]` times whether to stop, and hands out how often it was told to go on.
POLLING = SELF_INTERRUPTING.replace("    kill(getpid(), SIGINT);\n", "")

# With an allocator of its own: a header in front, which others do not know.
MAKES_SQUARES = """
#include <stdint.h>
#include <stdlib.h>
void give_back(void *array)
{
    free((char *)array - 64);
}
int32_t entry(void **args)
{
    int64_t n = (int64_t)args[1];
    char *memory = calloc(64 + n * sizeof(double), 1);
    if (!memory)
        return 1;
    double *squares = (double *)(memory + 64);
    for (int64_t i = 0; i < n; i++)
        squares[i] = (double)(i * i);
    args[2] = squares;
    args[3] = (void *)n;
    return 0;
}
"""

THREADED_SUM = """
#include <stdint.h>
int32_t entry(void **args)
{
    int64_t sum = 0;
    #pragma omp parallel for num_threads(3) reduction(+ : sum)
    for (int64_t i = 0; i < (int64_t)args[1]; i++)
        sum += i;
    args[2] = (void *)sum;
    return 0;
}
"""


def returning(status: int) -> str:
    """A kernel that does nothing and returns this status."""
    return f"#include <stdint.h>\nint32_t entry(void **args) {{ (void)args; return {status}; }}\n"


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, refusing: tuple[str, ...] = ()) -> Callable[[], list[str]]:
    """Make ``$CC`` a compiler that notes how it is called and does not know some flags; return a function that reads the notes."""
    real, notes, program = shutil.which("gcc") or shutil.which("cc"), folder / "calls", folder / "noting cc"
    refusals = "".join(f'case "$*" in *" {flag} "*) echo "unknown argument {flag}" >&2; exit 1;; esac\n' for flag in refusing)
    program.write_text(f'#!/bin/sh\necho "$*" >> "{notes}"\nset -- "" "$@"\n{refusals}shift\nexec {real} "$@"\n')
    program.chmod(stat.S_IRWXU)
    monkeypatch.setenv("CC", f"'{program}'")
    return lambda: notes.read_text().splitlines() if notes.exists() else []


def in_child(work: Callable[[], bool]) -> bool:
    """Whether some work succeeds in a forked child; one that hangs is ended by an alarm."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        succeeded = False
        try:
            succeeded = work()
        finally:
            os._exit(0 if succeeded else 1)
    return os.waitpid(child, 0)[1] == 0
