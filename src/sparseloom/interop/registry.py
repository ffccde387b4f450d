"""Who the neighbours are: one file of this folder for each, found by the name of the package that an object's class comes from.

Each file keeps one contract, and loads its package only where it makes one of its objects:

    reader_for(kind)        how objects of a class are read, or None: classes are recognised by name
    give(tensor, ...)       one of the package's own objects, over the same memory where its layout allows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

from sparseloom.core.errors import CompilerBug
from sparseloom.interop.entry import Intake

Reader = Callable[[Any], Intake]

FILES = {
    "scipy": "scipy", "torch": "torch", "cupy": "cupy", "cupyx": "cupy", "sparse": "pydata_sparse", "jax": "jax", "jaxlib": "jax",
    "pandas": "pandas", "networkx": "networkx", "xarray": "xarray", "dask": "dask", "graphblas": "graphblas",
}  # fmt: skip
_WRAPPERS = ("xarray", "dask")  # they hold tensors, so they decide what an operator between the two means


class Neighbour(Protocol):
    """What a file of this folder offers."""

    def reader_for(self, kind: type) -> Reader | None:
        """How objects of a class are read, if they are the neighbour's."""

    def give(self, tensor: Any, **options: Any) -> Any:
        """A tensor as an object of the neighbour's."""


def neighbour(name: str) -> Neighbour:
    """The file of a neighbour, loaded when the first of its objects arrives or is asked for."""
    return cast(Neighbour, import_module(f"sparseloom.interop.{FILES[name]}"))


def reader_for(kind: type) -> Reader | None:
    """How objects of a class are read, if a neighbour knows it."""
    return next((found for name in _packages(kind) if (found := neighbour(name).reader_for(kind)) is not None), None)


def _packages(kind: type) -> Iterator[str]:
    """The neighbours from which a class, or one that it derives from, may come."""
    packages = (parent.__module__.partition(".")[0] for parent in kind.__mro__)
    return (name for name in dict.fromkeys(packages) if name in FILES)


def wraps(kind: type) -> bool:
    """Whether objects of a class hold tensors, so that an operator beside one is left to it. It learns of tensors at the first."""
    known = _WRAPS.get(kind)
    if known is None:
        known = any(name in _WRAPPERS and neighbour(name).reader_for(kind) is not None for name in _packages(kind))
        _WRAPS[kind] = known
    return known


_WRAPS: dict[type, bool] = {}


class Introduced(NamedTuple):
    """What wrappers learn of tensors: their class, and functions on them by NumPy's names."""

    kind: type
    functions: Mapping[str, Callable[..., Any]]


_INTRODUCED: list[Introduced] = []


def introduce(kind: type, functions: Mapping[str, Callable[..., Any]]) -> None:
    """Say what wrappers are told: the class of tensors is defined further up."""
    _INTRODUCED[:] = [Introduced(kind, functions)]


def introduced() -> Introduced:
    """The class of tensors, and functions on them."""
    if not _INTRODUCED:
        raise CompilerBug(_INTRODUCED, "tensors are introduced before one meets a wrapper")
    return _INTRODUCED[0]


_SPELLED = {"subtract": "sub", "multiply": "mul", "divide": "truediv", "power": "pow"}
_MIRRORED = {"equal": "eq", "not_equal": "ne", "less": "gt", "less_equal": "ge", "greater": "lt", "greater_equal": "le"}


def left_to(other: Any, op: str, tensor: Any, swapped: bool) -> Any:
    """What an operator between a tensor and a wrapper gives, which the wrapper says; of anything else, Python asks the other operand.

    The wrapper is asked here: one that did not know tensors when Python asked it does so now.
    """
    kind = type(other)
    if not wraps(kind):
        return NotImplemented
    word = _MIRRORED.get(op) or ("" if swapped else "r") + _SPELLED.get(op, op)
    return getattr(kind, f"__{word}__")(other, tensor)
