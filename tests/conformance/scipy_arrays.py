"""SciPy's tests of its sparse arrays: every operation that the surface has too, again on tensors of the same format."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from conformance.replay import Tally, described, watch

import sparseloom as sl

TESTS = 0.2  # of them are run, unless more is asked for
MODULES = tuple(
    f"scipy.sparse.tests.test_{name}"
    for name in "base common1d arithmetic1d minmax1d indexing1d coo csr csc construct extract".split()
)
OPTIONS = ("-k", "not 64Bit and not matrix and not Matrix")  # those of matrices are about what tensors are not
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


def watched() -> dict[str, Tally]:
    """Put SciPy's classes of arrays, and its functions on them, under watch."""
    tally = Tally(_array)
    classes = {parent for kind in vars(scipy.sparse).values() if isinstance(kind, type) for parent in kind.__mro__}
    for owner in classes:
        if not owner.__module__.startswith("scipy.sparse"):
            continue
        for name, ours in _ours().items():
            if name in vars(owner):
                watch(owner, name, tally, ours, _told)
    for name in _MADE:
        module = scipy.sparse._extract if name in ("tril", "triu") else scipy.sparse._construct
        watch(module, name, tally, _on_tensors(getattr(sl, name)), _told)
        setattr(scipy.sparse, name, getattr(module, name))
    return {"SciPy's sparse arrays": tally}


def _ours() -> dict[str, Callable[..., Any]]:
    """What stands for each method."""
    reflected = {name: (lambda x, y, call=call: call(y, x)) for name, call in _REFLECTED.items()}
    methods = {name: _method(name) for name in _METHODS}
    return {name: _on_tensors(call) for name, call in {**_OPERATORS, **reflected, **methods}.items()}


def _method(name: str) -> Callable[..., Any]:
    """A method of tensors, or a function of ``sl`` where there is none; SciPy's dot is a product of matrices."""
    if name == "dot":
        return lambda x, y: x * y if np.isscalar(y) else x @ y

    def call(x: Any, *arguments: Any, **options: Any) -> Any:
        named = {_RENAMED.get(key, key): value for key, value in options.items() if key != "copy" or name != "transpose"}
        is_method = hasattr(x, name) and name not in ("transpose", "count_nonzero")
        return getattr(x, name)(*arguments, **named) if is_method else getattr(sl, name)(x, *arguments, **named)

    return call


def _on_tensors(call: Callable[..., Any]) -> Callable[..., Any]:
    def function(*arguments: Any, **options: Any) -> Any:
        return call(*map(_tensor, arguments), **{key: _tensor(value) for key, value in options.items()})

    return function


def _tensor(value: Any) -> Any:
    if scipy.sparse.issparse(value):
        return sl.asarray(value)
    return type(value)(map(_tensor, value)) if type(value) in (list, tuple) else value


def _array(value: Any) -> Any:
    """A result as NumPy's array, or several of them."""
    if isinstance(value, tuple):
        return tuple(map(_array, value))
    if isinstance(value, sl.Tensor):
        return value.to_numpy()
    return value.toarray() if scipy.sparse.issparse(value) else np.asarray(value)


def _told(arguments: tuple[Any, ...], options: dict[str, Any]) -> str:
    return described(arguments) + "".join(f", {key}={described([value])}" for key, value in options.items())
