"""PyData/Sparse's tests, which come with the package: every function and method that the surface has too, again on tensors."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import sparse
from conformance.replay import Tally, described, watch

import sparseloom as sl
from sparseloom.tensor import TABLE

TESTS = 0.04  # of them are run, unless more is asked for
MODULES = tuple(
    f"sparse.numba_backend.tests.test_{name}"
    for name in "array_function compressed compressed_2d compressed_slicing coo dot einsum elemwise".split()
)
_METHODS = (
    "sum mean max min prod any all std var transpose swapaxes reshape squeeze conj astype nonzero dot round clip broadcast_to "
    "reduce flatten"
).split()
_OWNERS = (sparse.COO, sparse.GCXS, sparse.SparseArray)


def watched() -> dict[str, Tally]:
    """Put the package's classes and functions under watch."""
    tally = Tally(_array)
    operators = {"__getitem__": operator.getitem, "__array_ufunc__": _ufunc}
    for owner in _OWNERS:
        for name, call in {**operators, **{name: _method(name) for name in _METHODS if hasattr(sl.Tensor, name)}}.items():
            if name in vars(owner):
                watch(owner, name, tally, _on_tensors(call), _told)
    functions = {name: found.call for name, found in TABLE.items()} | {"einsum": sl.einsum}
    for name, call in functions.items():
        if callable(getattr(sparse, name, None)) and not isinstance(getattr(sparse, name), np.ufunc | type):
            watch(sparse, name, tally, _on_tensors(call), _told)
            setattr(sys.modules["sparse.numba_backend"], name, getattr(sparse, name))
    return {"PyData/Sparse": tally}


def _ufunc(array: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """A ufunc, called as NumPy calls it; it is told of tensors by their own protocol."""
    return getattr(ufunc, method)(*inputs, **options)


def _method(name: str) -> Callable[..., Any]:
    return lambda x, *arguments, **options: getattr(x, name)(*arguments, **options)


def _on_tensors(call: Callable[..., Any]) -> Callable[..., Any]:
    def function(*arguments: Any, **options: Any) -> Any:
        return call(*map(_tensor, arguments), **{key: _tensor(value) for key, value in options.items()})

    return function


def _tensor(value: Any) -> Any:
    if isinstance(value, sparse.SparseArray):
        return sl.asarray(value)
    return type(value)(map(_tensor, value)) if type(value) in (list, tuple) else value


def _array(value: Any) -> Any:
    """A result as NumPy's array, or several of them."""
    if isinstance(value, tuple | list):
        return tuple(map(_array, value))
    if isinstance(value, sl.Tensor):
        return value.to_numpy()
    return value.todense() if isinstance(value, sparse.SparseArray) else np.asarray(value)


def _told(arguments: tuple[Any, ...], options: dict[str, Any]) -> str:
    return described(arguments) + "".join(f", {key}={described([value])}" for key, value in options.items())
