"""The contract of a level: what one dimension of a stored tensor must tell the rest of the house.

A tensor is a tree of coordinates, one level per dimension. Every node of a level has a *position* (0, 1, 2, ... through
the whole level) and a coordinate; its children stand at the next level. The root is one position, 0. The positions of the last
level index the values.

A level says three things: how its arrays are built, read and checked (NumPy, whole arrays at a time), what it can do
(its properties and capabilities), and the loop IR for doing it (one position at a time).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import BOOL, INDEX_DTYPES, INT64, DType
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node
from sparseloom.loops.nodes import TRUE, Array, Cast, Expr, Load, Search, Stmt, Store, Var, both, compare

Index = NDArray[np.signedinteger[Any]]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LevelData:
    """The arrays of one level of one tensor, and its scalars (most levels have none)."""

    arrays: dict[str, Index] = field(default_factory=dict)
    scalars: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LevelView:
    """The names under which generated code knows one level of one tensor."""

    size: Expr
    arrays: Mapping[str, Array]
    scalars: Mapping[str, Var]


@dataclass(frozen=True)
class Fault:
    """Something wrong in a level's arrays: which array, where in it, and what."""

    array: str
    place: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.array} {self.what}" if self.place is None else f"{self.array}[{self.place}] {self.what}"


@dataclass(frozen=True, eq=False)
class Checked:
    """What a level without fault tells the level below it: how many positions there are, and which are *tied*.

    A position is tied when its coordinate and its parent are those of the position before it. Only a level whose
    coordinates may repeat has ties; ``None`` means that there are none.
    """

    positions: int
    ties: Mask | None = None


@dataclass(frozen=True, eq=False)
class Outline:
    """What is left to check of valid arrays that somebody may have changed since.

    The arrays named ``fixed`` decide how many positions there are and where those of a parent start. If they are as they were, it is
    enough that what stands in the ``coordinate_array`` is in range and in order, except between the positions of different parents.
    """

    positions: int
    fixed: tuple[str, ...] = ()
    starts: Mask | None = None  # which positions are the first of a parent, or unused; None: only position 0 is


class Query(Enum):
    """What is asked of the entries below each parent before the first of them is inserted."""

    COUNT = "count"  # how many there are
    LEAST = "least"  # the least coordinate; the level's size where there is none
    MOST = "most"  # the largest coordinate; -1 where there is none


class Collector(Enum):
    """How a workspace takes entries in any order."""

    ROW = "row"  # values at their coordinates, with a list of these
    HASH = "hash"  # values beside their coordinates, which are found through a hash table
    SPREAD = "spread"  # a row of an operand, set out by coordinate
    LIST = "list"  # one after another, sorted before they are read


