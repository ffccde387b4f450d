"""The hostile campaign: ``python tests/attack/campaign.py``, or ``make attack``.

Thousands of calls that a careless or hostile user might make. Each part is one file beside this one, with a ``NAME``, a ``COUNT`` and a
``trial(rng)`` that draws everything from ``rng``. A trial returns a word for what happened ("right", "refused"), or raises AssertionError
where something was silently wrong. A SparseloomError that escapes counts as refused; any other exception, a signal and a hang are faults.
Every fault is printed with the command that repeats it.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from pathlib import Path

# So that the command above works as it stands; the source beside this file wins over any other sparseloom.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from attack.pool import LIMIT, Fault, Report, run
from attack.worker import answer, load
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

HERE = Path(__file__).resolve().parent
PARTS = ("storage", "changed", "aliases", "files", "damaged", "modes", "process", "cache", "injection", "functions")
KINDS = {"wrong": "silently wrong", "exception": "exceptions", "signal": "signals", "hang": "hangs"}


def parts_present() -> list[str]:
    """The parts that have a file."""
    return [part for part in PARTS if (HERE / f"{part}.py").exists()]


def in_short(part: str) -> int:
    """How many trials the tests do: what the part says, or a fiftieth."""
    module = load(part)
    return int(getattr(module, "SHORT", max(module.COUNT // 50, 4)))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Attack Sparseloom with hostile calls and count what must not happen.")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given several times")
    parser.add_argument("--count", type=int, help="trials of each part (default: the part's own number)")
    parser.add_argument("--scale", type=float, default=1.0, help="times the part's own number of trials")
    parser.add_argument("--seed", type=int, help="the seed of the campaign (default: a new one)")
    parser.add_argument("--trial", type=int, help="only the trial of this number, in this process")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: the number of cores)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the longest time for each part")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which a trial hangs")
    return parser.parse_args()


def tally(report: Report) -> str:
    """The counts of a part in a few words."""
    words = [f"{count} {word}" for word, count in report.words.most_common()]
    colour = "red" if report.faults else "green"
    return ", ".join([*words, f"[{colour}]{len(report.faults)} faults[/]"])


def campaign(parts: list[str], options: argparse.Namespace, console: Console) -> list[Report]:
    """Run the parts one after another, each with a bar."""
    columns = (
        TextColumn("{task.description:<10}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[tally]}"),
    )  # fmt: skip
    reports = []
    with Progress(*columns, console=console) as progress:
        for part in parts:
            count = options.count if options.count is not None else max(1, round(load(part).COUNT * options.scale))
            task = progress.add_task(part, total=count, tally="")

            def show(report: Report, task: object = task) -> None:
                progress.update(task, completed=report.done, tally=tally(report))  # type: ignore[arg-type]

            until = time.monotonic() + options.seconds
            reports.append(run(part, options.seed, range(count), count, options.jobs, options.limit, until, show))
            for fault in reports[-1].faults:
                print_fault(fault, progress.console)
    return reports


def print_fault(fault: Fault, console: Console) -> None:
    """What happened and how to repeat it."""
    console.print(f"{KINDS[fault.kind]}: {fault.repeat}", markup=False, style="red", soft_wrap=True)
    console.print(fault.text.rstrip(), markup=False, highlight=False, soft_wrap=True)


def table(reports: list[Report]) -> Table:
    """One line for each part."""
    found = Table("part", "trials", "right", "refused", "other", *KINDS.values(), "seconds", title="hostile campaign")
    for report in reports:
        faults = [sum(fault.kind == kind for fault in report.faults) for kind in KINDS]
        other = ", ".join(f"{n} {word}" for word, n in report.words.most_common() if word not in ("right", "refused"))
        counts = [f"[red]{n}[/]" if n else "0" for n in faults]
        trials = f"{report.done}" if report.done == report.wanted else f"{report.done} of {report.wanted}"
        found.add_row(
            report.part, trials, str(report.words["right"]), str(report.words["refused"]), other, *counts, f"{report.seconds:.0f}"
        )
    return found


def main() -> int:
    """Run what the command line asks for; 1 if there was a fault."""
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else 140)
    parts = options.part or parts_present()
    options.seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    if options.trial is not None:
        ends = [answer(load(part), options.seed, part, options.trial) for part in parts]
        for part, (kind, text) in zip(parts, ends, strict=True):
            console.print(f"{part}: {kind}: {text}", markup=False, highlight=False, soft_wrap=True)
        return int(any(kind in KINDS for kind, _ in ends))
    console.print(f"seed {options.seed}, {options.jobs} processes")
    reports = campaign(parts, options, console)
    console.print(table(reports))
    for fault in (fault for report in reports for fault in report.faults):
        console.print(f"{fault.kind}: {fault.repeat}", markup=False, highlight=False, soft_wrap=True)
    return int(any(report.faults for report in reports))


if __name__ == "__main__":
    sys.exit(main())
