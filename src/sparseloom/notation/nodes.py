"""The nodes of index notation and of concrete index notation.

Index notation is one ``Assign`` whose right side holds explicit ``Reduce`` nodes and no loops. Concrete index notation
adds the loops (``Forall``), temporaries (``Where``), several statements (``Sequence``) and the relations between
variables (``SuchThat``). Both share the expressions.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from operator import attrgetter

from sparseloom.core.algebra import Scalar, identical, same_sign
from sparseloom.core.dtypes import FLOAT64, DType, computed
from sparseloom.core.trees import Node, field_names, kept_hash, node
from sparseloom.formats.format import Format


@node
class IndexVar(Node):
    """A variable such as ``i``; its name is its identity.

    >>> i = sl.IndexVar("i")
    >>> y = sl.zeros(3)
    >>> y[i] = 2 * sl.ones(3)[i]
    >>> y.to_numpy()
    array([2., 2., 2.])
    """

    name: str

    def __str__(self) -> str:
        return self.name


@node
class Fixed(IndexVar):
    """A number in the place of a variable: the 3 of ``A(3,j)``. No loop runs over it; its name tells it from others in its statement."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@node
class TensorVar(Node):
    """A tensor as the compiler sees it: everything but its sizes and its data.

    ``dtype`` is that in which its values are computed. One made with a half, float16 or bfloat16, keeps that as ``stored``.
    """

    name: str
    order: int
    format: Format
    dtype: DType = FLOAT64
    index_dtype: DType | None = None  # None: int32, the default of generated code
    fill: Scalar = 0
    partial: bool = False  # a scalar temporary that is absent when nothing was reduced into it
    stored: DType | None = None  # how its arrays hold values that are computed in another dtype

    def __post_init__(self) -> None:
        if (dtype := computed(self.dtype)) is not self.dtype:
            object.__setattr__(self, "stored", self.dtype)
            object.__setattr__(self, "dtype", dtype)

    def __eq__(self, other: object) -> bool:
        # 0.0 and -0.0 are equal, but not the same where one is divided by them.
        return self is other or (isinstance(other, TensorVar) and _facts(self) == _facts(other) and same_sign(self.fill, other.fill))

    @property
    def stored_dtype(self) -> DType:
        """The dtype of its arrays of values."""
        return self.stored or self.dtype

    @property
    def may_be_absent(self) -> bool:
        """Whether some coordinate may have no entry."""
        return self.partial or not self.format.is_dense

    def __str__(self) -> str:
        return self.name


_facts = attrgetter(*field_names(TensorVar))
TensorVar.__hash__ = kept_hash(_facts)  # type: ignore[assignment]


class Expr(Node):
    """A right-hand side."""

    __slots__ = ()


@node
class Access(Expr):
    """``A(i,j)``: one variable, or number, per mode, in the order of the tensor's modes. A scalar has none."""

    tensor: TensorVar
    indices: tuple[IndexVar, ...]


