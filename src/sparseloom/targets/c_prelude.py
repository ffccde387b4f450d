"""What kernels call beside the C library: small static functions, each printed only where it is used.

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
from sparseloom.targets.c_entries import ENTRY_HELPERS
from sparseloom.targets.c_expr import Piece, c_type, operate
from sparseloom.targets.c_halves import HALF_HELPERS
from sparseloom.targets.c_memory import JOIN_POSITIONS, MEMORY_HELPERS
from sparseloom.targets.c_sort import SORT_HELPERS
from sparseloom.targets.c_team import TEAM_HELPER
from sparseloom.targets.c_vectors import REGISTER_HELPER, vector_helpers
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


def atomic_way(op: str, dtype: DType) -> Atomic:
    """How C updates one location: no processor swaps 16 bytes everywhere, so one lock is for all of them."""
    if op == "add" and dtype.kind in "iuf":
        return Atomic.UPDATE
    return Atomic.SWAP if dtype.itemsize <= 8 else Atomic.LOCK


def _asking_openmp(name: str, question: str, alone: int) -> str:
    """A function that asks OpenMP, or knows the answer where there is none."""
    return f"""
static int64_t {name}(void) {{
#ifdef _OPENMP
  extern int {question}(void);
  return {question}();
#else
  return {alone};
#endif
}}
"""


_FIXED = {
    # For a kernel of so many nested loops that to optimise it takes minutes.
    "PLAINLY": """
#ifdef __clang__
#define PLAINLY __attribute__((optnone, noinline))
#else
#define PLAINLY __attribute__((optimize("O0")))
#endif
""",
    # Unaligned, and allowed to alias the arrays they are loaded from.
    "thread_count": _asking_openmp("thread_count", "omp_get_max_threads", 1),
    "thread_number": _asking_openmp("thread_number", "omp_get_thread_num", 0),
    "prepare_team": TEAM_HELPER,
    # The product wraps around; its leading bits depend on all bits of the key.
    "leading_bits": f"""
static inline int64_t leading_bits(int64_t key, int64_t shift) {{
  return (int64_t)((uint64_t)key * UINT64_C({HASH_FACTOR}) >> shift);
}}
""",
    "floor_quotient": """
static inline int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "floor_remainder": """
static inline int64_t floor_remainder(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
""",
    # Looks at the clock ever more rarely, about every 10 to 50 ms, and asks the caller at most every 50 ms. The countdown to the next
    # look is handed back rather than kept in the state, so that it stays in a register; 0 means stop.
    "poll_state": """
struct poll_state {
  int64_t stride, looked, asked;
};
""",
    # Who calls: what Python answers, which is not asked any more once the interpreter ends, and how many threads ask it now. Who ends
    # the interpreter sets ``ending`` and then waits until nobody asks, so a thread counts itself before it looks.
    "caller_state": """
struct caller_state {
  int32_t (*ask)(void);
  int32_t ending, asking;
};
""",
    "is_cancelled": """
static int32_t is_cancelled(struct caller_state *caller) {
  __atomic_add_fetch(&caller->asking, 1, __ATOMIC_SEQ_CST);
  int32_t stop = !__atomic_load_n(&caller->ending, __ATOMIC_SEQ_CST) && caller->ask();
  __atomic_sub_fetch(&caller->asking, 1, __ATOMIC_SEQ_CST);
  return stop;
}
""",
    "next_countdown": """
static __attribute__((noinline, cold)) int64_t next_countdown(struct poll_state *poll, struct caller_state *caller) {
  const int64_t millisecond = 1000000;
  struct timespec clock;
  if (!caller) return INT64_MAX;
  clock_gettime(CLOCK_MONOTONIC, &clock);
  int64_t now = (int64_t)clock.tv_sec * 1000 * millisecond + clock.tv_nsec;
  if (!poll->asked) poll->asked = now;
  int64_t passed = poll->looked ? now - poll->looked : 0;
  if (passed < 10 * millisecond && poll->stride < INT64_MAX / 2) poll->stride *= 2;
  if (passed > 50 * millisecond && poll->stride > 1) poll->stride /= 2;
  poll->looked = now;
  if (now - poll->asked < 50 * millisecond) return poll->stride;
  poll->asked = now;
  return is_cancelled(caller) ? 0 : poll->stride;
}
""",
}

