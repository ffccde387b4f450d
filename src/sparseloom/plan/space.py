"""How often loops run, as far as statistics tell: every stored entry is taken to be anywhere with equal chance.

y(i) = A(i,j) * x(j)     i: 1,000     A has 8 entries below each i     i runs 1,000 times, j inside it 8,000 times
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from sparseloom.core.once import cached_property
from sparseloom.iteration.foralls import Path, accesses, body_of, paths, provenance
from sparseloom.iteration.formula import ALWAYS, All, Any, Constant, Formula, Stored
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import region
from sparseloom.iteration.rows import lists_entries
from sparseloom.lower.extents import Extents
from sparseloom.notation.nodes import Access, Fixed, Forall, IndexVar, Stmt, Unit
from sparseloom.plan.machine import Machine, this_machine
from sparseloom.plan.statistics import OperandFacts, Statistics

NANOSECOND = 1e-9


@dataclass(frozen=True, eq=False)
class Space:
    """The loops of a statement that has no schedule yet, with extents, statistics, and the machine that is to run them."""

    stmt: Stmt
    sizes: Mapping[str, int]
    statistics: Statistics
    machine: Machine = field(default_factory=this_machine)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Every assignment with the loops around it."""
        return paths(self.stmt)

    @cached_property
    def graph(self) -> Provenance:
        """How the variables of blocks come from others."""
        return provenance(self.stmt)

    @cached_property
    def spine(self) -> tuple[IndexVar, ...]:
        """The loops that enclose all assignments, outermost first."""
        found: list[IndexVar] = []
        body = body_of(self.stmt)
        while isinstance(body, Forall):
            found.append(body.var)
            body = body.body
        return tuple(found)

    def extent(self, var: IndexVar) -> int:
        """How many values a variable takes."""
        known = self._extents.extent(var)
        return 1 if known is None else known

    @cached_property
    def _extents(self) -> Extents:
        return Extents(self.graph, self.sizes)

    def levels(self, access: Access) -> tuple[IndexVar, ...]:
        """The variables of an operand's levels, in the order in which they are stored."""
        return self.graph.stored(access)

    def is_over(self, var: IndexVar, access: Access) -> bool:
        """Whether a loop runs over one of an operand's variables, in blocks or not."""
        return self.graph.root(var) in map(self.graph.root, self.levels(access))

    def is_last(self, var: IndexVar, access: Access) -> bool:
        """Whether a loop runs over nothing but the last level of an operand, if over any; the places of a block may be part of a level."""
        levels = self.levels(access)
        return var not in levels[:-1] and (var in levels or self.graph.root(var) not in levels[:-1])

    def known(self, access: Access) -> OperandFacts | None:
        """What is known of an operand; one that is converted first has the entries that it had."""
        return self.statistics.known(access.tensor.name)

    def entries(self, access: Access) -> int:
        """Roughly how many entries an operand has; 0 if that is not known."""
        return dict(self.statistics.stored).get(access.tensor.name, 0)

    def fan(self, access: Access, depth: int) -> float:
        """How many positions of a level are below one position of the level above."""
        if access.tensor.format.levels[depth].full:
            return float(self.extent(self.levels(access)[depth]))
        if access.tensor.format.levels[depth].branchless:
            return 1.0
        known = self.known(access)
        if known is not None and depth < len(known.fans):
            return known.fans[depth]
        return self._even_fan(access)

    def _even_fan(self, access: Access) -> float:
        """How many positions stand below one of the level above, if all levels with gaps had equally many."""
        stored = self.entries(access)
        gaps = [k for k, level in enumerate(access.tensor.format.levels) if not level.full and not level.branchless]
        if not stored or not gaps:
            return self.machine.costs.usual_fan
        full = prod(self.extent(self.levels(access)[k]) for k, level in enumerate(access.tensor.format.levels) if level.full)
        return float((stored / max(full, 1)) ** (1 / len(gaps)))

    def iterations(self, path: Path, outer: Collection[IndexVar]) -> float:
        """How often the innermost of these loops of a path runs, in all. A temporary is filled where something may read it."""
        formulas = dict.fromkeys(part for reader in self._read_by(path) for part in _parts(self.region(reader)))
        return prod(self.extent(var) for var in outer if not self._is_shared(path, var)) * self._chance(All(tuple(formulas)), outer)

    def _is_shared(self, path: Path, var: IndexVar) -> bool:
        """Whether a path fills a number that all lanes of a vector loop around it share."""
        in_lanes = any(loop.var == var and loop.tag.unit is Unit.CPUVector for loop in path.loops)
        used = {index for access in accesses(path.assign) for index in access.indices}
        return in_lanes and not path.assign.lhs.indices and self.graph.root(var) not in used

    def region(self, path: Path) -> Formula:
        """Where an assignment does something."""
        return region(path.assign, lambda access: Stored(access) if self._is_sparse(access) else ALWAYS)

    def _read_by(self, path: Path) -> Iterator[Path]:
        """A path, and if it fills a temporary of one number, the one that reads this, and so on."""
        yield path
        made = path.assign.lhs
        readers = [other for other in self.paths if other is not path and made in accesses(other.assign.rhs)]
        if not made.indices and len(readers) == 1:
            yield from self._read_by(readers[0])

    @cached_property
    def runs(self) -> float:
        """How often innermost loops run, all together."""
        return sum(self.iterations(path, path.variables) for path in self.paths)

    @cached_property
    def seconds(self) -> float:
        """Roughly how long plain loops take on one thread."""
        return sum(self.iterations(path, path.variables) * self._price(path) + self._walked(path) for path in self.paths) * NANOSECOND

    def _walked(self, path: Path) -> float:
        """How many nanoseconds it takes to step over entries that are merged: those that only one operand has, too."""
        sparse = dict.fromkeys(filter(self._is_sparse, accesses(path.assign.rhs)))
        ends = {access: depth for access in sparse for depth, var in enumerate(path.variables) if self.levels(access)[-1:] == (var,)}
        merged = [access for access, depth in ends.items() if list(ends.values()).count(depth) > 1]
        steps = (self.iterations(path, path.variables[: ends[a]]) * self.fan(a, len(self.levels(a)) - 1) for a in merged)
        return sum(steps) * self.machine.costs.per_merge

    def _price(self, path: Path) -> float:
        """The nanoseconds of one step of an innermost loop."""
        if lists_entries(path.assign.lhs.tensor.format):
            return self.machine.costs.per_insertion
        read = (access for access in accesses(path.assign.rhs) if access.indices)
        walks = any(self.levels(a)[-1:] == path.variables[-1:] and not a.tensor.format.levels[-1].full for a in read)
        in_lanes = any(loop.tag.unit is Unit.CPUVector for loop in path.loops)
        return self.machine.costs.per_entry if walks and not in_lanes else self.machine.costs.per_value

    def _is_sparse(self, access: Access) -> bool:
        return not access.tensor.format.is_dense

    def _chance(self, formula: Formula, given: Collection[IndexVar]) -> float:
        """The share of points at which a formula holds."""
        match formula:
            case Constant(value):
                return float(value)
            case Stored(access):
                return self.density(access, given)
            case All(parts):
                return prod(self._chance(part, given) for part in parts)
            case Any(parts):
                return 1.0 - prod(1.0 - self._chance(part, given) for part in parts)
        return 1.0

    def density(self, access: Access, given: Collection[IndexVar]) -> float:
        """The share of points that an operand stores, of those that these variables tell apart."""
        share = 1.0
        for depth, var in enumerate(self.levels(access)):
            if var not in given and not isinstance(var, Fixed):
                break
            share *= self.fan(access, depth) / max(self.extent(var), 1)
        return min(share, 1.0)


def _parts(formula: Formula) -> tuple[Formula, ...]:
    """What must hold together for a formula to hold."""
    return formula.parts if isinstance(formula, All) else (formula,)
