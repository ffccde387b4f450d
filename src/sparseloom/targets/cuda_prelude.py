"""What kernels for a GPU use beside the language: types, small functions, complex numbers, atomic updates.

NVRTC compiles without headers, so everything is spelled out here, each only where it is used. What C's kernels use and CUDA C++ understands
is taken from there.
"""

from __future__ import annotations

from functools import cache

from sparseloom.core.dtypes import INDEX_DTYPES, VALUE_DTYPES, DType, real_part
from sparseloom.targets import c_prelude
from sparseloom.targets.c_expr import Piece, c_type, operate
from sparseloom.targets.c_halves import CUDA_HALF_HELPERS
from sparseloom.targets.target import Atomic

DEVICE = "static __device__ __forceinline__"
_TYPES = """
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
"""
_MACROS = {
    "NAN": "__int_as_float(0x7fffffff)", "INFINITY": "__int_as_float(0x7f800000)",
    "INT32_MIN": "(-2147483647 - 1)", "INT64_MIN": "(-9223372036854775807LL - 1)",
    "M_LN2": "0.69314718055994530942", "M_LN10": "2.30258509299404568402",
}  # fmt: skip

_COMPLEX = """
template <class R> struct complex_number {
  R re, im;
  complex_number() = default;
  __device__ complex_number(R re, R im = 0) : re(re), im(im) {}
  template <class S> __device__ explicit complex_number(complex_number<S> z) : re((R)z.re), im((R)z.im) {}
  template <class N> __device__ explicit operator N() const { return (N)re; }
  __device__ complex_number operator-() const { return {-re, -im}; }
  friend __device__ complex_number operator+(complex_number a, complex_number b) { return {a.re + b.re, a.im + b.im}; }
  friend __device__ complex_number operator-(complex_number a, complex_number b) { return {a.re - b.re, a.im - b.im}; }
  friend __device__ complex_number operator*(complex_number a, complex_number b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend __device__ complex_number operator/(complex_number a, R b) { return {a.re / b, a.im / b}; }
  friend __device__ bool operator==(complex_number a, complex_number b) { return a.re == b.re && a.im == b.im; }
  friend __device__ bool operator!=(complex_number a, complex_number b) { return !(a == b); }
  __device__ complex_number &operator+=(complex_number b) { return *this = *this + b; }
  __device__ complex_number &operator-=(complex_number b) { return *this = *this - b; }
  __device__ complex_number &operator*=(complex_number b) { return *this = *this * b; }
};
"""
# Of a complex number z with parts x and y; the real functions are overloaded.
_FUNCTIONS = {
    "conj": "{z.re, -z.im}",
    "cexp": "{exp(z.re) * cos(z.im), z.im == 0 ? z.im : exp(z.re) * sin(z.im)}",
    "clog": "{log(hypot(z.re, z.im)), atan2(z.im, z.re)}",
    "csin": "{sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)}",
    "ccos": "{cos(z.re) * cosh(z.im), -sin(z.re) * sinh(z.im)}",
    "csinh": "{sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)}",
    "ccosh": "{cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)}",
    "ctan": "-times_i(ctanh(times_i(z)))",
    "casin": "-times_i(clog(times_i(z) + csqrt(complex_number<R>(1) - z * z)))",
    "cacos": "complex_number<R>((R)1.57079632679489661923) - casin(z)",
    "catan": "times_i(clog(complex_number<R>(1) - times_i(z)) - clog(complex_number<R>(1) + times_i(z))) * complex_number<R>((R)0.5)",
}
_LONGER = {
    "times_i": "  return {-z.im, z.re};",
    "csqrt": """  if (z.re == 0 && z.im == 0) return {0, z.im};
  const R root = sqrt((fabs(z.re) + hypot(z.re, z.im)) / 2);
  if (z.re >= 0) return {root, z.im / (2 * root)};
  return {fabs(z.im) / (2 * root), copysign(root, z.im)};""",
    "ctanh": """  if (fabs(z.re) > 20) return {copysign((R)1, z.re), 4 * sin(z.im) * cos(z.im) * exp(-2 * fabs(z.re))};
  const R scale = cosh(2 * z.re) + cos(2 * z.im);
  return {sinh(2 * z.re) / scale, sin(2 * z.im) / scale};""",
}
_PARTS = {"creal": "z.re", "cimag": "z.im", "cabs": "hypot(z.re, z.im)"}