# {T} is the C type, {D} the dtype, {U} an unsigned type at least as wide, {R} and {f} the component's type and suffix.
_LOWER_BOUND = """
static inline int64_t lower_bound_{D}(const {T} *array, int64_t begin, int64_t end, int64_t key) {{
  int64_t length = end - begin;
  while (length > 0) {{
    int64_t half = length / 2;
    bool before = array[begin + half] < key;
    begin = before ? begin + half + 1 : begin;
    length = before ? length - half - 1 : half;
  }}
  return begin;
}}
"""
_ON_ORDERED = {
    "minimum": "static inline {T} minimum_{D}({T} a, {T} b) {{ return a < b{or_nan} ? a : b; }}",
    "maximum": "static inline {T} maximum_{D}({T} a, {T} b) {{ return a > b{or_nan} ? a : b; }}",
    "sign": "static inline {T} sign_{D}({T} x) {{ return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }}",
}
_ON_INTEGERS = {
    "sign": "static inline {T} sign_{D}({T} x) {{ return (x > 0){minus}; }}",
    "absolute": "static inline {T} absolute_{D}({T} x) {{ return x < 0 ? ({T})-({U})x : x; }}",
    "square": "static inline {T} square_{D}({T} x) {{ return ({T})(({U})x * ({U})x); }}",
    "power": """
static inline {T} power_{D}({T} base, {T} exponent) {{
{reciprocal}  {U} result = 1, factor = ({U})base;
  while (exponent > 0) {{
    if (exponent & 1) result *= factor;
    factor *= factor;
    exponent /= 2;
  }}
  return ({T})result;
}}
""",
}
_SQUARE = "static inline {T} square_{D}({T} x) {{ return x * x; }}"
# As NumPy divides: towards minus infinity, and by 0 to 0.
_ON_INTEGERS |= {
    "floordiv": """
static inline {T} floordiv_{D}({T} a, {T} b) {{
  if (b == 0) return 0;
{negated}  return ({T})(a / b{one_less});
}}
""",
    "mod": """
static inline {T} mod_{D}({T} a, {T} b) {{
  if (b == 0) return 0;
{no_rest}  {T} rest = ({T})(a % b);
  return {rest};
}}
""",
}
# The quotient of the smallest number and -1 does not fit, and traps.
_NEGATED, _NO_REST = "  if (b == -1) return ({T})(0 - ({U})a);\n", "  if (b == -1) return 0;\n"
_ON_FLOATS = {
    "square": _SQUARE,
    "floordiv": """
static inline {T} floordiv_{D}({T} a, {T} b) {{
  if (b == 0) return a / b;
  {T} rest = fmod{f}(a, b), quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign{f}(0, a / b);
  {T} whole = floor{f}(quotient);
  return quotient - whole > ({T})0.5 ? whole + 1 : whole;
}}
""",
    "mod": """
static inline {T} mod_{D}({T} a, {T} b) {{
  {T} rest = fmod{f}(a, b);
  if (b == 0 || rest != rest) return rest;
  return rest == 0 ? copysign{f}(0, b) : (b < 0) != (rest < 0) ? rest + b : rest;
}}
""",
}
_RECIPROCAL = "  if (exponent < 0) return base == 1 ? 1 : base != -1 ? 0 : exponent & 1 ? -1 : 1;\n"
_ON_COMPLEX = {
    "of": "static inline {T} {D}_of({R} real, {R} imag) {{ return __builtin_complex(real, imag); }}",
    # As NumPy divides: Smith's method, and componentwise by a zero.
    "divide": """
static inline {T} divide_{D}({T} a, {T} b) {{
  {R} ar = creal{f}(a), ai = cimag{f}(a), br = creal{f}(b), bi = cimag{f}(b);
  if (fabs{f}(br) >= fabs{f}(bi)) {{
    if (br == 0 && bi == 0) return __builtin_complex(ar / fabs{f}(br), ai / fabs{f}(br));
    {R} ratio = bi / br, scale = 1 / (br + bi * ratio);
    return __builtin_complex((ar + ai * ratio) * scale, (ai - ar * ratio) * scale);
  }}
  {R} ratio = br / bi, scale = 1 / (bi + br * ratio);
  return __builtin_complex((ar * ratio + ai) * scale, (ai * ratio - ar) * scale);
}}
""",
    # As NumPy: z**0 is 1, 0**z is 0 or nan, small whole exponents multiply.
    "power": """
static inline {T} power_{D}({T} a, {T} b) {{
  {R} br = creal{f}(b), bi = cimag{f}(b);
  if (br == 0 && bi == 0) return 1;
  if (a == 0) return br > 0 ? 0 : __builtin_complex(({R})NAN, ({R})NAN);
  if (bi != 0 || !(fabs{f}(br) < 100) || br != trunc{f}(br)) return cpow{f}(a, b);
  {T} result = 1;
  for (int count = (int)fabs{f}(br); count > 0; count /= 2) {{
    if (count & 1) result *= a;
    a *= a;
  }}
  return br < 0 ? divide_{D}(1, result) : result;
}}
""",
    "isnan": "static inline bool isnan_{D}({T} z) {{ return isnan(creal{f}(z)) || isnan(cimag{f}(z)); }}",
    "isinf": "static inline bool isinf_{D}({T} z) {{ return isinf(creal{f}(z)) || isinf(cimag{f}(z)); }}",
    "isfinite": "static inline bool isfinite_{D}({T} z) {{ return isfinite(creal{f}(z)) && isfinite(cimag{f}(z)); }}",
    "log2": "static inline {T} log2_{D}({T} z) {{ return clog{f}(z) / ({R})M_LN2; }}",
    "log10": "static inline {T} log10_{D}({T} z) {{ return clog{f}(z) / ({R})M_LN10; }}",
    "log1p": """
static inline {T} log1p_{D}({T} z) {{
  {R} re = creal{f}(z) + 1, im = cimag{f}(z);
  return __builtin_complex(log{f}(hypot{f}(re, im)), atan2{f}(im, re));
}}
""",
    "expm1": """
static inline {T} expm1_{D}({T} z) {{
  {R} re = creal{f}(z), im = cimag{f}(z), half = sin{f}(im / 2);
  return __builtin_complex(expm1{f}(re) * cos{f}(im) - 2 * half * half, exp{f}(re) * sin{f}(im));
}}
""",
}
_ATOMIC = """
static inline void atomic_{name}_{D}({T} *place, {T} value) {{
  {T} seen, wanted;
  __atomic_load(place, &seen, __ATOMIC_RELAXED);
  do {{
    wanted = {combined};
  }} while (!__atomic_compare_exchange(place, &seen, &wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}}
"""
_ATOMIC_OPERATORS = ("add", "multiply", "minimum", "maximum", "logical_or", "logical_and", "logical_xor")
_REDUCTION = """
#pragma omp declare reduction(reduce_{name}_{D} : {T} : omp_out = {name}_{D}(omp_out, omp_in)) initializer(omp_priv = {first})
"""


