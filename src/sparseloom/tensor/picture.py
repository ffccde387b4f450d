"""Small pictures of where a tensor's entries are, drawn from a coarse grid: in braille for terminals, as SVG for notebooks."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sparseloom.formats.pack import stored_count, unpack
from sparseloom.formats.storage import Storage

Grid = NDArray[np.float64]

_TEXT_ROWS, _TEXT_COLUMNS = 32, 64  # dots: 8 lines of 32 characters
_IMAGE_ROWS, _IMAGE_COLUMNS = 64, 64
_TOO_MANY = 20_000_000  # entries; a picture must not take seconds
# The bit of each dot in a braille character, by its row and column.
# How dark a cell must be for each of 4 x 4 neighbouring dots to be set, in sixteenths (Bayer's ordered dither).
_ORDER = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])
_PALEST = 6  # powers of ten between a full cell and one that is as pale as can be seen
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def density_grid(storage: Storage, rows: int, columns: int) -> Grid | None:
    """How full each part of the tensor is, from 0 to 1, seen along its first two modes; ``None`` if there is nothing to see.

    The grid has at most ``rows`` x ``columns`` cells and keeps the tensor's proportions. A vector is one row.
    """
    shape = storage.shape
    if not shape or 0 in shape or stored_count(storage) > _TOO_MANY:
        return None
    height, width = (shape[0], shape[1]) if len(shape) > 1 else (1, shape[0])
    scale = max(height / rows, width / columns, 1.0)
    cells = (max(1, round(height / scale)), max(1, round(width / scale)))
    coordinates, _ = unpack(storage)
    vertical = coordinates[0] * cells[0] // height if len(shape) > 1 else 0
    horizontal = coordinates[min(1, len(shape) - 1)] * cells[1] // width
    counts = np.bincount(vertical * cells[1] + horizontal, minlength=cells[0] * cells[1]).reshape(cells)
    behind = math.prod(map(float, shape[2:]))
    room = np.outer(_cell_sizes(height, cells[0]), _cell_sizes(width, cells[1])) * behind
    return np.asarray(np.minimum(counts / room, 1.0))


def _cell_sizes(size: int, cells: int) -> NDArray[np.int64]:
    """How many coordinates fall into each cell."""
    edges = -(-np.arange(cells + 1) * size // cells)
    return np.diff(edges)


def braille(storage: Storage) -> list[str]:
    """Lines of braille characters, with a dot wherever a part of the tensor has entries; or fewer, where nearly every part has some."""
    grid = density_grid(storage, _TEXT_ROWS, _TEXT_COLUMNS)
    if grid is None:
        return []
    lines, characters = -(-grid.shape[0] // 4), -(-grid.shape[1] // 2)
    dots = np.zeros((lines * 4, characters * 2), np.int64)
    dots[: grid.shape[0], : grid.shape[1]] = _dotted(grid)
    codes = (dots.reshape(lines, 4, characters, 2) * _DOTS[None, :, None, :]).sum(axis=(1, 3))
    return ["".join(chr(0x2800 + code) for code in line) for line in codes.tolist()]


def _dotted(grid: Grid) -> NDArray[np.bool_]:
    """Where dots are set. Where that would be almost everywhere they grow denser with every power of ten of the density."""
    here = grid > 0
    if here.mean() <= 0.5:
        return here
    dark = 1 + np.log10(np.where(here, grid, 1.0)) / _PALEST
    order = np.tile(_ORDER, (-(-grid.shape[0] // 4), -(-grid.shape[1] // 4)))[: grid.shape[0], : grid.shape[1]]
    return np.asarray(here & (16 * np.maximum(dark, 1 / 16) > order))


def svg(storage: Storage) -> str:
    """A self-contained SVG image, darker where the tensor is fuller."""
    grid = density_grid(storage, _IMAGE_ROWS, _IMAGE_COLUMNS)
    if grid is None:
        return ""
    rows, columns = grid.shape
    side = max(2, min(160 // max(rows, columns), 16))
    width, height = columns * side, rows * side
    # The square root keeps thinly filled parts visible.
    squares = "".join(
        f'<rect x="{j * side}" y="{i * side}" width="{side}" height="{side}" fill-opacity="{0.15 + 0.85 * grid[i, j] ** 0.5:.2f}"/>'
        for i, j in np.argwhere(grid > 0).tolist()
    )
    frame = f'<rect width="{width}" height="{height}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" fill="currentColor">{squares}{frame}</svg>'
