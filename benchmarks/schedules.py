"""What schedules do to speed: the paper's CPU schedules beside no schedule, on one and on two threads.

    make bench-schedules
    make bench-schedules ARGS="--rounds 31"  longer, so quieter

Ratios of wall time in one run, interleaved, warm, medians over rounds; every result is checked first.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import rich.console
import scipy.sparse as sp

import sparseloom as sl
from benchmarks.for_terminal import for_terminal
from benchmarks.report import Table, duration, times
from benchmarks.studies import POSITIONS, ROWS, SPMM, SPMV, STATIC, TILED
from benchmarks.threads import use_threads
from benchmarks.timing import geometric_mean

REGISTERS = "reorder(i,k,j) parallelize(k,CPUVector,NoRaces)"
SLICES = "pos(i,ip,B(i,k,l)) split(ip,ip0,ip1,32) reorder(ip0,ip1,k,l,j) parallelize(ip0,CPUThread,NoRaces)"

MTTKRP = "A(i,j) = B(i,k,l) * C(k,j) * D(l,j)"

Run = Callable[[], object]


@dataclass(frozen=True)
class Question:
    """Two ways to compute one thing: how much quicker ``ours`` must be than ``base``, each on some threads."""

    title: str
    base: tuple[Run, int]
    ours: tuple[Run, int]
    wanted: float


def questions() -> Iterator[Question]:
    """The figures that schedules are held to."""
    balanced = _rows(np.full(100_000, 20), 100_000)
    rows, positions = _spmv(balanced, ROWS), _spmv(balanced, POSITIONS)
    yield Question("SpMV, balanced rows, 1 thread: positions against rows", (rows, 1), (positions, 1), 1 / 1.3)
    skewed = _rows(np.concatenate([np.full(800, 4000), np.full(19_200, 5)]), 20_000)
    rows, positions = _spmv(skewed, STATIC), _spmv(skewed, POSITIONS)
    yield Question("SpMV, heavy first rows, 2 threads: positions against rows", (rows, 2), (positions, 2), 1.5)
    for length, wanted in ((10, 1.0), (100, 1.3)):
        matrix = _rows(np.full(200_000 // length, length), 200_000 // length)
        for name, schedule in (("the paper's schedule", TILED), ("k in registers", REGISTERS)):
            title = f"SpMM, k = 32, rows of {length}, 1 thread: {name} against none"
            yield Question(title, (_spmm(matrix, ""), 1), (_spmm(matrix, schedule), 1), wanted)
    tensor, factors = _tensor(), [_numbers(2000, 32), _numbers(2000, 32)]
    mttkrp = _mttkrp(tensor, factors)
    yield Question("MTTKRP, rank 32: two threads against one", (mttkrp, 1), (mttkrp, 2), 1.6)


def _spmv(matrix: sp.csr_array, schedule: str) -> Run:
    x = _numbers(matrix.shape[1])
    return _checked(sl.program(SPMV, {"A": "csr"}, schedule).bind(matrix, x), matrix @ x)


def _spmm(matrix: sp.csr_array, schedule: str) -> Run:
    dense = _numbers(matrix.shape[1], 32)
    return _checked(sl.program(SPMM, {"A": "csr"}, schedule).bind(matrix, dense), matrix @ dense)


def _mttkrp(tensor: sl.Tensor, factors: list[np.ndarray]) -> Run:
    plain = sl.program(MTTKRP, {"B": "csf"})(tensor, *factors).to_numpy()
    return _checked(sl.program(MTTKRP, {"B": "csf"}, SLICES).bind(tensor, *factors), plain)


def _checked(run: sl.BoundKernel, wanted: np.ndarray) -> Run:
    if not np.allclose(run().to_numpy(), wanted):
        raise SystemExit("a scheduled kernel gave a wrong result; nothing was measured")
    return run


def _rows(lengths: np.ndarray, columns: int) -> sp.csr_array:
    """A matrix with rows of these lengths and random columns."""
    rng = np.random.default_rng(5)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    stride = np.maximum(columns // np.maximum(lengths, 1), 1)
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    crd = within * np.repeat(stride, lengths) + rng.integers(0, np.repeat(stride, lengths))
    return sp.csr_array((rng.random(len(crd)), crd.astype(np.int32), starts.astype(np.int32)), shape=(len(lengths), columns))


def _tensor() -> sl.Tensor:
    rng = np.random.default_rng(6)
    entries = np.unique(rng.integers(0, 2000, (3, 400_000)), axis=1)
    return sl.from_coo(entries, rng.random(entries.shape[1]), (2000, 2000, 2000), format="csf")


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).random(shape)


def measure(question: Question, rounds: int) -> tuple[float, float]:
    """Seconds of both sides, interleaved."""
    samples: Mapping[str, list[float]] = {"base": [], "ours": []}
    for _ in range(rounds + 2):
        for name, (run, count) in (("base", question.base), ("ours", question.ours)):
            use_threads(count)
            run()
            start = time.perf_counter()
            run()
            samples[name].append(time.perf_counter() - start)
    return median(samples["base"][2:]), median(samples["ours"][2:])


def main() -> int:
    """Ask every question and print the answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="how often each side is timed (default: 15)")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    asked = parser.parse_args()
    console = rich.console.Console()
    rows, gains = [], []
    for question in questions():
        console.print(f"[dim]{question.title}[/dim]")
        base, ours = measure(question, asked.rounds)
        gain = base / ours
        gains.append(gain)
        met = "yes" if gain >= question.wanted - 0.005 else "no"
        rows.append([question.title, duration(base), duration(ours), times(gain), f"≥ {question.wanted:.2f}x", met])
    mean = geometric_mean(gains)
    note = f"Wall time, medians of {asked.rounds} interleaved rounds; geometric mean of the gains {times(mean)}."
    table = Table("Schedules", note, ("question", "base", "scheduled", "gain", "wanted", "met"), rows)
    console.print(for_terminal(table))
    if asked.markdown is not None:
        asked.markdown.write_text(table.for_markdown() + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
