"""Binding for a device: the arrays of storages laid out for the launches of a function, and its result read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sparseloom.formats.storage import Storage
from sparseloom.loops.nodes import Function
from sparseloom.runtime.binding import Arguments, Call
from sparseloom.runtime.cuda.arrays import WORD, DeviceArray
from sparseloom.runtime.cuda.device import device
from sparseloom.runtime.cuda.host_code import KernelOf, run_host_code
from sparseloom.runtime.cuda.launching import Launches, load_module
from sparseloom.runtime.cuda.storages import Place


@dataclass(frozen=True, eq=False)
class Program:
    """A function for a device: its host code, and the text of its kernels."""

    function: Function
    source: str
    kernels: Sequence[KernelOf]

    def source_for(self, arguments: Arguments) -> str:
        """The text for these arrays: one that begins within a word has its neighbours moved one by one."""
        begins = (array.address for array in arguments if isinstance(array, DeviceArray) and len(array))
        return f"#define ANYWHERE\n{self.source}" if any(begin % WORD for begin in begins) and "_wide<" in self.source else self.source


def bind_launches(program: Program, arguments: Arguments, read: Callable[[Sequence[Any]], Storage], place: Place) -> Call:
    """Prepare a call: what the host works out is worked out now, and what is left are launches."""
    plan = run_host_code(program.function, program.kernels, arguments)
    module = load_module(program.source_for(arguments), place.ordinal)
    launches = Launches(module, plan, arguments, place.source)

    def made() -> Storage:
        launches.start()
        return read(arguments)

    return Call(launches.start, made, launched=launches)


def awaited(call: Call) -> Call:
    """A call that returns when the device is done."""

    def around(start: Callable[[], Any]) -> Any:
        made = start()
        device().finish()
        return made

    return call.within(around)
