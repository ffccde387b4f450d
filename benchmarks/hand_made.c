/* Loops by hand that make sparse matrices: rows are counted, room is made, rows are filled. They stand behind those of hand.c.

   The result has three slots: where pos, crd and vals are. `release` gives them back. */

struct rows {
  int32_t *pos, *crd;
  REAL *vals;
};

struct csr {
  const int32_t *pos, *crd;
  const REAL *vals;
};

#define CSR(k) ((struct csr){ARRAY(int32_t, k), ARRAY(int32_t, (k) + 1), ARRAY(REAL, (k) + 2)})

/* Large arrays get large pages, as NumPy's do. */
static void *room(size_t bytes) {
  const size_t page = 2 << 20;
  if (bytes < 2 * page) return malloc(bytes ? bytes : 1);
  void *made = aligned_alloc(page, (bytes + page - 1) / page * page);
  if (made) madvise(made, bytes, MADV_HUGEPAGE);
  return made;
}

/* Counts become places, and room is made for the entries. */
static int64_t make_room(struct rows *made, int64_t rows) {
  int64_t total = 0;
  made->pos[0] = 0;
  for (int64_t i = 0; i < rows; i++) made->pos[i + 1] = (int32_t)(total += made->pos[i + 1]);
  made->crd = room(total * sizeof(int32_t));
  made->vals = room(total * sizeof(REAL));
  return total;
}

static int32_t hand_over(void **args, int k, struct rows made) {
  args[1 + k] = made.pos;
  args[2 + k] = made.crd;
  args[3 + k] = made.vals;
  return 0;
}

int32_t release(void **args) {
  for (int k = 0; k < 3; k++) free(args[1 + k]);
  return 0;
}

enum { END = INT32_MAX };

INLINE int32_t at(struct csr m, int64_t p, int64_t end) {
  return p < end ? m.crd[p] : END;
}

/* A row of A + B + C; with `fill` the entries are written, and always their number is returned. */
INLINE int64_t sum_row(struct csr a, struct csr b, struct csr c, int64_t i, int fill, int32_t *crd, REAL *vals) {
  int64_t p = a.pos[i], q = b.pos[i], s = c.pos[i], count = 0;
  int64_t p_end = a.pos[i + 1], q_end = b.pos[i + 1], s_end = c.pos[i + 1];
  int32_t x = at(a, p, p_end), y = at(b, q, q_end), z = at(c, s, s_end);
  for (;;) {
    int32_t least = x < y ? x : y;
    least = z < least ? z : least;
    if (least == END) return count;
    REAL sum = 0;
    if (x == least) sum += a.vals[p++], x = at(a, p, p_end);
    if (y == least) sum += b.vals[q++], y = at(b, q, q_end);
    if (z == least) sum += c.vals[s++], z = at(c, s, s_end);
    if (fill) crd[count] = least, vals[count] = sum;
    count++;
  }
}

int32_t add_three(void **args) {
  struct csr a = CSR(0), b = CSR(3), c = CSR(6);
  int64_t rows = NUMBER(9);
  struct rows made = {room((rows + 1) * sizeof(int32_t)), NULL, NULL};
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t i = 0; i < rows; i++) made.pos[i + 1] = (int32_t)sum_row(a, b, c, i, 0, NULL, NULL);
  make_room(&made, rows);
#pragma omp parallel for schedule(dynamic, 256)
  for (int64_t i = 0; i < rows; i++) sum_row(a, b, c, i, 1, made.crd + made.pos[i], made.vals + made.pos[i]);
  return hand_over(args, 10, made);
}

static void sort(int32_t *keys, int64_t count) {
  while (count > 16) {
    int32_t pivot = keys[count / 2];
    int64_t low = 0, high = count - 1;
    while (low <= high) {
      while (keys[low] < pivot) low++;
      while (keys[high] > pivot) high--;
      if (low <= high) {
        int32_t swap = keys[low];
        keys[low++] = keys[high];
        keys[high--] = swap;
      }
    }
    sort(keys + low, count - low);
    count = high + 1;
  }
  for (int64_t k = 1; k < count; k++) {
    int32_t key = keys[k];
    int64_t place = k;
    for (; place > 0 && keys[place - 1] > key; place--) keys[place] = keys[place - 1];
    keys[place] = key;
  }
}

/* What one thread needs for rows of a product: in which row a column was last met, and its sum. */
struct workspace {
  int32_t *met;
  REAL *sums;
};

