"""What one kernel shares while it is lowered: names, sizes, relations, the target, and remarks for ``explain``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparseloom.core.dtypes import DType
from sparseloom.core.names import Names
from sparseloom.iteration.formula import ALWAYS, Formula
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.rows import SHORT_ROWS, RowChoice
from sparseloom.loops import nodes as ir
from sparseloom.loops.splits import Split
from sparseloom.notation.nodes import Access, IndexVar, TensorVar
from sparseloom.relations.relation import Positions
from sparseloom.scope.views import Sizes
from sparseloom.targets.target import Target

Meeting = tuple[IndexVar, TensorVar]  # a parallel loop, and the tensor in a place of which its iterations meet


@dataclass(frozen=True)
class Runs:
    """What a loop runs through: coordinates at which a formula holds, or positions of one operand.

    ``settles`` tells whether ``var`` is known inside, or only a digit of something.
    """

    var: IndexVar
    settles: bool = True
    formula: Formula = ALWAYS
    position: Positions | None = None


@dataclass(frozen=True)
class Remark:
    """One line of ``explain``: how deep in the loops it stands, what it says, and about which loop."""

    depth: int
    text: str
    runs: Runs | None = None


@dataclass(frozen=True)
class Conflicts:
    """Where iterations of parallel loops meet, and what becomes of it."""

    atomic: frozenset[Meeting] = frozenset()  # they write the place atomically
    private: frozenset[Meeting] = frozenset()  # each has a place of its own
    together: frozenset[Meeting] = frozenset()  # units of a GPU, which write it where it is


@dataclass(frozen=True)
class Context:
    """The facts of one lowering. ``names`` gives out names, ``remarks`` and ``splits`` collect; nothing else in it changes."""

    names: Names
    sizes: Sizes
    everything: Provenance  # with every renaming: where variables come from, whoever uses them
    target: Target
    index_dtype: DType  # what holds the coordinates that workspaces keep: as wide as the statement's widest index array
    int32_limit: int
    lhs: Access  # the result
    follows: Access | None = None  # the operand whose structure the result takes over: where one is written, the other is followed
    rows: RowChoice = SHORT_ROWS  # what rows are built in, where their entries come in no order
    drops: bool = False  # whether entries of the result that equal its fill are left out
    conflicts: Conflicts = Conflicts()
    remarks: list[Remark] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    origins: Mapping[str, str] = field(default_factory=dict)  # what the names that passes made stand for

    def origin_of(self, made: IndexVar | TensorVar) -> str:
        """The origin of what is made of a loop over a variable, or for a tensor."""
        return self.origins.get(made.name, made.name)


@dataclass
class Home:
    """Where memory is made that outlives one row: what runs before and after the loops of a kernel, or of a thread."""

    first: list[ir.Stmt] = field(default_factory=list)
    last: list[ir.Stmt] = field(default_factory=list)
