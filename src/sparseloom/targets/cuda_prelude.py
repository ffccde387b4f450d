"""The helpers of kernels for a GPU: types, small functions, complex numbers, atomic updates.

NVRTC compiles without headers, so the text of a kernel holds every helper that it uses. Helpers of C that CUDA C++ understands are shared.
"""

from __future__ import annotations

from functools import cache

from sparseloom.core.dtypes import INDEX_DTYPES, VALUE_DTYPES, DType, real_part
from sparseloom.targets import c_prelude
from sparseloom.targets.c_expr import Piece, c_type, operate
from sparseloom.targets.runtime_files import parts, spelled
from sparseloom.targets.target import Atomic

DEVICE = "static __device__ __forceinline__"
# A mask has a bit for each lane of a warp: its type, and the functions that count bits and find the first and the last.
_MASKS = {32: ("uint32_t", "__popc", "__ffs", "__clz"), 64: ("uint64_t", "__popcll", "__ffsll", "__clzll")}
_OPERATORS = ("add", "multiply", "minimum", "maximum", "logical_or", "logical_and", "logical_xor")


def atomic_way(op: str, dtype: DType) -> Atomic | None:
    """How a GPU updates one location."""
    if op == "add" and (dtype.itemsize in (4, 8) or dtype.kind == "c"):
        return Atomic.UPDATE
    if op in ("minimum", "maximum") and dtype.kind in "iu" and dtype.itemsize in (4, 8):
        return Atomic.UPDATE
    return Atomic.SWAP if dtype.itemsize <= 8 else None


def _of_warps(lanes: int) -> dict[str, str]:
    """What depends on how many lanes a warp has."""
    kind, count, first, leading = _MASKS[32 if lanes <= 32 else 64]
    bits = 32 if lanes <= 32 else 64
    return {
        "WARP": f"enum {{ WARP = {lanes} }};",
        "lane_mask": f"typedef {kind} lane_mask;",
        "count_lanes": f"{DEVICE} int count_lanes(lane_mask mask) {{ return {count}(mask); }}",
        "first_lane": f"{DEVICE} int first_lane(lane_mask mask) {{ return {first}(mask) - 1; }}",
        "last_lane": f"{DEVICE} int last_lane(lane_mask mask) {{ return {bits - 1} - {leading}(mask); }}",
    }


@cache
def helpers(lanes: int) -> dict[str, str]:
    """Every helper by name, for warps of so many lanes."""
    found = {name: text.replace("static inline", DEVICE) for name, text in (c_prelude.helpers() | parts("halves.cuh")).items()}
    found |= _of_warps(lanes) | parts("moves.cuh") | parts("complex.cuh")
    found |= {name: text for file in ("types.cuh", "warps.cuh") for name, text in parts(file).items() if name not in ("types", "search")}
    for name in parts("complex.cuh"):
        if name not in ("complex_number", "cpow", "cpowf", "times_i"):
            found[f"{name}f"] = _in_single_precision(name)
    for dtype in VALUE_DTYPES:
        found |= _of_dtype(dtype)
    return found


def _in_single_precision(name: str) -> str:
    """What C calls a function of a complex number in single precision."""
    kind = "float" if name in ("creal", "cimag", "cabs") else "complex64_t"
    return f"{DEVICE} {kind} {name}f(complex64_t z) {{ return {name}(z); }}"


def _of_dtype(dtype: DType) -> dict[str, str]:
    """The helpers of one dtype: complex numbers, what lanes hand each other, atomic updates."""
    kind, found = c_type(dtype), {}
    if dtype.kind == "c":
        part = c_type(real_part(dtype))
        found[kind] = f"typedef complex_number<{part}> {kind};"
        found[f"{dtype}_of"] = f"{DEVICE} {kind} {dtype}_of({part} re, {part} im) {{ return {kind}(re, im); }}"
        for name in ("divide", "power", "log1p", "expm1"):
            template = c_prelude.helpers()[f"{name}_{dtype}"]
            found[f"{name}_{dtype}"] = template.replace("static inline", DEVICE).replace("__builtin_complex(", f"{dtype}_of(")
        handed = "{__shfl_xor_sync(mask, value.re, step), __shfl_xor_sync(mask, value.im, step)}"
    else:
        handed = f"({kind})__shfl_xor_sync(mask, value, step)"
    for name, instruction in (("across", "xor"), ("before", "up")):
        given = handed.replace("shfl_xor", f"shfl_{instruction}")
        found[f"{name}_{dtype}"] = f"{DEVICE} {kind} {name}_{dtype}(lane_mask mask, {kind} value, int step) {{ return {given}; }}"
    if dtype in INDEX_DTYPES:
        found[f"search_{dtype}"] = spelled(parts("warps.cuh")["search"], {"INDEX": dtype.name})
    for name in _OPERATORS:
        if (text := _atomic(name, dtype)) is not None:
            found[f"atomic_{name}_{dtype}"] = text
    return found


def _atomic(name: str, dtype: DType) -> str | None:
    """The function that updates one location, if there is one."""
    ordered = dtype.kind != "c" or name in ("add", "multiply")
    if not ordered or (dtype.kind != "b" and name.startswith("logical")) or atomic_way(name, dtype) is None:
        return None
    kind = c_type(dtype)
    if atomic_way(name, dtype) is Atomic.UPDATE:
        return f"{DEVICE} void atomic_{name}_{dtype}({kind} *place, {kind} value) {{ {_updated(name, dtype)} }}"
    swap, swap_part = parts("atomics.cuh").values()
    words = {
        "OPERATOR": name,
        "NAME": dtype.name,
        "TYPE": kind,
        "WORD": "uint64_t" if dtype.itemsize == 8 else "uint32_t",
        "COMBINED": operate(name, [Piece("now"), Piece("value")], dtype).text,
        "MASK": "0xffu" if dtype.itemsize == 1 else "0xffffu",
    }
    return spelled(swap_part if dtype.itemsize < 4 else swap, words)


def _updated(name: str, dtype: DType) -> str:
    """The instruction. Sums of signed numbers are those of unsigned ones."""
    if dtype.kind == "c":
        return "atomicAdd(&place->re, value.re); atomicAdd(&place->im, value.im);"
    call = {"add": "atomicAdd", "minimum": "atomicMin", "maximum": "atomicMax"}[name]
    if name == "add" and dtype.kind == "f":
        return f"if (is_mine(&place, value)) {call}(place, value);"
    if dtype.name == "int64" and name == "add":
        return f"{call}((uint64_t *)place, (uint64_t)value);"
    return f"{call}(place, value);"


def prelude_for(text: str, lanes: int) -> str:
    """The types and helpers that kernels with this text need, for warps of so many lanes."""
    statuses = f"enum {{ {', '.join(c_prelude.STATUS_NAMES)} }};"
    return "\n\n".join([parts("types.cuh")["types"], statuses, *c_prelude.needed(text, helpers(lanes)).values()]) + "\n"
