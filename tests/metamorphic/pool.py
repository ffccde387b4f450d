"""The parent of the campaign: it hands batches of programs to child processes, and survives whatever becomes of them."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src"
START = "import sys; sys.path[:0] = {path!r}; from metamorphic.worker import main; main({seed}, {compiled}, {variants}, {pipe})"
BATCH = 24
# Seconds without a word, after which a program hangs. A batch is compiled in one piece meanwhile, on a machine that may be busy.
LIMIT = 240.0
MOST_FAULTS = 200


@dataclass(frozen=True)
class Fault:
    """A program that went wrong, and how."""

    number: int
    kind: str
    text: str


@dataclass
class Report:
    """What became of the programs."""

    seed: int
    programs: int = 0
    compared: int = 0
    words: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def faulty(self) -> int:
        """How many programs had a fault: one that has several counts once."""
        return len({fault.number for fault in self.faults})


@dataclass(frozen=True)
class Settings:
    """What a campaign does."""

    seed: int
    compiled: float
    variants: int
    jobs: int = 1
    until: float = float("inf")


class Child:
    """One process, the batch that it has and the program that it has in hand."""

    def __init__(self, settings: Settings, folder: str) -> None:
        """Start it; it is ready when it says so."""
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- open as long as the process
        reading, writing = os.pipe()
        command = START.format(
            path=[str(SOURCE), str(TESTS)], seed=settings.seed, compiled=settings.compiled, variants=settings.variants, pipe=writing
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=self.errors, stderr=self.errors, pass_fds=[writing],
            env={**os.environ, "SPARSELOOM_CACHE_DIR": folder}, start_new_session=True, text=True,
        )  # fmt: skip
        os.close(writing)
        self.answers = os.fdopen(reading)
        self.batch: list[int] = []
        self.number: int | None = None
        self.deadline = time.monotonic() + LIMIT

    def hand(self, batch: list[int]) -> None:
        """Give it programs to do."""
        self.batch, self.deadline = list(batch), time.monotonic() + LIMIT
        with suppress(BrokenPipeError):  # the end of its answers says the same
            print(json.dumps(batch), file=self.process.stdin, flush=True)

    def end(self) -> str:
        """Kill it with all that it started, and say how it died and what it had written."""
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


def run(numbers: range, settings: Settings, show: Callable[[Report], None] = lambda report: None) -> Report:
    """Do these programs, or as many as come to an end before the time ``settings.until``."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sparseloom-metamorphic-") as folder:
        campaign = _Campaign(settings, folder, deque(list(numbers[k : k + BATCH]) for k in range(0, len(numbers), BATCH)), show)
        campaign.run()
    campaign.report.seconds = time.monotonic() - started
    return campaign.report


class _Campaign:
    """The processes while they run."""

    def __init__(self, settings: Settings, folder: str, waiting: deque[list[int]], show: Callable[[Report], None]) -> None:
        self.settings, self.folder, self.waiting, self.show = settings, folder, waiting, show
        self.report = Report(settings.seed)
        self.children: list[Child] = []

    def run(self) -> None:
        with selectors.DefaultSelector() as self.selector:
            try:
                for _ in range(min(self.settings.jobs, len(self.waiting))):
                    self.start()
                while self.children:
                    self.step()
            finally:
                for child in self.children:
                    child.end()

    def start(self) -> None:
        child = Child(self.settings, self.folder)
        self.children.append(child)
        self.selector.register(child.answers, selectors.EVENT_READ, child)

    def step(self) -> None:
        for key, _ in self.selector.select(1.0):
            self.take(key.data)
        for child in [one for one in self.children if time.monotonic() > one.deadline]:
            self.lose(child, "hang")
        self.show(self.report)

    def take(self, child: Child) -> None:
        line = child.answers.readline()
        if not line.endswith("\n"):
            self.lose(child, "signal")
            return
        child.deadline = time.monotonic() + LIMIT
        word, *rest = json.loads(line)
        if word == "at":
            child.number = rest[0]
        elif word == "done":
            self.count(child, *rest)
        elif self.goes_on() and self.waiting:
            child.hand(self.waiting.popleft())
        else:
            self.stop(child)

    def count(self, child: Child, number: int, compared: int, words: dict[str, int], faults: list[Any]) -> None:
        child.batch.remove(number)
        report = self.report
        report.programs += 1
        report.compared += compared
        report.words.update(words)
        report.faults += [Fault(number, kind, text) for kind, text in faults]

    def goes_on(self) -> bool:
        return time.monotonic() < self.settings.until and len(self.report.faults) < MOST_FAULTS

    def lose(self, child: Child, kind: str) -> None:
        """A process died or hangs. The program in hand is to blame; if it had all in hand, each is done again on its own."""
        text, number = self.stop(child), child.number
        if not child.batch:
            raise RuntimeError(f"the campaign cannot be started: {text}")
        if number is not None:
            child.batch.remove(number)
            self.report.programs += 1
            self.report.faults.append(Fault(number, kind, text))
            self.waiting.appendleft(child.batch)
        else:
            self.waiting.extendleft([one] for one in child.batch)
        self.start()

    def stop(self, child: Child) -> str:
        self.children.remove(child)
        self.selector.unregister(child.answers)
        return child.end()
