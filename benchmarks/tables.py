"""The tables of a report: what is told on the terminal, and on the page that is made of it."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contests import CONTESTS
from benchmarks.outcome import OWN, Outcome, Report, Study, mean
from benchmarks.pictures import kernels_of
from benchmarks.report import Table, duration, plural, times
from benchmarks.targets import LIBRARIES, NUMBA, verdicts
from benchmarks.task import HAND, OURS, PLAIN, SAME, SORTED, TUNED

SHORT = {"float64": "f64", "float32": "f32"}
SMALL, LARGE = 50e-6, 100e-6  # seconds in which there is little to do, and from which memory may bound
READING = "Their time over ours: above 1 we are faster."


def summary(report: Report) -> Table:
    """Every kernel in a line for each dtype and number of threads."""
    against = {"best library": LIBRARIES, "Numba": NUMBA, "hand C": (HAND,), "ours, plain": (PLAIN,)}
    rows = []
    for kernel, width in kernels_of(report):
        for group in _groups(report.of(kernel, width)):
            described = [CONTESTS[kernel].named(width), SHORT[group[0].dtype], str(group[0].threads)]
            gains = [_told(mean(o.gain(peers) for o in group)) for peers in against.values()]
            rows.append([*described, _told(mean(o.of_best for o in group)), _share(group), *gains])
    head = ["kernel", "dtype", "threads", "of the best", "of floor", *against]
    return Table("All kernels", f"Geometric means over the operands. Of the best: the best time over ours. {READING}", head, rows)


def kernel_tables(report: Report, kernel: str, width: int) -> list[Table]:
    """A kernel: a table for each dtype and number of threads."""
    return [_kernel_table(kernel, width, group) for group in _groups(report.of(kernel, width))]


def _groups(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    keys = dict.fromkeys((o.dtype, o.threads) for o in outcomes)
    return [[o for o in outcomes if (o.dtype, o.threads) == key] for key in keys]


def _kernel_table(kernel: str, width: int, group: Sequence[Outcome]) -> Table:
    others = [name for name in dict.fromkeys(name for o in group for name in o.seconds) if name != OURS]
    title = f"{CONTESTS[kernel].named(width)}, {SHORT[group[0].dtype]}, {plural(group[0].threads, 'thread')}"
    rows = [_row(outcome, others) for outcome in group]
    averages = [_told(mean(o.ratios.get(name) for o in group)) for name in others]
    last = ["geometric mean", "", "", times(mean(o.of_best for o in group) or 0), _share(group), *averages]
    note = " ".join([READING, *_reasons(group)])
    return Table(title, note, ["", "stored", OURS, "of the best", "of floor", *others], [*rows, last], 1)


def _row(outcome: Outcome, others: Sequence[str]) -> list[str]:
    ours = outcome.seconds[OURS]
    beside = [f"{times(outcome.ratios[name])}" if name in outcome.ratios else "–" for name in others]
    return [outcome.case, f"{outcome.stored:,}", duration(ours), times(outcome.of_best), f"{100 * outcome.floor / ours:.0f}%", *beside]


def _reasons(group: Sequence[Outcome]) -> list[str]:
    """Why somebody is absent, once for each."""
    return [f"{name}: {why}." for name, why in dict.fromkeys((n, why) for o in group for n, why in o.absent.items())]


def _share(group: Sequence[Outcome]) -> str:
    return f"{100 * (mean(o.floor / o.seconds[OURS] for o in group) or 0):.0f}%"


def _told(ratio: float | None) -> str:
    return "–" if ratio is None else times(ratio)


def target_table(report: Report) -> Table:
    """Every target, and what came of it."""
    found = verdicts(report)
    rows = [[v.what, "" if v.threads is None else str(v.threads), v.wanted, v.found, v.worst, v.said] for v in found]
    met, missed = (sum(v.met is said for v in found) for said in (True, False))
    count = f"{met} met, {missed} missed, {len(found) - met - missed} not measured."
    note = f"{count} {READING} A target is for the geometric mean over operands."
    return Table("Targets", note, ["target", "threads", "wanted", "found", "worst", ""], rows)


def study_table(study: Study) -> Table:
    """A study: a column for each place."""
    rows = [[line.name, *(duration(second) for second in line.seconds)] for line in study.lines]
    return Table(study.heading, study.note, [study.along, *(f"{p:g}" for p in study.places)], rows)


def trial_table(report: Report) -> Table:
    """Random statements: the worst and the best of them."""
    ordered = sorted(report.trials, key=lambda trial: trial.gain)
    shown = ordered if len(ordered) <= 10 else [*ordered[:5], *ordered[-5:]]
    rows = [[f"`{t.statement}`", " ".join(t.formats.values()), duration(t.plain), duration(t.planned), times(t.gain)] for t in shown]
    note = f"{len(ordered)} statements; the five that gain least, and most. The gain is plain over planned."
    return Table("Random statements, planned and plain", note, ["statement", "sparse operands", "plain", "planned", "gain"], rows)


def door_table(report: Report) -> Table:
    """What every way in costs."""
    rows = [
        [d.name, duration(d.seconds), "–" if d.scipy is None else duration(d.scipy), "–" if d.target is None else f"≤ {duration(d.target)}"]
        for d in report.doors
    ]
    return Table("Doors", "A call on a 100 x 100 matrix with 500 entries, and what users wait for.", ["", OURS, "SciPy", "target"], rows)


def losses(report: Report, most: int = 25) -> Table:
    """Where somebody else is faster: the worst places, who it is, and what may be the reason."""
    lost = sorted((o for o in report.outcomes if o.best not in OWN and o.of_best < 0.95), key=lambda o: o.of_best)
    rows = [[_place(o), o.best, times(1 / o.of_best), why(o)] for o in lost[:most]]
    note = f"{len(lost)} of {len(report.outcomes)} measurements; the {len(rows)} worst are listed. Ours: our time over theirs."
    return Table("Where we lose, and why", note, ["where", "to", "ours", "why"], rows)


def _place(outcome: Outcome) -> str:
    kernel = CONTESTS[outcome.kernel].named(outcome.width)
    return f"{kernel}, {outcome.case}, {SHORT[outcome.dtype]}, {plural(outcome.threads, 'thread')}"


def why(outcome: Outcome) -> str:
    """What may be the reason that somebody is faster, from what is known of the measurement."""
    contest, theirs = CONTESTS[outcome.kernel], outcome.seconds[outcome.best]
    reasons = [contest.why] if contest.why and contest.mended not in outcome.schedule else []
    if SORTED.format(outcome.best) in outcome.seconds:
        reasons.append("their rows are left unsorted")
    reasons += _of_einsum(outcome) if outcome.schedule.startswith("einsum") else _of_plan(outcome)
    if theirs > LARGE and 0.7 < outcome.floor / theirs < 1.2:
        reasons.append("they run at the speed of memory")
    if outcome.seconds[OURS] < SMALL:
        reasons.append("there is little to do")
    return "; ".join(reasons) or "not known"


def _of_einsum(outcome: Outcome) -> list[str]:
    """Whether einsum is any better than what it is to replace."""
    plain = outcome.ratios.get(PLAIN, 2.0)
    if plain < 1.5:
        return [f"einsum takes {'longer than' if plain < 0.7 else 'as long as'} one nest of loops"]
    return [] if outcome.best == HAND else ["they multiply two operands at a time"]


def _of_plan(outcome: Outcome) -> list[str]:
    """What our plan may lack."""
    reasons = ["our plan is slower than no schedule"] if outcome.ratios.get(PLAIN, 1.0) < 0.95 else []
    if outcome.threads > 1 and "CPUThread" not in outcome.schedule:
        reasons.append("our plan has no threads")
    if outcome.best == HAND and outcome.width and "CPUVector" not in outcome.schedule:
        reasons.append("our plan has no vectors")
    return reasons


NAMED = {
    OURS: "as users get it: no schedule is given, the planner chooses",
    PLAIN: 'the same with `schedule=""`, one nest on one thread',
    TUNED: "after `kernel.tune`",
    HAND: "loops by hand in C, as good as we can write them",
    SAME: "the plain loop by hand, on one thread",
}
