"""The dash for the standard input and output, outputs that are looked at before work begins, and what is told meanwhile."""

from __future__ import annotations

import gzip
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.test_process import SOURCE, SPMV, start

from sparseloom.cli import terminal
from sparseloom.cli.main import main
from sparseloom.core.starting import is_command
from sparseloom.io import read, write
from sparseloom.io.source import WATCHER
from sparseloom.tensor import asarray

A = np.array([[5.0, 0], [6, 7]])


class Bytes:
    """A stream of text over one of bytes."""

    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)

    def write(self, text: str) -> int:
        return self.buffer.write(text.encode())

    def flush(self) -> None:
        self.buffer.flush()

    def isatty(self) -> bool:
        return False


def through(monkeypatch: pytest.MonkeyPatch, given: bytes, *arguments: str) -> bytes:
    """What a command writes to its output."""
    out = Bytes()
    monkeypatch.setattr(sys, "stdin", Bytes(given))
    monkeypatch.setattr(sys, "stdout", out)
    assert main(arguments) == 0
    monkeypatch.undo()
    return out.buffer.getvalue()


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".tns", ".tns.gz", ".npz", ".npy", ".mat", ".h5"])
def test_the_standard_input_is_known_by_how_it_begins(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"a{suffix}"
    write(path, asarray(A, format="dense" if suffix == ".npy" else "csr"))
    made = tmp_path / "b.npz"
    made.write_bytes(through(monkeypatch, path.read_bytes(), "convert", "-", "npz:-", "-f", "csr"))
    np.testing.assert_array_equal(read(made).to_numpy(), A)


def test_text_is_written_unless_another_kind_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.mtx", asarray(A, format="csr"))
    text = (tmp_path / "a.mtx").read_bytes()
    assert through(monkeypatch, text, "convert", "-", "-") == text
    assert gzip.decompress(through(monkeypatch, text, "convert", "mtx:-", "mtx.gz:-")) == text
    result = through(monkeypatch, text, "run", "y(i) = A(i,j)", "-i", "A=-", "-o", "y=-", "-q")
    assert result == b"%%MatrixMarket matrix array real general\n2 1\n5.0\n13.0\n"


@pytest.mark.parametrize(("arguments", "told"), [
    (("run", SPMV, "-i", "A=none.mtx", "-o", "y=/nowhere/y.mtx"), "cannot open /nowhere/y.mtx: No such file or directory\n"),
    (("run", SPMV, "-i", "A=none.mtx", "-o", "y=y.txt"), "the name 'y.txt' does not say what kind of file it is; names end in "),
    (("run", "T(i,j,k) = A(i,j) * x(k)", "-i", "A=none.mtx", "-o", "t.mtx"), "t.mtx cannot hold T, which has 3 modes\n"),
    (("run", SPMV, "-i", "A=-", "-i", "x=-"), "-i gives the standard input to A and to x, but it can be read only once\n"),
    (("convert", "none.mtx", "/"), "the name '' does not say what kind of file it is; names end in "),
    (("convert", "none.mtx", "/nowhere/a.mtx"), "cannot open /nowhere/a.mtx: No such file or directory\n"),
])  # fmt: skip
def test_outputs_are_looked_at_before_work_begins(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"sparseloom: {told}")
    assert not list(tmp_path.iterdir())


def test_a_bad_standard_input_is_named_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", Bytes(b"1 1 x\n"))
    assert main(["convert", "-", "-"]) == 2
    assert capsys.readouterr().err == "sparseloom: cannot read the standard input, line 1: 'x' is not a number\n    1 1 x\n"


def test_a_terminal_is_told_how_far_a_long_reading_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(terminal, "PATIENCE", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.working("reading a.mtx"):
        tell: Any = WATCHER.get()
        tell(30, 100)
        time.sleep(0.6)
    assert "reading a.mtx ... 30 %," in screen.getvalue()
    monkeypatch.setattr(terminal, "PATIENCE", 5.0)
    screen.truncate(0)
    with terminal.working("soon done"):
        pass
    assert "soon done" not in screen.getvalue()


def test_an_interrupt_while_a_file_is_read_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    rows = "".join(f"{k % 1000 + 1} {k // 1000 + 1} {k}.5e0\n" for k in range(200_000))
    path.write_text(f"%%MatrixMarket matrix coordinate real general\n1000 4000 4000000\n{rows * 20}")
    process = start("convert", str(path), str(tmp_path / "b.npz"))
    opened = Path(f"/proc/{process.pid}/fd")
    while process.poll() is None and not any(link.exists() and link.resolve() == path for link in opened.iterdir()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=60)
    assert (process.returncode, out, told) == (130, "", "sparseloom: stopped\n")
    assert sorted(tmp_path.iterdir()) == [path]


def test_an_interrupt_while_the_command_is_loaded_is_quiet() -> None:
    assert is_command(["-m"], ["/usr/bin/python", "-m", "sparseloom", "info"])
    assert is_command(["/usr/bin/sparseloom", "info"], ["/usr/bin/python", "/usr/bin/sparseloom", "info"])
    assert not is_command(["-m"], ["/usr/bin/python", "-m", "mine"]) and not is_command([], [])
    assert not is_command(["mine.py"], ["/usr/bin/python", "mine.py", "-m", "sparseloom"])
    ours = "import sys, os; sys.argv[0] = '-m'; sys.orig_argv[1:] = ['-m', 'sparseloom']; import sparseloom; os.kill(os.getpid(), 2)"
    done = subprocess.run([sys.executable, "-c", ours], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
