// What the lanes of a warp do together.
//
// WARP is how many lanes a warp has, and lane_mask has a bit for each. INDEX_t is the type of a coordinate.

/// is_mine
// Where all lanes of a warp add to one place, the first of them does it for all.
template <class T> static __device__ __forceinline__ bool is_mine(T *const *place, T &value) {
  int same;
  const lane_mask mask = __activemask();
  __match_all_sync(mask, (uint64_t)*place, &same);
  if (!same || mask != (lane_mask)-1) return true;
  #pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(mask, value, step);
  return threadIdx.x % WARP == 0;
}

/// segment_heads
// Which of the lanes of a group have another place than the one before.
template <int lanes> static __device__ __forceinline__ lane_mask segment_heads(lane_mask mask, int64_t place) {
  const int64_t before = __shfl_up_sync(mask, place, 1);
  const lane_mask heads = __ballot_sync(mask, threadIdx.x % lanes == 0 || before != place);
  return heads >> (threadIdx.x % WARP / lanes * lanes) & ((lane_mask)-1 >> (8 * sizeof(lane_mask) - lanes));
}

/// active_lanes
// Which of the lanes of a group have something to add.
template <int lanes> static __device__ __forceinline__ lane_mask active_lanes(lane_mask mask, int64_t place) {
  return __ballot_sync(mask, place >= 0) >> (threadIdx.x % WARP / lanes * lanes) & ((lane_mask)-1 >> (8 * sizeof(lane_mask) - lanes));
}

/// search
// By all of so many lanes: each looks at the end of one of as many parts.
template <int lanes> static __device__ int64_t search_INDEX(const INDEX_t *array, int64_t begin, int64_t end, int64_t key, lane_mask mask) {
  const int lane = threadIdx.x % lanes;
  while (begin < end) {
    const int64_t part = (end - begin + lanes - 1) / lanes, first = begin + lane * part;
    const int64_t last = first + part < end ? first + part - 1 : end - 1;
    const int before = count_lanes(__ballot_sync(mask, first < end && array[last] < key) & mask);
    begin += before * part;
    if (begin >= end) return end;
    end = begin + part < end ? begin + part - 1 : end - 1;
  }
  return begin;
}
