"""SciPy's own products and sums through our kernels: ``A @ x``, ``A @ X``, ``A @ B``, ``A + B`` and ``A - B`` of its CSR and CSC.

The methods behind SciPy's operators are replaced while this is asked for. Each looks whether its operands are ours to take (large enough,
of a dtype for which both have the same rules, sorted and without repetitions), and otherwise does what SciPy does.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from sparseloom.core.errors import ToolchainError
from sparseloom.formats.named import csc, csr
from sparseloom.formats.storage import Storage, open_up
from sparseloom.interop.numpy import to_numpy
from sparseloom.interop.scipy import from_compressed
from sparseloom.notation.nodes import Apply, Expr, Reduce
from sparseloom.programs.dispatch import doors
from sparseloom.tensor.operators import Statement, matmul, product, variables
from sparseloom.toolchain.forks import whole_step
from sparseloom.toolchain.teams import teams

Method = Callable[[Any, Any], Any]

NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Least:
    """From how many entries on, of all sparse operands together, an operation is quicker: on one thread, and on two or more.

    Measured by ``make bench-products``. To look whether a caller changed an index takes a tenth of ``A @ x`` or more, which one thread wins
    back only where the matrix is in no cache; A - B leaves out what becomes zero.
    """

    alone: int
    together: int

    def allows(self, entries: int) -> bool:
        """Whether there are enough entries. How many threads there are is asked only where it matters."""
        return entries >= self.together and (entries >= self.alone or teams.size > 1)


LEAST = {
    "_matmul_vector": Least(3_000_000, 300_000),
    "_matmul_multivector": Least(20_000, 20_000),
    "_matmul_sparse": Least(40_000, 40_000),
    "_add_sparse": Least(200_000, 200_000),
    "_sub_sparse": Least(NEVER, 400_000),
}
_KINDS = frozenset(np.dtype(name) for name in "int32 int64 float32 float64 complex64 complex128".split())
_FORMATS = {"csr": csr, "csc": csc}
_METHODS = tuple(LEAST)
_active: list[Acceleration] = []


class Acceleration:
    """Holds as long as it is wanted: until ``undo()``, or the end of a ``with`` block."""

    def __init__(self, least: int | None = None) -> None:
        self._least = LEAST if least is None else dict.fromkeys(LEAST, Least(least, least))
        with whole_step:
            if not _active:
                _install()
            _active.append(self)

    def takes(self, method: str, entries: int) -> bool:
        """Whether an operation on so many entries is ours."""
        return self._least[method].allows(entries)

    def undo(self) -> None:
        """Give SciPy its own methods back, unless someone else wants them replaced, too."""
        with whole_step:
            if self in _active:
                _active.remove(self)
                if not _active:
                    _kept.clear()
                    _remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.undo()


def _owner() -> type:
    """The class of SciPy's that has the methods of CSR and CSC."""
    import scipy.sparse

    found = next((kind for kind in scipy.sparse.csr_array.__mro__ if "_matmul_vector" in vars(kind)), None)
    missing = [name for name in _METHODS if found is None or name not in vars(found)]
    if found is None or missing:
        raise ToolchainError(f"SciPy {scipy.__version__} has no {', '.join(missing)} to replace; products stay as they are")
    return found


_OWN: dict[str, Method] = {}


def _install() -> None:
    owner = _owner()
    for name, made in zip(_METHODS, (_vector, _vectors, _sparse, _plus, _minus), strict=True):
        _OWN[name] = vars(owner)[name]
        setattr(owner, name, _replacing(name, made))


def _remove() -> None:
    owner = _owner()
    for name, method in _OWN.items():
        setattr(owner, name, method)
    _OWN.clear()


def _replacing(name: str, ours: Callable[[Any, Any], Any | None]) -> Method:
    """The method that asks us first."""
    own = _OWN[name]

    def method(self: Any, other: Any) -> Any:
        made = ours(self, other)
        return own(self, other) if made is None else made

    method.__name__ = name
    method.__doc__ = own.__doc__
    return method


def _stored(matrix: Any) -> Storage | None:
    """A CSR or CSC matrix over its own arrays; nothing if it has to be changed first."""
    format = _FORMATS.get(matrix.format)
    if format is None or matrix.ndim != 2 or matrix.dtype not in _KINDS or not matrix.has_canonical_format:
        return None
    entry = from_compressed(format, matrix.shape, matrix.indptr, matrix.indices, matrix.data)
    if entry.notes:
        return None
    _keep(matrix, entry.storage)
    return entry.storage


