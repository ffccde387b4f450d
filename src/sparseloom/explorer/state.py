"""What the explorer shows, as it stands in the address of its page: a statement, formats, the steps of a schedule, a target and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparseloom.core.algebra import SEMIRINGS
from sparseloom.core.errors import SparseloomError

MOST_TEXT, MOST_STEPS, MOST_TENSORS = 4000, 60, 40  # letters of a statement, steps of a schedule, formats and sizes
LARGEST = 10**7  # how far a variable may run
USUAL = "plus_times"  # the semiring of a statement that names none
_KEYS = ("statement", "formats", "steps", "target", "sizes", "density", "seed", "semiring")


class RequestError(SparseloomError, ValueError):
    """A request that cannot be understood, or asks for too much. ``where`` names the part of the state that is meant."""

    def __init__(self, text: str, help: str = "", where: str = "request") -> None:
        super().__init__(f"{text}\n  help: {help}" if help else text)
        self.where = where


@dataclass(frozen=True)
class Step:
    """One row of the schedule; one that is switched off is left out."""

    text: str
    on: bool = True


@dataclass(frozen=True)
class State:
    """All that one sees follows from this, and from the operands at hand."""

    statement: str
    formats: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    target: str = "c"
    sizes: Mapping[str, int] = field(default_factory=dict)
    density: float = 0.01
    seed: int = 0
    semiring: str = USUAL

    def as_json(self) -> dict[str, Any]:
        """The state as it goes into an address."""
        steps = [{"text": step.text, "on": step.on} for step in self.steps]
        rest = {"target": self.target, "sizes": dict(self.sizes), "density": self.density, "seed": self.seed, "semiring": self.semiring}
        return {"statement": self.statement, "formats": dict(self.formats), "steps": steps, **rest}


def read_state(value: Any) -> State:
    """The state of a request; what is no state is refused with the part that is wrong."""
    if not isinstance(value, dict) or not isinstance(value.get("statement"), str):
        raise RequestError("a state has a statement, such as y(i) = A(i,j) * x(j)", 'write {"state": {"statement": "..."}}')
    strange = next((key for key in value if key not in _KEYS), None)
    if strange is not None:
        raise RequestError(f"a state has no {strange[:40]!r}", f"it has {', '.join(_KEYS)}")
    statement = value["statement"]
    if len(statement) > MOST_TEXT:
        raise RequestError(f"the statement has {len(statement):,} letters, and {MOST_TEXT:,} is the limit here", where="statement")
    steps = value.get("steps", [])
    if not isinstance(steps, list) or len(steps) > MOST_STEPS:
        raise RequestError(f"steps is a list of at most {MOST_STEPS} steps", where="steps")
    return State(
        statement,
        _texts(value.get("formats", {})),
        tuple(map(_step, steps)),
        _target(value.get("target", "c")),
        _sizes(value.get("sizes", {})),
        _density(value.get("density", 0.01)),
        _whole(value.get("seed", 0), "seed", 2**31),
        _semiring(value.get("semiring", USUAL)),
    )


def _texts(value: Any) -> dict[str, str]:
    """Formats by tensor; those that are left empty are not given."""
    found = _mapping(value, "formats")
    for name, form in found.items():
        if not isinstance(form, str) or len(form) > 200:
            raise RequestError(f"the format of {name[:40]} is a short text, such as csr", where="formats")
    return {name: form.strip() for name, form in found.items() if form.strip()}


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > MOST_TENSORS:
        raise RequestError(f"{what} is an object with at most {MOST_TENSORS} names", where=what)
    return value


def _step(value: Any) -> Step:
    match value:
        case {"text": str(text), **rest} if len(text) <= MOST_TEXT and not set(rest) - {"on"} and isinstance(rest.get("on", True), bool):
            return Step(text.strip(), bool(rest.get("on", True)))
    raise RequestError("a step is an object with a text, and on: true or false", where="steps")


def _target(value: Any) -> str:
    if value not in ("c", "cuda"):
        raise RequestError(f"there is no target {str(value)[:40]!r} here", "there are c and cuda", where="target")
    return str(value)


def _semiring(value: Any) -> str:
    if value not in tuple(SEMIRINGS):
        raise RequestError(f"there is no semiring {str(value)[:40]!r} here", f"there are {', '.join(SEMIRINGS)}", where="semiring")
    return str(value)


def _sizes(value: Any) -> dict[str, int]:
    return {name: _whole(size, "sizes", LARGEST) for name, size in _mapping(value, "sizes").items()}


def _whole(value: Any, what: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise RequestError(f"{what} holds whole numbers from 0 to {most:,}", where=what)
    return value


def _density(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise RequestError("density is a number from 0 to 1", where="density")
    return float(value)
