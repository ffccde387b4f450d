"""Measure sparse results: products, sums and conversions beside SciPy, MKL and GraphBLAS, on one thread and on two.

    make bench-results                            everything, in about eight minutes; two cores should be idle
    make bench-results ARGS=--quick               small matrices and few rounds, in seconds
    make bench-results ARGS="--only product add"  some of it

All who compute the same thing run in turn, warm, round after round, and allocate their result anew. A time is a median, a ratio the median
of the ratios of single rounds: *their time over ours*, so above 1 we are faster. Every answer is checked against SciPy first.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import rich.console

from benchmarks import real_data as data
from benchmarks.assembly import QUESTIONS, Question, Way
from benchmarks.for_terminal import for_terminal
from benchmarks.hand import MEMORY_COUNT, triad_bandwidth
from benchmarks.machine import machine
from benchmarks.peers.registry import Peers, find_peers
from benchmarks.report import Table, duration, times
from benchmarks.stand_ins import Make
from benchmarks.task import OURS, TOLERANCE, Field, faults
from benchmarks.threads import use_threads, wait_quietly
from benchmarks.timing import OWN, WALL, Race, geometric_mean, race

console = rich.console.Console(width=max(rich.console.Console().width, 150))


@dataclass(frozen=True)
class Outcome:
    """One question on one matrix or tensor, on so many threads."""

    question: Question
    case: str
    threads: int
    shape: tuple[int, ...]
    stored: int
    race: Race
    absent: dict[str, str]
    floor: float  # seconds that memory needs to move operands and result once

    def gain(self, way: str, peer: str) -> float | None:
        """The peer's time over ours."""
        return self.race.ratio(peer, way) if way in self.race.samples else None

    def as_json(self) -> dict[str, Any]:
        described = {"question": self.question.name, "case": self.case, "threads": self.threads, "shape": self.shape, "stored": self.stored}
        seconds = {name: self.race.seconds(name) for name in self.race.samples}
        return {**described, "seconds": seconds, "absent": self.absent, "floor": self.floor}


@dataclass(frozen=True)
class Verdict:
    """What came of a target: the geometric mean and the worst of the gains, or ``None`` where nothing could be measured."""

    question: str
    way: str
    threads: int
    peer: str
    wanted: float | None
    mean: float | None
    worst: float | None

    @property
    def met(self) -> bool:
        """Whether the mean reaches the target, as it is printed."""
        return self.mean is not None and self.wanted is not None and self.mean >= self.wanted - 0.005


