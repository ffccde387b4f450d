"""Threads, forks, signals and limits: whatever a process does around a kernel, it answers right, or says what is missing."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from attack.children import become_nobody, in_child

import sparseloom as sl
from sparseloom.core.settings import settings

NAME = "process"
COUNT = 500
SHORT = 16

PARALLEL = "parallelize(i,CPUThread,NoRaces)"
CSR = {"A": "csr", "B": "csr", "C": "csr"}
STATEMENTS: tuple[tuple[str, Callable[[Any, Any, int], Any]], ...] = (
    ("y(i) = {c} * A(i,j) * x(j)", lambda A, x, c: c * (A @ x)),
    ("C(i,j) = {c} * A(i,j) * x(j)", lambda A, x, c: c * (A * x)),
    ("C(i,k) = {c} * A(i,j) * B(j,k)", lambda A, x, c: c * (A @ A)),
    ("C(i,j) = {c} * A(i,j) + B(i,j)", lambda A, x, c: c * A + A),
    ("a = {c} * A(i,j) * x(j)", lambda A, x, c: c * (A @ x).sum()),
)


@dataclass(frozen=True)
class Problem:
    """A kernel, what it is called on, and what NumPy says."""

    kernel: sl.Kernel
    operands: tuple[Any, ...]
    wanted: Any

    def check(self, result: Any) -> None:
        """Refuse a wrong answer."""
        found = result.to_numpy()
        assert np.array_equal(found, self.wanted), f"{self.kernel}: {found} instead of {self.wanted}"

    def run(self) -> None:
        """Call the kernel once."""
        self.check(self.kernel(*self.operands))


def draw(rng: np.random.Generator, sparse: bool = False, size: int = 0) -> Problem:
    """A random problem; small integers, so that equal means equal."""
    text, oracle = STATEMENTS[rng.integers(1, 4) if sparse else rng.integers(len(STATEMENTS))]
    size, factor = size or int(rng.integers(1, 60)), int(rng.integers(2, 30))
    A, x = rng.integers(-3, 4, (size, size)).astype(float), rng.integers(-3, 4, size).astype(float)
    A[rng.random(A.shape) < 0.6] = 0
    left = text[0]
    schedule = PARALLEL if left != "a" and rng.integers(2) else ""
    formats = {name: form for name, form in CSR.items() if f"{name}(" in text}
    kernel = sl.program(text.format(c=factor), formats, schedule)
    sparse_a = sl.asarray(A, format="csr")
    operands = (sparse_a, sparse_a) if "B" in text else (sparse_a, x)
    return Problem(kernel, operands, oracle(A, x, factor))


def together(works: list[Callable[[], None]]) -> None:
    """Run works on threads that start at once, and raise the first exception that leaves one."""
    raised: list[BaseException] = []
    ready = threading.Barrier(len(works))

    def guarded(work: Callable[[], None]) -> None:
        ready.wait()
        try:
            work()
        except BaseException as wrong:  # noqa: BLE001 -- raised again below
            raised.append(wrong)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def one_bound_kernel(rng: np.random.Generator) -> str:
    """One bound kernel with a sparse result, called from several threads."""
    problem = draw(rng, sparse=True)
    bound = problem.kernel.bind(*problem.operands)

    def work() -> None:
        for _ in range(40):
            problem.check(bound())

    together([work] * int(rng.integers(2, 6)))
    return "right"


def one_kernel(rng: np.random.Generator) -> str:
    """One kernel called from several threads, for the first time and again; sometimes it must widen its indices meanwhile."""
    problem, limit = draw(rng, sparse=True), settings.int32_limit

    def work() -> None:
        for _ in range(10):
            problem.run()

    if rng.integers(2):
        settings.int32_limit = int(rng.integers(1, 200))
    try:
        together([work] * int(rng.integers(2, 6)))
    finally:
        settings.int32_limit = limit
    return "right"


def many_kernels(rng: np.random.Generator) -> str:
    """Several threads compile and run kernels, some the same."""
    problems = [draw(rng) for _ in range(3)]
    together([problems[k].run for k in rng.integers(3, size=5)])
    return "right"


def fork(rng: np.random.Generator) -> str:
    """A fork while other threads compile, run threads, or both; the child and the parent go on."""
    problems, pause = [draw(rng) for _ in range(4)], float(rng.uniform(0, 0.1))
    busy = [threading.Thread(target=problem.run) for problem in problems[: int(rng.integers(1, 4))]]
    if rng.integers(2):
        problems[-1].run()
    for thread in busy:
        thread.start()
    time.sleep(pause)

    def work() -> str:
        for problem in problems:
            problem.run()
        if problems[0].kernel.result_name != "a":
            together([problems[0].run, problems[-1].run])
        return "right"

    try:
        return in_child(work)
    finally:
        for thread in busy:
            thread.join()
        problems[-1].run()


class Enough(BaseException):
    """What a handler raises."""


@contextmanager
def disturbed(handler: Callable[[int, Any], None], interval: float) -> Iterator[None]:
    """Signals again and again."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, interval, interval)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def signals(rng: np.random.Generator) -> str:
    """Handlers that return, run kernels themselves, fork or raise, while kernels are compiled and run."""
    problem, other, kind = draw(rng, size=int(rng.integers(1, 200))), draw(rng), int(rng.integers(4))
    count, depth = [0], [0]

    def act() -> None:
        if count[0] % 3 and kind == 1:
            other.run()
        if count[0] == 2 and kind == 2:
            in_child(lambda: other.run() or "right")
        if count[0] == 3 and kind == 3:
            raise Enough

    def handler(*_: object) -> None:
        count[0] += 1
        if depth[0] < 3:  # on a busy machine signals come faster than they are answered
            depth[0] += 1
            try:
                act()
            finally:
                depth[0] -= 1

    try:
        with disturbed(handler, float(rng.uniform(0.02, 0.1))):
            for _ in range(int(rng.integers(1, 30))):
                problem.run()
    except Enough:
        assert kind == 3, "nobody raised that"
    problem.run()
    return "right"


