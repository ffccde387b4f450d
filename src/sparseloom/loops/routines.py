"""What kernels call: each function of the library is one declaration here, and a ``Call`` is a statement.

A declaration says what a function does to its arrays and scalars, what must hold of them, how it reads, and how the interpreter runs it.
Verifying, renaming, printing and running ask the declaration. A target has the text of a call in its own table (``targets/c_calls.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sparseloom.core.dtypes import INDEX_DTYPES, INT64
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node, node, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.memory import Cells
from sparseloom.loops.nodes import Array, Expr, Stmt, Var, add, index


class Use(Enum):
    """What a function does to an array."""

    READS = "reads"
    WRITES = "writes"
    ALLOCATES = "allocates"
    REALLOCATES = "reallocates"
    FREES = "frees"  # the array belongs to somebody else then, and its name is free again


Claims = Iterator[tuple[bool, str]]


@dataclass(frozen=True, eq=False)
class Routine:
    """One function of the library. The last of its ``uses`` is that of all further arrays, too."""

    name: str
    uses: tuple[Use, ...]
    run: Callable[[list[Cells], list[Any]], int | None]
    claims: Callable[[Sequence[Array], Sequence[Expr]], Claims] = lambda arrays, args: iter(())
    assigns: bool = False  # whether its first argument is a scalar that it gives a new value
    may_fail: bool = False  # whether it can run out of memory

    def __reduce__(self) -> str:
        return self.name.upper()


@node
class Call(Stmt):
    """Call a function of the library on arrays and int64 arguments."""

    routine: Routine
    arrays: tuple[Array, ...]
    args: tuple[Expr, ...] = ()

    def using(self, *uses: Use) -> tuple[Array, ...]:
        """The arrays that it uses in one of these ways."""
        known = self.routine.uses
        return tuple(array for k, array in enumerate(self.arrays) if known[min(k, len(known) - 1)] in uses)

    @property
    def assigned(self) -> Var | None:
        """The scalar that it gives a new value."""
        return self.args[0] if self.routine.assigns and isinstance(self.args[0], Var) else None


def allocated(stmt: object) -> tuple[Array, ...]:
    """The arrays that a statement itself allocates."""
    match stmt:
        case ir.Allocate(array):
            return (array,)
        case Call():
            return stmt.using(Use.ALLOCATES)
    return ()


def declared_by(n: object) -> tuple[Var | Array, ...]:
    """What a node itself declares: a scalar, or the arrays that it allocates."""
    match n:
        case ir.Declare(var) | ir.For(var):
            return (var,)
    return allocated(n)


def may_end(n: object) -> bool:
    """Whether a node can end the kernel other than by running out of memory in an allocation."""
    return isinstance(n, ir.Fail | ir.Poll) or (isinstance(n, Call) and n.routine.may_fail)


def assigned_by(stmt: object) -> Var | None:
    """The scalar that a statement itself gives a new value."""
    match stmt:
        case ir.Assign(var):
            return var
        case Call():
            return stmt.assigned
    return None


def assigned_in(stmt: Stmt) -> list[Var]:
    """The scalars that a statement or one inside it gives new values."""
    given = [n for n in walk(stmt, Stmt) if isinstance(n, ir.Assign | Call)]
    return [var for n in given if (var := assigned_by(n)) is not None]


def allocated_in(nodes: Iterable[Node]) -> list[Array]:
    """The arrays that some of these nodes allocate, each once."""
    return list(dict.fromkeys(array for n in nodes if isinstance(n, ir.Allocate | Call) for array in allocated(n)))


def indices_of(n: object) -> tuple[Expr, ...]:
    """What a node itself counts and addresses with: its indices, bounds and sizes, which are int64."""
    match n:
        case ir.Load(_, place) | ir.Store(_, place) | ir.Allocate(_, place):
            return (place,)
        case ir.For(_, first, second) | ir.Launch(first, second) | ir.Fill(_, first, second):
            return first, second
        case ir.Search(_, begin, end, key):
            return begin, end, key
        case Call(args=args):
            return args
    return ()


def prefetch(array: Array, place: Expr) -> Call:
    """Prefetch an element that will be written soon. It may be past the end of the array, because it is not accessed."""
    return Call(PREFETCH, (array,), (place,))


PREFETCH = Routine(
    "prefetch",
    (Use.WRITES,),
    lambda arrays, args: None,
)


def prefetch_read(array: Array, place: Expr) -> Call:
    """Prefetch an element that will be read soon. It is in the array, but not accessed."""
    return Call(PREFETCH_READ, (array,), (place,))


PREFETCH_READ = Routine(
    "prefetch_read",
    (Use.READS,),
    lambda arrays, args: arrays[0].require(args[0]),
)


def grow(array: Array, capacity: Var, needed: Expr) -> Call:
    """Make sure ``array`` holds at least ``needed`` elements: if ``capacity`` is less, reallocate to twice as much or ``needed``.

    ``capacity`` is a declared variable that follows the allocation.
    """
    return Call(GROW, (array,), (capacity, needed))


GROW = Routine(
    "grow",
    (Use.REALLOCATES,),
    lambda arrays, args: arrays[0].grow(*args),
    assigns=True,
    may_fail=True,
)


def sort(array: Array, scratch: Array, flags: Array, count: Expr, extent: Expr) -> Call:
    """Sort the first ``count`` elements of an index array, all different and below ``extent``, into ascending order.

    ``flags`` say of every coordinate whether it is among them. The array and the flags have ``sort_room(extent)`` elements: behind the
    sorted ones others are overwritten, and no flag is set. ``scratch`` has ``sort_scratch(extent)``, of which the first part holds zeros
    before and after.
    """
    return Call(SORT, (array, scratch, flags), (count, extent))


WORD = 64  # flags are read so many at a time; fewer elements behind the sorted ones are written


def sort_room(extent: Expr) -> Expr:
    """How many elements an array has whose coordinates are sorted, and as many flags there are."""
    return add(extent, index(WORD))


def sort_scratch(extent: Expr) -> tuple[Expr, Expr]:
    """How many elements the scratch of a sort must hold zeros in, and how many it has: a bit per coordinate, and a copy of all."""
    zeros = add(ir.Op("floor_divide", (extent, index(32))), add(ir.Op("floor_divide", (extent, index(2048))), index(8)))
    return zeros, add(zeros, extent)


def _sort(arrays: list[Cells], args: list[int]) -> None:
    (array, scratch, flags), (count, extent) = arrays, args
    zeros = extent // 32 + extent // 2048 + 8
    if len(scratch.known) < zeros + extent or any(scratch.load_number(place) for place in range(zeros)):
        raise CompilerBug(scratch.name, f"{scratch.name} has {zeros + extent} elements for a sort, the first {zeros} of them 0")
    for cells in (array, flags):
        if len(cells.known) < extent + WORD:
            raise CompilerBug(cells.name, f"{cells.name} has {extent + WORD} elements for a sort, not {len(cells.known)}")
    ordered = sorted(array.load_number(place) for place in range(count))
    if ordered != [place for place in range(extent + WORD) if flags.load(place)] or (ordered and ordered[-1] >= extent):
        raise CompilerBug(array.name, f"what is sorted in {array.name} is all different, below {extent} and flagged in {flags.name}")
    for place, value in enumerate(ordered):
        array.store(place, value)


def _sort_claims(arrays: Sequence[Array], args: Sequence[Expr]) -> Claims:
    array, scratch, flags = arrays
    yield array.dtype == scratch.dtype and array.dtype.kind == "i", "index arrays are sorted"
    yield flags.dtype.kind == "b", "flags are truth values"


SORT = Routine(
    "sort",
    (Use.WRITES, Use.WRITES, Use.READS),
    _sort,
    _sort_claims,
)


def sort_entries(columns: Sequence[Array], values: Array, room: Sequence[Array], count: Expr, keys: int) -> Call:
    """Sort the first ``count`` entries by their first ``keys`` columns. Equal ones keep their order; other columns and values move along.

    ``room`` is two arrays of bytes, each with the ``entry_size`` of all entries.
    """
    return Call(SORT_ENTRIES, (*columns, values, *room), (count, index(keys)))


def entry_size(*arrays: Array) -> int:
    """The bytes of one entry: an element of every array."""
    return sum(array.dtype.itemsize for array in arrays)


def _sort_entries(arrays: list[Cells], args: list[int]) -> None:
    (*moved, first, second), (count, keys) = arrays, args
    size = sum(cells.dtype.itemsize for cells in moved)
    for cells in (first, second):
        if len(cells.known) < count * size:
            raise CompilerBug(cells.name, f"{cells.name} has room for {count} entries of {size} bytes, not only {len(cells.known)} bytes")
    entries = [tuple(cells.load(place) for cells in moved) for place in range(count)]
    entries.sort(key=lambda entry: entry[:keys])
    for place, entry in enumerate(entries):
        for cells, element in zip(moved, entry, strict=True):
            cells.store(place, element)


def _sort_entries_claims(arrays: Sequence[Array], args: Sequence[Expr]) -> Claims:
    *columns, _, first, second = arrays
    dtypes = {column.dtype for column in columns}
    yield dtypes <= {*INDEX_DTYPES} and len(dtypes) == 1, "columns are indices alike"
    yield first.dtype.itemsize == second.dtype.itemsize == 1, "entries are moved in arrays of bytes"
    keys = args[1].value if isinstance(args[1], ir.Literal) else 0
    yield 0 < int(keys.real) <= len(columns), "entries are sorted by at least one column"


SORT_ENTRIES = Routine("sort_entries", (Use.WRITES,), _sort_entries, _sort_entries_claims)


def pieces(name: str, array: Array) -> Array:
    """Arrays like this one that the threads of a team make, one each, to be joined."""
    return Array(name, array.dtype, ir.MemorySpace.PIECES)


def make_pieces(made: Array, count: Expr) -> Call:
    """Room for the pieces of a team whose loop has ``count`` iterations."""
    return Call(MAKE_PIECES, (made,), (count,))


MAKE_PIECES = Routine(
    "make_pieces",
    (Use.ALLOCATES,),
    lambda arrays, args: arrays[0].make_pieces(*args),
    may_fail=True,
)


def keep(made: Array, array: Array) -> Call:
    """Hand an allocated array over to the thread's place among the pieces."""
    return Call(KEEP, (made, array), (ir.Thread(),))


