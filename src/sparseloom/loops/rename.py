"""Names by order of appearance, so that kernels which differ only in names become equal.

A name is declared once while it lives, so whatever declares it gives it a new one, and that holds until it is declared again.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from sparseloom.core.trees import Node, field_names
from sparseloom.loops.nodes import Array, Declare, Function, Var
from sparseloom.loops.routines import declared_by


def alpha_rename(function: Function) -> Function:
    """Call the function ``f``, its scalars ``v0, v1, ...`` and its arrays ``a0, a1, ...``; drop the remarks."""
    scalars, arrays = count(), count()
    targets = [param.target for param in function.params]
    names: dict[str, str] = {}

    def bind(target: Var | Array) -> None:
        names[target.name] = f"v{next(scalars)}" if isinstance(target, Var) else f"a{next(arrays)}"

    def renamed(part: Any) -> Any:
        match part:
            case tuple():
                return tuple(map(renamed, part))
            case Var(name, dtype):
                return Var(names[name], dtype)
            case Array(name, dtype, space):
                return Array(names[name], dtype, space)
            case Node():
                for target in declared_by(part):
                    if target not in targets:
                        bind(target)
                made = type(part)(*(renamed(getattr(part, field)) for field in field_names(type(part))))
                return Declare(made.var, made.value) if isinstance(made, Declare) else made
        return part

    for target in targets:
        bind(target)
    return Function("f", renamed(function.params), renamed(function.body))
