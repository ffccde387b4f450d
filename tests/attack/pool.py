"""The parent of the hostile campaign: it hands trials to child processes, and survives whatever becomes of them."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src"
# A trial that takes longer hangs.
LIMIT = 20.0
# Importing and the first compiler take a while on a busy machine.
START_LIMIT = 120.0
# Enough to see what is wrong; a broken door would otherwise fill the screen and take a process each.
MOST_FAULTS = 200
START = "import sys; sys.path[:0] = {path!r}; from attack.worker import main; main({part!r}, {seed}, {pipe})"


@dataclass(frozen=True)
class Fault:
    """A trial that must not have ended so: silently wrong, an exception, a signal or a hang."""

    part: str
    seed: int
    number: int
    kind: str
    text: str

    @property
    def repeat(self) -> str:
        """The command that does this trial again."""
        return f"python tests/attack/campaign.py --part {self.part} --seed {self.seed} --trial {self.number}"


@dataclass
class Report:
    """What became of the trials of one part."""

    part: str
    wanted: int
    words: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def done(self) -> int:
        """How many trials have ended."""
        return sum(self.words.values()) + len(self.faults)


class Worker:
    """One child process, and the trial that it has in hand."""

    def __init__(self, part: str, seed: int, environment: dict[str, str]) -> None:
        """Start it; it is ready when it says so."""
        self.part, self.seed = part, seed
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- open as long as the process
        reading, writing = os.pipe()
        command = START.format(path=[str(SOURCE), str(TESTS)], part=part, seed=seed, pipe=writing)
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", command],
            stdin=subprocess.PIPE, stdout=self.errors, stderr=self.errors, pass_fds=[writing],
            env=environment, start_new_session=True, text=True,
        )  # fmt: skip
        os.close(writing)
        self.answers = os.fdopen(reading)
        self.number: int | None = None
        self.deadline = time.monotonic() + START_LIMIT

    def hand(self, number: int, limit: float) -> bool:
        """Tell the next trial; False if the process is not there to hear it."""
        self.number, self.deadline = number, time.monotonic() + limit
        try:
            print(number, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return False
        return True

    def end(self) -> str:
        """Kill it with all that it started, and say what it had written or how it died."""
        code = self.process.poll()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self.answers.close()
        self.errors.seek(0)
        written = self.errors.read().decode(errors="replace")[-2000:]
        self.errors.close()
        died = self.process.returncode if code is None else code
        return f"{signal.Signals(-died).name if died < 0 else f'exit code {died}'}\n{written}"


def run(
    part: str, seed: int, numbers: Iterable[int], wanted: int, jobs: int = 1, limit: float = LIMIT, until: float = float("inf"),
    show: Callable[[Report], None] = lambda report: None,
) -> Report:  # fmt: skip
    """Do these trials of one part in ``jobs`` processes, or as many as come to an end before the time ``until``."""
    report = Report(part, wanted)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sparseloom-attack-") as folder:
        environment = {**os.environ, "SPARSELOOM_CACHE_DIR": folder}
        _Campaign(report, seed, iter(numbers), limit, until, show, environment).run(jobs)
    report.seconds = time.monotonic() - started
    return report


@dataclass
class _Campaign:
    """The processes of one part while it runs."""

    report: Report
    seed: int
    numbers: Iterator[int]
    limit: float
    until: float
    show: Callable[[Report], None]
    environment: dict[str, str]
    workers: list[Worker] = field(default_factory=list)

    def run(self, jobs: int) -> None:
        with selectors.DefaultSelector() as self.selector:
            try:
                for _ in range(jobs):
                    self.start()
                while self.workers:
                    self.step()
            finally:
                for worker in self.workers:
                    worker.end()

    def start(self) -> None:
        worker = Worker(self.report.part, self.seed, self.environment)
        self.workers.append(worker)
        self.selector.register(worker.answers, selectors.EVENT_READ, worker)

    def step(self) -> None:
        """Take the answers that have come, then look for processes that give none."""
        nearest = min(worker.deadline for worker in self.workers)
        for key, _ in self.selector.select(max(0.0, min(nearest - time.monotonic(), 1.0))):
            self.take(key.data)
        for worker in [one for one in self.workers if time.monotonic() > one.deadline]:
            self.lose(worker, "hang")
        self.show(self.report)

    def take(self, worker: Worker) -> None:
        line = worker.answers.readline()
        if not line.endswith("\n"):
            self.lose(worker, "signal")
            return
        kind, text = json.loads(line)
        if worker.number is not None:
            if kind in ("fine", "refused"):
                self.report.words[text] += 1
            else:
                self.fault(worker.number, kind, text)
        self.next(worker)

    def next(self, worker: Worker) -> None:
        number = next(self.numbers, None) if self.goes_on() else None
        if number is None:
            worker.number = None
            self.stop(worker)
        elif not worker.hand(number, self.limit):
            self.lose(worker, "signal")

    def goes_on(self) -> bool:
        return time.monotonic() < self.until and len(self.report.faults) < MOST_FAULTS

    def lose(self, worker: Worker, kind: str) -> None:
        """A process died or hangs: the trial that it had in hand is to blame, and another takes its place."""
        text = self.stop(worker)
        if worker.number is None:
            raise RuntimeError(f"the part {self.report.part} cannot be started: {text}")
        self.fault(worker.number, kind, text)
        if self.goes_on():
            self.start()

    def stop(self, worker: Worker) -> str:
        self.workers.remove(worker)
        self.selector.unregister(worker.answers)
        return worker.end()

    def fault(self, number: int, kind: str, text: str) -> None:
        self.report.faults.append(Fault(self.report.part, self.seed, number, kind, text))