_SWAP = """
{device} void atomic_{name}_{D}({T} *place, {T} value) {{
  {W} *const word = ({W} *)place;
  {W} seen = *word, expected;
  do {{
    expected = seen;
    {T} now = *({T} *)&expected;
    now = {combined};
    {W} wanted;
    *({T} *)&wanted = now;
    seen = atomicCAS(word, expected, wanted);
  }} while (seen != expected);
}}
"""
# A value smaller than a word is swapped with the word around it.
_SWAP_PART = """
{device} void atomic_{name}_{D}({T} *place, {T} value) {{
  uint32_t *const word = (uint32_t *)((uint64_t)place & ~(uint64_t)3);
  const int shift = ((uint64_t)place & 3) * 8;
  const uint32_t mask = {mask}u << shift;
  uint32_t seen = *word, expected;
  do {{
    expected = seen;
    {T} now = ({T})((expected & mask) >> shift);
    now = {combined};
    seen = atomicCAS(word, expected, (expected & ~mask) | (((uint32_t)now << shift) & mask));
  }} while (seen != expected);
}}
"""
# Where all lanes of a warp add to one place, the first of them does it for all.
_TOGETHER = """
template <class T> static __device__ __forceinline__ bool is_mine(T *const *place, T &value) {
  int same;
  const lane_mask mask = __activemask();
  __match_all_sync(mask, (uint64_t)*place, &same);
  if (!same || mask != (lane_mask)-1) return true;
  #pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(mask, value, step);
  return threadIdx.x % WARP == 0;
}
"""
# Which of the lanes of a group have another place than the one before.
_HEADS = """
template <int lanes> static __device__ __forceinline__ lane_mask segment_heads(lane_mask mask, int64_t place) {
  const int64_t before = __shfl_up_sync(mask, place, 1);
  const lane_mask heads = __ballot_sync(mask, threadIdx.x % lanes == 0 || before != place);
  return heads >> (threadIdx.x % WARP / lanes * lanes) & ((lane_mask)-1 >> (8 * sizeof(lane_mask) - lanes));
}
"""
# Which of the lanes of a group have something to add.
_ACTIVE = """
template <int lanes> static __device__ __forceinline__ lane_mask active_lanes(lane_mask mask, int64_t place) {
  return __ballot_sync(mask, place >= 0) >> (threadIdx.x % WARP / lanes * lanes) & ((lane_mask)-1 >> (8 * sizeof(lane_mask) - lanes));
}
"""
# By all of so many lanes: each looks at the end of one of as many parts.
_SEARCH = """
template <int lanes> static __device__ int64_t search_{D}(const {T} *array, int64_t begin, int64_t end, int64_t key, lane_mask mask) {{
  const int lane = threadIdx.x % lanes;
  while (begin < end) {{
    const int64_t part = (end - begin + lanes - 1) / lanes, first = begin + lane * part;
    const int64_t last = first + part < end ? first + part - 1 : end - 1;
    const int before = count_lanes(__ballot_sync(mask, first < end && array[last] < key) & mask);
    begin += before * part;
    if (begin >= end) return end;
    end = begin + part < end ? begin + part - 1 : end - 1;
  }}
  return begin;
}}
"""
# At once; a caller's array that begins anywhere has a program of its own, which says so.
_WIDE = """
#ifdef ANYWHERE
template <int count, class T> {device} void {name}_wide({parameters}) {{
  #pragma unroll
  for (int k = 0; k < count; k++) {one};
}}
#else
template <int count, class T> {device} void {name}_wide({parameters}) {{
  const int each = (count * sizeof(T) % 16 == 0 ? 16 : 8) / sizeof(T);
  struct alignas(each * sizeof(T)) neighbours {{ T numbers[each]; }};
  #pragma unroll
  for (int k = 0; k < count; k += each) {{
    {word}
  }}
}}
#endif
"""
_READ = """const neighbours word = *(const neighbours *)(place + k);
    #pragma unroll
    for (int n = 0; n < each; n++) kept[k + n] = word.numbers[n];"""
_WRITE = """neighbours word;
    #pragma unroll
    for (int n = 0; n < each; n++) word.numbers[n] = kept[k + n];
    *(neighbours *)(place + k) = word;"""
_MOVES = {
    "read_wide": {"name": "read", "parameters": "T *kept, const T *place", "word": _READ, "one": "kept[k] = place[k]"},
    "write_wide": {"name": "write", "parameters": "const T *kept, T *place", "word": _WRITE, "one": "place[k] = kept[k]"},
}
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
    found = {name: text.replace("static inline", DEVICE) for name, text in (c_prelude.helpers() | CUDA_HALF_HELPERS).items()}
    found |= {name: f"#define {name} {value}" for name, value in _MACROS.items()}
    found |= _of_warps(lanes)
    found |= {"is_mine": _TOGETHER, "segment_heads": _HEADS, "active_lanes": _ACTIVE}
    found |= {name: _WIDE.format(device=DEVICE, **parts) for name, parts in _MOVES.items()}
    found |= {"UINT64_C": "#define UINT64_C(number) number##ULL", "complex_number": _COMPLEX}
    for name, value in _FUNCTIONS.items():
        found |= _of_complex(name, f"  return {value};", "complex_number<R>")
    for name, body in _LONGER.items():
        found |= _of_complex(name, body, "complex_number<R>")
    for name, value in _PARTS.items():
        found |= _of_complex(name, f"  return {value};", "R")
    power = "complex_number<R> cpow(complex_number<R> a, complex_number<R> b) {\n  return cexp(b * clog(a));\n}"
    found["cpow"] = f"template <class R> {DEVICE} {power}"
    found["cpowf"] = f"{DEVICE} complex64_t cpowf(complex64_t a, complex64_t b) {{ return cpow(a, b); }}"
    for dtype in VALUE_DTYPES:
        found |= _of_dtype(dtype)
    return found


def _of_complex(name: str, body: str, kind: str) -> dict[str, str]:
    """A function of a complex number, and the one that C calls by another name in single precision."""
    single = "float" if kind == "R" else "complex64_t"
    return {
        name: f"template <class R> {DEVICE} {kind} {name}(complex_number<R> z) {{\n{body}\n}}",
        f"{name}f": f"{DEVICE} {single} {name}f(complex64_t z) {{ return {name}(z); }}",
    }


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
        found[f"search_{dtype}"] = _SEARCH.format(T=kind, D=dtype)
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
    words = {"device": DEVICE, "name": name, "D": dtype, "T": kind, "W": "uint64_t" if dtype.itemsize == 8 else "uint32_t"}
    combined = operate(name, [Piece("now"), Piece("value")], dtype).text
    if dtype.itemsize < 4:
        return _SWAP_PART.format(mask="0xff" if dtype.itemsize == 1 else "0xffff", combined=combined, **words)
    return _SWAP.format(combined=combined, **words)


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
    return "\n\n".join([_TYPES.strip("\n"), statuses, *c_prelude.needed(text, helpers(lanes)).values()]) + "\n"
