"""Names by order of appearance, so that kernels which differ only in names become equal.

A name is declared once while it lives, so whatever declares it gives it a new one, and that holds until it is declared again.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from sparseloom.core.names import Names
from sparseloom.core.trees import Node, field_names, walk
from sparseloom.loops.nodes import Array, Declare, Function, Stmt, Var
from sparseloom.loops.routines import declared_by


def unused_names(loops: Node) -> Names:
    """Names that no scalar and no array in some loops has."""
    return Names({n.name for n in walk(loops) if isinstance(n, Var | Array)})


def alpha_rename(function: Function) -> Function:
    """Call the function ``f``, its scalars ``v0, v1, ...`` and its arrays ``a0, a1, ...``; drop the remarks."""
    scalars, arrays = count(), count()
    targets = [param.target for param in function.params]
    names = {target.name for target in targets}
    named: dict[str, Var | Array] = {}

    def bind(target: Var | Array) -> None:
        match target:
            case Var(name, dtype):
                named[name] = Var(f"v{next(scalars)}", dtype)
            case Array(name, dtype, space):
                named[name] = Array(f"a{next(arrays)}", dtype, space)

    def renamed(part: Any) -> Any:
        if isinstance(part, Var | Array):
            return named[part.name]
        if isinstance(part, Stmt):
            for target in declared_by(part):
                if target.name not in names:  # an array that is handed out is a parameter, too
                    bind(target)
        held = [getattr(part, field) for field in field_names(type(part))]
        for k, value in enumerate(held):
            if isinstance(value, Node):
                held[k] = renamed(value)
            elif type(value) is tuple and value:
                inside = list(value)
                for place, item in enumerate(value):
                    if isinstance(item, Node):
                        inside[place] = renamed(item)
                held[k] = tuple(inside)
        made = type(part)(*held)
        return Declare(made.var, made.value) if isinstance(made, Declare) else made

    for target in targets:
        bind(target)
    return renamed(Function("f", function.params, function.body))  # type: ignore[no-any-return]