_kept: dict[int, tuple[weakref.ref[Any], Storage]] = {}
"""What was made of matrices, by their numbers, as long as they live: how their entries are spread need not be found out again."""


def _keep(matrix: Any, storage: Storage) -> None:
    key = id(matrix)
    known = _kept.get(key)
    if known is None or known[0]() is not matrix:
        _kept[key] = weakref.ref(matrix, lambda _: _kept.pop(key, None)), storage
    elif known[1] is not storage:
        _kept[key] = known[0], storage


def _is_worth(method: str, *operands: Any) -> bool:
    """Whether matrices have enough entries, all together."""
    return bool(_active) and _active[-1].takes(method, sum([len(operand.data) for operand in operands]))


def _array(other: Any) -> Any:
    """A dense operand in C order; nothing if its dtype has other rules."""
    return np.ascontiguousarray(other) if type(other) is np.ndarray and other.dtype in _KINDS else None


def _vector(matrix: Any, other: Any) -> Any | None:
    stored = _stored(matrix) if _is_worth("_matmul_vector", matrix) else None
    vector = _array(other)
    if stored is None or vector is None or other.shape != matrix.shape[1:]:
        return None
    return product(stored, vector)


def _vectors(matrix: Any, other: Any) -> Any | None:
    stored = _stored(matrix) if _is_worth("_matmul_multivector", matrix) else None
    array = _array(other)
    if stored is None or array is None or other.ndim != 2 or other.shape[0] != matrix.shape[1]:
        return None
    return np.ascontiguousarray(to_numpy(matmul(stored, array)))


def _pair(method: str, matrix: Any, other: Any) -> tuple[Storage, Storage] | None:
    """Two matrices of one format, as SciPy brings them to that of the first."""
    if matrix.format not in _FORMATS or other.ndim != 2 or not hasattr(other, "data") or not _is_worth(method, matrix, other):
        return None
    like = other if other.format == matrix.format else matrix.__class__(other)
    left, right = _stored(matrix), _stored(like)
    return None if left is None or right is None else (left, right)


def _sparse(matrix: Any, other: Any) -> Any | None:
    pair = _pair("_matmul_sparse", matrix, other)
    if pair is None or matrix.shape[1] != other.shape[0]:
        return None
    i, j, k = variables(3)
    sizes = (matrix.shape[0], other.shape[1])
    made = _computed("@", pair, ((i, k), (k, j)), (i, j), sizes, lambda left, right: Reduce("add", (k,), Apply("multiply", (left, right))))
    return _given(matrix, made)


def _plus(matrix: Any, other: Any) -> Any | None:
    return _elementwise(matrix, other, "add", "_add_sparse")


def _minus(matrix: Any, other: Any) -> Any | None:
    return _elementwise(matrix, other, "subtract", "_sub_sparse")


def _elementwise(matrix: Any, other: Any, op: str, method: str) -> Any | None:
    pair = _pair(method, matrix, other)
    if pair is None or matrix.shape != other.shape:
        return None
    both = variables(2)
    made = _given(matrix, _computed(op, pair, (both, both), both, matrix.shape, lambda left, right: Apply(op, (left, right))))
    if np.count_nonzero(made.data) < len(made.data):
        made.eliminate_zeros()  # SciPy's sums store none
    return made


def _computed(
    op: str, pair: tuple[Storage, Storage], reads: Sequence[Any], written: Sequence[Any], sizes: Sequence[int],
    expression: Callable[[Expr, Expr], Expr],
) -> Storage:  # fmt: skip
    """A statement on two matrices, in their format. It is looked up by their like."""
    door = ("scipy", op)
    made = doors.through(door, *pair)
    if made is None:
        statement = Statement()
        rhs = expression(*(statement.access(storage, read) for storage, read in zip(pair, reads, strict=True)))
        made = statement.run(written, rhs, sizes, pair[0].format)
        statement.learn(door, pair, pair)
    return made


def _given(like: Any, made: Storage) -> Any:
    """A result as a matrix of the class of an operand."""
    stored = open_up(made)
    level = stored.levels[1].arrays
    result = like.__class__((stored.values, level["crd"], level["pos"]), shape=stored.shape)
    result.has_sorted_indices = result.has_canonical_format = True
    return result