def _keep(arrays: list[Cells], args: list[int]) -> None:
    made, array = arrays
    made.pieces[args[0]] = array.hand_over()


KEEP = Routine(
    "keep",
    (Use.WRITES, Use.FREES),
    _keep,
    lambda arrays, args: iter([(arrays[0].dtype == arrays[1].dtype, f"{arrays[0].name} was made for such arrays")]),
)


@dataclass(frozen=True)
class Parts:
    """The parts of a result: part p is ``[begins[p], begins[p] + n)`` of what thread ``owners[p]`` made, and goes to
    ``[starts[p], starts[p + 1])`` of the whole, n being the distance of those."""

    owners: Array
    begins: Array
    starts: Array
    count: Expr

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """The arrays that describe the parts."""
        return self.owners, self.begins, self.starts


def join(array: Array, made: Array, parts: Parts, each: Expr, below: Parts | None = None) -> Call:
    """Make ``array`` of all parts, ``each`` elements to a position, one behind the other.

    With ``below`` they are positions of those parts, which are moved with them. A leading 0 belongs to no part.
    """
    moved = () if below is None else below.arrays
    return Call(JOIN, (array, made, *parts.arrays, *moved), (parts.count, each))


def _join(arrays: list[Cells], args: list[int]) -> None:
    (whole, made, owners, begins, starts, *below), (count, each) = arrays, args
    leading = 1 if below else 0
    whole.allocate(starts.load_number(count) * each + leading)
    whole.fill(0, leading, 0)
    for part in range(count):
        piece, begin, start = made.pieces[owners.load_number(part)], begins.load_number(part), starts.load_number(part)
        moved = below[2].load_number(part) - below[1].load_number(part) if below else None
        for k in range((starts.load_number(part + 1) - start) * each):
            value = piece[begin * each + k + leading]
            whole.store(start * each + k + leading, value if moved is None else value + moved)


def _join_claims(arrays: Sequence[Array], args: Sequence[Expr]) -> Claims:
    yield arrays[0].dtype == arrays[1].dtype, "pieces are joined as they are"
    yield all(array.dtype == INT64 for array in arrays[2:]), "what tells of parts is int64"


JOIN = Routine("join", (Use.ALLOCATES, Use.WRITES, Use.READS), _join, _join_claims, may_fail=True)


def clock(array: Array, place: Expr) -> Call:
    """Write down the time in nanoseconds."""
    return Call(CLOCK, (array,), (place,))


CLOCK = Routine("clock", (Use.WRITES,), lambda arrays, args: None)

ROUTINES = {one.name: one for one in (PREFETCH, PREFETCH_READ, GROW, SORT, SORT_ENTRIES, MAKE_PIECES, KEEP, JOIN, CLOCK)}
