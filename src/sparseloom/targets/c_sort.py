"""The C that sorts the coordinates of a row, all different, which a workspace met in any order.

What is in order already is left alone. Otherwise the way that takes least depends on how many there are, and how far apart:

    few              each goes to the place that says how many are less. Who compares all with all does not branch on any of them
    many and near    the flags that say which were met are made bits, 64 to a word, and the words are read in order
    many             each sets its bit in words that are read in order
    more apart       the same, with a bit for every word that says which of them to read
    far apart        they are distributed byte by byte

Inserting one by one took 5 to 8 ns a coordinate, as no branch can be foreseen; comparing all takes 1.5 to 3.
"""

# {T} is the C type of a coordinate, {D} its dtype. The last lanes are computed twice rather than filled up: whatever is written just
# before would have to be waited for.
_RANK = """
typedef {T} lanes{N}_{D} __attribute__((vector_size({N} * sizeof({T}))));

static inline __attribute__((always_inline)) void rank{N}_{D}(const {T} *restrict from, {T} *restrict to, int64_t count) {{
  for (int64_t next = 0; next < count; next += {N}) {{
    const {T} *first = from + (next + {N} < count ? next : count - {N});
    lanes{N}_{D} keys, places = {{0}};
    memcpy(&keys, first, sizeof(keys));
    for (int64_t k = 0; k < count; k++) places -= keys > from[k];
    for (int lane = 0; lane < {N}; lane++) to[places[lane]] = first[lane];
  }}
}}
"""
# Each helper by the stem of its name.
SORT_HELPERS = {
    **{f"rank{lanes}": _RANK.replace("{N}", str(lanes)) for lanes in (4, 8, 16)},
    "insert": """
static inline void insert_{D}({T} *array, int64_t count) {{
  for (int64_t k = 1; k < count; k++) {{
    {T} key = array[k];
    int64_t place = k;
    for (; place > 0 && array[place - 1] > key; place--) array[place] = array[place - 1];
    array[place] = key;
  }}
}}
""",
    # Four at a time, whether they are there or not: what comes next writes over those that are not.
    "read_bits": """
static inline {T} *read_bits_{D}({T} *to, uint64_t bits, int64_t first) {{
  const int count = __builtin_popcountll(bits);
  for (int done = 0; done < count; done += 4) {{
    for (int k = 0; k < 4; k++, bits &= bits - 1) to[done + k] = ({T})(first + __builtin_ctzll(bits | UINT64_C(1) << 63));
  }}
  return to + count;
}}
""",
    # Eight flags are eight bytes, of which the product brings the last bits side by side into the first byte.
    "flags_as_bits": """
static inline uint64_t flags_as_bits_{D}(const bool *flags) {{
  uint64_t bits = 0;
  for (int byte = 0; byte < 8; byte++) {{
    uint64_t eight;
    memcpy(&eight, flags + 8 * byte, sizeof(eight));
    if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) eight = __builtin_bswap64(eight);
    bits |= (eight * UINT64_C(0x0102040810204080) >> 56) << 8 * byte;
  }}
  return bits;
}}
""",
    "distribute": """
static void distribute_{D}({T} *array, {T} *room, int64_t count, {T} largest) {{
  {T} *from = array, *to = room;
  for (unsigned shift = 0; shift < 8 * sizeof({T}) && largest >> shift; shift += 8) {{
    int64_t starts[257] = {{0}};
    for (int64_t k = 0; k < count; k++) starts[(from[k] >> shift & 255) + 1]++;
    for (int byte = 0; byte < 256; byte++) starts[byte + 1] += starts[byte];
    for (int64_t k = 0; k < count; k++) to[starts[from[k] >> shift & 255]++] = from[k];
    {T} *swap = from;
    from = to;
    to = swap;
  }}
  if (from != array) memcpy(array, from, (size_t)count * sizeof({T}));
}}
""",
    "sort": """
static void sort_{D}({T} *array, {T} *scratch, const bool *flags, int64_t count, int64_t extent) {{
  if (count < 4) {{
    insert_{D}(array, count);
    return;
  }}
  int64_t ordered = 1;
  while (ordered < count && array[ordered - 1] < array[ordered]) ordered++;
  if (ordered == count) return;
  {T} *room = scratch + (extent / 32 + extent / 2048 + 8);
  if (count <= 96) {{
    if (count < 8) rank4_{D}(array, room, count);
    else if (count < 32) rank8_{D}(array, room, count);
    else rank16_{D}(array, room, count);
    memcpy(array, room, (size_t)count * sizeof({T}));
    return;
  }}
  {T} least = array[0], largest = array[0];
  for (int64_t k = 1; k < count; k++) {{
    least = array[k] < least ? array[k] : least;
    largest = array[k] > largest ? array[k] : largest;
  }}
  uint64_t *bits = (uint64_t *)scratch, *groups = bits + extent / 64 + 1;
  if ((largest - least) / 16 <= count) {{
    for (int64_t word = least / 64; word <= largest / 64; word++) {{
      array = read_bits_{D}(array, flags_as_bits_{D}(flags + word * 64), word * 64);
    }}
  }} else if ((largest - least) / 128 <= count) {{
    for (int64_t k = 0; k < count; k++) bits[array[k] / 64] |= UINT64_C(1) << array[k] % 64;
    for (int64_t word = least / 64; word <= largest / 64; word++) {{
      array = read_bits_{D}(array, bits[word], word * 64);
      bits[word] = 0;
    }}
  }} else if ((largest - least) / 4096 <= count) {{
    for (int64_t k = 0; k < count; k++) {{
      bits[array[k] / 64] |= UINT64_C(1) << array[k] % 64;
      groups[array[k] / 4096] |= UINT64_C(1) << array[k] / 64 % 64;
    }}
    for (int64_t group = least / 4096; group <= largest / 4096; group++) {{
      for (uint64_t words = groups[group]; words; words &= words - 1) {{
        int64_t word = group * 64 + __builtin_ctzll(words);
        for (uint64_t left = bits[word]; left; left &= left - 1) *array++ = ({T})(word * 64 + __builtin_ctzll(left));
        bits[word] = 0;
      }}
      groups[group] = 0;
    }}
  }} else {{
    distribute_{D}(array, room, count, largest);
  }}
}}
""",
}
