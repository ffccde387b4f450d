// Complex numbers z with parts z.re and z.im; the real functions are overloaded.

/// complex_number
template <class R> struct complex_number {
  R re, im;
  complex_number() = default;
  __device__ complex_number(R re, R im = 0) : re(re), im(im) {}
  template <class S> __device__ explicit complex_number(complex_number<S> z) : re((R)z.re), im((R)z.im) {}
  template <class N> __device__ explicit operator N() const { return (N)re; }
  __device__ complex_number operator-() const { return {-re, -im}; }
  friend __device__ complex_number operator+(complex_number a, complex_number b) { return {a.re + b.re, a.im + b.im}; }
  friend __device__ complex_number operator-(complex_number a, complex_number b) { return {a.re - b.re, a.im - b.im}; }
  friend __device__ complex_number operator*(complex_number a, complex_number b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend __device__ complex_number operator/(complex_number a, R b) { return {a.re / b, a.im / b}; }
  friend __device__ bool operator==(complex_number a, complex_number b) { return a.re == b.re && a.im == b.im; }
  friend __device__ bool operator!=(complex_number a, complex_number b) { return !(a == b); }
  __device__ complex_number &operator+=(complex_number b) { return *this = *this + b; }
  __device__ complex_number &operator-=(complex_number b) { return *this = *this - b; }
  __device__ complex_number &operator*=(complex_number b) { return *this = *this * b; }
};

/// conj
template <class R> static __device__ __forceinline__ complex_number<R> conj(complex_number<R> z) {
  return {z.re, -z.im};
}

/// cexp
template <class R> static __device__ __forceinline__ complex_number<R> cexp(complex_number<R> z) {
  return {exp(z.re) * cos(z.im), z.im == 0 ? z.im : exp(z.re) * sin(z.im)};
}

/// clog
template <class R> static __device__ __forceinline__ complex_number<R> clog(complex_number<R> z) {
  return {log(hypot(z.re, z.im)), atan2(z.im, z.re)};
}

/// csin
template <class R> static __device__ __forceinline__ complex_number<R> csin(complex_number<R> z) {
  return {sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)};
}

/// ccos
template <class R> static __device__ __forceinline__ complex_number<R> ccos(complex_number<R> z) {
  return {cos(z.re) * cosh(z.im), -sin(z.re) * sinh(z.im)};
}

/// csinh
template <class R> static __device__ __forceinline__ complex_number<R> csinh(complex_number<R> z) {
  return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)};
}

/// ccosh
template <class R> static __device__ __forceinline__ complex_number<R> ccosh(complex_number<R> z) {
  return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)};
}

/// ctan
template <class R> static __device__ __forceinline__ complex_number<R> ctan(complex_number<R> z) {
  return -times_i(ctanh(times_i(z)));
}

/// casin
template <class R> static __device__ __forceinline__ complex_number<R> casin(complex_number<R> z) {
  return -times_i(clog(times_i(z) + csqrt(complex_number<R>(1) - z * z)));
}

/// cacos
template <class R> static __device__ __forceinline__ complex_number<R> cacos(complex_number<R> z) {
  return complex_number<R>((R)1.57079632679489661923) - casin(z);
}

/// catan
template <class R> static __device__ __forceinline__ complex_number<R> catan(complex_number<R> z) {
  return times_i(clog(complex_number<R>(1) - times_i(z)) - clog(complex_number<R>(1) + times_i(z))) * complex_number<R>((R)0.5);
}

/// times_i
template <class R> static __device__ __forceinline__ complex_number<R> times_i(complex_number<R> z) {
  return {-z.im, z.re};
}

/// csqrt
template <class R> static __device__ __forceinline__ complex_number<R> csqrt(complex_number<R> z) {
  if (z.re == 0 && z.im == 0) return {0, z.im};
  const R root = sqrt((fabs(z.re) + hypot(z.re, z.im)) / 2);
  if (z.re >= 0) return {root, z.im / (2 * root)};
  return {fabs(z.im) / (2 * root), copysign(root, z.im)};
}

/// ctanh
template <class R> static __device__ __forceinline__ complex_number<R> ctanh(complex_number<R> z) {
  if (fabs(z.re) > 20) return {copysign((R)1, z.re), 4 * sin(z.im) * cos(z.im) * exp(-2 * fabs(z.re))};
  const R scale = cosh(2 * z.re) + cos(2 * z.im);
  return {sinh(2 * z.re) / scale, sin(2 * z.im) / scale};
}

/// creal
template <class R> static __device__ __forceinline__ R creal(complex_number<R> z) {
  return z.re;
}

/// cimag
template <class R> static __device__ __forceinline__ R cimag(complex_number<R> z) {
  return z.im;
}

/// cabs
template <class R> static __device__ __forceinline__ R cabs(complex_number<R> z) {
  return hypot(z.re, z.im);
}

/// cpow
template <class R> static __device__ __forceinline__ complex_number<R> cpow(complex_number<R> a, complex_number<R> b) {
  return cexp(b * clog(a));
}

/// cpowf
static __device__ __forceinline__ complex64_t cpowf(complex64_t a, complex64_t b) { return cpow(a, b); }