@node
class Literal(Expr):
    """A number written in the statement; it promotes weakly, as Python numbers do in NumPy. 1, 1.0 and True differ, as 0.0 and -0.0."""

    value: Scalar

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and identical(self.value, other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@node
class Apply(Expr):
    """An operator of ``core.algebra`` on expressions. Sums and products are flat: ``a+b+c`` is one node.

    ``zero`` is the annihilator that a semiring promises for this operation.
    """

    op: str
    args: tuple[Expr, ...]
    zero: Scalar | None = None


@node
class Points(Expr):
    """How many values variables have together: the product of their extents, as a number of a dtype. Only the compiler makes it."""

    names: tuple[str, ...]
    dtype: DType


@node
class Reduce(Expr):
    """``op`` over all values of ``variables``: ``sum(j, A(i,j)*x(j))`` is ``Reduce("add", (j,), ...)``.

    One that the user has ``written`` may be wider than its body; an implicit one keeps its dtype.
    """

    op: str
    variables: tuple[IndexVar, ...]
    body: Expr
    written: bool = field(default=False, kw_only=True, compare=False)


class Stmt(Node):
    """A statement of concrete index notation."""

    __slots__ = ()


@node
class Assign(Stmt):
    """``lhs = rhs``, or ``lhs = lhs op rhs`` when ``op`` is given."""

    lhs: Access
    rhs: Expr
    op: str | None = None


class Unit(Enum):
    """What runs the iterations of a parallel loop.

    >>> i, i0, i1 = sl.indices("i i0 i1")
    >>> y = sl.zeros(3, name="y")
    >>> y[i] = 2 * sl.ones(3, name="x")[i]
    >>> print(y.schedule().split(i, i0, i1, 4).parallelize(i0, sl.CPUThread, sl.NoRaces).parallelize(i1, sl.CPUVector, sl.NoRaces))
    forall i0     coordinates in [0, ceil(|i| / 4)), CPUThread with NoRaces
      forall i1   coordinates in [0, 4), CPUVector with NoRaces
        y(i) = 2 * x(i)
    such that
      i = i0 * 4 + i1
    >>> sl.GPUBlock.name, sl.GPUWarp.name, sl.GPUThread.name
    ('GPUBlock', 'GPUWarp', 'GPUThread')
    """

    CPUThread = "CPUThread"
    CPUVector = "CPUVector"
    GPUBlock = "GPUBlock"
    GPUWarp = "GPUWarp"
    GPUThread = "GPUThread"


class Races(Enum):
    """What a parallel loop does when two iterations write one location.

    >>> [races.name for races in (sl.NoRaces, sl.IgnoreRaces, sl.Atomics, sl.Temporary, sl.ParallelReduction)]
    ['NoRaces', 'IgnoreRaces', 'Atomics', 'Temporary', 'ParallelReduction']
    >>> total = sl.program("s = x(i)", {"x": "dense"}, "parallelize(i, CPUThread, ParallelReduction)")
    >>> float(total(np.ones(1000)))
    1000.0
    """

    NoRaces = "NoRaces"
    IgnoreRaces = "IgnoreRaces"
    Atomics = "Atomics"
    Temporary = "Temporary"
    ParallelReduction = "ParallelReduction"


class Merge(Enum):
    """How a loop over an intersection finds equal coordinates.

    >>> sl.TwoFinger.name, sl.Gallop.name
    ('TwoFinger', 'Gallop')
    >>> k = sl.program("s = x(i) * y(i)", {"x": "s", "y": "s"}, "mergeby(i, Gallop)")
    >>> float(k([0.0, 2.0], [1.0, 5.0]))
    10.0
    """

    TwoFinger = "TwoFinger"
    Gallop = "Gallop"


class Assembly(Enum):
    """How the entries of a sparse result are put together.

    >>> sl.Append.name, sl.Insert.name
    ('Append', 'Insert')
    >>> k = sl.program("C(i,j) = 2 * A(j,i)", {"A": "csr", "C": "csr"}, "assemble(C, Insert)")
    >>> k([[0.0, 1.0], [0.0, 0.0]]).to_numpy()
    array([[0., 0.],
           [2., 0.]])
    """

    Append = "Append"
    Insert = "Insert"


@node
class Prefetched(Node):
    """What a loop asks for ahead of time: the part of an operand that the iteration ``distance`` further on will read."""

    access: Access
    distance: int


@node
class Tag(Node):
    """How a loop runs: in parallel, unrolled, merging in a certain way, or asking for operands ahead of time."""

    unit: Unit | None = None
    races: Races | None = None
    unroll: int = 0
    merge: Merge | None = None
    prefetches: tuple[Prefetched, ...] = ()


SERIAL = Tag()


@node
class Forall(Stmt):
    """Run ``body`` once for every coordinate (or position) of ``var``."""

    var: IndexVar
    body: Stmt
    tag: Tag = SERIAL


@node
class Where(Stmt):
    """Run ``producer``, which fills a temporary, then ``consumer``, which reads it."""

    consumer: Stmt
    producer: Stmt


@node
class Sequence(Stmt):
    """Run the statements one after another."""

    stmts: tuple[Stmt, ...]


class Relation(Node):
    """How derived variables stand for others; the scheduling language adds members."""

    __slots__ = ()


@node
class SuchThat(Stmt):
    """``body``, in which the variables obey the relations."""

    body: Stmt
    relations: tuple[Relation, ...]
