// Code that sorts the coordinates of a row, all different, which a workspace met in any order.
//
// What is in order already is left alone. Otherwise the way that takes least depends on how many there are, and how far apart:
//
//     few              each goes to the place that says how many are less. Who compares all with all does not branch on any of them
//     many and near    the flags that say which were met are made bits, 64 to a word, and the words are read in order
//     many             each sets its bit in words that are read in order
//     more apart       the same, with a bit for every word that says which of them to read
//     far apart        they are distributed byte by byte
//
// Inserting one by one took 5 to 8 ns a coordinate, as no branch can be foreseen; comparing all takes 1.5 to 3.
//
// INDEX_t is the type of a coordinate.

/// rank
// WIDTH lanes at a time.
// The last lanes are computed twice rather than filled up: whatever is written just
// before would have to be waited for.
typedef INDEX_t lanesWIDTH_INDEX __attribute__((vector_size(WIDTH * sizeof(INDEX_t))));

static inline __attribute__((always_inline)) void rankWIDTH_INDEX(const INDEX_t *restrict from, INDEX_t *restrict to, int64_t count) {
  for (int64_t next = 0; next < count; next += WIDTH) {
    const INDEX_t *first = from + (next + WIDTH < count ? next : count - WIDTH);
    lanesWIDTH_INDEX keys, places = {0};
    memcpy(&keys, first, sizeof(keys));
    for (int64_t k = 0; k < count; k++) places -= keys > from[k];
    for (int lane = 0; lane < WIDTH; lane++) to[places[lane]] = first[lane];
  }
}

/// insert
static inline void insert_INDEX(INDEX_t *array, int64_t count) {
  for (int64_t k = 1; k < count; k++) {
    INDEX_t key = array[k];
    int64_t place = k;
    for (; place > 0 && array[place - 1] > key; place--) array[place] = array[place - 1];
    array[place] = key;
  }
}

/// read_bits
// Four at a time, whether they are there or not: what comes next writes over those that are not.
static inline INDEX_t *read_bits_INDEX(INDEX_t *to, uint64_t bits, int64_t first) {
  const int count = __builtin_popcountll(bits);
  for (int done = 0; done < count; done += 4) {
    for (int k = 0; k < 4; k++, bits &= bits - 1) to[done + k] = (INDEX_t)(first + __builtin_ctzll(bits | UINT64_C(1) << 63));
  }
  return to + count;
}

/// flags_as_bits
// Eight flags are eight bytes, of which the product brings the last bits side by side into the first byte.
static inline uint64_t flags_as_bits_INDEX(const bool *flags) {
  uint64_t bits = 0;
  for (int byte = 0; byte < 8; byte++) {
    uint64_t eight;
    memcpy(&eight, flags + 8 * byte, sizeof(eight));
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) eight = __builtin_bswap64(eight);
    bits |= (eight * UINT64_C(0x0102040810204080) >> 56) << 8 * byte;
  }
  return bits;
}

/// distribute
static void distribute_INDEX(INDEX_t *array, INDEX_t *room, int64_t count, INDEX_t largest) {
  INDEX_t *from = array, *to = room;
  for (unsigned shift = 0; shift < 8 * sizeof(INDEX_t) && largest >> shift; shift += 8) {
    int64_t starts[257] = {0};
    for (int64_t k = 0; k < count; k++) starts[(from[k] >> shift & 255) + 1]++;
    for (int byte = 0; byte < 256; byte++) starts[byte + 1] += starts[byte];
    for (int64_t k = 0; k < count; k++) to[starts[from[k] >> shift & 255]++] = from[k];
    INDEX_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != array) memcpy(array, from, (size_t)count * sizeof(INDEX_t));
}

/// sort
static void sort_INDEX(INDEX_t *array, INDEX_t *scratch, const bool *flags, int64_t count, int64_t extent) {
  if (count < 4) {
    insert_INDEX(array, count);
    return;
  }
  int64_t ordered = 1;
  while (ordered < count && array[ordered - 1] < array[ordered]) ordered++;
  if (ordered == count) return;
  INDEX_t *room = scratch + (extent / 32 + extent / 2048 + 8);
  if (count <= 96) {
    if (count < 8) rank4_INDEX(array, room, count);
    else if (count < 32) rank8_INDEX(array, room, count);
    else rank16_INDEX(array, room, count);
    memcpy(array, room, (size_t)count * sizeof(INDEX_t));
    return;
  }
  INDEX_t least = array[0], largest = array[0];
  for (int64_t k = 1; k < count; k++) {
    least = array[k] < least ? array[k] : least;
    largest = array[k] > largest ? array[k] : largest;
  }
  uint64_t *bits = (uint64_t *)scratch, *groups = bits + extent / 64 + 1;
  if ((largest - least) / 16 <= count) {
    for (int64_t word = least / 64; word <= largest / 64; word++) {
      array = read_bits_INDEX(array, flags_as_bits_INDEX(flags + word * 64), word * 64);
    }
  } else if ((largest - least) / 128 <= count) {
    for (int64_t k = 0; k < count; k++) bits[array[k] / 64] |= UINT64_C(1) << array[k] % 64;
    for (int64_t word = least / 64; word <= largest / 64; word++) {
      array = read_bits_INDEX(array, bits[word], word * 64);
      bits[word] = 0;
    }
  } else if ((largest - least) / 4096 <= count) {
    for (int64_t k = 0; k < count; k++) {
      bits[array[k] / 64] |= UINT64_C(1) << array[k] % 64;
      groups[array[k] / 4096] |= UINT64_C(1) << array[k] / 64 % 64;
    }
    for (int64_t group = least / 4096; group <= largest / 4096; group++) {
      for (uint64_t words = groups[group]; words; words &= words - 1) {
        int64_t word = group * 64 + __builtin_ctzll(words);
        for (uint64_t left = bits[word]; left; left &= left - 1) *array++ = (INDEX_t)(word * 64 + __builtin_ctzll(left));
        bits[word] = 0;
      }
      groups[group] = 0;
    }
  } else {
    distribute_INDEX(array, room, count, largest);
  }
}
