"""Hostile requests: each is answered with an error or harmlessly, in the child alone; the server lives, and nothing is written.

``SPARSELOOM_HOSTILE`` says how many are sent; ``make hostile N=50000`` sends more under a new seed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from explorer.hostile import MARK, Door, Trial, body_of, costly, crowd, look, status_of, trials

from sparseloom.explorer import server as serving
from sparseloom.explorer.serving import Explorer

COUNT = int(os.environ.get("SPARSELOOM_HOSTILE") or "2000")
PAGE = Path(serving.__file__).parent / "page"
# What the parent must not do while it serves: load, compile or run anything, or change a file.
WATCHED = frozenset(
    "exec compile import ctypes.dlopen ctypes.dlsym os.system os.exec os.posix_spawn os.fork subprocess.Popen open os.mkdir os.rename "
    "os.remove os.rmdir os.link os.symlink os.truncate shutil.rmtree marshal.loads pickle.find_class code.__new__".split()
)


class Watch:
    """Writes down what this process does, as Python's audit events tell it. A hook cannot be taken away, but it can look away."""

    def __init__(self) -> None:
        self.looks = False
        self.seen: list[tuple[str, tuple[Any, ...]]] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if self.looks and event in WATCHED:
            self.seen.append((event, given))


def is_allowed(event: str, given: tuple[Any, ...]) -> bool:
    """A child may be started anew, with pipes to it and the null device, and a file of the page may be read."""
    match event, given:
        case "subprocess.Popen", (_, [*command], *_):
            return command[1:] == ["-P", "-m", "sparseloom.explorer.child", "sparseloom.explorer:explore"]
        case "open", (int() | "/dev/null", *_):
            return True
        case "open", (str(path), "r" | "rb", *_):
            return Path(path).parent == PAGE
    return False


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Explorer]:
    """An explorer whose whole world is one folder."""
    for name, variable in (("tmp", "TMPDIR"), ("home", "HOME"), ("cache", "XDG_CACHE_HOME"), ("here", None)):
        (tmp_path / name).mkdir()
        if variable is not None:
            monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.setenv("SPARSELOOM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(serving, "LONGEST_READ", 3.0)
    with Explorer(seconds=(3.0, 3.0)) as made:
        yield made


def written(folder: Path) -> set[str]:
    """Every file below a folder, but for those of the explorer's own."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "sparseloom-explorer-" not in str(path)}


def sources() -> dict[str, int]:
    """The files of the package, and when they were changed."""
    return {str(path): path.stat().st_mtime_ns for path in PAGE.parents[1].rglob("*") if path.is_file() and path.suffix != ".pyc"}


def outcome(door: Door, trial: Trial) -> str:
    """What became of a trial, in a word; AssertionError where it is not what it must be."""
    answer = door.send(trial.data)
    status = status_of(answer)
    assert status in trial.statuses or not trial.statuses, (trial.name, trial.data[:300], answer[:500])
    if not status:
        assert not answer or body_of(answer)["ok"] is False, (trial, answer[:500])
        return "ended"
    if status == 200 and not trial.data.startswith(b"POST"):
        return "page"  # a change that did no harm
    said = body_of(answer)
    assert isinstance(said["ok"], bool) and (status == 200 or not said["ok"]), (trial, answer[:500])
    assert said["ok"] or (said["error"]["text"] and "Traceback" not in answer.decode()), (trial, answer[:500])
    assert said["ok"] or "internal error" not in said["error"]["text"], (trial, said)
    return "harmless" if said["ok"] else "refused" if status == 200 else str(status)


def test_hostile_requests_are_answered_in_the_child_and_write_nothing(opened: Explorer, tmp_path: Path, seed: int) -> None:
    door = Door.of(opened.url)
    usual = door.ask(json.dumps(look()).encode())
    assert body_of(door.send(usual))["ok"]
    files, code, watch = written(tmp_path), sources(), Watch()
    watch.looks = True
    with crowd(door, 3 * serving.MOST_CONNECTIONS), ThreadPoolExecutor(4) as clients:
        drawn = trials(door, Random(seed), COUNT)
        found = Counter(clients.map(lambda trial: outcome(door, trial), drawn))
    assert body_of(door.send(usual))["ok"] and status_of(door.send(door.head("GET", f"/{door.token}/"))) == 200
    watch.looks = False
    assert found.total() == COUNT and min(found[word] for word in ("refused", "400", "403", "404", "421")) > COUNT // 100, found
    assert watch.seen and [one for one in watch.seen if not is_allowed(*one)] == []
    assert written(tmp_path) == files and sources() == code
    assert not list(tmp_path.rglob(f"*{MARK}*"))


def test_what_would_take_hours_or_terabytes_is_answered_while_one_goes_on(opened: Explorer) -> None:
    door = Door.of(opened.url)
    for worker in set(opened._workers.values()):
        worker._seconds = 1.5
    with ThreadPoolExecutor(2) as clients:
        waiting = [clients.submit(door.send, door.ask(json.dumps(request).encode())) for request in costly()]
        answers = [body_of(one.result()) for one in waiting]
    assert all(answer["ok"] or answer["error"]["text"] for answer in answers)
    assert body_of(door.send(door.ask(json.dumps(look()).encode())))["ok"]
