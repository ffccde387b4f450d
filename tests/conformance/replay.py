"""Other people's tests as ours: what they call is computed a second time, by Sparseloom, and compared.

A library's own tests run as they are. Each call of a function that is watched gives the library's answer to the test; before that, the
same call is made on tensors. So every argument that those who know the library thought of is tried, and none of their assertions matter.
"""

from __future__ import annotations

import functools
import math
import re
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparseloom import SparseloomError

MOST = 3  # of calls that differ in values only so many are compared


@dataclass
class Tally:
    """What came of the calls: how many gave the same, and a few words for each of the others, with an example."""

    as_array: Callable[[Any], Any]
    same: Counter[str] = field(default_factory=Counter)
    others: dict[str, dict[str, int]] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    busy: bool = False
    share: float = 1.0
    deadline: float = math.inf

    def compare(self, name: str, told: str, theirs: Callable[[], Any], ours: Callable[[], Any]) -> Any:
        """Make a call in both ways, note what came of it, and answer as the library does."""
        if self.busy:  # a call inside another is the library's own business
            return theirs()
        self.seen[name + told] += 1
        self.busy = True
        try:
            return self.compared(name, told, theirs, ours) if self.is_wanted(name + told) else theirs()
        finally:
            self.busy = False

    def is_wanted(self, call: str) -> bool:
        """Whether a call is compared: of a sample that is the same in every run, not too often, and while there is time."""
        in_sample = zlib.crc32(call.encode()) % 1000 < 1000 * self.share
        return in_sample and self.seen[call] <= MOST and time.monotonic() < self.deadline

    def compared(self, name: str, told: str, theirs: Callable[[], Any], ours: Callable[[], Any]) -> Any:
        """Ours first, since theirs may fill an array that was given."""
        found, refusal = attempt(ours)
        try:
            expected = theirs()
        except Exception:
            self.note(name, told, None if refusal is not None else "accepted, but not by the library")
            raise
        if expected is not NotImplemented:
            self.note(name, told, self.verdict(found, refusal, expected))
        return expected

    def note(self, name: str, told: str, word: str | None) -> None:
        """Count a call: as the same, or under the word for what was different."""
        if word is None:
            self.same[name] += 1
            return
        counts = self.others.setdefault(word, {})
        counts[name] = counts.get(name, 0) + 1
        self.examples.setdefault(word, f"{name}({told})")

    def verdict(self, found: Any, refusal: Exception | None, expected: Any) -> str | None:
        """None where both are the same, else what differs."""
        if refusal is not None:
            return refused(refusal)
        try:
            one, other = self.as_array(found), self.as_array(expected)
        except (TypeError, ValueError) as problem:
            return f"not comparable: {problem}"
        return difference(one, other)

    @property
    def count(self) -> int:
        """How many calls were compared."""
        return sum(self.same.values()) + sum(sum(counts.values()) for counts in self.others.values())


def attempt(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a call gives, or the exception that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(), None
        except Exception as problem:  # noqa: BLE001 - of any kind, since any would be a finding
            return None, problem


def refused(problem: Exception) -> str:
    """A refusal in general words: without the names, numbers and shapes of this one call."""
    if not isinstance(problem, SparseloomError | NotImplementedError | TypeError | ValueError | IndexError | MemoryError | OverflowError):
        return f"a fault: {type(problem).__name__}: {problem}"
    first = re.sub(r"\b[0-9]+\b", "N", str(problem).split("\n")[0])
    return f"refused: {first[:90]}"


def difference(found: Any, expected: Any) -> str | None:
    """What tells two arrays, or two tuples of them, apart."""
    if isinstance(expected, tuple | list):
        if not isinstance(found, tuple | list) or len(found) != len(expected):
            return "another number of results"
        return next((word for pair in zip(found, expected, strict=True) if (word := difference(*pair))), None)
    if found.shape != expected.shape:
        return f"another number of modes: {found.ndim} for {expected.ndim}" if found.ndim != expected.ndim else "another shape"
    if not equal(found, expected):
        return "WRONG values"
    return None if found.dtype == expected.dtype else "another dtype"


def equal(found: Any, expected: Any) -> bool:
    """Whether values agree: exactly, or for floats as far as another order of sums allows."""
    kinds = {found.dtype.kind, expected.dtype.kind}
    if not kinds & set("fc"):
        return bool(np.array_equal(found, expected))
    digits = min(np.finfo(array.dtype).precision for array in (found, expected) if array.dtype.kind in "fc")
    tolerance = 10.0 ** (3 - digits)
    scale = float(np.nanmax(np.abs(expected), initial=0, where=np.isfinite(expected))) if expected.size else 0.0
    with np.errstate(all="ignore"):
        return bool(np.allclose(found, expected, tolerance, tolerance * max(scale, 1), equal_nan=True))


def watch(owner: Any, name: str, tally: Tally, ours: Callable[..., Any], told: Callable[[tuple[Any, ...], dict[str, Any]], str]) -> None:
    """Put a function of a module or class, which stays what it is to its callers, under watch. ``told`` describes arguments."""
    original = vars(owner)[name]

    @functools.wraps(original)
    def watched(*arguments: Any, **options: Any) -> Any:
        return tally.compare(
            name, told(arguments, options), lambda: original(*arguments, **options), lambda: ours(*arguments, **options)
        )  # fmt: skip

    setattr(owner, name, watched)


def described(values: Iterable[Any]) -> str:
    """Arguments in short: kinds, dtypes and shapes of arrays, and what else there is as it is."""
    return ", ".join(one_described(value) for value in values)


def one_described(value: Any) -> str:
    """One argument in short."""
    if isinstance(value, list | tuple) and len(value) < 6:
        return f"[{described(value)}]"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        form = getattr(value, "format", "")
        return f"{type(value).__name__}{f' {form}' if form else ''} {value.dtype} {value.shape}"
    return repr(value)[:60]
