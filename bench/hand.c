/* The loops that a person would write, compiled with the flags that kernels get.

   Each entry takes a pack of 64-bit words as kernels do: args[0] is not used here, and parameter k is args[1 + k].
   The first three are the yardstick: the same loop that Sparseloom makes. The tuned ones say how much is left to a schedule. */

#include <stdint.h>
#include <string.h>

static void spmv_loop(double *restrict y, const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict vals,
                      const double *restrict x, int32_t rows) {
  for (int32_t i = 0; i < rows; i++) {
    double sum = 0.0;
    for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
      sum += vals[p] * x[crd[p]];
    }
    y[i] = sum;
  }
}

static void spmm_loop(double *restrict C, const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict vals,
                      const double *restrict B, int32_t rows, int64_t width) {
  for (int32_t i = 0; i < rows; i++) {
    double *to = C + i * width;
    memset(to, 0, width * sizeof(double));
    for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
      const double *from = B + crd[p] * width;
      double a = vals[p];
      for (int64_t k = 0; k < width; k++) {
        to[k] += a * from[k];
      }
    }
  }
}

static void mttkrp_loop(double *restrict A, const int32_t *restrict pos1, const int32_t *restrict crd1, const int32_t *restrict pos2,
                        const int32_t *restrict crd2, const int32_t *restrict pos3, const int32_t *restrict crd3,
                        const double *restrict vals, const double *restrict C, const double *restrict D, int64_t rows, int64_t rank) {
  memset(A, 0, rows * rank * sizeof(double));
  for (int32_t p = pos1[0]; p < pos1[1]; p++) {
    double *to = A + crd1[p] * rank;
    for (int32_t q = pos2[p]; q < pos2[p + 1]; q++) {
      const double *c = C + crd2[q] * rank;
      for (int32_t s = pos3[q]; s < pos3[q + 1]; s++) {
        const double *d = D + crd3[s] * rank;
        double b = vals[s];
        for (int64_t r = 0; r < rank; r++) {
          to[r] += b * c[r] * d[r];
        }
      }
    }
  }
}

enum { WIDTH = 32, RANK = 16 };

/* The width is a constant, so that a row of the result stays in registers. */
static void tuned_spmm_loop(double *restrict C, const int32_t *restrict pos, const int32_t *restrict crd, const double *restrict vals,
                            const double *restrict B, int32_t rows) {
  typedef double lanes __attribute__((vector_size(64), aligned(8)));
  for (int32_t i = 0; i < rows; i++) {
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (int32_t p = pos[i]; p < pos[i + 1]; p++) {
      const lanes *from = (const lanes *)(B + (int64_t)crd[p] * WIDTH);
      a += vals[p] * from[0];
      b += vals[p] * from[1];
      c += vals[p] * from[2];
      d += vals[p] * from[3];
    }
    lanes *to = (lanes *)(C + (int64_t)i * WIDTH);
    to[0] = a;
    to[1] = b;
    to[2] = c;
    to[3] = d;
  }
}

/* One multiplication by C for each fibre rather than for each entry, and sums in registers. */
static void tuned_mttkrp_loop(double *restrict A, const int32_t *restrict pos1, const int32_t *restrict crd1,
                              const int32_t *restrict pos2, const int32_t *restrict crd2, const int32_t *restrict pos3,
                              const int32_t *restrict crd3, const double *restrict vals, const double *restrict C,
                              const double *restrict D, int64_t rows) {
  typedef double lanes __attribute__((vector_size(64), aligned(8)));
  memset(A, 0, rows * RANK * sizeof(double));
  for (int32_t p = pos1[0]; p < pos1[1]; p++) {
    lanes low = {0}, high = {0};
    for (int32_t q = pos2[p]; q < pos2[p + 1]; q++) {
      lanes fibre_low = {0}, fibre_high = {0};
      for (int32_t s = pos3[q]; s < pos3[q + 1]; s++) {
        const lanes *from = (const lanes *)(D + (int64_t)crd3[s] * RANK);
        fibre_low += vals[s] * from[0];
        fibre_high += vals[s] * from[1];
      }
      const lanes *factor = (const lanes *)(C + (int64_t)crd2[q] * RANK);
      low += fibre_low * factor[0];
      high += fibre_high * factor[1];
    }
    lanes *to = (lanes *)(A + (int64_t)crd1[p] * RANK);
    to[0] = low;
    to[1] = high;
  }
}

int32_t spmv(void **args) {
  spmv_loop(args[1], args[2], args[3], args[4], args[5], (int32_t)(int64_t)args[6]);
  return 0;
}

int32_t spmm(void **args) {
  spmm_loop(args[1], args[2], args[3], args[4], args[5], (int32_t)(int64_t)args[6], (int64_t)args[7]);
  return 0;
}

int32_t mttkrp(void **args) {
  mttkrp_loop(args[1], args[2], args[3], args[4], args[5], args[6], args[7], args[8], args[9], args[10], (int64_t)args[11],
              (int64_t)args[12]);
  return 0;
}

int32_t tuned_spmm(void **args) {
  tuned_spmm_loop(args[1], args[2], args[3], args[4], args[5], (int32_t)(int64_t)args[6]);
  return 0;
}

int32_t tuned_mttkrp(void **args) {
  tuned_mttkrp_loop(args[1], args[2], args[3], args[4], args[5], args[6], args[7], args[8], args[9], args[10], (int64_t)args[11]);
  return 0;
}

/* How fast memory is: the triad of the STREAM benchmark. */
int32_t triad(void **args) {
  double *restrict a = args[1];
  const double *restrict b = args[2], *restrict c = args[3];
  int64_t count = (int64_t)args[4];
  for (int64_t i = 0; i < count; i++) {
    a[i] = b[i] + 3.0 * c[i];
  }
  return 0;
}
