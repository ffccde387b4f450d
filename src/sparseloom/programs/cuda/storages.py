"""Storages on a device: the same format and levels as in main memory, with arrays of the device in place of NumPy's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sparseloom.core.errors import DeviceError
from sparseloom.formats.level import LevelData
from sparseloom.formats.storage import Storage, sealed
from sparseloom.notation.nodes import TensorVar
from sparseloom.plan.statistics import known_alike
from sparseloom.programs.binding import allocate
from sparseloom.programs.cuda.arrays import DeviceArray, copied_in, empty
from sparseloom.programs.cuda.device import device
from sparseloom.programs.cuda.streams import OWN, common_source, current_stream
from sparseloom.targets.target import Calling, Target

POSITIONS = "pos"


def to_device(storage: Storage, ordinal: int = 0, source: str = OWN) -> Storage:
    """A copy on a device; what is there already stays as it is."""
    if storage.device != "cpu":
        return storage
    made = _placed(storage, copied_in(storage.values, ordinal, source), ordinal, source)
    device(ordinal).wait(current_stream(source, ordinal))  # whatever stream reads it later
    known_alike(made, storage)
    return made


def to_host(storage: Storage) -> Storage:
    """A copy in main memory; what is there already stays as it is. It waits for the device."""
    if storage.device == "cpu":
        return storage
    levels = tuple(LevelData({name: _host(array) for name, array in level.arrays.items()}, level.scalars) for level in storage.levels)
    return sealed(replace(storage, levels=levels, values=_host(storage.values)))


def placed(storage: Storage, where: Any) -> Storage:
    """A storage where it is wanted: ``cpu``, ``cuda``, or ``cuda:1``."""
    kind, _, number = str(where).partition(":")
    if (kind, number) == ("cpu", ""):
        return to_host(storage)
    if kind != "cuda" or (number and not number.isdecimal()):
        raise DeviceError(f"there is no device {where!r}; there are 'cpu', 'cuda', and 'cuda:1' and so on where there are several")
    values: Any = storage.values
    if number and storage.device != "cpu" and values.ordinal != int(number):
        return to_device(to_host(storage), int(number))
    return to_device(storage, int(number or 0))


def _host(array: Any) -> Any:
    return array.to_host()


def _placed(storage: Storage, values: Any, ordinal: int, source: str) -> Storage:
    """A storage with copies of the index arrays on a device, and these values."""
    levels = tuple(
        LevelData({name: copied_in(a, ordinal, source, name == POSITIONS) for name, a in level.arrays.items()}, level.scalars)  # type: ignore[misc]
        for level in storage.levels
    )
    return sealed(replace(storage, levels=levels, values=values))


def require_place(target: Target, operands: Mapping[str, Storage]) -> None:
    """Refuse operands on a device where a target computes in main memory."""
    there = [name for name, storage in operands.items() if storage.device != "cpu"] if target.calling is not Calling.LAUNCHED else []
    if there:
        them, are = ", ".join(there), "is" if len(there) == 1 else "are"
        raise DeviceError(
            f"{them} {are} on cuda, and {target.title} computes in main memory\n"
            f"  help: copy with {there[0]}.to_host(), or compute there with target='cuda'"
        )


def elsewhere(name: str) -> DeviceError:
    """What is raised for a tensor in main memory where one on the device is needed."""
    return DeviceError(f"{name} is a tensor in main memory, and CUDA computes on the device\n  help: copy it once, with {name}.to_device()")


@dataclass(frozen=True)
class Place:
    """Where a call computes: on which device, and after whose streams."""

    ordinal: int = 0
    source: str = OWN

    @staticmethod
    def of(storages: Mapping[str, Storage]) -> Place:
        """Where these operands ask a call to compute; those on two devices are refused."""
        arrays: dict[str, Any] = {name: storage.values for name, storage in storages.items() if storage.device != "cpu"}
        ordinals = {array.ordinal for array in arrays.values()}
        if len(ordinals) > 1:
            told = ", ".join(f"{name} is on cuda:{array.ordinal}" for name, array in arrays.items())
            raise DeviceError(f"the operands are on several devices: {told}\n  help: copy them to one device")
        return Place(next(iter(ordinals), 0), common_source(tuple(array.source for array in arrays.values())))

    def room(self, count: int, dtype: Any) -> Any:
        """Room for values."""
        return empty(count, dtype, self.ordinal, self.source)

    def move(self, storages: dict[str, Storage], names: Iterable[str | None]) -> list[Callable[[], None]]:
        """Have on the device those of the storages that are read; what brings copies up to date is returned."""
        refreshes = []
        for name in dict.fromkeys(names):
            if name is not None and name in storages:
                storages[name], refresh = self.moved(storages[name])
                refreshes += [] if refresh is None else [refresh]
        return refreshes

    def moved(self, storage: Storage) -> tuple[Storage, Callable[[], None] | None]:
        """A storage on the device, and what brings its values up to date, if it is a copy. They are not copied before that."""
        if storage.device != "cpu":
            return storage, None
        values, given = self.room(len(storage.values), storage.dtype), storage.values

        def refresh() -> None:
            values[:] = given

        return _placed(storage, values, self.ordinal, self.source), refresh


def room_for(tensor: TensorVar, shape: tuple[int, ...], place: Place | None) -> Any:
    """Room for the values of a dense result, in main memory or on a device."""
    return allocate(tensor, shape) if place is None else place.room(math.prod(tensor.format.level_sizes(shape)), tensor.stored_dtype)


def is_writable(values: Any) -> bool:
    """Whether an output may be written to, wherever it is."""
    return bool(values.is_writable if isinstance(values, DeviceArray) else values.flags.writeable)
