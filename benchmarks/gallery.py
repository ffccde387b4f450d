"""Times of the gallery's programs beside what people use today, and of the lessons' schedules, written into the pages.

    make gallery
    make gallery ARGS="--rounds 3 pagerank spmm"  fewer rounds, some pages only

Every program is the page's own: its blocks are run, then `ours` and `theirs` on larger data, turn by turn. The shortest wall time of
each counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import sparseloom as sl

DOCS = Path(__file__).resolve().parents[1] / "docs"
FENCED = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUSY = 1.5  # the load of the last quarter of an hour above which we are not alone: our own runs are mostly one thread
MARKED = re.compile(r"(<!-- times -->\n).*?(<!-- /times -->)", re.DOTALL)


@dataclass(frozen=True)
class Program:
    """A page of the gallery: how large its data are, what that is in words, and whom it is compared with."""

    size: int
    data: str
    peer: str


PROGRAMS = {
    "pagerank": Program(200_000, "200,000 pages, 2 million links, 50 steps", "SciPy"),
    "shortest-paths": Program(20_000, "20,000 places, 160,000 roads, 16 starts", "SciPy's Dijkstra"),
    "triangles": Program(30_000, "30,000 people, 360,000 edges", "SciPy"),
    "label-propagation": Program(50_000, "50,000 nodes, 800,000 edges, 8 classes, 30 steps", "SciPy"),
    "kronecker-graphs": Program(600, "two graphs of 600 nodes, two steps on their product", "SciPy"),
    "graph-layer": Program(30_000, "30,000 nodes, 330,000 edges, 32 features", "NumPy and SciPy"),
    "block-attention": Program(4096, "4,096 places, blocks of 32, 32 features", "NumPy, dense"),
    "cp-als": Program(5_000, "200,000 entries, rank 16, 3 sweeps", "NumPy and SciPy"),
    "tucker": Program(3_000, "120,000 entries, rank 6, 2 sweeps", "NumPy and SciPy"),
    "text-similarity": Program(4_000, "4,000 documents, 200 of them asked for", "SciPy"),
    "single-cell": Program(10_000, "10,000 cells, 2,000 genes, 1.6 million counts", "SciPy"),
    "finite-elements": Program(150, "44,402 triangles", "SciPy"),
}

SPMM, SDDMM = "C(i,k) = A(i,j) * B(j,k)", "S(i,j) = A(i,j) * Q(i,k) * K(j,k)"
SPMV, MTTKRP = "y(i) = A(i,j) * x(j)", "M(i,r) = X(i,j,k) * B(j,r) * C(k,r)"
VECTORS = "parallelize(k,CPUVector,ParallelReduction)"
REGISTERS = "bound(k,kb,32,MaxExact) reorder(i,kb,j) parallelize(kb,CPUVector,NoRaces)"
FIBRES = "reorder(i,j,r,k) precompute(X(i,j,k)*C(k,r),r,rw,w) reorder(k,rw)"
SLICE_SUMS = "bound(r,rb,16,MaxExact) reorder(i,rb,j,k) parallelize(rb,CPUVector,NoRaces)"
POSITIONS = "fuse(i,j,f) pos(f,p,A(i,j)) divide(p,p0,p1,64) parallelize(p0,CPUThread,Temporary)"
ENTRIES = "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4096) parallelize(p0,CPUThread,NoRaces)"


@dataclass(frozen=True)
class Lesson:
    """A lesson: its statement, its operands, and its schedules by name; None is what the planner chooses."""

    statement: str
    formats: dict[str, str]
    data: str
    operands: Callable[[], tuple[Any, ...]]
    schedules: dict[str, str | None]


def _matrix(rows: int, each: int) -> sl.Tensor:
    return sl.random((rows, rows), density=each / rows, format="csr", seed=1)


def _skewed(rows: int, entries: int) -> sl.Tensor:
    """Few rows have most entries."""
    rng = np.random.default_rng(1)
    places = [(rows * rng.random(entries) ** 6).astype(int), rng.integers(0, rows, entries)]
    return sl.from_coo(places, rng.random(entries), shape=(rows, rows), format="csr")


LESSONS = {
    "spmm": Lesson(
        SPMM, {"A": "csr"}, "20,000 rows of 50 entries, 32 columns", lambda: (_matrix(20_000, 50), np.ones((20_000, 32))),
        {"1. as written": "", "1. `reorder(i,k,j)`": "reorder(i,k,j)", "2. vectors in registers": REGISTERS,
         "3. and threads": f"{REGISTERS} divide(i,i0,i1,64) parallelize(i0,CPUThread,NoRaces)", "4. planned": None},
    ),
    "sddmm": Lesson(
        SDDMM, {"A": "csr", "S": "csr"}, "20,000 rows of 50 entries, 32 columns",
        lambda: (_matrix(20_000, 50), np.ones((20_000, 32)), np.ones((20_000, 32))),
        {"as written": "", "2. vectors": VECTORS, "3. threads on equal shares": ENTRIES, "both": f"{ENTRIES} {VECTORS}", "planned": None},
    ),
    "mttkrp": Lesson(
        MTTKRP, {"X": "csf"}, "a tensor of 300 x 300 x 300 with 1.3 million entries, rank 16",
        lambda: (sl.random((300, 300, 300), density=0.05, format="csf", seed=1), np.ones((300, 16)), np.ones((300, 16))),
        {"1. as it is": "reorder(i,j,k,r)", "2. a sum for each fibre": FIBRES, "3. a row in registers": SLICE_SUMS,
         "4. threads": f"{SLICE_SUMS} pos(i,ip,X(i,j,k)) split(ip,ip0,ip1,4) parallelize(ip0,CPUThread,NoRaces)", "5. planned": None},
    ),
    "threads": Lesson(
        SPMV, {"A": "csr"}, "SpMV, 100,000 rows, 3 million entries, most of them in few rows",
        lambda: (_skewed(100_000, 3_000_000), np.ones(100_000)),
        {"one thread": "", "blocks of rows": "split(i,i0,i1,64) parallelize(i0,CPUThread,NoRaces)",
         "an equal range of rows for each": "parallelize(i,CPUThread,NoRaces)",
         "rows of equal weight": "divide(i,i0,i1,64,A(i,j)) parallelize(i0,CPUThread,NoRaces)", "positions": POSITIONS, "planned": None},
    ),
}  # fmt: skip


def main() -> None:
    """Measure, and write what was found into the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help="the pages to measure; all of them if none is named")
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    wanted = given.pages or [*PROGRAMS, *LESSONS]
    rows = [_gallery_row(name, given.rounds) for name in PROGRAMS if name in wanted]
    if len(rows) == len(PROGRAMS):
        head = "| program | data | Sparseloom | today | | |\n|---|---|--:|--:|---|--:|"
        _write(DOCS / "gallery" / "index.md", "\n".join([_machine(), "", head, *rows]))
    for name in LESSONS:
        if name in wanted:
            _write(DOCS / "lessons" / f"{name}.md", "\n".join(_lesson_rows(LESSONS[name], given.rounds)))


