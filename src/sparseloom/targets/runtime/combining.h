// What threads update together, and reductions that OpenMP does not have.
//
// TYPE is the C type and NAME the dtype; OPERATOR is what combines values, COMBINED an expression of seen and value, and FIRST what changes no reduction.

/// atomic
static inline void atomic_OPERATOR_NAME(TYPE *place, TYPE value) {
  TYPE seen, wanted;
  __atomic_load(place, &seen, __ATOMIC_RELAXED);
  do {
    wanted = COMBINED;
  } while (!__atomic_compare_exchange(place, &seen, &wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/// reduce
#pragma omp declare reduction(reduce_OPERATOR_NAME : TYPE : omp_out = OPERATOR_NAME(omp_out, omp_in)) initializer(omp_priv = FIRST)
