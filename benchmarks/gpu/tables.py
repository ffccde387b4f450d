"""The tables of a report on a GPU: what is told on the terminal, and on the page that is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.gpu.operands import AFTERWARDS, DATA, DATA_TENSORS, SIX, STAND_INS, TENSORS
from benchmarks.gpu.outcome import CUSPARSE, PYTORCH, Outcome, Report
from benchmarks.gpu.schedules import PLANNED
from benchmarks.gpu.targets import BEST, gains, verdicts
from benchmarks.gpu.targets import PLANNED as PLANNED_WAY
from benchmarks.gpu.tasks import CONTESTS, WRONG
from benchmarks.outcome import mean
from benchmarks.report import Table, duration, times

SHORT = {"float64": "f64", "float32": "f32"}
GROUPS = {
    SIX: "the six", AFTERWARDS: "six chosen afterwards", STAND_INS: "stand-ins", DATA: "real matrices", TENSORS: "tensors",
    DATA_TENSORS: "real tensors",
}  # fmt: skip
READING = "The best cuSPARSE algorithm of each operand (MTTKRP: the best of one atomic per nonzero) over ours: above 1 we are faster."


def all_tables(report: Report) -> Iterator[Table]:
    """Everything, in the order in which it is told."""
    for kernel, width in report.kernels:
        yield from kernel_tables(report, kernel, width)
    yield from beside(report)
    if report.outcomes:
        yield summary(report)
    yield target_table(report)


def beside(report: Report) -> Iterator[Table]:
    """The studies and the calls, as far as they were measured."""
    if report.findings:
        yield finding_table(report)
    for study in report.studies:
        rows = [[line.name, *(duration(second) for second in line.seconds)] for line in study.lines]
        yield Table(study.heading, study.note, [study.along, *(f"{place:.6g}" for place in study.places)], rows)
    if report.calls:
        yield call_table(report)


def summary(report: Report) -> Table:
    """Every kernel in a line for each dtype and set of operands."""
    rows = []
    for kernel, width in report.kernels:
        for group in groups(report.of(kernel, width)):
            best, planned = (gains(group, way) for way in (BEST, PLANNED_WAY))
            floor = mean(o.floor / o.ours[o.best] for o in group if o.best is not None)
            described = [CONTESTS[kernel].named(width), SHORT[group[0].dtype], GROUPS[group[0].group], str(len(group))]
            shares = ["–" if floor is None else f"{100 * floor:.0f}%", _percent_of_best(group)]
            ratios = [_told(ratio) for found in (best, planned) for ratio in (mean(found), min(found, default=None))]
            rows.append([*described, *ratios, *shares])
    head = ["kernel", "dtype", "operands", "", "best", "worst", "planned", "worst", "of floor", "planned of best"]
    note = f"Geometric means and the worst operand, for the best of our schedules and for the planner's choice. {READING}"
    return Table("All kernels", note, head, rows)


def _percent_of_best(group: Sequence[Outcome]) -> str:
    """How near the planner's choice comes to the best of our schedules."""
    shares = [min(o.ours.values()) / o.seconds[PLANNED] for o in group if PLANNED in o.seconds]
    found = mean(shares)
    return "–" if found is None else f"{100 * found:.0f}%"


def groups(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Outcomes of one dtype on one set, together."""
    keys = dict.fromkeys((o.dtype, o.group) for o in outcomes)
    ordered = sorted(keys, key=lambda key: (list(SHORT).index(key[0]) * -1, list(GROUPS).index(key[1])))
    return [[o for o in outcomes if (o.dtype, o.group) == key] for key in ordered]


def kernel_tables(report: Report, kernel: str, width: int) -> list[Table]:
    """A kernel: a table for each dtype and set of operands."""
    return [_kernel_table(kernel, width, group) for group in groups(report.of(kernel, width))]


def _kernel_table(kernel: str, width: int, group: Sequence[Outcome]) -> Table:
    """Operands side by side: microseconds of everybody, then the ratios."""
    names = everybody(group)
    rows = [["entries", *(f"{o.stored:,}" for o in group), "", ""], ["memory floor", *(_microseconds(o.floor) for o in group), "", ""]]
    rows += [[name, *(_cell(o, name) for o in group), "", ""] for name in names]
    ratios = [_ratio_row("best of our schedules", [o.best_gain for o in group]), _ratio_row(PLANNED, [o.planned_gain for o in group])]
    who = [["our best is", *(o.best or "–" for o in group), "", ""], ["compared with", *(o.rival or "–" for o in group), "", ""]]
    title = f"{CONTESTS[kernel].named(width)}, {SHORT[group[0].dtype]}, {GROUPS[group[0].group]}"
    note = " ".join(["Microseconds, then the ratios.", *_reasons(group)])
    return Table(title, note, ["", *(o.case for o in group), "geometric mean", "worst"], [*rows, *who, *ratios], 2)


def everybody(group: Sequence[Outcome]) -> list[str]:
    """All who took part or could not, ours first."""
    seen = dict.fromkeys(name for o in group for name in (*o.seconds, *o.absent))
    return sorted(seen, key=lambda name: (name.startswith(PYTORCH), name.startswith(CUSPARSE)))


def _cell(outcome: Outcome, name: str) -> str:
    if name in outcome.seconds:
        return _microseconds(outcome.seconds[name])
    return WRONG if outcome.absent.get(name, "").startswith(WRONG) else "–"


def _microseconds(seconds: float) -> str:
    found = seconds * 1e6
    return f"{found:.1f}" if found < 100 else f"{found:,.0f}"


def _ratio_row(name: str, found: Sequence[float | None]) -> list[str]:
    known = [gain for gain in found if gain is not None]
    return [name, *map(_told, found), _told(mean(known)), _told(min(known, default=None))]


def _reasons(group: Sequence[Outcome]) -> list[str]:
    """Why somebody is absent, once for each."""
    return [f"{name}: {why}." for name, why in dict.fromkeys((n, why) for o in group for n, why in o.absent.items())]


def _told(ratio: float | None) -> str:
    return "–" if ratio is None else times(ratio)


def target_table(report: Report) -> Table:
    """Every target, and what came of it."""
    found = verdicts(report)
    rows = [[v.what, SHORT.get(v.dtype, ""), GROUPS.get(v.group, ""), v.wanted, v.found, v.worst, v.said] for v in found]
    met, missed = (sum(v.met is said for v in found) for said in (True, False))
    note = f"{met} met, {missed} missed, {len(found) - met - missed} not measured. {READING}"
    return Table("Targets", note, ["target", "dtype", "operands", "wanted", "found", "worst", ""], rows)


def finding_table(report: Report) -> Table:
    """The studies of the paper that end in one number."""
    rows = [[f.what, f.paper, f.found, ", ".join(f"{name} {duration(s)}" for name, s in f.seconds.items())] for f in report.findings]
    return Table("The paper's studies", "SpMV in float32; ratios of one run.", ["study", "in the paper", "here", ""], rows)


def call_table(report: Report) -> Table:
    """What calls cost."""
    rows = [[c.name, duration(c.seconds), "–" if c.target is None else f"≤ {duration(c.target)}"] for c in report.calls]
    return Table("Calls", "On a 100 x 100 matrix, on the side of Python; the device works meanwhile.", ["", "seconds", "target"], rows)
