"""Teams of threads: as many as can be started, and none that a forked child would wait for.

gcc's OpenMP ends the process when a thread cannot be started. So before a kernel's first parallel loop on a thread, as many threads as the
team needs are started for a moment; where they cannot all be had, that thread's teams are smaller, and it is tried again a second later.
Teams are started in turn: what one has found, another cannot take before it is used.
A team that stands costs one look at a word of its thread. The other kernels call this through an address that they are given, so that
the words are the same for all; and this library, which is never unloaded, keeps OpenMP loaded, whose threads outlive every call.

Threads of Python that compute at the same time share the machine: while one has its team, the others compute alone. Results do not depend
on it. Threads that wait for work sleep soon, unless the environment says how they wait.

A child of a fork has none of the team's threads, yet gcc's OpenMP would wait for them. They are ended before the fork, and started again
when they are next needed, on both sides.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sparseloom.core.errors import ToolchainError
from sparseloom.core.notices import notify
from sparseloom.core.system import quota_cores, usable_cores
from sparseloom.toolchain.compilers import find_compiler
from sparseloom.toolchain.forks import before_fork
from sparseloom.toolchain.loading import ENTRY, TAKES_ADDRESSES, TAKES_NOTHING, Library
from sparseloom.toolchain.openmp import kernels_have_threads, one_thread

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

// How many threads a team has where that is asked for, counted so that every thread learns of it once; else at most so many.
static int asked_size, usual_size, most;
static _Atomic unsigned asked_times;
static _Atomic int under_way;
static __thread unsigned known_times;
static __thread int own_size;  // what this thread alone was asked for
static __thread int size_before;  // what it had then,
static __thread unsigned times_before;  // and how often all had been asked
static __thread int lent;  // what the team has when it is not left out

static void take_turn(void) {
  pthread_mutex_lock(&turn);
}

static void end_turn(void) {
  pthread_mutex_unlock(&turn);
}

static void begin_again(void) {
  under_way = 0;  // the threads that computed are not here
  end_turn();
}

int32_t open_team(void **args) {
  stack = (size_t)args[0];
  most = (int)(size_t)args[1];
  pthread_atfork(take_turn, end_turn, begin_again);  // a child would wait for a turn that no thread of it ends
  return pthread_key_create(&key, NULL);
}

void forget_team(void) {
  pthread_setspecific(key, NULL);
}

static void follow_size(void) {
  if (known_times != asked_times) {
    known_times = asked_times;
    omp_set_num_threads(own_size ? own_size : asked_size ? asked_size : usual_size);
  }
  if (!own_size && !asked_size && omp_get_max_threads() > most) omp_set_num_threads(most);
}

int32_t size_team(void **args) {
  if (!usual_size) usual_size = omp_get_max_threads();
  asked_size = (int)(size_t)args[0];
  asked_times++;
  follow_size();
  return usual_size;
}

// What this thread alone asks for. Afterwards it has what it had before, or what all were asked for meanwhile.
int32_t own_team(void **args) {
  int size = (int)(size_t)args[0];
  if (!usual_size) usual_size = omp_get_max_threads();
  follow_size();
  if (!own_size) size_before = omp_get_max_threads(), times_before = asked_times;
  own_size = size;
  omp_set_num_threads(size ? size : size_before);
  if (!size && times_before != asked_times) known_times = asked_times - 1;
  return 0;
}

// How many threads this thread's next team has at most.
int32_t limit_team(void) {
  follow_size();
  return omp_get_max_threads();
}

// Whether others compute already: then this thread does so alone, which leaves its team as it is.
static int is_alone(void) {
  if (!under_way++) return 0;
  lent = omp_get_max_threads();
  omp_set_num_threads(1);
  return 1;
}

void end_team(void) {
  under_way--;
  if (lent) omp_set_num_threads(lent);
  lent = 0;
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

static void have_team(void) {
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

void ready_team(void) {
  follow_size();
  if (!is_alone()) have_team();
}
"""
_OMP_PAUSE_HARD = 2
MOST_THREADS = 65_535
_STACK_SIZE = re.compile(r"\s*(\d+)\s*([bkmg]?)\s*", re.IGNORECASE)
_UNITS = {"b": 0, "": 10, "k": 10, "m": 20, "g": 30}


