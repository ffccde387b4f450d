"""What was measured on a GPU, as values that can be kept as JSON and read again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.gpu.schedules import ATOMIC, PLANNED
from benchmarks.gpu.tasks import CONTESTS
from benchmarks.keeping import among, merge, read_kept
from benchmarks.outcome import Study, study_from

SCHEMA = "python -m benchmarks gpu 1"
CUSPARSE, PYTORCH = "cuSPARSE", "PyTorch"


@dataclass(frozen=True)
class Outcome:
    """One kernel on one operand: seconds of everybody, and why others are absent."""

    kernel: str
    width: int
    case: str
    group: str
    shape: tuple[int, ...]
    stored: int
    dtype: str
    seconds: dict[str, float]
    absent: dict[str, str]
    floor: float  # seconds that memory needs to move everything once
    schedule: str

    @property
    def ours(self) -> dict[str, float]:
        """Our schedules, and the planner's choice among them."""
        return {name: s for name, s in self.seconds.items() if not name.startswith((CUSPARSE, PYTORCH))}

    @property
    def best(self) -> str | None:
        """The quickest of our schedules, without those that MTTKRP is compared with."""
        return min((name for name in self.ours if not name.startswith(ATOMIC)), key=lambda name: self.ours[name], default=None)

    @property
    def rival(self) -> str | None:
        """Whom we are compared with: the quickest algorithm of cuSPARSE; for MTTKRP, one atomic for every nonzero."""
        start = ATOMIC if self.kernel == "mttkrp" else CUSPARSE
        return min((name for name in self.seconds if name.startswith(start)), key=lambda name: self.seconds[name], default=None)

    def gain(self, name: str | None) -> float | None:
        """The rival's time over that of one of our schedules: above 1 we are faster."""
        if name not in self.seconds or self.rival is None or name is None:
            return None
        return self.seconds[self.rival] / self.seconds[name]

    @property
    def best_gain(self) -> float | None:
        """How much faster the best of our schedules is."""
        return self.gain(self.best)

    @property
    def planned_gain(self) -> float | None:
        """How much faster the planner's choice is."""
        return self.gain(PLANNED)

    @property
    def step(self) -> str:
        """What was measured, in words."""
        return f"{CONTESTS[self.kernel].named(self.width)} on {self.case}, {self.dtype}"


@dataclass(frozen=True)
class Finding:
    """A study of the paper in one number: what it reports, and what was found here."""

    what: str
    paper: str
    found: str
    seconds: dict[str, float]


@dataclass(frozen=True)
class Call:
    """What a call costs in Python: its seconds, and the most that it should take."""

    name: str
    seconds: float
    target: float | None


@dataclass(frozen=True)
class Report:
    """Everything that a run measured."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    bandwidth: float  # bytes a second that a copy moves
    gaps: dict[str, str]  # who is missing, and why
    left_out: list[str]
    outcomes: list[Outcome] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    studies: list[Study] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def of(self, kernel: str, width: int | None = None, dtype: str | None = None, group: str | None = None) -> list[Outcome]:
        """The outcomes of a kernel."""
        return among(self.outcomes, kernel=kernel, width=width, dtype=dtype, group=group)

    @property
    def kernels(self) -> list[tuple[str, int]]:
        """Every kernel and width that was measured, in the usual order."""
        seen = {(o.kernel, o.width) for o in self.outcomes}
        return [(c.name, width) for c in CONTESTS.values() for width in c.widths if (c.name, width) in seen]


def read_json(paths: Iterable[Path]) -> Report:
    """One report of one or several that were kept, as of runs that were made piece by piece. What comes later counts."""
    reports = [_read(path) for path in paths]
    last = reports[-1]
    made = Report(last.machine, last.settings, last.bandwidth, {}, [])
    for report in reports:
        made.gaps.update(report.gaps)
        made.left_out.extend(line for line in report.left_out if line not in made.left_out)
        merge(made.outcomes, report.outcomes, lambda o: (o.kernel, o.width, o.case, o.dtype))
        merge(made.findings, report.findings, lambda f: f.what)
        merge(made.studies, report.studies, lambda s: s.name)
        merge(made.calls, report.calls, lambda c: c.name)
    measured = {o.step for o in made.outcomes} | ({"studies"} if made.studies else set()) | ({"calls"} if made.calls else set())
    made.left_out[:] = [line for line in made.left_out if line.partition(": ")[0] not in measured]
    return made


def _read(path: Path) -> Report:
    found = read_kept(SCHEMA, path)
    plain = {item.name: found[item.name] for item in fields(Report)}
    plain["outcomes"] = [Outcome(**{**o, "shape": tuple(o["shape"])}) for o in found["outcomes"]]
    plain["findings"] = [Finding(**f) for f in found["findings"]]
    plain["studies"] = [study_from(s) for s in found["studies"]]
    plain["calls"] = [Call(**c) for c in found["calls"]]
    return Report(**plain)
