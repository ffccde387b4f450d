"""Tables of numbers into text: one row per line, coordinates before values. Long ones are printed in C, several blocks at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import kind_of
from sparseloom.io.printer import print_rows
from sparseloom.io.source import Sink
from sparseloom.toolchain.ahead import in_order

_AT_ONCE = 100_000
WORTH = 4_000  # rows from which on the printer in C is worth compiling


def write_rows(file: Sink, coordinates: NDArray[np.int64], values: NDArray[Any]) -> None:
    """Write a line per entry: its coordinates, counting from 1, and its value."""
    for text in _printed_ahead(coordinates, values) if len(values) >= WORTH else [_lines(coordinates, values)]:
        file.write(text)


def _printed_ahead(coordinates: NDArray[np.int64], values: NDArray[Any]) -> Iterator[bytes | memoryview]:
    """The text in blocks, in order. Several threads make them while others are written."""
    begins = range(0, len(values), _AT_ONCE)
    yield from in_order(((partial(_printed, coordinates, values, begin), True) for begin in begins), "sparseloom-printer")


def _printed(coordinates: NDArray[np.int64], values: NDArray[Any], begin: int) -> bytes | memoryview:
    part = coordinates[:, begin : begin + _AT_ONCE], values[begin : begin + _AT_ONCE]
    text = print_rows(*part)
    return _lines(*part) if text is None else text


def _lines(coordinates: NDArray[np.int64], values: NDArray[Any]) -> bytes:
    columns = [list(map(str, row)) for row in (coordinates + 1).tolist()]
    return "".join(" ".join(line) + "\n" for line in zip(*columns, _in_words(values), strict=True)).encode()


def _in_words(values: NDArray[Any]) -> list[str]:
    """Each value as text that reads back exactly, a complex one as two words."""
    match kind_of(values.dtype):
        case "c":
            return [f"{value.real!r} {value.imag!r}" for value in values.tolist()]
        case "f":
            return list(map(repr, values.tolist()))
        case "b":
            return list(map(str, values.astype(np.int8).tolist()))
    return list(map(str, values.tolist()))
