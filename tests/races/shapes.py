"""What the campaign against races runs: every parallel form, with every kind of result, under every reduction operator and group of dtypes.

A cell is a combination of the tables below; those that the rules of schedules reject are counted. Formats, dtypes and what runs in lanes
are drawn for each. Data are tiny, so that all threads are at work at once, and small whole numbers, so that equal means equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import numpy as np

import sparseloom as sl

RACES = ("NoRaces", "Atomics", "Temporary", "ParallelReduction")
# How loops come to be run by threads: one variable, blocks, blocks of equal weight, two loops as one, positions and blocks of them.
FORMS = {
    "outer": "parallelize(i,CPUThread,{races})",
    "inner": "parallelize(j,CPUThread,{races})",
    "innermost": "parallelize({{inner}},CPUThread,{races})",
    "blocks": "split(i,i0,i1,2) parallelize(i0,CPUThread,{races})",
    "within blocks": "split(i,i0,i1,4) parallelize(i1,CPUThread,{races})",
    "entries": "divide(i,i0,i1,3,A(i,j)) parallelize(i0,CPUThread,{races})",
    "fused": "fuse(i,j,f) split(f,f0,f1,4) parallelize(f0,CPUThread,{races})",
    "fused alone": "fuse(i,j,f) parallelize(f,CPUThread,{races})",
    "positions": "pos(j,p,A(i,j)) parallelize(p,CPUThread,{races})",
    "blocks of positions": "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,3) parallelize(p0,CPUThread,{races})",
}


@dataclass(frozen=True)
class Result:
    """A kind of result: its statement, in which formats, the innermost variable, and what a workspace along that holds."""

    statement: str
    inner: str
    held: str
    formats: tuple[dict[str, str], ...]
    format: str | None = None
    extra: str = ""


RESULTS = {
    "scalar": Result("R = {red}({{i,j,l}}, A(i,j) * B(l))", "l", "A(i,j) * B(l)", ({"A": "csr"}, {}, {"A": "dcsr"})),
    "vector": Result("y(i) = {red}({{j,l}}, A(i,j) * B(l))", "l", "A(i,j) * B(l)", ({"A": "csr"}, {})),
    "scattered vector": Result("y(j) = {red}({{i,l}}, A(i,j) * B(l))", "l", "A(i,j) * B(l)", ({"A": "csr"}, {})),
    "rows": Result("C(i,k) = {red}(j, A(i,j) * D(j,k))", "k", "A(i,j) * D(j,k)", ({"A": "csr"}, {})),
    "scattered rows": Result("C(j,k) = {red}(i, A(i,j) * E(i,k))", "k", "A(i,j) * E(i,k)", ({"A": "csr"}, {"A": "coo"})),
    "appended": Result("C(i,j) = {red}(l, A(i,j) * B(l))", "l", "A(i,j) * B(l)", ({"A": "csr"}, {"A": "dcsr"}), "csr"),
    "two levels": Result("C(i,j) = {red}(l, A(i,j) * B(l))", "l", "A(i,j) * B(l)", ({"A": "dcsr"}, {}), "dcsr"),
    "inserted": Result("C(j,i) = {red}(l, A(i,j) * B(l))", "l", "A(i,j) * B(l)", ({"A": "csr"},), "csr", "assemble(C,Insert)"),
    "scattered into": Result("C(i,k) = {red}(j, A(i,j) * D(j,k))", "k", "A(i,j) * D(j,k)", ({"A": "csr", "D": "csr"},), "csr"),
}
# With what each thread holds, and how what is innermost runs.
HELD = {"nothing": "", "a workspace": "precompute({held},{inner},{inner}w,ws)"}
LANES = {
    "no lanes": "",
    "lanes": "parallelize({inner},CPUVector,ParallelReduction)",
    "lanes of the workspace": "parallelize({inner}w,CPUVector,NoRaces)",
    "unrolled": "unroll({inner},3)",
}
REDUCTIONS = ("sum", "prod", "min", "max", "any", "all")
DTYPES = {
    "sum": ("float64", "float32", "int64", "int32", "complex128", "complex64", "uint8", "bool"),
    "prod": ("float64", "float32", "int64", "uint16", "complex128", "complex64", "int8", "bool"),
    "min": ("float64", "float32", "int64", "int16", "uint64", "bool"),
    "max": ("float64", "float32", "int64", "uint32", "int8", "bool"),
    "any": ("bool", "float64", "int32", "complex128"),
    "all": ("bool", "float32", "int64", "complex64"),
}


@dataclass(frozen=True)
class Cell:
    """One combination of what must all be combined; formats, lanes and dtypes are drawn for it."""

    result: str
    form: str
    races: str
    held: str
    reduction: str

    def shapes(self, random: Random) -> Iterator[Shape]:
        """What it can be, in a random order."""
        result = RESULTS[self.result]
        found = list(product(LANES.items(), result.formats))
        for (lanes, vectors), formats in random.sample(found, len(found)):
            made = HELD[self.held]
            if lanes != "lanes of the workspace" or made:
                parts = (result.extra, FORMS[self.form].format(races=self.races), made, vectors)
                schedule = " ".join(part.format(held=result.held, inner=result.inner) for part in parts if part)
                yield Shape(self, lanes, tuple(formats.items()), schedule)


@dataclass(frozen=True)
class Shape:
    """A cell with a way in which lanes run, formats and the schedule."""

    cell: Cell
    lanes: str
    formats: tuple[tuple[str, str], ...]
    schedule: str

    def kernel(self, target: str = "c", scheduled: bool = True) -> sl.Kernel:
        """The kernel, or the same without its schedule."""
        result = RESULTS[self.cell.result]
        text = result.statement.format(red=self.cell.reduction)
        given = dict(self.formats) | ({} if result.format is None else {text.partition("(")[0]: result.format})
        return sl.program(text, given, self.schedule if scheduled else "", target=target)

    def __str__(self) -> str:
        stored = ", ".join(f"{name} {form}" for name, form in self.formats) or "all dense"
        return f"{RESULTS[self.cell.result].statement.format(red=self.cell.reduction)}, {stored}, {self.schedule}"


def cells() -> list[Cell]:
    """Every combination, legal or not."""
    return [Cell(*words) for words in product(RESULTS, FORMS, RACES, HELD, REDUCTIONS)]


def operands(names: tuple[str, ...], dtype: str, reduction: str, seed: int) -> list[Any]:
    """Tiny operands, of which sums and products are exact in every dtype."""
    rng = np.random.default_rng(seed)
    sizes = {"A": (6, 7), "B": (5,), "D": (7, 5), "E": (6, 5)}
    found = []
    for name in names:
        values = rng.integers(1, 3, sizes[name])
        if reduction in ("prod", "all"):  # one zero would decide
            values = np.where(rng.random(sizes[name]) < 0.1, values, 1)
        elif name != "B":
            values = np.where(rng.random(sizes[name]) < 0.6, values, 0)
        if np.dtype(dtype).kind == "c" and reduction != "prod":
            found.append((values * (1 + 1j)).astype(dtype))
        else:
            found.append(values.astype(dtype))
    return found
