"""What one kernel shares while it is lowered: names, the views of its tensors, sizes, relations, and remarks for ``explain``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparseloom.core.dtypes import DType
from sparseloom.core.names import Names
from sparseloom.iteration.formula import ALWAYS, Formula
from sparseloom.iteration.provenance import Provenance
from sparseloom.loops import nodes as ir
from sparseloom.lower.scope import Scope
from sparseloom.lower.space import Space
from sparseloom.lower.views import Sizes, TensorView
from sparseloom.notation.nodes import Access, IndexVar, Stmt, TensorVar
from sparseloom.relations.pos import PosRelation
from sparseloom.targets.target import Target


@dataclass(frozen=True)
class Runs:
    """What a loop runs through: coordinates at which a formula holds, or positions of one operand.

    ``settles`` tells whether ``var`` is known inside, or only a digit of something.
    """

    var: IndexVar
    settles: bool = True
    formula: Formula = ALWAYS
    position: PosRelation | None = None


@dataclass(frozen=True)
class Remark:
    """One line of ``explain``: how deep in the loops it stands, what it says, and about which loop."""

    depth: int
    text: str
    runs: Runs | None = None


@dataclass
class Context:
    """The state of one lowering. ``lower`` is the dispatcher, so that loops can lower their bodies."""

    names: Names
    sizes: Sizes
    views: dict[TensorVar, TensorView]
    provenance: Provenance  # as the statement being lowered sees it
    everything: Provenance  # with every renaming: where variables come from, whoever uses them
    int32_limit: int
    target: Target
    index_dtype: DType  # what holds the coordinates that workspaces keep: as wide as the statement's widest index array
    lower: Callable[[Stmt, Scope], ir.Stmt] = field(init=False)
    masks: dict[TensorVar, ir.Array] = field(default_factory=dict)  # which elements of a workspace were written
    starts: dict[TensorVar, tuple[ir.Expr, ...]] = field(default_factory=dict)  # where the ranges of a workspace's modes begin
    reach: Mapping[Access, int] = field(default_factory=dict)  # how many levels are needed of operands that are not read
    before: list[ir.Stmt] = field(default_factory=list)  # what runs once before the loops, for workspaces that outlive one row
    behind: list[ir.Stmt] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    depth: int = 0

    def view(self, access: Access) -> TensorView:
        """The arrays of an operand."""
        return self.views[access.tensor]

    def space(self, scope: Scope) -> Space:
        """The ranges of variables in a scope."""
        return Space(self.provenance, self.sizes, scope.coordinates, scope.limits)

    def remark(self, text: str, runs: Runs | None = None) -> None:
        """Note something for ``explain``, once, at the current depth of loops."""
        if not any((remark.depth, remark.text) == (self.depth, text) for remark in self.remarks):
            self.remarks.append(Remark(self.depth, text, runs))