def long_kernel(rng: np.random.Generator) -> str:
    """A kernel that would run for hours, which a handler ends; before, it runs a kernel of its own that asks whether to stop."""
    schedule = ("", "parallelize(i,CPUThread,Temporary)", "parallelize(i,CPUThread,ParallelReduction)")[rng.integers(3)]
    kernel, inner = sl.program("s = x(i) * x(j) * x(k)", schedule=schedule), sl.program("s = x(i) * x(j) * x(k)")
    kernel(np.ones(2))
    inner(np.ones(2))
    count, size = [0], int(rng.integers(50, 700))

    def handler(*_: object) -> None:
        count[0] += 1
        if count[0] == 1:
            assert float(inner(np.ones(size)).to_numpy()) == size**3
        elif count[0] > 2:
            raise Enough

    with suppress(Enough), disturbed(handler, 0.1):
        kernel(np.ones(20_000))
        raise AssertionError("the kernel went on for hours")
    return "ended"


def memory(rng: np.random.Generator) -> str:
    """Little memory is left: a right answer, MemoryError or a refusal."""
    problem, room = draw(rng, size=int(rng.integers(1, 400))), int(rng.integers(1, 200)) << 20
    if rng.integers(2):
        problem.run()

    def work() -> str:
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + room,) * 2)
        try:
            for _ in range(3):
                problem.run()
        except MemoryError:
            return "out of memory"
        except (sl.SparseloomError, OSError) as refused:
            assert not isinstance(refused, sl.CompilerBug), refused
            return "refused"
        return "right"

    return in_child(work)


def processes(rng: np.random.Generator) -> str:
    """No more processes or threads may be started, or few."""
    problem, warm = draw(rng), bool(rng.integers(2))
    # Where gcc has some processes, but too few, it waits for more, a quarter of a minute.
    most = int(rng.integers(0, 20)) if warm else int(rng.choice([0, 1, 9, 20]))
    draw(rng).run()  # Python's own files may be out of reach later

    def work() -> str:
        os.environ["OMP_NUM_THREADS"] = str(rng.integers(2, 64))
        if warm:
            problem.run()
        become_nobody()
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        try:
            for _ in range(3):
                problem.run()
        except sl.SparseloomError as refused:
            assert not isinstance(refused, sl.CompilerBug), refused
            return "refused"
        return "right"

    return in_child(work)


def killed(rng: np.random.Generator) -> str:
    """A process is killed somewhere in its work; the next one is none the worse."""
    problem, pause = draw(rng), float(rng.uniform(0, 0.3))
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            problem.run()
        os._exit(0)
    time.sleep(pause)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    problem.run()
    return "right"


KINDS = (one_bound_kernel, one_kernel, many_kernels, fork, signals, long_kernel, memory, processes, killed)


def trial(rng: np.random.Generator) -> str:
    """One of them."""
    return KINDS[rng.integers(len(KINDS))](rng)
