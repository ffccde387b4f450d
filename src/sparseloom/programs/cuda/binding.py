"""Binding for a device: the arrays of storages laid out for the launches of a function, and its result read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sparseloom.formats.storage import Storage
from sparseloom.programs.binding import Arguments, Call
from sparseloom.programs.cuda.arrays import WORD, DeviceArray
from sparseloom.programs.cuda.device import device
from sparseloom.programs.cuda.host_code import run_host_code
from sparseloom.programs.cuda.launching import Launches, load_module
from sparseloom.programs.cuda.storages import Place
from sparseloom.targets.target import Launchable


def source_for(launchable: Launchable, arguments: Arguments) -> str:
    """The text for these arrays: if one begins within a word, its elements are moved one by one."""
    begins = (array.address for array in arguments if isinstance(array, DeviceArray) and len(array))
    source = launchable.source
    return f"#define ANYWHERE\n{source}" if any(begin % WORD for begin in begins) and "_wide<" in source else source


def bind_launches(launchable: Launchable, arguments: Arguments, read: Callable[[Sequence[Any]], Storage], place: Place) -> Call:
    """Prepare a call: what the host works out is worked out now, and what is left are launches."""
    plan = run_host_code(launchable.function, launchable.kernels, arguments)
    module = load_module(source_for(launchable, arguments), place.ordinal)
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
