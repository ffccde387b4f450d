"""CUDA C++ to machine code by NVRTC, which needs neither a device nor a driver. What was compiled is kept on disk, as C kernels are."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

from sparseloom.core.errors import ToolchainError
from sparseloom.programs.cuda.packages import HELP, package
from sparseloom.toolchain.cache import kernel_cache

DEFAULT_ARCHITECTURE = "sm_90"
OPTIONS = ("--std=c++17", "-default-device", "--fmad=true")
_LONGEST_LOG = 4000


def compile_cubin(source: str, architecture: str = DEFAULT_ARCHITECTURE) -> bytes:
    """The machine code of a text for one architecture: from the cache, else compiled."""
    options = (*OPTIONS, f"--gpu-architecture={architecture}")
    cache, key = kernel_cache(), _key(source, options)
    if (found := cache.read(key)) is not None:
        return found
    with cache.turn(key):
        if (found := cache.read(key)) is not None:
            return found
        made = _compile(source, options)
        cache.put(key, made).close()
    return made


@lru_cache(maxsize=1)
def version() -> tuple[int, int]:
    """The version of NVRTC."""
    major, minor = _answer(_nvrtc(), "nvrtcVersion")
    return int(major), int(minor)


def _key(source: str, options: tuple[str, ...]) -> str:
    """The name of a compiled text in the cache: a digest of everything that its code depends on."""
    return hashlib.sha256(repr(("sparseloom cubin 1", source, options, version())).encode()).hexdigest()


def _compile(source: str, options: tuple[str, ...]) -> bytes:
    nvrtc = _nvrtc()
    (program,) = _answer(nvrtc, "nvrtcCreateProgram", source.encode(), b"kernel.cu", 0, [], [])
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])[0]
        if int(status) != 0:
            raise ToolchainError(f"NVRTC {'.'.join(map(str, version()))} refused a kernel ({status.name})\n{_log(nvrtc, program)}")
        (size,) = _answer(nvrtc, "nvrtcGetCUBINSize", program)
        cubin = bytes(size)  # which NVRTC writes into
        _answer(nvrtc, "nvrtcGetCUBIN", program, cubin)
        return cubin
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(nvrtc: Any, program: Any) -> str:
    """What the compiler said; the beginning, if it is long."""
    (size,) = _answer(nvrtc, "nvrtcGetProgramLogSize", program)
    log = bytes(size)
    _answer(nvrtc, "nvrtcGetProgramLog", program, log)
    text = log.rstrip(b"\0").decode(errors="replace").strip()
    return text if len(text) <= _LONGEST_LOG else f"{text[:_LONGEST_LOG]}\n..."


def _nvrtc() -> Any:
    """NVRTC's functions; the library behind them is looked for at the first call."""
    return package("cuda.bindings.nvrtc")


def _answer(nvrtc: Any, function: str, *arguments: Any) -> tuple[Any, ...]:
    """What a function of NVRTC returns besides its status."""
    try:
        status, *answer = getattr(nvrtc, function)(*arguments)
    except RuntimeError as missing:  # the bindings are there, the library is not
        raise ToolchainError(f"kernels for CUDA need NVRTC, which cannot be loaded: {missing}\n  help: {HELP}") from None
    if int(status) != 0:
        raise ToolchainError(f"{function} failed: {status.name}")
    return tuple(answer)