def main() -> int:
    """Measure what was asked for, print tables and keep the numbers."""
    asked = _arguments()
    wait_quietly()
    peers, missing = find_peers("SciPy", "MKL", "GraphBLAS")
    for line in (*(f"{name} is left out: {why}" for name, why in missing.items()), *([] if asked.quick else data.missing())):
        console.print(line)
    questions = [QUESTIONS[name] for name in asked.only or QUESTIONS]
    bandwidth = {threads: triad_bandwidth(MEMORY_COUNT // 8 if asked.quick else MEMORY_COUNT, 20, threads) for threads in (1, 2)}
    outcomes = list(_outcomes(questions, asked, peers, bandwidth))
    tables = [_table(q, way, threads, outcomes) for q in questions for way in q.ways for threads in q.threads]
    verdicts = [v for q in questions for way in q.ways for v in _verdicts(q, way, outcomes)]
    tables.append(_verdict_table(verdicts))
    for table in tables:
        console.print(for_terminal(table))
    described = [{**asdict(verdict), "met": verdict.met} for verdict in verdicts]
    numbers = {"machine": {**machine(), "triad": bandwidth}, "outcomes": [o.as_json() for o in outcomes], "targets": described}
    if asked.json:
        asked.json.write_text(json.dumps(numbers, indent=1))
    if asked.markdown:
        asked.markdown.write_text("\n\n".join(table.for_markdown() for table in tables) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=list(QUESTIONS), metavar="NAME", help=", ".join(QUESTIONS))
    parser.add_argument("--seconds", type=float, default=1.0, help="for each question on each matrix and number of threads (default 1.0)")
    parser.add_argument("--quick", action="store_true", help="small matrices and few rounds: to see that everything runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to this file")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to this file")
    return parser.parse_args()


def _outcomes(questions: Sequence[Question], asked: argparse.Namespace, peers: Peers, bandwidth: dict[int, float]) -> Iterator[Outcome]:
    operands = _operands(asked.quick)
    planned = [(q, case, threads) for q in questions for case in operands[q.operands] for threads in q.threads]
    for number, (question, case, threads) in enumerate(planned, 1):
        tensor = operands[question.operands][case]()
        use_threads(threads, peers.values())
        field = question.field(tensor, peers, threads)
        check(question.name, case, field)
        clock = OWN if threads == 1 else WALL
        result = race({name: entrant.run for name, entrant in field.entrants.items()}, 0.0 if asked.quick else asked.seconds, clock)
        floor = field.bytes_moved / bandwidth[threads]
        outcome = Outcome(question, case, threads, tensor.shape, tensor.nnz, result, dict(field.absent), floor)
        console.print(f"[{number}/{len(planned)}] {_line(outcome)}", markup=False, highlight=False, soft_wrap=True)
        yield outcome


def check(what: str, case: str, field: Field) -> None:
    """Stop if any answer is wrong: a fast wrong answer is worth nothing."""
    for name, fault in faults(field, TOLERANCE["float64"]).items():
        sys.exit(f"{name} computes {what} on {case} wrongly: {fault}")


def _operands(quick: bool) -> dict[str, dict[str, Make]]:
    """How to make the operands of every set; each is made once."""
    squares = data.small_squares() if quick else data.squares()
    matrices = data.small_squares() if quick else data.matrices()
    tensors = data.toy_tensors() if quick else data.tensors()
    sets = {"squares": squares, "matrices": matrices, "tensors": tensors}
    return {name: {case: cache(make) for case, make in makes.items()} for name, makes in sets.items()}


def _line(outcome: Outcome) -> str:
    """One outcome in a line, to be read while the others are waited for."""
    said = [f"{name} {duration(outcome.race.seconds(name))}" for name in outcome.race.samples]
    return f"{outcome.question.name} on {outcome.case}, {_threads(outcome.threads)}: {', '.join(said)}"


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _chosen(question: Question, threads: int, outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [o for o in outcomes if o.question is question and o.threads == threads]


def _peers_of(question: Question, way: Way, outcomes: Sequence[Outcome]) -> list[str]:
    """Whom one of our ways is compared with: everybody who ran, but of our own only those it asks for."""
    ours = {other.name for other in question.ways} - set(way.beside)
    return [name for name in outcomes[0].race.samples if name not in ours]


def _gains(way: Way, peer: str, outcomes: Sequence[Outcome]) -> list[float]:
    return [gain for o in outcomes if (gain := o.gain(way.name, peer)) is not None]


def _table(question: Question, way: Way, threads: int, outcomes: Sequence[Outcome]) -> Table:
    chosen = _chosen(question, threads, outcomes)
    peers = _peers_of(question, way, chosen)
    name = question.name if way.name == OURS else f"{question.name}, {way.name.removeprefix(f'{OURS}, ')}"
    note = f"{question.what}, float64, int32 indices. Beside a time: that time over ours, so above 1 we are faster."
    reasons = {o.absent[way.name] for o in chosen if way.name in o.absent}
    note = " ".join([note, *(f"{OURS}: {reason}." for reason in sorted(reasons))])
    summary = _summary(way, threads, peers, chosen)
    rows = [_row(outcome, way, peers) for outcome in chosen]
    return Table(f"{name}, {_threads(threads)}", note, ["", "stored", way.name, "of floor", *peers], [*rows, *summary], len(summary))


def _row(outcome: Outcome, way: Way, peers: Sequence[str]) -> list[str]:
    described = [outcome.case, f"{outcome.stored:,}"]
    others = {peer: duration(outcome.race.seconds(peer)) for peer in peers}
    if way.name in outcome.absent:
        return [*described, outcome.absent[way.name].partition(":")[0], "", *others.values()]
    ours = outcome.race.seconds(way.name)
    compared = [f"{said} {times(outcome.race.ratio(peer, way.name))}" for peer, said in others.items()]
    return [*described, duration(ours), f"{100 * outcome.floor / ours:.0f}%", *compared]


def _summary(way: Way, threads: int, peers: Sequence[str], outcomes: Sequence[Outcome]) -> list[list[str]]:
    """The mean and the worst gain over each peer, the target, and whether the mean meets it."""
    verdicts = [_verdict(outcomes[0].question, way, threads, peer, outcomes) for peer in peers]
    lines = {
        "geometric mean": [_gain(v.mean) for v in verdicts],
        "worst": [_gain(v.worst) for v in verdicts],
        "target": [_target(v) for v in verdicts],
        "met": [_met(v) for v in verdicts],
    }
    return [[title, "", "", "", *cells] for title, cells in lines.items() if any(cells)]


def _verdict(question: Question, way: Way, threads: int, peer: str, outcomes: Sequence[Outcome]) -> Verdict:
    gains = _gains(way, peer, outcomes)
    mean, worst = (geometric_mean(gains), min(gains)) if gains else (None, None)
    return Verdict(question.name, way.name, threads, peer, way.targets.get((peer, threads)), mean, worst)


def _verdicts(question: Question, way: Way, outcomes: Sequence[Outcome]) -> Iterator[Verdict]:
    """What came of every target whose peer is at hand."""
    for peer, threads in way.targets:
        chosen = _chosen(question, threads, outcomes)
        if peer in _peers_of(question, way, chosen):
            yield _verdict(question, way, threads, peer, chosen)


def _verdict_table(verdicts: Sequence[Verdict]) -> Table:
    rows = [
        [f"{v.question}: {v.way} against {v.peer}, {_threads(v.threads)}", _target(v), _gain(v.mean), _gain(v.worst), _met(v)]
        for v in verdicts
    ]
    note = "Their time over ours. A target is met if the geometric mean reaches it."
    return Table("Targets", note, ["question", "target", "geometric mean", "worst", "met"], rows)


def _gain(ratio: float | None) -> str:
    return "" if ratio is None else times(ratio)


def _target(verdict: Verdict) -> str:
    return "" if verdict.wanted is None else f"≥ {times(verdict.wanted)}"


def _met(verdict: Verdict) -> str:
    if verdict.wanted is None:
        return ""
    if verdict.mean is None:
        return "not measured"
    return "yes" if verdict.met else "no"


if __name__ == "__main__":
    sys.exit(main())
