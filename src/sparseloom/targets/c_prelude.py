"""The helpers of C kernels: small static functions, each printed only if a kernel uses it.

A helper is found by its name, which no name of a kernel can equal, so scanning the text for identifiers tells what is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from sparseloom.core.dtypes import INDEX_DTYPES, VALUE_DTYPES, DType, real_part
from sparseloom.loops.hashing import HASH_FACTOR
from sparseloom.loops.nodes import Status
from sparseloom.targets.c_expr import HALF_TYPES, Piece, c_type, operate
from sparseloom.targets.c_vectors import vector_helpers
from sparseloom.targets.runtime_files import parts, spelled
from sparseloom.targets.target import Atomic

_MATH = set(
    "NAN INFINITY isnan isinf isfinite M_LN2 M_LN10 fabs pow hypot sqrt cbrt exp log log1p expm1 log2 log10 floor ceil trunc fmod copysign "
    "sin cos tan asin acos atan atan2 sinh cosh tanh".split()
)
_COMPLEX = set("cabs conj creal cimag cpow csqrt cexp clog csin ccos ctan casin cacos catan csinh ccosh ctanh".split())
_HEADERS = {
    "stdlib.h": {"malloc", "calloc", "realloc", "free", "NULL"},
    "string.h": {"memset", "memcpy", "memmove"},
    "sys/mman.h": {"mmap", "munmap", "mremap"},
    "time.h": {"clock_gettime"},
    "math.h": _MATH | {f"{name}f" for name in _MATH},
    "complex.h": _COMPLEX | {f"{name}f" for name in _COMPLEX},
}


_PLAIN = ("team.h", "polling.h", "indices.h", "registers.h", "memory.h", "pieces.h")
_OF_INDICES = ("indices.h", "pieces.h", "entries.h", "sort.h")
HUGE_PAGE = 1 << 21  # bytes
PLACES = 128  # how many mappings stand on the shelf: threads that make a result together have several each
_NUMBERS = {"HASH_FACTOR": str(HASH_FACTOR), "HUGE_PAGE_BYTES": str(HUGE_PAGE), "SHELF_PLACES": str(PLACES)}
DECLARED = ("HEADER", "HUGE_PAGE", "PLACES", "use_shelf", "give_back", "ready_team", "end_team", "use_team")  # by helpers of other names
_ATOMIC_OPERATORS = ("add", "multiply", "minimum", "maximum", "logical_or", "logical_and", "logical_xor")


def atomic_way(op: str, dtype: DType) -> Atomic:
    """How C updates one location: no processor swaps 16 bytes everywhere, so one lock is for all of them."""
    if op == "add" and dtype.kind in "iuf":
        return Atomic.UPDATE
    return Atomic.SWAP if dtype.itemsize <= 8 else Atomic.LOCK


@cache
def helpers() -> dict[str, str]:
    """Every helper by name."""
    found = {name: spelled(text, _NUMBERS) for file in _PLAIN for name, text in parts(file).items() if "INDEX" not in text}
    found |= {name: text for name, text in parts("halves.h").items() if "HALF" not in text}
    for name in HALF_TYPES:
        found |= {f"{part}_{name}": spelled(parts("halves.h")[part], {"HALF": name}) for part in ("short_of", "short_to")}
    for dtype in VALUE_DTYPES:
        found |= dict(_of_dtype(dtype))
    return found


def _of_dtype(dtype: DType) -> Iterator[tuple[str, str]]:
    """The helpers of one dtype."""
    part = real_part(dtype)
    words = {
        "NAME": dtype.name,
        "TYPE": c_type(dtype),
        "UNSIGNED": "uint64_t" if dtype.itemsize == 8 else "uint32_t",
        "REAL": c_type(part),
        "SUFFIX": "f" if part == np.float32 else "",
    }
    if dtype in INDEX_DTYPES:
        yield from of_index(dtype).items()
    kind = {"c": "complex", "f": "float", "i": "signed", "u": "unsigned"}.get(dtype.kind, "")
    templates = parts("complex.h") if kind == "complex" else _of_kind(kind)
    for name, template in templates.items():
        yield f"{dtype}_of" if name == "of" else f"{name}_{dtype}", spelled(template, words)
    if kind == "complex":
        yield words["TYPE"], f"typedef {words['REAL']} _Complex {words['TYPE']};"
    yield from vector_helpers(dtype)
    yield from _combining(dtype, words)


def _of_kind(kind: str) -> dict[str, str]:
    """The functions of real numbers of a kind."""
    named = ((name.partition(" "), text) for name, text in parts("numbers.h").items())
    return {name: text for (found, _, name), text in named if found == kind}


def of_index(dtype: DType) -> dict[str, str]:
    """The helpers for coordinates and positions of one dtype."""
    words = {"INDEX": dtype.name}
    found = {name: text for file in _OF_INDICES for name, text in parts(file).items()}
    rank = found.pop("rank")
    ranks = {f"rank{lanes}": spelled(rank, {"WIDTH": str(lanes)}) for lanes in (4, 8, 16)}
    return {f"{name}_{dtype}": spelled(text, words) for name, text in (found | ranks).items() if "INDEX" in text}


def _combining(dtype: DType, words: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Atomic updates of up to 8 bytes, and reductions that OpenMP lacks."""
    atomic, reduce = parts("combining.h").values()
    for name in _ATOMIC_OPERATORS:
        ordered = dtype.kind != "c" or name in ("add", "multiply")
        if dtype.itemsize <= 8 and ordered and (dtype.kind == "b" or not name.startswith("logical")):
            combined = operate(name, [Piece("seen"), Piece("value")], dtype).text
            yield f"atomic_{name}_{dtype}", spelled(atomic, {**words, "OPERATOR": name, "COMBINED": combined})
    if dtype.kind == "f":
        for name, first in (("minimum", "INFINITY"), ("maximum", "-INFINITY")):
            yield f"reduce_{name}_{dtype}", spelled(reduce, {**words, "OPERATOR": name, "FIRST": first})


STATUS_NAMES: tuple[str, ...] = tuple(status.name for status in Status)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def needed(text: str, helpers: Mapping[str, str]) -> dict[str, str]:
    """The helpers that a text uses, and those that they use, in an order in which each is known before it is used."""
    chosen: dict[str, str] = {}

    def choose(part: str) -> None:
        for name in dict.fromkeys(_IDENTIFIER.findall(part)):
            if name in helpers and name not in chosen and helpers[name] != part:
                choose(helpers[name])
                chosen[name] = helpers[name].strip("\n")

    choose(text)
    return chosen


# gcc 12 makes vectors of a guarded complex sum that add what the guard leaves out, where it makes selections of branches.
_COMPLEX_SUMS = """#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize ("no-tree-loop-if-convert")
#endif"""


def prelude_for(text: str) -> str:
    """The includes and helpers that kernels with this text need."""
    chosen = needed(text, helpers())
    used = set(_IDENTIFIER.findall("\n".join([text, *chosen.values()])))
    headers = ["stdbool.h", "stdint.h", *(header for header, names in _HEADERS.items() if names & used)]
    statuses = [f"enum {{ {', '.join(STATUS_NAMES)} }};"]
    features = ["#define _GNU_SOURCE"] if "mmap" in used else []  # for MREMAP_MAYMOVE, which decides whether to map
    features += [_COMPLEX_SUMS] if used & {"complex64_t", "complex128_t"} else []
    includes = "\n".join([*features, *(f"#include <{header}>" for header in sorted(headers))])
    return "\n\n".join([includes, *statuses, *chosen.values()]) + "\n"
