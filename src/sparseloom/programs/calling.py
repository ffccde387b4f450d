"""Call a kernel's entry, and take back what it made.

A kernel has one entry, ``int32_t entry(void **args)``, and gets a pack of 64-bit words::

    args[0]        struct caller_state *: asked now and then by a long kernel whether to stop
    args[1 + k]    parameter k: the address of an array, or an integer by value, or a slot that the kernel writes

ctypes releases the interpreter lock during the call.
"""

from __future__ import annotations

import ctypes
import itertools
import operator
import sys
import threading
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from sparseloom.core.dtypes import DType, bits_of
from sparseloom.core.errors import CompilerBug, ShapeError, SparseloomError
from sparseloom.loops.nodes import Status
from sparseloom.toolchain.ending import caller_for
from sparseloom.toolchain.loading import EntryPoint

Value = np.ndarray[Any, DType] | int | None


class IndexOverflow(SparseloomError):
    """A position does not fit into the index type of a result; the caller tries again with a wider one."""


class OutOfMemory(SparseloomError, MemoryError):
    """A kernel asked for memory, and the system refused."""


class BoundViolated(ShapeError):
    """A bound that a schedule promises does not hold; whoever knows the schedule can say which."""

    def __init__(self, which: str = "") -> None:
        named = f": {which}" if which else ""
        super().__init__(
            f"a bound that the schedule promises does not hold for these operands{named}\n"
            "  help: correct the bound(...) step, or leave it out and the loop takes its limits from the operands"
        )


_SPARE = 8


class _Watch(threading.local):
    """What each thread answers when a kernel asks whether to stop.

    Python runs the handlers of pending signals at the first step of any function, so an ordinary callback that a
    Ctrl-C reaches fails before it gets to its ``try``, and the Ctrl-C is lost. A generator that waits inside its ``try`` is
    resumed there, and what a handler raises is caught. A handler that returns lets the kernel go on.

    A handler may run kernels of its own, which ask while the generator is busy with the handler. So several generators stand ready. The
    one that is asked is taken from the end of the list; it comes back when its handler has returned, and sees to it that there are more.
    One that caught something says so, once, and does not come back: whatever it did next, a signal could reach it outside its ``try``.
    """

    raised: BaseException | None = None

    def __init__(self) -> None:
        self.ready: list[Iterator[int]] = []
        self.fill()

    def fill(self) -> None:
        """Have enough generators ready."""
        while len(self.ready) < _SPARE:
            made = self._listen()
            next(made)
            made.send(made)  # it puts itself onto the list

    def _listen(self) -> Generator[int, Iterator[int], None]:
        myself = yield 0
        try:
            while True:
                self.ready.append(myself)
                yield 0
                if len(self.ready) < _SPARE - 1:
                    self.fill()
        except GeneratorExit:
            return
        except BaseException as raised:  # noqa: BLE001 - whatever a handler raises is raised again when the kernel has ended
            self.raised = raised
        yield 1


_watch = _Watch()
# Asks a generator of the calling thread. There is no Python function on the way, for the reason above.
_answers = map(next, map(operator.methodcaller("pop"), map(operator.attrgetter("ready"), itertools.repeat(_watch))))
CALLER_ADDRESS = caller_for(ctypes.CFUNCTYPE(ctypes.c_int32)(_answers.__next__))


class Pack:
    """The words handed to an entry. It keeps its arrays alive, and may be used again, by one thread at a time.

    ``values`` are the parameters in order: an array (its address), an integer (itself, so also an address that the caller keeps
    valid, with its owner in ``keep``), or ``None`` for a slot.
    """

    __slots__ = ("_keep", "_words", "address", "values")

    def __init__(self, values: Sequence[Value], keep: object = None) -> None:
        # Integers are sorted out first: this is on the way of every call.
        self._words = array("q", [CALLER_ADDRESS, *[value if type(value) is int else _word(value) for value in values]])
        self.address: int = self._words.buffer_info()[0]
        self.values = tuple(values)
        self._keep = keep

    def words(self) -> array[int]:
        """A copy of the words, for whoever knows that the arrays are alive: see ``call_with``."""
        return self._words[:]

    def slot(self, k: int) -> int:
        """What the kernel left in parameter ``k``: a count, or the address of an array."""
        return self._words[1 + k]

    def take(self, k: int) -> int:
        """The address of an array that the kernel allocated for parameter ``k``; whoever takes it owns it, so it is given once."""
        address = self._words[1 + k]
        self._words[1 + k] = 0
        return address


