/* The loops that a person would write, compiled with the flags that kernels get; REAL is double or float.

   Each entry takes a pack of 64-bit words as kernels do: args[0] is not used here, and parameter k is args[1 + k].
   The plain ones are the same loop that Sparseloom makes without a schedule, on one thread. The others are as good as we can write
   them: rows shared by entries, sums in vector registers, what comes next fetched ahead. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int omp_get_max_threads(void);
int omp_get_thread_num(void);

#ifdef __AVX512F__
enum { VECTOR = 64, MOST = 16, SPAN = 4 };
#else
enum { VECTOR = 32, MOST = 8, SPAN = 2 };
#endif
typedef REAL lanes __attribute__((vector_size(VECTOR), aligned(sizeof(REAL)), may_alias));
typedef REAL quarter __attribute__((vector_size(16)));
enum { W = VECTOR / sizeof(REAL), AHEAD = 6, PIECES = 16, BLOCK = 4 };

#define ARRAY(type, k) ((type *)args[1 + (k)])
#define NUMBER(k) ((int64_t)args[1 + (k)])
#define INLINE static inline __attribute__((always_inline))
/* A row is taken in strips whose sums stay in registers. Run CALL(n) for the number n of vectors in a strip, a constant there. */
#define FOR_STRIP(width, most)                                                                                                     \
  switch ((width) / W < (most) ? (width) / W : (most)) {                                                                           \
    case 1: CALL(1); break;                                                                                                        \
    case 2: CALL(2); break;                                                                                                        \
    case 4: CALL(4); break;                                                                                                        \
    case 8: CALL(8); break;                                                                                                        \
    case MOST == 16 ? 16 : -1: CALL(MOST); break;                                                                                  \
    default: return 1;                                                                                                             \
  }

/* The plain loops. */

static void plain_spmv_loop(REAL *restrict y, const int32_t *restrict pos, const int32_t *restrict crd, const REAL *restrict vals,
                            const REAL *restrict x, int32_t rows) {
  for (int32_t i = 0; i < rows; i++) {
    REAL sum = 0;
    for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
      sum += vals[p] * x[crd[p]];
    }
    y[i] = sum;
  }
}

static void plain_spmm_loop(REAL *restrict C, const int32_t *restrict pos, const int32_t *restrict crd, const REAL *restrict vals,
                            const REAL *restrict B, int32_t rows, int64_t width) {
  for (int32_t i = 0; i < rows; i++) {
    REAL *to = C + i * width;
    memset(to, 0, width * sizeof(REAL));
    for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
      const REAL *from = B + crd[p] * width;
      REAL a = vals[p];
      for (int64_t k = 0; k < width; k++) {
        to[k] += a * from[k];
      }
    }
  }
}

static void plain_mttkrp_loop(REAL *restrict A, const int32_t *restrict pos1, const int32_t *restrict crd1, const int32_t *restrict pos2,
                              const int32_t *restrict crd2, const int32_t *restrict pos3, const int32_t *restrict crd3,
                              const REAL *restrict vals, const REAL *restrict C, const REAL *restrict D, int64_t rows, int64_t rank) {
  memset(A, 0, rows * rank * sizeof(REAL));
  for (int32_t p = pos1[0]; p < pos1[1]; p++) {
    REAL *to = A + crd1[p] * rank;
    for (int32_t q = pos2[p]; q < pos2[p + 1]; q++) {
      const REAL *c = C + crd2[q] * rank;
      for (int32_t s = pos3[q]; s < pos3[q + 1]; s++) {
        const REAL *d = D + crd3[s] * rank;
        REAL b = vals[s];
        for (int64_t r = 0; r < rank; r++) {
          to[r] += b * c[r] * d[r];
        }
      }
    }
  }
}

int32_t plain_spmv(void **args) {
  plain_spmv_loop(ARRAY(REAL, 0), ARRAY(int32_t, 1), ARRAY(int32_t, 2), ARRAY(REAL, 3), ARRAY(REAL, 4), (int32_t)NUMBER(5));
  return 0;
}

int32_t plain_spmm(void **args) {
  plain_spmm_loop(ARRAY(REAL, 0), ARRAY(int32_t, 1), ARRAY(int32_t, 2), ARRAY(REAL, 3), ARRAY(REAL, 4), (int32_t)NUMBER(5), NUMBER(6));
  return 0;
}

int32_t plain_mttkrp(void **args) {
  plain_mttkrp_loop(ARRAY(REAL, 0), ARRAY(int32_t, 1), ARRAY(int32_t, 2), ARRAY(int32_t, 3), ARRAY(int32_t, 4), ARRAY(int32_t, 5),
                    ARRAY(int32_t, 6), ARRAY(REAL, 7), ARRAY(REAL, 8), ARRAY(REAL, 9), NUMBER(10), NUMBER(11));
  return 0;
}

