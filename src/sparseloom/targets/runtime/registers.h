// The vector registers of the processor.

/// REGISTER_BYTES
#if defined(__AVX512F__)
#define REGISTER_BYTES 64
#elif defined(__AVX2__)
#define REGISTER_BYTES 32
#else
#define REGISTER_BYTES 16
#endif

/// HAS_MASKS
// gcc's own names for instructions: the header that has the usual ones takes half a second to read.
#if REGISTER_BYTES == 64 && defined(__AVX512VL__) && defined(__GNUC__) && !defined(__clang__)
#define HAS_MASKS 1
#else
#define HAS_MASKS 0
#endif
typedef int eight_int32 __attribute__((vector_size(32)));
typedef int sixteen_int32 __attribute__((vector_size(64)));
typedef long long eight_int64 __attribute__((vector_size(64)));

/// lanes_below
static inline unsigned lanes_below(int64_t count, unsigned all) { return count < 32 ? ((1u << count) - 1) & all : all; }
