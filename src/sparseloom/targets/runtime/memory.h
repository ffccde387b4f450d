// The memory of kernels: arrays that grow without being copied, mappings that are kept for the next array, and what threads made, joined.
//
// Every array has a header in front of it: how many bytes are mapped for it, 0 if they come from malloc, and how many are its own. Large
// arrays are mapped on huge pages and grow by moving the mapping, so that nothing is copied and what is never touched costs nothing.
//
// Touching a page for the first time takes as long as computing what goes there: half of the time of a large A + B. So mappings that are
// given back stand on a *shelf* until another array of about that size is wanted. The runtime owns the shelf, says how many bytes may stand
// there, and hands it to every library of kernels; a library without a shelf keeps nothing.
//
// HUGE_PAGE_BYTES and SHELF_PLACES are numbers.

/// header
struct header {
  int64_t mapped, bytes;
};

enum { HEADER = 64, HUGE_PAGE = HUGE_PAGE_BYTES, PLACES = SHELF_PLACES };

/// shelf
// A mapping begins at a huge page, so its address leaves room for the number of its pages in the same word: whoever exchanges the
// word for 0 owns the mapping, and nobody need wait for anybody.
struct shelf {
  int64_t limit, next;
  uintptr_t kept[PLACES];
};

static struct shelf *shelf;

void use_shelf(struct shelf *given) {
  shelf = given;
}

/// kept_bytes
static int64_t kept_bytes(uintptr_t word) {
  return (int64_t)(word % HUGE_PAGE) * HUGE_PAGE;
}

/// unmap_pages
static void unmap_pages(void *memory, int64_t bytes) {
#ifdef MREMAP_MAYMOVE
  munmap(memory, (size_t)bytes);
#endif
}

/// clear_place
static int64_t clear_place(int place, uintptr_t instead) {
  uintptr_t word = __atomic_exchange_n(&shelf->kept[place], instead, __ATOMIC_ACQ_REL);
  if (word) unmap_pages((void *)(word - word % HUGE_PAGE), kept_bytes(word));
  return kept_bytes(word);
}

/// empty_shelf
void empty_shelf(void) {
  for (int place = 0; place < PLACES; place++) clear_place(place, 0);
}

