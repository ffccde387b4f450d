// Operators on complex numbers, as NumPy computes them.
//
// TYPE is the C type and NAME the dtype; REAL is the type of a part, and SUFFIX what its functions end with.

/// of
static inline TYPE NAME_of(REAL real, REAL imag) { return __builtin_complex(real, imag); }

/// divide
// As NumPy divides: Smith's method, and componentwise by a zero.
static inline TYPE divide_NAME(TYPE a, TYPE b) {
  REAL ar = crealSUFFIX(a), ai = cimagSUFFIX(a), br = crealSUFFIX(b), bi = cimagSUFFIX(b);
  if (fabsSUFFIX(br) >= fabsSUFFIX(bi)) {
    if (br == 0 && bi == 0) return __builtin_complex(ar / fabsSUFFIX(br), ai / fabsSUFFIX(br));
    REAL ratio = bi / br, scale = 1 / (br + bi * ratio);
    return __builtin_complex((ar + ai * ratio) * scale, (ai - ar * ratio) * scale);
  }
  REAL ratio = br / bi, scale = 1 / (bi + br * ratio);
  return __builtin_complex((ar * ratio + ai) * scale, (ai * ratio - ar) * scale);
}

/// power
// As NumPy: z**0 is 1, 0**z is 0 or nan, small whole exponents multiply.
static inline TYPE power_NAME(TYPE a, TYPE b) {
  REAL br = crealSUFFIX(b), bi = cimagSUFFIX(b);
  if (br == 0 && bi == 0) return 1;
  if (a == 0) return br > 0 ? 0 : __builtin_complex((REAL)NAN, (REAL)NAN);
  if (bi != 0 || !(fabsSUFFIX(br) < 100) || br != truncSUFFIX(br)) return cpowSUFFIX(a, b);
  TYPE result = 1;
  for (int count = (int)fabsSUFFIX(br); count > 0; count /= 2) {
    if (count & 1) result *= a;
    a *= a;
  }
  return br < 0 ? divide_NAME(1, result) : result;
}

/// isnan
static inline bool isnan_NAME(TYPE z) { return isnan(crealSUFFIX(z)) || isnan(cimagSUFFIX(z)); }

/// isinf
static inline bool isinf_NAME(TYPE z) { return isinf(crealSUFFIX(z)) || isinf(cimagSUFFIX(z)); }

/// isfinite
static inline bool isfinite_NAME(TYPE z) { return isfinite(crealSUFFIX(z)) && isfinite(cimagSUFFIX(z)); }

/// log2
static inline TYPE log2_NAME(TYPE z) { return clogSUFFIX(z) / (REAL)M_LN2; }

/// log10
static inline TYPE log10_NAME(TYPE z) { return clogSUFFIX(z) / (REAL)M_LN10; }

/// log1p
static inline TYPE log1p_NAME(TYPE z) {
  REAL re = crealSUFFIX(z) + 1, im = cimagSUFFIX(z);
  return __builtin_complex(logSUFFIX(hypotSUFFIX(re, im)), atan2SUFFIX(im, re));
}

/// expm1
static inline TYPE expm1_NAME(TYPE z) {
  REAL re = crealSUFFIX(z), im = cimagSUFFIX(z), half = sinSUFFIX(im / 2);
  return __builtin_complex(expm1SUFFIX(re) * cosSUFFIX(im) - 2 * half * half, expSUFFIX(re) * sinSUFFIX(im));
}

/// square
static inline TYPE square_NAME(TYPE x) { return x * x; }
