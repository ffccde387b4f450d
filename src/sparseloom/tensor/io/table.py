"""Tables of numbers in text: one row per line, the same number of columns in each.

The whole body is parsed at once; only when that fails is the text read again, line by line, to say where.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import FLOAT64, INT64, DType
from sparseloom.tensor.io.source import fault

UINT64: DType = np.dtype(np.uint64)
_LARGEST = np.iinfo(np.int64).max
_EXACT = 2**53  # beyond this a float64 skips integers


@dataclass(frozen=True)
class Table:
    """The rest of a text file: its lines from number ``first_line`` on, comments blanked out."""

    path: Path
    body: bytes
    first_line: int

    def fault(self, row: int, what: str) -> Exception:
        """The error for a row of numbers, which names its line."""
        number, text = self.line_of(row)
        return fault(self.path, what, number, text)

    def line_of(self, row: int) -> tuple[int, bytes]:
        """The line number and text of a row of numbers; blank lines do not count as rows."""
        left = row
        for offset, text in enumerate(self.body.split(b"\n")):
            if not text.strip():
                continue
            if left == 0:
                return self.first_line + offset, text
            left -= 1
        return self.last_line, b""

    @property
    def last_line(self) -> int:
        """The number of the last line that holds anything."""
        return self.first_line + self.body.rstrip().count(b"\n")

    def numbers(self, columns: int) -> NDArray[Any]:
        """The numbers, one row per line: int64 if all are integers that fit, else float64."""
        rows = self._count_rows(columns)
        flat = _parse(self.body, INT64, rows * columns)
        if flat is None or _at_limit(flat).size:
            flat = _parse(self.body, FLOAT64, rows * columns)
        if flat is None:
            raise self._bad_number(_is_number, "a number")
        return flat.reshape(rows, columns)

    def integers(self, columns: int) -> NDArray[Any]:
        """As ``numbers``, for a file that promises integers: int64, or uint64 if some are too large for that."""
        rows = self._count_rows(columns)
        flat = _parse(self.body, INT64, rows * columns)
        if flat is None:
            raise self._bad_number(_is_integer, "an integer")
        # The parser cuts off at the limits, so what stands there is read again.
        if self._cut_off(flat, columns) is None:
            return flat.reshape(rows, columns)
        negative = np.flatnonzero(flat < 0)
        if negative.size:
            raise self.fault(int(negative[0]) // columns, "the integers of this file are too large or too small for one 64-bit type")
        flat = _parse(self.body, UINT64, rows * columns)
        beyond = None if flat is None else self._cut_off(flat, columns)
        if flat is None or beyond is not None:
            raise self.fault(beyond or 0, "an integer is too large for 64 bits")
        return flat.reshape(rows, columns)

    def _cut_off(self, flat: NDArray[Any], columns: int) -> int | None:
        """The first row with an integer that was cut off at the limits of the dtype."""
        for place in _at_limit(flat).tolist():
            row, column = divmod(place, columns)
            if int(self.line_of(row)[1].split()[column]) != int(flat[place]):
                return int(row)
        return None

    def _count_rows(self, columns: int) -> int:
        """How many lines hold numbers; each must hold as many as there are columns."""
        width = self._tokens_per_line()
        wrong = np.flatnonzero((width != columns) & (width != 0))
        if wrong.size:
            line = int(wrong[0])
            text = self.body.split(b"\n", line + 1)[line]
            raise fault(self.path, f"expected {columns} numbers, found {len(text.split())}", self.first_line + line, text)
        return int(np.count_nonzero(width))

    def coordinates(self, columns: NDArray[Any], names: tuple[str, ...], shape: tuple[int, ...] | None) -> NDArray[np.int64]:
        """Check 1-based coordinates, given as rows of ``columns``; return them 0-based, one row per mode."""
        result = np.empty((columns.shape[1], columns.shape[0]), np.int64)
        for mode, name in enumerate(names):
            column = columns[:, mode]
            if column.dtype.kind == "f":
                broken = np.flatnonzero((column != np.floor(column)) | ~(np.abs(column) < _EXACT))
                if broken.size:
                    raise self.fault(int(broken[0]), f"the {name} {column[broken[0]]:g} is not an integer below 2**53")
            limit = _LARGEST if shape is None else shape[mode]
            outside = np.flatnonzero((column < 1) | (column > limit))
            if outside.size:
                value = int(column[outside[0]])
                bounds = "below 1 (coordinates count from 1)" if shape is None else f"outside 1 to {limit}"
                raise self.fault(int(outside[0]), f"the {name} {value} is {bounds}")
            result[mode] = column
            result[mode] -= 1
        return result

    def _tokens_per_line(self) -> NDArray[np.uint8]:
        """How many words stand on each line, counted without splitting (lines of more than 255 words count modulo 256)."""
        text = np.frombuffer(self.body, np.uint8)
        if not text.size:
            return np.zeros(0, np.uint8)
        blank = text <= 32
        begins = ~blank
        begins[1:] &= blank[:-1]
        starts = np.concatenate(([0], np.flatnonzero(text == 10) + 1))
        counts: NDArray[np.uint8] = np.add.reduceat(begins.view(np.uint8), starts[starts < text.size], dtype=np.uint8)
        return counts

    def _bad_number(self, is_good: Callable[[bytes], bool], wanted: str) -> Exception:
        """Find the first word that is not what was wanted."""
        for offset, text in enumerate(self.body.split(b"\n")):
            for word in text.split():
                if not is_good(word):
                    shown = word.decode("ascii", "backslashreplace")
                    return fault(self.path, f"{shown!r} is not {wanted}", self.first_line + offset, text)
        return fault(self.path, f"some word in it is not {wanted}", self.first_line)


def strip_comments(body: bytes, mark: bytes, only_at_start: bool) -> bytes:
    """Blank out comments but keep the line breaks, so that line numbers stay true."""
    if mark not in body:
        return body
    pattern = (rb"(?m)^[ \t]*" if only_at_start else b"") + re.escape(mark) + rb"[^\n]*"
    return re.sub(pattern, b"", body)


def words(values: NDArray[Any]) -> list[str]:
    """Each value as text that reads back exactly, a complex one as two words."""
    match values.dtype.kind:
        case "c":
            return [f"{value.real!r} {value.imag!r}" for value in values.tolist()]
        case "f":
            return list(map(repr, values.tolist()))
        case "b":
            return list(map(str, values.astype(np.int8).tolist()))
    return list(map(str, values.tolist()))


def _parse(text: bytes, dtype: DType, expected: int) -> NDArray[Any] | None:
    """Parse all words as ``dtype``, or ``None`` if one of them is something else."""
    if not expected:
        return np.empty(0, dtype)  # NumPy makes one number of blank text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # older NumPy stops at a bad word with this warning
        try:
            flat = np.fromstring(text, dtype, sep=" ")
        except ValueError:
            return None
    return flat if flat.size == expected else None


def _at_limit(flat: NDArray[Any]) -> NDArray[np.intp]:
    """Where integers stand at the limits of their dtype."""
    limits = np.iinfo(flat.dtype)
    if not flat.size or (flat.max() < limits.max and (limits.min == 0 or flat.min() > limits.min)):
        return np.empty(0, np.intp)
    return np.flatnonzero((flat == limits.max) | ((flat == limits.min) & (limits.min < 0)))


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word


def _is_integer(word: bytes) -> bool:
    try:
        int(word)
    except ValueError:
        return False
    return b"_" not in word
