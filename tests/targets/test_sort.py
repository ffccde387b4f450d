"""Sorting the coordinates of a row: few and many, near and far apart, in the interpreter and in C, one row after another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from targets.c_harness import call, compile_all

from sparseloom.core.errors import CompilerBug
from sparseloom.loops import interpret
from sparseloom.loops.nodes import ZERO, Allocate, Array, Fill, Free, Function, Literal, Param, Role, Var, block
from sparseloom.loops.routines import WORD, sort, sort_scratch

COUNTS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 96, 97, 130, 260, 700, 5000)
EXTENTS = (1, 5, 63, 64, 65, 700, 5001, 40_000, 3_000_000)


def sorting(index_dtype: str) -> Function:
    """A kernel that sorts the same coordinates twice, with the scratch of the first time."""
    dtype = np.dtype(index_dtype)
    array, again, scratch, flags = Array("c", dtype), Array("again", dtype), Array("scratch", dtype), Array("f", np.dtype("bool"))
    zeros, size = sort_scratch(Var("extent"))
    made = [Allocate(scratch, size), Fill(scratch, ZERO, zeros, Literal(0, dtype))]
    sorts = [sort(each, scratch, flags, Var("n"), Var("extent")) for each in (array, again)]
    params = [Param(array, Role.OUTPUT), Param(again, Role.OUTPUT), Param(flags, Role.OUTPUT)]
    sizes = [Param(Var(name), Role.SIZE) for name in ("n", "extent")]
    return Function("sorting", (*params, *sizes), block(*made, *sorts, Free(scratch)))


def drawn(rng: np.random.Generator, count: int, extent: int, way: str) -> NDArray[np.int64]:
    """Different coordinates: anywhere, all at the end, or in order but for the last."""
    if way == "near":
        return extent - 1 - rng.permutation(count)
    found = rng.choice(extent, count, replace=False)
    return found if way == "anywhere" else np.concatenate([np.sort(found)[1:], np.sort(found)[:1]])


def test_coordinates_are_sorted(tmp_path: Path, rng: np.random.Generator) -> None:
    dtypes = ("int32", "int64")
    functions = [sorting(dtype) for dtype in dtypes]
    for dtype, function, entry in zip(dtypes, functions, compile_all(functions, tmp_path), strict=True):
        for extent in EXTENTS:
            for count in (count for count in COUNTS if count <= extent):
                for way in ("anywhere", "near", "in order"):
                    given = drawn(rng, count, extent, way).astype(dtype)
                    arrays = [np.concatenate([given, np.full(extent + WORD - count, -7, dtype)]) for _ in range(2)]
                    flags = np.zeros(extent + WORD, bool)
                    flags[given] = True
                    if extent <= 700:
                        check_interpreted(function, [array.copy() for array in arrays], flags.copy(), count, extent)
                    call(entry, function, [*arrays, flags, count, extent])
                    for array in arrays:
                        np.testing.assert_array_equal(array[:count], np.sort(given), f"{count} of {extent}, {way}")


def check_interpreted(function: Function, arrays: list[NDArray[Any]], flags: NDArray[np.bool_], count: int, extent: int) -> None:
    wanted = np.sort(arrays[0][:count])
    interpret.run(function, [*arrays, flags, count, extent], outputs_initialised=True)
    np.testing.assert_array_equal(arrays[0][:count], wanted)


def test_what_is_not_flagged_is_a_bug_of_the_compiler() -> None:
    arrays, flags = [np.concatenate([np.array([3, 1]), np.zeros(WORD + 3, np.int64)]) for _ in range(2)], np.zeros(5 + WORD, bool)
    flags[3] = True
    with pytest.raises(CompilerBug, match="all different, below 5 and flagged"):
        interpret.run(sorting("int64"), [*arrays, flags, 2, 5], outputs_initialised=True)
