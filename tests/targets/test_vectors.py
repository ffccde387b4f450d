"""Vector code for registers of every width: the same text, and the same results to the last bit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from targets.c_harness import call, compile_all

import sparseloom as sl
from sparseloom.core.dtypes import VALUE_DTYPES
from sparseloom.loops.lanes import gathers, is_lanewise, is_neighbouring
from sparseloom.loops.nodes import ZERO, Array, Cast, For, Function, Load, LoopKind, MemorySpace, Op, Param, Role, Store, Var, add, index
from sparseloom.targets.c import translation_unit

lane, base, n = Var("lane"), Var("base"), Var("n")
INT32, INT64 = np.dtype("int32"), np.dtype("int64")
WITH = [d for d in VALUE_DTYPES if d.kind in "fiu" and d.itemsize in (4, 8)]
WIDTHS = {"16": ["-mno-avx"], "32": ["-mavx2", "-mno-avx512f"], "64": ["-mavx512f"]}


def gathering_kernel(dtype: np.dtype, crd: np.dtype = INT32) -> Function:
    """``out[k] = s * v[k] + x[crd[k]] - out[k]`` for as many k as a vector of 64 bytes has."""
    v, x, s, out, at = (Array(name, kind) for name, kind in (("v", dtype), ("x", dtype), ("s", dtype), ("out", dtype), ("crd", crd)))
    width = 64 // dtype.itemsize
    gathered = Load(x, Cast(Load(at, lane), INT64) if crd != INT64 else Load(at, lane))
    scaled = Op("multiply", (Load(s, ZERO), Load(v, lane)), dtype)
    value = Op("subtract", (Op("add", (scaled, gathered), dtype), Load(out, lane)), dtype)
    loop = For(lane, ZERO, index(width), Store(out, lane, value), LoopKind.LANES, width)
    assert is_lanewise(loop)
    assert gathers(loop)
    roles = ((v, Role.INPUT), (x, Role.INPUT), (s, Role.INPUT), (at, Role.INPUT), (out, Role.OUTPUT))
    return Function("kernel", tuple(Param(target, role) for target, role in roles), loop)


def runs(width: str) -> bool:
    """Whether this processor has registers of so many bytes."""
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return {"16": True, "32": "avx2" in flags, "64": "avx512f" in flags}[width]


@pytest.mark.parametrize("crd", [INT32, INT64], ids=str)
@pytest.mark.parametrize("width", WIDTHS)
def test_lanes_gather_and_wrap(tmp_path: Path, width: str, crd: np.dtype) -> None:
    if not runs(width):
        pytest.skip("no such registers here")
    kernels = [gathering_kernel(dtype, crd) for dtype in WITH]
    rng = np.random.default_rng(3)
    for kernel, entry, dtype in zip(kernels, compile_all(kernels, tmp_path, *WIDTHS[width]), WITH, strict=True):
        lanes = 64 // dtype.itemsize
        big = 2.0 if dtype.kind == "f" else np.iinfo(dtype).max // 3
        v, x = (rng.integers(0, 50, count).astype(dtype) for count in (lanes, 30))
        s, at, out = np.array([big], dtype), rng.integers(0, 30, lanes).astype(crd), rng.integers(0, 9, lanes).astype(dtype)
        with np.errstate(over="ignore"):
            wanted = s[0] * v + x[at] - out
        np.testing.assert_array_equal(call(entry, kernel, [v, x, s, at, out])[-1], wanted, strict=True)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_width_compiles(tmp_path: Path, compiler: str, width: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    source = tmp_path / "kernel.c"
    sums = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, "parallelize(j,CPUVector,ParallelReduction)").source
    least = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, "parallelize(j,CPUVector,ParallelReduction)", semiring="min_plus").source
    for text in (sums, least, translation_unit([(gathering_kernel(dtype), f"entry{k}") for k, dtype in enumerate(WITH)])):
        source.write_text(text)
        flags = ["-std=gnu11", "-O3", "-Wall", "-Werror", "-Wno-unused", "-fopenmp-simd", *WIDTHS[width]]
        command = [compiler, *flags, "-S", "-o", "-", str(source)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        assert {"16": "xmm", "32": "ymm", "64": "zmm"}[width] in made.stdout


def test_neighbours_count_up_with_the_lane() -> None:
    assert is_neighbouring(lane, lane)
    assert is_neighbouring(add(base, lane), lane)
    assert is_neighbouring(add(lane, index(4)), lane)
    assert not is_neighbouring(Op("multiply", (lane, index(2))), lane)
    assert not is_neighbouring(add(lane, lane), lane)
    assert not is_neighbouring(base, lane)


def test_what_lanes_cannot_do_at_once() -> None:
    halves, small = Array("h", np.dtype("int16")), Array("s", np.dtype("float64"), MemorySpace.LOCAL)
    integers = Array("i", INT64)
    for array, value in (
        (halves, Load(halves, lane)),
        (integers, Op("floor_divide", (Load(integers, lane), index(3)))),
        (small, Op("hypot", (Load(small, lane), Load(small, base)), small.dtype)),
        (small, Load(small, Cast(Load(integers, Op("multiply", (lane, n))), INT64))),
    ):
        assert not is_lanewise(For(lane, ZERO, index(8), Store(array, lane, value), LoopKind.LANES, 8))
