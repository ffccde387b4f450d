"""Conversions of float16 and bfloat16: every bit pattern, ties and borders, with the processor's instructions and without them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from targets.c_harness import call, compile_all

from sparseloom.core.dtypes import FLOAT32, UINT16, DType
from sparseloom.loops.nodes import ZERO, Array, Cast, For, Function, Load, LoopKind, Op, Param, Role, Store, Var, add, index, multiply
from sparseloom.programs.cuda.nvrtc import compile_cubin
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.cuda_prelude import prelude_for

HALVES: tuple[DType, ...] = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
PATTERNS = np.arange(2**16, dtype=np.uint16)
# The instructions of this processor with wide and narrower registers, and bits moved by hand; what C makes of them, and what is written.
FLAGS = (("-mf16c",), ("-mf16c", "-mno-avx512f"), ("-march=x86-64",), ("-mf16c", "-O0"), ("-march=x86-64", "-O0"))
LANES = (1, 4, 16)  # one by one, in short vectors, and in those that are as wide as registers are


def converting(source: DType, target: DType, lanes: int) -> Function:
    """A kernel that converts an array, so many at a time."""
    given, made, count, first, lane = Array("given", source), Array("made", target), Var("count"), Var("first"), Var("lane")
    place = add(multiply(first, index(lanes)), lane)
    body = For(lane, ZERO, index(lanes), Store(made, place, Cast(Load(given, place), target)), LoopKind.LANES, lanes)
    plain = Store(made, first, Cast(Load(given, first), target))
    loop = For(first, ZERO, Op("floor_divide", (count, index(lanes))), plain if lanes == 1 else body)
    return Function("convert", (Param(made, Role.OUTPUT), Param(given, Role.INPUT), Param(count, Role.SIZE)), loop)


def converted(values: np.ndarray, target: DType, folder: Path, flags: tuple[str, ...]) -> np.ndarray:
    """An array converted in every way, all of which agree in every bit."""
    functions = [converting(values.dtype, target, lanes) for lanes in LANES]
    whole = np.append(values, np.zeros(-len(values) % max(LANES), values.dtype))
    all_made = []
    for function, entry in zip(functions, compile_all(functions, folder, *flags), strict=True):
        made = np.empty(len(whole), target)
        call(entry, function, [made, whole, len(whole)])
        all_made.append(made[: len(values)])
    bits = f"u{target.itemsize}"
    for made in all_made[1:]:
        np.testing.assert_array_equal(made.view(bits), all_made[0].view(bits))
    return all_made[0]


def assert_same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """The same bits, but for what is no number, of which there are many."""
    bits = np.dtype(np.uint32) if got.dtype == FLOAT32 else UINT16
    with np.errstate(invalid="ignore"):  # of nan that signals
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
    with np.errstate(all="ignore"):
        finite = np.unique(PATTERNS.view(half).astype(np.float64))
    finite = finite[np.isfinite(finite)]
    middles = np.array([(low + high) / 2 for low, high in pairwise(finite)]).astype(np.float32)
    largest = np.float32(finite[-1])
    with np.errstate(over="ignore"):
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
    assert compile_cubin(prelude_for(text, CUDA.lanes) + text).startswith(b"\x7fELF")
