"""The fuzzers' kernels under sanitizers: ``python tests/sanitize/run.py``, or ``make sanitize``.

Kernels and operands are drawn as the fuzzers draw them, written as C programs of their own, and run under every tool that this machine
has: 2,000 under ASan and UBSan (modes of 2^31 to 2^62 coordinates among them), 500 under MSan or valgrind, 200 with threads under TSan with
Archer. What is missing is said, and the rest is done. 0 reports are wanted.
"""

from __future__ import annotations

import argparse
import os
import resource
import secrets
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# So that the command above works as it stands; the source beside this file wins over any other sparseloom.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from sanitize.kernels import drawn
from sanitize.standalone import Kernel, program
from sanitize.tools import TOOLS, Tool, named, reports

BATCH = 25
LONGEST = 60  # seconds
MOST_MEMORY = 4 << 30  # bytes
COUNTS = {"asan": 2000, "msan": 500, "valgrind": 500, "tsan": 200}
# What share of the kernels is of each kind, where a tool takes it.
SHARES = {"statement": 8, "narrow": 2, "scheduled": 4, "wide": 4, "parallel": 2}


@dataclass
class Found:
    """What a tool reported: how many kernels of each kind ran, and the reports with the kernel that each is about."""

    tool: str
    ran: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0


def shares(tool: Tool, count: int) -> dict[str, int]:
    """How many kernels of each kind: about ``count`` together."""
    wanted = {kind: SHARES[kind] for kind in tool.kinds}
    whole = sum(wanted.values())
    return {kind: max(1, round(count * share / whole)) for kind, share in wanted.items()}


def batch(kind: str, seed: int, first: int, count: int) -> tuple[list[Kernel], list[tuple[str, str]]]:
    """The first ``count`` kernels from a number on; numbers under which nothing valid is drawn are passed over."""
    kernels: list[Kernel] = []
    faults = []
    for number in range(first, first + 40 * count):
        try:
            with within_limits():
                kernel = drawn(kind, seed, number)
        except (MemoryError, TimeoutError):
            continue  # too much for the interpreter, which is asked how long the results are
        except Exception:  # noqa: BLE001 -- whatever compiling a drawn statement raises is a fault of its own
            faults.append((f"{kind} {seed} {number}", traceback.format_exc(limit=-4)))
            continue
        kernels += [kernel] if kernel is not None else []
        if len(kernels) == count:
            break
    return kernels, faults


@contextmanager
def within_limits() -> Iterator[None]:
    """Let drawing one kernel, which runs it in the interpreter, take no more than some memory and some time."""

    def late(*_: object) -> None:
        raise TimeoutError(f"no end after {LONGEST} s")

    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))


def check(name: str, kind: str, seed: int, first: int, count: int, keep: str | None = None) -> Found:
    """One program with some kernels of one kind under one tool."""
    tool, found = TOOLS[name], Found(name)
    kernels, found.faults = batch(kind, seed, first, count)
    found.ran[kind] = len(kernels)
    if not kernels:
        return found
    with tempfile.TemporaryDirectory(prefix="sparseloom-sanitize-") as folder:
        source = Path(keep or folder, f"{name}-{kind}-{seed}-{first}.c")
        source.write_text(program(kernels), encoding="utf-8")
        built = tool.build(source)
        if built.returncode:
            found.faults.append((f"{kind} {seed} {first}", f"it cannot be compiled:\n{built.stderr[:3000]}"))
            return found
        for k, text in reports(tool, source, len(kernels)).items():
            found.faults.append((kernels[k].label if k >= 0 else f"{kind} {seed} {first}", text))
    return found


def pieces(tool: Tool, seed: int, count: int) -> Iterator[tuple[str, int, int]]:
    """The programs of one tool: kind, first number and how many kernels. Numbers are far apart, as some draw nothing."""
    for kind, wanted in shares(tool, count).items():
        for k, first in enumerate(range(0, wanted, BATCH)):
            yield kind, k * 40 * BATCH, min(BATCH, wanted - first)