/* How rows are shared, and small sums. */

/* The first row of piece t of n: pieces have equally many rows and entries together. */
INLINE int64_t first_row(const int32_t *pos, int64_t rows, int64_t t, int64_t n) {
  if (t >= n) return rows;
  int64_t wanted = (pos[rows] + rows) / n * t, low = 0, high = rows;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (pos[middle] + middle < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

static int64_t pieces(void) {
  int64_t threads = omp_get_max_threads();
  return threads == 1 ? 1 : threads * PIECES;
}

/* Four sums that do not wait for each other. */
INLINE REAL dot(const int32_t *crd, const REAL *vals, const REAL *x, int64_t p, int64_t end) {
  REAL a = 0, b = 0, c = 0, d = 0;
  for (; p + 3 < end; p += 4) {
    a += vals[p] * x[crd[p]];
    b += vals[p + 1] * x[crd[p + 1]];
    c += vals[p + 2] * x[crd[p + 2]];
    d += vals[p + 3] * x[crd[p + 3]];
    __builtin_prefetch(vals + p + 128);
    __builtin_prefetch(crd + p + 256);
  }
  for (; p < end; p++) a += vals[p] * x[crd[p]];
  return (a + b) + (c + d);
}

INLINE REAL lane_sum(lanes v) {
  union {
    lanes whole;
    quarter parts[VECTOR / 16];
  } cut = {v};
  quarter sum = cut.parts[0] + cut.parts[1];
  for (int k = 2; k < VECTOR / 16; k++) sum += cut.parts[k];
  REAL total = 0;
  for (int l = 0; l < 16 / (int)sizeof(REAL); l++) total += sum[l];
  return total;
}

INLINE void fetch(const REAL *row, int64_t width) {
  for (int64_t k = 0; k < width; k += 64 / sizeof(REAL)) __builtin_prefetch(row + k);
}

INLINE void clear(lanes *sums, int n) {
#pragma GCC unroll 16
  for (int v = 0; v < n; v++) sums[v] = (lanes){0};
}

/* Add a row times a number to sums that stay in registers. */
INLINE void add_row(lanes *sums, REAL a, const REAL *row, int n) {
#pragma GCC unroll 16
  for (int v = 0; v < n; v++) sums[v] += a * *(const lanes *)(row + v * W);
}

INLINE void store(REAL *row, const lanes *sums, int n) {
#pragma GCC unroll 16
  for (int v = 0; v < n; v++) *(lanes *)(row + v * W) = sums[v];
}

INLINE REAL dot_rows(const REAL *left, const REAL *right, int64_t width) {
  lanes a = {0}, b = {0};
  int64_t k = 0;
  for (; k + 2 * W <= width; k += 2 * W) {
    a += *(const lanes *)(left + k) * *(const lanes *)(right + k);
    b += *(const lanes *)(left + k + W) * *(const lanes *)(right + k + W);
  }
  if (k < width) a += *(const lanes *)(left + k) * *(const lanes *)(right + k);
  return lane_sum(a + b);
}

/* Matrices in CSR: the arguments are the result, pos, crd, vals, the dense operands, and sizes. */

/* Every thread has equally many rows and entries together; a row that is cut is added up at the end, in order. */
int32_t spmv(void **args) {
  REAL *y = ARRAY(REAL, 0);
  const int32_t *pos = ARRAY(int32_t, 1), *crd = ARRAY(int32_t, 2);
  const REAL *vals = ARRAY(REAL, 3), *x = ARRAY(REAL, 4);
  int64_t rows = NUMBER(5), parts = omp_get_max_threads(), all = pos[rows] + rows;
  struct carried {
    int64_t row;
    REAL sum;
    char apart[112];
  } carries[parts];
#pragma omp parallel for schedule(static, 1)
  for (int64_t t = 0; t < parts; t++) {
    int64_t cut[2][2];
    for (int end = 0; end < 2; end++) {
      int64_t along = all * (t + end) / parts, low = along > pos[rows] ? along - pos[rows] : 0, high = along < rows ? along : rows;
      while (low < high) {
        int64_t middle = (low + high) / 2;
        if (pos[middle + 1] <= along - middle - 1) low = middle + 1;
        else high = middle;
      }
      cut[end][0] = low;
      cut[end][1] = along - low;
    }
    int64_t i = cut[0][0], p = cut[0][1];
    for (; i < cut[1][0]; i++, p = pos[i]) y[i] = dot(crd, vals, x, p, pos[i + 1]);
    carries[t].row = p < cut[1][1] ? i : rows;
    carries[t].sum = dot(crd, vals, x, p, cut[1][1]);
  }
  for (int64_t t = 0; t < parts; t++) {
    if (carries[t].row < rows) y[carries[t].row] += carries[t].sum;
  }
  return 0;
}

INLINE void spmm_rows(void **args, int64_t i, int64_t end, int64_t width, int n) {
  const int32_t *pos = ARRAY(int32_t, 1), *crd = ARRAY(int32_t, 2);
  const REAL *vals = ARRAY(REAL, 3), *B = ARRAY(REAL, 4);
  for (; i < end; i++) {
    for (int64_t k = 0; k < width; k += n * W) {
      lanes sums[MOST];
      clear(sums, n);
      for (int64_t p = pos[i]; p < pos[i + 1]; p++) {
        if (p + AHEAD < pos[i + 1]) fetch(B + crd[p + AHEAD] * width + k, n * W);
        add_row(sums, vals[p], B + crd[p] * width + k, n);
      }
      store(ARRAY(REAL, 0) + i * width + k, sums, n);
    }
  }
}

int32_t spmm(void **args) {
  const int32_t *pos = ARRAY(int32_t, 1);
  int64_t rows = NUMBER(5), width = NUMBER(6), count = pieces();
#define CALL(n)                                                                                                                    \
  _Pragma("omp parallel for schedule(dynamic, 1)") for (int64_t t = 0; t < count; t++)                                             \
      spmm_rows(args, first_row(pos, rows, t, count), first_row(pos, rows, t + 1, count), width, n)
  FOR_STRIP(width, MOST)
#undef CALL
  return 0;
}

int32_t sddmm(void **args) {
  const int32_t *pos = ARRAY(int32_t, 1), *crd = ARRAY(int32_t, 2);
  const REAL *vals = ARRAY(REAL, 3), *C = ARRAY(REAL, 4), *D = ARRAY(REAL, 5);
  REAL *out = ARRAY(REAL, 0);
  int64_t rows = NUMBER(6), width = NUMBER(7), count = pieces();
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t t = 0; t < count; t++) {
    for (int64_t i = first_row(pos, rows, t, count), end = first_row(pos, rows, t + 1, count); i < end; i++) {
      for (int64_t p = pos[i]; p < pos[i + 1]; p++) {
        if (p + AHEAD < pos[i + 1]) fetch(D + crd[p + AHEAD] * width, width);
        out[p] = vals[p] * dot_rows(C + i * width, D + crd[p] * width, width);
      }
    }
  }
  return 0;
}

/* Y(i,l) = S(i,j) * C(i,k) * D(j,k) * E(j,l): a sampled product, and each of its entries goes on into a dense one. */
INLINE void attend_rows(void **args, int64_t i, int64_t end, int n) {
  const int32_t *pos = ARRAY(int32_t, 1), *crd = ARRAY(int32_t, 2);
  const REAL *vals = ARRAY(REAL, 3), *C = ARRAY(REAL, 4), *D = ARRAY(REAL, 5), *E = ARRAY(REAL, 6);
  const int64_t width = n * W;
  for (; i < end; i++) {
    lanes sums[MOST];
    clear(sums, n);
    for (int64_t p = pos[i]; p < pos[i + 1]; p++) {
      int64_t j = crd[p] * width;
      if (p + AHEAD < pos[i + 1]) fetch(D + crd[p + AHEAD] * width, width), fetch(E + crd[p + AHEAD] * width, width);
      add_row(sums, vals[p] * dot_rows(C + i * width, D + j, width), E + j, n);
    }
    store(ARRAY(REAL, 0) + i * width, sums, n);
  }
}

int32_t attend(void **args) {
  const int32_t *pos = ARRAY(int32_t, 1);
  int64_t rows = NUMBER(7), count = pieces();
  if (NUMBER(8) / W > MOST) return 1;
#define CALL(n)                                                                                                                    \
  _Pragma("omp parallel for schedule(dynamic, 1)") for (int64_t t = 0; t < count; t++)                                             \
      attend_rows(args, first_row(pos, rows, t, count), first_row(pos, rows, t + 1, count), n)
  FOR_STRIP(NUMBER(8), MOST)
#undef CALL
  return 0;
}

/* y(i) = min over j of A(i,j) + x(j). */
int32_t min_plus(void **args) {
  REAL *y = ARRAY(REAL, 0);
  const int32_t *pos = ARRAY(int32_t, 1), *crd = ARRAY(int32_t, 2);
  const REAL *vals = ARRAY(REAL, 3), *x = ARRAY(REAL, 4);
  int64_t rows = NUMBER(5), count = pieces();
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t t = 0; t < count; t++) {
    for (int64_t i = first_row(pos, rows, t, count), end = first_row(pos, rows, t + 1, count); i < end; i++) {
      REAL least = INFINITY, other = INFINITY;
      int64_t p = pos[i];
      for (; p + 1 < pos[i + 1]; p += 2) {
        REAL one = vals[p] + x[crd[p]], two = vals[p + 1] + x[crd[p + 1]];
        least = one < least ? one : least;
        other = two < other ? two : other;
      }
      if (p < pos[i + 1] && vals[p] + x[crd[p]] < least) least = vals[p] + x[crd[p]];
      y[i] = least < other ? least : other;
    }
  }
  return 0;
}

