"""Which steps are compiled on which loops and formats, counted over many random schedules: writes ``docs/tables/schedules.md``.

    python tests/fuzz/schedule_table.py [cases]
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from fuzz.runner import Tally, prepare_unscheduled  # noqa: E402
from fuzz.schedules import MOST_STEPS, TRIES, WEIGHTS, is_likely, schedulable  # noqa: E402

from sparseloom.compiler import lower_concrete  # noqa: E402
from sparseloom.core.errors import CompilerBug, ScheduleError  # noqa: E402
from sparseloom.formats.named import name_of  # noqa: E402
from sparseloom.iteration.foralls import loops, operands, provenance  # noqa: E402
from sparseloom.iteration.formula import ALWAYS, All  # noqa: E402
from sparseloom.iteration.walked import walked  # noqa: E402
from sparseloom.loops.verify import verify  # noqa: E402
from sparseloom.notation.nodes import IndexVar, Stmt  # noqa: E402
from sparseloom.schedule.primitive import PRIMITIVES, Primitive  # noqa: E402
from sparseloom.schedule.schedule import Schedule  # noqa: E402

CASES, SEED = 10_000, 7
KINDS = ("dense", "sparse", "position", "intersection", "union", "fused")
Cell = tuple[str, str]


def kind_of(stmt: Stmt, var: IndexVar) -> str:
    """What kind of loop runs over a variable."""
    graph = provenance(stmt)
    if graph.position(var) is not None:
        return "position"
    if len(graph.covered(var)) > 1:
        return "fused"
    found = walked(stmt, var)
    sparse = max((len(loop.sparse) for loop in found), default=0)
    if sparse == 0:
        return "dense"
    if sparse == 1:
        return "union" if any(loop.region == ALWAYS for loop in found) else "sparse"
    return "intersection" if all(isinstance(loop.region, All) for loop in found) else "union"


def loops_of(stmt: Stmt, step: Primitive) -> set[IndexVar]:
    """The loops that a step is about."""
    named = {var for given in step.arguments() for var in (given if isinstance(given, tuple) else (given,)) if isinstance(var, IndexVar)}
    return named.intersection(loops(stmt))


def count(cases: int) -> tuple[Counter[tuple[str, str, bool]], Counter[tuple[str, str, bool]], int]:
    """How often each step was compiled or refused, by kind of loop and by format of the operands along it; and what failed to lower."""
    broken = 0
    by_kind: Counter[tuple[str, str, bool]] = Counter()
    by_format: Counter[tuple[str, str, bool]] = Counter()
    for case in islice(schedulable(SEED, 0), cases):
        job = prepare_unscheduled(case, Tally())
        if job is None:
            continue
        made, random = Schedule(job.prepared.unscheduled()), Random(f"table {case.seed}")
        for _ in range(random.randint(1, MOST_STEPS)):
            (word,) = random.choices(list(WEIGHTS), list(WEIGHTS.values()))
            likely = (step for step in PRIMITIVES[word].candidates(made.stmt, random) if is_likely(made.stmt, step))
            for step in islice(likely, TRIES):
                before = made.stmt
                try:
                    made = made.then(step)
                except ScheduleError:
                    taken = False
                else:
                    taken = True
                for var in loops_of(before, step):
                    by_kind[word, kind_of(before, var), taken] += 1
                    along = {*provenance(before).originals(var)}
                    formats = {name_of(a.tensor.format) for a in operands(before) if along & {*a.indices}}
                    by_format.update((word, form, taken) for form in formats)
                if taken:
                    break
        try:
            verify(lower_concrete(job.assign, made.concrete, 2**31 - 1).lowered.function)
        except (CompilerBug, KeyError, IndexError) as bug:  # a broken promise of the lowering; counted, shown, and to be mended
            broken += 1
            print(f"{case}\n  schedule {' '.join(map(str, made.trace))}\n  {str(bug).splitlines()[0]}", file=sys.stderr)
    return by_kind, by_format, broken


def table(title: str, counts: Counter[tuple[str, str, bool]], columns: list[str]) -> list[str]:
    """One table: compiled / refused."""
    lines = [f"| {title} | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for word in sorted(PRIMITIVES):
        cells = [f"{counts[word, column, True]} / {counts[word, column, False]}" for column in columns]
        lines.append(f"| `{word}` | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Count, and write the page."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    by_kind, by_format, broken = count(cases)
    totals: Counter[str] = Counter()
    for (_, form, _), number in by_format.items():
        totals[form] += number
    formats = [form for form, _ in totals.most_common(12)]
    text = [
        "# Steps, loops and formats",
        "",
        f"Every entry is *compiled / refused*, counted over {cases:,} random schedules of random statements. Of these schedules,",
        f"{broken} could not be lowered although every step was accepted, which is a defect.",
        "This page is made by `python tests/fuzz/schedule_table.py`.",
        "",
        *table("step on a loop that is", by_kind, list(KINDS)),
        "",
        *table("step on a loop along", by_format, formats),
    ]
    (ROOT / "docs" / "tables" / "schedules.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
