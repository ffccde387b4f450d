/* Loops by hand over tensors. They stand behind those of hand.c. */

/* Tensors in CSF: pos and crd of every level, then vals. One multiplication for each fibre rather than for each entry: its sums are in
   registers, and those of the slice in the caches. */

INLINE void fibre(lanes *sums, const int32_t *crd, const REAL *vals, const REAL *D, int64_t p, int64_t end, int n) {
  clear(sums, n);
  for (; p < end; p++) {
    if (p + AHEAD < end) fetch(D + (int64_t)crd[p + AHEAD] * n * W, n * W);
    add_row(sums, vals[p], D + (int64_t)crd[p] * n * W, n);
  }
}

INLINE void multiply_into(REAL *to, const lanes *found, const REAL *row, int n) {
#pragma GCC unroll 16
  for (int v = 0; v < n; v++) *(lanes *)(to + v * W) += found[v] * *(const lanes *)(row + v * W);
}

INLINE void mttkrp_slice(void **args, int64_t p, int n) {
  const int32_t *pos2 = ARRAY(int32_t, 3), *crd2 = ARRAY(int32_t, 4), *pos3 = ARRAY(int32_t, 5);
  REAL *to = ARRAY(REAL, 0) + (int64_t)ARRAY(int32_t, 2)[p] * n * W;
  for (int64_t q = pos2[p]; q < pos2[p + 1]; q++) {
    lanes found[MOST];
    fibre(found, ARRAY(int32_t, 6), ARRAY(REAL, 7), ARRAY(REAL, 9), pos3[q], pos3[q + 1], n);
    multiply_into(to, found, ARRAY(REAL, 8) + (int64_t)crd2[q] * n * W, n);
  }
}

int32_t mttkrp(void **args) {
  int64_t slices = ARRAY(int32_t, 1)[1], step = slices / (pieces() * 4) + 1;
  memset(ARRAY(REAL, 0), 0, NUMBER(10) * NUMBER(11) * sizeof(REAL));
  if (NUMBER(11) / W > MOST) return 1;
#define CALL(n)                                                                                                                    \
  _Pragma("omp parallel for schedule(dynamic, step)") for (int64_t p = 0; p < slices; p++) mttkrp_slice(args, p, n)
  FOR_STRIP(NUMBER(11), MOST)
#undef CALL
  return 0;
}

INLINE void mttkrp4_slice(void **args, int64_t p, int n) {
  const int32_t *pos2 = ARRAY(int32_t, 3), *crd2 = ARRAY(int32_t, 4), *pos3 = ARRAY(int32_t, 5), *crd3 = ARRAY(int32_t, 6);
  const int32_t *pos4 = ARRAY(int32_t, 7);
  REAL *to = ARRAY(REAL, 0) + (int64_t)ARRAY(int32_t, 2)[p] * n * W, between[MOST * W];
  for (int64_t q = pos2[p]; q < pos2[p + 1]; q++) {
    memset(between, 0, n * W * sizeof(REAL));
    for (int64_t s = pos3[q]; s < pos3[q + 1]; s++) {
      lanes found[MOST];
      fibre(found, ARRAY(int32_t, 8), ARRAY(REAL, 9), ARRAY(REAL, 12), pos4[s], pos4[s + 1], n);
      multiply_into(between, found, ARRAY(REAL, 11) + (int64_t)crd3[s] * n * W, n);
    }
    for (int k = 0; k < n * W; k++) to[k] += between[k] * ARRAY(REAL, 10)[(int64_t)crd2[q] * n * W + k];
  }
}

int32_t mttkrp4(void **args) {
  int64_t slices = ARRAY(int32_t, 1)[1], step = slices / (pieces() * 4) + 1;
  memset(ARRAY(REAL, 0), 0, NUMBER(13) * NUMBER(14) * sizeof(REAL));
  if (NUMBER(14) / W > MOST) return 1;
#define CALL(n)                                                                                                                    \
  _Pragma("omp parallel for schedule(dynamic, step)") for (int64_t p = 0; p < slices; p++) mttkrp4_slice(args, p, n)
  FOR_STRIP(NUMBER(14), MOST)
#undef CALL
  return 0;
}

/* The sum of B(i,j,k) * a(i) * b(j) * c(k). */
int32_t inner(void **args) {
  const int32_t *crd1 = ARRAY(int32_t, 2), *pos2 = ARRAY(int32_t, 3), *crd2 = ARRAY(int32_t, 4), *pos3 = ARRAY(int32_t, 5);
  const REAL *a = ARRAY(REAL, 8), *b = ARRAY(REAL, 9);
  int64_t slices = ARRAY(int32_t, 1)[1], step = slices / (pieces() * 4) + 1;
  double total = 0;
#pragma omp parallel for schedule(dynamic, step) reduction(+ : total)
  for (int64_t p = 0; p < slices; p++) {
    REAL sum = 0;
    for (int64_t q = pos2[p]; q < pos2[p + 1]; q++) {
      sum += b[crd2[q]] * dot(ARRAY(int32_t, 6), ARRAY(REAL, 7), ARRAY(REAL, 10), pos3[q], pos3[q + 1]);
    }
    total += (double)(a[crd1[p]] * sum);
  }
  *ARRAY(REAL, 0) = (REAL)total;
  return 0;
}
