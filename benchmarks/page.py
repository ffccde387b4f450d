"""The page docs/performance.md, made from a report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import tables
from benchmarks.outcome import Report
from benchmarks.pictures import file_of, kernels_of
from benchmarks.report import Table, plural
from benchmarks.tables import NAMED

INTRODUCTION = """\
# Performance

This page is made by `python -m benchmarks cpu`; do not edit it. It measures Sparseloom beside the libraries that are installed and
loops written by hand in C, on generated matrices and tensors with fixed seeds or on real ones.

```sh
python -m benchmarks cpu --quick                              # a look, in two minutes
python -m benchmarks cpu --json run.json                      # everything; the machine should be idle
python -m benchmarks cpu --kernels spmv,spmm --threads 1,2    # some of it
python -m benchmarks cpu --data FOLDER                        # on the .mtx, .npz and .tns files of a folder
python -m benchmarks cpu --from run.json more.json --markdown docs/performance.md --pictures docs/performance
```

The last line measures nothing: it makes this page from runs that were kept, which may have been made piece by piece; `--limit` stops a run
in time, and what it leaves out is named. What is compared is what users get: a statement without a schedule. The planner gives it one, and
`explain()` says which and why. To see what that gains:

```python
import time

import numpy as np
import sparseloom as sl

A, B = sl.random((2000, 2000), 0.01, "csr"), np.ones((2000, 32))
for schedule in ("", None):  # plain, planned
    kernel = sl.program("C(i,k) = A(i,j) * B(j,k)", {"A": "csr"}, schedule)
    run = kernel.bind(A, B)
    run()
    start = time.perf_counter()
    run()
    print(f"{(time.perf_counter() - start) * 1e6:.0f} µs")
print(kernel.explain())
```"""

METHOD = """\
- **In turn.** All who compute the same thing run round after round, each round in another order, warm; a time is a median, a ratio the
  median of the ratios of single rounds. On one thread the clock is the thread's own, on several it is wall time.
- **Checked.** Every answer is compared with a reference in double precision before anything is timed. A peer whose answer is wrong is left
  out and named; if ours is wrong, the run ends.
- **Threads** are set for everybody: OpenMP for our kernels and the loops by hand, and by each peer's own call. SciPy has one.
- **Of the best** is the best time over ours: 1 where we are the best. **Of floor** is the time that memory needs to move all operands and
  the result once, at the speed of reading with as many threads, over our time. Operands that fit into the caches are not bound by it.
- **Bound.** Dense results are filled again by a bound kernel; sparse ones are allocated and freed every time, by everybody. Chains of
  products go through `einsum`, whole."""


def page(report: Report, pictures: Path | None = None, beside: Path | None = None) -> str:
    """The whole page; ``pictures`` is the folder that has them, and ``beside`` the folder in which the page will lie."""
    parts: list[str | Table] = [INTRODUCTION, _machine(report), tables.target_table(report), tables.losses(report), tables.summary(report)]
    parts += ["## How it is measured", METHOD, _ways(report), *gaps_of(report.gaps, report.left_out), "## Kernels"]
    for kernel, width in kernels_of(report):
        parts += [*linked(file_of(kernel, width), pictures, beside), *tables.kernel_tables(report, kernel, width)]
    if report.studies:
        parts.append("## Studies")
    for study in report.studies:
        parts += [tables.study_table(study), *linked(f"{study.name}.svg", pictures, beside)]
    parts += [tables.trial_table(report)] if report.trials else []
    parts += [tables.door_table(report)] if report.doors else []
    return "\n\n".join(part.for_markdown() if isinstance(part, Table) else part for part in parts) + "\n"


def _machine(report: Report) -> str:
    m: dict[str, Any] = report.machine
    speeds = ", ".join(f"{speed / 1e9:.0f} GB/s on {plural(int(threads), 'thread')}" for threads, speed in report.bandwidth.items())
    versions = ", ".join(f"{name} {found}" for name, found in m.get("peers", {}).items())
    settings = ", ".join(f"{name} {_listed(value)}" for name, value in report.settings.items() if name != "note")
    note = f" {report.settings['note']}" if "note" in report.settings else ""
    return (
        f"{m['when']}: {m['cpu']}, {plural(m['cores'], 'core')}; {m['compiler']}; Python {m['python']}, NumPy {m['numpy']}, {versions}.\n"
        f"Memory is read at {speeds}. Settings: {settings}.{note}"
    )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _ways(report: Report) -> str:
    seen = {name for o in report.outcomes for name in (*o.seconds, *o.absent)}
    return "\n".join(f"- **{name}**: {what}" for name, what in NAMED.items() if name in seen)


def gaps_of(gaps: Mapping[str, str], left_out: Sequence[str]) -> list[str]:
    """Who is missing, and what is left out."""
    lines = [f"- **{name}** is missing: {why}" for name, why in gaps.items()]
    lines += [f"- {line}" for line in left_out]
    return ["What is missing:", "\n".join(lines)] if lines else []


def linked(name: str, pictures: Path | None, beside: Path | None) -> list[str]:
    """A picture, if there is a folder of them."""
    if pictures is None:
        return []
    where = Path(os.path.relpath(pictures, beside or Path.cwd())) / name
    return [f"![{name.removesuffix('.svg')}]({where.as_posix()})"]
