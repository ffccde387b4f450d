"""Operands for a program: those that somebody has, and random ones for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparseloom.core.dtypes import FLOAT64, DType
from sparseloom.core.errors import ShapeError
from sparseloom.core.once import cached_property
from sparseloom.core.trees import walk
from sparseloom.formats.text import as_format
from sparseloom.notation.nodes import Access
from sparseloom.notation.script import Script
from sparseloom.tensor.creation import random
from sparseloom.tensor.tensor import Tensor

USUAL_EXTENT = 1000


@dataclass(frozen=True)
class Wanted:
    """A program, and what it or whoever asks says about its tensors. ``formats`` are those that are given beside it."""

    text: str
    script: Script
    formats: Mapping[str, str]

    @cached_property
    def accesses(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Every tensor with the variables it is indexed by, in order of appearance."""
        found = (access for step in self.script.steps for access in walk(step.assign) if isinstance(access, Access))
        return tuple((access.tensor.name, tuple(var.name for var in access.indices)) for access in found)

    @property
    def result(self) -> str:
        """The name of the result."""
        return self.script.last.parsed.result

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The tensors that must have values; for ``+=`` the result is one of them."""
        added = () if self.script.last.assign.op is None else (self.result,)
        return tuple(dict.fromkeys((*added, *self.script.operands)))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Every index variable."""
        return tuple(dict.fromkeys(var for _, indices in self.accesses for var in indices))

    @property
    def free_extents(self) -> set[str]:
        """The variables of the result whose extent no operand fixes."""
        return set(self.variables) - {var for name, indices in self.accesses if name in self.operands for var in indices}

    def format(self, name: str) -> str | None:
        """How a tensor is stored, if that is said."""
        return self.formats.get(name) or self.script.formats.get(name)

    def order(self, name: str) -> int:
        """How many modes a tensor has."""
        return len(dict(self.accesses)[name])

    def extents(self, given: Mapping[str, Tensor], asked: Mapping[str, int], said: str = "sizes says") -> dict[str, int]:
        """How far every variable runs: as operands tell, else as asked, else the usual extent. ``said`` is how it was asked for."""
        found: dict[str, int] = dict(asked)
        for name, indices in self.accesses:
            for mode, (var, size) in enumerate(zip(indices, given[name].shape if name in given else (), strict=False)):
                if asked.get(var, size) != size:
                    raise ShapeError(f"{said} that {var} runs to {asked[var]}, but mode {mode} of {name} has size {size}")
                found.setdefault(var, size)
        # A random tensor that is read twice, A(i,j) * A(j,k), ties the variables of each of its modes together.
        reads = [[indices for other, indices in self.accesses if other == name] for name in dict(self.accesses)]
        tied = [group for indices in reads for group in zip(*indices, strict=True)]
        for _ in self.variables:
            for group in tied:
                known = [found[var] for var in group if var in found]
                found |= {var: known[0] for var in group if known and var not in found}
        return {var: found.get(var, USUAL_EXTENT) for var in self.variables}

    def random(self, name: str, sizes: Mapping[str, int], density: float, seed: int, dtype: DType = FLOAT64) -> Tensor:
        """A tensor that nobody has: dense and full, or sparse where its format says so."""
        shape = tuple(sizes[var] for var in dict(self.accesses)[name])
        wanted = as_format(self.format(name) or "dense", len(shape))
        return random(shape, 1.0 if wanted.is_dense else density, wanted, seed + self.operands.index(name), dtype, name)
