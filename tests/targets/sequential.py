"""A sequential language as a target of its own: C without threads, vectors or atomics, with its own compiler flags and its own memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparseloom.loops.nodes import Function, MemorySpace
from sparseloom.targets.c import C, translation_unit
from sparseloom.targets.c_toolchain import C_TOOLCHAIN
from sparseloom.targets.target import Target
from sparseloom.targets.toolchain import Allocator

# Every allocation begins with a mark of this library, and what has another one is not freed but ends the process.
MEMORY = """\
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int64_t live_arrays;

static void *own_malloc(size_t size) {
  char *memory = malloc(size + 64);
  if (!memory) return NULL;
  *(uint64_t *)memory = UINT64_C(0x5e9e2716a1);
  __atomic_fetch_add(&live_arrays, 1, __ATOMIC_RELAXED);
  return memory + 64;
}

static void own_free(void *array) {
  char *memory = (char *)array - 64;
  if (!array) return;
  if (*(uint64_t *)memory != UINT64_C(0x5e9e2716a1)) abort();
  *(uint64_t *)memory = 0;
  __atomic_fetch_sub(&live_arrays, 1, __ATOMIC_RELAXED);
  free(memory);
}

static void *own_calloc(size_t count, size_t size) {
  void *array = own_malloc(count * size);
  return array ? memset(array, 0, count * size) : NULL;
}

static void *own_realloc(void *array, size_t size) {
  if (!array) return own_malloc(size);
  char *memory = realloc((char *)array - 64, size + 64);
  return memory ? memory + 64 : NULL;
}

int32_t count_live(void **args) {
  (void)args;
  return (int32_t)__atomic_load_n(&live_arrays, __ATOMIC_RELAXED);
}

#define malloc own_malloc
#define calloc own_calloc
#define realloc own_realloc
#define free own_free
"""


def emit(kernels: Sequence[tuple[Function, str]]) -> str:
    """The text of C behind another allocator, whose function that frees has a name of its own."""
    text = translation_unit(kernels)
    freeing = "\nvoid free_result(void *array) {\n  give_back(array);\n}\n" if "void give_back(" in text else ""
    return f"// sequential\n{MEMORY}\n{text}{freeing}"


SEQUENTIAL = Target(
    name="sequential",
    title="the sequential language",
    units=(),
    spaces=frozenset({MemorySpace.GLOBAL, MemorySpace.LOCAL}),
    emit=emit,
    atomic=lambda op, dtype: None,
    toolchain=replace(
        C_TOOLCHAIN,
        language="sequential",
        variable="SEQUENTIAL_COMPILER",
        flags=("-std=gnu11", "-O1", "-fPIC", "-shared", "-fwrapv", "-ffp-contract=off", "-fcx-fortran-rules"),
        essential=("-std=gnu11", "-O1", "-fPIC", "-shared"),
        openmp=None,
        install="  help: install gcc",
    ),
    allocator=Allocator("free_result"),
)
assert SEQUENTIAL.vector_bytes == C.vector_bytes
