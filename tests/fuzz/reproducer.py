"""What a fuzzer leaves of a failure: the case made small, by steps of its schedule, statement, formats and sizes, and the pass to blame.

It is printed, and written to ``build/reproducers`` with the loops before and after that pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from fuzz.drawing import Case
from fuzz.runner import FAULTS, Job, prepare_whole
from fuzz.runner import Tally as Statements
from fuzz.scheduled_runner import attempt as attempt_scheduled
from fuzz.scheduled_runner import scheduled_job
from fuzz.scheduled_runner import shrink as shrink_scheduled
from fuzz.schedules import Scheduled
from fuzz.shrink import shrink as shrink_case

from sparseloom.programs.bisection import COMPILED, bisect
from sparseloom.tracing import show_passes

T = TypeVar("T", Case, Scheduled)
FOLDER = Path(__file__).resolve().parents[2] / "build" / "reproducers"


def report(failures: Sequence[tuple[Scheduled, str]]) -> str:
    """Every failed schedule, with how to repeat it; the first one also made small."""
    small = shrink_scheduled(failures[0][0]) if failures else None
    return _report(failures, small, attempt_scheduled, scheduled_job)


def report_statements(failures: Sequence[tuple[Case, str]], attempt: Callable[[Case], str | None]) -> str:
    """The same of statements without a schedule."""
    small = shrink_case(failures[0][0]) if failures else None
    return _report(failures, small, attempt, lambda case: prepare_whole(case, Statements()))


def _report(failures: Sequence[tuple[T, str]], small: T | None, attempt: Callable[[T], str | None], job: Callable[[T], Job | None]) -> str:
    texts = [f"{case}\n{problem}" for case, problem in failures]
    if small is not None:
        found = f"the first, made small:\n{small}\n{attempt(small)}\n{blame(lambda: job(small))}"
        texts.append(f"{found}\nwritten to {written(found)}")
    return "\n\n".join(texts)


def blame(job: Callable[[], Job | None]) -> str:
    """Which pass makes the loops of a case wrong, and what every pass up to it did."""
    try:
        made = job()
        if made is None:
            return "it is rejected now"
        verdicts = list(bisect(made.prepared, made.storages))
    except FAULTS as fault:
        return f"no pass can be named: {type(fault).__name__}: {fault}"
    last = verdicts[-1]
    if last.fault is None:
        return "every pass keeps the result of one call, and so does the compiled kernel: look for a race, or at other calls"
    stages = made.prepared.stages
    if last.name == COMPILED:
        return f"{last}; its loops are right\n{stages.source}"
    kept = []
    for passed in stages.again():
        kept.append(passed)
        if passed.name == last.name and passed.changed:
            break
    return f"{last}\n{show_passes(stages.concrete, kept)}"


def written(text: str) -> Path:
    """The file into which a reproducer was written."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{sha256(text.encode()).hexdigest()[:12]}.txt"
    file.write_text(text, encoding="utf-8")
    return file
