"""Other people's tests as ours: what they call is computed a second time, by Sparseloom, and compared.

A library's own tests run as they are. Each call of a function that is watched gives the library's answer to the test; before that, the
same call is made on tensors. So every argument that those who know the library thought of is tried, and none of their assertions matter.
Where the two differ, NumPy may be asked too, on dense arrays: a library that differs from NumPy there is a reason, and is counted apart.
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
AS_NUMPY = "it is what NumPy gives, or refuses too, on the same arrays; the library does something else"


@dataclass(frozen=True)
class Call:
    """A call that both were asked to make: what tensors gave, or their refusal, and what the library gave, or None if it refused."""

    name: str
    told: str
    found: Any
    refusal: Exception | None
    expected: Any


Reason = Callable[[Call], str | None]
"""Why a call that differs does so on purpose, if it does."""


@dataclass
class Tally:
    """What came of the calls: how many gave the same, and a few words for each of the others, with an example."""

    as_array: Callable[[Any], Any]
    same: Counter[str] = field(default_factory=Counter)
    others: dict[str, dict[str, int]] = field(default_factory=dict)
    named: dict[str, dict[str, int]] = field(default_factory=dict)  # as others, by the reason of those that differ on purpose
    examples: dict[str, str] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()  # beside the dtypes that tensors do not have
    seen: Counter[str] = field(default_factory=Counter)
    busy: bool = False
    share: float = 1.0
    deadline: float = math.inf

    def compare(
        self, name: str, told: str, theirs: Callable[[], Any], ours: Callable[[], Any], numpy: Callable[[], Any] | None = None
    ) -> Any:
        """Make a call in both ways, note what came of it, and answer as the library does. ``numpy`` makes it on dense arrays."""
        if self.busy:  # a call inside another is the library's own business
            return theirs()
        self.seen[name + told] += 1
        self.busy = True
        try:
            return self.compared(name, told, theirs, ours, numpy) if self.is_wanted(name + told) else theirs()
        finally:
            self.busy = False

    def is_wanted(self, call: str) -> bool:
        """Whether a call is compared: of a sample that is the same in every run, not too often, and while there is time."""
        in_sample = zlib.crc32(call.encode()) % 1000 < 1000 * self.share
        return in_sample and self.seen[call] <= MOST and time.monotonic() < self.deadline

    def compared(
        self, name: str, told: str, theirs: Callable[[], Any], ours: Callable[[], Any], numpy: Callable[[], Any] | None
    ) -> Any:
        """Ours first, since theirs may fill an array that was given."""
        found, refusal = attempt(ours)
        try:
            expected = theirs()
        except Exception:
            self.note(Call(name, told, found, refusal, None), None if refusal is not None else "accepted, but not by the library", numpy)
            raise
        if expected is not NotImplemented:
            self.note(Call(name, told, found, refusal, expected), self.verdict(found, refusal, expected), numpy)
        return expected

    def note(self, call: Call, word: str | None, numpy: Callable[[], Any] | None) -> None:
        """Count a call: as the same, under the reason of a difference that is meant, or under the word for what was different."""
        if word is None:
            self.same[call.name] += 1
            return
        reason = next((text for reason in (foreign_dtype, *self.reasons) if (text := reason(call))), None)
        if reason is None and numpy is not None and self.agrees(call, *attempt(numpy)):
            reason = AS_NUMPY
        counts = (self.others if reason is None else self.named).setdefault(word if reason is None else f"{word}: {reason}", {})
        counts[call.name] = counts.get(call.name, 0) + 1
        self.examples.setdefault(word if reason is None else f"{word}: {reason}", f"{call.name}({call.told})")

    def agrees(self, call: Call, value: Any, refusal: Exception | None) -> bool:
        """Whether NumPy, on dense arrays, gives what tensors do, or refuses as they do."""
        if refusal is not None or call.refusal is not None:
            return is_opinion(refusal) and call.refusal is not None
        return self.verdict(call.found, None, value) is None

    def verdict(self, found: Any, refusal: Exception | None, expected: Any) -> str | None:
        """None where both are the same, else what differs."""
        if refusal is not None:
            return refused(refusal)
        try:
            one, other = self.as_array(found), self.as_array(expected)
        except (TypeError, ValueError, MemoryError) as problem:
            return f"not comparable: {problem}"
        return difference(one, other)

    @property
    def count(self) -> int:
        """How many calls were compared."""
        return sum(self.same.values()) + sum(sum(counts.values()) for kind in (self.others, self.named) for counts in kind.values())


_QUOTIENTS = ("__truediv__", "__rtruediv__", "<ufunc 'divide'>", "<ufunc 'floor_divide'>", "<ufunc 'remainder'>", "<ufunc 'fmod'>")


def absent_quotient(as_array: Callable[[Any], Any]) -> Reason:
    """The reason of quotients that are 0 on tensors, and NaN in a library that divides what neither operand stores."""

    def reason(call: Call) -> str | None:
        if not any(name in f"{call.name} {call.told}" for name in _QUOTIENTS) or call.refusal is not None or call.expected is None:
            return None
        found, expected = as_array(call.found), as_array(call.expected)
        if not isinstance(found, np.ndarray) or found.shape != expected.shape or found.dtype != expected.dtype:
            return None
        differs = ~np.isclose(found, expected, 1e-12, 0, equal_nan=True)
        is_absent = np.all(np.isnan(expected[differs])) and not found[differs].any()
        return "an absent zero divided by anything is 0, also by another absent zero" if is_absent else None

    return reason


class NoOpinion(Exception):
    """NumPy cannot be asked about a call: it is too large for arrays, or of a function that it does not have."""


_FOREIGN = {
    "object": "objects of Python are computed by Python, and no kernel does",
    "float128": "long doubles are another type on every machine, and no GPU has them",
    "complex256": "long doubles are another type on every machine, and no GPU has them",
    "<U": "text is no number",
    "[(": "records are no numbers",
}


def foreign_dtype(call: Call) -> str | None:
    """Values of a type that tensors do not have, and are not to have."""
    word = "" if call.refusal is None else str(call.refusal)
    return next((why for kind, why in _FOREIGN.items() if word.startswith(f"values of type {kind}")), None)


def is_opinion(refusal: Exception | None) -> bool:
    """Whether NumPy refuses what is asked, and not merely how it is spelled."""
    return isinstance(refusal, ValueError | IndexError) or (isinstance(refusal, TypeError) and "argument" not in str(refusal))


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


def watch(
    owner: Any,
    name: str,
    tally: Tally,
    ours: Callable[..., Any],
    numpy: Callable[..., Any],
    is_foreign: Callable[[Any], bool] | None = None,
) -> None:
    """Put a function of a module or class, which stays what it is to its callers, under watch.

    ``ours`` makes the call on tensors and ``numpy`` on arrays. What is called with something foreign is not compared.
    """
    original = vars(owner)[name]

    @functools.wraps(original)
    def watched(*arguments: Any, **options: Any) -> Any:
        if is_foreign is not None and any(map(is_foreign, (*arguments, *options.values()))):
            return original(*arguments, **options)
        told = described(arguments) + "".join(f", {key}={described([value])}" for key, value in options.items())
        return tally.compare(
            name, told, lambda: original(*arguments, **options), lambda: ours(*arguments, **options), lambda: numpy(*arguments, **options)
        )  # fmt: skip

    setattr(owner, name, watched)


def applied(call: Callable[..., Any], convert: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function on converted arguments, also in lists and tuples. An array to be filled is another one: the library fills its own."""

    def converted(value: Any) -> Any:
        return type(value)(map(converted, value)) if type(value) in (list, tuple) else convert(value)

    def place(value: Any) -> Any:
        return value.copy() if isinstance(value, np.ndarray) else converted(value)

    def function(*arguments: Any, **options: Any) -> Any:
        return call(*map(converted, arguments), **{key: (place if key == "out" else converted)(value) for key, value in options.items()})

    return function


def listed(shape: tuple[int, ...], coordinates: Any, values: Any) -> tuple[Any, ...]:
    """A tensor that is too large for an array, as its shape and its entries in order, without zeros."""
    kept = np.flatnonzero(values)
    columns = [np.asarray(column)[kept].astype(np.int64) for column in coordinates]
    order = np.lexsort(columns[::-1])
    return np.array(shape, np.int64), *(column[order] for column in columns), np.asarray(values)[kept][order]


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