def page(name: str) -> dict[str, Any]:
    """What the blocks of a page of the gallery define, once they have run and were found right."""
    text = (DOCS / "gallery" / f"{name}.md").read_text(encoding="utf-8")
    defined: dict[str, Any] = {"__name__": name}
    exec("\n".join(found[1] for found in FENCED.finditer(text)), defined)
    return {**defined, "title": text.split("\n")[0].removeprefix("# ")}


def _gallery_row(name: str, rounds: int) -> str:
    program, defined = PROGRAMS[name], page(name)
    operands = defined["data"](program.size)
    ours, theirs = times([lambda: defined["ours"](*operands), lambda: defined["theirs"](*operands)], rounds)
    found = f"{program.data}: {_spoken(ours)}, {program.peer} {_spoken(theirs)}, **{theirs / ours:.1f}x**. {_machine()}"
    _write(DOCS / "gallery" / f"{name}.md", found)
    print(f"{name:20} {found}", flush=True)
    cells = f"[{defined['title']}]({name}.md)", program.data, _spoken(ours), _spoken(theirs), program.peer, f"{theirs / ours:.1f}x"
    return f"| {' | '.join(cells)} |"


def _lesson_rows(lesson: Lesson, rounds: int) -> Iterator[str]:
    operands = lesson.operands()
    kernels = [sl.program(lesson.statement, lesson.formats, schedule) for schedule in lesson.schedules.values()]
    found = times([lambda kernel=kernel: kernel(*operands) for kernel in kernels], rounds)  # type: ignore[misc]
    yield f"{lesson.data[0].upper()}{lesson.data[1:]}. {_machine()}\n"
    yield from ("| schedule | time | gains |", "|---|--:|--:|")
    for name, seconds in zip(lesson.schedules, found, strict=True):
        print(f"{name:35} {_spoken(seconds)}", flush=True)
        yield f"| {name} | {_spoken(seconds)} | {found[0] / seconds:.1f}x |"


def times(runs: list[Callable[[], object]], rounds: int) -> list[float]:
    """The fewest seconds of each, run turn by turn after one turn that is not counted."""
    found: list[list[float]] = [[] for _ in runs]
    for turn in range(rounds + 1):
        for run, seconds in zip(runs, found, strict=True):
            begun = time.perf_counter()
            run()
            if turn:
                seconds.append(time.perf_counter() - begun)
    return list(map(min, found))


def _machine() -> str:
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    load = os.getloadavg()[2]
    others = f" Others were at work there (load {load:.1f}), which costs threads most." if load > BUSY else ""
    return f"Measured by `make gallery` on {len(os.sched_getaffinity(0))} cores of {_processor()}, {versions}.{others}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _spoken(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _write(file: Path, text: str) -> None:
    """Put the text between the marks of a page."""
    before = file.read_text(encoding="utf-8")
    if not MARKED.search(before):
        raise SystemExit(f"{file} has no <!-- times --> marks")
    file.write_text(MARKED.sub(lambda marks: f"{marks[1]}{text}\n{marks[2]}", before), encoding="utf-8")


if __name__ == "__main__":
    main()
