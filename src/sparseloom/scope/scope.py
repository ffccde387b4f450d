"""What is known at one place in the loops: coordinates, where each operand stands, and where values go.

A scope is never changed; going into a loop or a branch makes a new one. Loops and those who take what they make meet here: a ``Sink``
is what loops see of a result or a workspace, and ``Ways`` are how the body of a loop gets back to whoever lowers it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from sparseloom.core.algebra import Scalar, operator
from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.iteration.provenance import Provenance
from sparseloom.loops import nodes as ir
from sparseloom.notation.dtyping import Absence
from sparseloom.notation.nodes import Access, Assign, Forall, IndexVar, Stmt, TensorVar, Unit
from sparseloom.scope.context import Conflicts, Context, Home, Remark, Runs
from sparseloom.scope.ranges import Range, Ranges
from sparseloom.scope.style import Style
from sparseloom.scope.views import Slot, TensorView


@dataclass(frozen=True)
class Place:
    """How far down an operand's tree we are.

    ``depth`` levels have been bound; ``position`` is the position at the last of them. Below a level that repeats coordinates we
    stand on a run of positions, ``[position, end)``. ``present`` is true, false, or a flag of the generated code.
    ``value`` replaces the load of a leaf that was summed over a run. ``trail`` has the positions passed on the way, by depth,
    and whether the operand is there so far.
    """

    depth: int = 0
    position: ir.Expr = ir.ZERO
    end: ir.Expr | None = None
    present: ir.Expr = ir.TRUE
    value: ir.Expr | None = None
    filled: bool = False  # whether ``value`` is the operand's fill where it is absent
    trail: tuple[tuple[int, ir.Expr, ir.Expr], ...] = ()

    def below(
        self,
        depth: int,
        position: ir.Expr,
        end: ir.Expr | None = None,
        present: ir.Expr = ir.TRUE,
        value: ir.Expr | None = None,
        slot: ir.Expr | None = None,
    ) -> Place:
        """The place one or more levels further down; ``slot`` is where its values stand, if not at the position."""
        at = position if slot is None else slot
        return Place(depth, at, end, present, value, trail=(*self.trail, (depth, position, present)))

    def passed(self, depth: int) -> tuple[ir.Expr, ir.Expr] | None:
        """The position at an upper level, the last of the first ``depth``, and whether it is there; None if it is not known."""
        return next(((position, present) for passed, position, present in self.trail if passed == depth), None)

    def position_at(self, depth: int) -> ir.Expr:
        """The position at an upper level."""
        found = self.passed(depth)
        if found is None:
            raise CompilerBug(self, f"the position at depth {depth} should be known")
        return found[0]

    @property
    def is_absent(self) -> bool:
        """Whether the operand is known to have no entry here."""
        return self.present == ir.FALSE


ABSENT = Place(present=ir.FALSE)


@dataclass(frozen=True)
class Accumulator:
    """A scalar that a reduction adds into. The flag ``seen`` is set when something present was added; or, where one absent term decides,
    when something absent was."""

    var: ir.Var
    op: str
    seen: ir.Var | None = None
    absence: Absence = Absence.LEFT_OUT

    @property
    def reductions(self) -> list[ir.Reduction]:
        """The scalar and its flag, each with what reduces into it."""
        flag = [] if self.seen is None else [ir.Reduction(self.seen, "logical_or")]
        return [ir.Reduction(self.var, operator(self.op).name), *flag]

    @property
    def present(self) -> ir.Expr:
        """Whether the scalar is present, after all is added."""
        if self.seen is None:
            return ir.TRUE
        return ir.Op("logical_not", (self.seen,), BOOL) if self.absence is Absence.ONE_DECIDES else self.seen


@dataclass(frozen=True)
class Value:
    """A lowered expression: ``computed`` is right where ``present`` holds; elsewhere the expression is worth ``fill``."""

    computed: ir.Expr
    present: ir.Expr
    fill: Scalar | None
    constant: bool = False
    filled: bool = False  # whether ``computed`` is the fill where the expression is absent
    whole: bool = False  # whether it is all that goes to its place, unless the scope's edge says that others have a share

    @property
    def full(self) -> ir.Expr:
        """The value at every point, present or not."""
        if self.constant or self.filled or self.present == ir.TRUE or self.fill is None:
            return self.computed
        filled = ir.constant(self.fill, self.computed.dtype)
        return filled if self.present == ir.FALSE else ir.Select(self.present, self.computed, filled)

    @property
    def counts(self) -> ir.Expr:
        """When there is something to take: a number always is."""
        return ir.TRUE if self.constant else self.present


class Sharing(Enum):
    """How the iterations of a parallel loop share what they fill."""

    PLACES = "places"  # every place exists, whoever writes it
    ROWS = "rows"  # every row has a place of its own
    PARTS = "parts"  # each thread appends parts of its own, which are joined
    COUNTED = "counted"  # each part is counted, and then filled where it belongs
    NOT = "not"  # entries are taken one after another


class Sink(ABC):
    """Where values go: a result or a workspace. Loops ask it what it needs of them, and tell it where they are."""

    needs_presence = False  # whether a reduction must tell if anything was reduced
    variables: tuple[IndexVar, ...] = ()  # those whose loops make its levels
    sharing = Sharing.NOT

    def parameters(self) -> list[tuple[ir.Param, Slot]]:
        """The kernel parameters through which a result goes out; a workspace has none."""
        return []

    def begin(self) -> ir.Stmt:
        """What runs before it is filled."""
        return ir.block()

    def ready(self) -> ir.Stmt:
        """What stands between those who fill it and those who read it."""
        return ir.block()

    def finish(self) -> ir.Stmt:
        """What runs when nobody needs it any more; or, for a result, when it is made."""
        return ir.block()

    def expected(self) -> ir.Expr | None:
        """About how many entries there will be, where the kernel is told."""
        return None

    def demands_all(self, var: IndexVar) -> bool:
        """Whether the loop over ``var`` must visit every coordinate although nothing is stored there."""
        return False

    def around(self, var: IndexVar, body: ir.Stmt, scope: Scope) -> ir.Stmt:
        """Wrap what runs for one coordinate of ``var``."""
        return body

    def after(self, var: IndexVar, scope: Scope) -> ir.Stmt:
        """What runs when the loop over ``var`` has ended."""
        return ir.block()

    def initialise(self, scope: Scope) -> ir.Stmt:
        """Initialise what the loops entered so far have left to inner ones."""
        return ir.block()

    def row(self, scope: Scope) -> Row | None:
        """The places that the scope's coordinates leave open; None where there are none before something is written."""
        return None

    def holds(self, place: ir.Expr, scope: Scope) -> ir.Expr:
        """When one of the places of a row is at the scope's coordinates."""
        return ir.TRUE

    @abstractmethod
    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Write a value whose location is known in this scope."""


@dataclass(frozen=True)
class Row:
    """Places that follow each other in an array."""

    array: ir.Array
    begin: ir.Expr
    count: ir.Expr


class Nobody(Sink):
    """What loops see that fill a workspace: nothing is appended or initialised by them."""

    def write(self, assign: Assign, value: Value, scope: Scope) -> ir.Stmt:
        """Values go to the workspace itself."""
        raise CompilerBug(assign, "nobody takes this value")


NOBODY = Nobody()


@dataclass(frozen=True)
class Edge:
    """When a run is the first, or the last, of its block of positions: others may have a share in it. Another is the block's alone."""

    first: ir.Expr
    last: ir.Expr
    position: IndexVar | None = None  # whose blocks they are, if a run comes to its place once

    @property
    def either(self) -> ir.Expr:
        """When it is one of them."""
        return ir.either(self.first, self.last)

    def below(self, above: Edge) -> Edge:
        """When that holds of the run above, too."""
        return replace(self, first=ir.both(above.first, self.first), last=ir.both(above.last, self.last))


