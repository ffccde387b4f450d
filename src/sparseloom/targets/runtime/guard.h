// Code that looks at index arrays again: whether they still keep what was found true of them.
//
// It takes *claims*, one after another, as 64-bit words::
//
//     1  bytes  a  b                                      two arrays are equal
//     2  width  count  strict  starts  columns  (address, size) ...
//                                                         columns of coordinates are in range, and their tuples ascend, except where a
//                                                         bit of ``starts`` is set: bit k speaks of positions k and k + 1
//     3  width  rows  pos  crd  count  size               rows stand one after another from 0 to count, and the coordinates of each
//                                                         ascend and are in range
//     0                                                   the end
//
// A column without an order is a claim of its own, with all bits of ``starts`` set (address 0 means none, -1 means all).
// Nothing is trusted, so an array that changes meanwhile can only give a wrong answer about itself.
//
// INDEX_t is the type of a coordinate and LARGEST its largest value; FLOATING is as wide, of which a register has LANES, and LANE is what gcc
// calls such registers.

/// width
typedef struct { const INDEX_t *crd; uint64_t size; } column_INDEX;

#ifdef __AVX2__
// <immintrin.h> alone would take most of the time to compile this.
typedef INDEX_t lanes_INDEX __attribute__((vector_size(32), aligned(sizeof(INDEX_t)), may_alias));
typedef uINDEX_t bits_INDEX __attribute__((vector_size(32)));
typedef FLOATING floats_INDEX __attribute__((vector_size(32)));

static inline uint32_t signs_INDEX(bits_INDEX lanes) {
  return (uint32_t)__builtin_ia32_movmskLANE256((floats_INDEX)lanes);
}
#endif

// Whether 64 coordinates are below ``beyond``, and each comes before the next, which exists, but for those marked in ``starts``.
static inline int rises_INDEX(const INDEX_t *crd, uint64_t starts, int strict, INDEX_t beyond) {
  uint64_t rises = 0;
#ifdef __AVX2__
  bits_INDEX last, outside = {0};
  for (int lane = 0; lane < LANES; lane++) last[lane] = (uINDEX_t)beyond - 1;
  for (int k = 0; k < 64; k += LANES) {
    const lanes_INDEX here = *(const lanes_INDEX *)(crd + k), next = *(const lanes_INDEX *)(crd + k + 1);
    outside |= (bits_INDEX)here | (last - (bits_INDEX)here);  // what is negative, or comes behind the last, sets the sign
    rises |= (uint64_t)signs_INDEX((bits_INDEX)(strict ? next > here : here > next)) << k;
  }
  if (signs_INDEX(outside)) return 0;
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
static inline int compared_INDEX(const INDEX_t *crd, INDEX_t beyond, uint64_t *less, uint64_t *same) {
  *less = *same = 0;
#ifdef __AVX2__
  bits_INDEX last, outside = {0};
  for (int lane = 0; lane < LANES; lane++) last[lane] = (uINDEX_t)beyond - 1;
  for (int k = 0; k < 64; k += LANES) {
    const lanes_INDEX here = *(const lanes_INDEX *)(crd + k), next = *(const lanes_INDEX *)(crd + k + 1);
    outside |= (bits_INDEX)here | (last - (bits_INDEX)here);
    *less |= (uint64_t)signs_INDEX((bits_INDEX)(next > here)) << k;
    *same |= (uint64_t)signs_INDEX((bits_INDEX)(next == here)) << k;
  }
  return !signs_INDEX(outside);
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

static inline INDEX_t beyond_INDEX(const column_INDEX *column) { return column->size < LARGEST ? (INDEX_t)column->size : LARGEST; }

// As rises_INDEX, for the tuples of several columns: the first column in which two tuples differ decides.
static inline int rise_INDEX(const column_INDEX *columns, int64_t count_of, int64_t p, uint64_t starts, int strict) {
  uint64_t rises = strict ? 0 : -1, less, same;
  for (int64_t c = count_of - 1; c >= 0; c--) {
    if (!compared_INDEX(columns[c].crd + p, beyond_INDEX(columns + c), &less, &same)) return 0;
    rises = less | (same & rises);
  }
  return !(~rises & ~starts);
}

static int block_INDEX(const column_INDEX *columns, int64_t count_of, int64_t begin, int64_t end, int64_t count, int strict,
    const uint64_t *starts) {
  const int unordered = starts == (const uint64_t *)-1;
  int64_t p = begin;
  for (; p + 64 < count && p + 64 <= end; p += 64) {
    const uint64_t marked = unordered ? -1 : starts ? starts[p / 64] : 0;
    if (count_of > 1 && !rise_INDEX(columns, count_of, p, marked, strict)) return 0;
    if (count_of == 1 && !rises_INDEX(columns[0].crd + p, marked, strict, beyond_INDEX(columns))) return 0;
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

static int ascends_INDEX(const int64_t *claim) {
  const int64_t count = claim[2], count_of = claim[5];
  const column_INDEX *columns = (const column_INDEX *)(claim + 6);
  int holds = 1;
  if (count <= 1 << 19) return block_INDEX(columns, count_of, 0, count, count, (int)claim[3], (const uint64_t *)claim[4]);
  prepare_team();
#pragma omp parallel for schedule(static) reduction(&& : holds)
  for (int64_t begin = 0; begin < count; begin += 8192) {
    const int64_t end = begin + 8192 < count ? begin + 8192 : count;
    holds = holds && block_INDEX(columns, count_of, begin, end, count, (int)claim[3], (const uint64_t *)claim[4]);
  }
  return dismiss_team(holds);
}

static int in_rows_INDEX(const int64_t *claim) {
  const int64_t rows = claim[2], count = claim[5], size = claim[6];
  const INDEX_t *pos = (const INDEX_t *)claim[3], *crd = (const INDEX_t *)claim[4];
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

/// entry
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
