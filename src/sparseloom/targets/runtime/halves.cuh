// A GPU has instructions for float16, which its assembler knows without a header.

/// float32_of_float16
static inline float float32_of_float16(float16_bits half) {
  float made;
  asm("cvt.f32.f16 %0, %1;" : "=f"(made) : "h"(half));
  return made;
}

/// float16_of_float32
static inline float16_bits float16_of_float32(float number) {
  float16_bits made;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(made) : "f"(number));
  return made;
}