class Teams:
    """What this process knows about threads of kernels: the functions above, once a kernel needs them."""

    def __init__(self) -> None:
        self._ready: Any = None
        self._end: Any = None
        self._resize: Any = None
        self._resize_own: Any = None
        self._forget: Any = None
        self._pause: Any = None
        self._limit: Any = None
        self._size: int | None = None
        self.alone = False  # kernels were compiled without OpenMP

    def connect(self, library: Library, load: Callable[[str], Library]) -> None:
        """Let a library's parallel kernels, if they do, ask for their teams here."""
        if self._ready is None:
            self._open(load(SOURCE))
        use = library.function("use_team", TAKES_ADDRESSES)
        if use is not None:
            use(*(ctypes.cast(function, ctypes.c_void_p).value for function in (self._ready, self._end)))

    @property
    def size(self) -> int:
        """How many threads a kernel has, at most."""
        return 1 if self.alone else _own.size or self._size or self._usual()

    def _usual(self) -> int:
        """How many threads a kernel has if nothing is set here: other libraries may limit OpenMP's, as ``threadpool_limits`` does."""
        return usual_size() if self._limit is None else int(self._limit())

    def resize(self, size: int | None) -> None:
        """Let kernels have so many threads, on whatever thread of Python they are called from; None is the usual number."""
        self._size = size
        if self._resize is not None:
            self._resize((ctypes.c_size_t * 1)(size or 0))

    def resize_own(self, size: int) -> None:
        """Let kernels have so many threads that are called from this thread of Python; 0 is as many as others have."""
        _own.size = size
        if self._resize_own is not None:
            self._resize_own((ctypes.c_size_t * 1)(size))

    def _open(self, library: Library) -> None:
        """Take the functions, which keep the library loaded."""
        most = MOST_THREADS if os.environ.get("OMP_NUM_THREADS") else min(quota_cores(), MOST_THREADS)
        library.function("open_team", ENTRY)((ctypes.c_size_t * 2)(stack_size(), most))
        self._limit = library.function("limit_team", ctypes.CFUNCTYPE(ctypes.c_int32))
        self._pause = library.function("omp_pause_resource_all", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int))
        self._forget, self._end = library.function("forget_team", TAKES_NOTHING), library.function("end_team", TAKES_NOTHING)
        self._resize, self._ready = library.function("size_team", ENTRY), library.function("ready_team", TAKES_NOTHING)
        self._resize_own = library.function("own_team", ENTRY)
        if self._size is not None:
            self.resize(self._size)
        if _own.size:
            self.resize_own(_own.size)

    def end_threads(self) -> None:
        """Let OpenMP end the idle threads of the calling thread."""
        if self._pause is not None:
            self._pause(_OMP_PAUSE_HARD)
            self._forget()


class _Own(threading.local):
    """How many threads this thread of Python asks for; 0 if it does not."""

    size = 0


_own = _Own()
teams = Teams()
before_fork(teams.end_threads)


def set_threads(count: int | None) -> None:
    """Let kernels run on so many threads at most; None is as many as the machine has, or ``$OMP_NUM_THREADS`` says.

    Results do not depend on it, unless a schedule adds up in no fixed order. If the C compiler has no OpenMP, kernels run on one thread
    whatever is set, and a warning says so.

    >>> import sparseloom as sl
    >>> sl.set_threads(2)
    >>> sl.get_threads()
    2
    >>> sl.set_threads(None)
    """
    size = known_count(count)
    if size is not None and size > 1 and not kernels_have_threads():
        notify(one_thread(find_compiler()))
    teams.resize(size)


def known_count(count: int | None) -> int | None:
    """A number of threads; other values are rejected."""
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_THREADS):
        raise ToolchainError(f"a kernel cannot run on {count!r} threads\n  help: give a whole number from 1 to {MOST_THREADS}, or None")
    return count


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let the kernels inside, called from this thread of Python, run on so many threads at most; None leaves it as it is.

    ``threadpool_limits``, and the limits of joblib, Dask and scikit-learn, hold as well where no number is set.

    Args:
        count: The number of threads, from 1 on.

    Raises:
        ToolchainError: If ``count`` is no such number.

    >>> import sparseloom as sl
    >>> with sl.threads(1):
    ...     sl.get_threads()
    1
    """
    if known_count(count) is None:
        yield
        return
    before = _own.size
    teams.resize_own(count or 0)
    try:
        yield
    finally:
        teams.resize_own(before)


def get_threads() -> int:
    """How many threads a kernel runs on at most.

    >>> sl.get_threads() >= 1
    True
    """
    return teams.size if teams.size == 1 or kernels_have_threads() else 1


def usual_size() -> int:
    """How many threads kernels have where nothing is set: as the environment says, else one for each core that this process may use."""
    first = (os.environ.get("OMP_NUM_THREADS") or "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else usable_cores()


def stack_size() -> int:
    """The bytes of stack that the environment asks OpenMP to give its threads; 0 if it asks for none."""
    found = _STACK_SIZE.fullmatch(os.environ.get("OMP_STACKSIZE") or os.environ.get("GOMP_STACKSIZE") or "")
    return min(int(found[1]) << _UNITS[found[2].lower()], 2**62) if found else 0
