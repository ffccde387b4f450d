// Halves in C: float16 and bfloat16 are bits in memory, and float32 in between. Rounding is to the nearest, ties to even; nan stays nan.
//
// A processor with instructions for float16 is asked for them. Without, a compiler would call a function of its library, which may not be
// there, so bits are moved by hand: the subtraction and the addition of floats below do the shifts that subnormal numbers need.
//
// HALF is float16 or bfloat16. gcc 12 makes no vectors of conversions of float16 by itself, and has names for the instructions that need no
// header.

/// HAS_FLOAT16
#if defined(__FLT16_MAX__) && (defined(__F16C__) || defined(__AVX512FP16__) || defined(__aarch64__))
#define HAS_FLOAT16 1
#else
#define HAS_FLOAT16 0
#endif

/// float16_bits
typedef uint16_t float16_bits;

/// bfloat16_bits
typedef uint16_t bfloat16_bits;

/// float32_parts
union float32_parts { float number; uint32_t bits; };

/// float32_of_float16
static inline float float32_of_float16(float16_bits half) {
#if HAS_FLOAT16
  union { float16_bits bits; _Float16 number; } given = {half};
  return (float)given.number;
#else
  union float32_parts made, least;
  const uint32_t exponent = ((uint32_t)half & 0x7c00u) << 13;
  made.bits = (((uint32_t)half & 0x7fffu) << 13) + (112u << 23);
  least.bits = 113u << 23;
  if (exponent == 0x0f800000u) made.bits += 112u << 23;
  if (exponent == 0) {
    made.bits += 1u << 23;
    made.number -= least.number;
  }
  made.bits |= ((uint32_t)half & 0x8000u) << 16;
  return made.number;
#endif
}

/// float16_of_float32
static inline float16_bits float16_of_float32(float number) {
#if HAS_FLOAT16
  union { _Float16 number; float16_bits bits; } made = {(_Float16)number};
  return made.bits;
#else
  union float32_parts given = {number}, shifter;
  const uint32_t sign = given.bits & 0x80000000u, size = given.bits ^ sign;
  uint32_t made = (size + 0xc8000fffu + (size >> 13 & 1u)) >> 13;
  shifter.bits = 0x3f000000u;
  given.bits = size;
  if (size < 0x38800000u) {
    given.number += shifter.number;
    made = given.bits - shifter.bits;
  }
  if (size >= 0x47800000u) made = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return (float16_bits)(made | sign >> 16);
#endif
}

/// float32_of_bfloat16
static inline float float32_of_bfloat16(bfloat16_bits half) {
  union float32_parts made;
  made.bits = (uint32_t)half << 16;
  return made.number;
}

/// bfloat16_of_float32
static inline bfloat16_bits bfloat16_of_float32(float number) {
  union float32_parts given = {number};
  const uint32_t rounded = given.bits + 0x7fffu + (given.bits >> 16 & 1u), quiet = given.bits | 0x400000u;
  return (bfloat16_bits)((number != number ? quiet : rounded) >> 16);
}

/// short_of
static inline short_float32 short_of_HALF(const HALF_bits *from) {
  return (short_float32){float32_of_HALF(from[0]), float32_of_HALF(from[1]), float32_of_HALF(from[2]), float32_of_HALF(from[3])};
}

/// short_to
static inline void short_to_HALF(HALF_bits *to, short_float32 numbers) {
  for (int k = 0; k < 4; k++) to[k] = HALF_of_float32(numbers[k]);
}

/// half_lanes
typedef uint16_t half_lanes __attribute__((vector_size(REGISTER_BYTES / 2), aligned(2), may_alias));

/// wide_lanes
typedef uint32_t wide_lanes __attribute__((vector_size(REGISTER_BYTES)));

/// vector_of_bfloat16
static inline vector_float32 vector_of_bfloat16(const bfloat16_bits *from) {
  return (vector_float32)(__builtin_convertvector(*(const half_lanes *)from, wide_lanes) << 16);
}

/// vector_of_float16
static inline vector_float32 vector_of_float16(const float16_bits *from) {
#if defined(__F16C__) && defined(__GNUC__) && !defined(__clang__) && REGISTER_BYTES == 64
  typedef short bits __attribute__((vector_size(32)));
  typedef float numbers __attribute__((vector_size(64)));
  return (vector_float32)__builtin_ia32_vcvtph2ps512_mask((bits)*(const half_lanes *)from, (numbers){}, -1, 4);
#elif defined(__F16C__) && defined(__GNUC__) && !defined(__clang__) && REGISTER_BYTES == 32
  typedef short bits __attribute__((vector_size(16)));
  return (vector_float32)__builtin_ia32_vcvtph2ps256((bits)*(const half_lanes *)from);
#else
  vector_float32 made;
  for (int k = 0; k < lanes_float32; k++) made[k] = float32_of_float16(from[k]);
  return made;
#endif
}

/// vector_to_bfloat16
static inline void vector_to_bfloat16(bfloat16_bits *to, vector_float32 numbers) {
  const wide_lanes bits = (wide_lanes)numbers, missing = (wide_lanes)(numbers != numbers);
  const wide_lanes rounded = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
  *(half_lanes *)to = __builtin_convertvector(((missing & quiet) | (~missing & rounded)) >> 16, half_lanes);
}

/// vector_to_float16
static inline void vector_to_float16(float16_bits *to, vector_float32 numbers) {
#if defined(__F16C__) && defined(__GNUC__) && !defined(__clang__) && REGISTER_BYTES == 64
  typedef short bits __attribute__((vector_size(32)));
  typedef float rounded __attribute__((vector_size(64)));
  *(half_lanes *)to = (half_lanes)__builtin_ia32_vcvtps2ph512_mask((rounded)numbers, 0, (bits){}, -1);
#elif defined(__F16C__) && defined(__GNUC__) && !defined(__clang__) && REGISTER_BYTES == 32
  typedef float rounded __attribute__((vector_size(32)));
  *(half_lanes *)to = (half_lanes)__builtin_ia32_vcvtps2ph256((rounded)numbers, 0);
#else
  for (int k = 0; k < lanes_float32; k++) to[k] = float16_of_float32(numbers[k]);
#endif
}
