"""Binding: the arrays of real tensors laid out as a kernel's parameters, and its results read back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import FormatError
from sparseloom.core.room import require_room
from sparseloom.formats.lending import built_on
from sparseloom.formats.level import Level, LevelData
from sparseloom.formats.storage import NO_INDICES, Owner, Seal, Storage
from sparseloom.loops import interpret
from sparseloom.loops.nodes import Function, Role
from sparseloom.lower.kernel import Lowered
from sparseloom.notation.nodes import TensorVar
from sparseloom.programs.calling import Pack, address_of, adopt, bind, failure, run
from sparseloom.programs.large import LARGE, duplicate, large_room
from sparseloom.scope.views import Slot
from sparseloom.toolchain.loading import EntryPoint

Arguments = list[Any]
_LINE = 64  # bytes of a cache line, and of the largest vector register
_SMALL = 1 << 14  # below this many bytes the alignment is not worth its time
FEW = _SMALL // 16  # values, of whichever dtype, that take fewer


@dataclass(frozen=True)
class Call:
    """A kernel with its arguments. ``start`` computes; ``run`` also gives the result, and may be called by several threads at once.

    A result of dense values is the same array every time; any other is new.
    """

    start: Callable[[], None]
    run: Callable[[], Storage]
    entries: int = 0  # how many the sparse operands have
    bound: tuple[EntryPoint, Pack] | None = None  # a compiled kernel that fills values in place, where there is nothing to do besides
    launched: Any = None  # likewise the launches of kernels of a device

    def within(self, around: Callable[[Callable[[], Any]], Any]) -> Call:
        """The same call with something done around it."""
        return replace(self, start=lambda: around(self.start), run=lambda: around(self.run), bound=None, launched=None)


def bind_entry(entry: EntryPoint, lowered: Lowered, arguments: Arguments, read: Callable[[Sequence[Any]], Storage]) -> Call:
    """Prepare a call of a compiled kernel."""
    if not lowered.hands_out:
        pack = Pack(arguments)
        fill = bind(entry, pack)

        def filled() -> Storage:
            fill()
            return read(arguments)

        return Call(fill, filled, bound=(entry, pack))

    params = lowered.function.params

    def made() -> Storage:
        own = Pack(arguments)  # the kernel writes into it, and threads may be here together
        run(entry, own)
        found: list[Any] = list(arguments)
        for k in lowered.counted:
            found[k] = own.slot(k)
        lengths = grown_lengths(lowered, found)
        for k in lowered.grown:
            found[k] = adopt(own.take(k), lengths[k], params[k].target.dtype, entry.give_back)
        return read(found)

    return Call(lambda: _drop(made()), made)


def _drop(_: Storage) -> None:
    """Nobody asked for it: its memory is free when this returns."""


def bind_interpreter(
    lowered: Lowered, arguments: Arguments, read: Callable[[Sequence[Any]], Storage], initialised: bool
) -> Call:
    """Prepare a run of the loops in Python, with every access checked."""

    def made() -> Storage:
        try:
            found: list[Any] = interpret.run(lowered.function, arguments, initialised)
        except interpret.KernelStatus as ended:
            raise failure(ended.status.value) from None
        lengths = grown_lengths(lowered, found) if lowered.grown else {}
        for k in lowered.grown:
            found[k] = found[k][: lengths[k]].copy()
        return read(found)

    return Call(lambda: _drop(made()), made)


def grown_lengths(lowered: Lowered, found: Sequence[Any]) -> dict[int, int]:
    """How many elements of each grown array are used, by parameter, from the number of positions at each appended level."""
    form, parts = lowered.result.tensor.format, lowered.parts
    extents = form.level_sizes(tuple(found[k] for k in lowered.extents))
    counts = {lowered.slots[k].level: found[k] for k in lowered.counted}
    lengths: dict[int, int] = {}
    positions = 1
    for k, level in enumerate(form.levels):
        positions, made = level.made(extents[k], positions, counts.get(k, 0))
        # Some arrays may be taken over from an operand.
        lengths |= {parts[k, part]: length for part, length in made.items() if (k, part) in parts}
    if (None, "values") in parts:
        lengths[parts[None, "values"]] = positions
    return lengths


def gather(
    lowered: Lowered, storages: Mapping[str, Storage], sizes: Mapping[str, int], values: NDArray[Any] | None, guess: int
) -> Arguments:
    """The arguments of a kernel: arrays and sizes in the order of its parameters, ``None`` where it hands something out."""
    arguments: Arguments = []
    name = lowered.result.tensor.name
    for param, slot in zip(lowered.function.params, lowered.slots, strict=True):
        if slot.tensor is None:
            arguments.append(sizes[slot.part])
        elif slot.tensor == name and param.role is not Role.INPUT:
            arguments.append(_outgoing(slot, values, guess, param.role))
        elif slot.level is None:
            arguments.append(storages[slot.tensor].values)
        else:
            data = storages[slot.tensor].levels[slot.level]
            arguments.append(data.scalars[slot.part] if slot.part in data.scalars else data.arrays[slot.part])
    return arguments


def _outgoing(slot: Slot, values: NDArray[Any] | None, guess: int, role: Role) -> Any:
    match role, slot.part:
        case Role.OUTPUT, _:
            return values
        case Role.SIZE, "guess":
            return guess
        case Role.SIZE, "count":
            return 0 if values is None else len(values)
    return None


def read_result(lowered: Lowered, shape: tuple[int, ...], storages: Mapping[str, Storage], found: Sequence[Any]) -> Storage:
    """The result as storage: its own arrays, or new values with the structure of an operand that nobody else can change."""
    tensor = lowered.result.tensor
    if tensor.format.is_dense:
        return Storage(tensor.format, shape, (LevelData(),) * len(tensor.format.levels), found[0], lowered.fill, NO_INDICES, Owner())
    mine = {place: found[k] for place, k in lowered.parts.items()}
    values = as_stored(mine[None, "values"], tensor)
    if lowered.shared is not None:
        return built_on(storages[lowered.shared.name], lowered.shared.depth, tensor.format, shape, values, lowered.fill, duplicate)
    levels = tuple(_level_data(level, k, mine) for k, level in enumerate(tensor.format.levels))
    return Storage(tensor.format, shape, levels, values, lowered.fill, Seal(), Owner())


def as_stored(values: NDArray[Any], tensor: TensorVar) -> NDArray[Any]:
    """Values as a result holds them: a kernel that makes room for sums in float32 leaves it to its caller to round them to a half."""
    if values.dtype == tensor.stored_dtype:
        return values
    with np.errstate(over="ignore"):  # to infinity
        return values.astype(tensor.stored_dtype)


def _level_data(level: Level, place: int, parts: Mapping[tuple[int | None, str], Any]) -> LevelData:
    arrays = {part: parts[place, part] for part in level.array_names}
    return LevelData(arrays, {part: int(parts[place, part]) for part in level.scalar_names})


def is_interpretable(function: Function, work: int, limit: int = 2_000_000) -> bool:
    """Whether a problem is small enough to answer without a compiler."""
    return work <= limit and bool(function.params)


def allocate(tensor: TensorVar, shape: tuple[int, ...]) -> NDArray[Any]:
    """Room for the values of a dense result. One that would take more than half of the free memory is refused."""
    extents = tensor.format.level_sizes(shape)
    what = f"{tensor.name} would be dense: {' x '.join(map(str, shape))} values of {tensor.stored_dtype}"
    help = "ask for a sparse result, as in sl.evaluate(..., format='csr'), or compute a part of it"
    require_room(math.prod(extents) * tensor.stored_dtype.itemsize, what, help)
    try:
        return aligned(math.prod(extents), tensor.stored_dtype)
    except MemoryError:  # the system allows this process less than is free
        raise FormatError(f"{what} are more memory than can be had\n  help: {help}") from None


def aligned(count: int, dtype: DType) -> NDArray[Any]:
    """Room for ``count`` values that begins on a cache line: vectors that straddle two took 1.7 times as long to write."""
    size = count * dtype.itemsize
    if size < _SMALL:
        return np.empty(count, dtype)
    if size >= LARGE and (room := large_room(count, dtype)) is not None:
        return room
    raw = np.empty(size + _LINE, np.uint8)
    start = -address_of(raw) % _LINE
    return raw[start : start + size].view(dtype)
