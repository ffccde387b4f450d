"""The command as a process: how it starts, and how it ends when others end it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import sparseloom

SOURCE = Path(__file__).resolve().parents[2] / "src"
SPMV = "y(i) = A(i,j) * x(j)"


def start(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "sparseloom", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_the_module_is_the_command() -> None:
    out, told = start("--version").communicate(timeout=60)
    assert (out, told) == (f"sparseloom {sparseloom.__version__}\n", "")


def test_a_mistake_gives_no_traceback() -> None:
    process = start("run", SPMV, "-i", "A=none.mtx")
    assert process.communicate(timeout=60) == ("", "sparseloom: cannot open none.mtx: No such file or directory\n")
    assert process.returncode == 2


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = start("compile", SPMV, "-f", "A:csr")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 128 + signal.SIGPIPE
    process.stderr.close()


def test_an_interrupt_ends_it_with_status_130() -> None:
    process = start("run", SPMV, "-f", "A:csr", "-d", "i:1000000", "-d", "j:10", "--density", "0.1", "--target", "interpret")
    assert process.stderr is not None
    assert process.stderr.readline().startswith("A  1000000 x 10,")
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert told.splitlines()[-1] == "sparseloom: stopped"
