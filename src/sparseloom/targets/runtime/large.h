// Room for large arrays, and their copies by all threads.

/// take_room
int32_t take_room(void **args) {
  args[1] = allocate((int64_t)args[0], 1);
  if (!args[1]) release(NULL);
  return OK;
}

/// copy_array
int32_t copy_array(void **args) {
  char *to = args[0];
  const char *from = args[1];
  const int64_t bytes = (int64_t)args[2], piece = 1 << 18;
  prepare_team();
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < bytes; first += piece) {
    memcpy(to + first, from + first, (size_t)(bytes - first < piece ? bytes - first : piece));
  }
  return dismiss_team(OK);
}
