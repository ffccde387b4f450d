"""The processes that answer: what they may do, how they end, and that another takes their place. What they do is said by ``stub``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import sparseloom as sl
from sparseloom.explorer.explore import ASKS
from sparseloom.explorer.limits import Limits
from sparseloom.explorer.serving import EDITS, MEASUREMENTS, Explorer
from sparseloom.explorer.worker import Work, Worker

STUB = "explorer.stub:explore"
TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def stub_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def asked(worker: Worker, state: Any, ask: str = "look") -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(worker.ask({"ask": ask, "state": state}))
    return answer


def is_running(process: int) -> bool:
    """Whether there is such a process, which is not one that has ended and waits for its parent."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_child_answers_within_its_limits(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    operands = {"A": sl.asarray([[1.0, 0.0], [0.0, 2.0]], format="csr"), "x": sl.asarray([1.0, 2.0])}
    worker = Worker(Work(tmp_path, operands, Limits(memory=256 << 20, file=1 << 20), STUB), 30.0)
    try:
        assert asked(worker, "operands")["operands"] == {"A": [[2, 2], "csr"], "x": [[2], "dense(1)"]}
        where = asked(worker, "where")
        assert where["folder"] == where["temporary"] == str(tmp_path) and where["process"] != os.getpid()
        assert asked(worker, ["print", "no answer"]) == {"ok": True}
        assert asked(worker, ["take", 64]) == {"ok": True, "taken": 64 << 20}
        told, help = "this needs more memory than the explorer may take", "choose smaller sizes, a lower density, or sparse formats"
        assert asked(worker, ["take", 1024]) == {"ok": False, "error": {"text": told, "help": help}}
        assert asked(worker, ["write", 1 << 30])["error"]["text"] == "File too large"
        assert asked(worker, ["nest", 10**6])["error"]["text"] == "this is nested too deeply"
        assert asked(worker, ["raise", "x"])["error"]["text"] == "internal error: KeyError: 'x'"
        assert asked(worker, "not a number")["error"]["text"].startswith("internal error: the answer is no JSON")
        assert asked(worker, "where") == where  # all that was one process
    finally:
        worker.close()
    assert not is_running(where["process"])
    assert capfd.readouterr() == ("", "")
    assert asked(worker, "where")["error"]["text"] == "look was not answered: the explorer was closed"


def test_a_child_that_fails_is_replaced(tmp_path: Path) -> None:
    worker = Worker(Work(tmp_path, explore=STUB), 2.0)
    try:
        first = asked(worker, "where")["process"]
        told = {"text": "look took longer than 2 s, and was stopped", "help": "choose smaller sizes, or a shorter statement or schedule"}
        assert asked(worker, ["blind", 600]) == {"ok": False, "error": told}
        assert not is_running(first)
        second = asked(worker, "where")["process"]
        assert second != first
        died = asked(worker, ["signal", signal.SIGSEGV], "run")["error"]
        assert died["text"] == "run was not answered: the process that computes ended by SIGSEGV"
        assert died["help"].startswith("a new process was started: change the request and ask again")
        os.kill(asked(worker, "where")["process"], signal.SIGKILL)  # while nothing is asked
        assert asked(worker, ["exit", 3])["error"]["text"] == "look was not answered: the process that computes ended by SIGKILL"
        assert asked(worker, ["exit", 3])["error"]["text"] == "look was not answered: the process that computes ended with status 3"
    finally:
        worker.close()


def test_one_can_edit_while_something_runs_and_close_it_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with Explorer(explore=STUB, seconds=(60.0, 600.0)) as explorer:
        found: list[bytes] = []
        running = threading.Thread(target=lambda: found.append(explorer.answer({"ask": "run", "state": ["sleep", 600]})))
        running.start()
        assert json.loads(explorer.answer({"ask": "look", "state": "where"}))["ok"] and running.is_alive()
        told = json.loads(explorer.answer({"ask": "look"}, lambda: False))["error"]
        assert told["text"] == "a newer request took the place of this one"
        while not explorer._measurements._turn.locked():
            time.sleep(0.01)
        monkeypatch.setattr(explorer._measurements, "_seconds", 0.1)
        told = json.loads(explorer.answer({"ask": "time"}))["error"]
        assert told == {"text": "an earlier request is still being answered", "help": "wait for it, then ask again"}
        told = json.loads(explorer.answer({"ask": "dance"}))["error"]
        assert told["help"] == "ask is one of look, next, plan, space, examples, run, time, compare"
    running.join(timeout=60)
    assert [json.loads(answer)["ok"] for answer in found] == [False]


def test_every_question_of_the_explorer_has_a_process() -> None:
    assert {*EDITS, *MEASUREMENTS} == {"examples", *ASKS}


PARENT = """
from pathlib import Path
from tempfile import mkdtemp
from sparseloom.explorer.worker import Work, Worker
worker = Worker(Work(Path(mkdtemp()), explore="explorer.stub:explore"), 600.0)
print(worker.ask({"ask": "look", "state": "where"}).decode(), flush=True)
worker.ask({"ask": "look", "state": ["sleep", 600]})
"""


def test_children_end_and_clean_up_when_their_parent_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join((str(TESTS.parent / "src"), str(TESTS)))}
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    answer = json.loads(parent.stdout.readline())
    folder = Path(answer["folder"])
    assert folder.parent == tmp_path and is_running(answer["process"])
    parent.kill()
    parent.communicate()
    while is_running(answer["process"]) or folder.exists():  # else this test hangs
        time.sleep(0.02)