static struct workspace *workspaces(int64_t columns) {
  int count = omp_get_max_threads();
  struct workspace *made = malloc(count * sizeof *made);
#pragma omp parallel for schedule(static, 1)
  for (int t = 0; t < count; t++) {
    made[t] = (struct workspace){malloc(columns * sizeof(int32_t)), malloc(columns * sizeof(REAL))};
    memset(made[t].met, 255, columns * sizeof(int32_t));
  }
  return made;
}

static void forget(struct workspace *made) {
  for (int t = 0; t < omp_get_max_threads(); t++) free(made[t].met), free(made[t].sums);
  free(made);
}

static int64_t count_row(struct csr a, struct csr b, int64_t i, int32_t *met) {
  int64_t count = 0;
  for (int64_t p = a.pos[i]; p < a.pos[i + 1]; p++) {
    for (int64_t q = b.pos[a.crd[p]]; q < b.pos[a.crd[p] + 1]; q++) {
      count += met[b.crd[q]] != (int32_t)i;
      met[b.crd[q]] = (int32_t)i;
    }
  }
  return count;
}

/* Rows are met a second time, so that they are marked by numbers below -1. */
static void fill_row(struct csr a, struct csr b, int64_t i, struct workspace w, int32_t *crd, REAL *vals) {
  int32_t mark = -2 - (int32_t)i;
  int64_t count = 0;
  for (int64_t p = a.pos[i]; p < a.pos[i + 1]; p++) {
    for (int64_t q = b.pos[a.crd[p]]; q < b.pos[a.crd[p] + 1]; q++) {
      int32_t k = b.crd[q];
      REAL term = a.vals[p] * b.vals[q];
      if (w.met[k] == mark) {
        w.sums[k] += term;
      } else {
        w.met[k] = mark;
        w.sums[k] = term;
        crd[count++] = k;
      }
    }
  }
  sort(crd, count);
  for (int64_t n = 0; n < count; n++) vals[n] = w.sums[crd[n]];
}

/* A product of two matrices, its rows sorted. */
int32_t product(void **args) {
  struct csr a = CSR(0), b = CSR(3);
  int64_t rows = NUMBER(6);
  struct rows made = {room((rows + 1) * sizeof(int32_t)), NULL, NULL};
  struct workspace *own = workspaces(NUMBER(7));
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < rows; i++) made.pos[i + 1] = (int32_t)count_row(a, b, i, own[omp_get_thread_num()].met);
  make_room(&made, rows);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < rows; i++) fill_row(a, b, i, own[omp_get_thread_num()], made.crd + made.pos[i], made.vals + made.pos[i]);
  forget(own);
  return hand_over(args, 8, made);
}

/* C(i,j) = M(i,j) * A(i,k) * B(k,j): a row of the mask says which columns count, and where their sums go. Entries that meet nothing stay. */
int32_t masked(void **args) {
  struct csr m = CSR(0), a = CSR(3), b = CSR(6);
  int64_t rows = NUMBER(9);
  struct rows made = {room((rows + 1) * sizeof(int32_t)), room(m.pos[rows] * sizeof(int32_t)), room(m.pos[rows] * sizeof(REAL))};
  struct workspace *own = workspaces(NUMBER(10));
  memcpy(made.pos, m.pos, (rows + 1) * sizeof(int32_t));
  memcpy(made.crd, m.crd, m.pos[rows] * sizeof(int32_t));
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t i = 0; i < rows; i++) {
    struct workspace w = own[omp_get_thread_num()];
    for (int64_t p = m.pos[i]; p < m.pos[i + 1]; p++) w.met[m.crd[p]] = (int32_t)i, w.sums[m.crd[p]] = 0;
    for (int64_t p = a.pos[i]; m.pos[i] < m.pos[i + 1] && p < a.pos[i + 1]; p++) {
      for (int64_t q = b.pos[a.crd[p]]; q < b.pos[a.crd[p] + 1]; q++) {
        if (w.met[b.crd[q]] == (int32_t)i) w.sums[b.crd[q]] += a.vals[p] * b.vals[q];
      }
    }
    for (int64_t p = m.pos[i]; p < m.pos[i + 1]; p++) made.vals[p] = m.vals[p] * w.sums[m.crd[p]];
  }
  forget(own);
  return hand_over(args, 11, made);
}
