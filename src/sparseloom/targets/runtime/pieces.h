// What threads made, one array each, joined to one.
//
// INDEX_t is the type of a position.

/// make_pieces
// What threads made, one array each. Behind the last stands the address of the list itself, which ends it.
static void **make_pieces(int64_t count) {
  void **pieces = calloc((size_t)count + 1, sizeof(void *));
  if (pieces) pieces[count] = pieces;
  return pieces;
}

/// release_pieces
static __attribute__((noinline, cold)) void release_pieces(void **pieces) {
  for (void **piece = pieces; pieces && *piece != pieces; piece++) release(*piece);
  free(pieces);
}

/// parts
struct parts {
  const int64_t *owners, *begins, *starts;
};

/// is_whole
// One thread alone has all parts in order: what it made is the whole.
static bool is_whole(void **pieces, struct parts parts, int64_t count) {
  if (!pieces[0] || pieces[1] != pieces) return false;
  for (int64_t part = 0; part < count; part++) {
    if (parts.begins[part] != parts.starts[part]) return false;
  }
  return true;
}

/// take_piece
static void *take_piece(void **pieces) {
  void *piece = pieces[0];
  pieces[0] = NULL;
  return piece;
}

/// join_pieces
// Where one thread made a good part of the beginning, its array becomes the whole. What else it made is moved first, the last part
// before the others: what is not moved yet then stands before every place that is written. The parts of other threads follow.
static __attribute__((noinline)) void *join_pieces(void **pieces, struct parts parts, int64_t count, int64_t each, int64_t size) {
  const int64_t width = each * size;
  if (is_whole(pieces, parts, count)) return take_piece(pieces);
  int64_t first = parts.owners[0], kept = 0;
  while (kept < count && parts.owners[kept] == first && parts.begins[kept] == parts.starts[kept]) kept++;
  char *whole = NULL;
  if (pieces[first] && kept >= count / 4) {
    whole = reallocate(pieces[first], parts.starts[count] * width, 1);
    if (!whole) return NULL;
    pieces[first] = NULL;
    for (int64_t part = count - 1; part >= kept; part--) {
      int64_t bytes = parts.owners[part] == first ? (parts.starts[part + 1] - parts.starts[part]) * width : 0;
      if (bytes) memmove(whole + parts.starts[part] * width, whole + parts.begins[part] * width, (size_t)bytes);
    }
  } else {
    whole = allocate(parts.starts[count] * width, 1);
    if (!whole) return NULL;
  }
#pragma omp parallel for schedule(dynamic)
  for (int64_t part = 0; part < count; part++) {
    const char *from = pieces[parts.owners[part]];
    int64_t bytes = (parts.starts[part + 1] - parts.starts[part]) * width;
    if (from && bytes) memcpy(whole + parts.starts[part] * width, from + parts.begins[part] * width, (size_t)bytes);
  }
  return whole;
}

/// join_positions
static INDEX_t *join_positions_INDEX(void **pieces, struct parts parts, int64_t count, int64_t each, struct parts below) {
  if (is_whole(pieces, parts, count) && is_whole(pieces, below, count)) return take_piece(pieces);
  INDEX_t *whole = allocate(parts.starts[count] * each + 1, sizeof(INDEX_t));
  if (!whole) return NULL;
  whole[0] = 0;
  for (int64_t part = 0; part < count; part++) {
    const INDEX_t *from = (INDEX_t *)pieces[parts.owners[part]] + parts.begins[part] * each + 1;
    INDEX_t *to = whole + parts.starts[part] * each + 1;
    int64_t length = (parts.starts[part + 1] - parts.starts[part]) * each, moved = below.starts[part] - below.begins[part];
    for (int64_t k = 0; k < length; k++) to[k] = (INDEX_t)(from[k] + moved);
  }
  return whole;
}
