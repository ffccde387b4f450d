// Arithmetic on indices, and which thread runs.
//
// INDEX_t is the type of a coordinate; HASH_FACTOR a number.

/// PLAINLY
// For a kernel of so many nested loops that to optimise it takes minutes.
#ifdef __clang__
#define PLAINLY __attribute__((optnone, noinline))
#else
#define PLAINLY __attribute__((optimize("O0")))
#endif

/// leading_bits
// The product wraps around; its leading bits depend on all bits of the key.
static inline int64_t leading_bits(int64_t key, int64_t shift) {
  return (int64_t)((uint64_t)key * UINT64_C(HASH_FACTOR) >> shift);
}

/// floor_quotient
static inline int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/// floor_remainder
static inline int64_t floor_remainder(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// thread_count
static int64_t thread_count(void) {
#ifdef _OPENMP
  extern int omp_get_max_threads(void);
  return omp_get_max_threads();
#else
  return 1;
#endif
}

/// thread_number
static int64_t thread_number(void) {
#ifdef _OPENMP
  extern int omp_get_thread_num(void);
  return omp_get_thread_num();
#else
  return 0;
#endif
}

/// lower_bound
static inline int64_t lower_bound_INDEX(const INDEX_t *array, int64_t begin, int64_t end, int64_t key) {
  int64_t length = end - begin;
  while (length > 0) {
    int64_t half = length / 2;
    bool before = array[begin + half] < key;
    begin = before ? begin + half + 1 : begin;
    length = before ? length - half - 1 : half;
  }
  return begin;
}
