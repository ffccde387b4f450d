"""Sorting entries: columns of coordinates with a value each, few and many, in the interpreter and in C, with no bit out of place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from targets.c_harness import call, compile_all

from sparseloom.loops import interpret
from sparseloom.loops.nodes import Allocate, Array, Free, Function, Param, Role, Var, block, index, multiply
from sparseloom.loops.routines import entry_size, sort_entries

VALUES = ("bool", "int16", "float32", "float64", "complex128")
# How many columns, by how many of them is sorted, and the extent of each.
CASES = [
    (1, 1, (1 << 20,)), (2, 1, (50, 7)), (2, 2, (1, 3000)), (2, 2, (1 << 21, 5)), (3, 2, (4, 90_000, 11)), (3, 3, (300, 300, 300)),
    (4, 4, (9,) * 4),
]  # fmt: skip
COUNTS = (0, 1, 2, 23, 24, 25, 300, 5000, 60_000)


def sorting(modes: int, keys: int, index_dtype: str, value_dtype: str) -> Function:
    """A kernel that sorts its outputs."""
    columns = tuple(Array(f"c{k}", np.dtype(index_dtype)) for k in range(modes))
    values, room = Array("v", np.dtype(value_dtype)), (Array("one", np.dtype("uint8")), Array("two", np.dtype("uint8")))
    sort = sort_entries(columns, values, room, Var("n"), keys)
    made = [Allocate(array, multiply(Var("n"), index(entry_size(*columns, values)))) for array in room]
    params = [*(Param(array, Role.OUTPUT) for array in (*columns, values)), Param(Var("n"), Role.SIZE)]
    return Function("sorting", tuple(params), block(*made, sort, *(Free(array) for array in room)))


def test_entries_are_sorted_and_equal_ones_keep_their_order(tmp_path: Path, rng: np.random.Generator) -> None:
    kinds = [(*case, ("int32", "int64")[n % 2], VALUES[n % len(VALUES)]) for n, case in enumerate(CASES)]
    functions = [sorting(modes, keys, *dtypes) for modes, keys, _, *dtypes in kinds]
    for (_, keys, extents, *dtypes), function, entry in zip(kinds, functions, compile_all(functions, tmp_path), strict=True):
        for count in COUNTS:
            columns = [rng.integers(0, extent, count).astype(dtypes[0]) for extent in extents]
            values = np.arange(count).astype(dtypes[1])
            order = np.lexsort(columns[:keys][::-1]) if count else np.arange(0)
            wanted = [array[order] for array in (*columns, values)]
            runs = {"c": lambda given, f=function, e=entry: call(e, f, given)}
            if count < 1000:
                runs["interpret"] = lambda given, f=function: interpret.run(f, given, outputs_initialised=True)
            for target, run in runs.items():
                given = [array.copy() for array in (*columns, values)]
                run([*given, count])
                for got, want in zip(given, wanted, strict=True):
                    np.testing.assert_array_equal(got, want, err_msg=f"{target}, {count} entries of extents {extents}, by {keys}")


@pytest.mark.parametrize("count", [10, 100, 40_000])
def test_entries_that_are_in_order_stay(count: int, tmp_path: Path) -> None:
    function = sorting(2, 2, "int32", "float64")
    (entry,) = compile_all([function], tmp_path)
    given = [np.repeat(np.arange(count // 2, dtype=np.int32), 2), np.tile(np.int32([3, 8]), count // 2), np.arange(float(count))]
    wanted = [array.copy() for array in given]
    call(entry, function, [*given, count])
    for got, want in zip(given, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
