"""What was measured, as values that can be kept as JSON and read again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.contests import CONTESTS
from benchmarks.keeping import among, merge, read_kept
from benchmarks.report import plural
from benchmarks.task import OURS, PLAIN, TUNED
from benchmarks.timing import geometric_mean

SCHEMA = "python -m benchmarks cpu 1"
OWN = (OURS, PLAIN, TUNED)


@dataclass(frozen=True)
class Outcome:
    """One kernel on one operand, on so many threads. ``ratios`` are everybody's time over ours, so above 1 we are faster."""

    kernel: str
    width: int
    case: str
    shape: tuple[int, ...]
    stored: int
    dtype: str
    threads: int
    seconds: dict[str, float]
    ratios: dict[str, float]
    absent: dict[str, str]
    floor: float  # seconds that memory needs to move everything once
    schedule: str

    @property
    def best(self) -> str:
        """Who was quickest."""
        return min(self.seconds, key=lambda name: self.seconds[name])

    @property
    def of_best(self) -> float:
        """The best time over ours: 1 if we are the best."""
        return min(self.seconds.values()) / self.seconds[OURS]

    def gain(self, peers: Iterable[str], way: str = OURS) -> float | None:
        """The time of the quickest of these peers over ours, in one of our ways; none if nobody of them ran."""
        theirs = [self.ratios[name] for name in peers if name in self.ratios]
        return min(theirs) / self.ratios[way] if theirs and way in self.ratios else None


@dataclass(frozen=True)
class Line:
    """One line of a study: seconds at each place."""

    name: str
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Study:
    """How the times of several schedules change with one property of the operand."""

    name: str
    title: str
    note: str
    along: str
    places: tuple[float, ...]
    threads: int  # 0 on a GPU
    lines: tuple[Line, ...]

    @property
    def heading(self) -> str:
        """The title, with the number of threads."""
        return f"{self.title}, {plural(self.threads, 'thread')}" if self.threads else self.title


@dataclass(frozen=True)
class Trial:
    """A random statement: how long it takes as planned and plain."""

    statement: str
    formats: dict[str, str]
    threads: int
    plain: float
    planned: float
    gain: float
    schedule: str


@dataclass(frozen=True)
class Door:
    """A way to call something small: its seconds, those of SciPy for the same, and the most that it should take."""

    name: str
    seconds: float
    scipy: float | None
    target: float | None


@dataclass(frozen=True)
class Report:
    """Everything that a run measured."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    bandwidth: dict[str, float]  # bytes a second that are read, by threads
    gaps: dict[str, str]  # who is missing, and why
    left_out: list[str]
    outcomes: list[Outcome] = field(default_factory=list)
    studies: list[Study] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    doors: list[Door] = field(default_factory=list)

    def of(self, kernel: str, width: int | None = None, threads: int | None = None, dtype: str | None = None) -> list[Outcome]:
        """The outcomes of a kernel."""
        return among(self.outcomes, kernel=kernel, width=width, threads=threads, dtype=dtype)

    @property
    def thread_counts(self) -> list[int]:
        """On how many threads it was measured."""
        return sorted({o.threads for o in self.outcomes})


def mean(gains: Iterable[float | None]) -> float | None:
    """The geometric mean of those that there are."""
    found = [gain for gain in gains if gain is not None]
    return geometric_mean(found) if found else None


def read_json(paths: Iterable[Path]) -> Report:
    """One report of one or several that were kept, as of runs that were made piece by piece. What comes later counts."""
    reports = [_read(path) for path in paths]
    first = reports[0]
    made = Report(first.machine, first.settings, {}, {}, [])
    for report in reports:
        made.bandwidth.update(report.bandwidth)
        made.gaps.update(report.gaps)
        made.left_out.extend(line for line in report.left_out if line not in made.left_out)
        merge(made.outcomes, report.outcomes, lambda o: (o.kernel, o.width, o.case, o.dtype, o.threads))
        merge(made.studies, report.studies, lambda s: s.name)
        merge(made.trials, report.trials, lambda t: (t.statement, str(t.formats), t.threads))
        merge(made.doors, report.doors, lambda d: d.name)
    measured = _measured(made)
    made.left_out[:] = [line for line in made.left_out if line.rpartition(": ")[0] not in measured]
    return made


def _measured(report: Report) -> set[str]:
    """What a report has, in the words that say what is left out."""
    parts = {"studies": report.studies, "random": report.trials, "doors": report.doors}
    steps = {f"{CONTESTS[o.kernel].named(o.width)} on {o.case}, {o.dtype}" for o in report.outcomes}
    return steps | {name for name, found in parts.items() if found}


def _read(path: Path) -> Report:
    found = read_kept(SCHEMA, path)
    plain = {item.name: found[item.name] for item in fields(Report)}
    plain["outcomes"] = [Outcome(**{**o, "shape": tuple(o["shape"])}) for o in found["outcomes"]]
    plain["studies"] = [study_from(s) for s in found["studies"]]
    plain["trials"] = [Trial(**t) for t in found["trials"]]
    plain["doors"] = [Door(**d) for d in found["doors"]]
    return Report(**plain)


def study_from(found: dict[str, Any]) -> Study:
    """A study that was kept as JSON."""
    lines = tuple(Line(line["name"], tuple(line["seconds"])) for line in found["lines"])
    return Study(**{**found, "places": tuple(found["places"]), "lines": lines})
