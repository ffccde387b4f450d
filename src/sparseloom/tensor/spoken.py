"""What errors call a tensor that has no name: the variable that holds it where the statement is written, or its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import FrameType

from sparseloom.formats.storage import Storage
from sparseloom.notation.syntax import CONSTANTS, FUNCTIONS
from sparseloom.tensor.expression import Expression, rename


def variables_of(frame: FrameType, held: Callable[[object], Storage | None]) -> dict[int, str]:
    """The names of variables that hold tensors, by the identity of the storage; ``held`` tells that of a value."""
    found: dict[int, str] = {}
    for name, value in (*frame.f_locals.items(), *frame.f_globals.items()):
        storage = held(value)
        if storage is not None and not name.startswith("_") and name not in FUNCTIONS and name not in CONSTANTS:
            found.setdefault(id(storage), name)
    return found


def as_spoken(value: Expression, variables: Mapping[int, str]) -> Expression:
    """The same expression, in which every tensor has a name that the user knows."""
    taken = {name for name, operand in value.operands.items() if operand.named}
    names: dict[str, str] = {}
    for name, operand in value.operands.items():
        if not operand.named:
            names[name] = next(wish for wish in _wishes(operand.storage, variables) if wish not in taken)
            taken.add(names[name])
    operands = {names.get(name, name): operand for name, operand in value.operands.items()}
    return Expression(rename(value.node, names), operands)


def _wishes(storage: Storage, variables: Mapping[int, str]) -> Iterator[str]:
    """What a tensor could be called, best first."""
    if id(storage) in variables:
        yield variables[id(storage)]
    shape = f"tensor of shape {storage.shape}"
    yield shape
    number = 1
    while True:
        number += 1
        yield f"{shape} number {number}"
