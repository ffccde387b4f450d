"""A kernel's C as one wants to read it: without the frame that every kernel has and the checks for Ctrl-C.

    static int32_t kernel(..., int32_t (*cancelled)(void)) {
      int32_t status = OK;
      for (int64_t i = 0; i < i_size; i++) {             for (int64_t i = 0; i < i_size; i++) {
        if (--countdown == 0) {                  ==>        y_vals[i] = 2.0 * x_vals[i];
          ...                                             }
        }
        y_vals[i] = 2.0 * x_vals[i];
      }
      return OK;
    }
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

_FRAME = re.compile(
    r"\s*(int32_t status = OK;|(static )?struct poll_state .*|int64_t countdown = .*|if \(__atomic_load_n\(&status.*|if \(status\) .*"
    r"|return OK;)"
)
_CHECK = re.compile(r"( *)if \(--countdown == 0(.*)")
_LABEL = re.compile(r" *(\w+):;")
_PRIVATE = re.compile(r" firstprivate\(poll, countdown\)|, poll, countdown|poll, countdown, ")


def folded(source: str) -> str:
    """The loops of the kernel in a C source."""
    start = source.index("static int32_t kernel(")
    body = source[source.index(") {\n", start) + 4 :].split("\n")
    inside = takewhile(lambda line: line != "}", body)
    kept = "\n".join(_without_tail(list(_loops(inside))))
    return "\n".join(line for line in kept.split("\n") if not (label := _LABEL.fullmatch(line)) or f"goto {label[1]};" in kept)


def _loops(lines: Iterator[str]) -> Iterator[str]:
    """The lines that compute."""
    for line in lines:
        if check := _CHECK.fullmatch(line):
            if check[2].endswith("{"):
                for inner in lines:
                    if inner == check[1] + "}":
                        break
        elif not _FRAME.fullmatch(line):
            yield _PRIVATE.sub("", line)


def _without_tail(lines: list[str]) -> list[str]:
    """Without what is done when a kernel ends early, and without empty lines around."""
    found = next((k for k, line in enumerate(lines) if line == "fail:"), len(lines))
    return "\n".join(lines[:found]).strip("\n").split("\n")
