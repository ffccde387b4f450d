"""What ``python -m benchmarks gpu`` does: measure with a progress bar, tell the tables, and keep numbers, pictures and the page."""

from __future__ import annotations

import argparse

from benchmarks.gpu.operands import Sets, data_sets, only, quick_sets, toy_sets, usual_sets
from benchmarks.gpu.outcome import SCHEMA, Report, read_json
from benchmarks.gpu.page import page
from benchmarks.gpu.pictures import write_pictures
from benchmarks.gpu.run import DTYPES, PARTS, Wish, count_steps, require_device, run
from benchmarks.gpu.tables import all_tables
from benchmarks.gpu.targets import verdicts
from benchmarks.gpu.tasks import CONTESTS
from benchmarks.measuring import QUICK_LIMIT, Written, keep, names_in, progress, seconds_in, tell_all
from sparseloom.cli.arguments import OptionError

SECONDS = 0.2
QUICK_PART, TOY_PART = 8, 1000  # how many times smaller the studies' operands are


def measure_and_tell(options: argparse.Namespace) -> int:
    """Measure, or read what was measured; then tell and keep it."""
    if options.threads is not None:
        raise OptionError("--threads is for bench cpu; kernels on a GPU have the threads that their schedules say")
    report = read_json(options.kept) if options.kept else _measure(options)
    if options.note is not None:
        report.settings["note"] = options.note
    tell_all(all_tables(report), report.gaps, report.left_out)
    keep(options, report, Written(SCHEMA, verdicts, write_pictures, page))
    return 0


def _measure(options: argparse.Namespace) -> Report:
    wish = _wish(options)
    title = require_device()
    with progress(count_steps(wish)) as tell:
        return run(wish, title, tell)


def _wish(options: argparse.Namespace) -> Wish:
    sets, unread = data_sets(options.data) if options.data is not None else (_generated(options), ())
    wanted = names_in(options.kernels, (*CONTESTS, *PARTS), "--kernels")
    known = (*sets, *(case for makes in sets.values() for case in makes))
    usual = "f32" if options.quick else None
    return Wish(
        only(sets, names_in(options.cases, known, "--cases")),
        tuple(name for name in wanted if name in CONTESTS),
        tuple(name for name in wanted if name in PARTS),
        names_in(options.dtypes or usual, tuple(DTYPES), "--dtypes"),
        seconds_in(options, SECONDS),
        options.limit if options.limit is not None else QUICK_LIMIT if options.quick else None,
        unread,
        TOY_PART if options.toy else QUICK_PART if options.quick else 1,
    )


def _generated(options: argparse.Namespace) -> Sets:
    return toy_sets() if options.toy else quick_sets() if options.quick else usual_sets()
