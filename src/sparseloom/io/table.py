"""Tables of numbers in text: one row per line, the same number of columns in each, coordinates before values.

The text is parsed block by block, each at once: long files in C, several blocks at a time; what is not plain by NumPy. Only where that
fails is a block read again, line by line, to say where.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import FLOAT64, INT32, INT64, DType
from sparseloom.core.errors import StorageError
from sparseloom.io.lines import Block, Lines
from sparseloom.io.parser import parse_rows
from sparseloom.io.room import Room
from sparseloom.io.source import fault, is_gzipped, shortened
from sparseloom.toolchain.ahead import in_order
from sparseloom.toolchain.forks import whole_step

UINT64: DType = np.dtype(np.uint64)
_LARGEST = np.iinfo(np.int64).max
_NARROW = np.iinfo(np.int32).max
_EXACT = 2**53  # beyond this a float64 skips integers
_TAB, _BREAK, _RETURN, _SPACE = 9, 10, 13, 32
_LONGEST = 40  # letters of an integer that may fit into 64 bits; who writes more zeros in front is out of luck
WORTH = 1 << 16  # bytes of a block from which on the parser in C is worth compiling
_NO_TYPE = "the integers of this file are too large or too small for one 64-bit type"


@dataclass(frozen=True)
class Layout:
    """What the rows of a table hold: a coordinate per name, counting from 1 and up to its size if there is a shape, then a value."""

    names: tuple[str, ...]
    shape: tuple[int, ...] | None
    words: int  # numbers that make one value
    integral: bool  # whether values are integers
    declared: int | None = None  # how many rows there are, if the file says so
    what: str = "entries"  # what a row is called

    @property
    def order(self) -> int:
        """How many coordinates a row has."""
        return len(self.names)

    @property
    def columns(self) -> int:
        """How many numbers a row has."""
        return len(self.names) + self.words


def known_sizes(path: Path, words: Sequence[bytes], line: int, text: bytes) -> tuple[int, ...]:
    """The sizes that a line declares, in digits."""
    if any(len(word) > _LONGEST or int(word) > _LARGEST for word in words):
        raise fault(path, "a size does not fit in 64 bits", line, text)
    return tuple(map(int, words))


class Rows(NamedTuple):
    """Rows as arrays: coordinates counting from 0, one row per mode, and one column of values per word."""

    coordinates: NDArray[Any]
    values: NDArray[Any]


Inspect = Callable[[Block, Rows], None]


def read_rows(lines: Lines, layout: Layout, inspect: Inspect = lambda block, rows: None) -> Rows:
    """Read all that is left of a file. ``inspect`` sees every block, and raises what it has against it."""
    found, last = _Gathered(layout, Room(lines.path), whole=_room_for_all(lines, layout)), None
    first_line = lines.number
    for block, plain in _parsed_ahead(lines.blocks(), layout):
        rows = found.add(block, plain)
        if rows is not None:
            inspect(block, rows)
            last = block
    if layout.declared is not None and found.count < layout.declared:
        line = (last.last_line if last is not None else None) or first_line
        raise fault(lines.path, f"{layout.declared} {layout.what} are declared, but the file ends after {found.count}", line)
    return found.joined()


def _room_for_all(lines: Lines, layout: Layout) -> Rows | None:
    """Arrays for as many rows as are declared, if the file is long enough to hold them; integers may come in two dtypes."""
    if layout.declared is None or layout.shape is None or layout.integral or not layout.columns or is_gzipped(lines.path):
        return None
    if layout.declared > lines.path.stat().st_size // (2 * layout.columns) + 1:
        return None
    kind = INT32 if max(layout.shape, default=0) <= _NARROW else INT64
    return Rows(np.empty((layout.order, layout.declared), kind), np.empty((layout.declared, layout.words), FLOAT64))


def _parsed_ahead(blocks: Iterator[Block], layout: Layout) -> Iterator[tuple[Block, Rows | None]]:
    """Every block in order, with its rows if it is plain. Long ones are parsed by several threads while others are read."""
    if layout.order + layout.words == 0:
        return
    yield from in_order(((partial(_parsed, block, layout), len(block.body) >= WORTH) for block in blocks), "sparseloom-parser")


def _parsed(block: Block, layout: Layout) -> tuple[Block, Rows | None]:
    return block, _plain_rows(block.body, layout) if len(block.body) >= WORTH else None


def _plain_rows(text: bytes, layout: Layout) -> Rows | None:
    """The rows of a block, if the parser in C takes all of it."""
    found = parse_rows(text, layout.order, layout.shape, layout.words, layout.integral)
    if found is None:
        return None
    coordinates, values = found
    largest = coordinates.max(initial=0) if layout.shape is None else max(layout.shape, default=0)
    return Rows(coordinates.astype(INT32 if largest <= _NARROW else INT64), values)


@dataclass
class _Gathered:
    """The rows of the blocks so far."""

    layout: Layout
    room: Room
    count: int = 0
    coordinates: list[NDArray[Any]] = field(default_factory=list)
    values: list[NDArray[Any]] = field(default_factory=list)
    negative: tuple[int, bytes] | None = None  # the first line with a negative value
    whole: Rows | None = None  # room for all that are declared, where that is known to be true enough

    def add(self, block: Block, plain: Rows | None = None) -> Rows | None:
        """Take the rows of one more block, if it has any; ``plain``, if they are known already."""
        layout = self.layout
        words = None if plain is not None else _words(block, layout.columns)
        count = len(plain.values) if plain is not None else words.rows if words is not None else 0
        if not count:
            return None
        if layout.declared is not None and self.count + count > layout.declared:
            raise block.fault(layout.declared - self.count, f"{layout.declared} {layout.what} are declared, but more follow")
        rows = plain
        if rows is None and words is not None:
            columns, values = (_integers if layout.integral else _numbers)(block, layout, words)
            rows = Rows(_coordinates(block, columns, layout), values)
        assert rows is not None
        self._check_signs(block, rows.values)
        self.room.take(rows.coordinates.nbytes + rows.values.nbytes)
        if self.whole is not None and rows.values.dtype == self.whole.values.dtype:
            self.whole.coordinates[:, self.count : self.count + count] = rows.coordinates
            self.whole.values[self.count : self.count + count] = rows.values
        else:
            self.coordinates.append(rows.coordinates)
            self.values.append(rows.values)
        self.count += count
        return rows

    def _check_signs(self, block: Block, values: NDArray[Any]) -> None:
        """All integers of a file must fit into one dtype, int64 or uint64."""
        if not self.layout.integral or not self.layout.words:
            return
        if self.negative is None and values.dtype == INT64 and values.min() < 0:
            self.negative = block.line_of(int(np.flatnonzero(values[:, 0] < 0)[0]))
        if self.negative is not None and (values.dtype == UINT64 or any(part.dtype == UINT64 for part in self.values)):
            raise fault(block.path, _NO_TYPE, *self.negative)

    def joined(self) -> Rows:
        """The rows of all blocks; each block is let go as soon as it is copied."""
        if self.whole is not None:
            return Rows(self.whole.coordinates[:, : self.count], self.whole.values[: self.count])
        wide = any(part.dtype == INT64 for part in self.coordinates)
        coordinates = np.empty((self.layout.order, self.count), INT64 if wide else INT32)
        kinds = {part.dtype for part in self.values} or {INT64 if self.layout.integral else FLOAT64}
        values = np.empty((self.count, self.layout.words), UINT64 if UINT64 in kinds else kinds.pop())
        end = self.count
        while self.values:
            here, part = self.coordinates.pop(), self.values.pop()
            begin = end - len(part)
            coordinates[:, begin:end] = here
            values[begin:end] = part
            end = begin
        return Rows(coordinates, values)


class _Words(NamedTuple):
    """Where the words of a block begin, where its lines end, and how many of them are rows."""

    text: NDArray[np.uint8]
    starts: NDArray[np.intp]
    ends: NDArray[np.intp]
    rows: int


def _words(block: Block, columns: int) -> _Words:
    """Find the words of a block. Every line that holds any must hold as many as there are columns."""
    text = np.frombuffer(block.body, np.uint8)
    # Blanks are what NumPy's parser takes for them; other control characters are parts of words, which it refuses.
    blank = text - _TAB <= _RETURN - _TAB
    blank |= text == _SPACE
    begins = ~blank
    begins[1:] &= blank[:-1]
    starts = np.flatnonzero(begins)
    ends = np.flatnonzero(text == _BREAK)
    if not block.body.endswith(b"\n"):
        ends = np.append(ends, len(text))
    rows, left = divmod(len(starts), columns)
    if left == 0 and rows == len(ends):
        first, last = starts[::columns], starts[columns - 1 :: columns]
        if (last < ends).all() and (ends[:-1] < first[1:]).all():
            return _Words(text, starts, ends, rows)
    return _Words(text, starts, ends, _count_rows(block, columns, starts, ends))


def _count_rows(block: Block, columns: int, starts: NDArray[np.intp], ends: NDArray[np.intp]) -> int:
    """How many lines hold numbers, where some are blank or wrong."""
    held = np.bincount(np.searchsorted(ends, starts), minlength=1)
    wrong = np.flatnonzero((held != columns) & (held != 0))
    if wrong.size:
        line = int(wrong[0])
        text = block.body.split(b"\n", line + 1)[line]
        raise fault(block.path, f"expected {columns} numbers, found {held[line]}", block.first_line + line, text)
    return int(np.count_nonzero(held))


def _numbers(block: Block, layout: Layout, words: _Words) -> tuple[NDArray[Any], NDArray[Any]]:
    """The coordinates, exact where they are spelled as integers, and the values in float64."""
    order, rows = layout.order, words.rows
    flat = _parse(block.body, INT64, rows * layout.columns)
    if flat is not None and _cut_off(block.body, flat) is None:
        table = flat.reshape(rows, layout.columns)
        return table[:, :order], table[:, order:].astype(FLOAT64)
    if order and layout.words:
        before, behind = _parted(words, layout)
        coordinates, values = _parse(before, INT64, rows * order), _parse(behind, FLOAT64, rows * layout.words)
        if coordinates is not None and values is not None and _cut_off(before, coordinates) is None:
            return coordinates.reshape(rows, order), values.reshape(rows, layout.words)
    flat = _parse(block.body, FLOAT64, rows * layout.columns)
    if flat is None:
        raise _bad_number(block, _is_number, "a number")
    table = flat.reshape(rows, layout.columns)
    return table[:, :order], table[:, order:]


def _parted(words: _Words, layout: Layout) -> tuple[bytes, bytes]:
    """The text of the coordinates and that of the values. Apart, the former are read as integers, which is ten times as fast."""
    begins = words.starts[layout.order :: layout.columns]
    ends = np.minimum(words.ends[np.searchsorted(words.ends, begins)] + 1, len(words.text))
    turns = np.stack((begins, ends), axis=1).reshape(-1)
    is_value = np.repeat(np.arange(len(turns) + 1) % 2 == 1, np.diff(turns, prepend=0, append=len(words.text)))
    return words.text[~is_value].tobytes(), words.text[is_value].tobytes()


def _integers(block: Block, layout: Layout, words: _Words) -> tuple[NDArray[Any], NDArray[Any]]:
    """As ``_numbers``, for a file that promises integers: int64, or uint64 if some are too large for that."""
    order, rows, columns = layout.order, words.rows, layout.columns
    flat = _parse(block.body, INT64, rows * columns)
    if flat is None:
        raise _bad_number(block, _is_integer, "an integer")
    # The parser cuts off at the limits, so what stands there is looked at again.
    if _cut_off(block.body, flat) is not None:
        negative = np.flatnonzero(flat < 0)
        if negative.size:
            raise block.fault(int(negative[0]) // columns, _NO_TYPE)
        flat = _parse(block.body, UINT64, rows * columns)
        beyond = None if flat is None else _cut_off(block.body, flat)
        if flat is None or beyond is not None:
            raise block.fault((beyond or 0) // columns, "an integer is too large for 64 bits")
    table = flat.reshape(rows, columns)
    return table[:, :order], np.ascontiguousarray(table[:, order:])


def _coordinates(block: Block, columns: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """Check coordinates that count from 1; return them counting from 0, one row per mode, as int32 where that holds them."""
    for mode, name in enumerate(layout.names):
        column = columns[:, mode]
        if column.dtype.kind == "f":
            broken = np.flatnonzero((column != np.floor(column)) | ~(np.abs(column) < _EXACT))
            if broken.size:
                raise block.fault(int(broken[0]), f"the {name} {column[broken[0]]:g} is not an integer below 2**53")
        limit = _LARGEST if layout.shape is None else layout.shape[mode]
        if column.min() < 1 or column.max() > limit:
            outside = np.flatnonzero((column < 1) | (column > limit))
            bounds = "below 1 (coordinates count from 1)" if layout.shape is None else f"outside 1 to {limit}"
            raise block.fault(int(outside[0]), f"the {name} {int(column[outside[0]])} is {bounds}")
    largest = columns.max(initial=0) if layout.shape is None else max(layout.shape, default=0)
    result = np.empty(columns.shape[::-1], INT32 if largest <= _NARROW else INT64)
    np.subtract(columns.T, 1, out=result, casting="unsafe")
    return result


def _bad_number(block: Block, is_good: Callable[[bytes], bool], wanted: str) -> StorageError:
    """Find the first word that is not what was wanted."""
    for offset, text in enumerate(block.body.split(b"\n")):
        for word in text.split():
            if not is_good(word):
                return fault(block.path, f"{shortened(word)!r} is not {wanted}", block.first_line + offset, text)
    return fault(block.path, f"some word in it is not {wanted}", block.first_line)


def _parse(text: bytes, dtype: DType, expected: int) -> NDArray[Any] | None:
    """Parse all words as ``dtype``, or ``None`` if one of them is something else.

    The parser may make one number of two words, of a sign and what follows it, but never two of one word. So each word is a number if
    there are as many.
    """
    if not expected:
        return np.empty(0, dtype)  # NumPy makes one number of blank text
    if dtype.kind != "f" and text.rstrip().endswith((b"+", b"-")):
        return None  # and it takes a sign at the end for an integer
    try:
        flat = np.fromstring(text, dtype, sep=" ") if _RAISES else _parse_strictly(text, dtype)
    except (ValueError, DeprecationWarning):
        return None
    return flat if flat.size == expected else None


def _parse_strictly(text: bytes, dtype: DType) -> NDArray[Any]:
    """Older NumPy stops at a bad word and only warns. Filters of warnings belong to all threads, hence one at a time."""
    with whole_step, warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        return np.fromstring(text, dtype, sep=" ")


def _parser_raises() -> bool:
    """Whether NumPy refuses a bad word by itself."""
    try:
        _parse_strictly(b"?", INT64)
    except DeprecationWarning:
        return False
    except ValueError:
        pass
    return True


_RAISES = _parser_raises()


def _at_limit(flat: NDArray[Any]) -> NDArray[np.intp]:
    """Where integers stand at the limits of their dtype."""
    limits = np.iinfo(flat.dtype)
    if not flat.size or (flat.max() < limits.max and (limits.min == 0 or flat.min() > limits.min)):
        return np.empty(0, np.intp)
    return np.flatnonzero((flat == limits.max) | ((flat == limits.min) & (limits.min < 0)))


def _cut_off(text: bytes, flat: NDArray[Any]) -> int | None:
    """The first integer that was cut off at the limits of the dtype."""
    places = _at_limit(flat).tolist()
    words = text.split() if places else []
    return next((place for place in places if len(words[place]) > _LONGEST or int(words[place]) != int(flat[place])), None)


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word


def _is_integer(word: bytes) -> bool:
    return re.fullmatch(rb"[+-]?[0-9]+", word) is not None
