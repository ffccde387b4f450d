"""Teams of threads: as many as can be started, and none that a forked child would wait for.

gcc's OpenMP ends the process when a thread cannot be started. So before a kernel's first parallel loop on a thread, as many threads as the
team needs are started for a moment; where they cannot all be had, that thread's teams are smaller, and it is tried again a second later.
Teams are started in turn: what one has found, another cannot take before it is used.
A team that stands costs one look at a word of its thread. The other kernels call this through an address that they are given, so that
the words are the same for all; and this library, which is never unloaded, keeps OpenMP loaded, whose threads outlive every call.

A child of a fork has none of the team's threads, yet gcc's OpenMP would wait for them. They are ended before the fork, and started again
when they are next needed, on both sides.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from typing import Any

from sparseloom.runtime.forks import before_fork
from sparseloom.runtime.loading import ENTRY, TAKES_ADDRESS, TAKES_NOTHING, Library

SOURCE = """\
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

int omp_get_max_threads(void);
void omp_set_num_threads(int);
int omp_in_parallel(void);

static pthread_key_t key;
static size_t stack;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

// What a thread knows of its team, in one word: its size, the size that was wanted if it is smaller, and when that was found.
struct team {
  uint16_t size, wanted;
  uint32_t second;
};

union word {
  struct team team;
  void *kept;
};

static void take_turn(void) {
  pthread_mutex_lock(&turn);
}

static void end_turn(void) {
  pthread_mutex_unlock(&turn);
}

int32_t open_team(void **args) {
  stack = (size_t)args[0];
  pthread_atfork(take_turn, end_turn, end_turn);  // a child would wait for a turn that no thread of it ends
  return pthread_key_create(&key, NULL);
}

void forget_team(void) {
  pthread_setspecific(key, NULL);
}

static void *wait_for_all(void *started) {
  pthread_mutex_lock(started);
  pthread_mutex_unlock(started);
  return NULL;
}

// How many threads can be started at once, up to a number of them, with some memory to spare.
static int startable(int wanted) {
  pthread_t *threads = malloc(wanted * sizeof(pthread_t));
  void *spare = malloc(1 << 16);
  pthread_mutex_t started = PTHREAD_MUTEX_INITIALIZER;
  pthread_attr_t attributes;
  int count = 0;
  if (threads && spare && !pthread_attr_init(&attributes)) {
    if (stack) pthread_attr_setstacksize(&attributes, stack);
    pthread_mutex_lock(&started);
    while (count < wanted && !pthread_create(&threads[count], &attributes, wait_for_all, &started)) count++;
    pthread_mutex_unlock(&started);
    for (int k = 0; k < count; k++) pthread_join(threads[k], NULL);
    pthread_attr_destroy(&attributes);
  }
  free(spare);
  free(threads);
  return count;
}

static uint32_t seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint32_t)now.tv_sec;
}

void ready_team(void) {
  union word word = {.kept = pthread_getspecific(key)};
  struct team team = word.team;
  int asked = omp_get_max_threads(), has = team.size ? team.size : 1;
  if (asked > UINT16_MAX) omp_set_num_threads(asked = UINT16_MAX);
  if (asked == team.size && (!team.wanted || seconds() - team.second < 2)) return;
  if (omp_in_parallel()) return;
  take_turn();
  int wanted = asked == team.size ? team.wanted : asked;
  int made = wanted > has ? has + startable(wanted - has) : wanted;
  if (made < wanted && made > 1) made--;  // the last one is left to others
  if (made != asked) omp_set_num_threads(made);
  if (made > has) {
#pragma omp parallel
    { __asm__ volatile(""); }  // the threads are there before another team counts what is left
  }
  end_turn();
  word.team = (struct team){(uint16_t)made, made < wanted ? (uint16_t)wanted : 0, seconds()};
  pthread_setspecific(key, word.kept);
}
"""
_OMP_PAUSE_HARD = 2
_STACK_SIZE = re.compile(r"\s*(\d+)\s*([bkmg]?)\s*", re.IGNORECASE)
_UNITS = {"b": 0, "": 10, "k": 10, "m": 20, "g": 30}


class Teams:
    """What this process knows about threads of kernels: the functions above, once a kernel needs them."""

    def __init__(self) -> None:
        self._ready: Any = None
        self._forget: Any = None
        self._pause: Any = None

    def connect(self, library: Library, load: Callable[[str], Library]) -> None:
        """Let a library's parallel kernels, if they do, ask for their teams here."""
        if self._ready is None:
            self._open(load(SOURCE))
        use = library.function("use_team", TAKES_ADDRESS)
        if use is not None:
            use(ctypes.cast(self._ready, ctypes.c_void_p).value)

    def _open(self, library: Library) -> None:
        """Take the functions, which keep the library loaded."""
        library.function("open_team", ENTRY)((ctypes.c_size_t * 1)(stack_size()))
        self._pause = library.function("omp_pause_resource_all", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int))
        self._forget, self._ready = library.function("forget_team", TAKES_NOTHING), library.function("ready_team", TAKES_NOTHING)

    def end_threads(self) -> None:
        """Let OpenMP end the idle threads of the calling thread."""
        if self._pause is not None:
            self._pause(_OMP_PAUSE_HARD)
            self._forget()


teams = Teams()
before_fork(teams.end_threads)


def stack_size() -> int:
    """The bytes of stack that OpenMP gives its threads as it is told in the environment; 0 if it is not."""
    found = _STACK_SIZE.fullmatch(os.environ.get("OMP_STACKSIZE") or os.environ.get("GOMP_STACKSIZE") or "")
    return min(int(found[1]) << _UNITS[found[2].lower()], 2**62) if found else 0
