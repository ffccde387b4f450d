"""Ways into a compiled kernel, as they are known after the first call: a call is then packing, calling and wrapping.

The words of a call, of which only the addresses and counts are new each time::

    caller | those of the result | those of one operand after another | the sizes

A way holds no arrays. Several threads may go it at once, for each call has words of its own.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from ctypes import memmove
from dataclasses import dataclass
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.algebra import Scalar
from sparseloom.core.dtypes import DType
from sparseloom.core.room import ALWAYS_ALLOWED, has_room
from sparseloom.formats.format import Format
from sparseloom.formats.lending import built_on, lent_room
from sparseloom.formats.level import Level, LevelData
from sparseloom.formats.room import least_size
from sparseloom.formats.storage import NO_INDICES, Owner, Seal, Storage
from sparseloom.lower.kernel import Lowered
from sparseloom.programs.binding import FEW, aligned, as_stored
from sparseloom.programs.calling import CALLER_ADDRESS, address_of, adopt, call_with, ended
from sparseloom.programs.large import duplicate
from sparseloom.programs.laying import Laid, Words, parts_of
from sparseloom.scope.views import Slot
from sparseloom.toolchain.loading import EntryPoint


@dataclass(frozen=True, slots=True)
class Route:
    """How the words of a call are put together: the entry, which operand comes after which, and the sizes, which stay.

    ``pack`` makes words that nobody writes into of as many numbers as the kernel takes.
    """

    entry: EntryPoint
    order: tuple[int, ...]
    sizes: Words
    pack: Callable[..., bytes]

    def call(self, laid: Sequence[Laid], *result: int) -> None:
        """Call the kernel on these operands, with these words of the result."""
        line = [CALLER_ADDRESS, *result]
        for k in self.order:
            line += laid[k][3]
        line += self.sizes
        status = self.entry(self.pack(*line))
        if status:
            raise ended(status)

    def ask(self, laid: Sequence[Laid], result: Sequence[int]) -> array[int]:
        """As ``call``, for a kernel that leaves something in the words."""
        line = [CALLER_ADDRESS, *result]
        for k in self.order:
            line += laid[k][3]
        words = array("q", [*line, *self.sizes])
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
    initial: int | None = None  # the operand that it begins with
    is_large: bool = False  # it takes so much memory that each call asks how much is free

    def values(self, laid: Sequence[Laid]) -> NDArray[Any] | None:
        """The values alone; None if they would take too much memory, which the long way says."""
        count, dtype = self.count, self.dtype
        if self.is_large and not has_room(count * dtype.itemsize):
            return None
        values = np.empty(count, dtype) if count < FEW else aligned(count, dtype)
        if self.initial is not None:
            memmove(address_of(values), laid[self.initial][3][0], values.nbytes)
        self.route.call(laid, address_of(values))
        return values

    def make(self, operands: Sequence[Any], laid: Sequence[Laid]) -> Storage | None:
        """The result."""
        values = self.values(laid)
        if values is None:
            return None
        return Storage(self.format, self.shape, self.levels, values, self.fill, NO_INDICES, Owner())


@dataclass(frozen=True, slots=True)
class Sharing:
    """A sparse result with the first levels, down to a ``depth``, of an operand, the ``lender``."""

    route: Route
    format: Format
    shape: tuple[int, ...]
    dtype: DType
    fill: Scalar
    lender: int
    depth: int

    def make(self, operands: Sequence[Any], laid: Sequence[Laid]) -> Storage | None:
        """The result; None if the lender is not a tensor, whose index arrays are copied as they enter."""
        given = operands[self.lender]
        # A tensor was found valid when it was laid.
        source = given if type(given) is Storage else getattr(given, "_storage", None)
        if source is None:
            return None
        values = aligned(lent_room(source, self.depth, self.format, self.shape), self.dtype)
        self.route.call(laid, address_of(values), len(values))
        return built_on(source, self.depth, self.format, self.shape, values, self.fill, duplicate)


@dataclass(frozen=True, slots=True)
class Grown:
    """A sparse result whose arrays the kernel allocates.

    ``parts`` are what the words of the result stand for, and ``reads`` the sparse operands, as often as they are read. ``expect`` says for
    how many entries to make room, from how many those have, and ``learn`` is told how many there were.
    """

    route: Route
    lowered: Lowered
    shape: tuple[int, ...]
    parts: tuple[str, ...]
    reads: tuple[int, ...]
    levels: tuple[GrownLevel, ...]
    expect: Callable[[int], int]
    learn: Callable[[int, int], None]

    def make(self, operands: Sequence[Any], laid: Sequence[Laid]) -> Storage:
        """The result."""
        entries = sum([laid[k][1] for k in self.reads])
        guess = self.expect(entries)
        found = self.route.ask(laid, [guess if part == "guess" else 0 for part in self.parts])
        made, positions = [], 1
        for level in self.levels:
            data, positions = level.take(found, positions, self.route.entry.give_back)
            made.append(data)
        lowered = self.lowered
        tensor, k = lowered.result.tensor, lowered.parts[None, "values"]
        values = as_stored(adopt(found[1 + k], positions, lowered.function.params[k].target.dtype, self.route.entry.give_back), tensor)
        self.learn(max([found[1 + k] for k in lowered.counted], default=0), entries)
        return Storage(tensor.format, self.shape, tuple(made), values, lowered.fill, Seal(), Owner())


@dataclass(frozen=True, slots=True)
class GrownLevel:
    """One level of such a result: how far it runs, which word counts its positions, and which hold the addresses of its arrays."""

    level: Level
    extent: int
    counted: int | None
    arrays: tuple[tuple[str, int, DType], ...]

    def take(self, found: Sequence[int], parents: int, give_back: Callable[[int], None] | None) -> tuple[LevelData, int]:
        """The arrays that a kernel made, below so many positions; and how many positions the level has."""
        positions, lengths = self.level.made(self.extent, parents, 0 if self.counted is None else found[self.counted])
        if not self.arrays:
            return _NO_ARRAYS, positions
        return LevelData({part: adopt(found[at], lengths[part], dtype, give_back) for part, at, dtype in self.arrays}, {}), positions


_NO_ARRAYS = LevelData()
Way = Filled | Sharing | Grown


@dataclass(frozen=True, slots=True)
class Destination:
    """A loaded kernel, with what its calls need besides operands: sizes, shape, sparse operands, and what was learnt."""

    entry: EntryPoint
    lowered: Lowered
    sizes: Mapping[str, int]
    shape: tuple[int, ...]
    reads: Sequence[str]
    expect: Callable[[int], int]
    learn: Callable[[int, int], None]
    initial: int | None = None


def way_to(there: Destination, formats: Mapping[str, Format], places: Mapping[str, int]) -> Way | None:
    """The way to a kernel for operands in these formats, given at these places; None where more is to be done than calling it.

    So it is for sparse results that take much memory, which is looked at before each call, and for those with scalars beside their arrays.
    """
    lowered, shape = there.lowered, there.shape
    tensor, route = lowered.result.tensor, _route(there, formats, places)
    if route is None:
        return None
    parts = tuple(slot.part for slot in lowered.slots if slot.tensor == tensor.name)
    if tensor.format.is_dense:
        levels = (LevelData(),) * len(tensor.format.levels)
        count = math.prod(tensor.format.level_sizes(shape))
        is_large = count * tensor.stored_dtype.itemsize > ALWAYS_ALLOWED
        filled = Filled(route, tensor.format, shape, count, tensor.stored_dtype, lowered.fill, levels, there.initial, is_large)
        return filled if parts == ("values",) else None
    if least_size(tensor.format, shape, tensor.stored_dtype.itemsize, 1, 8) > ALWAYS_ALLOWED:
        return None
    if lowered.shared is not None:
        lender = lowered.shared
        shared = Sharing(route, tensor.format, shape, tensor.stored_dtype, lowered.fill, places[lender.name], lender.depth)
        return shared if parts == ("values", "count") else None
    return _grown(there, route, parts, places)


def _grown(there: Destination, route: Route, parts: tuple[str, ...], places: Mapping[str, int]) -> Grown | None:
    lowered, levels = there.lowered, there.lowered.result.tensor.format.levels
    made = [(k, part) for k, level in enumerate(levels) for part in level.array_names]
    if any(level.scalar_names for level in levels) or not lowered.parts.keys() >= {*made, (None, "values")} or not lowered.hands_out:
        return None
    extents, words = lowered.result.tensor.format.level_sizes(there.shape), {slot: 1 + k for slot, k in lowered.parts.items()}
    counted = {lowered.slots[k].level: 1 + k for k in lowered.counted}
    dtypes = {slot: lowered.function.params[k].target.dtype for slot, k in lowered.parts.items()}
    taken = tuple(
        GrownLevel(level, extents[k], counted.get(k), tuple((part, words[k, part], dtypes[k, part]) for part in level.array_names))
        for k, level in enumerate(levels)
    )
    return Grown(route, lowered, there.shape, parts, tuple(places[name] for name in there.reads), taken, there.expect, there.learn)


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
    order, sizes = tuple(places[name] for name in names), tuple(there.sizes[slot.part] for slot in extents)
    return Route(there.entry, order, sizes, Struct(f"{1 + len(slots)}q").pack)