class Level(Node):
    """One storage level. Members are nodes, so that levels are equal when they store alike.

    Properties, as in the format abstraction of Chou et al.: *full* (every coordinate is stored), *ordered*
    (coordinates ascend below one parent), *unique* (no coordinate repeats below one parent), *branchless* (exactly one child
    per parent), *compact* (no unused positions).

    Branchless levels form a *chain* with the level above them, as in COO. There, order and uniqueness speak of the whole
    tuple of coordinates: a unique level ends a chain in which no tuple repeats.
    """

    __slots__ = ()
    array_names: ClassVar[tuple[str, ...]] = ()
    scalar_names: ClassVar[tuple[str, ...]] = ()
    truth_names: ClassVar[tuple[str, ...]] = ()  # the arrays that hold truth values, a byte each; all others hold indices
    # The array that has the coordinate of every position; None where coordinates are computed, for which the parent must be known.
    coordinate_array: ClassVar[str | None] = None
    full: ClassVar[bool] = False
    branchless: ClassVar[bool] = False
    compact: ClassVar[bool] = True
    padded: ClassVar[bool] = False  # whether values are stored at positions that are no entries, and look like them
    has_holes: ClassVar[bool] = False  # whether positions between the bounds of one parent may be unused
    # Whether several entries may have one value in common, so that the arrays follow from values too. Such a level is the last.
    shares_values: ClassVar[bool] = False
    can_locate: ClassVar[bool] = False
    can_append: ClassVar[bool] = False
    can_insert: ClassVar[bool] = False
    # How a kernel makes the arrays of a level that ``can_insert``: what must be known of each parent, and which arrays follow from that;
    # the others have an element for each position. ``counted_in`` names the one that is the running sum of the counts, if that is all;
    # entries can only be appended to such a level, or to one that is branchless.
    queries: ClassVar[tuple[Query, ...]] = ()
    parent_arrays: ClassVar[tuple[str, ...]] = ()
    counted_in: ClassVar[str | None] = None

    # Properties, because some levels let the user choose: those have fields of these names.

    @property
    def collector(self) -> Collector | None:
        """How a workspace collects entries at this level; None for what is stored."""
        return None

    @property
    def ordered(self) -> bool:
        """Whether coordinates ascend below one parent."""
        return True

    @property
    def unique(self) -> bool:
        """Whether no coordinate repeats below one parent."""
        return True

    @property
    def letter(self) -> str:
        """The letter that spells this level in the text of a format."""
        raise CompilerBug(self, "a level must have a letter")

    @classmethod
    def lets_choose(cls, promise: str) -> bool:
        """Whether the user decides if a level is ``ordered``, or ``unique``."""
        return promise in (found.name for found in fields(cls))  # type: ignore[arg-type]

    def promising(self, ordered: bool, unique: bool) -> Self:
        """The same level with these promises, as far as they can be chosen."""
        wanted = {"ordered": ordered, "unique": unique}
        return replace(self, **{name: value for name, value in wanted.items() if self.lets_choose(name)})  # type: ignore[type-var]

    def misplaced(self, levels: tuple[Level, ...], place: int) -> str | None:
        """Why this level, the one at ``place``, cannot stand among ``levels``; None where it can."""
        return None

    # Whole arrays, with NumPy.

    def pack(self, parents: Index, coordinates: Index, size: int, parent_count: int, index_dtype: DType) -> tuple[LevelData, Index, int]:
        """Build the level from its nodes, sorted by (parent, coordinate).

        ``parents[n]`` (int64) and ``coordinates[n]`` belong to node n. Two nodes may be equal only if the level is not
        unique, or is full. Returns the data, each node's position (int64), and how many positions there are.
        """
        raise CompilerBug(self, "a level must say how it is packed")

    def pack_values(
        self, parents: Index, coordinates: Index, values: NDArray[Any], size: int, parent_count: int, index_dtype: DType
    ) -> tuple[LevelData, Index, int]:
        """As ``pack``, for a level that ``shares_values``: it sees the value of every node, and returns which of the stored values is each
        node's, and how many values are stored."""
        raise CompilerBug(self, "a level that shares values must say how it is packed with them")

    def unpack(self, data: LevelData, size: int, parent_count: int) -> tuple[Index, Index]:
        """The parent position and the coordinate of every position, in order of position.

        A level that is not compact gives parent -1 at unused positions. One that ``shares_values`` gives those of every entry.
        """
        raise CompilerBug(self, "a level must say how it is unpacked")

    def slots(self, data: LevelData, size: int, parent_count: int) -> Index:
        """Which of the stored values belongs to each entry that ``unpack`` gives; only for a level that ``shares_values``."""
        raise CompilerBug(self, "a level that shares values must say which is whose")

    def count(self, data: LevelData, size: int, parent_count: int) -> int:
        """How many positions there are, unused ones included; of a level that ``shares_values``, how many values. Arrays may be longer."""
        raise CompilerBug(self, "a level must say how many positions it has")

    def passed(self, data: LevelData, size: int, parent_count: int) -> int:
        """How many positions a loop through the whole level may pass, used or not: all of them, unless loops count them otherwise."""
        return self.count(data, size, parent_count)

    def made(self, size: int, parent_count: int, counted: int) -> tuple[int, dict[str, int]]:
        """How many positions a level has that a kernel made, and how many elements each array.

        ``counted`` is what the kernel hands out for the level: its positions, or its one scalar.
        """
        raise CompilerBug(self, "a level that a kernel makes must say how long its arrays are")

    def least(self, size: int, parent_count: int, entries: int, width: int) -> tuple[int, int]:
        """How many bytes the arrays take at least for so many entries, with indices of ``width`` bytes, and how many positions."""
        return width * parent_count, min(parent_count * size, entries)

    def check(self, data: LevelData, size: int, above: Checked) -> Fault | Checked:
        """Check untrusted arrays: the first fault found, or what the next level must know.

        Order and uniqueness are checked between neighbours. That decides them unless a level of the chain is unordered;
        ``formats.validate`` does the rest.
        """
        raise CompilerBug(self, "a level must say how it is checked")

    def outline(self, data: LevelData, size: int, parent_count: int) -> Outline | None:
        """What a quick check of arrays that were found valid needs; None where there is none, and ``check`` must do it again."""
        return None

    # One position at a time, as loop IR.

    def bounds(self, view: LevelView, parent: Expr) -> tuple[Expr, Expr]:
        """The positions ``[begin, end)`` below a parent position. Those of the next parent begin at or behind the end."""
        raise CompilerBug(self, "a level must say where its positions are")

    def begin(self, view: LevelView, parent: Expr) -> Expr:
        """Where the positions of a parent begin, unused ones included; for a parent behind the last one, where all of them end."""
        return self.bounds(view, parent)[0]

    def coordinate(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        """The coordinate at a position, as int64. A level that has a ``coordinate_array`` needs no parent for it."""
        if self.coordinate_array is None:
            raise CompilerBug(self, "a level must say what its coordinates are")
        return load_index(view.arrays[self.coordinate_array], position)

    def search(self, view: LevelView, parent: Expr, begin: Expr, end: Expr, coordinate: Expr) -> Expr:
        """The first position in ``[begin, end)`` whose coordinate is at least the given one, or ``end``; only for ordered levels."""
        if self.coordinate_array is None:
            raise CompilerBug(self, "a level must say how its coordinates are searched")
        return Search(view.arrays[self.coordinate_array], begin, end, coordinate)

    def used(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        """Whether a position holds something, where its parent is the one that ``parent`` gives."""
        if self.has_holes:
            raise CompilerBug(self, "a level with holes must say which positions are used")
        if self.compact:
            return TRUE
        begin, end = self.bounds(view, parent)
        return both(compare("less_equal", begin, position), compare("less", position, end))

    def parent(self, view: LevelView, position: Expr, begin: Expr, end: Expr) -> Expr:
        """The position above that a position stands below, computed or searched; it is one of ``[begin, end)``."""
        raise CompilerBug(self, "a level must say what its positions stand below")

    def slot(self, view: LevelView, parent: Expr, position: Expr) -> Expr:
        """Where the value of a position is stored: at the position itself, unless a level says otherwise, which must then be the last.

        Several positions may have one slot, if the level ``shares_values``. It is only asked of positions that are used.
        """
        return position

    def locate(self, view: LevelView, parent: Expr, coordinate: Expr) -> tuple[Expr, Expr]:
        """The slot of a coordinate, and whether it is there; only for levels that ``can_locate``."""
        raise CompilerBug(self, "this level cannot locate a coordinate")

    def append(self, view: LevelView, position: Expr, coordinate: Expr) -> Stmt:
        """Store a coordinate at a new position at the end; only for levels that ``can_append``."""
        if not self.can_append or self.coordinate_array is None:
            raise CompilerBug(self, "this level cannot append a coordinate")
        return store_index(view.arrays[self.coordinate_array], position, coordinate)

    def arrange(self, view: LevelView, parents: Expr, found: Mapping[Query, Array], fresh: Callable[[str], str]) -> tuple[Stmt, Expr]:
        """Make the ``parent_arrays`` and scalars from what was asked, an int64 for each parent; and say how many positions there are.

        Only for levels that have ``queries`` and are not ``counted_in`` an array of theirs.
        """
        raise CompilerBug(self, "a level that asks for something must say what follows from it")

    def insert(self, view: LevelView, position: Expr, coordinate: Expr) -> Stmt:
        """Say that a coordinate is stored at a position, where entries come in any order; only for levels that ``can_insert``.

        It is where ``locate`` says; if the level cannot locate, entries of a parent have the positions from its ``begin`` on, in turn.
        """
        if not self.can_insert:
            raise CompilerBug(self, "this level cannot insert a coordinate")
        if self.coordinate_array is None:
            return self.append(view, position, coordinate)
        return store_index(view.arrays[self.coordinate_array], position, coordinate)


def array_dtype(level: Level, name: str, index_dtype: DType) -> DType:
    """The dtype of one array of a level in a tensor with such indices."""
    return BOOL if name in level.truth_names else index_dtype


def load_index(array: Array, position: Expr) -> Expr:
    """``array[position]`` as int64, whatever the stored width: index arithmetic is 64-bit everywhere."""
    return Cast(Load(array, position), INT64)


def store_index(array: Array, position: Expr, value: Expr) -> Stmt:
    """``array[position] = value`` for an int64 value, narrowed to the stored width."""
    return Store(array, position, Cast(value, array.dtype))


def array_fault(data: LevelData, name: str, at_least: int) -> Fault | None:
    """What is wrong with an index array before its contents matter: its type, layout or length."""
    array: Any = data.arrays.get(name)
    if isinstance(array, np.ma.MaskedArray):
        return Fault(name, None, "is a masked array; what it hides is no index")
    if not isinstance(array, np.ndarray):
        return Fault(name, None, f"is missing: a NumPy array of int32 or int64 belongs here, not {type(array).__name__}")
    if array.dtype not in INDEX_DTYPES:
        return Fault(name, None, f"has dtype {array.dtype}; indices are int32 or int64 in native byte order")
    if array.ndim != 1:
        return Fault(name, None, f"has {array.ndim} dimensions; index arrays have one")
    if not (array.flags.c_contiguous and array.flags.aligned):
        return Fault(name, None, "is not contiguous and aligned; copy it with np.ascontiguousarray")
    if len(array) < at_least:
        return Fault(name, None, f"has {len(array)} elements; the positions above need {at_least}")
    return None


def crd_fault(crd: Index, size: int, siblings: Mask | None, ordered: bool, unique: bool) -> Fault | None:
    """The first coordinate outside ``[0, size)``; else the first neighbours in the wrong order, or equal where they must not be.

    ``siblings[p]`` says whether positions p and p+1 stand below one parent; ``None`` means that no two of them do.
    """
    return _range_fault(crd, size) or (None if siblings is None else _order_fault(crd, siblings, ordered, unique))


def _range_fault(crd: Index, size: int) -> Fault | None:
    if len(crd) == 0:
        return None
    # Seen as unsigned, a negative coordinate is huge: one pass finds both kinds.
    unsigned = crd.view(f"u{crd.itemsize}")
    if int(unsigned.max()) < min(size, 1 << (8 * crd.itemsize - 1)):
        return None
    place = int(np.flatnonzero((crd < 0) | (crd >= size))[0])
    return Fault("crd", place, f"= {crd[place]} is outside the level's size {size}")


def _order_fault(crd: Index, siblings: Mask, ordered: bool, unique: bool) -> Fault | None:
    before, after = crd[:-1], crd[1:]
    match ordered, unique:
        case True, True:
            wrong = after <= before
        case True, False:
            wrong = after < before
        case False, True:
            wrong = after == before
        case _:
            return None
    wrong &= siblings
    place = int(wrong.argmax()) if len(wrong) else 0
    if not len(wrong) or not wrong[place]:
        return None
    left, right = int(crd[place]), int(crd[place + 1])
    if left == right:
        return Fault("crd", place + 1, f"= {right} repeats crd[{place}] below the same parent; coordinates must be unique")
    return Fault("crd", place + 1, f"= {right} is less than crd[{place}] = {left} below the same parent; coordinates must ascend")
