"""What is known at one place in the loops: coordinates, and where each operand stands.

A scope is never changed; going into a loop or a branch makes a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sparseloom.core.algebra import operator
from sparseloom.core.dtypes import BOOL
from sparseloom.core.errors import CompilerBug
from sparseloom.loops import nodes as ir
from sparseloom.notation.dtyping import Absence
from sparseloom.notation.nodes import Access, IndexVar, TensorVar, Unit


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
class Scope:
    """Everything known at one place in the loops."""

    coordinates: Mapping[IndexVar, ir.Expr] = field(default_factory=dict)
    places: Mapping[Access, Place] = field(default_factory=dict)
    accumulators: Mapping[Access, Accumulator] = field(default_factory=dict)
    # Ranges that outer code has narrowed, and the ranges of position variables.
    limits: Mapping[IndexVar, tuple[ir.Expr, ir.Expr]] = field(default_factory=dict)
    # Position ranges to which a level of an operand is cut: by a block of positions, or by coordinates found again.
    cuts: Mapping[tuple[Access, int], tuple[ir.Expr, ir.Expr]] = field(default_factory=dict)
    # Operands whose positions drive the loops inside, whether or not their values are read there.
    drivers: frozenset[Access] = frozenset()
    # The part of a range that one block of a parallel merge covers.
    window: tuple[ir.Expr, ir.Expr] | None = None
    # How many leading modes of a dense result the loops so far cover completely; None once it is initialised.
    uninitialised: int | None = None
    combines: bool = False  # whether a result location may already hold something that writes must be combined with
    # How parallel loops outside write what they share: atomically, or each to its own copy of the result.
    atomic: frozenset[tuple[TensorVar, IndexVar]] = frozenset()
    edge: ir.Expr | None = None
    copy: tuple[TensorVar, ir.Array, ir.Expr] | None = None
    broken: ir.Var | None = None  # set by a bound that turns out wrong where nothing can end the kernel: inside a vector loop
    units: tuple[Unit, ...] = ()  # the parallel units that run here, outermost first
    copies: int = 1  # how often the code below is repeated by the cases of outer merges

    def reductions(self) -> tuple[ir.Reduction, ...]:
        """The scalars that are reduced into here, each with its operator."""
        found = [one for held in self.accumulators.values() for one in held.reductions]
        return tuple(found if self.broken is None else [*found, ir.Reduction(self.broken, "logical_or")])

    def at(self, access: Access) -> Place:
        """Where an operand stands."""
        return self.places.get(access, Place())

    def knowing(self, var: IndexVar, coordinate: ir.Expr) -> Scope:
        """This scope with one more coordinate."""
        return replace(self, coordinates={**self.coordinates, var: coordinate})

    def placing(self, places: Mapping[Access, Place]) -> Scope:
        """This scope with operands moved."""
        return replace(self, places={**self.places, **places})

    def limiting(self, var: IndexVar, low: ir.Expr, high: ir.Expr) -> Scope:
        """This scope with a variable confined to a range."""
        return replace(self, limits={**self.limits, var: (low, high)})

    def cutting(self, access: Access, level: int, begin: ir.Expr, end: ir.Expr) -> Scope:
        """This scope with a level of an operand confined to a range of positions."""
        return replace(self, cuts={**self.cuts, (access, level): (begin, end)})

    def accumulating(self, access: Access, accumulator: Accumulator) -> Scope:
        """This scope with a scalar that stands for an assigned location."""
        return replace(self, accumulators={**self.accumulators, access: accumulator})
