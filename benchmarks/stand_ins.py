"""The matrices and tensors that are measured: generated ones with fixed seeds, and real ones from a folder.

All are drawn in whole arrays: the largest takes about a second. What they stand in for is in their names.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import DTypeError
from sparseloom.io.files import read
from sparseloom.tensor.creation import from_coo
from sparseloom.tensor.tensor import Tensor

Make = Callable[[], Tensor]
Indices = NDArray[np.int64]
MATRIX_FILES, TENSOR_FILES = (".mtx", ".mtx.gz", ".npz"), (".tns", ".tns.gz")
DOUBLE = np.dtype(np.float64)


def matrices() -> dict[str, Make]:
    """What the usual kernels run on."""
    return {
        "fem_band": lambda: banded(100_000, 27),
        "blocks": lambda: in_blocks(12_000, 4, 12),
        "uniform": lambda: uniform(100_000, 100_000, 2_000_000),
        "power_law": lambda: power_law(100_000, 2_000_000),
        "web": lambda: web(200_000, 2_000_000),
        "short_rows": lambda: uniform(500_000, 500_000, 1_000_000),
        "long_rows": lambda: uniform(100, 100_000, 1_000_000),
    }


def squares() -> dict[str, Make]:
    """Square matrices whose product with themselves stays below a hundred million multiplications."""
    return {
        "fem_band": lambda: banded(100_000, 27),
        "uniform": lambda: uniform(100_000, 100_000, 800_000),
        "power_law": lambda: power_law(50_000, 500_000),
    }


def tensors() -> dict[str, Make]:
    """Tensors of order three."""
    return {
        "long_fibres": lambda: fibres("long_fibres", (2_000, 2_000, 10_000), 20_000, 100),
        "short_fibres": lambda: fibres("short_fibres", (50_000, 20_000, 50_000), 500_000, 3),
        "single_entries": lambda: fibres("single_entries", (20_000, 20_000, 20_000), 500_000, 1),
    }


def tensors_of_four() -> dict[str, Make]:
    """Tensors of order four."""
    return {
        "four_modes": lambda: fibres("four_modes", (500, 400, 300, 2_000), 100_000, 8),
        "four_scattered": lambda: fibres("four_scattered", (5_000, 4_000, 3_000, 2_000), 400_000, 1),
    }


def small_matrices() -> dict[str, Make]:
    """One matrix for a quick look, large enough for threads."""
    return {"quick_power_law": lambda: power_law(30_000, 400_000)}


def small_squares() -> dict[str, Make]:
    """Small square matrices."""
    return {
        "small_band": lambda: banded(3_000, 9),
        "small_uniform": lambda: uniform(3_000, 3_000, 20_000),
        "small_power_law": lambda: power_law(3_000, 20_000),
    }


def small_tensors() -> dict[str, Make]:
    """A small tensor of order three."""
    return {"quick_fibres": lambda: fibres("quick_fibres", (1_000, 500, 2_000), 20_000, 10)}


def small_tensors_of_four() -> dict[str, Make]:
    """A small tensor of order four."""
    return {"quick_four": lambda: fibres("quick_four", (200, 100, 100, 500), 20_000, 5)}


def toy_matrices() -> dict[str, Make]:
    """A tiny matrix, to see that everything runs."""
    return {"toy_uniform": lambda: uniform(64, 64, 400)}


def toy_tensors() -> dict[str, Make]:
    """A tiny tensor of order three."""
    return {"toy_fibres": lambda: fibres("toy_fibres", (20, 30, 40), 60, 5)}


def toy_tensors_of_four() -> dict[str, Make]:
    """A tiny tensor of order four."""
    return {"toy_four": lambda: fibres("toy_four", (8, 7, 6, 9), 40, 3)}


def real(folder: Path, files: Iterable[str]) -> dict[str, Make]:
    """These files of a folder, as far as they are there."""
    return {name.partition(".")[0]: _reader(folder / name) for name in files if (folder / name).exists()}


def files_in(folder: Path, endings: tuple[str, ...]) -> list[str]:
    """The names of the files in a folder with one of these endings."""
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(endings))


def numbers(name: str, *shape: int, dtype: DType = DOUBLE) -> NDArray[Any]:
    """A dense operand, the same in every run."""
    made = room(*shape, dtype=dtype)
    made[...] = generator(name).random(shape) + 0.5
    return made


def room(*shape: int, dtype: DType = DOUBLE) -> NDArray[Any]:
    """An empty array that starts at a cache line: by chance NumPy's may not, and short rows that straddle lines take 1.7x as long."""
    size, line = math.prod(shape) * dtype.itemsize, 64
    block = np.empty(size + line, np.uint8)
    start = -block.ctypes.data % line
    return block[start : start + size].view(dtype).reshape(shape)


