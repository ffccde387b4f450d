"""Calls of the library's functions (``loops/routines.py``) as C, by the names of the functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparseloom.loops import routines


@dataclass(frozen=True)
class Spelled:
    """A call in C: the arrays with their element types and dtypes, the arguments, and what a failed allocation does."""

    arrays: Sequence[str]
    types: Sequence[str]
    dtypes: Sequence[str]
    args: Sequence[str]
    fail: str


def _grow(s: Spelled) -> str:
    (array,), (capacity, needed) = s.arrays, s.args
    return f"""if ({capacity} < {needed}) {{
  {capacity} = larger_capacity({capacity}, {needed});
  void *larger = reallocate({array}, {capacity}, sizeof({s.types[0]}));
  if (!larger) {s.fail}
  {array} = larger;
}}"""


def _sort_entries(s: Spelled) -> str:
    """How many columns there are and how wide the values are is constant, so that the call is inlined and unrolled."""
    *columns, values, first, second = s.arrays
    count, keys = s.args
    wide = f"({s.types[0]} *[]){{{', '.join(columns)}}}, {values}, sizeof({s.types[-3]})"
    return f"sort_entries_{s.dtypes[0]}({wide}, (char *){first}, (char *){second}, {count}, {len(columns)}, {keys});"


def _join(s: Spelled) -> str:
    whole, made, *rest = s.arrays
    parts, *below = (f"(struct parts){{{', '.join(rest[k : k + 3])}}}" for k in range(0, len(rest), 3))
    name, width = (f"join_positions_{s.dtypes[0]}", below[0]) if below else ("join_pieces", f"sizeof({s.types[0]})")
    return f"{whole} = {name}({made}, {parts}, {', '.join(s.args)}, {width});\nif (!{whole}) {s.fail}"


def _made_pieces(s: Spelled) -> str:
    return f"{s.arrays[0]} = make_pieces(thread_count());\nif (!{s.arrays[0]}) {s.fail}"


def _clock(s: Spelled) -> str:
    return f"""{{
  struct timespec clock;
  clock_gettime(CLOCK_MONOTONIC, &clock);
  {s.arrays[0]}[{s.args[0]}] = (int64_t)clock.tv_sec * 1000000000 + clock.tv_nsec;
}}"""


C_CALLS: dict[str, Callable[[Spelled], str]] = {
    routines.PREFETCH.name: lambda s: f"__builtin_prefetch({s.arrays[0]} + {s.args[0]}, 1);",
    routines.PREFETCH_READ.name: lambda s: f"__builtin_prefetch({s.arrays[0]} + {s.args[0]});",
    routines.GROW.name: _grow,
    routines.SORT.name: lambda s: f"sort_{s.dtypes[0]}({', '.join([*s.arrays, *s.args])});",
    routines.SORT_ENTRIES.name: _sort_entries,
    routines.MAKE_PIECES.name: _made_pieces,
    routines.KEEP.name: lambda s: f"{s.arrays[0]}[{s.args[0]}] = {s.arrays[1]};\n{s.arrays[1]} = NULL;",
    routines.JOIN.name: _join,
    routines.CLOCK.name: _clock,
}