/* y(i) = A(i,j) * B(i,j) * x(j): two rows are merged, without a branch that could be mispredicted. */
int32_t hadamard(void **args) {
  REAL *y = ARRAY(REAL, 0);
  const int32_t *pos = ARRAY(int32_t, 1), *crd = ARRAY(int32_t, 2), *pos2 = ARRAY(int32_t, 4), *crd2 = ARRAY(int32_t, 5);
  const REAL *vals = ARRAY(REAL, 3), *vals2 = ARRAY(REAL, 6), *x = ARRAY(REAL, 7);
  int64_t rows = NUMBER(8), count = pieces();
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t t = 0; t < count; t++) {
    for (int64_t i = first_row(pos, rows, t, count), end = first_row(pos, rows, t + 1, count); i < end; i++) {
      REAL sum = 0;
      int64_t p = pos[i], q = pos2[i], p_end = pos[i + 1], q_end = pos2[i + 1];
      while (p < p_end && q < q_end) {
        int32_t a = crd[p], b = crd2[q];
        sum += a == b ? vals[p] * vals2[q] * x[a] : 0;
        p += a <= b;
        q += b <= a;
      }
      y[i] = sum;
    }
  }
  return 0;
}

/* Blocks of 4 x 4: a strip of four rows of the result stays in registers. */
INLINE void block_rows(void **args, int64_t i, int64_t end, int64_t width, int64_t last, int n) {
  const int32_t *pos = ARRAY(int32_t, 1), *crd = ARRAY(int32_t, 2);
  const REAL *vals = ARRAY(REAL, 3), *B = ARRAY(REAL, 4);
  for (; i < end; i++) {
    for (int64_t k = 0; k < width; k += n * W) {
      lanes sums[BLOCK][SPAN];
#pragma GCC unroll 4
      for (int r = 0; r < BLOCK; r++) clear(sums[r], n);
      for (int64_t p = pos[i]; p < pos[i + 1]; p++) {
        int64_t j = (int64_t)crd[p] * BLOCK;
        for (int64_t c = 0; c < BLOCK && j + c < last; c++) {
#pragma GCC unroll 4
          for (int r = 0; r < BLOCK; r++) add_row(sums[r], vals[(p * BLOCK + r) * BLOCK + c], B + (j + c) * width + k, n);
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < BLOCK; r++) store(ARRAY(REAL, 0) + (i * BLOCK + r) * width + k, sums[r], n);
    }
  }
}

int32_t block_spmm(void **args) {
  const int32_t *pos = ARRAY(int32_t, 1);
  int64_t rows = NUMBER(5), width = NUMBER(6), last = NUMBER(7), count = pieces();
  if (width % (SPAN * W)) return 1;
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t t = 0; t < count; t++) {
    block_rows(args, first_row(pos, rows, t, count), first_row(pos, rows, t + 1, count), width, last, SPAN);
  }
  return 0;
}

/* How fast memory is: the triad of the STREAM benchmark, and reading alone. */

int32_t triad(void **args) {
  REAL *restrict a = ARRAY(REAL, 0);
  const REAL *restrict b = ARRAY(REAL, 1), *restrict c = ARRAY(REAL, 2);
  int64_t count = NUMBER(3);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; i++) a[i] = b[i] + 3 * c[i];
  return 0;
}

int32_t reading(void **args) {
  const REAL *from = ARRAY(REAL, 1);
  int64_t strips = NUMBER(2) / (8 * W), parts = omp_get_max_threads();
  REAL total = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : total)
  for (int64_t t = 0; t < parts; t++) {
    lanes sums[8];
    clear(sums, 8);
    for (int64_t s = strips * t / parts; s < strips * (t + 1) / parts; s++) add_row(sums, 1, from + s * 8 * W, 8);
    for (int v = 0; v < 8; v++) total += lane_sum(sums[v]);
  }
  *ARRAY(REAL, 0) = total;
  return 0;
}
