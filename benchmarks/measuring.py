"""What ``python -m benchmarks cpu`` does: measure with a progress bar, tell the tables, and keep numbers, pictures and the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import tables
from benchmarks.contests import CONTESTS, Sets, quick_sets, toy_sets, usual_sets
from benchmarks.cpu import PARTS, Extent, Tell, count_steps, run
from benchmarks.for_terminal import for_terminal
from benchmarks.keeping import Judged, write_kept
from benchmarks.measure import DTYPES, Wish, sets_from, thread_counts
from benchmarks.outcome import SCHEMA, Report, read_json
from benchmarks.page import page
from benchmarks.pictures import kernels_of, write_pictures
from benchmarks.report import Table
from benchmarks.targets import verdicts
from sparseloom.cli.arguments import OptionError
from sparseloom.cli.terminal import say

QUICK_SECONDS, QUICK_LIMIT = 0.05, 105.0
USUAL_SECONDS = 0.5


def measure_and_tell(options: argparse.Namespace) -> int:
    """Measure, or read what was measured; then tell and keep it."""
    report = read_json(options.kept) if options.kept else _measure(options)
    if options.note is not None:
        report.settings["note"] = options.note
    tell_all(_told(report), report.gaps, report.left_out)
    keep(options, report, Written(SCHEMA, verdicts, write_pictures, page))
    return 0


def tell_all(found: Iterable[Table], gaps: Mapping[str, str], left_out: Sequence[str]) -> None:
    """Tell tables, who is missing, and what is left out."""
    console = Console(width=max(Console().width, 150))
    for table in found:
        console.print(for_terminal(table))
    for name, why in gaps.items():
        say(f"{name} is missing: {why}")
    if left_out:
        say("\n".join(["left out:", *(f"  {line}" for line in left_out)]))


def _measure(options: argparse.Namespace) -> Report:
    wish, extent = _wish(options), _extent(options)
    with progress(count_steps(wish, extent)) as tell:
        return run(wish, extent, tell)


def _wish(options: argparse.Namespace) -> Wish:
    sets = toy_sets() if options.toy else quick_sets() if options.quick else usual_sets()
    sets, unread = sets_from(options.data, sets) if options.data is not None else (sets, ())
    kernels = tuple(name for name in names_in(options.kernels, (*CONTESTS, *PARTS), "--kernels") if name in CONTESTS)
    return Wish(
        _only(sets, options.cases),
        kernels,
        _threads(options),
        names_in(options.dtypes or ("f64" if options.quick else None), tuple(DTYPES), "--dtypes"),
        seconds_in(options),
        options.limit if options.limit is not None else QUICK_LIMIT if options.quick else None,
        unread,
    )


def _extent(options: argparse.Namespace) -> Extent:
    parts = tuple(name for name in names_in(options.kernels, (*CONTESTS, *PARTS), "--kernels") if name in PARTS)
    if options.toy:
        return Extent(parts, statements=2, scale=0.005, processes=1, memory=4096)
    return Extent(parts, statements=10, scale=0.1, processes=1) if options.quick else Extent(parts)


def seconds_in(options: argparse.Namespace, usual: float = USUAL_SECONDS) -> float:
    """How long each kernel is measured on each operand."""
    if options.seconds is not None:
        if not options.seconds >= 0:
            raise OptionError(f"--seconds is a time, at least 0, not {options.seconds}")
        return float(options.seconds)
    return 0.0 if options.toy else QUICK_SECONDS if options.quick else usual


def _threads(options: argparse.Namespace) -> tuple[int, ...]:
    usual = thread_counts()
    if options.threads is None:
        return (usual[0], usual[-1])[: len(usual)] if options.quick else usual
    found = options.threads.split(",")
    if not all(text.isdecimal() and int(text) > 0 for text in found):
        raise OptionError(f"cannot read --threads {options.threads}: it must be counts\n  help: write for example --threads 1,2")
    return tuple(sorted({int(text) for text in found}))


def names_in(text: str | None, known: Sequence[str], option: str) -> tuple[str, ...]:
    """Names that an option lists; all of them without it."""
    found = tuple(known) if text is None else tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in found:
        if name not in known:
            raise OptionError(f"{option} names {name}, but there are {', '.join(known)}")
    return found


def _only(sets: Sets, text: str | None) -> Sets:
    known = sorted({case for makes in sets.values() for case in makes})
    wanted = names_in(text, known, "--cases")
    return {name: {case: make for case, make in makes.items() if case in wanted} for name, makes in sets.items()}


@contextmanager
def progress(count: int) -> Iterator[Tell]:
    """A bar on a terminal, and elsewhere a line for each step."""
    if not sys.stderr.isatty():
        done = iter(range(1, count + 1))
        yield lambda line: say(f"[{next(done, count)}/{count}] {line}")
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=count)
        yield lambda line: bar.update(task, advance=1, description=line)


def _told(report: Report) -> Iterator[Table]:
    for kernel, width in kernels_of(report):
        yield from tables.kernel_tables(report, kernel, width)
    yield from map(tables.study_table, report.studies)
    if report.trials:
        yield tables.trial_table(report)
    if report.doors:
        yield tables.door_table(report)
    if report.outcomes:
        yield tables.losses(report)
        yield tables.summary(report)
    yield tables.target_table(report)


@dataclass(frozen=True)
class Written:
    """How a report of one machine is written: under which schema, what came of its targets, its pictures and its page."""

    schema: str
    verdicts: Callable[[Any], Sequence[Judged]]
    pictures: Callable[[Any, Path], Sequence[Path]]
    page: Callable[[Any, Path | None, Path], str]


def keep(options: argparse.Namespace, report: Any, written: Written) -> None:
    """Write what was asked for."""
    if options.json is not None:
        write_kept(written.schema, report, written.verdicts(report), options.json)
        say(f"wrote {options.json}")
    if options.pictures is not None:
        say(f"wrote {len(written.pictures(report, options.pictures))} pictures to {options.pictures}")
    if options.markdown is not None:
        options.markdown.parent.mkdir(parents=True, exist_ok=True)
        options.markdown.write_text(written.page(report, options.pictures, options.markdown.parent))
        say(f"wrote {options.markdown}")
