"""Conversions of float16 and bfloat16: every bit pattern, ties and borders, with the processor's instructions and without them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from targets.c_harness import call, compile_all

from sparseloom.core.dtypes import FLOAT32, UINT16, DType
from sparseloom.loops.nodes import ZERO, Array, Cast, For, Function, Load, Param, Role, Store, Var
from sparseloom.runtime.cuda.nvrtc import compile_cubin
from sparseloom.targets.cuda_prelude import prelude_for

HALVES: tuple[DType, ...] = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
PATTERNS = np.arange(2**16, dtype=np.uint16)
# The instructions of this processor, and the bits moved by hand; both without vectors, too.
FLAGS = (("-mf16c",), ("-march=x86-64",), ("-mf16c", "-O0"), ("-march=x86-64", "-O0"))


def converting(source: DType, target: DType) -> Function:
    """A kernel that converts an array."""
    given, made, count, place = Array("given", source), Array("made", target), Var("count"), Var("place")
    loop = For(place, ZERO, count, Store(made, place, Cast(Load(given, place), target)))
    return Function("convert", (Param(made, Role.OUTPUT), Param(given, Role.INPUT), Param(count, Role.SIZE)), loop)


def converted(values: np.ndarray, target: DType, folder: Path, flags: tuple[str, ...]) -> np.ndarray:
    function = converting(values.dtype, target)
    (entry,) = compile_all([function], folder, *flags)
    made = np.empty(len(values), target)
    call(entry, function, [made, np.ascontiguousarray(values), len(values)])
    return made


def assert_same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """The same bits, but for what is no number, of which there are many."""
    bits = np.dtype(np.uint32) if got.dtype == FLOAT32 else UINT16
    missing = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), missing)
    np.testing.assert_array_equal(got.view(bits)[~missing], want.view(bits)[~missing])
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))  # nan keeps its sign, too


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("half", HALVES, ids=str)
def test_every_half_is_read(half: DType, flags: tuple[str, ...], tmp_path: Path) -> None:
    halves = PATTERNS.view(half)
    assert_same_bits(converted(halves, FLOAT32, tmp_path, flags), halves.astype(np.float32))


def borders(half: DType) -> np.ndarray:
    """Every half, what lies between two of them, and the numbers beside that; and many others."""
    finite = np.unique(PATTERNS.view(half).astype(np.float64))
    finite = finite[np.isfinite(finite)]
    middles = np.array([(low + high) / 2 for low, high in pairwise(finite)]).astype(np.float32)
    largest = np.float32(finite[-1])
    beyond = np.array([largest * np.float32(1 + 2.0**-k) for k in range(1, 20)], np.float32)
    rest = np.random.default_rng(0).integers(0, 2**32, 2**20, dtype=np.uint32).view(np.float32)
    near = np.concatenate([finite.astype(np.float32), middles, beyond, -beyond])
    with np.errstate(all="ignore"):
        around = [np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)]
    return np.concatenate([near, *around, rest, np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0], np.float32)])


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
@pytest.mark.parametrize("half", HALVES, ids=str)
def test_every_border_is_rounded_to_even(half: DType, flags: tuple[str, ...], tmp_path: Path) -> None:
    numbers = borders(half)
    with np.errstate(all="ignore"):
        assert_same_bits(converted(numbers, half, tmp_path, flags), numbers.astype(half))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_every_half_survives_the_way_there_and_back(half: DType, tmp_path: Path) -> None:
    halves = PATTERNS.view(half)
    assert_same_bits(converted(halves.astype(np.float32), half, tmp_path, ()), halves)


def test_nvrtc_compiles_the_conversions_without_headers() -> None:
    names = ("float16", "bfloat16")
    uses = "".join(f"  to_{n}[k] = {n}_of_float32(2 * float32_of_{n}(from_{n}[k]));\n" for n in names)
    params = ", ".join(f"{n}_bits *to_{n}, const {n}_bits *from_{n}" for n in names)
    text = f'extern "C" __global__ void doubled({params}) {{\n  int k = threadIdx.x;\n{uses}}}\n'
    assert compile_cubin(prelude_for(text) + text).startswith(b"\x7fELF")
