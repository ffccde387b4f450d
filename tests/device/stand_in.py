"""A stand-in for a device, in main memory: everything around kernels runs as it does on a GPU, with the same packs of arguments.

Kernels that were generated are run by the interpreter of the loops, with every access checked; those of our own, which are CUDA C++ without
barriers, are compiled as C and called once for each thread.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sparseloom.core.trees import walk
from sparseloom.loops import interpret
from sparseloom.loops.nodes import Array, Fill, Function, Param, Role, Store
from sparseloom.programs.cuda.driver import LaunchConfig
from sparseloom.targets.target import Target

T = TypeVar("T")

_AS_C = """
#define __global__
#define __device__ static
#define __forceinline__ inline
struct { unsigned x; } blockIdx, blockDim, threadIdx;
void set(unsigned block, unsigned threads, unsigned thread) { blockIdx.x = block; blockDim.x = threads; threadIdx.x = thread; }
static void atomicMin(unsigned long long *at, unsigned long long value) { if (value < *at) *at = value; }
"""


@dataclass
class StandIn:
    """What ``runtime.cuda.device.Device`` offers. ``log`` has what was asked of it, in order."""

    folder: Path
    kernels: dict[str, dict[str, Any]] = field(default_factory=dict)  # generated ones, by the text that they are in
    ordinal: int = 0
    architecture: str = "sm_90"
    log: list[str] = field(default_factory=list)
    blocks: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    functions: list[tuple[str, str]] = field(default_factory=list)
    room_left: int = 1 << 30

    def within(self, work: Callable[[], T]) -> T:
        return work()

    def allocate(self, nbytes: int, stream: int = 0) -> int:
        self.log.append(f"allocate {nbytes}")
        if not nbytes:
            return 0
        made = np.full(nbytes + 16, 0xCD, np.uint8)
        self.blocks[made.ctypes.data] = made
        return made.ctypes.data

    def free(self, address: int, stream: int = 0) -> None:
        self.log.append("free")
        del self.blocks[address]

    def copy_in(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        self._move("copy in", to, source, nbytes)

    def copy_out(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        self._move("copy out", to, source, nbytes)

    def copy(self, to: int, source: int, nbytes: int, stream: int = 0) -> None:
        self._move("copy", to, source, nbytes)

    def clear(self, address: int, nbytes: int, stream: int = 0) -> None:
        self.log.append(f"clear {nbytes}")
        ctypes.memset(address, 0, nbytes)

    def follow(self, stream: int, first: int = 0) -> None:
        self.log.append(f"follow {first} on {stream}")

    def finish(self) -> None:
        self.log.append("finish")

    def wait(self, stream: int = 0) -> None:
        self.log.append("wait")

    def _move(self, what: str, to: int, source: int, nbytes: int) -> None:
        self.log.append(f"{what} {nbytes}")
        ctypes.memmove(to, source, nbytes)

    def load(self, cubin: bytes) -> int:
        self.modules.append(cubin.decode())
        return len(self.modules)

    def unload(self, module: int) -> None:
        self.log.append("unload")

    def function(self, module: int, name: str) -> int:
        self.functions.append((self.modules[module - 1], name))
        return len(self.functions)

    def run(self, launches: Sequence[tuple[int, int, int]]) -> None:
        for config, function, pack in launches:
            self.launch(config, function, pack, None)

    def launch(self, config: int, function: int, pack: int, extra: None) -> int:
        how, (text, name) = LaunchConfig.from_address(config), self.functions[function - 1]
        self.log.append(f"launch {name} {how.blocks} x {how.threads}")
        if text in self.kernels:
            self._interpret(self.kernels[text][name], pack)
        else:
            self._call(text, name, how.blocks, how.threads, pack)
        return 0

    @staticmethod
    def stream_at(config: int) -> int:
        """The stream of a launch."""
        return LaunchConfig.from_address(config).stream or 0

    def _interpret(self, kernel: Any, pack: int) -> None:
        """Run a generated kernel; where it fails, its status is written as the kernel would."""
        count = len(kernel.params) + bool(kernel.fails)
        words = _words(pack, count)
        written = {n.array for n in walk(kernel.launch) if isinstance(n, Store | Fill)}
        params = tuple(
            Param(p, (Role.OUTPUT if p in written else Role.INPUT) if isinstance(p, Array) else Role.SIZE) for p in kernel.params
        )
        arguments = [self._view(word, p) if isinstance(p, Array) else word for p, word in zip(kernel.params, words, strict=False)]
        try:
            interpret.run(Function(kernel.name, params, kernel.launch), arguments, outputs_initialised=True)
        except interpret.KernelStatus as ended:
            ctypes.c_int32.from_address(words[-1]).value = ended.status.value

    def _view(self, address: int, array: Array) -> np.ndarray[Any, Any]:
        """The elements of an allocation from an address on; 16 bytes behind it are not its own."""
        if not address:
            return np.empty(0, array.dtype)
        start = next(start for start, block in self.blocks.items() if start <= address < start + len(block))
        return self.blocks[start][address - start : -16].view(array.dtype)

    def _call(self, text: str, name: str, blocks: int, threads: int, pack: int) -> None:
        """Run a kernel of our own, thread by thread."""
        library = self._compiled(text)
        kernel, taken = getattr(library, name), _taken(text, name)
        words = [ctypes.c_int64(word) for word in _words(pack, taken)]
        for block in range(blocks):
            for thread in range(threads):
                library.set(block, threads, thread)
                kernel(*words)

    def _compiled(self, text: str) -> ctypes.CDLL:
        path = self.folder / f"{abs(hash(text))}.so"
        if not path.exists():
            source = path.with_suffix(".c")
            source.write_text(_AS_C + text.replace('extern "C" ', ""))
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(path), str(source)], check=True)
        return ctypes.CDLL(str(path))


def _words(pack: int, count: int) -> list[int]:
    """What the pointers of a pack point at."""
    pointers = (ctypes.c_uint64 * count).from_address(pack)
    return [ctypes.c_int64.from_address(pointer).value for pointer in pointers]


def _taken(text: str, name: str) -> int:
    """How many parameters a kernel has."""
    return text.split(f" {name}(")[1].split(")")[0].count(",") + 1


def recording(target: Target, device: StandIn) -> Target:
    """A target whose kernels the stand-in knows."""

    def emit(functions: Sequence[tuple[Function, str]]) -> str:
        text = target.emit(functions)
        assert target.kernels is not None
        device.kernels[text] = {kernel.name: kernel for function, entry in functions for kernel in target.kernels(function, entry)}
        return text

    return replace(target, emit=emit)
