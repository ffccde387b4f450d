"""Calls that were made before on the same arrays, with an output or on a device: nothing but the arrays has to be looked at again.

A recalled call holds its operands weakly and knows their addresses. They are valid because the caller passes the same objects again, and
each of them is asked whether it still stands where it did.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.formats.storage import Owner, Storage
from sparseloom.interop.device import device_glimpse
from sparseloom.interop.entry import Seen, layout_of, record_of
from sparseloom.interop.scipy import arrays_of_scipy
from sparseloom.programs.binding import Call
from sparseloom.programs.calling import address_of, call_with
from sparseloom.programs.cuda.arrays import empty
from sparseloom.programs.cuda.launching import Launches
from sparseloom.tensor.tensor import Tensor

Glimpse = Callable[[Any], bool]
"""Whether an operand is what it was when the call was first made."""


@dataclass(frozen=True, slots=True)
class Recall:
    """A call that fills values. ``fill`` computes into the output of the call, ``make`` a new result, of kernels of a device."""

    glimpses: tuple[Glimpse, ...]
    fill: Callable[[], None]
    make: Callable[[], Storage] | None = None

    def fits(self, given: Sequence[Any]) -> bool:
        """Whether these operands, and the output, are those of the call."""
        for same, value in zip(self.glimpses, given, strict=True):  # noqa: SIM110 - a generator takes twice as long
            if not same(value):
                return False
        return True


def recall(call: Call, made: Storage, given: Sequence[Any], operands: Sequence[Storage]) -> Recall | None:
    """What is worth knowing of a call that was made: ``given`` are its operands and then its output, as ``operands`` were read from them.

    None if a call like this cannot be told quickly, or does more than run one kernel on the caller's own arrays.
    """
    if call.launched is not None:
        return _recall_launches(call.launched, made, given, operands)
    if call.bound is None or given[-1] is None:
        return None  # a new result of a compiled kernel is found by its operands' kinds
    entry, pack = call.bound
    glimpses: list[Glimpse] = []
    alive = {address_of(made.values)}
    for value, storage in zip(given, (*operands, made), strict=True):
        found = glimpse(value, storage)
        if found is None:
            return None
        glimpses.append(found[0])
        alive.update(map(address_of, found[1]))
    if any(isinstance(a, np.ndarray) and address_of(a) not in alive for a in pack.values):
        return None  # a copy was made of an operand
    glimpses[-1] = _writable(glimpses[-1], made.values, made.owner)
    return Recall(tuple(glimpses), partial(call_with, entry, pack.words()))


def _recall_launches(launches: Launches, made: Storage, given: Sequence[Any], operands: Sequence[Storage]) -> Recall | None:
    """As ``recall``, for operands that are on a device, all of them: what the caller passes again keeps their memory."""
    glimpses: list[Glimpse] = []
    for value, storage in zip(given, (*operands, made), strict=True):
        found = glimpse(value, storage)[0] if type(value) is Tensor or value is None else device_glimpse(value)  # type: ignore[index]
        if found is None:
            return None
        glimpses.append(found)
    if given[-1] is not None:
        glimpses[-1] = _alone(glimpses[-1], made.owner)
    word = launches.word_of(made.values)
    if word is None:
        return None
    launches.let_go()
    like, count, dtype = replace(made, values=np.empty(0, made.dtype), owner=None), len(made.values), made.dtype

    def make() -> Storage:
        values: Any = empty(count, dtype, launches.device.ordinal, launches.source)
        launches.start_with(word, values)
        return Storage(like.format, like.shape, like.levels, values, like.fill, like.seal, Owner())

    return Recall(tuple(glimpses), partial(launches.start_with, word, None), make)


def _writable(same: Glimpse, values: NDArray[Any], owner: Owner | None) -> Glimpse:
    """An output must be writable still, and no other tensor's."""
    known = weakref.ref(values)

    def still(given: Any) -> bool:
        output = known()
        return output is not None and output.flags.writeable and same(given)

    return _alone(still, owner)


def _alone(same: Glimpse, owner: Owner | None) -> Glimpse:
    """No other tensor may have the values of an output."""
    if owner is None:
        return same
    known = weakref.ref(owner)

    def still(given: Any) -> bool:
        held = known()
        return held is not None and not held.is_shared and same(given)

    return still


def glimpse(value: Any, storage: Storage) -> tuple[Glimpse, tuple[NDArray[Any], ...]] | None:
    """How to tell that an operand is the same again, and the arrays that it keeps alive; None if that cannot be told quickly."""
    kind = type(value)
    if value is None:
        return (lambda given: given is None), ()
    if kind is Tensor:
        return _tensor(value, storage), (storage.values, *storage.indices)
    if kind is np.ndarray:
        return _array(value), (value,)
    arrays = arrays_of_scipy(value)
    seen = None if arrays is None else record_of(arrays)
    return None if arrays is None or seen is None else (_matrix(value, seen), arrays)


def _tensor(tensor: Tensor, storage: Storage) -> Glimpse:
    known: Any = weakref.ref(tensor)
    stored = weakref.ref(storage)
    return lambda given: known() is given and given.has(stored())


def _array(values: NDArray[Any]) -> Glimpse:
    known: Any = weakref.ref(values)
    layout = layout_of(values)
    return lambda given: known() is given and layout_of(given) == layout


def _matrix(matrix: Any, seen: Seen) -> Glimpse:
    known: Any = weakref.ref(matrix)
    record, shape = weakref.ref(seen), matrix.shape

    def same(given: Any) -> bool:
        if known() is not given or given.shape != shape:
            return False
        then = record()
        return then is not None and then.still_holds((given.indptr, given.indices, given.data))

    return same
