"""The targets by name: the one place where a name means something."""

from __future__ import annotations

from sparseloom.core.errors import NotationError
from sparseloom.targets.c import C
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.interpret import INTERPRET
from sparseloom.targets.target import Target

DEFAULT = C.name
TARGETS: dict[str, Target] = {target.name: target for target in (C, CUDA, INTERPRET)}


def find_target(name: str) -> Target:
    """The target of this name; a ``NotationError`` lists the targets if there is none."""
    if not isinstance(name, str) or name not in TARGETS:
        raise NotationError(f"there is no target {name!r}; there are {', '.join(TARGETS)}")
    return TARGETS[name]
