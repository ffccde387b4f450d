"""Results of functions on whole tensors, kept apart from operands: nobody changes one by writing to the other.

    y = reshape(x, (2, 3))     y has the memory of x until somebody asks for an array of one of them, which copies it first
                               if somebody has such an array already, or x is over a caller's, y is a copy
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sparseloom.formats.storage import Storage, apart, copied, sealed, share_memory
from sparseloom.programs.large import duplicate
from sparseloom.tensor.filling import put

_PLAIN = (np.ndarray, np.generic, bool, int, float, complex, str, bytes, type(None), slice, type(Ellipsis), np.dtype, type)


def kept_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors whose results have nothing in common with its operands that anybody could notice. ``out=`` takes them over."""
    place = _place_of_output(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        made = function(*arguments, **options)
        if place is not None:
            out = arguments[place] if 0 <= place < len(arguments) else options.get("out")
            if out is not None and made is not out:
                return put(getattr(made, "storage", made), out)
        if isinstance(made, (np.generic, bool)) or made is options.get("out", call) or any(made is given for given in arguments[1:]):
            return made  # a number, or an output that was passed
        return _apart(made, [*_leaves(arguments), *_leaves(tuple(options.values()))])

    return call


def _place_of_output(function: Callable[..., Any]) -> int | None:
    """Which positional argument ``out`` is: -1 if it goes by name only, None if there is none."""
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.name == "out":
            return place if parameter.kind is parameter.POSITIONAL_OR_KEYWORD else -1
    return None


def _leaves(values: Any) -> Iterator[Any]:
    """Everything in nested lists and tuples."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value)
        elif value is not None:
            yield value


def _storage(value: Any) -> Storage | None:
    """The storage of a tensor, whose class is defined further up."""
    storage = getattr(value, "_storage", None)
    return storage if isinstance(storage, Storage) else None


def _apart(made: Any, operands: list[Any]) -> Any:
    """A result, or several, apart from operands."""
    match made:
        case np.ndarray():
            return made.copy() if any(share_memory((made,), _arrays(operand)) for operand in operands) else made
        case tuple() | list():
            parts = [_apart(part, operands) for part in made]
            return type(made)(*parts) if hasattr(made, "_fields") else type(made)(parts)
    storage = _storage(made)
    if storage is None:
        return made
    own = _own(storage, operands)
    if any(made is operand for operand in operands):
        return type(made)(own, made.name)
    return made if own is storage else made.replace_storage(own)


def _own(made: Storage, operands: list[Any]) -> Storage:
    """A result whose arrays are its own, or known to be an operand's too."""
    sources = {id(storage): storage for operand in operands if (storage := _storage(operand)) is not None}.values()
    if made.owner is not None and all(made.owner is not source.owner for source in sources):
        return made  # what made it has seen to that
    near = [source for source in sources if share_memory((made.values, *made.indices), (source.values, *source.indices))]
    if len(near) == 1 and not (share_memory((made.values,), near[0].indices) or share_memory(made.indices, (near[0].values,))):
        return apart(made, near[0], duplicate)
    if near or any(_may_be_of(made, operand) for operand in operands):
        return copied(made, duplicate)
    return sealed(made)


def _may_be_of(made: Storage, operand: Any) -> bool:
    """Whether a result may have the arrays of an operand that is no tensor."""
    if isinstance(operand, np.ndarray):
        return share_memory((made.values, *made.indices), (operand,))
    return not isinstance(operand, _PLAIN) and _storage(operand) is None and not callable(operand)


def _arrays(operand: Any) -> tuple[Any, ...]:
    """The arrays of an operand."""
    storage = _storage(operand)
    return (operand,) if isinstance(operand, np.ndarray) else () if storage is None else (storage.values, *storage.indices)
