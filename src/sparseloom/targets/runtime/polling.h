// Where a kernel may be cancelled.

/// poll_state
// Looks at the clock ever more rarely, about every 10 to 50 ms, and asks the caller at most every 50 ms. The countdown to the next
// look is handed back rather than kept in the state, so that it stays in a register; 0 means stop.
struct poll_state {
  int64_t stride, looked, asked;
};

/// caller_state
// Who calls: what Python answers, which is not asked any more once the interpreter ends, and how many threads ask it now. Who ends
// the interpreter sets ``ending`` and then waits until nobody asks, so a thread counts itself before it looks.
struct caller_state {
  int32_t (*ask)(void);
  int32_t ending, asking;
};

/// is_cancelled
static int32_t is_cancelled(struct caller_state *caller) {
  __atomic_add_fetch(&caller->asking, 1, __ATOMIC_SEQ_CST);
  int32_t stop = !__atomic_load_n(&caller->ending, __ATOMIC_SEQ_CST) && caller->ask();
  __atomic_sub_fetch(&caller->asking, 1, __ATOMIC_SEQ_CST);
  return stop;
}

/// next_countdown
static __attribute__((noinline, cold)) int64_t next_countdown(struct poll_state *poll, struct caller_state *caller) {
  const int64_t millisecond = 1000000;
  struct timespec clock;
  if (!caller) return INT64_MAX;
  clock_gettime(CLOCK_MONOTONIC, &clock);
  int64_t now = (int64_t)clock.tv_sec * 1000 * millisecond + clock.tv_nsec;
  if (!poll->asked) poll->asked = now;
  int64_t passed = poll->looked ? now - poll->looked : 0;
  if (passed < 10 * millisecond && poll->stride < INT64_MAX / 2) poll->stride *= 2;
  if (passed > 50 * millisecond && poll->stride > 1) poll->stride /= 2;
  poll->looked = now;
  if (now - poll->asked < 50 * millisecond) return poll->stride;
  poll->asked = now;
  return is_cancelled(caller) ? 0 : poll->stride;
}
