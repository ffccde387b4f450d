"""Measure Sparseloom beside hand-written C and other libraries, and what a user waits for besides the kernel.

    make bench                              everything, in under five minutes
    make bench ARGS="--only spmv overheads" some of it
    make bench ARGS="--seconds 3"           longer, so quieter

All who compute the same thing run in turn, warm, on one thread, round after round, by that thread's clock; a time is a median, and a
ratio is the median of the ratios of single rounds. Every answer is checked before it is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import rich.console

import data
import sparseloom as sl
from contests import CONTESTS, HAND, OURS, Contest, Peers, check
from hand import TRIAD_COUNT, triad_bandwidth
from machine import machine
from overheads import Door, Overhead, doors, measure
from peers import find_peers
from report import Table, duration, times
from timing import Race, geometric_mean, race

RESULTS = Path(__file__).with_name("results") / "latest.json"
OVERHEADS = "overheads"
# Sums and sampled products are measured on fewer matrices: their ratios vary less.
SOME = ("rustdoc_term_doc", "epfl_hyp_netlist", "rustdoc_web", "copter2", "wheelset_elasticity", "debian_dir_pkg", "power_law", "in_cache")

console = rich.console.Console(width=max(rich.console.Console().width, 120))


@dataclass(frozen=True)
class Outcome:
    """One kernel on one matrix or tensor."""

    kernel: str
    case: str
    shape: tuple[int, ...]
    stored: int
    race: Race
    floor: float  # seconds that memory needs to move everything once

    def ratios(self) -> dict[str, float]:
        """Our time over everybody else's."""
        return {name: self.race.ratio(OURS, name) for name in self.race.samples if name != OURS}

    def as_json(self) -> dict[str, Any]:
        seconds = {name: self.race.seconds(name) for name in self.race.samples}
        described = {"kernel": self.kernel, "case": self.case, "shape": self.shape, "stored": self.stored}
        return {**described, "seconds": seconds, "ratios": self.ratios(), "floor": self.floor}


def main() -> int:
    """Measure what was asked for, print tables and keep the numbers."""
    asked = _arguments()
    wanted = asked.only or [*CONTESTS, OVERHEADS]
    found, missing = find_peers("SciPy", "Numba", "MKL")
    for line in missing:
        console.print(line)
    bandwidth = triad_bandwidth(1000 if asked.toy else TRIAD_COUNT, 3 if asked.toy else 20)
    outcomes = list(_contests([CONTESTS[name] for name in wanted if name in CONTESTS], asked, found, bandwidth))
    overheads = list(_overheads(asked)) if OVERHEADS in wanted else []
    passed = list(doors(0.0 if asked.toy else asked.seconds)) if OVERHEADS in wanted else []
    tables = [_contest_table(contest, [o for o in outcomes if o.kernel == contest.name]) for contest in CONTESTS.values()]
    tables = [table for table in tables if table.rows] + ([_overhead_table(overheads)] if overheads else [])
    tables += [_door_table(passed)] if passed else []
    for table in tables:
        console.print(table.for_terminal())
    measured = {"kernels": [o.as_json() for o in outcomes], "overheads": [asdict(o) for o in overheads]}
    measured["doors"] = [door.as_json() for door in passed]
    _keep(asked, tables, {"machine": {**machine(), "triad": bandwidth}, **measured})
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=[*CONTESTS, OVERHEADS], metavar="NAME", help=", ".join([*CONTESTS, OVERHEADS]))
    parser.add_argument("--seconds", type=float, default=1.0, help="for each kernel on each matrix (default 1.0)")
    parser.add_argument("--toy", action="store_true", help="tiny operands and few rounds: only to see that everything runs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the numbers go, as JSON")
    parser.add_argument("--markdown", type=Path, help="write the tables as Markdown as well")
    return parser.parse_args()


