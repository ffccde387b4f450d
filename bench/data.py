"""The matrices and tensors that are measured: real ones where they are at hand, and generated ones with fixed seeds."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sparseloom as sl

Make = Callable[[], sl.Tensor]
Indices = NDArray[np.int64]

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REAL_MATRICES = (
    "rustdoc_term_doc.npz",  # terms by documents
    "epfl_hyp_netlist.mtx.gz",  # a circuit, short rows
    "rustdoc_web.mtx.gz",  # links, power law
    "copter2.mtx.gz",  # a mesh
    "wheelset_elasticity.npz",  # a mesh with blocks of three
    "debian_dir_pkg.mtx.gz",  # very skewed rows
    "wordnet_lemma_synset.mtx.gz",  # one or two entries a row
    "lp_fit2d.mtx.gz",  # 25 rows, each long
)
REAL_SQUARES = (
    "epfl_hyp_netlist.mtx.gz",
    "copter2.mtx.gz",
    "wheelset_elasticity.npz",
    "debian_deps.mtx.gz",  # dependencies, half of the rows empty
    "astro-ph.mtx.gz",  # co-authors, power law
    "pushpull.mtx.gz",
    "cage10.mtx.gz",
    "memplus.mtx.gz",  # a memory circuit, skewed rows
    "wiki-Vote.mtx.gz",  # votes, power law
    "bcsstk13.mtx.gz",  # a mesh, small, with long rows
)
REAL_TENSORS = (
    "debian_dir_ext_pkg.tns.gz",
    "speech_word_word_word.tns.gz",
    "wordnet_synset_rel_synset.tns.gz",
    "flights_orig_dest_delay.tns.gz",
)


def matrices() -> dict[str, Make]:
    """Thirteen matrices, or the five generated ones and three more where the real ones are missing."""
    real = _real(REAL_MATRICES)
    generated: dict[str, Make] = {
        "fem_band": lambda: _banded(200_000, 27),
        "uniform": lambda: _uniform(200_000, 200_000, 4_000_000),
        "power_law": lambda: _power_law(200_000, 3_000_000),
        "short_rows": lambda: _uniform(1_000_000, 1_000_000, 2_000_000),
        "long_rows": lambda: _uniform(100, 100_000, 1_000_000),
    }
    instead: dict[str, Make] = {
        "narrow_band": lambda: _banded(500_000, 5),
        "in_cache": lambda: _uniform(10_000, 10_000, 100_000),
        "wide": lambda: _uniform(5_000, 500_000, 2_000_000),
    }
    return {**real, **generated, **({} if real else instead)}


def squares() -> dict[str, Make]:
    """Square matrices whose product with themselves stays below a hundred million multiplications."""
    generated: dict[str, Make] = {
        "fem_band": lambda: _banded(100_000, 27),
        "uniform": lambda: _uniform(100_000, 100_000, 800_000),
        "power_law": lambda: _power_law(50_000, 500_000),
    }
    return {**_real(REAL_SQUARES), **generated}


def tensors() -> dict[str, Make]:
    """Third-order tensors: four real ones where they are at hand, and three generated ones."""
    generated: dict[str, Make] = {
        "long_fibres": lambda: _fibres("long_fibres", (2_000, 2_000, 10_000), 20_000, 100),
        "short_fibres": lambda: _fibres("short_fibres", (50_000, 20_000, 50_000), 500_000, 3),
        "single_entries": lambda: _fibres("single_entries", (20_000, 20_000, 20_000), 500_000, 1),
    }
    return {**_real(REAL_TENSORS), **generated}


def small_squares() -> dict[str, Make]:
    """Three small square matrices, for a quick look."""
    return {
        "small_band": lambda: _banded(3_000, 9),
        "small_uniform": lambda: _uniform(3_000, 3_000, 20_000),
        "small_power_law": lambda: _power_law(3_000, 20_000),
    }


def missing() -> list[str]:
    """A line for each real matrix or tensor that is not at hand, or one for all of them."""
    if not REAL_DATA.exists():
        return ["The real matrices and tensors are left out: there is no ../shared/data."]
    names = dict.fromkeys((*REAL_MATRICES, *REAL_SQUARES, *REAL_TENSORS))
    return [f"{name} is left out: it is not in ../shared/data." for name in names if not (REAL_DATA / name).exists()]


def toy_matrices() -> dict[str, Make]:
    """Two small matrices, to see that the harness runs."""
    return {"toy_band": lambda: _banded(300, 5), "toy_uniform": lambda: _uniform(200, 150, 900)}


def toy_tensors() -> dict[str, Make]:
    """One small tensor, to see that the harness runs."""
    return {"toy_fibres": lambda: _fibres("toy_fibres", (20, 30, 40), 60, 5)}


def numbers(name: str, *shape: int) -> NDArray[np.float64]:
    """A dense operand, the same in every run."""
    made = room(*shape)
    made[...] = _generator(name).random(shape) + 0.5
    return made


def room(*shape: int) -> NDArray[np.float64]:
    """An empty array that starts at a cache line: by chance NumPy's may not, and short rows that straddle lines take 1.7x as long."""
    count, line = math.prod(shape), 64
    block = np.empty(count * 8 + line, np.uint8)
    start = -block.ctypes.data % line
    return block[start : start + count * 8].view(np.float64).reshape(shape)


