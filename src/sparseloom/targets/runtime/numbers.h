// Operators on numbers that C does not have, as NumPy computes them.
//
// TYPE is the C type and NAME the dtype, UNSIGNED an unsigned type at least as wide, and SUFFIX what functions of the type end with.
// Integers are divided towards minus infinity, and by 0 to 0. The quotient of the smallest number and -1 does not fit, and traps.

/// signed minimum
static inline TYPE minimum_NAME(TYPE a, TYPE b) { return a < b ? a : b; }

/// signed maximum
static inline TYPE maximum_NAME(TYPE a, TYPE b) { return a > b ? a : b; }

/// signed sign
static inline TYPE sign_NAME(TYPE x) { return (x > 0) - (x < 0); }

/// signed absolute
static inline TYPE absolute_NAME(TYPE x) { return x < 0 ? (TYPE)-(UNSIGNED)x : x; }

/// signed square
static inline TYPE square_NAME(TYPE x) { return (TYPE)((UNSIGNED)x * (UNSIGNED)x); }

/// signed power
static inline TYPE power_NAME(TYPE base, TYPE exponent) {
  if (exponent < 0) return base == 1 ? 1 : base != -1 ? 0 : exponent & 1 ? -1 : 1;
  UNSIGNED result = 1, factor = (UNSIGNED)base;
  while (exponent > 0) {
    if (exponent & 1) result *= factor;
    factor *= factor;
    exponent /= 2;
  }
  return (TYPE)result;
}

/// signed floordiv
static inline TYPE floordiv_NAME(TYPE a, TYPE b) {
  if (b == 0) return 0;
  if (b == -1) return (TYPE)(0 - (UNSIGNED)a);
  return (TYPE)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

/// signed mod
static inline TYPE mod_NAME(TYPE a, TYPE b) {
  if (b == 0) return 0;
  if (b == -1) return 0;
  TYPE rest = (TYPE)(a % b);
  return rest != 0 && (rest < 0) != (b < 0) ? (TYPE)(rest + b) : rest;
}

/// unsigned minimum
static inline TYPE minimum_NAME(TYPE a, TYPE b) { return a < b ? a : b; }

/// unsigned maximum
static inline TYPE maximum_NAME(TYPE a, TYPE b) { return a > b ? a : b; }

/// unsigned sign
static inline TYPE sign_NAME(TYPE x) { return (x > 0); }

/// unsigned absolute
static inline TYPE absolute_NAME(TYPE x) { return x < 0 ? (TYPE)-(UNSIGNED)x : x; }

/// unsigned square
static inline TYPE square_NAME(TYPE x) { return (TYPE)((UNSIGNED)x * (UNSIGNED)x); }

/// unsigned power
static inline TYPE power_NAME(TYPE base, TYPE exponent) {
  UNSIGNED result = 1, factor = (UNSIGNED)base;
  while (exponent > 0) {
    if (exponent & 1) result *= factor;
    factor *= factor;
    exponent /= 2;
  }
  return (TYPE)result;
}

/// unsigned floordiv
static inline TYPE floordiv_NAME(TYPE a, TYPE b) {
  if (b == 0) return 0;
  return (TYPE)(a / b);
}

/// unsigned mod
static inline TYPE mod_NAME(TYPE a, TYPE b) {
  if (b == 0) return 0;
  TYPE rest = (TYPE)(a % b);
  return rest;
}

/// float minimum
static inline TYPE minimum_NAME(TYPE a, TYPE b) { return a < b || a != a ? a : b; }

/// float maximum
static inline TYPE maximum_NAME(TYPE a, TYPE b) { return a > b || a != a ? a : b; }

/// float sign
static inline TYPE sign_NAME(TYPE x) { return x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x; }

/// float square
static inline TYPE square_NAME(TYPE x) { return x * x; }

/// float floordiv
static inline TYPE floordiv_NAME(TYPE a, TYPE b) {
  if (b == 0) return a / b;
  TYPE rest = fmodSUFFIX(a, b), quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysignSUFFIX(0, a / b);
  TYPE whole = floorSUFFIX(quotient);
  return quotient - whole > (TYPE)0.5 ? whole + 1 : whole;
}

/// float mod
static inline TYPE mod_NAME(TYPE a, TYPE b) {
  TYPE rest = fmodSUFFIX(a, b);
  if (b == 0 || rest != rest) return rest;
  return rest == 0 ? copysignSUFFIX(0, b) : (b < 0) != (rest < 0) ? rest + b : rest;
}
