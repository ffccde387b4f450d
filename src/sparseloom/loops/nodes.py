"""The nodes of the loop IR.

Expressions are typed and have no side effects. Statements declare, assign, store, allocate and loop. A ``Function`` is
one kernel. Nothing is left to decide here: a target prints these nodes one by one, and the interpreter runs them.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import Any

from sparseloom.core.algebra import Scalar, identical
from sparseloom.core.dtypes import BOOL, INT64, DType
from sparseloom.core.trees import Node, node


class MemorySpace(Enum):
    """Where an array lives."""

    GLOBAL = "global"  # a caller's array, or heap memory of the kernel
    SHARED = "shared"  # shared by the threads of one block
    LOCAL = "local"  # private to one thread
    PIECES = "pieces"  # one array for each thread of a team, to be joined


class LoopKind(Enum):
    """How the iterations of a ``For`` run.

    The outermost loop on a GPU is one kernel. Code of a block or a warp, outside the loops over its threads, is run by all of
    them with the same scalars, and one of them stores. Threads wait for each other only at a barrier.
    """

    SERIAL = "serial"
    THREADS = "threads"
    VECTOR = "vector"
    UNROLLED = "unrolled"
    LANES = "lanes"  # lane by lane, on neighbouring numbers of one float dtype: vector registers can do it at once
    WIDE = "wide"  # neighbours are moved between memory of all and memory of one thread: one instruction can do it
    GPU_BLOCK = "gpu block"
    GPU_WARP = "gpu warp"
    GPU_THREAD = "gpu thread"


GPU_KINDS = (LoopKind.GPU_BLOCK, LoopKind.GPU_WARP, LoopKind.GPU_THREAD)


class Expr(Node):
    """A typed expression without side effects; every one has a ``dtype``."""

    __slots__ = ()
    dtype: DType


@node
class Var(Expr):
    """A scalar variable."""

    name: str
    dtype: DType = INT64


@node
class Literal(Expr):
    """A constant. Constants that differ in type or in the sign of zero are different: kernels are remembered by them."""

    value: Scalar
    dtype: DType = INT64

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self.dtype == other.dtype and identical(self.value, other.value)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.dtype))


@node
class Array(Node):
    """A one-dimensional array: a parameter or an allocation."""

    name: str
    dtype: DType
    space: MemorySpace = MemorySpace.GLOBAL


@node
class Load(Expr):
    """``array[index]``."""

    array: Array
    index: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.array.dtype


@node
class Op(Expr):
    """An element-wise operator of ``core.algebra`` by name; the arguments already have the compute dtype.

    Index arithmetic uses the same operators on int64, and ``floor_divide``, ``remainder`` and ``hash``, which exist here only.
    ``logical_and`` and ``logical_or`` stop at the first argument that decides.
    """

    name: str
    args: tuple[Expr, ...]
    dtype: DType = INT64


@node
class Cast(Expr):
    """Convert to another dtype, as NumPy's ``astype``."""

    operand: Expr
    dtype: DType


@node
class Select(Expr):
    """``then`` where the condition holds, else ``other``; only one of them is evaluated."""

    condition: Expr
    then: Expr
    other: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.then.dtype


@node
class Search(Expr):
    """The first position in ``[begin, end)`` whose coordinate is at least ``key``, or ``end``; ``array`` ascends there.

    So many ``lanes`` of a GPU, all of which reach it with the same operands, search together.
    """

    array: Array
    begin: Expr
    end: Expr
    key: Expr
    dtype: DType = INT64
    lanes: int = 1


@node
class Thread(Expr):
    """Which thread of its team runs this, counted from 0."""

    dtype: DType = INT64


@node
class Stmt(Node):
    """A statement. ``origin`` is the variable of concrete notation whose loop it stems from, or the tensor that it helps to make."""

    origin: str = field(default="", kw_only=True, compare=False)


@node
class Block(Stmt):
    """Statements in order."""

    stmts: tuple[Stmt, ...]


@node
class Declare(Stmt):
    """A new scalar with its first value; it lives to the end of the enclosing block. ``why`` is a remark for readers."""

    var: Var
    value: Expr
    why: str = ""


@node
class Assign(Stmt):
    """Give a declared scalar a new value."""

    var: Var
    value: Expr


@node
class Store(Stmt):
    """``array[index] = value``, or ``array[index] = array[index] op value`` when ``op`` is given."""

    array: Array
    index: Expr
    value: Expr
    op: str | None = None
    atomic: bool = False


@node
class Reduction(Node):
    """A scalar from outside a parallel loop that its iterations combine into: lanes or threads have copies, which are combined last."""

    var: Var
    op: str


@node
class For(Stmt):
    """Run ``body`` for ``var`` in ``[begin, end)``, which are worked out once.

    ``factor`` is the unroll count, the vector width, how many a thread takes at a time, or how many warps or threads of a GPU there are at
    most; 0 if not given. ``reduces`` is for loops over the lanes and threads of a CPU. A loop over ``factor`` lanes that ends before the
    last may read what all of them would. ``room``, of a vector loop over stored entries, says how many there are: what it reads at its
    variable may also be read behind its end, up to there.
    """

    var: Var
    begin: Expr
    end: Expr
    body: Stmt
    kind: LoopKind = LoopKind.SERIAL
    factor: int = 0
    reduces: tuple[Reduction, ...] = ()
    room: Expr | None = None


@node
class While(Stmt):
    """Run ``body`` as long as the condition holds. ``factor`` is the unroll count, 0 if not given."""

    condition: Expr
    body: Stmt
    factor: int = 0


@node
class If(Stmt):
    """Run one of two branches."""

    condition: Expr
    then: Stmt
    other: Stmt = Block(())


