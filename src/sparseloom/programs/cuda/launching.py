"""Launches that are prepared: loaded kernels, and packs of arguments of which only addresses change from call to call.

    words     | address of y | address of A2_pos | ... | i_size |      one for everything that some kernel takes
    pack      | where word 0 is | where word 4 is | ...                what the driver wants: one for each kernel

The driver copies the words when it is told to launch, so that they can be changed for the next call at once.
"""

from __future__ import annotations

import ctypes
import weakref
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from sparseloom.core.errors import CompilerBug
from sparseloom.loops.nodes import Status
from sparseloom.programs.calling import address_of, failure
from sparseloom.programs.cuda.arrays import DeviceArray, Owned
from sparseloom.programs.cuda.device import device
from sparseloom.programs.cuda.driver import LaunchConfig
from sparseloom.programs.cuda.host_code import Argument, HostPlan, Number, StatusWord, Temporary, Word
from sparseloom.programs.cuda.nvrtc import compile_cubin
from sparseloom.programs.cuda.streams import DEFAULT_STREAM, OWN, current_stream

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


def load_module(source: str, ordinal: int) -> Module:
    """The kernels of a text, loaded on a device. Texts that were used lately stay loaded; of two threads that come at once, both load."""
    key = (source, ordinal)
    found = _modules.get(key)
    if found is None:
        found = _modules.setdefault(key, Module(source, ordinal))
        while len(_modules) > _REMEMBERED:
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
        self._is_simple = plan.failed is None and not plan.may_fail and not plan.temporaries
        self._pack = _Pack(module, plan, arguments)
        self._spare: list[_Pack] = []  # for threads that come at once
        if source != OWN and any(isinstance(given, DeviceArray) and given.source == OWN for given in arguments):
            self.device.follow(self._stream())  # our own arrays were made on the default stream

    def _stream(self) -> int:
        return current_stream(self.source, self.device.ordinal)

    def start(self) -> None:
        """Launch everything."""
        stream = DEFAULT_STREAM if self.source is OWN else self._stream()
        if self._is_simple:
            self._pack.put(stream)
        else:
            self._launch(self._pack, stream)

    def word_of(self, values: Any) -> int | None:
        """Which word has the address of an array; None if none has, or more than one."""
        words = [self._pack.places.get(Argument(k)) for k, each in enumerate(self._keep[1]) if each is values]
        return words[0] if len(words) == 1 else None

    def let_go(self) -> None:
        """Hold no arrays from now on; whoever starts it sees to them."""
        self._keep = (self._keep[0], ())
        self._pack.own = ()
        self._spare.append(self._pack)

    def start_with(self, word: int, values: DeviceArray | None) -> None:
        """Launch everything, with the address of another array in place of this word, if one is given. It must have been ``let_go``."""
        stream = DEFAULT_STREAM if self.source is OWN else self._stream()
        try:
            pack = self._spare.pop()
        except IndexError:  # other threads have them all
            pack = self._pack.copy(self._keep[0])
        if values is not None:
            pack.words[word] = values.address
        if self._is_simple:
            pack.put(stream)
        else:
            self._launch(pack, stream)
            pack.own = ()  # freed behind the kernels that use them
        self._spare.append(pack)

    def _launch(self, pack: _Pack, stream: int) -> None:
        """Launch kernels that have temporaries, or may fail."""
        if self.plan.failed is not None:
            raise failure(self.plan.failed.value)
        pack.allocate(stream)
        status = pack.status
        if status:
            self.device.clear(status, _STATUS_BYTES, stream)
        pack.put(stream)
        if status:
            self._read_status(status, stream)

    def _read_status(self, address: int, stream: int) -> None:
        """Wait for the kernels, and raise what they report."""
        found = np.empty(1, np.int32)
        self.device.copy_out(address_of(found), address, _STATUS_BYTES, stream)
        if found[0] != Status.OK.value:
            raise failure(int(found[0]))


class _Pack:
    """The words of a call, and the launches of its kernels as the driver wants them. ``own`` is memory that lives during the call."""

    def __init__(self, module: Module, plan: HostPlan, arguments: Sequence[Any]) -> None:
        self.device = module.device
        self.plan = plan
        words = list(dict.fromkeys(word for step in plan.steps for word in step.words))
        self.places = {word: place for place, word in enumerate(words)}
        self.words = array("q", [_fixed(word, arguments) for word in words])
        self.own: Sequence[Owned] = ()
        self._prepare(module)

    def _prepare(self, module: Module) -> None:
        """Say where everything is. What is written down must stay alive with it."""
        base, places, steps = self.words.buffer_info()[0], self.places, self.plan.steps
        self._configs = [LaunchConfig(step.blocks, 1, 1, step.threads, 1, 1, 0, None, None, 0) for step in steps]
        self._pointers = [array("Q", [base + 8 * places[word] for word in step.words]) for step in steps]
        functions = [module.function(step.kernel) for step in steps]
        self._ready = tuple(
            (ctypes.addressof(config), function, pointers.buffer_info()[0])
            for config, function, pointers in zip(self._configs, functions, self._pointers, strict=True)
        )
        self._stream = DEFAULT_STREAM

    def copy(self, module: Module) -> _Pack:
        """The same with words of its own."""
        made = copy(self)
        made.words, made.own = self.words[:], ()
        made._prepare(module)
        return made

    @property
    def status(self) -> int:
        """Where the status is; 0 if there is none."""
        place = self.places.get(StatusWord())
        return 0 if place is None else self.words[place]

    def allocate(self, stream: int) -> None:
        """Have memory for temporaries and the status."""
        if self.own:
            return
        wanted: list[tuple[Word, int]] = [(Temporary(k), nbytes) for k, nbytes in enumerate(self.plan.temporaries)]
        wanted += [(StatusWord(), _STATUS_BYTES)] if self.plan.may_fail else []
        made = []
        for word, nbytes in wanted:
            made.append(Owned(nbytes, self.device.ordinal, stream))
            if word in self.places:
                self.words[self.places[word]] = made[-1].address
        self.own = made

    def put(self, stream: int) -> None:
        """Put the kernels on a stream."""
        if stream != self._stream:
            for config in self._configs:
                config.stream = stream
            self._stream = stream
        self.device.run(self._ready)


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
