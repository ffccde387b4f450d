"""SciPy's tests of its sparse arrays: every operation that the surface has too, again on tensors of the same format."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from conformance.replay import Call, NoOpinion, Tally, absent_quotient, applied, listed, watch

import sparseloom as sl
from sparseloom.formats.pack import unpack

MODULES = tuple(
    f"scipy.sparse.tests.test_{name}"
    for name in "base common1d arithmetic1d minmax1d indexing1d coo csr csc construct extract".split()
)
OPTIONS = ("-k", "not 64Bit and not matrix and not Matrix")  # those of matrices are about what tensors are not
ROOM = 8 << 30  # bytes of memory, since some tests try how much there is
LARGE = 10**7  # coordinates; results that have more are compared by their entries
SMALL = 10**5  # coordinates; of operands that have more NumPy is not asked
_OPERATORS = {
    f"__{name}__": getattr(operator, name)
    for name in "add sub mul truediv matmul pow eq ne lt le gt ge neg pos abs getitem".split()
}  # fmt: skip
_REFLECTED = {f"__r{name}__": getattr(operator, name) for name in "add sub mul matmul truediv".split()}
_METHODS = (
    "sum mean max min argmax argmin transpose reshape diagonal trace conj conjugate astype nonzero "
    "sin tan arcsin arctan sinh tanh arcsinh arctanh rint sign expm1 log1p deg2rad rad2deg floor ceil trunc sqrt "
    "count_nonzero dot multiply maximum minimum power nanmax nanmin tensordot"
).split()
_RENAMED = {"k": "offset"}  # of a diagonal, which NumPy calls so
_MADE = "kron hstack vstack tril triu".split()
_FORMATS = ("csr", "csc", "coo")  # that both know by the same name; others say how SciPy stores what it gives


def watched() -> dict[str, Tally]:
    """Put SciPy's classes of arrays, and its functions on them, under watch. Calls on its matrices are not compared."""
    tally = Tally(_array, reasons=(absent_quotient(_array), place_of_stored))
    classes = {parent for kind in vars(scipy.sparse).values() if isinstance(kind, type) for parent in kind.__mro__}
    for owner in classes:
        if not owner.__module__.startswith("scipy.sparse"):
            continue
        for name, (ours, numpy) in _both().items():
            if name in vars(owner):
                watch(owner, name, tally, ours, numpy, _has_matrix)
    for name in _MADE:
        module = scipy.sparse._extract if name in ("tril", "triu") else scipy.sparse._construct
        ours, numpy = applied(_without_formats(getattr(sl, name)), _tensor), applied(_without_formats(getattr(np, name), ()), _dense)
        watch(module, name, tally, ours, numpy, _has_matrix)
        setattr(scipy.sparse, name, getattr(module, name))
    return {"SciPy's sparse arrays": tally}


def place_of_stored(call: Call) -> str | None:
    """Where the extreme of all stored values is, of which SciPy gives the number among them."""
    is_asked = call.name in ("argmin", "argmax") and "explicit=True" in call.told
    if not is_asked or call.refusal is not None or call.expected is None or np.ndim(call.found) or np.ndim(call.expected):
        return None
    return "with explicit=True, too, a place is one among all values, as without it; SciPy counts stored ones"


def _both() -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """What stands for each method: on tensors, and on arrays."""
    reflected = {name: (lambda x, y, call=call: call(y, x)) for name, call in _REFLECTED.items()}
    same = {**_OPERATORS, **reflected}
    made = {name: (applied(call, _tensor), applied(call, _dense)) for name, call in same.items()}
    return made | {name: (applied(_method(name, sl), _tensor), applied(_method(name, np), _dense)) for name in _METHODS}


def _method(name: str, namespace: Any) -> Callable[..., Any]:
    """A method of tensors or arrays, or a function of their namespace where there is none."""

    def call(x: Any, *arguments: Any, **options: Any) -> Any:
        named = {_RENAMED.get(key, key): value for key, value in options.items() if key != "copy" or name != "transpose"}
        is_method = hasattr(x, name) and name not in ("transpose", "count_nonzero")
        return getattr(x, name)(*arguments, **named) if is_method else getattr(namespace, name)(x, *arguments, **named)

    return call


def _without_formats(call: Callable[..., Any], known: tuple[str, ...] = _FORMATS) -> Callable[..., Any]:
    """A function that is not told of formats that it does not know."""

    def function(*arguments: Any, format: Any = None, **options: Any) -> Any:
        return call(*arguments, **options, **({"format": format} if format in known else {}))

    return function


def _has_matrix(value: Any) -> bool:
    return isinstance(value, scipy.sparse.spmatrix) or (type(value) in (list, tuple) and any(map(_has_matrix, value)))


def _tensor(value: Any) -> Any:
    return sl.asarray(value) if scipy.sparse.issparse(value) else value


def _dense(value: Any) -> Any:
    return _small(value) if scipy.sparse.issparse(value) else value


def _small(value: Any) -> Any:
    """A sparse array as a dense one, if that is not too large to ask NumPy."""
    if np.prod(value.shape, dtype=float) > SMALL:
        raise NoOpinion
    return value.toarray()


def _array(value: Any) -> Any:
    """A result as NumPy's array, or several of them."""
    if isinstance(value, tuple):
        return tuple(map(_array, value))
    if isinstance(value, sl.Tensor):
        return listed(value.shape, *unpack(value.storage)) if value.size > LARGE and value.fill == 0 else value.to_numpy()
    if not scipy.sparse.issparse(value):
        return np.asarray(value)
    if np.prod(value.shape, dtype=float) <= LARGE:
        return value.toarray()
    if not value.nnz:  # a block of all columns takes as much room as they do, even if there is none
        return listed(value.shape, [[]] * value.ndim, np.empty(0, value.dtype))
    entries = value.tocoo(copy=True)
    entries.sum_duplicates()
    return listed(value.shape, entries.coords, entries.data)
