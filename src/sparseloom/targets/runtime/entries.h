// Code that sorts entries: tuples of coordinates with a value each.
//
// Entries that are in order already are left alone, and few are inserted one by one. More of them are first distributed by the leading
// digits, so that every part fits into the cache, and then digit by digit within each part, from the last key to the first. Meanwhile the
// coordinates and the value of an entry stand side by side: a column each would touch several times as many lines of the cache.
//
// All of it is inlined where it is used, with the number of columns and the width of an entry constant.
//
// INDEX_t is the type of a coordinate.

/// entry_key
static inline int64_t entry_key_INDEX(const char *entry, int key) {
  INDEX_t coordinate;
  memcpy(&coordinate, entry + key * sizeof(INDEX_t), sizeof(INDEX_t));
  return coordinate;
}

/// insert_entries
static inline __attribute__((always_inline)) void insert_entries_INDEX(char *entries, int64_t count, const size_t size, const int keys) {
  for (int64_t k = 1; k < count; k++) {
    char entry[size];
    memcpy(entry, entries + k * size, size);
    int64_t place = k;
    for (; place > 0; place--) {
      const char *before = entries + (place - 1) * size;
      int key = 0;
      while (key + 1 < keys && entry_key_INDEX(before, key) == entry_key_INDEX(entry, key)) key++;
      if (entry_key_INDEX(before, key) <= entry_key_INDEX(entry, key)) break;
      memcpy(entries + place * size, before, size);
    }
    memcpy(entries + place * size, entry, size);
  }
}

/// distribute_entries
// Where the sorted entries are in the end: one of the two places.
static inline __attribute__((always_inline)) char *distribute_entries_INDEX(char *from, char *to, int64_t count, const size_t size,
    const int keys, const int *bits) {
  if (count <= 24) {
    insert_entries_INDEX(from, count, size, keys);
    return from;
  }
  const int most = count < 4096 ? 8 : 11;
  for (int key = keys - 1; key >= 0; key--) {
    const int passes = (bits[key] + most - 1) / most, digit = passes ? (bits[key] + passes - 1) / passes : 0;
    for (int shift = 0; shift < bits[key]; shift += digit) {
      int64_t starts[2049];
      const int64_t mask = ((int64_t)1 << (shift + digit > bits[key] ? bits[key] - shift : digit)) - 1;
      memset(starts, 0, (size_t)(mask + 2) * sizeof(int64_t));
      for (int64_t k = 0; k < count; k++) starts[(entry_key_INDEX(from + k * size, key) >> shift & mask) + 1]++;
      if (starts[(entry_key_INDEX(from, key) >> shift & mask) + 1] == count) continue;
      for (int64_t bucket = 0; bucket < mask; bucket++) starts[bucket + 1] += starts[bucket];
      for (int64_t k = 0; k < count; k++) {
        const int64_t place = starts[entry_key_INDEX(from + k * size, key) >> shift & mask]++;
        memcpy(to + place * size, from + k * size, size);
      }
      char *swap = from;
      from = to;
      to = swap;
    }
  }
  return from;
}

/// sort_entries
static inline __attribute__((always_inline)) void sort_entries_INDEX(INDEX_t *const *columns, void *values, const size_t width,
    char *from, char *to, int64_t count, const int modes, const int keys) {
  const size_t size = modes * sizeof(INDEX_t) + width;
  int bits[keys];
  int64_t first = 1;
  for (; first < count; first++) {
    int key = 0;
    while (key + 1 < keys && columns[key][first - 1] == columns[key][first]) key++;
    if (columns[key][first - 1] > columns[key][first]) break;
  }
  if (first >= count) return;
  for (int key = 0; key < keys; key++) {
    INDEX_t largest = 0;
    for (int64_t k = 0; k < count; k++) largest = columns[key][k] > largest ? columns[key][k] : largest;
    for (bits[key] = 0; bits[key] < 63 && (int64_t)largest >> bits[key]; bits[key]++) {}
  }
  // The leading digits part the entries, unless there are so few that all of them fit into the cache.
  int lead = 0;
  while (lead + 1 < keys && !bits[lead]) lead++;
  const int digit = count * size <= 1 << 18 ? 0 : bits[lead] < 11 ? bits[lead] : 11;
  const int shift = bits[lead] -= digit;
  const int64_t parts = (int64_t)1 << digit;
  int64_t ends[2049] = {0};
  for (int64_t k = 0; k < count; k++) ends[((int64_t)columns[lead][k] >> shift & (parts - 1)) + 1]++;
  for (int64_t part = 0; part < parts; part++) ends[part + 1] += ends[part];
  for (int64_t k = 0; k < count; k++) {
    char *entry = from + ends[digit ? (int64_t)columns[lead][k] >> shift : 0]++ * size;
    for (int mode = 0; mode < modes; mode++) memcpy(entry + mode * sizeof(INDEX_t), columns[mode] + k, sizeof(INDEX_t));
    memcpy(entry + modes * sizeof(INDEX_t), (const char *)values + k * width, width);
  }
  for (int64_t part = 0, begin = 0; part < parts; begin = ends[part++]) {
    const char *sorted = distribute_entries_INDEX(from + begin * size, to + begin * size, ends[part] - begin, size, keys, bits);
    for (int64_t k = begin; k < ends[part]; k++, sorted += size) {
      for (int mode = 0; mode < modes; mode++) memcpy(columns[mode] + k, sorted + mode * sizeof(INDEX_t), sizeof(INDEX_t));
      memcpy((char *)values + k * width, sorted + modes * sizeof(INDEX_t), width);
    }
  }
}