@dataclass(frozen=True)
class Carry:
    """Places that an iteration over blocks of ``position`` has for the first and the last run of its block, each of ``size`` values.

    ``begins`` says where in the result the values of each begin, ``first`` which of them is the iteration's first. Where the block is found
    by loops over ``units`` of a GPU that are still to come, ``first`` is the number of the one at hand.
    """

    tensor: TensorVar
    position: IndexVar
    values: ir.Array
    begins: ir.Array
    first: ir.Expr
    size: ir.Expr
    units: tuple[IndexVar, ...] = ()

    def load(self, slot: ir.Expr, place: ir.Expr) -> ir.Expr:
        """What a slot holds for one of its places."""
        return ir.Load(self.values, ir.add(ir.multiply(slot, self.size), place))

    def slot(self, edge: Edge) -> ir.Expr:
        """Which place a run has; one that is the first and the last has the first."""
        return ir.add(self.first, ir.Select(edge.first, ir.ZERO, ir.ONE))


@dataclass(frozen=True)
class Brought:
    """A place of a tensor that a lane has something for, and what: it is written when its neighbours' are added."""

    tensor: TensorVar
    place: ir.Var
    value: ir.Var


Then = Callable[["Scope"], ir.Stmt]


@dataclass(frozen=True)
class Asked:
    """A loop that is asked for: over ``digit``, which ``stmt`` is the loop over or which stands for it, in a style, with a body."""

    stmt: Forall
    digit: IndexVar
    style: Style
    then: Then


