"""What is measured on a GPU: six matrices that schedules were tuned on, six that were chosen afterwards, stand-ins, files, and tensors.

The six are those on which kernels by hand were compared first: even, banded, a power law, a road network, short and wide, and skewed.
Nothing was tuned on the others, so that they say what a user may expect.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import stand_ins
from benchmarks.measure import sets_from
from benchmarks.stand_ins import Indices, Make, from_keys, generator
from sparseloom.tensor.tensor import Tensor

SIX, AFTERWARDS, STAND_INS, TENSORS, DATA, DATA_TENSORS = "six", "afterwards", "stand_ins", "tensors", "data", "data_tensors"
Sets = dict[str, dict[str, Make]]  # by the name of the set


def usual_sets() -> Sets:
    """What a whole run is on."""
    return {SIX: six(), AFTERWARDS: afterwards(), STAND_INS: stand_ins.matrices(), TENSORS: tensors()}


def quick_sets() -> Sets:
    """The six and the tensors, an eighth as large."""
    return {SIX: six(8), TENSORS: tensors(8)}


def toy_sets() -> Sets:
    """What only shows that everything runs."""
    return {SIX: six(10_000), TENSORS: tensors(100_000)}


def data_sets(folder: Path) -> tuple[Sets, tuple[str, ...]]:
    """The matrices and tensors of a folder, and a line for each file that cannot be taken."""
    found, unread = sets_from(folder, {})
    return {DATA: found.get("matrices", {}), DATA_TENSORS: found.get("tensors", {})}, unread


def six(part: int = 1) -> dict[str, Make]:
    """The six, or the ``part``-th part of each."""
    return {
        "uniform_4m": lambda: even(_share(100_000, part), 40),
        "fem_27": lambda: mesh(_share(400_000, part), 27),
        "power_law_12m": lambda: zipf(_share(1_000_000, part), 12, 0.75),
        "road_4m": lambda: road(_share(4_000_000, part)),
        "short_wide": lambda: wide(_share(100, min(part, 8)), _share(100_000, part), _share(10_000, part)),
        "skewed_8m": lambda: exponential(_share(20_000, part), _share(100_000, part), 400, 1.0003**part if part < 100 else 1.1),
    }


def afterwards() -> dict[str, Make]:
    """Six that were chosen when the schedules were there, and on which nothing was tuned."""
    return {
        "blocks_of_six": lambda: stand_ins.in_blocks(50_000, 6, 6),
        "web_10m": lambda: stand_ins.web(1_000_000, 10_000_000),
        "hypersparse": lambda: stand_ins.uniform(3_000_000, 3_000_000, 2_000_000),
        "mesh_5": lambda: stand_ins.banded(2_000_000, 5),
        "long_rows_8m": lambda: stand_ins.uniform(5_000, 200_000, 8_000_000),
        "recursive_8m": lambda: recursive(18, 8_000_000),
    }


def tensors(part: int = 1) -> dict[str, Make]:
    """Tensors of order three, stored as csf."""
    return {
        "scattered": lambda: stand_ins.fibres("scattered", _sizes((50_000, 20_000, 50_000), part), _share(8_000_000, part), 1),
        "skewed_slices": lambda: skewed_slices(_sizes((100_000, 20_000, 50_000), part), _share(1_250_000, part), 8),
        "long_fibres_10m": lambda: stand_ins.fibres("long", _sizes((12_000, 9_000, 28_000), part), _share(42_000, part), 228),
    }


def _share(count: int, part: int) -> int:
    return max(4, count // part)


def _sizes(shape: tuple[int, int, int], part: int) -> tuple[int, int, int]:
    """A smaller shape; sizes shrink less than numbers of entries, so that there is room for them."""
    rows, columns, tubes = (max(8, round(size / part**0.5)) for size in shape)
    return rows, columns, tubes


def _rows_of(name: str, lengths: Indices, columns: int) -> Tensor:
    """Rows of these lengths, their entries anywhere."""
    rows = np.repeat(np.arange(len(lengths)), np.minimum(lengths, columns))
    return from_keys(name, rows * columns + generator(name).integers(0, columns, len(rows)), (len(lengths), columns))


def even(n: int, length: int) -> Tensor:
    """Rows of equal length in a square matrix."""
    return _rows_of("even", np.full(n, length), n)


def wide(rows: int, columns: int, length: int) -> Tensor:
    """Few long rows."""
    return _rows_of("wide", np.full(rows, length), columns)


def road(n: int) -> Tensor:
    """One to five entries in a row."""
    return _rows_of("road", generator("road lengths").integers(1, 6, n), n)


def zipf(n: int, mean: int, power: float) -> Tensor:
    """Rows whose lengths fall as a power of their rank, shuffled; many are empty or short, and a few very long."""
    weights = generator("zipf lengths").permutation(1.0 / np.arange(1, n + 1) ** power)
    return _rows_of("zipf", np.rint(weights / weights.sum() * mean * n).astype(np.int64), n)


def exponential(n: int, columns: int, mean: int, base: float) -> Tensor:
    """Rows whose lengths grow as the powers of ``base``, shuffled: the load-balance study of the paper. 1 is even."""
    weights = np.exp(np.log(base) * (np.arange(n) - n))
    lengths = np.rint(weights / weights.sum() * mean * n).astype(np.int64)
    return _rows_of("exponential", generator("exponential lengths").permutation(lengths), columns)


def mesh(n: int, width: int) -> Tensor:
    """The same offsets from the diagonal in every row, as a mesh has them."""
    reach = min(2_000, n - 1)
    offsets = generator("mesh").choice(np.arange(-reach, reach + 1), min(width, reach), replace=False)
    columns = np.arange(n)[:, None] + np.sort(offsets)
    inside = (columns >= 0) & (columns < n)
    return from_keys("mesh", (np.arange(n)[:, None] * n + columns)[inside], (n, n))


def recursive(levels: int, count: int) -> Tensor:
    """A graph drawn quarter by quarter (R-MAT): communities within communities, and a few vertices with very many edges."""
    rng, keys = generator("recursive"), np.zeros((2, count), np.int64)
    for _ in range(levels):
        drawn = rng.random(count)
        lower, right = drawn >= 0.76, ((drawn >= 0.57) & (drawn < 0.76)) | (drawn >= 0.95)
        keys = 2 * keys + np.stack([lower, right])
    return from_keys("recursive", (keys[0] << levels) + keys[1], (1 << levels, 1 << levels))


def skewed_slices(shape: tuple[int, int, int], count: int, length: int) -> Tensor:
    """Fibres of about ``length`` entries, most of them in few slices."""
    rng = generator("skewed_slices")
    slices = rng.permutation(shape[0])[(shape[0] * rng.random(count) ** 3).astype(np.int64)]
    starts = slices * shape[1] + rng.integers(0, shape[1], count)
    return from_keys("skewed_slices", np.repeat(starts, length) * shape[2] + rng.integers(0, shape[2], count * length), shape)


def only(sets: Sets, wanted: tuple[str, ...]) -> Sets:
    """Those cases that are named, or whose set is."""
    return {name: {case: make for case, make in makes.items() if case in wanted or name in wanted} for name, makes in sets.items()}


def study_skew(base: float, part: int) -> Tensor:
    """Four million entries in 20,000 rows, or a part of that, as skewed as the base says."""
    rows = _share(20_000, part)
    return exponential(rows, max(64, 100_000 // part), min(200, rows), base)


def study_even(part: int) -> Tensor:
    """Four million entries, evenly spread, or a part of that."""
    return even(max(64, 100_000 // part), 40)


def study_wide(part: int) -> Tensor:
    """100 rows of 10,000 entries, or a part of that."""
    return wide(100 if part < 100 else 4, max(64, 100_000 // part), max(32, 10_000 // part))
