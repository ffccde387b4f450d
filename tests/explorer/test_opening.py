"""How the explorer is opened: from a kernel, a schedule and the command line; what the page shows first, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import webbrowser
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
import scipy.sparse as sp
from explorer.hostile import Door, body_of, status_of

import sparseloom as sl
from sparseloom.cli.main import main
from sparseloom.explorer import serving
from sparseloom.explorer.opening import fragment, step_texts

SPMV = "y(i) = A(i,j) * x(j)"
SOURCE = Path(__file__).resolve().parents[2] / "src"


def state_in(url: str) -> Any:
    """The state that an address holds."""
    _, mark, text = url.partition("#s=")
    assert mark
    return json.loads(unquote(text))


class Recorded:
    """Stands in for an explorer, and starts nothing."""

    made: list[Recorded] = []  # noqa: RUF012 - emptied by the fixture

    def __init__(self, state: Any, operands: Any, port: int = 0, **others: Any) -> None:
        self.state, self.operands, self.port, self.others = state, operands, port, others
        self.url, self.browser = f"http://127.0.0.1:{port}/{fragment(state)}", False
        self.made.append(self)

    def open_browser(self) -> None:
        self.browser = True
        if "limits" in self.others:  # the command, which waits for Ctrl-C now
            raise KeyboardInterrupt

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Recorded]:
    Recorded.made = []
    monkeypatch.setattr(serving, "Explorer", Recorded)
    return Recorded.made


def test_a_kernel_is_opened_with_its_schedule_and_operands() -> None:
    kernel = sl.program(SPMV, formats={"A": "csr"}, schedule="split(i, i0, i1, 2) parallelize(i0,CPUThread,NoRaces)")
    matrix = sp.csr_array(np.diag([1.0, 2.0, 3.0]))
    with kernel.explore(matrix, x=np.ones(3), browser=False) as explorer:
        state = state_in(explorer.url)
        assert state["statement"] == SPMV and state["formats"] == {"A": "csr"} and state["target"] == "c"
        assert [step["text"] for step in state["steps"]] == ["split(i,i0,i1,2)", "parallelize(i0,CPUThread,NoRaces)"]
        assert f'href="{explorer.url}"' in explorer._repr_html_() and explorer.url in repr(explorer)
        door = Door.of(explorer.url)
        assert status_of(door.send(door.head("GET", f"/{door.token}/"))) == 200
        seen = body_of(door.send(door.ask(json.dumps({"ask": "look", "state": state}).encode())))
        assert {tensor["name"]: (tensor["given"], tensor["shape"]) for tensor in seen["tensors"] if tensor["role"] == "operand"} == {
            "A": (True, [3, 3]), "x": (True, [3]),
        }  # fmt: skip
        assert [step["status"] for step in seen["steps"]] == ["legal", "legal"]
    explorer.close()  # once more does no harm
    with pytest.raises(ConnectionRefusedError):
        door.send(b"")


def test_kernels_of_every_kind_have_a_state(recorded: list[Recorded]) -> None:
    matrix = sp.csr_array(np.diag([1.0, 2.0, 3.0]))
    sl.program(SPMV, {"A": "csr"}, "").explore(port=8080)
    assert (recorded[-1].state["steps"], recorded[-1].operands, recorded[-1].port, recorded[-1].browser) == ([], {}, 8080, True)
    i, j = sl.indices("i j")
    y, A, x = sl.zeros(3, name="y"), sl.asarray(matrix, name="A"), sl.asarray(np.ones(3), name="x")
    y[i] = A[i, j] * x[j]
    y.schedule().split("i", "i0", "i1", 2).explore(browser=False)
    assert recorded[-1].state["steps"] == [{"text": "split(i,i0,i1,2)", "on": True}] and not recorded[-1].browser
    assert {name: tensor.shape for name, tensor in recorded[-1].operands.items()} == {"A": (3, 3), "x": (3,)}
    B = np.ones((500, 500))
    sl.program("y(i) = A(i,j) * B(j,k) * x(k)").explore(B, B, np.ones(500))  # which runs in two statements
    assert recorded[-1].state["statement"] == "y(i) = A(i,j) * B(j,k) * x(k)" and recorded[-1].state["steps"] == []
    sl.program(SPMV, {"A": "csr"}, semiring="min_plus").explore()
    assert recorded[-1].state["semiring"] == "min_plus"
    with pytest.raises(sl.NotationError, match="the explorer knows semirings by name"):
        sl.program(SPMV, {"A": "csr"}, semiring=sl.Semiring("maximum", "add", -5.0)).explore()
    with pytest.raises(sl.NotationError, match="the explorer shows one statement, and the program has 2\n  help: explore them one by one"):
        sl.program("t(k) = A(k,l) * x(l)\ny(i) = A(i,k) * t(k)").explore()
    with pytest.raises(sl.NotationError, match="needs x, and nothing was given for it"):
        sl.program(SPMV, {"A": "csr"}).explore(matrix)


def test_steps_are_told_one_by_one() -> None:
    assert step_texts("split(i, i0,i1, 4); # a comment\n reorder(i1, i0)") == ["split(i,i0,i1,4)", "reorder(i1,i0)"]
    assert step_texts("plain") == step_texts("") == []


def test_the_command_opens_with_what_it_is_given(recorded: list[Recorded], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.npz"
    sp.save_npz(file, sp.csr_array(np.eye(3)))
    assert main(["explore"]) == 0
    assert (recorded[-1].state, recorded[-1].operands, recorded[-1].browser) == (None, {}, True)
    options = ["-s", "split(i,i0,i1,4)", "-d", "k:7", "--density", "0.5", "--memory", "1G", "--port", "8081"]
    assert main(["explore", "C(i,k) = A(i,j) * B(j,k)", "-f", "C:csr", "-i", f"A={file}", *options]) == 0
    found = recorded[-1]
    assert found.state["formats"] == {"A": "csr", "C": "csr"} and found.state["sizes"] == {"k": 7} and found.state["density"] == 0.5
    assert found.operands["A"].shape == (3, 3) and (found.port, found.others["limits"].memory, found.closed) == (8081, 1 << 30, True)
    assert main(["explore", f"A: csr\n{SPMV}\n  split(i,i0,i1,4)"]) == 0  # as kernel.plan prints it
    assert recorded[-1].state["formats"] == {"A": "csr"} and recorded[-1].state["steps"] == [{"text": "split(i,i0,i1,4)", "on": True}]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-f", "A:csr"], "there is no statement for -f, -s, -i, -d or --semiring\n  help: write it in front of them"),
        ([SPMV, "-f", "B:csr"], "-f names B, but the statement has y, A, x"),
        ([SPMV, "-f", "A:coo(3)"], "the format 'coo(3)' is for tensors of order 3, but this tensor has order 2"),
        ([SPMV, "-s", "dance(i)"], None),
        ([SPMV, "-i", "A=none.mtx"], "cannot open none.mtx: No such file or directory"),
        ([SPMV, "--density", "nan"], "--density is a number from 0 to 1, not nan"),
        ([SPMV, "--memory", "much"], "--memory is 'much', which is not a size\n  help: write a number of bytes, such as 200M or 2G"),
        (["--port", "65536"], "--port is a number from 0 to 65535, not 65536\n  help: leave it away, and any free port is taken"),
        (["t(k) = x(k)\ny(i) = t(i)"], "the explorer shows one statement, and the program has 2\n  help: explore them one by one"),
    ],
)
def test_the_command_refuses_before_it_serves(
    recorded: list[Recorded], arguments: list[str], told: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", *arguments]) == 2 and not recorded
    *_, said = capsys.readouterr().err.rpartition("sparseloom: ")
    assert said.rstrip("\n") == told if told else "there is no step 'dance'" in said


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["explore", "--port", str(port)]) == 2
    help = "choose another --port, or leave it away"
    assert capsys.readouterr().err == f"sparseloom: cannot serve on port {port}: Address already in use\n  help: {help}\n"


def test_the_command_serves_until_ctrl_c_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "sparseloom", "explore", SPMV, "-f", "A:csr", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("the explorer is at http://127.0.0.1:") and line.endswith(" (Ctrl-C ends it)\n")
    door = Door.of(line.split()[4])
    assert b"<html" in door.send(door.head("GET", f"/{door.token}/"))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "") and process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_the_browser_is_opened_on_the_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: SimpleQueue[str] = SimpleQueue()
    monkeypatch.setattr(webbrowser, "open", opened.put)
    monkeypatch.setattr(serving.Worker, "start", lambda worker: None)
    with serving.Explorer({"statement": SPMV}) as explorer:
        explorer.open_browser()
        assert opened.get(timeout=60) == explorer.url
    assert state_in(explorer.url) == {"statement": SPMV}
