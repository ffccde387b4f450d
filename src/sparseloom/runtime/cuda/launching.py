"""Launches that are prepared: loaded kernels, and packs of arguments of which only addresses change from call to call.

    words     | address of y | address of A2_pos | ... | i_size |      one for everything that some kernel takes
    pack      | where word 0 is | where word 4 is | ...                what the driver wants: one for each kernel

The driver copies the words when it is told to launch, so that they can be changed for the next call at once.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparseloom.core.errors import CompilerBug
from sparseloom.loops.nodes import Status
from sparseloom.runtime.calling import address_of, failure
from sparseloom.runtime.cuda.arrays import DeviceArray, Owned
from sparseloom.runtime.cuda.device import device
from sparseloom.runtime.cuda.driver import LaunchConfig
from sparseloom.runtime.cuda.host_code import Argument, HostPlan, Number, StatusWord, Step, Temporary, Word
from sparseloom.runtime.cuda.nvrtc import compile_cubin
from sparseloom.runtime.cuda.streams import DEFAULT_STREAM, OWN, current_stream
from sparseloom.runtime.forks import in_child

_REMEMBERED = 512
_STATUS_BYTES = 4


class Module:
    """Machine code that is loaded on a device, with its kernels by name. It is unloaded with the last call that knows it."""

    __slots__ = ("__weakref__", "_functions", "_handle", "device")

    def __init__(self, source: str, ordinal: int) -> None:
        self.device = device(ordinal)
        self._handle: int = self.device.load(compile_cubin(source, self.device.architecture))
        self._functions: dict[str, int] = {}
        weakref.finalize(self, self.device.unload, self._handle).atexit = False

    def function(self, name: str) -> int:
        """The handle of a kernel."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self.device.function(self._handle, name)
        return found


_modules: OrderedDict[tuple[str, int], Module] = OrderedDict()
_locks: dict[str, threading.RLock] = {}


def _renew_locks() -> None:
    """Start with free locks; after a fork the old ones may be held by threads that the child does not have."""
    _locks["modules"] = threading.RLock()


_renew_locks()
in_child(_renew_locks)


def load_module(source: str, ordinal: int) -> Module:
    """The kernels of a text, loaded on a device. Texts that were used lately stay loaded."""
    key = (source, ordinal)
    with _locks["modules"]:
        found = _modules.get(key)
        if found is None:
            found = _modules[key] = Module(source, ordinal)
        _modules.move_to_end(key)
        if len(_modules) > _REMEMBERED:
            _modules.popitem(last=False)
        return found


class Launches:
    """The launches of one call, prepared on arrays that it keeps alive.

    ``start`` runs them again and again, by one thread at a time: temporaries are allocated once. ``start_with`` runs them for one array in
    place of another, with temporaries of its own, from many threads.
    """

    def __init__(self, module: Module, plan: HostPlan, arguments: Sequence[Any], source: str) -> None:
        self.device = module.device
        self.plan = plan
        self.source = source
        self._keep: tuple[Module, tuple[Any, ...]] = (module, tuple(arguments))
        self._lock = threading.Lock()
        words = list(dict.fromkeys(word for step in plan.steps for word in step.words))
        self._place = {word: place for place, word in enumerate(words)}
        self._words = array("q", [0] * len(words))
        for word, place in self._place.items():
            self._words[place] = _fixed(word, arguments)
        self._own: list[Owned] | None = None
        self._status = Owned(_STATUS_BYTES, self.device.ordinal, self._stream()) if plan.may_fail else None
        if self._status is not None:
            self._words[self._place[StatusWord()]] = self._status.address
        base = self._words.buffer_info()[0]
        self._packs = [_Pack(step, module.function(step.kernel), base, self._place) for step in plan.steps]
        if source != OWN and any(isinstance(given, DeviceArray) and given.source == OWN for given in arguments):
            self.device.follow(self._stream())  # our own arrays were made on the default stream
        self._ready = tuple(pack.addresses for pack in self._packs)
        self._stream_set = DEFAULT_STREAM
        self._is_simple = plan.failed is None and self._status is None and not plan.temporaries

    def _stream(self) -> int:
        return current_stream(self.source, self.device.ordinal)

    def start(self) -> None:
        """Launch everything."""
        stream = DEFAULT_STREAM if self.source is OWN else self._stream()
        if self._is_simple:
            self._put(stream)
            return
        if self.plan.temporaries and self._own is None:
            self._own = self._allocated(stream)
        self._launch(stream)

    def word_of(self, values: Any) -> int | None:
        """Which word has the address of an array; None if none has, or more than one."""
        words = [self._place.get(Argument(k)) for k, each in enumerate(self._keep[1]) if each is values]
        return words[0] if len(words) == 1 else None

    def let_go(self) -> None:
        """Hold no arrays from now on; whoever starts it sees to them."""
        self._keep, self._own = (self._keep[0], ()), None

    def start_with(self, word: int, values: DeviceArray | None) -> None:
        """Launch everything, with the address of another array in place of this word, if one is given."""
        stream = DEFAULT_STREAM if self.source is OWN else self._stream()
        with self._lock:
            if values is not None:
                self._words[word] = values.address
            if self._is_simple:
                self._put(stream)
                return
            kept = self._allocated(stream)
            self._launch(stream)
        del kept  # freed behind the kernels that use them

    def _put(self, stream: int) -> None:
        """Put the kernels on a stream."""
        if stream != self._stream_set:
            for pack in self._packs:
                pack.config.stream = stream
            self._stream_set = stream
        self.device.run(self._ready)

    def _allocated(self, stream: int) -> list[Owned]:
        """Memory for the temporaries, whose addresses are put into the words."""
        made = [Owned(nbytes, self.device.ordinal, stream) for nbytes in self.plan.temporaries]
        for k, owned in enumerate(made):
            if Temporary(k) in self._place:
                self._words[self._place[Temporary(k)]] = owned.address
        return made

    def _launch(self, stream: int) -> None:
        if self.plan.failed is not None:
            raise failure(self.plan.failed.value)
        if self._status is not None:
            self.device.clear(self._status.address, _STATUS_BYTES, stream)
        self._put(stream)
        if self._status is not None:
            self._read_status(self._status.address, stream)

    def _read_status(self, address: int, stream: int) -> None:
        """Wait for the kernels, and raise what they report."""
        found = np.empty(1, np.int32)
        self.device.copy_out(address_of(found), address, _STATUS_BYTES, stream)
        if found[0] != Status.OK.value:
            raise failure(int(found[0]))


def _fixed(word: Word, arguments: Sequence[Any]) -> int:
    """What a word is from the beginning; those of memory that is allocated later are filled in then."""
    match word:
        case Number(value):
            return value
        case Argument(place):
            given = arguments[place]
            if not isinstance(given, DeviceArray):
                raise CompilerBug(given, "a kernel of a device takes arrays on the device")
            return given.address
    return 0


class _Pack:
    """One kernel's launch as the driver wants it: its configuration, its handle, and where its arguments are."""

    __slots__ = ("_pointers", "addresses", "config")

    def __init__(self, step: Step, function: int, base: int, places: Mapping[Word, int]) -> None:
        self.config = LaunchConfig(step.blocks, 1, 1, step.threads, 1, 1, 0, None, None, 0)
        self._pointers = array("Q", [base + 8 * places[word] for word in step.words])
        self.addresses = ctypes.addressof(self.config), function, self._pointers.buffer_info()[0]
