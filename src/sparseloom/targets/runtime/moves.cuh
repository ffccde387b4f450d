// Neighbours that one instruction reads or writes.
// At once; a caller's array that begins anywhere has a program of its own, which says so.

/// read_wide
#ifdef ANYWHERE
template <int count, class T> static __device__ __forceinline__ void read_wide(T *kept, const T *place) {
  #pragma unroll
  for (int k = 0; k < count; k++) kept[k] = place[k];
}
#else
template <int count, class T> static __device__ __forceinline__ void read_wide(T *kept, const T *place) {
  const int each = (count * sizeof(T) % 16 == 0 ? 16 : 8) / sizeof(T);
  struct alignas(each * sizeof(T)) neighbours { T numbers[each]; };
  #pragma unroll
  for (int k = 0; k < count; k += each) {
    const neighbours word = *(const neighbours *)(place + k);
    #pragma unroll
    for (int n = 0; n < each; n++) kept[k + n] = word.numbers[n];
  }
}
#endif

/// write_wide
#ifdef ANYWHERE
template <int count, class T> static __device__ __forceinline__ void write_wide(const T *kept, T *place) {
  #pragma unroll
  for (int k = 0; k < count; k++) place[k] = kept[k];
}
#else
template <int count, class T> static __device__ __forceinline__ void write_wide(const T *kept, T *place) {
  const int each = (count * sizeof(T) % 16 == 0 ? 16 : 8) / sizeof(T);
  struct alignas(each * sizeof(T)) neighbours { T numbers[each]; };
  #pragma unroll
  for (int k = 0; k < count; k += each) {
    neighbours word;
    #pragma unroll
    for (int n = 0; n < each; n++) word.numbers[n] = kept[k + n];
    *(neighbours *)(place + k) = word;
  }
}
#endif