def another(matrix: Tensor, name: str = "another") -> Tensor:
    """Another matrix of the same shape that shares about half of its pattern: every second entry, and as many new ones."""
    coordinates = matrix.to_scipy().tocoo()
    rows, columns = coordinates.row.astype(np.int64), coordinates.col.astype(np.int64)
    keys = rows[::2] * matrix.shape[1] + columns[::2]
    fresh = generator(name).integers(0, matrix.shape[0] * matrix.shape[1], len(rows) // 2)
    return from_keys(name, np.concatenate([keys, fresh]), matrix.shape).astype(matrix.dtype, copy=False)


def lower(matrix: Tensor) -> Tensor:
    """The entries below the diagonal."""
    coordinates = matrix.to_scipy().tocoo()
    below = coordinates.row > coordinates.col
    entries = coordinates.row[below], coordinates.col[below]
    return from_coo(entries, coordinates.data[below], matrix.shape)


def generator(name: str) -> np.random.Generator:
    """Random numbers that are the same whenever this name is asked for."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def banded(n: int, width: int) -> Tensor:
    """Entries near the diagonal, in three groups as a mesh numbered plane by plane has them."""
    plane = max(width, round(n ** (2 / 3)))
    near = np.arange(width) - width // 2
    offsets = near + np.repeat([-plane, 0, plane], -(-width // 3))[:width]
    columns = np.arange(n)[:, None] + offsets
    inside = (columns >= 0) & (columns < n)
    return from_keys("banded", (np.arange(n)[:, None] * n + columns)[inside], (n, n))


def uniform(rows: int, columns: int, count: int) -> Tensor:
    """Entries anywhere."""
    return from_keys("uniform", generator(f"uniform {rows}").integers(0, rows * columns, count), (rows, columns))


def power_law(n: int, count: int) -> Tensor:
    """Few rows and columns hold most entries, as in a social graph."""
    rng = generator("power_law")
    rows, columns = (rng.permutation(n)[(n * rng.random(count) ** 3).astype(np.int64)] for _ in range(2))
    return from_keys("power_law", rows * n + columns, (n, n))


def web(n: int, count: int) -> Tensor:
    """Links between pages: most lead to neighbours, the others to popular pages; a few pages have very many."""
    rng = generator("web")
    lengths = 1 / (0.02 + rng.random(n)) ** 0.9
    rows = np.repeat(np.arange(n), np.floor(lengths * count / lengths.sum() + rng.random(n)).astype(np.int64))
    near = np.clip(rows + np.rint(rng.laplace(0, 60, len(rows))).astype(np.int64), 0, n - 1)
    popular = rng.permutation(n)[(n * rng.random(len(rows)) ** 3).astype(np.int64)]
    return from_keys("web", rows * n + np.where(rng.random(len(rows)) < 0.8, near, popular), (n, n))


def in_blocks(block_rows: int, size: int, per_row: int) -> Tensor:
    """Dense blocks, as a mesh with several unknowns for each point has them."""
    rng, n = generator("in_blocks"), block_rows * size
    rows = np.repeat(np.arange(block_rows), per_row)
    columns = np.clip(rows + np.rint(rng.laplace(0, 200, len(rows))).astype(np.int64), 0, block_rows - 1)
    within = np.arange(size)
    keys = (rows[:, None, None] * size + within[:, None]) * n + columns[:, None, None] * size + within
    return from_keys("in_blocks", keys.ravel(), (n, n))


def skewed(n: int, count: int, base: float) -> Tensor:
    """Rows whose lengths grow as the powers of ``base``, shuffled: the load-balance study of the paper. 1 is even."""
    rng = generator("skewed")
    weights = np.exp(np.log(base) * np.arange(n))
    lengths = np.minimum(np.floor(weights / weights.sum() * count + rng.random(n)), n).astype(np.int64)
    rows = np.repeat(np.arange(n), rng.permutation(lengths))
    return from_keys("skewed", rows * n + rng.integers(0, n, len(rows)), (n, n))


def fibres(name: str, shape: tuple[int, ...], count: int, length: int) -> Tensor:
    """Random fibres along the last mode, about ``length`` entries each."""
    rng = generator(name)
    starts = rng.integers(0, math.prod(shape[:-1]), count)
    return from_keys(name, np.repeat(starts, length) * shape[-1] + rng.integers(0, shape[-1], count * length), shape)


def _reader(path: Path) -> Make:
    def make() -> Tensor:
        found = read(path)
        if found.dtype.kind == "c":
            raise DTypeError("it holds complex numbers")
        return _with_usual_levels(found).astype(np.float64, copy=False)

    return make


def _with_usual_levels(tensor: Tensor) -> Tensor:
    """A tensor in csr or csf, whatever its file was stored as."""
    return tensor.to("csr" if tensor.ndim == 2 else f"csf({tensor.ndim})")


def from_keys(name: str, keys: Indices, shape: tuple[int, ...]) -> Tensor:
    """A tensor with an entry wherever a row-major key points: csr or csf."""
    ordered = np.sort(keys)  # np.unique takes five times as long here
    coordinates = np.unravel_index(ordered[np.diff(ordered, prepend=-1) > 0], shape)
    return from_coo(coordinates, numbers(name, len(coordinates[0])), shape)
