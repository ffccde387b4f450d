"""Schedules as text.

    fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4096)      # whitespace, commas or semicolons stand between steps
    parallelize(p0,CPUThread,Atomics)

Sets of variables stand in braces, expressions are those of a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from sparseloom.core.errors import ScheduleError
from sparseloom.schedule.arguments import usage
from sparseloom.schedule.primitive import PRIMITIVES, Primitive
from sparseloom.schedule.refusal import Refusal, near

# What steps are called elsewhere, and how they are written here.
_TILED = "split(i, i0, i1, 16) split(j, j0, j1, 16) reorder(i0, j0, i1, j1)"
_IN_LANES, _AHEAD = "parallelize(i, CPUVector, NoRaces)", "precompute(e, i, iw, w)"
_OTHERS = {
    "tile": _TILED, "stripmine": "split(i, i0, i1, 16)", "vectorize": _IN_LANES, "simd": _IN_LANES, "tensorize": f"{_TILED} unroll(i1, 4)",
    "parallel": "parallelize(i, CPUThread, NoRaces)", "bind": "parallelize(i, GPUBlock, NoRaces)", "collapse": "fuse(i, j, f)",
    "interchange": "reorder(j, i)", "permute": "reorder(j, i)", "computeat": _AHEAD, "cacheread": _AHEAD, "cachewrite": _AHEAD,
}  # fmt: skip
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class WrittenStep:
    """A step as it was written; ``places`` says where in the text it starts, and then each argument."""

    step: type[Primitive]
    arguments: tuple[str, ...]
    places: tuple[int, ...]

    def fault_place(self, refusal: Refusal) -> int:
        """Where to put the caret: at the argument that the refusal is about, or at the step."""
        return self.places[0] if refusal.argument is None else self.places[refusal.argument + 1] + refusal.column


def read_steps(text: str) -> Iterator[WrittenStep]:
    """The steps of a schedule's text, in order."""
    bare = re.sub(r"#[^\n]*", lambda comment: " " * len(comment[0]), text)
    at = 0
    while True:
        at = _skip(bare, at)
        if at == len(bare):
            return
        word = re.compile(r"[^\W\d]\w*").match(bare, at)
        if word is None:
            raise unreadable(text, at, Refusal("S001", f"a step was expected, not {bare[at]!r}", "write split(i, i0, i1, 16)"))
        step = PRIMITIVES.get(word[0])
        if step is None:
            raise unreadable(text, at, Refusal("S002", f"there is no step {word[0]!r}", instead_of(word[0])))
        opening = re.compile(r"\s*\(").match(bare, word.end())
        if opening is None:
            raise unreadable(text, word.end(), Refusal("S001", f"'(' was expected after {word[0]}", f"write {usage(step)}"))
        end, pieces = _arguments(text, bare, opening.end() - 1)
        yield WrittenStep(step, tuple(piece for _, piece in pieces), (at, *(place for place, _ in pieces)))
        at = end + 1


def instead_of(word: str) -> str:
    """What to write instead of a step that there is not."""
    ours = _OTHERS.get(word.lower().replace("_", ""))
    return near(word, sorted(PRIMITIVES)) if ours is None else f"it is {ours} here"


def _skip(text: str, at: int) -> int:
    while at < len(text) and (text[at].isspace() or text[at] in ",;"):
        at += 1
    return at


def _arguments(text: str, bare: str, opening: int) -> tuple[int, list[tuple[int, str]]]:
    """Where the bracket that opens here closes, and what it holds: split at the commas that stand in no inner bracket, with its place."""
    waiting: list[str] = []
    cuts, end = [opening], opening
    for end in range(opening, len(bare)):
        letter = bare[end]
        if letter in _CLOSING:
            waiting.append(_CLOSING[letter])
        elif letter in _CLOSING.values() and letter != (expected := waiting.pop()):
            raise unreadable(text, end, Refusal("S001", f"'{expected}' was expected, not '{letter}'"))
        elif letter == "," and len(waiting) == 1:
            cuts.append(end)
        if not waiting:
            break
    else:
        raise unreadable(text, opening, Refusal("S001", "this bracket is never closed", "add ')'"))
    if not bare[opening + 1 : end].strip():
        return end, []
    pieces = [(begin + 1, bare[begin + 1 : after]) for begin, after in pairwise([*cuts, end])]
    return end, [(place + len(piece) - len(piece.lstrip()), piece.strip()) for place, piece in pieces]


def unreadable(text: str, at: int, refusal: Refusal) -> ScheduleError:
    """The error for a fault at a place of a schedule's text: the line, and a caret under the place."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:].split("\n", 1)[0]
    return refusal.error("read the schedule", line, " " * (at - begin) + "^")
