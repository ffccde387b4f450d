"""What a step does, in one sentence that speaks of its own loops and operands."""

from __future__ import annotations

import re

from sparseloom.core.trees import field_names
from sparseloom.notation.nodes import Races, Unit
from sparseloom.schedule.primitive import Primitive, spell

_FIELD = re.compile(r"``(\w+)``")
_SENTENCE = re.compile(r"(?<=\.)\s+")
_UNITS = {
    Unit.CPUThread: "thread", Unit.CPUVector: "lane of a vector", Unit.GPUBlock: "block of a GPU", Unit.GPUWarp: "warp of a GPU",
    Unit.GPUThread: "thread of a GPU",
}  # fmt: skip
_RACES = {
    Races.NoRaces: "no two of them write one place",
    Races.IgnoreRaces: "nobody looks after places that two of them write",
    Races.Atomics: "what two of them add to one place is added atomically",
    Races.Temporary: "each part has a copy of what is shared, and the copies are added up in order",
    Races.ParallelReduction: "each part has a sum of its own, and the sums are added up",
}


def worded(step: Primitive) -> str:
    """The sentences of a primitive's class with this step's arguments in place of their names.

    Those about an argument that is left out are left out with it, and a way to treat races says what it does.
    """
    given = {name: getattr(step, name) for name in field_names(type(step)) if getattr(step, name) is not None}
    sentences = _SENTENCE.split(" ".join((type(step).__doc__ or "").split()))
    told = " ".join(text for text in sentences if all(name in given for name in _FIELD.findall(text)))
    races = next((value for value in given.values() if isinstance(value, Races)), None)
    if races is not None:
        told = f"{told.partition('; ')[0]}; {_RACES[races]}."
    return _FIELD.sub(lambda found: _spelled(given[found[1]]), told)


def _spelled(value: object) -> str:
    """An argument as it stands in a sentence: a unit in words, a set without its braces."""
    return _UNITS[value] if isinstance(value, Unit) else spell(value).strip("{}")