/// take_kept
// Of threads that want the same mapping one gets it, and the others look again: fresh pages cost each of them more than that.
static void *take_kept(int64_t *mapped) {
  for (int look = 0; shelf && look < PLACES; look++) {
    int best = -1;
    uintptr_t found = 0;
    for (int place = 0; place < PLACES; place++) {
      uintptr_t word = __atomic_load_n(&shelf->kept[place], __ATOMIC_RELAXED);
      bool fits = kept_bytes(word) >= *mapped && kept_bytes(word) - *mapped <= *mapped / 2;
      if (fits && (best < 0 || word % HUGE_PAGE < found % HUGE_PAGE)) {
        best = place;
        found = word;
      }
    }
    if (best < 0) return NULL;
    if (__atomic_compare_exchange_n(&shelf->kept[best], &found, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      *mapped = kept_bytes(found);
      return (void *)(found - found % HUGE_PAGE);
    }
  }
  return NULL;
}

/// keep_pages
static void keep_pages(char *memory, int64_t mapped) {
  if (!shelf || mapped > shelf->limit || mapped / HUGE_PAGE >= HUGE_PAGE) {
    unmap_pages(memory, mapped);
    return;
  }
  int64_t total = mapped;
  for (int place = 0; place < PLACES; place++) total += kept_bytes(__atomic_load_n(&shelf->kept[place], __ATOMIC_RELAXED));
  for (int place = 0; place < PLACES && total > shelf->limit; place++) total -= clear_place(place, 0);
  uintptr_t word = (uintptr_t)memory + (uintptr_t)(mapped / HUGE_PAGE);
  for (int place = 0; place < PLACES; place++) {
    uintptr_t empty = 0;
    if (__atomic_compare_exchange_n(&shelf->kept[place], &empty, word, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  }
  clear_place((int)(__atomic_fetch_add(&shelf->next, 1, __ATOMIC_RELAXED) % PLACES), word);
}

/// map_pages
static void *map_pages(int64_t bytes) {
#ifdef MREMAP_MAYMOVE
  char *pages = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return NULL;
  size_t before = -(uintptr_t)pages % HUGE_PAGE;
  if (before) munmap(pages, before);
  munmap(pages + before + bytes, HUGE_PAGE - before);
  madvise(pages + before, bytes, MADV_HUGEPAGE);
  return pages + before;
#else
  return NULL;
#endif
}

/// move_pages
static void *move_pages(void *memory, int64_t before, int64_t after) {
#ifdef MREMAP_MAYMOVE
  void *larger = map_pages(after);
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
  if (larger && mremap(memory, (size_t)before, (size_t)after, flags, larger) != MAP_FAILED) return larger;
  if (larger) unmap_pages(larger, after);
#endif
  return NULL;
}

/// whole_pages
static int64_t whole_pages(int64_t bytes) {
#ifdef MREMAP_MAYMOVE
  return bytes < 2 * HUGE_PAGE ? 0 : (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
#else
  return 0;
#endif
}

/// allocate
static __attribute__((noinline)) void *allocate(int64_t count, int64_t width) {
  if (count < 0 || count > (PTRDIFF_MAX - 4 * HUGE_PAGE) / width) return NULL;
  struct header header = {whole_pages(count * width + HEADER), count * width};
  char *memory = header.mapped ? take_kept(&header.mapped) : malloc((size_t)header.bytes + HEADER);
  if (!memory && header.mapped) memory = map_pages(header.mapped);
  if (!memory && header.mapped && shelf) {
    empty_shelf();
    memory = map_pages(header.mapped);
  }
  if (!memory) return NULL;
  *(struct header *)memory = header;
  return memory + HEADER;
}

/// reallocate
// What is mapped stays mapped, also where it shrinks. Where pages are kept it is copied there, so that those of the last growth serve
// again; else the mapping moves.
static __attribute__((noinline, cold)) void *reallocate(void *array, int64_t count, int64_t width) {
  if (count < 0 || count > (PTRDIFF_MAX - 4 * HUGE_PAGE) / width) return NULL;
  char *memory = (char *)array - HEADER;
  struct header before = *(struct header *)memory, after = {whole_pages(count * width + HEADER), count * width};
  if (after.mapped <= before.mapped) {
    if (before.mapped) after.mapped = before.mapped;
    else memory = realloc(memory, (size_t)after.bytes + HEADER);
    if (!memory) return NULL;
  } else if (before.mapped) {
    char *larger = take_kept(&after.mapped);
    if (larger) {
      memcpy(larger + HEADER, array, (size_t)before.bytes);
      keep_pages(memory, before.mapped);
    } else {
      larger = move_pages(memory, before.mapped, after.mapped);
      if (!larger) return NULL;
    }
    memory = larger;
  } else {
    void *larger = allocate(count, width);
    if (!larger) return NULL;
    memcpy(larger, array, (size_t)before.bytes);
    free(memory);
    return larger;
  }
  *(struct header *)memory = after;
  return memory + HEADER;
}

/// release
static __attribute__((noinline, cold)) void release(void *array) {
  if (!array) return;
  char *memory = (char *)array - HEADER;
  int64_t mapped = ((struct header *)memory)->mapped;
  if (mapped) keep_pages(memory, mapped);
  else free(memory);
}

void give_back(void *array) {
  release(array);
}

/// larger_capacity
static __attribute__((noinline, cold)) int64_t larger_capacity(int64_t capacity, int64_t needed) {
  return capacity < needed / 2 + 1 ? needed : capacity > INT64_MAX / 2 ? INT64_MAX : 2 * capacity;
}

/// size_product
static int64_t size_product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
