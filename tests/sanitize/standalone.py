"""Kernels as programs of their own: the generated C, the arrays of a call as data, and a small ``main``.

No Python is there when the kernel runs, so every sanitizer works. Every array has a block of memory of exactly its size, so that a step
beyond it is seen; what a kernel must have written is read to the last byte, so that a gap is seen; and what it hands out is freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparseloom.loops.nodes import Function, Role
from sparseloom.loops.rename import alpha_rename
from sparseloom.targets.c import translation_unit


@dataclass(frozen=True)
class Kernel:
    """One call of one kernel. ``lengths`` says, where it is known, how many elements of an array the kernel must have written."""

    label: str  # what it computes, and the numbers that it follows from
    function: Function
    arguments: Sequence[Any]
    initialised: bool  # whether the output holds something that is added to
    lengths: dict[int, int]


_HEAD = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile long met;

static int32_t go_on(void) {
  return 0;
}

static void *block(const void *data, size_t bytes) {
  void *made = malloc(bytes);
  if (!made) abort();
  if (data && bytes) memcpy(made, data, bytes);
  return made;
}

static void read_all(const void *array, size_t bytes) {
  for (size_t k = 0; k < bytes; k++) {
    if (((const unsigned char *)array)[k] == 77) met++;
  }
}
"""
_MAIN = """
int main(int count, char **words) {{
  int32_t (*const checks[])(void) = {{{names}}};
  const int chosen = count > 1 ? atoi(words[1]) : -1;
  for (int k = 0; k < {total}; k++) {{
    for (int time = 0; time < {times}; time++) {{
      if (chosen < 0 || chosen == k) printf("%d %d\\n", k, (int)checks[k]());
    }}
    fflush(stdout);
  }}
  return 0;
}}
"""


def program(kernels: Sequence[Kernel], times: int = 1) -> str:
    """The text of a program that calls these kernels one after another so many times, or the one whose number it is given."""
    functions = [(alpha_rename(kernel.function), f"entry_{k}") for k, kernel in enumerate(kernels)]
    text = translation_unit(functions)
    frees = "give_back" if "void give_back(void *array)" in text else "free"
    checks = [_check(k, kernel, frees) for k, kernel in enumerate(kernels)]
    names = ", ".join(f"check_{k}" for k in range(len(kernels)))
    return "\n".join([text, _HEAD, *checks, _MAIN.format(names=names, total=len(kernels), times=times)])


def _check(number: int, kernel: Kernel, frees: str) -> str:
    """The function that calls one kernel."""
    before, after = [], []
    for k, (param, argument) in enumerate(zip(kernel.function.params, kernel.arguments, strict=True), 1):
        match param.role:
            case Role.INPUT:
                before += _handed_in(k, argument, True)
                after.append(f"  free(kept[{k}]);")
            case Role.OUTPUT:
                before += _handed_in(k, argument, kernel.initialised)
                written = kernel.lengths.get(k - 1, argument.size) * argument.itemsize
                after += [f"  if (!status) read_all(kept[{k}], {written});", f"  free(kept[{k}]);"]
            case Role.SIZE:
                before.append(f"  args[{k}] = (void *)(intptr_t)INT64_C({int(argument)});")
            case Role.GROWN:
                if k - 1 in kernel.lengths:
                    after.append(f"  if (!status) read_all(args[{k}], {kernel.lengths[k - 1] * param.target.dtype.itemsize});")
                after.append(f"  {frees}(args[{k}]);")
    comment = "\n".join(f"// {line}" for line in kernel.label.splitlines())
    words = 1 + len(kernel.arguments)
    head = f"static int32_t check_{number}(void) {{\n  void *args[{words}] = {{(void *)go_on}}, *kept[{words}] = {{0}};"
    call = f"  memcpy(kept, args, sizeof(args));\n  int32_t status = entry_{number}(args);"
    return "\n".join([comment, head, *before, call, *after, "  return status;", "}", ""])


def _handed_in(k: int, array: np.ndarray, holds_data: bool) -> list[str]:
    """A block of the array's size; what it holds is written down as words of eight bytes."""
    if not holds_data or not array.nbytes:
        return [f"  args[{k}] = block(NULL, {array.nbytes});"]
    padded = np.zeros(-(-array.nbytes // 8) * 8, np.uint8)
    padded[: array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    words = ", ".join(f"{word:#x}u" for word in padded.view(np.uint64).tolist())
    return [f"  static const uint64_t data_{k}[] = {{{words}}};", f"  args[{k}] = block(data_{k}, {array.nbytes});"]