def another(matrix: sl.Tensor, name: str = "another") -> sl.Tensor:
    """Another matrix of the same shape that shares about half of its pattern: every second entry, and as many new ones."""
    rows, columns, _ = _entries(matrix)
    rng = _generator(name)
    fresh = len(rows) // 2
    keys = rows[::2] * matrix.shape[1] + columns[::2]
    return _from_keys(name, np.concatenate([keys, rng.integers(0, matrix.shape[0] * matrix.shape[1], fresh)]), matrix.shape)


def _entries(matrix: sl.Tensor) -> tuple[Indices, Indices, NDArray[np.float64]]:
    coordinates = matrix.to_scipy().tocoo()
    return coordinates.row.astype(np.int64), coordinates.col.astype(np.int64), coordinates.data


def _real(names: tuple[str, ...]) -> dict[str, Make]:
    return dict(_readers(names))


def _readers(names: tuple[str, ...]) -> Iterator[tuple[str, Make]]:
    for name in names:
        path = REAL_DATA / name
        if path.exists():
            yield name.split(".")[0], lambda path=path: sl.read(path).astype(np.float64)  # type: ignore[misc]


def _generator(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def _from_keys(name: str, keys: Indices, shape: tuple[int, ...]) -> sl.Tensor:
    """A tensor with an entry wherever a row-major key points: csr or csf."""
    ordered = np.sort(keys)  # np.unique takes five times as long here
    coordinates = np.unravel_index(ordered[np.diff(ordered, prepend=-1) > 0], shape)
    return sl.from_coo(coordinates, numbers(name, len(coordinates[0])), shape)


def _banded(n: int, width: int) -> sl.Tensor:
    """Entries near the diagonal, in three groups as a mesh numbered plane by plane has them."""
    plane = max(width, round(n ** (2 / 3)))
    near = np.arange(width) - width // 2
    offsets = near + np.repeat([-plane, 0, plane], -(-width // 3))[:width]
    columns = np.arange(n)[:, None] + offsets
    inside = (columns >= 0) & (columns < n)
    return _from_keys("banded", (np.arange(n)[:, None] * n + columns)[inside], (n, n))


def _uniform(rows: int, columns: int, count: int) -> sl.Tensor:
    return _from_keys("uniform", _generator(f"uniform {rows}").integers(0, rows * columns, count), (rows, columns))


def _power_law(n: int, count: int) -> sl.Tensor:
    """Few rows and columns hold most entries, as in the graph of the web."""
    rng = _generator("power_law")
    rows, columns = (rng.permutation(n)[(n * rng.random(count) ** 3).astype(np.int64)] for _ in range(2))
    return _from_keys("power_law", rows * n + columns, (n, n))


def _fibres(name: str, shape: tuple[int, int, int], fibres: int, length: int) -> sl.Tensor:
    """Random fibres along the last mode, about ``length`` entries each."""
    rng = _generator(name)
    starts = rng.integers(0, shape[0] * shape[1], fibres)
    return _from_keys(name, np.repeat(starts, length) * shape[2] + rng.integers(0, shape[2], fibres * length), shape)