@cache
def helpers() -> dict[str, str]:
    """Every helper by name."""
    found = _FIXED | MEMORY_HELPERS | REGISTER_HELPER | HALF_HELPERS
    for dtype in VALUE_DTYPES:
        found |= dict(_of_dtype(dtype))
    return found


def _of_dtype(dtype: DType) -> Iterator[tuple[str, str]]:
    """The helpers of one dtype."""
    part = real_part(dtype)
    words = {
        "D": dtype.name,
        "T": c_type(dtype),
        "U": "uint64_t" if dtype.itemsize == 8 else "uint32_t",
        "R": c_type(part),
        "f": "f" if part == np.float32 else "",
        "or_nan": " || a != a" if dtype.kind == "f" else "",
        "minus": " - (x < 0)" if dtype.kind == "i" else "",
        "reciprocal": _RECIPROCAL if dtype.kind == "i" else "",
        "no_rest": _NO_REST if dtype.kind == "i" else "",
        "one_less": " - (a % b != 0 && (a < 0) != (b < 0))" if dtype.kind == "i" else "",
    }
    words["rest"] = "rest != 0 && (rest < 0) != (b < 0) ? ({T})(rest + b) : rest".format(**words) if dtype.kind == "i" else "rest"
    words["negated"] = _NEGATED.format(**words) if dtype.kind == "i" else ""
    if dtype in INDEX_DTYPES:
        yield f"lower_bound_{dtype}", _LOWER_BOUND.format(**words)
        yield f"join_positions_{dtype}", JOIN_POSITIONS.format(**words)
        for name, template in (ENTRY_HELPERS | SORT_HELPERS).items():
            yield f"{name}_{dtype}", template.format(**words)
    templates = {"c": {**_ON_COMPLEX, "square": _SQUARE}, "f": {**_ON_ORDERED, **_ON_FLOATS}, "b": {}}
    for name, template in templates.get(dtype.kind, {**_ON_ORDERED, **_ON_INTEGERS}).items():
        yield f"{dtype}_of" if name == "of" else f"{name}_{dtype}", template.format(**words)
    if dtype.kind == "c":
        yield words["T"], f"typedef {words['R']} _Complex {words['T']};"
    yield from vector_helpers(dtype)
    yield from _combining(dtype, words)


def _combining(dtype: DType, words: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Atomic updates, which 16 bytes have not, and reductions that OpenMP has not."""
    for name in _ATOMIC_OPERATORS:
        ordered = dtype.kind != "c" or name in ("add", "multiply")
        if dtype.itemsize <= 8 and ordered and (dtype.kind == "b" or not name.startswith("logical")):
            combined = operate(name, [Piece("seen"), Piece("value")], dtype).text
            yield f"atomic_{name}_{dtype}", _ATOMIC.format(name=name, combined=combined, **words)
    if dtype.kind == "f":
        for name, first in (("minimum", "INFINITY"), ("maximum", "-INFINITY")):
            yield f"reduce_{name}_{dtype}", _REDUCTION.format(name=name, first=first, **words)


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