@node
class Launch(Stmt):
    """A kernel of a GPU: ``body`` is a loop over ``blocks`` blocks of ``threads`` threads each, so many ``lanes`` of which are a warp.

    The processor runs ``warp`` threads in lock step. Fewer lanes than that are a part of such a warp. In a ``settled`` launch a loop over
    units has at most as many iterations as there are units, and barriers stand wherever threads need them.

    What stands outside of launches then runs on the host, which knows sizes and positions, and has no arrays of its own.
    """

    blocks: Expr
    threads: Expr
    body: For
    lanes: int = 1
    warp: int = 1
    settled: bool = False


@node
class Team(Stmt):
    """A threads loop whose threads each run ``first`` before their first iteration and ``last`` after their last.

    What ``first`` declares and allocates is the thread's own, and ``last`` frees it or keeps it.
    """

    first: Stmt
    loop: For
    last: Stmt


@node
class Allocate(Stmt):
    """Make room for ``size`` elements; contents are undefined. Failure ends the kernel with ``OUT_OF_MEMORY``."""

    array: Array
    size: Expr


@node
class Fill(Stmt):
    """Set ``array[begin : begin + count]`` to ``value``."""

    array: Array
    begin: Expr
    count: Expr
    value: Expr


@node
class Free(Stmt):
    """Give an allocated array back."""

    array: Array


@node
class Shuffle(Stmt):
    """Reduce ``value`` over the lanes of a warp, or the threads or warps of a block, and combine the total with ``var`` in each.

    It is the last statement of the loop over them, which all reach. Adjacent ones combine first, then pairs of pairs. It is no barrier.
    """

    var: Var
    op: str
    value: Expr


@node
class Barrier(Stmt):
    """The threads of a block, or the lanes of a warp inside one, wait for each other, and then see what the others wrote."""


class Status(Enum):
    """What a kernel returns."""

    OK = 0
    OUT_OF_MEMORY = 1
    INDEX_OVERFLOW = 2
    BOUND_VIOLATED = 3
    CANCELLED = 4


@node
class Fail(Stmt):
    """End the kernel with this status; what it allocated is freed."""

    status: Status


@node
class Poll(Stmt):
    """A place where the kernel may be cancelled (Ctrl-C). Cheap: it looks at a clock ever more rarely."""


class Role(Enum):
    """What the caller does with a parameter."""

    INPUT = "input"  # an array read by the kernel
    OUTPUT = "output"  # an array of the right size that the kernel writes
    GROWN = "grown"  # an array that the kernel allocates and the caller then owns
    SIZE = "size"  # an int64 handed in
    COUNT = "count"  # an int64 handed out


@node
class Param(Node):
    """One parameter: an ``Array`` for the array roles, a ``Var`` for the scalar ones."""

    target: Array | Var
    role: Role


@node
class Function(Node):
    """One kernel. GROWN arrays and COUNT variables are declared by being parameters; the body assigns them."""

    name: str
    params: tuple[Param, ...]
    body: Stmt


TRUE = Literal(True, BOOL)
FALSE = Literal(False, BOOL)
ZERO = Literal(0)
ONE = Literal(1)


def index(value: int) -> Literal:
    """An int64 constant."""
    return Literal(value)


def add(left: Expr, right: Expr) -> Expr:
    """``left + right`` on int64, folding what is known."""
    match left, right:
        case Literal(a), Literal(b):
            return Literal(int(a) + int(b))  # type: ignore[arg-type]
        case _, Literal(0):
            return left
        case Literal(0), _:
            return right
    return Op("add", (left, right))


def multiply(left: Expr, right: Expr) -> Expr:
    """``left * right`` on int64, folding what is known."""
    match left, right:
        case Literal(a), Literal(b):
            return Literal(int(a) * int(b))  # type: ignore[arg-type]
        case (_, Literal(0)) | (Literal(0), _):
            return ZERO
        case _, Literal(1):
            return left
        case Literal(1), _:
            return right
    return Op("multiply", (left, right))


def compare(name: str, left: Expr, right: Expr) -> Expr:
    """A comparison of two index expressions: ``less``, ``equal``, ..."""
    return Op(name, (left, right), BOOL)


def both(*conditions: Expr) -> Expr:
    """All of the conditions, folding what is known."""
    return _joined("logical_and", conditions, TRUE, FALSE)


def either(*conditions: Expr) -> Expr:
    """Any of the conditions, folding what is known."""
    return _joined("logical_or", conditions, FALSE, TRUE)


def _joined(name: str, conditions: tuple[Expr, ...], neutral: Literal, deciding: Literal) -> Expr:
    kept = tuple(dict.fromkeys(c for c in conditions if c != neutral))
    if deciding in kept or not kept:
        return deciding if kept else neutral
    return kept[0] if len(kept) == 1 else Op(name, kept, BOOL)


def block(*stmts: Stmt | None) -> Stmt:
    """Statements in order, flattened; ``None`` is skipped."""
    flat: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, Block):
            flat.extend(stmt.stmts)
        elif stmt is not None:
            flat.append(stmt)
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


def when(condition: Expr, body: Stmt) -> Stmt:
    """``body`` where a condition holds, folding what is known."""
    return body if condition == TRUE else block() if condition == FALSE else If(condition, body)


def stmts_of(body: Stmt) -> tuple[Stmt, ...]:
    """The statements of a body, one by one."""
    return body.stmts if isinstance(body, Block) else (body,)


def constant(value: Any, dtype: DType) -> Literal:
    """A constant of a value dtype."""
    return Literal(dtype.type(value).item(), dtype)