def _contests(contests: Sequence[Contest], asked: argparse.Namespace, peers: Peers, bandwidth: float) -> Iterator[Outcome]:
    planned = [(contest, case) for contest in contests for case in _cases(contest, asked.toy)]
    for number, (contest, case) in enumerate(planned, 1):
        tensor = _operand(contest.on_tensors, case, asked.toy)
        field = contest.field(tensor, peers)
        check(contest.name, case, field)
        result = race({name: entrant.run for name, entrant in field.entrants.items()}, 0.0 if asked.toy else asked.seconds)
        outcome = Outcome(contest.name, case, tensor.shape, tensor.nnz, result, field.bytes_moved / bandwidth)
        beside = ", ".join(f"{times(ratio)} of {name}" for name, ratio in outcome.ratios().items())
        line = f"[{number}/{len(planned)}] {contest.name} on {case}: {duration(result.seconds(OURS))}, {beside}"
        console.print(line, markup=False, highlight=False)
        yield outcome


def _cases(contest: Contest, toy: bool) -> list[str]:
    names = list(_sources(contest.on_tensors, toy))
    return names if toy or contest.target is not None else [name for name in names if name in SOME]


def _sources(tensors: bool, toy: bool) -> dict[str, data.Make]:
    if tensors:
        return data.toy_tensors() if toy else data.tensors()
    return data.toy_matrices() if toy else data.matrices()


@cache
def _operand(tensors: bool, case: str, toy: bool) -> sl.Tensor:
    return _sources(tensors, toy)[case]()


def _overheads(asked: argparse.Namespace) -> Iterator[Overhead]:
    for overhead in measure(1 if asked.toy else 9, 0.0 if asked.toy else 3.0):
        console.print(f"{overhead.what}: {duration(overhead.seconds)}", highlight=False)
        yield overhead


def _contest_table(contest: Contest, outcomes: Sequence[Outcome]) -> Table:
    others = [name for name in outcomes[0].race.samples if name != OURS] if outcomes else []
    head = ["", "rows", "stored", OURS, "of floor", *others]
    rows = [_row(outcome, others) for outcome in outcomes]
    note = f"{contest.statement}, float64, int32 indices. Columns on the right: our time over theirs, so below 1 we are faster."
    if contest.target is not None:
        note += f" Target: at most {contest.target}x of the {HAND} in the geometric mean."
    if not outcomes:
        return Table(contest.name, note, head, rows)
    by_peer = {name: [outcome.ratios()[name] for outcome in outcomes] for name in others}
    mean = ["geometric mean", "", "", "", "", *(times(geometric_mean(by_peer[name])) for name in others)]
    worst = ["worst", "", "", "", "", *(times(max(by_peer[name])) for name in others)]
    return Table(contest.name, note, head, [*rows, mean, worst], summary=2)


def _row(outcome: Outcome, others: Sequence[str]) -> list[str]:
    seconds, ratios = outcome.race.seconds(OURS), outcome.ratios()
    described = [outcome.case, f"{outcome.shape[0]:,}", f"{outcome.stored:,}"]
    return [*described, duration(seconds), f"{100 * outcome.floor / seconds:.0f}%", *(times(ratios[name]) for name in others)]


def _overhead_table(overheads: Sequence[Overhead]) -> Table:
    rows = [
        [o.what, duration(o.target), duration(o.seconds), duration(min(o.samples)), "yes" if o.meets else "no"]
        for o in overheads
    ]
    return Table("Overheads", "Medians; the least is what a quiet machine gives.", ["wait", "target", "median", "least", "met"], rows)


def _door_table(passed: Sequence[Door]) -> Table:
    rows = [[door.what, *map(duration, door.seconds), times(door.ratio)] for door in passed]
    note = "Medians, in turn with SciPy: matrices of 100 x 100 with 500 entries, solvers on 500 x 500 with 5,500. Below 1 we are faster."
    return Table("Doors", note, ["what is written", OURS, "SciPy", "ratio"], rows)


def _keep(asked: argparse.Namespace, tables: Sequence[Table], numbers: dict[str, Any]) -> None:
    asked.results.parent.mkdir(parents=True, exist_ok=True)
    asked.results.write_text(json.dumps(numbers, indent=1))
    console.print(f"The numbers are in {os.path.relpath(asked.results)}.")
    if asked.markdown:
        asked.markdown.write_text("\n\n".join(table.for_markdown() for table in tables) + "\n")


if __name__ == "__main__":
    sys.exit(main())