@dataclass(frozen=True)
class Ways:
    """The ways back from inside a loop: to a whole statement, to one that may reduce into a scalar, and to a further loop."""

    statement: Callable[[Stmt, Scope], ir.Stmt]
    reduced: Callable[[Stmt, Scope, Then], ir.Stmt]
    loop: Callable[[Asked, Scope], ir.Stmt]


@dataclass(frozen=True)
class Scope:
    """Everything known at one place in the loops."""

    context: Context
    ways: Ways
    provenance: Provenance  # as the statement at hand sees it
    views: Mapping[TensorVar, TensorView]
    operands: tuple[Access, ...]  # those that are followed here
    sink: Sink = NOBODY  # what the loops make as they go
    workspaces: Mapping[TensorVar, Sink] = field(default_factory=dict)
    result: Sink = NOBODY  # where everything goes that is no workspace
    home: Home = field(default_factory=Home)
    reach: Mapping[Access, int] = field(default_factory=dict)  # how many levels are needed of operands that are not read
    depth: int = 0  # of the loops, for remarks
    coordinates: Mapping[IndexVar, ir.Expr] = field(default_factory=dict)
    places: Mapping[Access, Place] = field(default_factory=dict)
    accumulators: Mapping[Access, Accumulator] = field(default_factory=dict)
    # Ranges that outer code has narrowed, and the ranges of position variables.
    limits: Mapping[IndexVar, Range] = field(default_factory=dict)
    # Position ranges to which a level of an operand is cut: by a block of positions, or by coordinates found again.
    cuts: Mapping[tuple[Access, int], Range] = field(default_factory=dict)
    # Intervals of positions, by variable, whose upper levels are cut to just what stands above them.
    found: Mapping[IndexVar, Range] = field(default_factory=dict)
    # Operands whose positions drive the loops inside, whether or not their values are read there.
    drivers: frozenset[Access] = frozenset()
    # The part of a range that one block of a parallel merge covers.
    window: Range | None = None
    # How many leading modes of a dense result the loops so far cover completely; None once it is initialised.
    uninitialised: int | None = None
    combines: bool = False  # whether a result location may already hold something that writes must be combined with
    untouched: bool = False  # whether all that a location holds was put there by the loops of this statement
    # How parallel loops outside write what they share: atomically, or each to its own copy of the result.
    atomic: frozenset[tuple[TensorVar, IndexVar]] = frozenset()
    edge: Edge | None = None
    carry: Carry | None = None
    copy: tuple[TensorVar, ir.Array, ir.Expr] | None = None
    brought: Brought | None = None  # what a lane brings to segments, instead of writing it
    broken: ir.Var | None = None  # set by a bound that turns out wrong where nothing can end the kernel: inside a vector loop
    units: tuple[Unit, ...] = ()  # the parallel units that run here, outermost first
    mark: tuple[IndexVar, ir.Var] | None = None  # a loop that fills all of a workspace, and the flag that says that it ran
    copies: int = 1  # how often the code below is repeated by the cases of outer merges

    def reductions(self) -> tuple[ir.Reduction, ...]:
        """The scalars that are reduced into here, each with its operator."""
        found = [one for held in self.accumulators.values() for one in held.reductions]
        return tuple(found if self.broken is None else [*found, ir.Reduction(self.broken, "logical_or")])

    @property
    def units_of_gpu(self) -> bool:
        """Whether units of a GPU run here."""
        return any(unit not in (Unit.CPUThread, Unit.CPUVector) for unit in self.units)

    def is_array(self, access: Access) -> bool:
        """Whether an operand is stored, or a workspace whose elements are all there: no scalar that is being reduced into."""
        return access not in self.accumulators and access.tensor in self.views and self.view(access).mask is None

    @property
    def ranges(self) -> Ranges:
        """The ranges of variables here."""
        return Ranges(self.provenance, self.context.sizes, self.coordinates, self.limits)

    @property
    def conflicts(self) -> Conflicts:
        """Where iterations of parallel loops meet."""
        return self.context.conflicts

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        return self.context.names.fresh(name)

    def view(self, access: Access) -> TensorView:
        """The arrays of a tensor."""
        return self.views[access.tensor]

    def sink_of(self, target: Access) -> Sink:
        """Where an assignment goes: the result, or a workspace."""
        return self.workspaces.get(target.tensor, self.result)

    def origin(self, var: IndexVar) -> str:
        """What made a variable, in a word."""
        relation = self.provenance.made_by(var)
        return "" if relation is None else relation.word

    def remark(self, text: str, runs: Runs | None = None) -> None:
        """Note something for ``explain``, once, at the current depth of loops."""
        remarks = self.context.remarks
        if not any((remark.depth, remark.text) == (self.depth, text) for remark in remarks):
            remarks.append(Remark(self.depth, text, runs))

    def holding(self, view: TensorView, sink: Sink) -> Scope:
        """This scope with a workspace."""
        tensor = view.tensor
        return replace(self, views={**self.views, tensor: view}, workspaces={**self.workspaces, tensor: sink})

    def at(self, access: Access) -> Place:
        """Where an operand stands."""
        return self.places.get(access, Place())

    def _with(self, name: str, value: object) -> Scope:
        """This scope with another value of one field: what ``replace`` does, without checking the others again."""
        made = object.__new__(Scope)
        made.__dict__.update(self.__dict__)
        made.__dict__[name] = value
        return made

    def knowing(self, var: IndexVar, coordinate: ir.Expr) -> Scope:
        """This scope with one more coordinate."""
        return self._with("coordinates", {**self.coordinates, var: coordinate})

    def placing(self, places: Mapping[Access, Place]) -> Scope:
        """This scope with operands moved."""
        return self._with("places", {**self.places, **places})

    def limiting(self, var: IndexVar, low: ir.Expr, high: ir.Expr) -> Scope:
        """This scope with a variable confined to a range."""
        return self._with("limits", {**self.limits, var: (low, high)})

    def cutting(self, access: Access, level: int, begin: ir.Expr, end: ir.Expr) -> Scope:
        """This scope with a level of an operand confined to a range of positions."""
        return self._with("cuts", {**self.cuts, (access, level): (begin, end)})

    def accumulating(self, access: Access, accumulator: Accumulator) -> Scope:
        """This scope with a scalar that stands for an assigned location."""
        return replace(self, accumulators={**self.accumulators, access: accumulator})
