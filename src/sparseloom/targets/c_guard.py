"""The C that looks at index arrays again: whether they still keep what was found true of them.

It takes *claims*, one after another, as 64-bit words::

    1  bytes  a  b                                      two arrays are equal
    2  width  count  strict  starts  columns  (address, size) ...
                                                        columns of coordinates are in range, and their tuples ascend, except where a
                                                        bit of ``starts`` is set: bit k speaks of positions k and k + 1
    3  width  rows  pos  crd  count  size               rows stand one after another from 0 to count, and the coordinates of each
                                                        ascend and are in range
    0                                                   the end

A column without an order is a claim of its own, with all bits of ``starts`` set (address 0 means none, -1 means all).
Nothing is trusted, so an array that changes meanwhile can only give a wrong answer about itself.
"""

from __future__ import annotations

from sparseloom.targets.c_team import TEAM_HELPER

_WIDTH = """
typedef struct { const {T} *crd; uint64_t size; } column_{W};

#ifdef __AVX2__
// <immintrin.h> alone would take most of the time to compile this.
typedef {T} lanes_{W} __attribute__((vector_size(32), aligned(sizeof({T})), may_alias));
typedef u{T} bits_{W} __attribute__((vector_size(32)));
typedef {FLOAT} floats_{W} __attribute__((vector_size(32)));

static inline uint32_t signs_{W}(bits_{W} lanes) {
  return (uint32_t)__builtin_ia32_movmsk{LANE}256((floats_{W})lanes);
}
#endif

// Whether 64 coordinates are below ``beyond``, and each comes before the next, which exists, but for those marked in ``starts``.
static inline int rises_{W}(const {T} *crd, uint64_t starts, int strict, {T} beyond) {
  uint64_t rises = 0;
#ifdef __AVX2__
  bits_{W} last, outside = {0};
  for (int lane = 0; lane < {LANES}; lane++) last[lane] = (u{T})beyond - 1;
  for (int k = 0; k < 64; k += {LANES}) {
    const lanes_{W} here = *(const lanes_{W} *)(crd + k), next = *(const lanes_{W} *)(crd + k + 1);
    outside |= (bits_{W})here | (last - (bits_{W})here);  // what is negative, or comes behind the last, sets the sign
    rises |= (uint64_t)signs_{W}((bits_{W})(strict ? next > here : here > next)) << k;
  }
  if (signs_{W}(outside)) return 0;
  return !(~(strict ? rises : ~rises) & ~starts);
#else
  int outside = 0;
  for (int k = 0; k < 64; k++) {
    outside |= crd[k] < 0 || crd[k] >= beyond;
    rises |= (uint64_t)(strict ? crd[k + 1] > crd[k] : crd[k + 1] >= crd[k]) << k;
  }
  return !outside && !(~rises & ~starts);
#endif
}

// Whether 64 coordinates are below ``beyond``; which of them are less than the next one, which exists, and which are the same.
static inline int compared_{W}(const {T} *crd, {T} beyond, uint64_t *less, uint64_t *same) {
  *less = *same = 0;
#ifdef __AVX2__
  bits_{W} last, outside = {0};
  for (int lane = 0; lane < {LANES}; lane++) last[lane] = (u{T})beyond - 1;
  for (int k = 0; k < 64; k += {LANES}) {
    const lanes_{W} here = *(const lanes_{W} *)(crd + k), next = *(const lanes_{W} *)(crd + k + 1);
    outside |= (bits_{W})here | (last - (bits_{W})here);
    *less |= (uint64_t)signs_{W}((bits_{W})(next > here)) << k;
    *same |= (uint64_t)signs_{W}((bits_{W})(next == here)) << k;
  }
  return !signs_{W}(outside);
#else
  int outside = 0;
  for (int k = 0; k < 64; k++) {
    outside |= crd[k] < 0 || crd[k] >= beyond;
    *less |= (uint64_t)(crd[k] < crd[k + 1]) << k;
    *same |= (uint64_t)(crd[k] == crd[k + 1]) << k;
  }
  return !outside;
#endif
}

static inline {T} beyond_{W}(const column_{W} *column) { return column->size < {MOST} ? ({T})column->size : {MOST}; }

// As rises_{W}, for the tuples of several columns: the first column in which two tuples differ decides.
static inline int rise_{W}(const column_{W} *columns, int64_t count_of, int64_t p, uint64_t starts, int strict) {
  uint64_t rises = strict ? 0 : -1, less, same;
  for (int64_t c = count_of - 1; c >= 0; c--) {
    if (!compared_{W}(columns[c].crd + p, beyond_{W}(columns + c), &less, &same)) return 0;
    rises = less | (same & rises);
  }
  return !(~rises & ~starts);
}

static int block_{W}(const column_{W} *columns, int64_t count_of, int64_t begin, int64_t end, int64_t count, int strict,
    const uint64_t *starts) {
  const int unordered = starts == (const uint64_t *)-1;
  int64_t p = begin;
  for (; p + 64 < count && p + 64 <= end; p += 64) {
    const uint64_t marked = unordered ? -1 : starts ? starts[p / 64] : 0;
    if (count_of > 1 && !rise_{W}(columns, count_of, p, marked, strict)) return 0;
    if (count_of == 1 && !rises_{W}(columns[0].crd + p, marked, strict, beyond_{W}(columns))) return 0;
  }
  for (; p < end; p++) {
    for (int64_t c = 0; c < count_of; c++)
      if (columns[c].crd[p] < 0 || (uint64_t)columns[c].crd[p] >= columns[c].size) return 0;
    if (unordered || p + 1 == count || (starts && starts[p / 64] >> p % 64 & 1)) continue;
    int64_t c = 0;
    while (c + 1 < count_of && columns[c].crd[p] == columns[c].crd[p + 1]) c++;
    if (strict ? columns[c].crd[p] >= columns[c].crd[p + 1] : columns[c].crd[p] > columns[c].crd[p + 1]) return 0;
  }
  return 1;
}

static int ascends_{W}(const int64_t *claim) {
  const int64_t count = claim[2], count_of = claim[5];
  const column_{W} *columns = (const column_{W} *)(claim + 6);
  int holds = 1;
  if (count <= 1 << 19) return block_{W}(columns, count_of, 0, count, count, (int)claim[3], (const uint64_t *)claim[4]);
  prepare_team();
#pragma omp parallel for schedule(static) reduction(&& : holds)
  for (int64_t begin = 0; begin < count; begin += 8192) {
    const int64_t end = begin + 8192 < count ? begin + 8192 : count;
    holds = holds && block_{W}(columns, count_of, begin, end, count, (int)claim[3], (const uint64_t *)claim[4]);
  }
  return dismiss_team(holds);
}

static int in_rows_{W}(const int64_t *claim) {
  const int64_t rows = claim[2], count = claim[5], size = claim[6];
  const {T} *pos = (const {T} *)claim[3], *crd = (const {T} *)claim[4];
  int64_t begin = pos[0];
  if (begin != 0) return 0;
  for (int64_t row = 0; row < rows; row++) {
    const int64_t end = pos[row + 1];
    if (end < begin || end > count) return 0;
    int64_t before = -1;
    for (; begin < end; begin++) {
      const int64_t here = crd[begin];
      if (here <= before || here >= size) return 0;
      before = here;
    }
  }
  return begin == count;
}
"""

_ENTRY = """
int32_t holds(void **args) {
  for (const int64_t *claim = (const int64_t *)args; claim[0];) {
    if (claim[0] == 1) {
      if (memcmp((const void *)claim[2], (const void *)claim[3], (size_t)claim[1])) return 0;
      claim += 4;
    } else if (claim[0] == 3) {
      if (!(claim[1] == 4 ? in_rows_int32(claim) : in_rows_int64(claim))) return 0;
      claim += 7;
    } else {
      if (!(claim[1] == 4 ? ascends_int32(claim) : ascends_int64(claim))) return 0;
      claim += 6 + 2 * claim[5];
    }
  }
  return 1;
}
"""


def _spelled(**names: str) -> str:
    text = _WIDTH
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


GUARD_SOURCE = "\n".join(
    [
        "#include <stdint.h>\n#include <string.h>",
        TEAM_HELPER,
        _spelled(T="int32_t", W="int32", FLOAT="float", LANES="8", LANE="ps", MOST="INT32_MAX"),
        _spelled(T="int64_t", W="int64", FLOAT="double", LANES="4", LANE="pd", MOST="INT64_MAX"),
        _ENTRY,
    ]
)