def sanitize(tool: Tool, seed: int, count: int, jobs: int, show: Callable[[Found], None] = lambda found: None) -> Found:
    """About ``count`` kernels under one tool."""
    total, started = Found(tool.name), time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(check, tool.name, kind, seed, first, size) for kind, first, size in pieces(tool, seed, count)]
        for done in as_completed(waiting):
            total.ran += done.result().ran
            total.faults += done.result().faults
            show(total)
    total.seconds = time.monotonic() - started
    return total


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Run the fuzzers' kernels under sanitizers.")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this one; may be given several times")
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of kernels")
    parser.add_argument("--seed", type=int, help="the seed (default: a new one)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time (default: the number of cores)")
    parser.add_argument("--kernel", nargs=3, metavar=("KIND", "SEED", "NUMBER"), help="only this kernel; its program is kept")
    return parser.parse_args()


def usable(console: Console, names: list[str] | None) -> list[Tool]:
    """The tools that work here; of MSan and valgrind, which look for the same, the first, unless both are named."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for tool in named(names):
            if tool.name == "valgrind" and not names and any(one.name == "msan" for one in found):
                continue
            missing = tool.missing(Path(folder))
            if missing is None:
                found.append(tool)
            else:
                console.print(f"left out: {tool.name} ({tool.what}): {missing}", style="yellow", markup=False, soft_wrap=True)
    return found


def print_faults(console: Console, found: Found) -> None:
    """Every report, and how to repeat it."""
    for label, text in found.faults:
        kind, seed, number = label.splitlines()[0].split()
        command = f"python tests/sanitize/run.py --tool {found.tool} --kernel {kind} {seed} {number}"
        console.print(command, style="red", markup=False, soft_wrap=True)
        console.print(f"{label}\n{text}", markup=False, highlight=False, soft_wrap=True)


def table(results: list[Found]) -> Table:
    """One line for each tool."""
    made = Table("tool", "looks for", "kernels", *SHARES, "reports", "seconds", title="sanitizers")
    for found in results:
        count = f"[red]{len(found.faults)}[/]" if found.faults else "0"
        kinds = [str(found.ran[kind]) for kind in SHARES]
        made.add_row(found.tool, TOOLS[found.tool].what, str(found.ran.total()), *kinds, count, f"{found.seconds:.0f}")
    return made


def main() -> int:
    """Run what the command line asks for; 1 if anything was reported."""
    options = arguments()
    console = Console(width=None if sys.stdout.isatty() else 140)
    tools = usable(console, options.tool)
    seed = secrets.randbelow(10**9) if options.seed is None else options.seed
    results = []
    if options.kernel is not None:
        kind, seed, number = options.kernel[0], int(options.kernel[1]), int(options.kernel[2])
        kept = tempfile.mkdtemp(prefix="sparseloom-sanitize-")
        console.print(f"the programs are kept in {kept}")
        results = [check(tool.name, kind, seed, number, 1, kept) for tool in tools]
        for found in results:
            print_faults(console, found)
    else:
        console.print(f"seed {seed}, {options.jobs} processes")
        results = with_bars(tools, seed, options, console)
    console.print(table(results))
    return int(any(found.faults for found in results) or not tools)


def with_bars(tools: list[Tool], seed: int, options: argparse.Namespace, console: Console) -> list[Found]:
    """All tools, one after another, each with a bar."""
    columns = (
        TextColumn("{task.description:<10}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[reports]} reports"),
    )  # fmt: skip
    results = []
    with Progress(*columns, console=console) as progress:
        for tool in tools:
            count = max(len(tool.kinds), round(COUNTS[tool.name] * options.scale))
            task = progress.add_task(tool.name, total=count, reports=0)

            def show(found: Found, task: object = task) -> None:
                progress.update(task, completed=found.ran.total(), reports=len(found.faults))  # type: ignore[arg-type]

            results.append(sanitize(tool, seed, count, options.jobs, show))
            print_faults(progress.console, results[-1])
    return results


if __name__ == "__main__":
    sys.exit(main())
