// NVRTC compiles without headers, so the types and constants of C are here.

/// types
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;

/// NAN
#define NAN __int_as_float(0x7fffffff)

/// INFINITY
#define INFINITY __int_as_float(0x7f800000)

/// INT32_MIN
#define INT32_MIN (-2147483647 - 1)

/// INT64_MIN
#define INT64_MIN (-9223372036854775807LL - 1)

/// M_LN2
#define M_LN2 0.69314718055994530942

/// M_LN10
#define M_LN10 2.30258509299404568402

/// UINT64_C
#define UINT64_C(number) number##ULL
