"""Ways into a compiled kernel, as they are known after the first call: a call is then packing, calling and wrapping.

The words of a call, of which only the addresses and counts are new each time::

    cancelled | those of the result | those of one operand after another | the sizes

A way holds no arrays. Several threads may go it at once, for each call has words of its own.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import DType
from sparseloom.core.room import ALWAYS_ALLOWED
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.room import least_size
from sparseloom.formats.storage import NO_INDICES, Storage, lend
from sparseloom.lower.kernel import Lowered
from sparseloom.lower.views import Slot
from sparseloom.runtime.binding import aligned, grown_lengths, read_result
from sparseloom.runtime.calling import CANCELLED_ADDRESS, address_of, adopt, call_with
from sparseloom.runtime.laying import Words, parts_of
from sparseloom.runtime.library import EntryPoint

Passed = Sequence[Words]
"""The words of every operand, in the order in which they were given."""


@dataclass(frozen=True, slots=True)
class Route:
    """How the words of a call are put together: the entry, which operand comes after which, and the sizes, which stay."""

    entry: EntryPoint
    order: tuple[int, ...]
    sizes: Words

    def call(self, result: Sequence[int], operands: Passed) -> array[int]:
        """Call the kernel on these words of the result and of the operands; returns what stands in them then."""
        line = [CANCELLED_ADDRESS, *result]
        for k in self.order:
            line += operands[k]
        line += self.sizes
        words = array("q", line)
        call_with(self.entry, words)
        return words


@dataclass(frozen=True, slots=True)
class Filled:
    """A dense result, of which the kernel computes the values."""

    route: Route
    format: Format
    shape: tuple[int, ...]
    count: int
    dtype: DType
    fill: Scalar
    levels: tuple[LevelData, ...]

    def values(self, words: Passed) -> NDArray[Any]:
        """The values alone."""
        values = aligned(self.count, self.dtype)
        self.route.call((address_of(values),), words)
        return values

    def make(self, operands: Sequence[Any], words: Passed, entries: int) -> Storage:
        """The result."""
        return Storage(self.format, self.shape, self.levels, self.values(words), self.fill, NO_INDICES)


@dataclass(frozen=True, slots=True)
class Sharing:
    """A sparse result with the structure of an operand, the ``lender``."""

    route: Route
    format: Format
    shape: tuple[int, ...]
    dtype: DType
    fill: Scalar
    lender: int

    def make(self, operands: Sequence[Any], words: Passed, entries: int) -> Storage:
        """The result."""
        source = lend(operands[self.lender])
        values = aligned(len(source.values), self.dtype)
        self.route.call((address_of(values), len(values)), words)
        return Storage(self.format, self.shape, source.levels, values, self.fill, source.seal)


@dataclass(frozen=True, slots=True)
class Grown:
    """A sparse result whose arrays the kernel allocates.

    ``parts`` are what the words of the result stand for. ``expect`` says for how many entries to make room, from how many the
    operands have, and ``learn`` is told how many there were.
    """

    route: Route
    lowered: Lowered
    shape: tuple[int, ...]
    parts: tuple[str, ...]
    expect: Callable[[int], int]
    learn: Callable[[int, int], None]

    def make(self, operands: Sequence[Any], words: Passed, entries: int) -> Storage:
        """The result."""
        lowered, guess = self.lowered, self.expect(entries)
        left = self.route.call([guess if part == "guess" else 0 for part in self.parts], words)
        found: list[Any] = left[1:].tolist()
        self.learn(max((found[k] for k in lowered.counted), default=0), entries)
        lengths, params = grown_lengths(lowered, found), lowered.function.params
        for k in lowered.grown:
            found[k] = adopt(found[k], lengths[k], params[k].target.dtype)
        return read_result(lowered, self.shape, {}, found)


Way = Filled | Sharing | Grown


@dataclass(frozen=True, slots=True)
class Destination:
    """A loaded kernel, with what its calls need besides operands: the sizes of variables, the result's shape, and what was learnt."""

    entry: EntryPoint
    lowered: Lowered
    sizes: Mapping[str, int]
    shape: tuple[int, ...]
    expect: Callable[[int], int]
    learn: Callable[[int, int], None]


def way_to(there: Destination, formats: Mapping[str, Format], places: Mapping[str, int]) -> Way | None:
    """The way to a kernel for operands in these formats, given at these places; None where more is to be done than calling it.

    So it is for results that take much memory, which is looked at before each call, and for those with scalars beside their arrays.
    """
    lowered, shape = there.lowered, there.shape
    tensor, route = lowered.result.tensor, _route(there, formats, places)
    if route is None or least_size(tensor.format, shape, tensor.dtype.itemsize, 1, 8) > ALWAYS_ALLOWED:
        return None
    parts = tuple(slot.part for slot in lowered.slots if slot.tensor == tensor.name)
    if tensor.format.is_dense:
        levels = (LevelData(),) * len(tensor.format.levels)
        count = math.prod(tensor.format.level_sizes(shape))
        return Filled(route, tensor.format, shape, count, tensor.dtype, lowered.fill, levels) if parts == ("values",) else None
    if lowered.shared is not None:
        shared = Sharing(route, tensor.format, shape, tensor.dtype, lowered.fill, places[lowered.shared])
        return shared if parts == ("values", "count") else None
    if not lowered.hands_out or any(level.scalar_names for level in tensor.format.levels):
        return None
    return Grown(route, lowered, shape, parts, there.expect, there.learn)


def _route(there: Destination, formats: Mapping[str, Format], places: Mapping[str, int]) -> Route | None:
    """The route to a kernel, if its parameters stand as usual: the result's, those of one operand after another, and sizes."""
    slots, result = there.lowered.slots, there.lowered.result.tensor.name
    own = [slot for slot in slots if slot.tensor == result]
    names = list(dict.fromkeys(slot.tensor for slot in slots if slot.tensor is not None and slot.tensor != result))
    extents = [slot for slot in slots if slot.tensor is None]
    if not formats.keys() >= set(names):
        return None
    laid = [Slot(name, part, level) for name in names for level, part in parts_of(formats[name])]
    if [*own, *laid, *extents] != list(slots):
        return None
    return Route(there.entry, tuple(places[name] for name in names), tuple(there.sizes[slot.part] for slot in extents))
