"""The C that sorts entries: tuples of coordinates with a value each.

Few entries are inserted one by one. More of them are distributed digit by digit, from the last key to the first; entries that are in
order already are left alone. It is inlined where it is used, with the number of columns and the width of a value constant.
"""

# {T} is the C type of a coordinate, {D} its dtype.
SORT_ENTRIES = """
static inline __attribute__((always_inline)) void sort_entries_{D}({T} **columns, {T} **spare, void *values, void *spare_values,
    const size_t width, int64_t count, const int modes, const int keys) {{
  char *from_values = values, *to_values = spare_values;
  int64_t first = 1;
  for (; first < count; first++) {{
    int key = 0;
    while (key < keys && columns[key][first - 1] == columns[key][first]) key++;
    if (key < keys && columns[key][first - 1] > columns[key][first]) break;
  }}
  if (first >= count) return;
  if (count <= 24) {{
    for (int64_t k = first; k < count; k++) {{
      {T} tuple[modes];
      char value[width];
      for (int mode = 0; mode < modes; mode++) tuple[mode] = columns[mode][k];
      memcpy(value, from_values + k * width, width);
      int64_t place = k;
      for (; place > 0; place--) {{
        int key = 0;
        while (key < keys && columns[key][place - 1] == tuple[key]) key++;
        if (key == keys || columns[key][place - 1] < tuple[key]) break;
        for (int mode = 0; mode < modes; mode++) columns[mode][place] = columns[mode][place - 1];
        memcpy(from_values + place * width, from_values + (place - 1) * width, width);
      }}
      for (int mode = 0; mode < modes; mode++) columns[mode][place] = tuple[mode];
      memcpy(from_values + place * width, value, width);
    }}
    return;
  }}
  {T} *from[modes], *to[modes];
  for (int mode = 0; mode < modes; mode++) from[mode] = columns[mode], to[mode] = spare[mode];
  int64_t starts[2049];
  const int most = count < 8192 ? 8 : 11;
  for (int key = keys - 1; key >= 0; key--) {{
    {T} largest = 0;
    for (int64_t k = 0; k < count; k++) largest = from[key][k] > largest ? from[key][k] : largest;
    int bits = 0;
    while (bits < 63 && (int64_t)largest >> bits) bits++;
    const int passes = (bits + most - 1) / most, digit = passes ? (bits + passes - 1) / passes : 0;
    for (int shift = 0; shift < bits; shift += digit) {{
      const int64_t mask = ((int64_t)1 << digit) - 1;
      memset(starts, 0, (size_t)(mask + 2) * sizeof(int64_t));
      for (int64_t k = 0; k < count; k++) starts[((int64_t)from[key][k] >> shift & mask) + 1]++;
      for (int64_t bucket = 0; bucket <= mask; bucket++) starts[bucket + 1] += starts[bucket];
      for (int64_t k = 0; k < count; k++) {{
        const int64_t place = starts[(int64_t)from[key][k] >> shift & mask]++;
        for (int mode = 0; mode < modes; mode++) to[mode][place] = from[mode][k];
        memcpy(to_values + place * width, from_values + k * width, width);
      }}
      for (int mode = 0; mode < modes; mode++) {{
        {T} *swap = from[mode];
        from[mode] = to[mode];
        to[mode] = swap;
      }}
      char *swap = from_values;
      from_values = to_values;
      to_values = swap;
    }}
  }}
  if (from_values == (char *)values) return;
  for (int mode = 0; mode < modes; mode++) memcpy(columns[mode], from[mode], (size_t)count * sizeof({T}));
  memcpy(values, from_values, (size_t)count * width);
}}
"""
