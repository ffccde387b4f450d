// Whether storage on a device keeps the promises of its levels.
//
// TYPE is the C type of an index or a number and NAME its dtype; INFINITE are the bits of infinity in a half.

/// common
__device__ __forceinline__ void report(unsigned long long *fault, long long place, int what) {
  atomicMin(fault, (unsigned long long)place * 16 + what);
}

extern "C" __global__ void all_tied(unsigned char *tied, long long count) {
  long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (p < count) tied[p] = p > 0;
}

/// indices
// Positions of so many parents, within so many coordinates.
extern "C" __global__ void positions_NAME(const TYPE *pos, long long parents, long long capacity, unsigned long long *fault) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i > parents) return;
  if (i == 0 && pos[0] != 0) report(fault, 0, 1);
  if (i > 0 && pos[i] < pos[i - 1]) report(fault, i, 2);
  if (i == parents && pos[i] > capacity) report(fault, i, 3);
}

// Which positions are not the first of their parent: all that no parent begins with.
extern "C" __global__ void beginnings_NAME(const TYPE *pos, long long parents, unsigned char *tied, long long count) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < parents && pos[i] < count) tied[pos[i]] = 0;
}

// Coordinates of one level; what is tied stands below the same parent as what comes before it. Ties for the next level replace them.
extern "C" __global__ void coordinates_NAME(const TYPE *crd, long long count, long long size, unsigned char *tied, long long ordered,
                                           long long unique, unsigned long long *fault) {
  long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (p >= count) return;
  TYPE here = crd[p];
  if (here < 0 || here >= size) report(fault, p, 4);
  if (p == 0 || !tied[p]) return;
  TYPE before = crd[p - 1];
  if (ordered && here < before) report(fault, p, 5);
  if (unique && here == before) report(fault, p, 6);
  if (here != before) tied[p] = 0;
}

/// numbers
// Values that are no numbers.
extern "C" __global__ void numbers_NAME(const TYPE *values, long long count, unsigned long long *fault) {
  long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (p < count && values[p] != values[p]) report(fault, p, 7);
}

/// halves
// Bits of halves that are no numbers: beyond those of infinity.
extern "C" __global__ void numbers_NAME(const unsigned short *values, long long count, unsigned long long *fault) {
  long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (p < count && (values[p] & 0x7fff) > INFINITE) report(fault, p, 7);
}
