"""The campaign against races: ``python tests/races/campaign.py``, or ``make races``.

Every parallel form, with every kind of result, every way to treat races and every reduction operator, with and without a workspace that
threads keep. On tiny data each kernel runs 200 times on 3 threads and on 8, which may be more than there are cores; then, as a program of
its own, ten times under ThreadSanitizer. 0 faults are wanted.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from random import Random

# So that the command above works as it stands; the source beside this file wins over any other sparseloom.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from races.running import BATCH, REPEATS, Found, run
from races.shapes import RESULTS, Cell, cells
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from sanitize.tools import TOOLS

QUIET = 30  # seconds between two lines of a log


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Run every parallel form of kernels again and again, and under ThreadSanitizer.")
    parser.add_argument("--scale", type=float, default=1.0, help="the share of all combinations")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="calls of each kernel on each number of threads")
    parser.add_argument("--seed", type=int, help="the seed (default: a new one)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: the number of cores)")
    parser.add_argument("--batch", type=int, help="only the batch that begins with this number")
    return parser.parse_args()


def ordered(seed: int) -> list[Cell]:
    """All cells in an order that follows from the seed, so that a share of them has some of everything."""
    found = cells()
    Random(seed).shuffle(found)
    return found


def batch(seed: int, first: int, count: int, repeats: int, sanitizes: bool) -> Found:
    """Some cells, in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="sparseloom-races-") as folder:
        return run(ordered(seed)[first : first + count], seed, first, repeats, TOOLS["tsan"] if sanitizes else None, Path(folder))


def main() -> int:
    """Run what the command line asks for; 1 if there was a fault."""
    options, started = arguments(), time.monotonic()
    console = Console(width=None if sys.stdout.isatty() else 140)
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory() as folder:
        missing = TOOLS["tsan"].missing(Path(folder))
    if missing is not None:
        console.print(f"left out: ThreadSanitizer: {missing}", style="yellow", markup=False, soft_wrap=True)
    wanted = max(1, round(len(cells()) * options.scale))
    firsts = range(0, wanted, BATCH) if options.batch is None else [options.batch]
    console.print(f"seed {seed}, {wanted} of {len(cells())} combinations, {options.jobs} processes")
    total = Found()
    last = started
    columns = TextColumn("{task.fields[tally]}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress, ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        task = progress.add_task("races", total=len(firsts), tally="")
        ends = {first: BATCH if options.batch is not None else min(BATCH, wanted - first) for first in firsts}
        jobs = {pool.submit(batch, seed, first, ends[first], options.repeats, missing is None): first for first in firsts}
        for done in as_completed(jobs):
            total.add(done.result())
            tally = f"{total.ran.total()} kernels, {len(total.faults)} faults"
            progress.update(task, advance=1, tally=tally)
            if not console.is_terminal and time.monotonic() - last > QUIET:  # a log shows no bar
                last = time.monotonic()
                console.print(f"{tally}, {total.calls} calls, {total.checked} under ThreadSanitizer, {last - started:.0f} s")
            for fault in done.result().faults:
                progress.console.print(f"--seed {seed} --batch {jobs[done]}", markup=False, style="red")
                progress.console.print(fault, markup=False, highlight=False, soft_wrap=True)
    console.print(table(total, time.monotonic() - started))
    return int(bool(total.faults))


def table(found: Found, seconds: float) -> Table:
    """What ran, by kind of result."""
    made = Table("result", "kernels", title="races")
    for name in RESULTS:
        made.add_row(name, str(found.ran[name]))
    made.add_section()
    made.add_row("all", str(found.ran.total()))
    made.add_row("rejected", str(found.rejected.total()))
    made.add_row("calls", str(found.calls))
    made.add_row("under ThreadSanitizer", str(found.checked))
    made.add_row("faults", f"[red]{len(found.faults)}[/]" if found.faults else "0")
    made.add_row("seconds", f"{seconds:.0f}")
    return made


if __name__ == "__main__":
    sys.exit(main())
