"""The targets by name: the one place where a name means something."""

from __future__ import annotations

from sparseloom.core.errors import NotationError
from sparseloom.targets.c import C
from sparseloom.targets.interpret import INTERPRET
from sparseloom.targets.target import Target

DEFAULT = C.name
_targets: dict[str, Target] = {}


def register(target: Target) -> Target:
    """Make a target known by its name."""
    return _targets.setdefault(target.name, target)


def unregister(target: Target) -> None:
    """Forget a target."""
    _targets.pop(target.name, None)


def target_names() -> tuple[str, ...]:
    """The names of all targets."""
    return tuple(_targets)


def find_target(name: str) -> Target:
    """The target of this name, or a refusal that says which there are."""
    if not isinstance(name, str) or name not in _targets:
        raise NotationError(f"there is no target {name!r}; there are {', '.join(_targets)}")
    return _targets[name]


register(C)
register(INTERPRET)