def _word(value: Value) -> int:
    match value:
        case np.ndarray():
            return address_of(value)
        case None:
            return 0
        case _:
            return value


def run(entry: EntryPoint, pack: Pack) -> None:
    """Call a kernel once and raise what its status means. Ctrl-C ends a kernel that polls within 0.2 s."""
    bind(entry, pack)()


def bind(entry: EntryPoint, pack: Pack) -> Callable[[], None]:
    """``run`` with both arguments fixed, for many calls: the shortest way into a kernel."""
    if len(_watch.ready) < _SPARE:
        _watch.fill()

    def call() -> None:
        status = entry(pack.address)
        if status:
            raise ended(status)

    return call


def call_with(entry: EntryPoint, words: array[int]) -> None:
    """Call a kernel with words whose arrays the caller keeps alive."""
    status = entry(words.buffer_info()[0])
    if status:
        raise ended(status)


def address_of(values: np.ndarray[Any, DType]) -> int:
    """Where an array's first element is. NumPy's own ``values.ctypes.data`` takes eight times as long."""
    return _word_at(id(values) + _DATA_FIELD).value if _DATA_FIELD else values.ctypes.data


def adopt(address: int, count: int, dtype: DType, give_back: Callable[[int], None] | None) -> np.ndarray[Any, DType]:
    """Wrap ``count`` elements that a kernel allocated; its own library frees them when the last view of them goes."""
    if address == 0:
        if count:
            raise CompilerBug(f"{count} elements of {dtype}", "a kernel should hand out the array it counts")
        return np.empty(0, dtype)
    if give_back is None:
        raise CompilerBug(f"{count} elements of {dtype}", "a library that allocates should define what frees it")
    if count == 0:
        give_back(address)
        return np.empty(0, dtype)
    found = np.asarray(_Owner(address, count, bits_of(dtype), give_back))
    return found if found.dtype == dtype else found.view(dtype)


def ended(status: int) -> BaseException:
    """Why a kernel ended with a status other than OK: it was cancelled, or failed."""
    return _stopped() if status == Status.CANCELLED.value else failure(status)


def _stopped() -> BaseException:
    """What a signal's handler raised while a kernel ran."""
    raised, _watch.raised = _watch.raised, None
    _watch.fill()
    return raised or KeyboardInterrupt()


def failure(status: int) -> Exception:
    """The exception for a status other than OK."""
    match status:
        case Status.OUT_OF_MEMORY.value:
            return OutOfMemory("a kernel could not allocate memory for its result or workspace")
        case Status.INDEX_OVERFLOW.value:
            return IndexOverflow("a position does not fit into the index type of the result")
        case Status.BOUND_VIOLATED.value:
            return BoundViolated()
    return CompilerBug(f"status {status}", "a kernel should return a known status")


_word_at = ctypes.c_size_t.from_address


class _Owner:
    """Owns one array that a kernel allocated, and shows it to NumPy. It keeps the library loaded that frees it."""

    __slots__ = ("__array_interface__", "_address", "_give_back")

    def __init__(self, address: int, count: int, dtype: DType, give_back: Callable[[int], None]) -> None:
        self._address, self._give_back = address, give_back
        self.__array_interface__ = {"version": 3, "shape": (count,), "typestr": dtype.str, "data": (address, False)}

    def __del__(self) -> None:
        self._give_back(self._address)


def _data_field() -> int:
    """The offset of the data pointer in NumPy's array object, whose layout is part of its binary interface; 0 if unknown."""
    probe, offset = np.empty(1), object.__basicsize__
    known = sys.implementation.name == "cpython" and _word_at(id(probe) + offset).value == probe.ctypes.data
    return offset if known else 0


_DATA_FIELD = _data_field()
