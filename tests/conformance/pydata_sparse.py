"""PyData/Sparse's tests, which come with the package: every function and method that the surface has too, again on tensors."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import sparse
from conformance.replay import Call, NoOpinion, Tally, absent_quotient, applied, listed, watch

import sparseloom as sl
from sparseloom.formats.pack import unpack
from sparseloom.surface import TABLE

MODULES = tuple(
    f"sparse.numba_backend.tests.test_{name}"
    for name in "array_function compressed compressed_2d compressed_slicing coo dot einsum elemwise".split()
)
LARGE = 10**7  # coordinates; results that have more are compared by their entries
SMALL = 10**5  # coordinates; of operands that have more NumPy is not asked
_METHODS = (
    "sum mean max min prod any all std var transpose swapaxes reshape squeeze conj astype nonzero dot round clip broadcast_to "
    "reduce flatten"
).split()
_OWNERS = (sparse.COO, sparse.GCXS, sparse.SparseArray)
_CONTAINERS = ("return_type", "format")  # options that name classes of the library's own, for what it gives


def watched() -> dict[str, Tally]:
    """Put the package's classes and functions under watch."""
    tally = Tally(_array, reasons=(absent_quotient(_array), more_offered, reversed_order))
    calls = {"__getitem__": (operator.getitem,) * 2, "__array_ufunc__": (_ufunc,) * 2}
    calls |= {name: (_method(name), _method(name)) for name in _METHODS if hasattr(sl.Tensor, name)}
    for owner in _OWNERS:
        for name, pair in calls.items():
            if name in vars(owner):
                watch(owner, name, tally, *_applied(*pair))
    functions = {name: found.call for name, found in TABLE.items()} | {"einsum": sl.einsum}
    for name, call in functions.items():
        if callable(getattr(sparse, name, None)) and not isinstance(getattr(sparse, name), np.ufunc | type):
            watch(sparse, name, tally, *_applied(call, getattr(np, name, _unknown)))
            setattr(sys.modules["sparse.numba_backend"], name, getattr(sparse, name))
    return {"PyData/Sparse": tally}


def more_offered(call: Call) -> str | None:
    """A sort that is stable, and functions of plain arrays, which the library refuses."""
    if call.expected is not None or call.refusal is not None:
        return None
    is_stable, takes_arrays = call.name == "sort" and "stable=True" in call.told, call.told.startswith("ndarray")
    return "more is offered: every sort is stable, and functions take plain arrays" if is_stable or takes_arrays else None


def reversed_order(call: Call) -> str | None:
    """A descending order with NaN, which the standard leaves open."""
    if call.name != "sort" or "descending=True" not in call.told or call.refusal is not None or call.expected is None:
        return None
    found, expected = _array(call.found), _array(call.expected)
    if found.dtype.kind != "f" or not np.array_equal(np.sort(found), np.sort(expected), equal_nan=True):
        return None
    return "a descending order is the ascending one reversed, so that NaN comes first"


def _unknown(*arguments: Any, **options: Any) -> Any:
    """A function that NumPy does not have."""
    raise NoOpinion


def _ufunc(array: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """A ufunc, called as NumPy calls it; it is told of tensors by their own protocol."""
    return getattr(ufunc, method)(*inputs, **options)


def _method(name: str) -> Callable[..., Any]:
    return lambda x, *arguments, **options: getattr(x, name)(*arguments, **options)


def _applied(ours: Callable[..., Any], numpy: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return applied(_without_containers(ours), _tensor), applied(_without_containers(numpy), _dense)


def _without_containers(call: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is not told what class of the library's its result should be."""
    return lambda *arguments, **options: call(*arguments, **{key: value for key, value in options.items() if key not in _CONTAINERS})


def _tensor(value: Any) -> Any:
    return sl.asarray(value) if isinstance(value, sparse.SparseArray) else value


def _dense(value: Any) -> Any:
    if not isinstance(value, sparse.SparseArray):
        return value
    if np.prod(value.shape, dtype=float) > SMALL:
        raise NoOpinion
    return value.todense()


def _array(value: Any) -> Any:
    """A result as NumPy's array, or several of them."""
    if isinstance(value, tuple | list):
        return tuple(map(_array, value))
    if isinstance(value, sl.Tensor):
        return listed(value.shape, *unpack(value.storage)) if value.size > LARGE and value.fill == 0 else value.to_numpy()
    if not isinstance(value, sparse.SparseArray):
        return np.asarray(value)
    if np.prod(value.shape, dtype=float) <= LARGE or value.fill_value != 0:
        return value.todense()
    entries = value.asformat("coo")
    return listed(value.shape, entries.coords, entries.data)
