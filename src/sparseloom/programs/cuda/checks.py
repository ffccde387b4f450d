"""Validating storage on a device: every promise of its levels, by kernels of our own, with one answer that is read back.

    positions     start at 0, do not fall, end within the coordinates
    coordinates   in range; below one parent in order and different, as the level promises

Each kernel leaves the first fault in one word, ``place * 16 + what``; a word that is all ones means that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparseloom.core.dtypes import KNOWN_DTYPES, DType, is_value_dtype, kind_of, real_part
from sparseloom.core.errors import StorageError
from sparseloom.formats.level import Fault
from sparseloom.formats.levels.compressed import Compressed
from sparseloom.formats.levels.dense import Dense
from sparseloom.formats.levels.singleton import Singleton
from sparseloom.formats.storage import Storage
from sparseloom.formats.validate import fault_error
from sparseloom.programs.cuda.arrays import DeviceArray, empty
from sparseloom.programs.cuda.host_code import Argument, HostPlan, Number, Step, Word
from sparseloom.programs.cuda.launching import Launches, load_module
from sparseloom.targets.runtime_files import parts, spelled

_THREADS = 256
_NO_FAULT = 2**64 - 1
_START, _FALL, _END, _RANGE, _ORDER, _REPEAT = range(1, 7)


def _of_types(part: str, word: str, types: Mapping[str, str]) -> list[str]:
    """A part of the kernels for each of some types."""
    return [spelled(parts("checks.cu")[part], {"NAME": name, word: text}) for name, text in types.items()]


SOURCE = "\n\n".join([
    parts("checks.cu")["common"],
    *_of_types("indices", "TYPE", {"int32": "int", "int64": "long long"}),
    *_of_types("numbers", "TYPE", {"float32": "float", "float64": "double"}),
    *_of_types("halves", "INFINITE", {"float16": "0x7c00", "bfloat16": "0x7f80"}),
])  # fmt: skip


def has_nan(values: DeviceArray) -> bool:
    """Whether some value on a device is no number. It waits for the device."""
    if kind_of(values.dtype) not in "fc" or not len(values):
        return False
    count = len(values) * (2 if values.dtype.kind == "c" else 1)
    return _Checker(values).ask(real_part(values.dtype), "numbers", count, values, count) is not None


def check_on_device(storage: Storage, name: str = "tensor") -> None:
    """Raise a StorageError that names the array and the place if a storage on a device breaks a promise of its format.

    It waits for the device. What positions end with is known from then on.
    """
    _check_values(storage, name)
    sizes, checker = storage.format.level_sizes(storage.shape), _Checker(storage.values)
    positions = 1
    for k, (level, data, size) in enumerate(zip(storage.format.levels, storage.levels, sizes, strict=True)):
        match level:
            case Dense():
                positions *= size
                checker.tied = None
                continue
            case Compressed():
                fault = checker.segments(data.arrays["pos"], data.arrays["crd"], positions)
                positions = 0 if fault else int(data.arrays["pos"][positions])
                fault = fault or checker.column(data.arrays["crd"], positions, size, level)
            case Singleton():
                fault = checker.column(data.arrays["crd"], positions, size, level)
            case _:
                fault = Fault("values", None, f"cannot be checked on a device: there is no check for {type(level).__name__} there")
        if fault is not None:
            raise fault_error(storage, name, k, fault)
    if len(storage.values) < positions:
        raise StorageError(f"{name}: values has {len(storage.values)} elements; the format {storage.format} needs {positions}")


def _check_values(storage: Storage, name: str) -> None:
    if not is_value_dtype(storage.dtype):
        raise StorageError(f"{name}: values have dtype {storage.dtype}; there are {KNOWN_DTYPES}")
    if not all(level.ordered for level in storage.format.levels):
        raise StorageError(f"{name}: coordinates in no order cannot be checked on a device; the format is {storage.format}")


class _Checker:
    """Runs the kernels. ``tied`` says which positions stand below the same parent as those before them."""

    def __init__(self, values: Any) -> None:
        self.ordinal: int = values.ordinal
        self.source: str = values.source
        self.tied: DeviceArray | None = None

    def segments(self, pos: Any, crd: Any, parents: int) -> Fault | None:
        """What is wrong with positions, if something is. Ties below them are then known."""
        if len(pos) != parents + 1:
            return Fault("pos", None, f"has {len(pos)} elements; {parents} positions above need {parents + 1}")
        found = self.ask(pos.dtype, "positions", parents + 1, pos, parents, len(crd))
        if found is not None:
            return _segment_fault(*found, pos, len(crd))
        last = np.empty(1, pos.dtype)
        self._read(last, pos, parents)
        pos.ends = 0, int(last[0])
        count = pos.ends[1]
        self.tied = empty(max(count, 1), np.dtype(np.uint8), self.ordinal, self.source)
        begin = _Kernel(_named("beginnings", pos.dtype), parents, (pos, parents, self.tied, count))
        self._run([_Kernel("all_tied", count, (self.tied, count)), begin])
        return None

    def column(self, crd: Any, count: int, size: int, level: Compressed | Singleton) -> Fault | None:
        """What is wrong with the coordinates of a level, if something is."""
        if len(crd) < count:
            return Fault("crd", None, f"has {len(crd)} elements; the positions above need {count}")
        tied = self.tied
        if tied is None:  # one below each parent, none of which are alike
            tied = empty(max(count, 1), np.dtype(np.uint8), self.ordinal, self.source)
            tied[:] = np.zeros(max(count, 1), np.uint8)
        found = self.ask(crd.dtype, "coordinates", count, crd, count, size, tied, int(level.ordered), int(level.unique))
        self.tied = None if level.unique else tied
        return None if found is None else self._coordinate_fault(*found, crd, size)

    def _coordinate_fault(self, place: int, what: int, crd: Any, size: int) -> Fault:
        here = int(crd[place])
        if what == _RANGE:
            return Fault("crd", place, f"= {here} is outside the level's size {size}")
        if what == _REPEAT:
            return Fault("crd", place, f"= {here} repeats crd[{place - 1}] below the same parent; coordinates must be unique")
        before = int(crd[place - 1])
        return Fault("crd", place, f"= {here} is less than crd[{place - 1}] = {before} below the same parent; coordinates must ascend")

    def ask(self, dtype: DType, kernel: str, count: int, *takes: Any) -> tuple[int, int] | None:
        """The first fault that a kernel finds, as a place and what is wrong there."""
        fault = empty(1, np.dtype(np.uint64), self.ordinal, self.source)
        fault[:] = np.array([_NO_FAULT], np.uint64)
        self._run([_Kernel(_named(kernel, dtype), count, (*takes, fault))])
        found = int(fault.to_host()[0])
        return None if found == _NO_FAULT else divmod(found, 16)

    def _run(self, kernels: Sequence[_Kernel]) -> None:
        arguments = [each for kernel in kernels for each in kernel.takes]
        steps, place = [], 0
        for kernel in kernels:
            words: list[Word] = [Number(each) if isinstance(each, int) else Argument(place + k) for k, each in enumerate(kernel.takes)]
            place += len(words)
            if kernel.count:
                steps.append(Step(kernel.name, -(-kernel.count // _THREADS), _THREADS, tuple(words)))
        if steps:
            Launches(load_module(SOURCE, self.ordinal), HostPlan(tuple(steps)), arguments, self.source).start()

    @staticmethod
    def _read(to: Any, source: DeviceArray, place: int) -> None:
        """Copy one element, which nothing is known of yet."""
        part = DeviceArray(source.address + place * source.itemsize, 1, source.dtype, source, source.ordinal, source.source)
        to[:] = part.to_host()


@dataclass(frozen=True)
class _Kernel:
    """A kernel for so many elements, and what it takes."""

    name: str
    count: int
    takes: tuple[Any, ...]


def _named(kernel: str, dtype: DType) -> str:
    return f"{kernel}_{dtype}"


def _segment_fault(place: int, what: int, pos: Any, capacity: int) -> Fault:
    here = int(pos[place])
    if what == _START:
        return Fault("pos", 0, f"= {here}; the first segment starts at 0")
    if what == _FALL:
        return Fault("pos", place, f"= {here} is less than pos[{place - 1}] = {int(pos[place - 1])}; positions must not decrease")
    return Fault("pos", place, f"= {here} is beyond the end of crd, which has {capacity} elements")
