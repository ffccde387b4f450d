// How a GPU updates one location that it has no instruction for: the word is swapped until nobody came between.
//
// TYPE is the C type and NAME the dtype, WORD an integer as wide, MASK has the bits of a value; COMBINED is an expression of now and value.

/// swap
static __device__ __forceinline__ void atomic_OPERATOR_NAME(TYPE *place, TYPE value) {
  WORD *const word = (WORD *)place;
  WORD seen = *word, expected;
  do {
    expected = seen;
    TYPE now = *(TYPE *)&expected;
    now = COMBINED;
    WORD wanted;
    *(TYPE *)&wanted = now;
    seen = atomicCAS(word, expected, wanted);
  } while (seen != expected);
}

/// swap_part
// A value smaller than a word is swapped with the word around it.
static __device__ __forceinline__ void atomic_OPERATOR_NAME(TYPE *place, TYPE value) {
  uint32_t *const word = (uint32_t *)((uint64_t)place & ~(uint64_t)3);
  const int shift = ((uint64_t)place & 3) * 8;
  const uint32_t mask = MASK << shift;
  uint32_t seen = *word, expected;
  do {
    expected = seen;
    TYPE now = (TYPE)((expected & mask) >> shift);
    now = COMBINED;
    seen = atomicCAS(word, expected, (expected & ~mask) | (((uint32_t)now << shift) & mask));
  } while (seen != expected);
}
