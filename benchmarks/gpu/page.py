"""The page docs/performance-gpu.md, made from a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.gpu import tables
from benchmarks.gpu.outcome import Report
from benchmarks.gpu.schedules import schedules_of
from benchmarks.gpu.tasks import CONTESTS
from benchmarks.page import gaps_of, linked
from benchmarks.pictures import file_of
from benchmarks.report import Table

INTRODUCTION = """\
# Performance on a GPU

This page is made by `python -m benchmarks gpu`; do not edit it. It measures Sparseloom beside cuSPARSE, every algorithm of it, and PyTorch,
as figures 16, 18 and 20 of the paper do: each schedule by its name, and what the planner chooses when none is given.

```sh
python -m benchmarks gpu --quick                                   # a look at small operands
python -m benchmarks gpu --kernels spmv --cases six --limit 60     # some of it
python -m benchmarks gpu --data FOLDER --json run.json             # on the .mtx, .npz and .tns files of a folder
python -m benchmarks gpu --from run.json more.json --markdown docs/performance-gpu.md --pictures docs/performance-gpu
```

The last line measures nothing: it makes this page from runs that were kept, which may have been made piece by piece. What a schedule
becomes can be read without a GPU:

```python
import sparseloom as sl

steps = "split(i,b,t,256) parallelize(b,GPUBlock,NoRaces) parallelize(t,GPUThread,NoRaces)"
kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, steps, target="cuda")
print(kernel.source)
```"""

METHOD = """\
- **On the device.** All operands are there before, and kernels are bound to them. CUDA's events around a run take its time, which
  is told as a median.
- **Cold.** Before every run 128 MB are written, which is more than the L2 cache holds.
- **In turn.** All who compute the same thing run round after round, each round in another order.
- **Checked.** Every result is compared with one in double precision before anything is timed, number by number; of a wide one the first
  column, the last and a weighted sum of all. One that is wrong is shown as WRONG, and has no time; one that cannot run says why.
- **Compared with** is the quickest algorithm of cuSPARSE for each operand: SpMV default, ALG1 and ALG2, SpMM default, ALG1, ALG2 and ALG3,
  through CuPy's bindings, and SDDMM, also as PyTorch calls it, into values that are there already; it leaves out the values of the pattern.
  MTTKRP, which cuSPARSE does not have, is compared with the schedules in which every entry of a row that warps share is an atomic update.
- **The memory floor** is the time to move all operands and the result once, at the speed of a copy.
- **The six** are the operands on which kernels by hand were compared before there was a planner. The **six chosen afterwards** were picked
  when the schedules were there; nothing was tuned on them."""


def page(report: Report, pictures: Path | None = None, beside: Path | None = None) -> str:
    """The whole page; ``pictures`` is the folder that has them, and ``beside`` the folder in which the page will lie."""
    parts: list[str | Table] = [INTRODUCTION, _machine(report), tables.target_table(report)]
    parts += [tables.summary(report)] if report.outcomes else []
    parts += list(tables.beside(report))
    for study in report.studies:
        parts += linked(f"{study.name}.svg", pictures, beside) if study.lines else []
    parts += ["## How it is measured", METHOD, *gaps_of(report.gaps, report.left_out), "## Kernels"]
    for kernel, width in report.kernels:
        parts += [*linked(file_of(kernel, width), pictures, beside), *tables.kernel_tables(report, kernel, width)]
        parts.append(_schedules(kernel, width))
    return "\n\n".join(part.for_markdown() if isinstance(part, Table) else part for part in parts) + "\n"


def _machine(report: Report) -> str:
    m: dict[str, Any] = report.machine
    versions = ", ".join(f"{name} {found}" for name, found in m.get("peers", {}).items())
    settings = ", ".join(f"{name} {_listed(value)}" for name, value in report.settings.items() if name != "note")
    note = f" {report.settings['note']}" if "note" in report.settings else ""
    return (
        f"{m['when']}: {m['gpu']}; NVRTC {m['nvrtc']}; Python {m['python']}, NumPy {m['numpy']}, SciPy {m['scipy']}, {versions}; "
        f"times by {m['clock']}.\n"
        f"A copy moves {report.bandwidth / 1e9:,.0f} GB/s. Settings: {settings}.{note}"
    )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _schedules(kernel: str, width: int) -> str:
    """The schedules of a kernel, as they are written."""
    lines = [f"# {name}\n{schedule}" for name, schedule in schedules_of(kernel, width).items() if schedule is not None]
    return f"The schedules of {CONTESTS[kernel].named(width)}, `{CONTESTS[kernel].statement}`:\n\n```text\n" + "\n".join(lines) + "\n```"
