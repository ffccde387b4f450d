"""The one table of functions on whole tensors: who offers ``sl.f(x)``, ``x.f()``, ``np.f(x)`` or a name of the array API asks it.
What is asked through it keeps its results apart from its operands (``results.kept_apart``).

@offered("shape", method=True, numpy="concatenate", standard="concat")
def concatenate(...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from sparseloom.tensor.results import kept_apart

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Function:
    """One function: its name in ``sl``, and under which names it is a method, NumPy's function and one of the array API."""

    name: str
    call: Callable[..., Any]
    family: str
    methods: tuple[str, ...] = ()
    numpy: tuple[str, ...] = ()
    standard: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """What it does, in one sentence."""
        return (self.call.__doc__ or "").split("\n")[0]


TABLE: dict[str, Function] = {}
_BY_NUMPY: dict[str, Function] = {}


def offered(family: str, *, methods: str | None = "", numpy: str | None = "", standard: str | None = None) -> Callable[[F], F]:
    """Put a function into the table. Names stand in one text; "" is the function's own name, and None says that there is none."""

    def register(function: F) -> F:
        enter(function, family, methods, numpy, standard)
        return function

    return register


def enter(function: Callable[..., Any], family: str, methods: str | None, numpy: str | None, standard: str | None) -> None:
    """As ``offered``, for a function that is made and not written."""
    own = function.__name__
    call = function
    if family != "creation" or numpy is not None:
        call = kept_apart(function)
        call.__module__, call.__qualname__ = "sparseloom", own  # where pickles find it
    named = [() if names is None else tuple(names.split()) or (own,) for names in (methods, numpy, standard)]
    found = TABLE[own] = Function(own, call, family, *named)
    _BY_NUMPY.update(dict.fromkeys(found.numpy, found))


def stands_for(name: str) -> Callable[[F], F]:
    """Let a function stand for NumPy's of this name, and offer it nowhere else."""

    def register(function: F) -> F:
        _BY_NUMPY[name] = Function(name, kept_apart(function), "numpy", (), (name,))
        return function

    return register


def for_numpy(name: str) -> Callable[..., Any] | None:
    """What stands for NumPy's function of this name, if anything does."""
    found = _BY_NUMPY.get(name)
    return None if found is None else found.call


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods of tensors that are functions of the table, by name."""
    return ((name, found.call) for found in TABLE.values() for name in found.methods)


def standard() -> dict[str, Callable[..., Any]]:
    """The functions of the array API by the names that they have there."""
    return {name: found.call for found in TABLE.values() for name in found.standard}
