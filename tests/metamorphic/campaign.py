"""The metamorphic campaign: ``python tests/metamorphic/campaign.py``, or ``make metamorphic N=10000``.

Random valid programs, each compared with variants of itself that must give the same. The design is TenSure's (Mahathevan, Zhang, Gulzar and
Sundararajah, arXiv 2603.18372): programs are built under constraints, so that all of them are valid, and no trusted reference is needed.
It shares no code with the differential fuzzers of ``tests/fuzz``. Every fault is printed with the command that repeats it.
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

from metamorphic.pool import Report, Settings, run
from metamorphic.running import COMPILED, VARIANTS, draw_trial, run_batch

KINDS = ("wrong", "internal", "exception", "signal", "hang")
EVERY = 30.0  # seconds between lines of progress


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare random programs with variants of themselves that must give the same.")
    parser.add_argument("--count", type=int, default=10_000, help="how many programs")
    parser.add_argument("--seed", type=int, help="the seed of the campaign (default: a new one)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--program", type=int, help="only the program of this number, in this process; it is printed with its variants")
    parser.add_argument("--variants", type=int, default=VARIANTS, help="variants of each program")
    parser.add_argument("--compiled", type=float, default=COMPILED, help="the share of variants that are compiled; others are interpreted")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: the number of cores)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the longest time")
    return parser.parse_args()


def one(options: argparse.Namespace) -> int:
    """Do one program and print it with all of its variants."""
    found = draw_trial(options.seed, options.program, options.compiled, options.variants)
    print(*found.variants, sep="\n\n")
    ((trial),) = run_batch(options.seed, [options.program], lambda number: None, options.compiled, options.variants)
    print(f"\n{trial.compared} results compared, {len(trial.faults)} faults")
    for kind, text in trial.faults:
        print(f"\n{kind}\n{text}")
    return int(bool(trial.faults))


def table(report: Report) -> list[str]:
    """What was compared, what was rejected, and what went wrong."""
    lines = [f"{report.programs} programs, {report.compared} results compared, {report.seconds:.0f} seconds"]
    lines += [f"  {count:6} {word}" for word, count in sorted(report.words.items(), key=lambda one: (one[0].split(":")[0], -one[1]))]
    counts = ", ".join(f"{sum(fault.kind == kind for fault in report.faults)} {kind}" for kind in KINDS)
    rate = report.faulty / max(report.programs, 1)
    return [*lines, f"faults: {counts}; {report.faulty} programs of {report.programs}, {rate:.2%}"]


def main() -> int:
    """Run what the command line asks for; 1 if there was a fault."""
    options = arguments()
    options.seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    if options.program is not None:
        return one(options)
    print(f"seed {options.seed}, {options.jobs} processes", flush=True)
    started = last = time.monotonic()
    said = 0

    def show(report: Report) -> None:
        nonlocal last, said
        for fault in report.faults[said:]:
            print(f"{fault.kind}: {repeat(options, fault.number)}\n{fault.text.rstrip()}\n", flush=True)
        said = len(report.faults)
        if time.monotonic() - last > EVERY:
            last = time.monotonic()
            print(f"{last - started:6.0f} s  {report.programs} programs, {len(report.faults)} faults", flush=True)

    settings = Settings(options.seed, options.compiled, options.variants, options.jobs, started + options.seconds)
    report = run(range(options.first, options.first + options.count), settings, show)
    print(*table(report), sep="\n")
    return int(bool(report.faults))


def repeat(options: argparse.Namespace, number: int) -> str:
    """The command that does one program again."""
    shares = f"--variants {options.variants} --compiled {options.compiled}"
    return f"python tests/metamorphic/campaign.py --seed {options.seed} {shares} --program {number}"


if __name__ == "__main__":
    sys.exit(main())
